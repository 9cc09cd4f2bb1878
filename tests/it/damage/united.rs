//! Memories of several writers of which one can't be read: the others are written to, and a text goes with its last writer.

use super::store::{overwrite, tables};
use crate::world::{World, text};
use oubliette::maintain::{MaintainOptions, Pass, RenamespaceOptions};
use oubliette::memory::{AuthorKind, EventQuery, Expiry, Got, SupersedeMode};
use oubliette::report::CheckOptions;
use oubliette::{ErrorKind, Forget, Kind, MemoryId, PageRequest, Patch, Query, WriteOptions};

/// Three profiles that are one memory; the text of the first stands in it.
fn collapsed() -> (World, [MemoryId; 3]) {
    let world = World::new();
    let ids = [0, 1, 2].map(|at| {
        let mut draft = text(&format!("gateway queue holds 30{at} jobs")).key(format!("p{at}"));
        draft.fields.kind = Some(Kind::Profile);
        world.add(draft).id
    });
    world.advance("1h");
    world.db.maintain_with(&MaintainOptions::live().passes([Pass::Collapse])).unwrap();
    assert_eq!(world.row("p2").row_text, "gateway queue holds 300 jobs");
    (world, ids)
}

/// Turns a bit in the row of `table` that belongs to a memory and has `word` in it, in the word. Without a word the bit is in the middle.
fn damage(world: &mut World, table: &str, id: MemoryId, word: &str) {
    world.db.clone().close().unwrap();
    let rows = tables(&world.path());
    let says = |value: &[u8]| match word {
        "" => Some(value.len() / 2),
        word => value.windows(word.len()).position(|part| part == word.as_bytes()),
    };
    let (key, mut value, at) = rows[table]
        .iter()
        .filter(|(key, _)| key.get(4..20) == Some(id.as_bytes().as_slice()))
        .find_map(|(key, value)| Some((key.clone(), value.clone(), says(value)?)))
        .expect("a row with the word");
    value[at] ^= 1;
    overwrite(&world.path(), table, &key, &value);
    world.open_again(|builder| builder);
}

type Change = fn(&World) -> oubliette::Result<()>;

fn found(world: &World, words: &str) -> Vec<String> {
    world.ns.search(Query::text(words)).unwrap().hits.into_iter().map(|hit| hit.text).collect()
}

/// A namespace is taken apart past a memory that can't be read: it stays, and is named.
#[test]
fn a_namespace_is_taken_apart_past_a_damaged_memory() {
    for table in ["memory", "vitals", "holder", "payload", "access"] {
        let mut world = World::new();
        let ids = [0, 1, 2, 3].map(|at| {
            let mut draft =
                text(&format!("note {at} of the project")).key(format!("k{at}")).retrieval_count(2);
            draft.payload = Some(vec![7; 100].into());
            world.add(draft.metadata(serde_json::json!({ "project": format!("p{}", at % 2) }))).id
        });
        damage(&mut world, table, ids[1], "");
        for dry_run in [true, false] {
            let options = RenamespaceOptions { dry_run, ..RenamespaceOptions::default() };
            let report = world.db.split_namespace(world.ns.name(), &[], &options).unwrap();
            assert_eq!((report.moved, report.skipped), (3, 1), "{table}: {report:?}");
            assert_eq!(report.damaged, [ids[1]], "{table}");
            assert_eq!((report.targets["p0"], report.targets["p1"]), (2, 1), "{table}");
        }
        let keys = world.db.namespace("p0").unwrap().list(&PageRequest::default()).unwrap();
        assert_eq!(keys.items.len(), 2, "{table}");
        world.forget(&[&ids[1].to_string()]);
    }
}

