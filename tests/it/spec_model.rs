//! The record, its bounds, its junctions, what is kept of it when it is gone, policy and statistics, by the
//! specification (MODEL-3 to MODEL-44).

use crate::world::{World, axis, ms, text};
use oubliette::memory::Expiry;
use oubliette::memory::{Actor, Entity, Field, Fields, Link, SupersedeMode, Tier, TombstoneReason};
use oubliette::policy::{Policy, Syntax};
use oubliette::{
    Database, Decision, Draft, Error, ErrorKind, Forget, Kind, MemoryId, NamespaceName, Patch, Scope, State,
    WriteOptions,
};
use serde_json::json;

fn linked(draft: Draft, to: MemoryId) -> Draft {
    Draft { links: Some(vec![Link { to, relation: "about".to_owned() }]), ..draft }
}

fn entity(name: &str, role: &str) -> Entity {
    Entity { name: name.to_owned(), role: role.to_owned() }
}

#[test]
fn v191_scopes() {
    let world = World::new();
    let near = |at: usize| [1.0, at as f32 / 100.0, 0.0, 0.0];
    for at in 0..3 {
        world.add(text(&format!("shared {at}")).vector(near(at)));
    }
    for at in 3..5 {
        world.add(text(&format!("profile {at}")).vector(near(at)).agent("profile-mgr"));
    }
    world.add(text("query").vector(near(5)).agent("perplexity"));
    let count = |scope: Scope| {
        let found = world.find_in(axis(0), 10, scope.clone()).len();
        assert_eq!(found, world.list_in(scope, State::Live).len());
        found
    };
    assert_eq!(count(Scope::default()), 3);
    assert_eq!(count(Scope::agent("perplexity").unwrap()), 1);
    assert_eq!(count(Scope::agent("nobody").unwrap()), 0);
    assert_eq!(count(Scope::Any), 6);
}

#[test]
fn v192_v193_the_small_document() {
    let world = World::new();
    let empty = serde_json::to_value(world.ns.memory_stats().unwrap()).unwrap();
    let shape = json!({
        "local": {"total": 0, "by_scope": {}, "by_tag": {}, "date_range": {"oldest": null, "newest": null}},
        "mem0": {"total": 0, "by_agent": {"shared-memory": 0}},
        "health": {"duplicates_detected": 0, "profile_snapshots": 0, "last_prune": null},
    });
    assert_eq!(empty, shape);
    let mut scoped =
        text("a").tag("preferences").tag("workflow").created_at("2026-01-01T23:59:59Z".parse().unwrap());
    scoped.fields.scope_label = Some("project:x".to_owned());
    world.add(scoped);
    world.add(text("b"));
    world.add(text("s").kind(Kind::Snapshot).agent("profile-mgr"));
    let full = serde_json::to_value(world.ns.memory_stats().unwrap()).unwrap();
    let shape = json!({
        "local": {"total": 2, "by_scope": {"global": 1, "project:x": 1}, "by_tag": {"preferences": 1, "workflow": 1},
                  "date_range": {"oldest": "2026-01-01", "newest": "2026-01-02"}},
        "mem0": {"total": 3, "by_agent": {"shared-memory": 2, "profile-mgr": 1}},
        "health": {"duplicates_detected": 0, "profile_snapshots": 1, "last_prune": null},
    });
    assert_eq!(full, shape);
}

#[test]
fn v248_kinds() {
    let why = "gossip".parse::<Kind>().unwrap_err();
    assert!(why.to_string().starts_with("kind"), "{why}");
    let world = World::new();
    let id = world.add(text("t").kind("custom:gossip".parse().unwrap())).id;
    assert_eq!(world.row(id).kind.to_string(), "custom:gossip");
}

