//! What comes back by undo, by restore and by forgetting what came later: never an old fact beside the newest
//! (LIFE-7, LIFE-9, MODEL-33, MODEL-67).

use std::collections::BTreeSet;
#[cfg(all(unix, feature = "faults"))]
use std::io::Cursor;

use crate::world::{World, axis, holders, ms, text};
#[cfg(all(unix, feature = "faults"))]
use oubliette::Durability;
#[cfg(all(unix, feature = "faults"))]
use oubliette::exchange::{Export, VectorsTo};
use oubliette::maintain::Undone;
use oubliette::maintain::{MaintainOptions, Pass, RunId};
use oubliette::memory::{Got, Link, Significance, SupersedeMode, Tier};
use oubliette::policy::Syntax;
use oubliette::{Draft, Filter, Forget, Kind, MemoryId, Mode, Query, Scope, State, WriteOptions};

/// A line of a status report: those with other numbers collapse into one.
fn status(apps: u32) -> Draft {
    text(&format!("Gateway status: {apps} apps pending")).kind(Kind::Profile)
}

fn collapse(world: &World) -> RunId {
    world.db.maintain_with(&MaintainOptions::live().passes([Pass::Collapse])).unwrap().run.unwrap()
}

fn superseder(world: &World, id: MemoryId) -> Option<MemoryId> {
    world.row(id).superseded.map(|superseded| superseded.by)
}

/// A7: the user wrote v1, an import v2, the user v3. Undoing the import, or forgetting its tag, made v1 live beside v3.
#[test]
fn what_an_undone_import_had_superseded_is_led_on_to_the_newest() {
    let tag = "import:x:2026-01-01";
    for mode in [SupersedeMode::Replaced, SupersedeMode::Correction] {
        for by_tag in [false, true] {
            let world = World::new();
            let home = |town: &str| {
                let mut draft = text(&format!("Ann lives in {town}")).key("ann:home");
                draft.supersede_mode = Some(mode);
                draft.tags = Some(Vec::new());
                draft
            };
            let v1 = world.add(home("Ghent")).id;
            world.advance("1h");
            let run = world.start_import();
            let v2 = world.import(run, vec![home("Bruges").tag(tag)])[0].id;
            world.advance("1h");
            let changed = world.now();
            let v3 = world.add(home("Lyon")).id;
            world.advance("1h");
            if by_tag {
                assert_eq!((world.forget_tag(tag).forgotten, world.live()), (1, vec![v3]));
            } else {
                let undone = world.ns.undo(run).unwrap();
                assert_eq!((undone.removed, undone.restored, world.live()), (1, 0, vec![v3]));
            }
            assert_eq!(superseder(&world, v1), Some(v3));
            assert_eq!((world.row("ann:home").id, world.unknown(v2)), (v3, false));
            let times = world.row(v1);
            assert_eq!(times.superseded.unwrap().at, changed, "it held until v3 came");
            assert_eq!(times.valid_to, (mode == SupersedeMode::Replaced).then_some(changed));
            world.ns.restore(v1.to_string()).unwrap();
            assert!(world.is_live(v1), "who asks for it by its id gets it");
        }
    }
}

/// The same where rows were superseded by name.
#[test]
fn a_named_chain_stays_whole_without_its_middle() {
    let world = World::new();
    let a = world.add(text("a").key("ka").tag("ta")).id;
    let run = world.start_import();
    let b = world.import(run, vec![text("b")])[0].id;
    let c = world.add(text("c").key("kc")).id;
    world.supersede(a, b, SupersedeMode::Correction, None).unwrap();
    world.supersede(b, c, SupersedeMode::Replaced, None).unwrap();
    world.ns.undo(run).unwrap();
    assert_eq!(world.live(), [c]);
    world.ns.restore(a.to_string()).unwrap();
    assert_eq!((world.row(a).state, world.row(a).valid_to), (State::Live, None));
}

/// Both of two imports are taken back, in either order: the first version is live again.
#[test]
fn imports_are_taken_back_in_any_order() {
    for first in [0, 1] {
        let world = World::new();
        let v1 = world.add(text("v1").key("k")).id;
        let runs = [(); 2].map(|()| world.start_import());
        world.import(runs[0], vec![text("v2").key("k")]);
        world.import(runs[1], vec![text("v3").key("k")]);
        world.ns.undo(runs[first]).unwrap();
        assert_ne!(world.live(), [v1]);
        world.ns.undo(runs[1 - first]).unwrap();
        assert_eq!((world.live(), world.row("k").id), (vec![v1], v1));
    }
}