/// A rehearsal mends what follows from other rows, as a write does, and leaves the file as it is.
#[test]
fn a_rehearsal_goes_past_damage_that_a_write_mends() {
    for table in ["event", "family", "slot", "text_doc"] {
        let mut world = World::new();
        for at in 0..3 {
            let said = format!("build number {at} of the gateway has failed on host h{at}");
            let mut draft = text(&said).kind(Kind::Message).key(format!("k{at}")).tag("all");
            draft.fields.author_kind = Some(AuthorKind::Human).into();
            world.add(draft);
        }
        world.db.clone().close().unwrap();
        let rows = tables(&world.path());
        for (key, value) in &rows[table] {
            let mut value = value.clone();
            let middle = value.len() / 2;
            if let Some(byte) = value.get_mut(middle) {
                *byte ^= 16;
            }
            overwrite(&world.path(), table, key, &value);
        }
        world.open_again(|builder| builder);
        let plan = world.ns.forget_plan(Forget::tag("all")).unwrap_or_else(|why| panic!("{table}: {why}"));
        assert_eq!(plan.live, 3, "{table}");
        assert_eq!(world.ns.list(&PageRequest::default()).unwrap().items.len(), 3, "{table}");
        assert_eq!(world.ns.forget(Forget::tag("all")).unwrap().forgotten, 3, "{table}");
    }
}

/// A memory that was merged into another and can't be read keeps nobody from the other.
#[test]
fn a_damaged_loser_blocks_no_change_of_the_memory_that_took_it_in() {
    let changes: [(&str, Change); 6] = [
        ("a field", |world| world.ns.update("p0", Patch::new().importance(0.7)).map(drop)),
        ("a text", |world| world.ns.update("p0", Patch::new().text("gateway is new")).map(drop)),
        ("a text through another key", |world| world.ns.add(text("gateway is new").key("p2")).map(drop)),
        ("a rehearsal", |world| world.ns.forget_plan(Forget::names(["p0"])).map(drop)),
        ("the writer", |world| world.ns.forget(Forget::names(["p0"])).map(drop)),
        ("another key", |world| world.ns.forget(Forget::names(["p2"])).map(drop)),
    ];
    for (what, change) in changes {
        let (mut world, [_, first, _]) = collapsed();
        damage(&mut world, "memory", first, "301");
        change(&world).unwrap_or_else(|why| panic!("{what}: {why}"));
        let gone = world.forget(&[&first.to_string()]);
        assert!(gone.tombstones.contains(&first), "{what}: {gone:?}");
        world.check();
    }
}

/// A writer whose row can't be read keeps no text alive that another wrote, and the next of the others tells its own.
#[test]
fn a_damaged_writer_keeps_no_forgotten_text() {
    for keys in [&["p0"][..], &["p0", "p1"], &["p1", "p0"]] {
        let (mut world, [row, _, _]) = collapsed();
        damage(&mut world, "holder", row, "301");
        let gone = world.forget(keys);
        assert_eq!(gone.forgotten + gone.detached, keys.len() as u64, "{keys:?}: {gone:?}");
        assert!(found(&world, "300").is_empty(), "{keys:?}: {:?}", found(&world, "300"));
        assert!(matches!(world.get("p0").unwrap(), Got::Tombstone(_)), "{keys:?}");
        match keys.contains(&"p1") {
            true => assert_eq!(world.row("p2").row_text, "gateway queue holds 302 jobs", "{keys:?}"),
            // The writer that can't be read is still there.
            false => assert_eq!(world.get("p2").unwrap_err().kind(), ErrorKind::Corrupted),
        }
        world.forget(&["p1", "p2"]);
        assert!(world.live().is_empty(), "{keys:?}");
        world.check();
    }
}

/// What is left of the row from which a writer came is no more than its text, if that row can't be read.
#[test]
fn a_damaged_loser_keeps_no_forgotten_text() {
    for table in ["vitals", "memory"] {
        let (mut world, [_, first, _]) = collapsed();
        damage(&mut world, table, first, if table == "memory" { "301" } else { "" });
        let gone = world.forget(&["p0"]);
        assert_eq!((gone.forgotten, gone.detached), (1, 0), "{table}");
        assert!(found(&world, "300").is_empty(), "{table}");
        assert_eq!(world.row("p2").text, "gateway queue holds 302 jobs", "{table}");
        world.forget(&["p1", "p2"]);
        assert!(world.live().is_empty(), "{table}");
        world.check();
    }
}

