//! The use of memories: what searches note, when it is counted, and what it changes.

use crate::world::{World, axis, span, text};
use oubliette::clock::ManualClock;
use oubliette::maintain::{MaintainOptions, Pass};
use oubliette::memory::{ContextDraft, Inclusion, SupersedeMode, Tier};
use oubliette::policy::Syntax;
use oubliette::{Database, Draft, Kind, Memory, MemoryId, Query, WriteOptions};

/// A memory on an axis of its own.
fn stored(world: &World, number: usize) -> MemoryId {
    world.add(text(&format!("memory {number}")).vector(axis(number))).id
}

/// Searches for one memory alone, and counts it as retrieved.
fn retrieve(world: &World, number: usize) -> MemoryId {
    let found = world.ns.search(Query::vector(axis(number)).k(1).track(true)).unwrap();
    found.hits[0].id
}

fn row(world: &World, id: MemoryId) -> Memory {
    world.ns.get(id).unwrap().unwrap()
}

fn near(found: Option<f32>, expected: f32) {
    assert!((found.unwrap() - expected).abs() < 1e-6, "{found:?}, not {expected}");
}

#[test]
fn a_search_writes_nothing_and_the_next_write_counts_it() {
    let world = World::new();
    let (id, other) = (stored(&world, 0), stored(&world, 1));
    let (commit, version) = (world.db.stats().unwrap().commit, row(&world, id).version);
    world.ns.search(Query::vector(axis(0))).unwrap();
    world.clock.advance(span("1h"));
    let at = world.now();
    assert_eq!(retrieve(&world, 0), id);
    retrieve(&world, 0);
    assert_eq!(world.db.stats().unwrap().commit, commit);
    assert_eq!(row(&world, id).retrieval_count, 0);
    world.clock.advance(span("1h"));
    world.add(text("another"));
    let found = row(&world, id);
    assert_eq!((found.retrieval_count, found.access_seq, found.version), (2, 2, version));
    assert_eq!((found.relevance_score_sum, found.relevance_score_count, found.relevance_max), (2.0, 2, 1.0));
    assert_eq!((found.last_retrieved, found.last_accessed()), (Some(at), at));
    assert_eq!(row(&world, other).retrieval_count, 0);
}

#[test]
fn v299_a_full_buffer_drops_and_says_so() {
    let world = World::new();
    world.db.set_policy("access.buffer = 4", Syntax::Toml).unwrap();
    let ids: Vec<MemoryId> = (0..4).map(|number| stored(&world, number)).collect();
    let late = world.add(text("memory e").vector([0.5, 0.5, 0.5, 0.5])).id;
    for number in [0, 0, 1, 2, 3] {
        retrieve(&world, number);
    }
    let query = Query::vector([0.5, 0.5, 0.5, 0.5]).k(1).track(true);
    assert_eq!(world.ns.search(query).unwrap().hits[0].id, late);
    world.db.flush_access().unwrap();
    let counts: Vec<u64> = ids.iter().map(|id| row(&world, *id).retrieval_count).collect();
    assert_eq!((counts, row(&world, late).retrieval_count), (vec![2, 1, 1, 1], 0));
    assert_eq!(world.db.stats().unwrap().access_dropped, 1);
}

#[test]
fn an_access_before_the_end_moves_it_even_when_it_is_counted_later() {
    let world = World::new();
    let working = |number: usize| text(&format!("memory {number}")).vector(axis(number)).tier(Tier::Working);
    let (used, unused) = (world.add(working(0)).id, world.add(working(1)).id);
    let by_caller = world.add(working(2).expiry(span("72h"))).id;
    world.clock.advance(span("71h"));
    let at = world.now();
    retrieve(&world, 0);
    retrieve(&world, 2);
    world.clock.advance(span("2h"));
    world.db.flush_access().unwrap();
    assert!(world.is_live(used) && !world.is_live(unused) && !world.is_live(by_caller));
    assert_eq!(row(&world, used).expires_at, Some(at.plus(span("72h"))));
    assert_eq!(row(&world, by_caller).retrieval_count, 1, "it is counted and its end stays");
    world.check();
}

