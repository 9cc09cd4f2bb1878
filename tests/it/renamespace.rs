//! Namespaces get another name, go into each other and are taken apart (LIFE-27, LIFE-28, LIFE-29, LIFE-67).

use std::io::Cursor;

use oubliette::exchange::{Export, Import, LineReader, VectorsTo};
use oubliette::maintain::{MaintainOptions, Pass, RenamespaceOptions, RenamespaceReport};
use oubliette::memory::{AuthorKind, EventQuery, Field, Link, Tier, TombstoneReason};
use oubliette::policy::Syntax;
use oubliette::{Draft, ErrorKind, Forget, Kind, Query, Scope};
use serde_json::{Value, json};

use crate::world::{World, axis, text};

const HOW: RenamespaceOptions = RenamespaceOptions { dry_run: false, drop_keys: false };
const DRY: RenamespaceOptions = RenamespaceOptions { dry_run: true, drop_keys: false };

fn with(words: &str, metadata: Value) -> Draft {
    text(words).metadata(metadata)
}

fn move_out(world: &World, to: &str) -> RenamespaceReport {
    world.db.move_namespace("default", to, &HOW).unwrap()
}

fn split(world: &World) -> RenamespaceReport {
    let report = world.db.split_namespace("default", &[], &HOW).unwrap();
    world.check();
    report
}

#[test]
fn v201_a_memory_goes_where_the_first_key_says_that_is_a_text() {
    let world = World::new();
    let row = world.add(with("Ann prefers tea", json!({ "user_id": " u1 ", "agent_id": "a1" })).key("k"));
    let report = split(&world);
    assert_eq!((report.moved, report.skipped, report.targets["u1"]), (1, 0, 1));
    let there = world.db.namespace("u1").unwrap();
    assert_eq!(there.get("k").unwrap().unwrap().id, row.id);
    assert_eq!(there.search("tea").unwrap().hits[0].id, row.id);
    assert!(world.unknown("k") && world.unknown(row.id));
}

#[test]
fn v202_what_names_no_other_namespace_stays() {
    let world = World::new();
    for metadata in [json!({ "run_id": 7 }), json!({ "user_id": "" }), json!({ "user_id": "default" })] {
        world.add(with(&metadata.to_string(), metadata.clone()));
    }
    world.add(with("no name of a namespace", json!({ "user_id": "u".repeat(300), "project": "p" })));
    let report = split(&world);
    assert_eq!((report.moved, report.skipped, report.targets.len()), (0, 4, 0));
    assert_eq!(world.db.namespaces().unwrap().len(), 1);
    let shown = serde_json::to_value(&report).unwrap();
    assert!(shown.get("targets").is_none(), "{shown}");
}

#[test]
fn v203_a_move_to_itself_writes_nothing() {
    let world = World::new();
    world.add(text("Ann prefers tea"));
    let before = world.ns.stats().unwrap().commit;
    assert_eq!(move_out(&world, "default").moved, 0);
    assert_eq!(world.ns.stats().unwrap().commit, before);
}

