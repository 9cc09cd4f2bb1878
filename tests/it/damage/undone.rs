//! Whatever value of a store is damaged, a run is taken back as far as it can be, and says what it could not take back.

use super::store::{WAYS, damaged, message, open, overwrite, tables};
use crate::world::{World, text};
use oubliette::maintain::{MaintainOptions, Pass, RunId};
use oubliette::memory::{AuthorKind, Link};
use oubliette::{Draft, Kind, MemoryId, Time};
use std::path::{Path, PathBuf};

/// Groups of profiles that a pass has united, the messages of an aggregate, and links between them.
struct Before {
    _folder: tempfile::TempDir,
    file: PathBuf,
    now: Time,
    import: RunId,
    collapse: RunId,
    /// Each group; the first took in the others.
    groups: Vec<Vec<MemoryId>>,
}

fn profile(group: &str, at: usize) -> Draft {
    let draft = text(&format!("{group} queue holds 30{at} jobs")).key(format!("{group}{at}"));
    draft.kind(Kind::Profile).tag(format!("{group}-{at}"))
}

fn before() -> Before {
    let world = World::new();
    let import = world.start_import();
    let mut groups = vec![Vec::new(), Vec::new()];
    for at in 0..3 {
        groups[0].push(world.import(import, vec![profile("zebra", at)])[0].id);
        groups[1].push(world.add(profile("walrus", at)).id);
    }
    let mut linked = text("what the zebra queue led to").key("linked");
    linked.links = Some(vec![Link { to: groups[0][1], relation: "after".to_owned() }]);
    linked.sources = Some(vec![groups[0][2]]);
    world.import(import, vec![linked]);
    for _ in 0..3 {
        world.import(import, vec![message(AuthorKind::Bot, "nightly build failed")]);
    }
    world.import(import, vec![message(AuthorKind::Human, "who broke the build?")]);
    world.advance("1h");
    let done = world.db.maintain_with(&MaintainOptions::live().passes([Pass::Collapse])).unwrap();
    assert_eq!(done.passes[0].changed, 4, "{done:?}");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("store.oub");
    world.db.clone().close().unwrap();
    std::fs::copy(world.path(), &file).unwrap();
    Before { _folder: folder, file, now: world.now(), import, collapse: done.run.unwrap(), groups }
}

/// What is wrong after both runs were taken back from a store with a damaged value, each from a copy.
fn wrong(before: &Before, path: &Path, victim: Option<MemoryId>, damage: impl Fn()) -> Vec<String> {
    let mut wrong = Vec::new();
    std::fs::copy(&before.file, path).unwrap();
    damage();
    let (db, _) = open(path, before.now);
    let ns = db.namespace("default").unwrap();
    match ns.undo(before.collapse) {
        Err(why) => wrong.push(format!("undo of the pass: {why}")),
        Ok(undone) => {
            for group in &before.groups {
                for id in group.iter().skip(1).filter(|id| Some(**id) != victim) {
                    let back =
                        ns.get(*id).ok().flatten().is_some_and(|memory| memory.superseded_by().is_none());
                    if !back {
                        wrong.push(format!("{id} is not back: {undone:?}"));
                    }
                }
            }
            // A damaged copy of a writer that went back is gone with it, and its memory is whole again.
            let is_damaged = |id: &MemoryId| ns.look_up(id.to_string(), true).is_err();
            if let Some(id) = victim.filter(|id| before.groups.iter().flatten().any(|one| one == id))
                && is_damaged(&id)
                && !undone.lost.iter().any(|what| what.contains(&id.to_string()))
            {
                wrong.push(format!("the damaged memory is not named: {undone:?}"));
            }
        }
    }
    db.close().unwrap();
    std::fs::copy(&before.file, path).unwrap();
    damage();
    let (db, _) = open(path, before.now);
    let ns = db.namespace("default").unwrap();
    if let Err(why) = ns.undo(before.import) {
        wrong.push(format!("undo of the import: {why}"));
    }
    db.close().unwrap();
    wrong
}

/// Every value of every memory, one at a time (MODEL-33).
#[test]
fn a_run_is_taken_back_past_a_damaged_value() {
    let before = before();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("memory.oub");
    std::fs::copy(&before.file, &path).unwrap();
    let (mut cases, mut failures) = (0, Vec::new());
    for (table, rows) in tables(&path) {
        let of_memories =
            ["vitals", "memory", "holder", "limbo", "tombstone", "access", "event", "aggregate", "family"];
        if !of_memories.contains(&&*table) {
            continue;
        }
        for (at, (key, _)) in rows.iter().enumerate() {
            let own = ["vitals", "memory", "holder", "limbo"].contains(&&*table);
            let victim = own.then(|| MemoryId::from_bytes(key[4..20].try_into().unwrap()));
            let value = damaged(WAYS[0], at, &rows);
            cases += 1;
            let found = wrong(&before, &path, victim, || overwrite(&path, &table, key, &value));
            failures.extend(found.into_iter().map(|what| format!("{table} {at} {victim:?}: {what}")));
        }
    }
    assert!(cases > 30, "{cases}");
    assert!(failures.is_empty(), "{} of {cases}:\n{}", failures.len(), failures.join("\n"));
}