/// A search of the past counts what waits in limbo and can't be read.
#[test]
fn a_damaged_loser_is_told_of_by_a_search_of_the_past() {
    let (mut world, [_, first, _]) = collapsed();
    let before = world.now().minus("30m".parse().unwrap());
    damage(&mut world, "memory", first, "301");
    let asked = Query::text("gateway").as_of(before);
    let told = world.ns.search(asked).unwrap();
    let texts: Vec<&str> = told.hits.iter().map(|hit| hit.text.as_str()).collect();
    assert_eq!((texts.len(), told.plan.damaged), (2, 1), "{texts:?}");
    world.forget(&["p0", "p1", "p2"]);
    world.check();
}

/// Keys that a supersession led to a text have not written it, whether they can be read or not.
#[test]
fn a_text_goes_past_a_damaged_key_that_was_led_to_it() {
    let mut world = World::new();
    let [one, two] =
        ["ash in the grate", "elm at the gate"].map(|say| world.add(text(say).key(&say[..3])).id);
    let new = world.add(text("birch by the door").key("bir")).id;
    world.supersede(one, new, SupersedeMode::Replaced, None).unwrap();
    world.supersede(two, new, SupersedeMode::Replaced, None).unwrap();
    damage(&mut world, "holder", new, "ash");
    let gone = world.forget(&["bir"]);
    assert_eq!((gone.forgotten, gone.detached, gone.tombstones.as_slice()), (1, 0, [new].as_slice()));
    assert!(found(&world, "birch").is_empty());
    assert_eq!(world.tombstone("elm").id, new);
    world.check();
}

/// Keys that a supersession led to a text have not written it.
#[test]
fn a_damaged_text_goes_with_its_only_writer() {
    let mut world = World::new();
    let old = world.add(text("ash in the grate").key("one")).id;
    let new = world.add(text("birch by the door").key("two")).id;
    world.supersede(old, new, SupersedeMode::Replaced, None).unwrap();
    damage(&mut world, "memory", new, "birch");
    assert_eq!(world.get("one").unwrap_err().kind(), ErrorKind::Corrupted);
    let gone = world.forget(&["two"]);
    assert_eq!((gone.forgotten, gone.detached, gone.tombstones.as_slice()), (1, 0, [new].as_slice()));
    for key in ["one", "two"] {
        assert_eq!(world.tombstone(key).id, new, "{key}");
    }
    world.check();
}

/// A copy names the key of a writer that it does not have, and a finding names the key of its writer.
#[test]
fn a_copy_names_the_writer_that_it_does_not_have() {
    for compacts in [false, true] {
        let (mut world, [stays, ..]) = collapsed();
        damage(&mut world, "holder", stays, "301");
        let named = |rows: &[oubliette::report::Finding]| {
            rows.iter().any(|row| row.table == "holder" && row.name.as_deref() == Some("p1"))
        };
        let check = world.db.check(&CheckOptions::default()).unwrap();
        assert!(named(&check.findings), "{:?}", check.findings);
        let copy = world.path().with_extension("copy");
        let report = if compacts { world.db.compact() } else { world.db.backup(&copy) }.unwrap();
        assert!(named(&report.damaged) && report.lost.is_empty() && report.whole, "{report:?}");
        let keys: Vec<&str> = report.lost_keys.iter().map(|lost| lost.key.as_str()).collect();
        assert_eq!(keys, ["p1"]);
        assert_eq!(report.lost_keys[0].namespace, *world.ns.name());
        world.forget(&["p1", "p2", "p0"]);
        world.check();
    }
}

/// A finding of a memory that somebody wrote without a key names the key of another writer.
#[test]
fn a_finding_names_the_key_of_a_memory() {
    let mut world = World::new();
    let id = world.add(text("the harbour closes at ten").key("harbour")).id;
    assert_eq!(world.add(text("the harbour closes at ten")).id, id);
    damage(&mut world, "memory", id, "harbour");
    let check = world.db.check(&CheckOptions::default()).unwrap();
    let names: Vec<_> = check.findings.iter().map(|row| row.name.as_deref()).collect();
    assert!(!names.is_empty() && names.iter().all(|name| *name == Some("harbour")), "{:?}", check.findings);
    assert_eq!(world.ns.history("harbour").unwrap().damaged, [id]);
    world.forget_id(id);
    world.check();
}