#[test]
fn a_move_to_a_new_name_keeps_everything_under_the_name() {
    let world = World::new();
    let row = world.add(text("Ann prefers tea").key("k").vector(axis(0)));
    world.add(text("Bob walks").agent("bob"));
    assert_eq!(move_out(&world, "team").moved, 2);
    world.check();
    let team = world.db.namespace("team").unwrap();
    assert_eq!(team.history("k").unwrap().events.len(), 1);
    assert_eq!(team.search(Query::vector(axis(0))).unwrap().hits[0].id, row.id);
    assert_eq!(world.db.move_namespace("default", "x", &HOW).unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(world.db.move_namespace("team", "", &HOW).unwrap_err().kind(), ErrorKind::Invalid);
}

/// LIFE-29: tombstones go along. The old name is free, and an export that is imported under it makes another namespace.
#[test]
fn an_older_export_brings_nothing_back_where_its_memories_have_gone() {
    for is_there in [false, true] {
        let world = World::new();
        if is_there {
            world.db.namespace("team").unwrap().add("Bob walks").unwrap();
        }
        world.add(text("a secret").key("s"));
        let mut old = Vec::new();
        let all = Export { namespaces: vec![world.ns.name().clone()], all_states: true };
        let snapshot = world.db.snapshot().unwrap();
        all.write(&snapshot, &mut old, "old", VectorsTo::<Cursor<Vec<u8>>>::Lines).unwrap();
        world.forget(&["s"]);
        move_out(&world, "team");
        let bring = |into: &str| {
            let import = Import { into: Some(into.parse().unwrap()), ..Import::default() };
            import.run(&world.db, LineReader::new(old.as_slice(), "lines"), &mut ())
        };
        assert_eq!(bring("team").unwrap_err().kind(), ErrorKind::Conflict, "ids are never used again");
        assert_eq!(bring("default").unwrap().stored, 1);
        world.check();
    }
}

#[test]
fn a_move_into_a_namespace_brings_every_state_and_the_runs_that_can_be_undone() {
    let world = World::new();
    world.db.namespace("team").unwrap().add("Bob walks").unwrap();
    for apps in [4, 7, 9] {
        let draft = text(&format!("Gateway status: {apps} apps pending")).kind(Kind::Profile);
        world.add(draft.key(format!("g{apps}")).agent("ops"));
    }
    let gone = world.add(text("a secret").key("s")).id;
    world.forget(&["s"]);
    let old = world.add(text("Ann drinks tea").key("ann")).id;
    let new = world.add(text("Ann drinks coffee").key("ann")).id;
    let run = world.ns.maintain_with(&MaintainOptions::live().passes([Pass::Collapse])).unwrap().run.unwrap();
    let report = move_out(&world, "team");
    assert_eq!((report.moved, report.cross_namespace_edges), (5, 0));
    world.check();
    let team = world.db.namespace("team").unwrap();
    assert_eq!(team.stats().unwrap().memories.limbo, 2);
    assert_eq!(team.undo(run).unwrap().restored, 2);
    world.check();
    assert_eq!(team.get("g7").unwrap().unwrap().text, "Gateway status: 7 apps pending");
    assert_eq!(team.get(old).unwrap().unwrap().superseded_by(), Some(new));
    let stone = team.tombstones(None, 10).unwrap().items;
    assert!(stone.iter().any(|stone| stone.id == gone && stone.reason == TombstoneReason::Forget));
    assert!(!team.history("ann").unwrap().events.is_empty());
    assert_eq!(world.db.namespaces().unwrap().len(), 1);
}

#[test]
fn keys_that_both_hold_are_named_and_nothing_is_moved() {
    let world = World::new();
    let team = world.db.namespace("team").unwrap();
    let held = team.add(Draft::new("theirs").key("k")).unwrap().id;
    let row = world.add(text("ours").key("k")).id;
    let refused = world.db.move_namespace("default", "team", &HOW).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict);
    assert!(refused.to_string().contains("keys k"), "{refused}");
    assert_eq!(world.row("k").id, row);
    let lossy = RenamespaceOptions { drop_keys: true, ..HOW };
    let report = world.db.move_namespace("default", "team", &lossy).unwrap();
    assert_eq!(report.dropped_keys.into_iter().collect::<Vec<_>>(), ["k"]);
    world.check();
    assert_eq!(team.get("k").unwrap().unwrap().id, held);
    assert_eq!(team.get(row).unwrap().unwrap().keys, [""; 0]);
}