/// V-316: a row that returns does not outlive what its writer said since (MODEL-67), by undo or by restore.
#[test]
fn v316_an_old_text_does_not_come_back_beside_the_new_one() {
    for by_undo in [true, false] {
        let world = World::new();
        let a = world.add(status(4).key("a")).id;
        let b = world.add(status(7).key("b")).id;
        let run = collapse(&world);
        let new = world.add(status(9).key("b")).id;
        assert_eq!(world.live(), [a, new]);
        if by_undo {
            let undone = world.ns.undo(run).unwrap();
            assert_eq!((undone.restored, undone.lost.len()), (0, 1), "{undone:?}");
            let names = |what: &str| undone.lost[0].contains(what);
            assert!(names("key b ") && names(&b.to_string()) && names(&new.to_string()), "{undone:?}");
            let again = world.ns.undo(run).unwrap();
            assert_eq!((again.restored, again.lost.len()), (0, 0), "twice is a no-op (MODEL-33)");
        } else {
            let report = world.ns.restore(b.to_string()).unwrap();
            assert_eq!((report.keys_taken, report.superseded_by), (vec!["b".to_owned()], Some(new)));
        }
        let times = world.row(b).superseded.unwrap();
        assert_eq!((times.by, times.mode), (new, SupersedeMode::Correction));
        assert_eq!((world.row("b").id, world.live()), (new, vec![a, new]));
        assert_eq!(world.row(a).keys, ["a"]);
        assert_eq!(world.row(a).reinforcement_count, 1);
        // Its key reaches the old text too.
        world.forget(&["b"]);
        assert_eq!((world.unknown(b), world.live()), (false, vec![a]));
        assert!(world.tombstone(b).key_hashes.len() == 1);
    }
}

/// MODEL-67: where only some of its writers have said something else, the row returns live with the rest.
#[test]
fn writers_that_said_something_else_leave_the_row_that_returns() {
    let world = World::new();
    let mut draft = status(4).key("a");
    draft.fields.significance = Some(oubliette::memory::Significance::Core);
    let a = world.add(draft).id;
    let b = world.add(status(7).key("b").tag("of b")).id;
    assert_eq!(world.add(status(7).key("c").tag("of c")).id, b);
    let run = collapse(&world);
    assert_eq!(world.live(), [a]);
    let new = world.add(status(9).key("b")).id;
    let undone = world.ns.undo(run).unwrap();
    assert_eq!((undone.restored, undone.lost.len()), (1, 1), "{undone:?}");
    assert!(undone.lost[0].contains("key b ") && undone.lost[0].contains(&b.to_string()));
    assert_eq!(world.live(), [a, b, new]);
    assert_eq!(holders(&world.row(b)), [(Some("c"), 1, 1, vec!["of c"])]);
    assert_eq!((world.row(b).tags, world.row(b).reinforcement_count), (vec!["of c".to_owned()], 1));
    assert_eq!((world.row("b").id, world.row("c").id), (new, b));
}

/// A pass that undoes its own merge out of order: what was only carried along goes back with its key.
#[test]
fn runs_that_carried_a_key_along_are_taken_back_in_any_order() {
    for first in [0, 1] {
        let world = World::new();
        let b = world.add(status(7).key("b")).id;
        let a = world.add(status(4).key("a")).id;
        let one = collapse(&world);
        let mut core = status(3).key("c");
        core.fields.significance = Some(oubliette::memory::Significance::Core);
        let c = world.add(core).id;
        let two = collapse(&world);
        assert_eq!(world.live(), [c]);
        let runs = [one, two];
        world.ns.undo(runs[first]).unwrap();
        world.check();
        world.ns.undo(runs[1 - first]).unwrap();
        assert_eq!(world.live(), [b, a, c]);
        for (key, id) in [("a", a), ("b", b), ("c", c)] {
            assert_eq!((world.row(key).id, world.row(id).keys), (id, vec![key.to_owned()]));
        }
    }
}

fn embedder(name: &str, dim: usize) -> impl oubliette::embed::Embedder + 'static {
    let vector = move |text: &&str| (0..dim).map(|at| ((text.len() + at) % 7) as f32 + 1.0).collect();
    let embed = move |texts: &[&str]| Ok(texts.iter().map(vector).collect::<Vec<Vec<f32>>>());
    oubliette::embed::embedder_fn(name, dim, embed).unwrap()
}