#[test]
fn v143_a_recall_raises_the_confidence_once_a_day() {
    let world = World::new();
    let id = world.add(text("memory").vector(axis(0)).confidence(0.4)).id;
    for (wait, expected) in [("0h", 0.46), ("2h", 0.46), ("22h", 0.514)] {
        world.clock.advance(span(wait));
        let updated_at = row(&world, id).updated_at;
        retrieve(&world, 0);
        world.db.flush_access().unwrap();
        near(row(&world, id).confidence, expected);
        assert_eq!((row(&world, id).updated_at, row(&world, id).version), (updated_at, 1));
    }
    // A reinforcement is a use like any other.
    world.ns.reinforce(id, 1).unwrap();
    near(row(&world, id).confidence, 0.514);
    world.clock.advance(span("12h"));
    world.ns.reinforce(id, 1).unwrap();
    near(row(&world, id).confidence, 0.514);
    world.clock.advance(span("12h"));
    world.ns.reinforce(id, 1).unwrap();
    near(row(&world, id).confidence, 0.5626);
}

#[test]
fn rows_that_have_gone_meanwhile_gain_nothing() {
    let world = World::new();
    let (old, gone) = (stored(&world, 0), stored(&world, 1));
    retrieve(&world, 0);
    retrieve(&world, 1);
    let reader = world.db.snapshot().unwrap();
    let new = world.add(text("newer")).id;
    // The write has counted both.
    assert_eq!((row(&world, old).retrieval_count, row(&world, gone).retrieval_count), (1, 1));
    world.supersede(old, new, SupersedeMode::Correction, None).unwrap();
    world.forget_id(gone);
    let held = reader.namespace("default").unwrap();
    for number in 0..2 {
        assert_eq!(held.search(Query::vector(axis(number)).k(1).track(true)).unwrap().hits.len(), 1);
    }
    world.db.flush_access().unwrap();
    assert_eq!(row(&world, old).retrieval_count, 2);
    assert!(world.ns.get(gone).unwrap().is_none());
    world.check();
}

#[test]
fn the_pass_counts_and_a_dry_run_only_says_so() {
    let world = World::new();
    let id = stored(&world, 0);
    retrieve(&world, 0);
    let run = |options: MaintainOptions| {
        let report = world.ns.maintain_with(&options.passes([Pass::Fold])).unwrap();
        (report.passes[0].planned, report.passes[0].changed, report.passes[0].left)
    };
    assert_eq!(run(MaintainOptions::default()), (1, 0, 1));
    assert_eq!(row(&world, id).retrieval_count, 0);
    assert_eq!(run(MaintainOptions::live()), (1, 1, 0));
    assert_eq!(row(&world, id).retrieval_count, 1);
    assert_eq!(run(MaintainOptions::live()), (0, 0, 0));
    // Any other pass counts before it decides.
    retrieve(&world, 0);
    world.ns.maintain_with(&MaintainOptions::live().passes([Pass::Supersession])).unwrap();
    assert_eq!(row(&world, id).retrieval_count, 2);
}

#[test]
fn the_end_of_a_handle_counts_and_a_reader_notes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.oub");
    let open =
        || Database::builder().track(true).clock(ManualClock::at("2026-01-02T10:00:00Z".parse().unwrap()));
    let db = open().open(&path).unwrap();
    let tea = db.namespace("team").unwrap().add("Ann prefers tea").unwrap().id;
    db.namespace("team").unwrap().search("tea").unwrap();
    db.namespace("team").unwrap().search(Query::text("tea").track(false)).unwrap();
    db.close().unwrap();
    let reader = open().read_only(true).open(&path).unwrap();
    let count = |db: &Database| db.namespace("team").unwrap().get(tea).unwrap().unwrap().retrieval_count;
    reader.namespace("team").unwrap().search("tea").unwrap();
    assert!(reader.flush_access().is_err());
    reader.close().unwrap();
    let db = open().open(&path).unwrap();
    assert_eq!(count(&db), 1);
    // A batch that fails takes nothing with it.
    db.namespace("team").unwrap().search("tea").unwrap();
    let name = "team".parse().unwrap();
    assert!(db.batch(|b| b.add(&name, "")).is_err());
    db.flush_access().unwrap();
    assert_eq!(count(&db), 2);
}