/// MODEL-8: a key that memories lose on their way names another record there, and what is left of theirs is none of its story:
/// neither what was forgotten of the key, nor what is in limbo.
#[test]
fn nothing_of_a_lost_key_joins_the_record_that_has_it() {
    for into_many in [false, true] {
        let world = World::new();
        let of = |words: &str| with(words, json!({ "project": "team" }));
        let old = world.add(of("old text of ours").key("k")).id;
        world.add(of("newer text of ours").key("k"));
        let forget = Forget::Names {
            names: vec!["k".to_owned()],
            scope: Scope::Any,
            keep_history: true,
            also_merged: true,
            with_history: false,
        };
        world.ns.forget(forget).unwrap();
        let mut brief = of("over soon").key("k");
        brief.fields.tier = Some(Tier::Working);
        let over = world.add(brief).id;
        world.advance("4d");
        world.ns.maintain_with(&MaintainOptions::live().passes([Pass::Expire])).unwrap();
        world.add(of("third text of ours").key("k"));
        let team = world.db.namespace("team").unwrap();
        let theirs = team.add(Draft::new("theirs").key("k")).unwrap().id;

        let lossy = RenamespaceOptions { drop_keys: true, ..HOW };
        let report = match into_many {
            true => world.db.split_namespace("default", &[], &lossy).unwrap(),
            false => world.db.move_namespace("default", "team", &lossy).unwrap(),
        };
        assert_eq!((report.moved, report.dropped_keys.len()), (3, 1));
        let versions = || team.history("k").unwrap().versions.iter().map(|one| one.id).collect::<Vec<_>>();
        assert_eq!(versions(), [theirs], "{into_many}");
        assert!(team.tombstones(None, 10).unwrap().items.iter().all(|stone| stone.key_hashes.is_empty()));
        assert!(team.get(over).is_ok() && team.get(old).unwrap().is_some(), "by their ids");
        team.forget("k").unwrap();
        assert_eq!(versions(), [theirs], "{into_many}");
        world.check();
    }
}

/// MODEL-30: whoever forgets a key does not mean messages of another record, of which no memory tells any more.
#[test]
fn a_message_of_a_lost_key_is_none_of_the_record_that_has_it() {
    let world = World::new();
    world.db.set_policy("undo.horizon = 0", Syntax::Toml).unwrap();
    let mut message = text("deploy 1 of api is done").kind(Kind::Message).key("k");
    message.fields.author_kind = Field::Value(AuthorKind::Bot);
    message.fields.tier = Some(Tier::Working);
    world.add(message);
    world.advance("4d");
    world.ns.maintain_with(&MaintainOptions::live().passes([Pass::Expire])).unwrap();
    world.add(text("ours").key("k"));
    let team = world.db.namespace("team").unwrap();
    team.add(Draft::new("theirs").key("k")).unwrap();
    let texts = || -> Vec<_> {
        let events = team.events(&EventQuery::default()).unwrap().items;
        events.into_iter().map(|event| event.payload).collect()
    };
    world.db.move_namespace("default", "team", &RenamespaceOptions { drop_keys: true, ..HOW }).unwrap();
    assert_eq!(texts(), [Some("deploy 1 of api is done".to_owned())]);
    team.forget("k").unwrap();
    assert_eq!(texts(), [Some("deploy 1 of api is done".to_owned())]);
    world.check();
}

#[test]
fn references_across_a_new_border_stay_named_and_are_reported() {
    let world = World::new();
    let other = world.add(with("other", json!({ "user_id": "u2" }))).id;
    let old = world.add(with("Ann drinks tea", json!({ "user_id": "u1" })).key("ann")).id;
    let new = world.add(with("Ann drinks coffee", json!({ "user_id": "u2" })).key("ann")).id;
    let mut linked = with("linked", json!({ "user_id": "u1" }));
    linked.links = Some(vec![Link { to: other, relation: "see".to_owned() }]);
    let linked = world.add(linked).id;
    assert_eq!(split(&world).cross_namespace_edges, 2);
    let (u1, u2) = (world.db.namespace("u1").unwrap(), world.db.namespace("u2").unwrap());
    assert_eq!(u1.get(old).unwrap().unwrap().superseded_by(), Some(new));
    let stone = u1.tombstones(None, 10).unwrap().items;
    assert_eq!(
        stone.iter().map(|stone| (stone.id, stone.reason)).collect::<Vec<_>>(),
        [(new, TombstoneReason::Moved)]
    );
    assert!(u1.get(linked).unwrap().unwrap().links.is_empty());
    // No chain is followed across the border: the old text does not resurface.
    let repair = MaintainOptions::live().passes([Pass::Supersession]);
    world.db.maintain_with(&repair).unwrap();
    assert!(u1.search("tea").unwrap().hits.is_empty());
    // Back in one namespace the superseder takes the place of its tombstone.
    world.db.move_namespace("u2", "u1", &HOW).unwrap();
    world.check();
    assert!(u1.tombstones(None, 10).unwrap().items.is_empty());
    assert_eq!(u2.database().namespaces().unwrap().len(), 2);
    assert_eq!(u1.get("ann").unwrap().unwrap().id, new);
}