/// A record gets another key although some of it can't be read, and nothing answers to the old key any more.
#[test]
fn a_record_is_renamed_past_a_damaged_version() {
    for (table, word) in [("memory", "old"), ("holder", ""), ("vitals", "")] {
        let mut world = World::new();
        let old = world.add(text("the old text").key("k")).id;
        world.advance("1h");
        let new = world.add(text("the new text").key("k")).id;
        damage(&mut world, table, old, word);
        let renamed = world.ns.rename_key("k", "kk").unwrap();
        assert_eq!((renamed.id, renamed.rows), (new, 2), "{table}");
        assert_eq!(world.row("kk").text, "the new text");
        assert!(world.ns.get("k").unwrap().is_none(), "{table}");
        assert_eq!(world.ns.history("kk").unwrap().damaged, [old], "{table}");
        let report = world.db.compact().unwrap();
        assert!(report.whole, "{table}: {report:?}");
        assert_eq!(world.row("kk").text, "the new text");
        world.check();
    }
}

/// A later version that can't be read stops neither a forget of what it replaced nor the undo of a pass over others (MODEL-33).
#[test]
fn a_damaged_later_version_stops_nothing_that_came_before() {
    for (table, word) in [("vitals", ""), ("memory", "Bonn")] {
        let mut world = World::new();
        world.add(text("Ann lives in Rome").key("ann"));
        world.add(text("Ann lives in Oslo").key("ann").tag("x"));
        let mut newest = text("Ann lives in Bonn").key("ann");
        newest.tags = Some(Vec::new());
        let newest = world.add(newest).id;
        let other = world.add(text("a secret").tag("x")).id;
        damage(&mut world, table, newest, word);
        assert_eq!(world.forget_tag("x").forgotten, 2, "{table}");
        assert!(!world.is_live(other), "{table}");
        world.forget_id(newest);
        world.check();
    }
    for (table, word) in [("vitals", ""), ("memory", "new")] {
        let (mut world, [first, second, third]) = collapsed();
        let run = world.ns.runs(None, 1).unwrap().items[0].id;
        world.advance("1h");
        let newer = world.add(text("gateway is new").key("p1").kind(Kind::Profile)).id;
        damage(&mut world, table, newer, word);
        let undone = world.ns.undo(run).unwrap();
        assert!(world.is_live(first) && world.is_live(third), "{table}: {undone:?}");
        assert_eq!(undone.restored, 2, "{table} {second}: {undone:?}");
        world.forget_id(newer);
        world.check();
    }
}

/// The only writer of a memory is no copy of the writer of the version before, although it can't be read.
#[test]
fn a_version_whose_writer_is_damaged_stays_beside_one_that_is_restored() {
    let mut world = World::new();
    let first = world.add(text("Ann lives in Rome").key("ann")).id;
    let second = world.add(text("Ann lives in Oslo").key("ann").tag("zebra")).id;
    damage(&mut world, "holder", second, "zebra");
    world.ns.restore(first.to_string()).unwrap();
    assert!(world.is_live(first));
    assert_eq!(found(&world, "Oslo"), ["Ann lives in Oslo"]);
    world.forget_id(second);
    world.check();
}

/// A row that can't be read, of somebody who is not meant, keeps no memory from being forgotten.
#[test]
fn a_damaged_row_beside_a_memory_keeps_nobody_from_forgetting() {
    let forgets: [fn() -> Forget; 2] = [|| Forget::names(["lab"]), || Forget::tag("x")];
    for forget in forgets {
        // Another writer of the memory into which the writes of a run were merged.
        let mut world = World::new();
        let office = world.add(text("the office is in Oslo").key("office")).id;
        world.add(text("the lab is in Bergen").key("lab"));
        let apart = WriteOptions { no_dedup: true, ..WriteOptions::default() };
        let same = text("the office is in Oslo");
        world.ns.add_all(vec![same.clone().key("lab").tag("x"), same.key("third key")], &apart).unwrap();
        world.db.maintain_with(&MaintainOptions::live().passes([Pass::NearDuplicates])).unwrap();
        damage(&mut world, "holder", office, "third key");
        world.ns.forget(forget()).unwrap();
        let got = world.get("lab");
        assert!(!matches!(&got, Ok(Got::Memory(row)) if row.text.contains("Oslo")), "{got:?}");
        world.forget_id(office);
        world.check();

        // What counts the uses of a summary of the memory, or of the memory itself.
        for of_summary in [true, false] {
            let mut world = World::new();
            let end = Expiry::At(world.ahead("9h"));
            let source = text("a secret").key("lab").tag("x").expiry(end).retrieval_count(3);
            let source = world.add(source).id;
            world.add(text("a secret").key("other"));
            let mut summary = text("there are secrets").kind(Kind::Summary).retrieval_count(3);
            summary.sources = Some(vec![source]);
            let summary = world.add(summary).id;
            let victim = if of_summary { summary } else { source };
            damage(&mut world, "access", victim, "");
            world.ns.forget(forget()).unwrap();
            world.forget_id(victim);
            world.check();
        }

        // What came to the memory when the memory superseded it.
        let mut world = World::new();
        let old = world.add(text("the lab is in Rome")).id;
        let new = world.add(text("the lab is in Oslo").key("lab").tag("x")).id;
        world.supersede(old, new, SupersedeMode::Replaced, None).unwrap();
        damage(&mut world, "vitals", old, "");
        world.ns.forget(forget()).unwrap();
        assert!(matches!(world.get("lab"), Ok(Got::Tombstone(_))));
        world.forget_id(old);
        world.check();
    }
}