/// A writer pays for a few of the searches before it, and some writers pay for those of a few writes (LIFE-58). What waits has its
/// turn, and a flush counts all.
#[test]
fn each_write_counts_a_few_memories() {
    let world = World::new();
    let ids: Vec<MemoryId> = (0..20)
        .map(|number| {
            let angle = number as f32 / 10.0;
            world.add(text(&format!("memory {number}")).vector([angle.cos(), angle.sin(), 0.0, 0.0])).id
        })
        .collect();
    world.ns.search(Query::vector([1.0, 0.0, 0.0, 0.0]).k(20).track(true)).unwrap();
    let counted = || ids.iter().filter(|id| row(&world, **id).retrieval_count == 1).count();
    for expected in [0, 0, 20] {
        world.ns.add(format!("a write, {expected}")).unwrap();
        assert_eq!(counted(), expected);
    }
    world.ns.search(Query::vector([1.0, 0.0, 0.0, 0.0]).k(20).track(true)).unwrap();
    world.db.flush_access().unwrap();
    assert!(ids.iter().all(|id| row(&world, *id).retrieval_count == 2));
}

/// LIFE-3: what a write removes on its way is not what was used in time, however many uses wait to be counted.
#[test]
fn a_write_removes_no_memory_whose_use_waits() {
    for by_pass in [false, true] {
        let world = World::new();
        let working = |number: usize| {
            let angle = number as f32 / 10.0;
            let draft = text(&format!("memory {number}")).vector([angle.cos(), angle.sin(), 0.0, 0.0]);
            world.add(draft.tier(Tier::Working)).id
        };
        let ids: Vec<MemoryId> = (0..20).map(working).collect();
        world.clock.advance(span("71h"));
        let query = Query::vector([1.0, 0.0, 0.0, 0.0]).k(19).track(true);
        assert_eq!(world.ns.search(query).unwrap().hits.len(), 19);
        world.clock.advance(span("2h"));
        for number in 0..4 {
            match by_pass {
                true => {
                    let expire = MaintainOptions::live().passes([Pass::Expire]);
                    drop(world.db.maintain_with(&expire).unwrap());
                }
                false => drop(world.ns.add(format!("a write, {number}")).unwrap()),
            }
        }
        assert!(ids[..19].iter().all(|id| world.is_live(*id)) && !world.is_live(ids[19]));
        world.db.flush_access().unwrap();
        assert!(ids[..19].iter().all(|id| row(&world, *id).retrieval_count == 1));
        world.check();
    }
}

/// MODEL-41: the distribution of use, before use decides anything.
#[test]
fn model_41_how_memories_are_used() {
    let world = World::new();
    let found = |draft: Draft, count: u64, mean: f64| {
        let draft = draft.retrieval_count(count).last_retrieved(world.ago("30d"));
        world.add(draft.relevance_score_count(count).relevance_score_sum(mean * count as f64)).id
    };
    let often = found(text("often"), 9, 0.75);
    let twice = found(text("twice").kind(Kind::ConsolidatedSummary).created_at(world.ago("60d")), 2, 0.2);
    world.add(text("never").kind(Kind::ChapterSummary).created_at(world.ago("60d")));
    let pinned = world.add(text("pinned").pinned(true)).id;
    world.add(text("too young").kind(Kind::ChapterSummary));
    let gone = found(text("gone"), 99, 0.9);
    world.forget_id(gone);
    for turn in 0..5 {
        let name = format!("turn-{turn}");
        world.ns.context_log_write(&ContextDraft::new(&name, [Inclusion::new(often, 10)])).unwrap();
        world.advance("1m");
    }
    let used = world.ns.access_distribution().unwrap();
    assert_eq!((used.memories, used.never_retrieved, used.never_retrieved_share), (5, 3, Some(0.6)));
    let retrievals: Vec<(u64, u64, u64)> =
        used.retrievals.iter().map(|bar| (bar.from, bar.to, bar.memories)).collect();
    assert_eq!(retrievals, [(0, 0, 3), (1, 1, 0), (2, 3, 1), (4, 7, 0), (8, 15, 1)]);
    let mean: Vec<u64> = used.mean_relevance.iter().map(|bar| bar.memories).collect();
    assert_eq!(mean, [0, 0, 1, 0, 0, 0, 0, 1, 0, 0]);
    assert_eq!(used.utility.iter().map(|bar| bar.memories).sum::<u64>(), 5);
    // Three score 0; the pinned and the young one stay. "twice" scores 0.4 ln 3 + 0.08 + 0.2 / 31 = 0.526.
    let at = |threshold: f64| used.thresholds.iter().find(|effect| effect.threshold == threshold).unwrap();
    let counts = |threshold| {
        let effect = at(threshold);
        (effect.below, effect.would_go, effect.l1, effect.l2, effect.bytes)
    };
    assert_eq!(counts(0.1), (3, 1, 0, 1, 5));
    assert_eq!(counts(0.6), (4, 2, 1, 1, 10));
    let most: Vec<(MemoryId, u64)> =
        used.most_retrieved.iter().map(|row| (row.id, row.retrieval_count)).collect();
    assert_eq!(most, [(often, 9), (twice, 2)]);
    let contexts: Vec<&str> =
        used.most_retrieved[0].contexts.iter().map(|context| context.context.as_str()).collect();
    assert_eq!(contexts, ["turn-4", "turn-3", "turn-2"]);
    // What no commit has counted counts as well, and the file is the sum of its namespaces.
    let vector = axis(0);
    let near = world.add(text("near").vector(vector)).id;
    world.ns.search(Query::vector(vector).k(1).track(true)).unwrap();
    let used = world.ns.access_distribution().unwrap();
    assert_eq!((used.memories, used.never_retrieved, used.most_retrieved.len()), (6, 3, 3));
    assert_eq!(used.most_retrieved[2].id, near);
    world.db.namespace("other").unwrap().add("elsewhere").unwrap();
    let all = world.db.access_distribution().unwrap();
    assert_eq!((all.memories, all.never_retrieved), (7, 4));
    assert!(all.most_retrieved.iter().all(|row| row.namespace == "default" && row.id != pinned));
}