#[test]
fn messages_go_where_their_family_goes() {
    let world = World::new();
    let bot = |words: &str| {
        let mut draft = Draft::new(words).kind(Kind::Message).metadata(json!({ "user_id": "u1" }));
        draft.fields.author_kind = Field::from(Some(AuthorKind::Bot));
        draft.fields.channel = Field::from(Some("ops".to_owned()));
        draft
    };
    for _ in 0..3 {
        world.add(bot("backup done"));
    }
    split(&world);
    let all = world.db.namespace("default").unwrap().events(&EventQuery::default()).unwrap().items.len()
        + world.db.namespace("u1").unwrap().events(&EventQuery::default()).unwrap().items.len();
    assert_eq!(all, 3);
    world.db.namespace("team").unwrap().add("Bob walks").unwrap();
    for name in ["u1", "default"] {
        if world.db.namespaces().unwrap().iter().any(|ns| ns.as_str() == name) {
            world.db.move_namespace(name, "team", &HOW).unwrap();
            world.check();
        }
    }
    assert_eq!(world.db.namespace("team").unwrap().events(&EventQuery::default()).unwrap().items.len(), 3);
}

/// What waits in limbo may name a memory that is gone. That is a reference across no border, and stays what it was.
#[test]
fn limbo_keeps_what_it_says_of_a_memory_that_is_gone() {
    let world = World::new();
    let gone = world.add(text("Ann's cup")).id;
    let mut waits = text("beside the cup").tier(oubliette::memory::Tier::Working);
    waits.links = Some(vec![Link { to: gone, relation: "beside".to_owned() }]);
    let waits = world.add(waits).id;
    world.advance("73h");
    world.db.maintain_with(&MaintainOptions::live().passes([Pass::Expire])).unwrap();
    world.forget_id(gone);
    world.db.namespace("team").unwrap().add("Bob walks").unwrap();
    assert_eq!(move_out(&world, "team").cross_namespace_edges, 0);
    world.check();
    let team = world.db.namespace("team").unwrap();
    let there = team.get(waits).unwrap().unwrap();
    assert_eq!((there.state, there.links.len()), (oubliette::State::Limbo, 1));
    team.restore(waits).unwrap();
    assert!(team.get(waits).unwrap().unwrap().links.is_empty(), "a link that leads nowhere does not return");
    world.check();
}

#[test]
fn a_dry_run_says_what_would_happen_and_writes_nothing() {
    let world = World::new();
    world.add(with("Ann prefers tea", json!({ "project": "p" })));
    let before = world.ns.stats().unwrap().commit;
    let report = world.db.split_namespace("default", &["project"], &DRY).unwrap();
    assert_eq!((report.moved, report.dry_run, report.targets["p"]), (1, true, 1));
    assert_eq!(world.db.move_namespace("default", "q", &DRY).unwrap().moved, 1);
    assert_eq!(world.ns.stats().unwrap().commit, before);
    assert_eq!(world.db.namespaces().unwrap().len(), 1);
}