#[test]
fn v274_bounds_of_numbers_and_of_empty_text() {
    let world = World::new();
    for bad in [1.5, -1.0, f32::NAN] {
        let why = world.ns.add(text("t").importance(bad)).unwrap_err();
        assert_eq!(why.kind(), ErrorKind::Invalid);
        assert!(why.to_string().starts_with("importance: "), "{why}");
    }
    for (at, blank) in ["", " ", "\n\t", "\u{a0}\u{3000}"].into_iter().enumerate() {
        let why = world.ns.add(text(blank)).unwrap_err();
        assert!(matches!(&why, Error::Invalid { field, .. } if field == "text"), "{blank:?}: {why}");
        assert_eq!(world.add(text(blank).vector(axis(at))).decision, Decision::Stored, "{blank:?}");
    }
    let tea = world.add(text("Ann prefers tea").key("ann")).id;
    let refusals = [
        world.ns.update("ann", Patch::new().text(" ")).unwrap_err(),
        world.ns.supersede("ann", text("\t")).unwrap_err(),
        world.ns.replace(["ann"], text(" "), SupersedeMode::Correction, None).unwrap_err(),
    ];
    for why in refusals {
        assert_eq!(why.to_string(), "text: must not be empty without a vector (got only white space)");
    }
    assert_eq!(world.row("ann").id, tea);
    for good in [0.0, 1.0] {
        world.add(text(&good.to_string()).importance(good));
    }
}

/// Each bound of MODEL-3, MODEL-4 and MODEL-9: the longest that is taken, and one more.
#[test]
fn model9_bounds_at_and_past_the_limit() {
    let world = World::new();
    let long = |bytes: usize| "x".repeat(bytes);
    let tags = |count: usize| (0..count).map(|at| format!("t{at}")).collect::<Vec<_>>();
    let tagged = |all: Vec<String>| Draft { tags: Some(all), ..text("tags") };
    let pairs: Vec<(&str, Draft, Draft)> = vec![
        ("key", text("k").key(long(512)), text("k").key(long(513))),
        ("key", text("é").key("é".repeat(256)), text("é").key(format!("{}x", "é".repeat(256)))),
        ("agent", text("a").agent(long(256)), text("a").agent(long(257))),
        ("text", text(&long(1 << 20)), text(&long((1 << 20) + 1))),
        ("tags", tagged(tags(64)), tagged(tags(65))),
        ("tags", tagged(vec![long(128)]), tagged(vec![long(129)])),
        ("metadata", sized_metadata(64 << 10), sized_metadata((64 << 10) + 1)),
        ("vector", text("v").vector(axis(0)), text("v").vector(vec![1.0; 4_097])),
    ];
    for (field, good, bad) in pairs {
        let why = world.ns.add(bad).unwrap_err();
        assert_eq!(why.kind(), ErrorKind::Invalid, "{field}");
        assert!(why.to_string().starts_with(field), "{field}: {why}");
        world.ns.add(good).unwrap_or_else(|why| panic!("{field}: {why}"));
    }
    for (field, bad) in [
        ("key", text("k").key("")),
        ("key", text("k").key("a\0b")),
        ("agent", text("a").agent("  ")),
        ("text", text("a\0b")),
        ("tags", text("t").tag("")),
        ("vector", text("v").vector(vec![])),
        ("vector", text("v").vector([0.0; 4])),
        ("vector", text("v").vector([f32::NAN, 0.0, 0.0, 1.0])),
        ("vector", text("v").vector([f32::INFINITY, 0.0, 0.0, 1.0])),
        ("vector", text("v").vector([1.0; 5])),
        ("metadata", text("m").metadata(json!([1]))),
    ] {
        let why = world.ns.add(bad).unwrap_err();
        assert_eq!(why.kind(), ErrorKind::Invalid, "{field}");
        assert!(why.to_string().starts_with(field), "{field}: {why}");
    }
    // The second of the tagged texts has no room in the row of the first.
    assert_eq!(world.live().len(), 8, "nothing of a refused draft was written");
}

fn sized_metadata(bytes: usize) -> Draft {
    let frame = json!({"m": ""}).to_string().len();
    text("m").metadata(json!({"m": "y".repeat(bytes - frame)}))
}

#[test]
fn model3_namespaces() {
    assert!("x".repeat(256).parse::<NamespaceName>().is_ok());
    assert_eq!(" team ".parse::<NamespaceName>().unwrap().as_str(), "team");
    for bad in ["", "  ", "*", "a\0b", &"x".repeat(257)] {
        assert_eq!(bad.parse::<NamespaceName>().unwrap_err().kind(), ErrorKind::Invalid, "{bad:?}");
    }
}