#[test]
fn many_memories_name_the_most_retrieved_twenty() {
    let world = World::new();
    for n in 1..=50 {
        world.add(text(&format!("memory {n}")).retrieval_count(n));
    }
    let used = world.ns.access_distribution().unwrap();
    let counts: Vec<u64> = used.most_retrieved.iter().map(|row| row.retrieval_count).collect();
    assert_eq!(counts, (31..=50).rev().collect::<Vec<_>>());
}

/// A page on which a row can be read and not be written takes no other memory along, and the pass tells what is left out.
#[test]
fn a_damaged_page_keeps_no_other_use_from_being_counted() {
    const ROWS: usize = 300;
    const PAGE: usize = 4_096;
    let folder = tempfile::tempdir().unwrap();
    let (path, copy) = (folder.path().join("m.oub"), folder.path().join("copy.oub"));
    let open = |path: &std::path::Path| {
        let clock = ManualClock::at("2026-01-02T10:00:00Z".parse().unwrap());
        Database::builder().clock(clock).secret([7; 32]).open(path)
    };
    let db = open(&path).unwrap();
    let how = WriteOptions { no_dedup: true, ..WriteOptions::default() };
    let drafts = (0..ROWS).map(|number| Draft::new(format!("row {number}")));
    let stored = db.namespace("default").unwrap().add_all(drafts.collect(), &how).unwrap();
    let ids: Vec<MemoryId> = stored.into_iter().map(|one| one.id).collect();
    db.close().unwrap();
    let whole = std::fs::read(&path).unwrap();
    let mut damaged = 0;
    for (number, page) in whole.chunks(PAGE).enumerate() {
        // A leaf with rows of memories. The byte is one of the offsets of its keys.
        if ids.iter().filter(|id| page.windows(16).any(|bytes| bytes == id.as_bytes())).count() < 8 {
            continue;
        }
        let mut bytes = whole.clone();
        bytes[number * PAGE + 8] ^= 0x5a;
        std::fs::write(&copy, &bytes).unwrap();
        let Ok(db) = open(&copy) else { continue };
        let team = db.namespace("default").unwrap();
        let Ok(found) = team.search(Query::text("row").k(ROWS).track(true)) else { continue };
        let report = team.maintain_with(&MaintainOptions::live().passes([Pass::Fold])).unwrap();
        let fold = &report.passes[0];
        assert_eq!(fold.planned, found.hits.len() as u64, "page {number}");
        // A row whose key is damaged is not there any more.
        let told = fold.changed + fold.damaged;
        assert!(
            (fold.planned - 1..=fold.planned).contains(&told) && fold.left == 0,
            "page {number}: {fold:?}"
        );
        // A page that every step writes keeps all of them from being counted.
        damaged += u64::from((1..100).contains(&fold.damaged));
    }
    assert!(damaged > 0, "no page was damaged that matters");
}