/// Where no memory stays, the namespace is as if it had never had one: but for what it remembers of those that were forgotten.
#[test]
fn a_namespace_that_is_taken_apart_as_a_whole_is_empty_and_can_be_written_to() {
    let world = World::new();
    let team = || json!({ "project": "team" });
    for apps in [2, 3] {
        let draft = with(&format!("Gateway status: {apps} apps pending"), team()).kind(Kind::Profile);
        world.add(draft.key(format!("g{apps}")).vector(axis(apps)).tag("ops"));
    }
    let gone = world.add(with("a secret", team()).key("s")).id;
    world.forget(&["s"]);
    let mut tea = with("Ann drinks tea", team()).key("ann").vector(axis(0));
    tea.categories = Some(vec!["people".to_owned()]);
    let ann = world.add(tea).id;
    let mut bob = with("Bob knows Ann", team()).agent("bob");
    bob.links = Some(vec![Link { to: ann, relation: "knows".to_owned() }]);
    world.add(bob);
    world.add(with("Ann drinks coffee", team()).key("ann").vector(axis(1)));
    world.ns.maintain_with(&MaintainOptions::live().passes([Pass::Collapse, Pass::Index])).unwrap();
    // The images that readers have are those of the memories that go.
    assert!(!world.ns.search(Query::vector(axis(1))).unwrap().hits.is_empty());
    assert!(!world.ns.search("coffee").unwrap().hits.is_empty());

    let report = split(&world);
    assert_eq!((report.moved, report.skipped, report.targets["team"]), (5, 0, 5));
    let stats = world.ns.stats().unwrap().memories;
    assert_eq!((stats.live, stats.superseded, stats.limbo, stats.tombstoned), (0, 0, 0, 1));
    assert_eq!(world.ns.tombstones(None, 10).unwrap().items.iter().map(|s| s.id).collect::<Vec<_>>(), [gone]);
    assert!(world.ns.search(Query::vector(axis(1))).unwrap().hits.is_empty());
    assert!(world.ns.search("coffee").unwrap().hits.is_empty());

    let again = world.add(text("Ann drinks coffee").key("ann").vector(axis(1))).id;
    assert_eq!(world.ns.search(Query::vector(axis(1))).unwrap().hits[0].id, again);
    assert_eq!(world.ns.search("coffee").unwrap().hits[0].id, again);
    world.check();
}

#[test]
fn an_import_into_one_namespace_is_taken_apart_again() {
    let world = World::new();
    let lines = br#"{"key":"a","namespace":"ann","text":"Ann prefers tea"}
{"key":"b","namespace":"bob","text":"Bob walks","metadata":{"note":1}}
{"key":"c","text":"nobody said whose"}"#;
    let import = Import { into: Some("mixed".parse().unwrap()), ..Import::default() };
    import.run(&world.db, LineReader::new(lines.as_slice(), "lines"), &mut ()).unwrap();
    assert_eq!(world.db.namespaces().unwrap().len(), 1);
    let report = world.db.split_namespace("mixed", &[], &HOW).unwrap();
    assert_eq!((report.moved, report.targets["ann"], report.targets["bob"]), (3, 1, 1));
    world.check();
    assert_eq!(world.row("c").text, "nobody said whose");
    let bob = world.db.namespace("bob").unwrap().get("b").unwrap().unwrap();
    assert_eq!(bob.metadata, json!({ "note": 1, "import_source_namespace": "bob" }));
    assert_eq!(world.list_in(Scope::Any, oubliette::State::Live).len(), 1);
}

/// LIFE-28: what a split would send to different namespaces is never one row.
#[test]
fn no_pass_makes_one_row_of_two_owners() {
    let world = World::new();
    for user in ["u1", "u2"] {
        for apps in 1..4 {
            let report = text(&format!("Gateway status: {apps} apps pending")).kind(Kind::Profile);
            world.add(report.metadata(json!({ "user_id": user })).key(format!("{user}:{apps}")));
        }
    }
    world.ns.maintain_with(&MaintainOptions::live().passes([Pass::Collapse])).unwrap();
    for user in ["u1", "u2"] {
        world.add(text("a tall tree").metadata(json!({ "user_id": user })).vector(axis(1)));
    }
    let all = MaintainOptions::live().passes([Pass::VectorDuplicates, Pass::NearDuplicates]);
    world.ns.maintain_with(&all).unwrap();
    let owners: Vec<_> = world.live().iter().map(|id| world.row(id).metadata["user_id"].clone()).collect();
    assert_eq!(owners, [json!("u1"), json!("u2"), json!("u1"), json!("u2")]);
    world.check();
}