/// A14: a row that came back from limbo after the model was changed kept its vector of the old space, which no search
/// looks at.
#[test]
fn a_row_that_returns_after_another_model_came_is_found_by_vector() {
    for at_hand in [true, false] {
        let mut world = World::new();
        world.db.use_embedder(embedder("model-one", 4)).unwrap();
        let ids = [4, 7].map(|apps| world.add(status(apps)).id);
        let run = collapse(&world);
        world.db.reembed(embedder("model-two", 8)).unwrap();
        if !at_hand {
            world.reopen();
        }
        assert_eq!(world.ns.undo(run).unwrap().restored, 1);
        world.check();
        if !at_hand {
            assert_eq!(world.db.stats().unwrap().pending, 1, "it waits for an embedder");
            world.db.use_embedder(embedder("model-two", 8)).unwrap();
            world.db.maintain_with(&MaintainOptions::live().passes([Pass::Embed])).unwrap();
        }
        let query = Query { mode: Mode::Vector, ..Query::text("gateway status") };
        let found = world.ns.search(&query).unwrap();
        let found: BTreeSet<_> = found.hits.iter().map(|hit| hit.id).collect();
        assert_eq!((found, world.db.stats().unwrap().pending), (BTreeSet::from(ids), 0));
    }
}

/// A16: without limbo the links of others ended with a merged row, and each journal row named all those before it.
#[test]
fn a_merge_without_limbo_leads_links_on_and_names_each_row_once() {
    for horizon in ["7d", "0s"] {
        let world = World::new();
        let policy = format!("[undo]\nhorizon = \"{horizon}\"\n");
        world.db.set_policy(&policy, oubliette::policy::Syntax::Toml).unwrap();
        let ids: Vec<_> = (0..20).map(|apps| world.add(status(apps)).id).collect();
        let link = |to| {
            let mut draft = text(&format!("see {to}"));
            draft.links = Some(vec![Link { to, relation: "about".to_owned() }]);
            world.add(draft).id
        };
        let links: Vec<_> = ids.iter().map(|id| link(*id)).collect();
        collapse(&world);
        let canonical = world.live().into_iter().find(|id| ids.contains(id)).unwrap();
        for id in &links {
            assert_eq!(world.row(id).links.iter().map(|link| link.to).collect::<Vec<_>>(), [canonical]);
        }
        let named: usize = ids
            .iter()
            .flat_map(|id| world.ns.explain(id.to_string()).unwrap().events)
            .filter(|row| row.op != oubliette::report::Op::Merge)
            .map(|row| row.evidence.members.len())
            .sum();
        assert!(named <= 3 * ids.len(), "{named} names of rows with a horizon of {horizon}");
    }
}

/// A write that had left the row that it was merged into took its share along. Undoing the merge took that share from the
/// row a second time.
#[test]
fn reinforcement_is_given_back_once() {
    let world = World::new();
    let a = world.add(status(2)).id;
    world.add(status(0).key("b"));
    let run = collapse(&world);
    world.add(status(1).key("b"));
    world.add(status(2));
    world.add(status(3));
    collapse(&world);
    assert_eq!((world.live(), world.row(a).reinforcement_count), (vec![a], 4));
    world.ns.undo(run).unwrap();
    assert_eq!(world.row(a).reinforcement_count, 4);
    world.check();
}

/// LIFE-63: the instant of the last repeat goes back with the row that was repeated, unless the row has been repeated since.
#[test]
fn the_last_repeat_is_given_back() {
    for repeated_since in [false, true] {
        let world = World::new();
        let mut first = status(2);
        first.fields.significance = Some(Significance::Important);
        let a = world.add(first).id;
        world.add(status(0).key("b"));
        world.advance("1h");
        world.add(status(0).key("c"));
        let at = world.now();
        world.advance("1h");
        let run = collapse(&world);
        assert_eq!((world.live(), world.row(a).last_reinforced_at), (vec![a], Some(at)));
        if repeated_since {
            world.add(status(2));
        }
        world.ns.undo(run).unwrap();
        assert_eq!(world.row(a).last_reinforced_at, repeated_since.then(|| world.now()));
        world.check();
    }
}

/// The write that an import brought was forgotten by its id; that it had led to a later row did not make undoing the
/// import tell of one more that it removed.
#[test]
fn a_write_that_only_led_to_a_row_is_not_told_as_removed() {
    let world = World::new();
    let run = world.start_import();
    let rows = world.import(run, vec![text("Tea is green"), text("Tea is hot")]);
    let newest = world.add(text("Tea is cold")).id;
    world.supersede(rows[0].id, newest, SupersedeMode::Replaced, None).unwrap();
    world.forget_id(rows[0].id);
    let undone = world.ns.undo(run).unwrap();
    assert_eq!((undone.removed, undone.detached, world.live()), (1, 0, vec![newest]));
    assert_eq!(world.row(newest).holders.len(), 1);
    world.check();
}