#[test]
fn model13_the_tag_and_the_flag_pin_together() {
    let world = World::new();
    let tagged = world.row(world.add(text("a").tag("pinned")).id);
    assert!(tagged.pinned && tagged.is_protected());
    let id = world.add(text("b")).id;
    assert!(!world.row(id).is_protected());
    world.ns.pin(id.to_string(), true).unwrap();
    let row = world.row(id);
    assert!(row.pinned);
    assert_eq!(row.tags, ["pinned"]);
    world.ns.pin(id.to_string(), false).unwrap();
    let row = world.row(id);
    assert!(!row.pinned && row.tags.is_empty());
    let mut locked = text("c");
    locked.fields.system_locked = Some(true);
    assert!(world.row(world.add(locked).id).is_protected());
}

#[test]
fn model20_get_in_every_state() {
    let world = World::at(10);
    let live = world.add(text("live").key("live")).id;
    let old = world.add(text("old").key("old")).id;
    let ended = world.add(text("ended").key("ended").expiry(Expiry::At(ms(20)))).id;
    let gone = world.add(text("gone").key("gone")).id;
    world.supersede(old, live, SupersedeMode::Aggregate, None).unwrap();
    world.forget(&["gone"]);
    world.set(20);
    let states = |name: &str| world.row(name).state;
    assert_eq!(
        (states("live"), states("old"), states("ended")),
        (State::Live, State::Superseded, State::Expired)
    );
    for (id, key) in [(live, "live"), (old, "old"), (ended, "ended")] {
        assert_eq!((world.row(id).id, world.row(key).id), (id, id));
        assert_eq!(world.row(id).keys, [key]);
    }
    assert_eq!((world.tombstone("gone").id, world.tombstone(gone).id), (gone, gone));
    assert!(world.unknown("nobody"));
    assert!(world.unknown(MemoryId::from_bytes([9; 16])));
}

#[test]
fn model21_revise_makes_a_row_and_update_does_not() {
    let world = World::new();
    let id = world.add(text("first").key("k").tag("t").vector(axis(0))).id;
    world.advance("1h");
    let patch = Patch { tags: Some(vec!["u".to_owned()]), ..Patch::default() };
    let outcome = world.ns.update("k", patch).unwrap();
    assert_eq!((outcome.decision, outcome.id), (Decision::Updated, id));
    let row = world.row("k");
    assert_eq!((row.version, row.updated_at), (2, world.now()));
    assert_eq!(world.find(axis(0), 1), [id]);
    let patch = Patch { text: Some("second".to_owned()), vector: Some(axis(1).to_vec()), ..Patch::default() };
    let outcome = world.ns.update("k", patch).unwrap();
    assert_eq!(outcome.decision, Decision::Revised { old: id });
    let (old, new) = (world.row(id), world.row("k"));
    assert_eq!((old.state, old.text.as_str()), (State::Superseded, "first"));
    assert_eq!(old.superseded.unwrap().mode, SupersedeMode::Correction);
    assert_eq!((new.text.as_str(), new.tags.clone()), ("second", vec!["u".to_owned()]));
    assert_eq!(world.find(axis(1), 10), [new.id], "the old vector is found no more");
}

#[test]
fn model22_junctions_go_with_either_end() {
    let world = World::new();
    let target = world.add(text("target").key("target")).id;
    let mut draft = linked(text("source").key("source"), target);
    draft.categories = Some(vec!["work".to_owned(), "work".to_owned()]);
    draft.entities = Some(vec![entity("Ann", "subject"), entity("Ann", "mentioned")]);
    draft.sources = Some(vec![target]);
    world.add(draft);
    let row = world.row("source");
    assert_eq!(row.categories, ["work"]);
    assert_eq!(
        row.entities,
        [entity("Ann", "mentioned"), entity("Ann", "subject")],
        "two roles are both kept"
    );
    assert_eq!((row.links.len(), row.links[0].to), (1, target));
    assert_eq!(row.sources, [target]);
    let answer = world.forget(&["target"]);
    assert_eq!(answer.derived, [row.id], "MODEL-30: what was made from it is named");
    let row = world.row("source");
    assert!(row.links.is_empty(), "a link does not stand without both its ends");
    assert_eq!(row.sources, [target], "provenance may point at a tombstone");
    assert!(row.holders[0].links.is_empty(), "nor does a holder bring it");
    world.check();
    world.forget(&["source"]);
    world.check();
    let why = world.ns.add(linked(text("x"), target)).unwrap_err();
    assert_eq!(why.kind(), ErrorKind::Invalid, "a link to what is gone");
}