/// Two states of the same thing, merged by a pass: its run.
fn merged(world: &World, metadata: [Value; 2]) -> oubliette::maintain::RunId {
    for (apps, metadata) in [4, 7].into_iter().zip(metadata) {
        let say = format!("Gateway status: {apps} apps pending");
        world.add(with(&say, metadata).kind(Kind::Profile).key(format!("k{apps}")));
    }
    let report = world.ns.maintain_with(&MaintainOptions::live().passes([Pass::Collapse])).unwrap();
    assert_eq!(report.passes[0].tombstoned, 1);
    report.run.unwrap()
}

/// LIFE-28, MODEL-33: a run is taken back where its memories are now; where they were, undo says that they are gone.
#[test]
fn a_merge_before_a_split_is_taken_back_where_its_memories_are() {
    let world = World::new();
    let of = json!({ "user_id": "u1" });
    let run = merged(&world, [of.clone(), of]);
    world.add(text("It rains"));
    assert_eq!(split(&world).moved, 2);
    let refused = world.ns.undo(run).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict, "{refused}");
    assert!(refused.to_string().contains("another namespace"), "{refused}");
    let there = world.db.namespace("u1").unwrap();
    let undone = there.undo(run).unwrap();
    assert_eq!((undone.restored, undone.lost.len()), (1, 0), "{undone:?}");
    assert_eq!(there.list(&Default::default()).unwrap().items.len(), 2);
    for key in ["k4", "k7"] {
        assert_eq!(there.get(key).unwrap().unwrap().keys, [key]);
    }
    world.check();
    assert!(world.ns.undo(run).is_err(), "nothing of it is here");

    // What has come back is taken back here.
    let world = World::new();
    let of = json!({ "user_id": "u1" });
    let run = merged(&world, [of.clone(), of]);
    world.add(text("It rains"));
    split(&world);
    assert_eq!(world.db.move_namespace("u1", "default", &HOW).unwrap().moved, 2);
    let undone = world.ns.undo(run).unwrap();
    assert_eq!((undone.restored, undone.lost.len()), (1, 0), "{undone:?}");
    world.check();
}

/// LIFE-28, MODEL-33: of a merge that a split has taken apart, the memory that went comes back where it is.
#[test]
fn a_merge_that_a_split_took_apart_is_taken_back_in_its_parts() {
    let world = World::new();
    let run = merged(&world, ["a", "b"].map(|team| json!({ "team": team })));
    let report = world.db.split_namespace("default", &["team"], &HOW).unwrap();
    assert_eq!(report.targets.len(), 2, "{report:?}");
    world.check();
    let mut restored = 0;
    for name in ["a", "b"] {
        let undone = world.db.namespace(name).unwrap().undo(run).unwrap();
        assert_eq!(undone.lost.len() as u64, 1 - undone.restored, "{name}: {undone:?}");
        restored += undone.restored;
        world.check();
    }
    assert_eq!(restored, 1);
    assert_eq!(world.db.namespace("a").unwrap().list(&Default::default()).unwrap().items.len(), 1);
    assert_eq!(world.db.namespace("b").unwrap().list(&Default::default()).unwrap().items.len(), 1);
    assert_eq!(world.ns.undo(run).unwrap_err().kind(), ErrorKind::Conflict);
}

/// Uses that are noted and not counted yet go along, however many.
#[test]
fn uses_that_wait_to_be_counted_go_along() {
    for into_many in [false, true] {
        let world = World::new();
        world.db.namespace("other").unwrap().add("Ann prefers tea").unwrap();
        let say = |at: usize| {
            with(&format!("apple {at}"), json!({ "user_id": "other" })).key(format!("k{at}")).vector(axis(0))
        };
        world.ns.add_all((0..300).map(say).collect(), &Default::default()).unwrap();
        assert_eq!(world.ns.search(Query::vector(axis(0)).k(400).track(true)).unwrap().hits.len(), 300);
        match into_many {
            true => drop(split(&world)),
            false => drop(move_out(&world, "other")),
        }
        let there = world.db.namespace("other").unwrap();
        let counts = (0..300).map(|at| there.get(format!("k{at}")).unwrap().unwrap().retrieval_count);
        assert_eq!(counts.sum::<u64>(), 300, "{into_many}");
    }
}
