//! A pass goes past what can't be read: to the other memories, and to the other namespaces.

use super::store::{Rows, change, damaged, open, overwrite, store, tables};
use crate::world::{World, near, text};
use oubliette::gc::{Extractive, GcOptions, GcRunOptions};
use oubliette::maintain::{MaintainOptions, Pass};
use oubliette::memory::{AuthorKind, Field};
use oubliette::{Database, Error, ErrorKind, MemoryId, PageRequest, Patch, Span, WriteOptions};

/// Turns a bit in the rows of a table whose key begins so. Gives them as they were.
fn damage(world: &mut World, table: &str, prefix: &[u8]) -> Rows {
    world.db.clone().close().unwrap();
    let rows = tables(&world.path());
    let there: Rows = rows[table].iter().filter(|(key, _)| key.starts_with(prefix)).cloned().collect();
    assert!(!there.is_empty(), "{table} has no such row");
    for (key, value) in &there {
        let (mut value, middle) = (value.clone(), value.len() / 2);
        value[middle] ^= 1;
        overwrite(&world.path(), table, key, &value);
    }
    world.reopen();
    there
}

/// Three texts near to each other in each of two namespaces.
fn two() -> (World, Vec<MemoryId>) {
    let world = World::new();
    let both = ["aaa", "bbb"].map(|name| world.db.namespace(name).unwrap());
    let mut first = Vec::new();
    for team in &both {
        for (at, name) in ["a tall tree", "a high tree", "a big tree"].into_iter().enumerate() {
            first.push(team.add(near(name, at as f64)).unwrap().id);
        }
    }
    (world, first)
}

fn clusters(db: &Database) -> oubliette::Result<u64> {
    let options = MaintainOptions::live().passes([Pass::Cluster]);
    db.maintain_with(&options).map(|report| report.passes[0].changed)
}

/// A neighbour that can't be read is near to nobody (DEDUP-47).
#[test]
fn clusters_are_found_past_a_damaged_neighbour() {
    let (mut world, ids) = two();
    damage(&mut world, "vitals", &[&[0, 0, 0, 1], ids[1].as_bytes().as_slice()].concat());
    let changed = clusters(&world.db).unwrap();
    assert_eq!(changed, 5, "two of the first namespace, three of the second");
    world.db.namespace("aaa").unwrap().forget(ids[1].to_string()).unwrap();
}

/// A namespace in which a pass fails keeps no other from it, nor from the passes that follow, and the failure is told (MODEL-3).
#[test]
fn a_pass_goes_on_to_the_next_namespace() {
    let mut world = World::new();
    let apart = WriteOptions { no_dedup: true, ..WriteOptions::default() };
    for name in ["aaa", "bbb"] {
        let team = world.db.namespace(name).unwrap();
        team.add_all(vec![text("equal text"), text("equal text")], &apart).unwrap();
        let unsure = team.add(text("unsure")).unwrap().id;
        let mut patch = Patch::default();
        patch.fields.confidence = Field::Null;
        team.update(unsure, patch).unwrap();
    }
    world.db.clone().close().unwrap();
    let bad = [0, 0, 0, 1, 255];
    change(&world.path(), "by_fingerprint", |rows| drop(rows.insert(bad.as_slice(), [].as_slice()).unwrap()));
    world.reopen();
    let options = MaintainOptions::live().passes([Pass::NearDuplicates, Pass::Backfill]);
    let report = world.db.maintain_with(&options).unwrap();
    let failed: Vec<_> = report.failed.iter().map(|failed| failed.pass).collect();
    assert_eq!(failed, [Some(Pass::NearDuplicates)], "{report:?}");
    let told = &report.failed[0];
    assert_eq!((told.kind, told.done.as_ref().map(|done| done.tombstoned)), (ErrorKind::Corrupted, Some(1)));
    assert!(told.hint.contains("check"), "{told:?}");
    let left = |name: &str| world.db.namespace(name).unwrap().list(&PageRequest::default()).unwrap().items;
    assert_eq!((left("aaa").len(), left("bbb").len()), (3, 2));
    assert!([left("aaa"), left("bbb")].iter().flatten().all(|memory| memory.confidence.is_some()));
    // Where no other pass was asked for, the error tells what was done before.
    world.db.namespace("bbb").unwrap().add_all(vec![text("equal text")], &apart).unwrap();
    let why = world.db.maintain_with(&MaintainOptions::live().passes([Pass::NearDuplicates])).unwrap_err();
    assert_eq!(why.kind(), ErrorKind::Corrupted, "{why}");
    assert!(why.hint().starts_with("run `check`"), "the file is whole: {}", why.hint());
    let Error::PartlyDone { run, .. } = why else { panic!("{why}") };
    assert_eq!(world.db.namespace("bbb").unwrap().undo(run.parse().unwrap()).unwrap().restored, 1);
    let told = world.db.maintain_with(&MaintainOptions::default().passes([Pass::NearDuplicates]));
    assert!(matches!(told, Err(Error::Corrupted { .. })), "a dry run has done nothing");
    world.db.clone().close().unwrap();
    change(&world.path(), "by_fingerprint", |rows| drop(rows.remove(bad.as_slice()).unwrap()));
    world.reopen();
}

/// A run that can't be read keeps nothing from growing old (MODEL-52).
#[test]
fn retention_goes_past_a_damaged_run() {
    let mut world = World::new();
    let run = world.start_import();
    world.import(run, vec![text("a note").key("note")]);
    world.import(run, vec![super::store::message(AuthorKind::Human, "who broke the build?")]);
    let whole = damage(&mut world, "run", &[0, 0, 0, 1]);
    world.advance("400d");
    let report = world.db.maintain_with(&MaintainOptions::live().passes([Pass::Retention])).unwrap();
    assert!(report.passes[0].changed > 1, "{report:?}");
    world.db.clone().close().unwrap();
    whole.iter().for_each(|(key, value)| overwrite(&world.path(), "run", key, value));
    world.reopen();
}

/// One damaged group of a plan kept every plan of the namespace from being made and listed.
#[test]
fn plans_are_made_and_listed_past_a_damaged_group() {
    let store = store();
    overwrite_group(&store.file);
    let (db, _) = open(&store.file, store.now);
    let team = db.namespace("default").unwrap();
    let listed = team.gc_plans().unwrap();
    let there: Vec<u32> = listed.iter().map(|plan| plan.groups.len() as u32).collect();
    assert_eq!((listed.len(), there[0]), (1, 0), "{listed:?}");
    team.gc_plan(&GcOptions { age_min: Some(Span::ZERO), ..GcOptions::default() }).unwrap();
    team.gc_run(&Extractive::default(), &GcRunOptions::default(), |_| ()).unwrap();
    db.close().unwrap();
}

fn overwrite_group(file: &std::path::Path) {
    let rows = &tables(file)["gc_group"];
    assert_eq!(rows.len(), 1);
    overwrite(file, "gc_group", &rows[0].0, &damaged("a bit", 0, rows));
}