#[test]
fn model24_dedup_unites_onto_the_canonical() {
    let world = World::new();
    let mut canonical = text("one").tag("a");
    canonical.entities = Some(vec![entity("e1", "mentioned")]);
    let canonical = world.add(canonical).id;
    let mut loser = linked(text("two").tag("b"), canonical);
    loser.entities = Some(vec![entity("e1", "subject")]);
    loser.categories = Some(vec!["c1".to_owned()]);
    let loser = world.add(loser).id;
    world.supersede(loser, canonical, SupersedeMode::Duplicate, None).unwrap();
    let row = world.row(canonical);
    assert_eq!(row.tags, ["a", "b"]);
    assert_eq!(row.categories, ["c1"]);
    assert_eq!(row.entities, [entity("e1", "mentioned"), entity("e1", "subject")]);
    assert!(row.links.is_empty(), "a self-link is dropped");
    assert_eq!(world.row(loser).links.len(), 1, "it keeps the list as it was");
    world.check();
    world.forget_id(canonical);
    world.check();
}

#[test]
fn model28_what_a_tombstone_tells() {
    let world = World::new();
    let run = world.start_import();
    let id = world.import(run, vec![text("t").key("a")])[0].id;
    world.add(text("t").key("b"));
    let twin = world.add(text("twin")).id;
    world.supersede(twin, id, SupersedeMode::Duplicate, None).unwrap();
    world.advance("1h");
    let answer = world.forget_id(id);
    assert_eq!((answer.forgotten, answer.tombstones.len()), (1, 2), "also_merged");
    let stone = world.tombstone(id);
    assert_eq!((stone.reason, stone.deleted_at), (TombstoneReason::Forget, world.now()));
    assert_eq!((stone.made_by, stone.merged_from.clone()), (Some(run), vec![twin]));
    assert_eq!((stone.key_hashes.len(), stone.rows), (2, 1));
    assert_eq!(world.tombstone("a").id, id);
    assert_eq!(world.tombstone("b").id, id);
    assert_eq!(world.ns.explain("t").unwrap().id, id, "by content, which is hashed");
    assert!(world.find(axis(0), 10).is_empty());
}

#[test]
fn model30_also_merged_can_be_left_out() {
    let world = World::new();
    let (id, twin, old) = (world.add(text("a")).id, world.add(text("b")).id, world.add(text("c")).id);
    world.supersede(twin, id, SupersedeMode::Duplicate, None).unwrap();
    world.supersede(old, id, SupersedeMode::Replaced, None).unwrap();
    let what = Forget::Names {
        scope: Scope::Any,
        names: vec![id.to_string()],
        keep_history: false,
        also_merged: false,
        with_history: false,
    };
    assert_eq!(world.ns.forget(what).unwrap().tombstones, [id]);
    assert_eq!(world.row(twin).state, State::Superseded);
    assert_eq!(world.row(old).state, State::Superseded, "other predecessors stay superseded");
}

#[test]
fn model32_v280_the_journal_forgets_with_the_memory() {
    let world = World::new();
    let secret = "Zebrafisch";
    let mut draft =
        text("about").key("key-Zebrafisch").tag("tag-Zebrafisch").metadata(json!({"who": secret}));
    draft.entities = Some(vec![entity(secret, "subject")]);
    draft.fields.author_id = Some(secret.to_owned()).into();
    let id = world.add(draft).id;
    let mut patch = Patch { tags: Some(vec!["more-Zebrafisch".to_owned()]), ..Patch::default() };
    patch.fields.metadata = Some(json!({"who": "Zebrafisch II"}));
    patch.fields.author_id = Some("Zebrafisch III".to_owned()).into();
    world.ns.update("key-Zebrafisch", patch).unwrap();
    let shown = |name: &str| format!("{:?}", world.ns.explain(name).unwrap().events);
    assert!(
        shown("key-Zebrafisch").contains(secret),
        "the journal tells of changes while the memory is there"
    );
    world.forget(&["key-Zebrafisch"]);
    let told = world.ns.explain("key-Zebrafisch").unwrap();
    assert_eq!((told.id, told.state), (id, State::Tombstoned));
    assert_eq!(told.removed.unwrap().reason, TombstoneReason::Forget);
    assert_eq!(told.created.actor, Some(Actor::Caller));
    assert!(
        told.events.iter().any(|row| row.op == oubliette::report::Op::Update && !row.deltas.is_empty()),
        "the rows are still there"
    );
    assert!(!shown("key-Zebrafisch").contains(secret), "their values are HMACs: {}", shown("key-Zebrafisch"));
}