/// The state of a run and the steps that are left of it, as an export of all states tells them; none once the run has been
/// taken back.
#[cfg(all(unix, feature = "faults"))]
fn told(world: &World, run: RunId) -> Option<(String, u64)> {
    let mut lines = Vec::new();
    let export = Export { namespaces: vec![world.ns.name().clone()], all_states: true };
    let snapshot = world.db.snapshot().unwrap();
    export.write(&snapshot, &mut lines, "lines", VectorsTo::<Cursor<Vec<u8>>>::Lines).unwrap();
    let lines = String::from_utf8(lines).unwrap();
    let mut rows = lines.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let id = run.to_string();
    let row = rows.find(|row| row["run"]["id"] == *id)?;
    Some((row["run"]["state"].as_str()?.to_owned(), row["run"]["steps"].as_u64()?))
}

/// V-282, with fewer rows: the disk fails in the middle of an undo of some 600 removals.
#[cfg(all(unix, feature = "faults"))]
/// An import that gives a key another text takes its earlier write out of a memory that others wrote too. The undo brings it back
/// (MODEL-33), beside that memory. A key that only led to the text of another leads there again.
#[test]
fn an_undo_brings_back_the_writes_of_keys_that_an_import_has_changed() {
    for shared in [false, true] {
        let world = World::new();
        world.add(text("the port is 8080").key("k8"));
        if shared {
            world.add(text("the port is 8080").tag("net"));
        }
        let run = world.start_import();
        world.import(run, vec![text("the port is 9090").key("k8"), text("the port is 7070").key("k8")]);
        assert_eq!(world.ns.undo(run).unwrap().lost, Vec::<String>::new());
        assert_eq!(
            (world.row("k8").text.as_str(), world.live().len()),
            ("the port is 8080", 1 + usize::from(shared))
        );
        world.check();
    }
    let world = World::new();
    let [old, new] =
        ["8080", "6060"].map(|port| world.add(text(&format!("the port is {port}")).key(port)).id);
    world.supersede(old, new, SupersedeMode::Replaced, None).unwrap();
    let run = world.start_import();
    world.import(run, vec![text("the port is 9090").key("8080")]);
    assert_eq!(world.ns.undo(run).unwrap().lost, Vec::<String>::new());
    assert_eq!((world.live(), world.row("8080").id), (vec![new], new));
    world.check();
}

#[test]
fn v282_an_undo_that_was_stopped_is_gone_on_with() {
    use std::sync::{Arc, atomic::Ordering};

    let mut world = World::new();
    let letter = |at: usize| char::from(b'a' + u8::try_from(at).unwrap());
    let reports = (0..900_usize).map(|at| {
        let service = [letter(at % 300 / 18), letter(at % 18), 'q'].iter().collect::<String>();
        text(&format!("service {service} status: {at} jobs pending"))
            .kind(Kind::Profile)
            .key(format!("report-{at}"))
    });
    let how = WriteOptions { no_dedup: true, ..WriteOptions::default() };
    world.ns.add_all(reports.collect(), &how).unwrap();
    let options = MaintainOptions { destroy_max: Some(u64::MAX), ..MaintainOptions::live() };
    let run = world.db.maintain_with(&options.passes([Pass::Collapse])).unwrap().run.unwrap();
    let live = |world: &World| world.ns.stats().unwrap().memories.live;
    let (kept, removed) = (live(&world), 900 - live(&world));
    assert!(removed > 500, "{removed}");
    let (state, all) = told(&world, run).unwrap();
    assert_eq!(state, "done");

    world.db.clone().close().unwrap();
    let disk = crate::seam::SeamDisk::default();
    let cut = world.builder().durability(Durability::Safe).disk(Arc::new(disk.clone()));
    let cut = cut.open(world.path()).unwrap();
    disk.0.spared.store(4, Ordering::SeqCst);
    disk.0.syncs.store(u32::MAX, Ordering::SeqCst);
    cut.namespace(world.ns.name()).unwrap().undo(run).unwrap_err();
    drop(cut);
    disk.0.syncs.store(0, Ordering::SeqCst);
    world.reopen();

    let back = live(&world) - kept;
    let (state, left) = told(&world, run).unwrap();
    assert!(
        0 < back && back < removed && 0 < left && left < all,
        "{back} rows are back, {left} of {all} steps are left"
    );
    assert_eq!(state, "undoing");
    world.check();
    let undone = world.ns.undo(run).unwrap();
    assert_eq!((undone.restored, undone.lost), (removed - back, Vec::new()));
    assert_eq!(live(&world), 900);
    assert_eq!(told(&world, run), None);
    world.check();
    assert_eq!(world.ns.undo(run).unwrap(), Undone { already: true, ..Undone::default() });
}