/// What a summary stands for is told past a source that can't be read.
#[test]
fn a_summary_tells_of_its_sources_past_a_damaged_one() {
    let mut world = World::new();
    let sources = ["Ann likes tea", "Bob likes pie"].map(|what| world.add(text(what)).id);
    let mut summary = text("what they like").kind(Kind::Summary);
    summary.sources = Some(sources.to_vec());
    let summary = world.add(summary).id;
    damage(&mut world, "vitals", sources[0], "");
    let told = world.ns.expand(summary).unwrap();
    assert_eq!(told.sources, sources.map(|id| (id, None)));
    assert_eq!(Vec::from_iter(told.damaged), [sources[0]]);
    world.forget_id(sources[0]);
    world.check();
}

/// MODEL-30: the message of a writer who leaves goes, also where another writer of the memory can't be read.
#[test]
fn a_message_goes_with_its_writer_beside_a_damaged_one() {
    let mut world = World::new();
    let keys = ["first-key", "second-key", "third-key"];
    let ids = keys.map(|key| {
        let mut draft = text("the build is red").kind(Kind::Message).key(key).tag(key);
        draft.fields.author_kind = Some(AuthorKind::Human).into();
        draft.fields.author_id = Some(format!("author of {key}")).into();
        world.add(draft).id
    });
    assert_eq!(ids, [ids[0]; 3]);
    damage(&mut world, "holder", ids[0], "second-key");
    let told = |world: &World| -> Vec<_> {
        let events = world.ns.events(&EventQuery::default()).unwrap().items;
        events.into_iter().filter_map(|event| event.key).collect()
    };
    assert_eq!(told(&world), keys);
    world.forget_tag("first-key");
    assert_eq!(told(&world), keys[1..]);
    world.forget_id(ids[0]);
    assert!(told(&world).is_empty());
}

/// MODEL-30: the messages of a writer that can't be read go with it, by the key under which they were said.
#[test]
fn the_messages_of_a_damaged_writer_go_with_it() {
    let mut world = World::new();
    let mut ids = Vec::new();
    for key in ["k0", "k1"] {
        let mut draft = text("the cat sat on the mat").key(key).tag(format!("by-{key}")).kind(Kind::Message);
        draft.fields.author_kind = Some(AuthorKind::Human).into();
        draft.fields.author_id = Some(format!("author-{key}")).into();
        ids.push(world.add(draft).id);
    }
    assert_eq!(ids[0], ids[1], "they have one memory");
    damage(&mut world, "holder", ids[0], "by-k1");
    let gone = world.ns.forget(Forget::tag("by-k1")).unwrap();
    assert_eq!((gone.forgotten, gone.detached), (0, 1));
    let events = world.ns.events(&EventQuery::default()).unwrap().items;
    let told: Vec<_> = events.into_iter().filter(|event| event.payload.is_some()).collect();
    assert_eq!(told.iter().map(|event| event.key.as_deref()).collect::<Vec<_>>(), [Some("k0")]);
    world.forget(&["k0"]);
    world.check();
}