#[test]
fn v283_a_dropped_namespace() {
    let world = World::new();
    let doomed = world.db.namespace("doomed").unwrap();
    let drafts = (0..1_000).map(|at| text(&format!("row {at}")).key(format!("k{at}"))).collect();
    let ids = doomed.add_all(drafts, &WriteOptions::default()).unwrap();
    world.add(text("row 1").key("k1"));
    assert_eq!(world.db.drop_namespace(doomed.name()).unwrap(), 1_000);
    let why = doomed.look_up(ids[0].id.to_string(), false).unwrap_err();
    assert_eq!(why.kind(), ErrorKind::NotFound);
    assert!(why.to_string().contains("dropped"), "{why}");
    assert_eq!(world.db.namespaces().unwrap(), std::slice::from_ref(world.ns.name()));
    assert_eq!(world.db.drop_namespace(doomed.name()).unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(world.row("k1").text, "row 1", "the other tenant is untouched");
    assert_eq!(doomed.add(text("row 1").key("k1")).unwrap().decision, Decision::Stored, "a new beginning");
}

#[test]
fn v286_counters_follow_the_clock() {
    let world = World::at(100);
    let first = world.add(text("t").tag("x").vector(axis(0)).expiry(Expiry::At(ms(200)))).id;
    world.set(250);
    assert!(world.find(axis(0), 1).is_empty());
    let stats = world.ns.stats().unwrap();
    assert_eq!((stats.memories.live, stats.memories.expired, stats.pending_due), (0, 1, 0));
    assert_eq!(stats.by_kind.values().sum::<u64>(), 0);
    assert!(world.ns.memory_stats().unwrap().local.by_tag.is_empty());
    let again = world.add(text("t").vector(axis(0)));
    assert_eq!(again.decision, Decision::Stored);
    assert_ne!(again.id, first);
}

#[test]
fn v287_what_is_due_is_settled_in_bounded_steps() {
    let world = World::at(100);
    let how = WriteOptions { no_dedup: true, ..WriteOptions::default() };
    for part in 0..5 {
        let drafts = (0..5_000).map(|at| text(&format!("{part} {at}")).expiry(Expiry::At(ms(200)))).collect();
        world.ns.add_all(drafts, &how).unwrap();
    }
    world.set(200);
    let pending = || world.ns.stats().unwrap().pending_due;
    assert_eq!((pending(), pending(), pending()), (15_000, 5_000, 0));
}

#[test]
fn model36_policy() {
    let mut world = World::new();
    let (policy, version) = world.db.policy();
    assert_eq!((policy, version.number), (Policy::default(), 0));
    let stored = world.db.set_policy("[write]\non_key = \"error\"", Syntax::Toml).unwrap();
    assert_eq!(stored.number, 1);
    assert_ne!(stored.hash, version.hash);
    for bad in
        ["[write]\non_keys = \"error\"", "[write]\non_key = \"sometimes\"", "[ttl]\nworking = \"-1h\"", "["]
    {
        assert_eq!(world.db.set_policy(bad, Syntax::Toml).unwrap_err().kind(), ErrorKind::Policy, "{bad}");
    }
    world.add(text("t").key("k"));
    assert_eq!(world.refused(text("u").key("k")), ErrorKind::Conflict, "in force at once");
    assert_eq!(world.add(text("v")).policy_number, 1);
    world.reopen();
    assert_eq!(world.db.policy().1, stored);
    let mut own = Policy::default();
    own.ttl.working = oubliette::Span::from_hours(1);
    world.db.clone().close().unwrap();
    let handle: Database = world.builder().policy(own).open(world.path()).unwrap();
    let id = handle.namespace(world.ns.name()).unwrap().add(text("w").tier(Tier::Working)).unwrap().id;
    let oubliette::memory::Got::Memory(row) =
        handle.namespace(world.ns.name()).unwrap().look_up(id.to_string(), false).unwrap()
    else {
        panic!()
    };
    assert_eq!(row.expires_at, Some(world.ahead("1h")), "the overlay of this handle");
    handle.close().unwrap();
}

#[test]
fn model38_ties_end_with_the_ascending_id() {
    let world = World::new();
    let ids: Vec<_> = (0..20).map(|at| world.add(text(&format!("{at}")).vector(axis(0))).id).collect();
    assert!(ids.is_sorted());
    assert_eq!(world.find(axis(0), 20), ids);
    assert_eq!(world.find(axis(0), 5), ids[..5]);
}

#[test]
fn model42_duplicates_detected() {
    let world = World::at(10);
    let how = WriteOptions { no_dedup: true, ..WriteOptions::default() };
    let put = |draft: Draft| world.ns.add_all(vec![draft], &how).unwrap()[0].id;
    let first = put(text("same"));
    let second = put(text("SAME"));
    put(text("same").expiry(Expiry::At(ms(100))));
    assert_eq!(world.duplicates(), 2);
    put(text("same").agent("x"));
    put(text("same").tier(Tier::Procedural));
    put(text("snap").kind(Kind::Snapshot));
    put(text("snap").kind(Kind::Snapshot));
    assert_eq!(world.duplicates(), 2, "by partition and tier, snapshots left out");
    world.set(100);
    assert_eq!(world.duplicates(), 1, "an expired row is not current");
    world.supersede(second, first, SupersedeMode::Duplicate, None).unwrap();
    assert_eq!(world.duplicates(), 0);
    world.ns.restore(second.to_string()).unwrap();
    assert_eq!(world.duplicates(), 1);
    world.forget_id(first);
    assert_eq!(world.duplicates(), 0);
}

/// MODEL-28: with `tombstone.hash = sha256` a tombstone names key and content by SHA-256, which others can compare; those from
/// before are found as well, and a key is never found by a content of the same bytes.
#[test]
fn model28_a_tombstone_may_name_what_is_gone_by_sha_256() {
    use sha2::{Digest, Sha256};
    let plain = |text: &str| -> [u8; 32] { Sha256::digest(text.as_bytes()).into() };
    let world = World::new();
    world.add(text("the first plan").key("plan"));
    world.forget(&["plan"]);
    let keyed = world.tombstone("plan");
    assert!(keyed.content_hash != plain("the first plan") && !keyed.key_hashes.contains(&plain("plan")));
    world.db.set_policy("tombstone.hash = \"sha256\"", Syntax::Toml).unwrap();
    assert_eq!(world.tombstone("plan").id, keyed.id, "made with the secret");
    world.add(text("the second plan").key("other plan"));
    world.forget(&["other plan"]);
    let open = world.tombstone("other plan");
    assert_eq!((open.content_hash, open.key_hashes), (plain("the second plan"), vec![plain("other plan")]));
    let explained = world.ns.explain("the second plan").unwrap();
    assert_eq!((explained.id, explained.state), (open.id, State::Tombstoned), "by its content");
    assert!(world.unknown("the second plan"), "a content is no key");
    assert!(world.ns.history("other plan").unwrap().versions.len() == 1);
    world.add(text("the third plan").key("third"));
    world.db.set_policy("tombstone.hash = \"hmac\"", Syntax::Toml).unwrap();
    world.forget(&["third"]);
    assert_ne!(world.tombstone("third").content_hash, plain("the third plan"));
    assert_eq!(world.tombstone("other plan").id, open.id, "made without the secret");
}

/// MODEL-50, MODEL-56: a write that gives one end of a validity meets the other one, which the memory keeps.
#[test]
fn a_validity_does_not_end_before_it_begins() {
    let world = World::new();
    let (early, late) = (world.ago("2d"), world.now());
    let mut draft = text("Ann is in Ghent").key("k");
    draft.fields.valid_from = Field::Value(late);
    world.add(draft);
    let ends = || Fields { valid_to: Field::Value(early), ..Fields::default() };
    for text in [None, Some("Ann is in Lyon".to_owned())] {
        let patch = Patch { fields: ends(), text: text.clone(), ..Patch::default() };
        let why = world.ns.update("k", patch).unwrap_err();
        assert!(why.kind() == ErrorKind::Invalid && why.to_string().starts_with("valid_to"), "{why}");
        let mut draft = Draft::new(text.as_deref().unwrap_or("Ann is in Ghent")).key("k");
        draft.fields = ends();
        assert_eq!(world.refused(draft), ErrorKind::Invalid);
    }
    let both = Fields { valid_from: Field::Value(world.ago("3d")), ..ends() };
    world.ns.update("k", Patch { fields: both, ..Patch::default() }).unwrap();
    assert_eq!(world.row("k").valid_to, Some(early));
}