/// What a run had replaced through a key comes back with the undo of that run, also where another write has joined what the run
/// wrote (MODEL-33, LIFE-26). Of a key that has gone on to what stays, or says something newer, nothing comes back.
#[test]
fn what_a_run_replaced_comes_back_where_others_have_joined_it() {
    for joins in [None, Some(text("Ann likes cake")), Some(text("Ann likes cake").key("k1"))] {
        for by_tag in [false, true] {
            let world = World::new();
            let first = world.add(text("Ann likes tea").key("k0")).id;
            let run = world.start_import();
            world.import(run, vec![text("Ann likes cake").key("k0").tag("imported")]);
            let joined = joins.clone().map(|draft| world.add(draft).id);
            match by_tag {
                true => drop(world.forget_tag("imported")),
                false => drop(world.ns.undo(run).unwrap()),
            }
            assert_eq!((world.row("k0").id, world.row("k0").state), (first, State::Live), "{joins:?}");
            assert!(joined.is_none_or(|id| world.is_live(id)));
            world.check();
        }
    }
    // The key says something newer.
    let world = World::new();
    let first = world.add(text("Ann likes tea").key("k0")).id;
    let run = world.start_import();
    world.import(run, vec![text("Ann likes cake").key("k0")]);
    world.add(text("Ann likes cake").key("k1"));
    world.add(text("Ann likes pie").key("k0"));
    world.ns.undo(run).unwrap();
    assert_eq!(world.row("k0").text, "Ann likes pie");
    assert!(!world.is_live(first));
    world.check();
}

fn unite(world: &World) -> RunId {
    unite_by(world, Pass::NearDuplicates)
}

fn unite_by(world: &World, pass: Pass) -> RunId {
    world.db.maintain_with(&MaintainOptions::live().passes([pass])).unwrap().run.unwrap()
}

/// What a run replaced comes back too where a pass has merged what the run wrote into the memory of another key since (MODEL-33,
/// LIFE-26), and forgetting that memory takes nothing along which its key never said.
#[test]
fn what_a_run_replaced_comes_back_where_a_pass_has_merged_the_run_away() {
    let passes = [Pass::NearDuplicates, Pass::VectorDuplicates];
    for (pass, by_tag) in passes.into_iter().flat_map(|pass| [(pass, false), (pass, true)]) {
        let world = World::new();
        let said = |what: &str, at| text(what).vector(axis(at));
        let office = world.add(said("the office is in Oslo", 0).key("office")).id;
        let lab = world.add(said("the lab is in Bergen", 1).key("lab")).id;
        let run = world.start_import();
        world.import(run, vec![said("the office is in Oslo", 0).key("lab").tag("imported")]);
        unite_by(&world, pass);
        assert_eq!(world.row("lab").id, office, "{pass:?}");
        match by_tag {
            true => assert_eq!(world.forget_tag("imported").restored, 1),
            false => assert_eq!(world.ns.undo(run).unwrap().restored, 1),
        }
        assert_eq!((world.row("lab").id, world.row("lab").state), (lab, State::Live), "{pass:?} {by_tag}");
        assert!(world.is_live(office));
        world.check();
        world.forget_id(office);
        assert!(world.is_live(lab), "{pass:?} {by_tag}");
        world.check();
    }
}

/// The same where a second merge has taken the first one in.
#[test]
fn what_a_run_replaced_comes_back_where_two_passes_have_merged_the_run_away() {
    let passes = [Pass::NearDuplicates, Pass::VectorDuplicates];
    for (pass, by_tag) in passes.into_iter().flat_map(|pass| [(pass, false), (pass, true)]) {
        let world = World::new();
        let said = |what: &str, at| text(what).vector(axis(at));
        let apart = WriteOptions { no_dedup: true, ..WriteOptions::default() };
        let same = |key: &str, significance| {
            world.advance("1h");
            let mut draft = said("the office is in Oslo", 0).key(key);
            draft.fields.significance = Some(significance);
            world.ns.add_all(vec![draft], &apart).unwrap().pop().unwrap().id
        };
        let lab = world.add(said("the lab is in Bergen", 1).key("lab")).id;
        let run = world.start_import();
        world.import(run, vec![said("the office is in Oslo", 0).key("lab").tag("imported")]);
        let [first, second] = [("first", Significance::Important), ("second", Significance::Core)]
            .map(|(key, significance)| (same(key, significance), unite_by(&world, pass)).0);
        assert_eq!(
            (world.row("lab").id, world.row("first").id),
            (second, second),
            "{pass:?}: {first} is merged, too"
        );
        match by_tag {
            true => assert_eq!(world.forget_tag("imported").restored, 1, "{pass:?}"),
            false => assert_eq!(world.ns.undo(run).unwrap().restored, 1, "{pass:?}"),
        }
        assert_eq!((world.row("lab").id, world.row("lab").state), (lab, State::Live), "{pass:?} {by_tag}");
        assert!(world.is_live(second));
        world.check();
    }
}

/// Of several memories that a key's write had replaced, the one that the key said last is live again.
#[test]
fn the_latest_of_what_a_run_replaced_comes_back() {
    let world = World::new();
    world.add(text("Ann lives in Rome").key("other"));
    let home = |town: &str| text(&format!("Ann lives in {town}")).key("ann");
    let apart = WriteOptions { no_dedup: true, ..WriteOptions::default() };
    world.ns.add_all(vec![home("Rome")], &apart).unwrap();
    let merged = unite(&world);
    world.advance("1h");
    let oslo = world.add(home("Oslo")).id;
    world.advance("1h");
    let run = world.start_import();
    world.import(run, vec![home("Bonn")]);
    world.ns.undo(merged).unwrap();
    world.ns.undo(run).unwrap();
    assert_eq!((world.row("ann").id, world.row("ann").state), (oslo, State::Live));
    world.check();
}

/// A caller who forgets by a filter meant the end of what was forgotten, whether a pass has merged it with others or not
/// (LIFE-9).
#[test]
fn forgetting_by_a_filter_brings_nothing_back() {
    for merged in [false, true] {
        let world = World::new();
        let rome = world.add(text("Ann lives in Rome").key("k")).id;
        world.advance("1h");
        world.add(text("Ann lives in Oslo").key("k").tag("x"));
        let apart = WriteOptions { no_dedup: true, ..WriteOptions::default() };
        world.ns.add_all(vec![text("Ann lives in Oslo").key("l")], &apart).unwrap();
        if merged {
            unite(&world);
        }
        let forget = Forget::filter(Filter::parse(r#"{"tags": "x"}"#).unwrap(), Scope::Shared);
        let gone = world.ns.forget(forget).unwrap();
        assert_eq!(gone.restored, 0, "{merged}: {gone:?}");
        assert!(!world.is_live(rome), "{merged}");
        assert_eq!(world.row("l").text, "Ann lives in Oslo");
        world.check();
    }
}

/// What a key had replaced follows the key out of a memory of several writers, when the key says something new there (MODEL-33).
#[test]
fn what_a_key_replaced_follows_the_key_out_of_a_merged_memory() {
    for merged in [false, true] {
        let world = World::new();
        let first = world.add(text("the gateway rests").kind(Kind::Profile).key("office")).id;
        world.add(status(2).key("other"));
        world.advance("1h");
        let earlier = world.start_import();
        world.import(earlier, vec![status(1).key("office")]);
        if merged {
            collapse(&world);
            assert_eq!(world.row("office").id, world.row("other").id);
        }
        world.advance("1h");
        let later = world.start_import();
        world.import(later, vec![text("the gateway is new").kind(Kind::Profile).key("office")]);
        world.check();
        world.ns.undo(later).unwrap();
        assert_eq!(world.row("office").text, "Gateway status: 1 apps pending", "{merged}");
        let undone = world.ns.undo(earlier).unwrap();
        assert_eq!(undone.restored, 1, "{merged}: {undone:?}");
        assert_eq!((world.row("office").id, world.row("office").state), (first, State::Live), "{merged}");
        assert_eq!(world.row("other").text, "Gateway status: 2 apps pending");
        world.check();
    }
}

/// What was merged into another memory is still true, so a key that is forgotten takes it along, whatever of its history is kept
/// (MODEL-30).
#[test]
fn a_key_takes_along_what_was_merged_although_its_history_is_kept() {
    for pass in [Pass::NearDuplicates, Pass::VectorDuplicates] {
        let world = World::new();
        let said = |what: &str, key: &str| text(what).key(key).vector(axis(0));
        let earlier = world.add(text("Ann lives in Rome").key("ann")).id;
        let mine = world.add(said("Ann lives in Oslo", "ann")).id;
        world.advance("1h");
        let apart = WriteOptions { no_dedup: true, ..WriteOptions::default() };
        let mut other = said("Ann lives in Oslo", "other");
        other.fields.significance = Some(Significance::Core);
        let other = world.ns.add_all(vec![other], &apart).unwrap().pop().unwrap().id;
        let merged = unite_by(&world, pass);
        assert_eq!(world.row("ann").id, other, "{pass:?}");
        let names = vec!["ann".to_owned()];
        let scope = Scope::Any;
        let what = Forget::Names { names, scope, keep_history: true, also_merged: true, with_history: false };
        world.ns.forget(what).unwrap();
        world.check();
        assert!(matches!(world.get(mine).unwrap(), Got::Tombstone(_)), "{pass:?}");
        assert_eq!(world.row(earlier).text, "Ann lives in Rome");
        world.ns.undo(merged).unwrap();
        assert_eq!(world.live(), [other], "{pass:?}");
        world.check();
    }
}

/// What a forgotten key had said before does not come back when those go who said the same as the key (LIFE-9).
#[test]
fn what_a_forgotten_key_had_said_stays_away_when_others_leave_its_text() {
    let by_filter = || Forget::filter(Filter::parse(r#"{"tags": "x"}"#).unwrap(), Scope::Shared);
    let keeping = || {
        let (names, scope) = (vec!["ann".to_owned()], Scope::Any);
        Forget::Names { names, scope, keep_history: true, also_merged: true, with_history: false }
    };
    let forgets: [fn() -> Forget; 2] = [by_filter, keeping];
    let merges = [None, Some(Pass::NearDuplicates), Some(Pass::VectorDuplicates)];
    for (forget, merge) in forgets.into_iter().flat_map(|forget| merges.map(|merge| (forget, merge))) {
        let world = World::new();
        let said = |key: &str| text("Ann lives in Oslo").key(key).vector(axis(0));
        let rome = world.add(text("Ann lives in Rome").key("ann").vector(axis(1))).id;
        world.add(said("ann").tag("x"));
        let apart = WriteOptions { no_dedup: merge.is_some(), ..WriteOptions::default() };
        world.ns.add_all(vec![said("other").tag("y")], &apart).unwrap();
        if let Some(pass) = merge {
            unite_by(&world, pass);
        }
        world.ns.forget(forget()).unwrap();
        assert_eq!(world.row("other").text, "Ann lives in Oslo", "{merge:?}");
        world.forget_tag("y");
        assert!(world.live().is_empty(), "{merge:?}: {:?}", world.get(rome));
        world.check();
        // The repair of chains takes it for meant as well.
        world.db.maintain_with(&MaintainOptions::live().passes([Pass::Supersession])).unwrap();
        assert!(world.live().is_empty(), "{merge:?}: {:?}", world.get(rome));
        let refused = world.ns.restore(rome.to_string()).unwrap_err();
        assert!(refused.to_string().contains("what took its place was forgotten"), "{refused}");
        world.check();
    }
}

/// What a key said in a memory that was merged is its history as soon as the key says something else.
#[test]
fn a_merged_version_stays_where_history_is_kept() {
    let world = World::new();
    let said = |what: &str, key: &str, at| text(what).key(key).vector(axis(at));
    let mine = world.add(said("apples are red indeed", "mine", 0)).id;
    world.advance("1h");
    let other = world.add(said("apples are red", "other", 0)).id;
    unite_by(&world, Pass::VectorDuplicates);
    assert_eq!(world.row("mine").id, world.row("other").id);
    let (first, last) = (world.row("mine").id, if world.row("mine").id == mine { "other" } else { "mine" });
    let merged = if first == mine { other } else { mine };
    world.add(said("something entirely new", last, 1));
    let (names, scope) = (vec![last.to_owned()], Scope::Any);
    let what = Forget::Names { names, scope, keep_history: true, also_merged: true, with_history: false };
    assert_eq!(world.ns.forget(what).unwrap().forgotten, 1);
    assert!(world.get(merged).unwrap().into_memory().is_some(), "an earlier version of the key");
    world.check();
}

/// MODEL-67: a text that comes back after its writer has said something else was told until then, and not until it came back.
#[test]
fn what_returns_superseded_was_told_until_its_writer_said_something_else() {
    let world = World::at(100);
    world.db.set_policy("sweeper.short_term_cap = 1", Syntax::Toml).unwrap();
    let working = |words: &str| text(words).tier(Tier::Working);
    let mut old = working("harbour a").key("k");
    old.fields.importance = Some(0.1);
    let old = world.add(old).id;
    world.add(working("harbour b"));
    world.set(200);
    let run = world.db.maintain_with(&MaintainOptions::live().passes([Pass::Cap])).unwrap().run.unwrap();
    assert_eq!(world.row(old).state, State::Limbo);
    for (at, words) in [(300, "market c"), (400, "market d")] {
        world.set(at);
        world.add(working(words).key("k"));
    }
    world.set(500);
    world.ns.undo(run).unwrap();
    let superseded = world.row(old).superseded.unwrap();
    assert_eq!((superseded.at, superseded.by), (ms(300), world.row("k").id));
    world.set(600);
    let seen = |at: i64| -> Vec<MemoryId> {
        let found = world.ns.search(Query::text("harbour").mode(Mode::Text).as_of(ms(at))).unwrap();
        found.hits.iter().map(|hit| hit.id).filter(|id| *id == old).collect()
    };
    assert_eq!((seen(250), seen(350), seen(450)), (vec![old], vec![], vec![]));
    world.check();
}

/// LIFE-7, MODEL-8: a key has one text that is true. What it said in the place of a text that is restored is an earlier text of it
/// then, which its key reaches, and which can be restored in turn.
#[test]
fn what_a_key_said_since_goes_back_when_its_text_is_restored() {
    let world = World::new();
    let zebra = world.add(text("zebra first").key("k")).id;
    let lion = world.add(text("lion second").key("k")).id;
    for (back, other) in [(zebra, lion), (lion, zebra), (zebra, lion)] {
        world.advance("1h");
        let report = world.ns.restore(back).unwrap();
        assert_eq!((report.replaced, report.keys_taken), (vec![other], vec![]));
        assert_eq!((world.row("k").id, world.live()), (back, vec![back]));
        let times = world.row(other).superseded.unwrap();
        assert_eq!((times.by, times.mode), (back, SupersedeMode::Correction));
        world.check();
    }
    world.forget(&["k"]);
    assert!(world.live().is_empty() && world.list_in(Scope::Any, State::Superseded).is_empty());
    world.check();
}

/// The same where others have written that text, too, or their keys lead there.
#[test]
fn a_text_of_others_stays_when_a_key_goes_back_to_an_earlier_one() {
    let world = World::new();
    let zebra = world.add(text("zebra first").key("k")).id;
    world.add(text("lion second").key("k"));
    let lion = world.add(text("lion second").key("m")).id;
    assert!(world.ns.restore(zebra).unwrap().replaced.is_empty());
    assert_eq!((world.row("k").id, world.row("m").id, world.live()), (zebra, lion, vec![zebra, lion]));
    assert_eq!((world.row(lion).keys, world.row(lion).reinforcement_count), (vec!["m".to_owned()], 1));
    world.check();
    world.forget(&["k", "m"]);
    assert!(world.live().is_empty() && world.list_in(Scope::Any, State::Superseded).is_empty());

    let world = World::new();
    let zebra = world.add(text("zebra first").key("k")).id;
    let lion = world.add(text("lion second").key("k")).id;
    let tiger = world.add(text("tiger").key("t")).id;
    world.supersede(tiger, lion, SupersedeMode::Replaced, None).unwrap();
    assert_eq!(world.row("t").id, lion);
    assert_eq!(world.ns.restore(zebra).unwrap().replaced, [lion]);
    assert_eq!((world.row("t").id, world.live()), (zebra, vec![zebra]), "a key that led there leads on");
    world.check();
}

/// MODEL-67: what all its writers have said anew takes the place of what comes back. A key whose tags have no room there stays
/// where it was, and refuses nothing.
#[test]
fn model_67_tags_without_room_are_no_reason_to_refuse_what_comes_back() {
    let tagged = |draft: Draft, name: &str| (0..40).fold(draft, |draft, at| draft.tag(format!("{name}{at}")));
    let world = World::new();
    let old = world.add(tagged(text("Ann lives in Ghent").key("a"), "old")).id;
    world.add(text("Ann lives in Ghent").key("b"));
    world.advance("1m");
    let between = world.add(text("Ann lives in Bruges").key("c").tag("leaves")).id;
    world.supersede(old, between, SupersedeMode::Correction, None).unwrap();
    world.advance("1m");
    world.add(text("Ann is on the way").key("a"));
    world.advance("1m");
    world.ns.contradict("a", None).unwrap();
    let latest = world.add(tagged(text("Ann lives in Antwerp").key("b"), "new")).id;
    world.advance("1h");
    world.forget_tag("leaves");
    assert_eq!((superseder(&world, old), world.row(latest).tags.len()), (Some(latest), 40));
    assert_eq!(world.row("b").id, latest);
    assert_ne!(world.get("a").ok().map(|got| got.into_memory().map(|row| row.id)), Some(Some(latest)));
    world.check();
}
