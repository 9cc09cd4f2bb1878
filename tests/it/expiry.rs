//! The end of a memory's life: the pass `expire`, what every write forgets, and what comes back (LIFE-1 to LIFE-5,
//! LIFE-53, LIFE-54, LIFE-56, LIFE-57, LIFE-71).

use crate::damage::store::{overwrite, tables};
use crate::world::{World, axis, keeping, ms, span, text};
use oubliette::maintain::{ExpireReport, MaintainOptions, Pass, PassReport, RunId};
use oubliette::memory::{Actor, ExpiresBy, Expiry, SupersedeMode, Tier, TombstoneReason};
use oubliette::policy::{Policy, Syntax};
use oubliette::report::RuleId;
use oubliette::{Builder, Draft, ErrorKind, MemoryId, Patch, State};

/// A world in which only the pass removes what expired.
fn still(millis: i64) -> World {
    World::at_with(millis, keeping)
}

fn ends(words: &str, at: i64) -> Draft {
    text(words).expiry(Expiry::At(ms(at)))
}

fn expire(world: &World, options: MaintainOptions) -> (PassReport, ExpireReport, Option<RunId>) {
    let mut report = world.db.maintain_with(&options.passes([Pass::Expire])).unwrap();
    let pass = report.passes.swap_remove(0);
    let details = pass.report.get::<ExpireReport>().cloned().unwrap_or_default();
    (pass, details, report.run)
}

fn live(world: &World) -> (PassReport, ExpireReport, Option<RunId>) {
    expire(world, MaintainOptions::live())
}

fn expired(world: &World) -> u64 {
    world.ns.stats().unwrap().memories.expired
}

/// V-165: what a tier let expire goes to limbo at its instant, and not before.
#[test]
fn v165_an_expired_memory_goes_to_limbo() {
    let world = still(0);
    let id = world.add(text("t").tier(Tier::Working).vector(axis(0))).id;
    let end = world.row(id).expires_at.unwrap();
    world.set(end.as_millis() - 1);
    assert_eq!(live(&world).0.changed, 0);
    assert_eq!(world.row(id).state, State::Live);
    world.set(end.as_millis());
    let (dry, ..) = expire(&world, MaintainOptions::default());
    assert_eq!((dry.planned, dry.changed, dry.left), (1, 0, 1));
    assert_eq!(world.row(id).state, State::Expired);
    let (report, details, run) = live(&world);
    assert_eq!((report.planned, report.changed, report.tombstoned, report.left), (1, 1, 1, 0));
    assert_eq!((details.limbo, details.erased, details.protected), (1, 0, 0));
    assert_eq!(world.row(id).state, State::Limbo);
    let history = world.ns.history(id.to_string()).unwrap();
    let last = history.events.last().unwrap();
    assert_eq!((last.actor, last.rule, last.run), (Actor::Sweeper, RuleId::EXPIRED, run));
    let stone = world.ns.tombstones(None, 10).unwrap().items.remove(0);
    assert_eq!((stone.id, stone.reason, stone.run), (id, TombstoneReason::Expired, run));
    assert_eq!(stone.erased_at, None);
    let stats = world.ns.stats().unwrap().memories;
    assert_eq!((stats.live, stats.expired, stats.limbo, stats.tombstoned), (0, 0, 1, 1));
    assert_eq!(live(&world).0.planned, 0, "nothing is left");
}

/// V-296, the end of it: what a caller had set an end for is erased at once, and no undo brings it back.
#[test]
fn v296_a_callers_end_erases_at_once() {
    let world = still(100);
    let id = world.add(ends("a one-time code", 200).key("code").tier(Tier::Working)).id;
    world.set(200);
    let (report, details, run) = live(&world);
    assert_eq!((report.changed, details.limbo, details.erased), (1, 0, 1));
    assert_eq!(world.tombstone(id).reason, TombstoneReason::Expired);
    assert_eq!(world.tombstone("code").id, id, "its key answers with what became of it");
    let horizon = world.ns.stats().unwrap().purge_horizon;
    assert_eq!(horizon.values().next().unwrap().valid, Some(ms(200)), "reads of an earlier instant are thin");
    assert_eq!(world.ns.undo(run.unwrap()).unwrap().restored, 0);
    assert_eq!(world.live(), []);
}

/// V-166: a longer life that was given after the pass was planned, and before its transaction, wins.
#[test]
fn v166_a_longer_life_wins() {
    let world = still(100);
    let (saved, lost) = (world.add(ends("saved", 200)).id, world.add(ends("lost", 200)).id);
    world.set(200);
    let stats = world.ns.stats().unwrap().memories;
    assert_eq!(stats.expired, 2, "both are settled");
    world.ns.touch([saved.to_string()], Expiry::At(ms(500))).unwrap();
    let (report, ..) = live(&world);
    assert_eq!(report.changed, 1);
    assert_eq!(
        (world.row(saved).state, world.tombstone(lost).reason),
        (State::Live, TombstoneReason::Expired)
    );
    world.set(500);
    assert_eq!(live(&world).0.changed, 1);
}

/// V-167: slices of at most `purge.batch`.
#[test]
fn v167_many_go_in_slices() {
    let world = still(100);
    world
        .ns
        .add_all((0..1_201).map(|at| ends(&format!("t{at}"), 200)).collect(), &Default::default())
        .unwrap();
    world.set(300);
    let (report, ..) = expire(&world, MaintainOptions { max_rows: Some(500), ..MaintainOptions::live() });
    assert_eq!((report.planned, report.left), (1_201, 1_201 - report.changed));
    assert!((1..=500).contains(&report.changed), "{report:?}");
    let (rest, ..) = live(&world);
    assert_eq!((report.changed + rest.changed, rest.left), (1_201, 0));
    assert_eq!(expired(&world), 0);
    assert_eq!(world.ns.stats().unwrap().memories.tombstoned, 1_201);
}

/// A protected memory stays stored, stays invisible, and is reported (LIFE-3); unpinned it goes.
#[test]
fn a_protected_memory_stays_and_is_named() {
    let world = still(100);
    let id = world.add(ends("pinned", 200).key("k").tag("pinned")).id;
    let other = world.add(ends("not pinned", 200)).id;
    world.set(200);
    for _ in 0..2 {
        let (report, details, _) = live(&world);
        assert_eq!((report.left, details.protected, &details.protected_ids), (0, 1, &vec![id]));
    }
    let (dry, details, _) = expire(&world, MaintainOptions::default());
    assert_eq!((dry.planned, details.protected), (0, 1));
    assert_eq!(world.tombstone(other).reason, TombstoneReason::Expired);
    assert_eq!((world.row(id).state, world.live()), (State::Expired, vec![]));
    // Tags that say nothing of the pin leave it.
    world.ns.update(id.to_string(), Patch { tags: Some(vec![]), ..Patch::default() }).unwrap();
    assert_eq!(live(&world).1.protected, 1);
    world.ns.pin(id, false).unwrap();
    assert_eq!(live(&world).1.erased, 1);
    assert_eq!(world.tombstone("k").id, id);
}

/// An older version is a memory too: a caller's end erases it, and the versions before and after it stay as they are.
#[test]
fn a_superseded_memory_goes_at_its_end() {
    let world = still(100);
    let old = world.add(ends("the code is 1234", 200)).id;
    let new = world.add(text("the code is 5678")).id;
    world.supersede(old, new, SupersedeMode::Correction, None).unwrap();
    world.set(200);
    let stats = world.ns.stats().unwrap().memories;
    assert_eq!((stats.expired, stats.superseded), (0, 1), "superseded comes first");
    world.check();
    assert_eq!(live(&world).1.erased, 1);
    assert_eq!(world.tombstone(old).reason, TombstoneReason::Expired);
    assert_eq!(world.live(), [new]);
    let short = world.add(text("short").tier(Tier::Working)).id;
    world.supersede(short, new, SupersedeMode::Correction, None).unwrap();
    world.advance("3d");
    let (_, details, run) = live(&world);
    assert_eq!((details.limbo, world.row(short).state), (1, State::Limbo));
    assert_eq!(world.ns.undo(run.unwrap()).unwrap().restored, 1);
    assert_eq!(world.row(short).state, State::Superseded, "as it was");
}

/// LIFE-57: what comes back lives once more as long as its tier lets it, and is found by everything that found it.
#[test]
fn life57_undo_gives_another_life() {
    let world = still(0);
    let id = world.add(text("the gateway is slow").tier(Tier::Episodic).vector(axis(1)).key("k").tag("t")).id;
    let before = world.row(id);
    world.advance("30d");
    let (.., run) = live(&world);
    assert_eq!((world.find(axis(1), 9), world.live()), (vec![], vec![]));
    world.advance("1d");
    let undone = world.ns.undo(run.unwrap()).unwrap();
    assert_eq!((undone.restored, undone.lost.len()), (1, 0));
    let after = world.row("k");
    assert_eq!((after.id, &after.tags, after.text.as_str()), (id, &before.tags, before.text.as_str()));
    assert_eq!((after.expires_at, after.expires_by), (Some(world.ahead("30d")), ExpiresBy::Tier));
    assert_eq!((world.find(axis(1), 9), world.live()), (vec![id], vec![id]));
    assert_eq!(live(&world).0.planned, 0);
    // Restoring it by name does the same.
    world.advance("30d");
    assert_eq!(live(&world).1.limbo, 1);
    world.ns.restore(id.to_string()).unwrap();
    assert_eq!(world.row(id).expires_at, Some(world.ahead("30d")));
}

/// The policy keeps no limbo: what a tier let expire is erased too.
#[test]
fn without_limbo_everything_is_erased() {
    let world = World::at(0);
    world.db.set_policy("purge.per_write = 0\nundo.horizon = 0", Syntax::Toml).unwrap();
    let id = world.add(text("t").tier(Tier::Working)).id;
    world.advance("72h");
    let (_, details, _) = live(&world);
    assert_eq!((details.limbo, details.erased), (0, 1));
    assert_eq!(world.tombstone(id).reason, TombstoneReason::Expired);
}

/// LIFE-68: expiry does not count in the destruction budget.
#[test]
fn no_budget_holds_expiry_back() {
    let world = still(100);
    world.ns.add_all((0..9).map(|at| ends(&format!("t{at}"), 200)).collect(), &Default::default()).unwrap();
    world.set(200);
    let (report, ..) = expire(&world, MaintainOptions { destroy_max: Some(0), ..MaintainOptions::live() });
    assert_eq!((report.changed, report.budget_exhausted), (9, false));
}

/// V-294: a database whose host never calls maintenance forgets as fast as it is written to.
#[test]
fn v294_every_write_forgets() {
    let world = World::at(100);
    world.ns.add_all((0..100).map(|at| ends(&format!("t{at}"), 200)).collect(), &Default::default()).unwrap();
    world.set(201);
    let gone = || world.ns.stats().unwrap().memories.tombstoned;
    for at in 1..=12 {
        world.add(text(&format!("new {at}")));
        assert_eq!(gone(), 8 * at);
    }
    assert_eq!(expired(&world), 4);
    let other = world.db.namespace("other").unwrap();
    other.add(text("elsewhere")).unwrap();
    assert_eq!(gone(), 96, "a write forgets in its own namespace");
    world.add(text("new 13"));
    assert_eq!((gone(), expired(&world)), (100, 0));
    let first = world.ns.tombstones(None, 10).unwrap().items.remove(0);
    assert_eq!((first.reason, first.run), (TombstoneReason::Expired, None));
}

/// A memory whose end has come and was not settled is protected by the very write that would remove it: it stays, and stands where
/// ended memories that are protected stand.
#[test]
fn a_write_that_protects_an_ended_memory_wins() {
    let world = World::at(100);
    let id = world.add(ends("t", 200).key("k")).id;
    world.set(300);
    world.ns.pin(id.to_string(), true).unwrap();
    assert_eq!(expired(&world), 1);
    world.check();
    world.add(text("new"));
    assert_eq!(expired(&world), 1);
    world.check();
}

/// A write has the last word: what it gives a longer life stays.
#[test]
fn a_write_that_lengthens_a_life_wins() {
    let world = World::at(100);
    let id = world.add(ends("t", 200).key("k")).id;
    world.set(300);
    world.ns.touch(["k"], Expiry::At(ms(900))).unwrap();
    assert_eq!(world.row(id).state, State::Live);
    world.set(900);
    let said: Vec<MemoryId> = world
        .db
        .batch(|b| {
            let ns = world.ns.name();
            Ok(vec![b.add(ns, "one")?.id, b.add(ns, "two")?.id])
        })
        .unwrap();
    assert_eq!(world.live(), said);
    assert_eq!(world.tombstone("k").id, id);
}

/// A memory that can't be read goes at its end as well, and stops neither the writes that remove it nor the pass.
#[test]
fn damage_stops_no_forgetting() {
    for table in ["memory", "holder", "vector", "vitals"] {
        for by_pass in [false, true] {
            let mut world = if by_pass { still(0) } else { World::at(0) };
            let id = world.add(text("t").tier(Tier::Working).vector(axis(0))).id;
            world.add(text("beside it").vector(axis(1)));
            world.db.clone().close().unwrap();
            let rows = tables(&world.path()).remove(table).unwrap();
            let (key, mut value) = match table {
                "vector" => rows[0].clone(),
                _ => rows.iter().find(|(key, _)| key[4..].starts_with(id.as_bytes())).unwrap().clone(),
            };
            let middle = value.len() / 2;
            value[middle] ^= 1;
            overwrite(&world.path(), table, &key, &value);
            world.open_again(if by_pass { keeping } else { |builder| builder });
            world.advance("73h");
            let new = world.add(text("written after its end")).id;
            if by_pass {
                assert_eq!(live(&world).0.left, 0, "{table}");
            }
            assert!(world.is_live(new), "{table}");
            if table != "vitals" {
                assert_eq!(world.tombstone(id).reason, TombstoneReason::Expired, "{table}");
            }
            world.forget_id(id);
            world.db.reindex().unwrap();
        }
    }
}

/// LIFE-71: absorbing a write lengthens nobody's promise, in whatever order the writes come and whoever they are.
#[test]
fn life_71_a_row_stands_for_writes_of_one_end() {
    let ends = [Expiry::After(span("1h")), Expiry::After(span("2h")), Expiry::Never, Expiry::Tier];
    for tier in [Tier::Working, Tier::Semantic] {
        for (first, second) in ends.into_iter().flat_map(|first| ends.map(|second| (first, second))) {
            let case = format!("{tier:?}, {first:?}, {second:?}");
            let world = World::new();
            let draft = |key: &str, end: Expiry| {
                let draft = text("omega fact").tier(tier).key(key);
                if end == Expiry::Tier { draft } else { draft.expiry(end) }
            };
            let promised = |end: Expiry| matches!(end, Expiry::After(_));
            let one = world.add(draft("o1", first)).id;
            let answer = world.add(draft("o2", second));
            let shares = first == second || !(promised(first) || promised(second));
            assert_eq!(answer.id == one, shares, "{case}");
            assert_eq!(answer.hints.is_empty(), shares, "{case}: {:?}", answer.hints);
            for (key, end) in [("o1", first), ("o2", second)] {
                let row = world.row(key);
                let ahead = |span: &str| Some(world.ahead(span));
                let wanted = match end {
                    Expiry::After(after) if after == span("1h") => ahead("1h"),
                    Expiry::After(_) => ahead("2h"),
                    _ if first == Expiry::Never || second == Expiry::Never || tier == Tier::Semantic => None,
                    _ => ahead("72h"),
                };
                // Without a promise the two share a row, whose end is the later.
                let wanted = if shares || end != Expiry::Tier || tier == Tier::Semantic {
                    wanted
                } else {
                    ahead("72h")
                };
                assert_eq!(row.expires_at, wanted, "{case}: {key}");
            }
            // Nobody's end moves when the other is forgotten.
            let end = world.row("o2").expires_at;
            world.forget(&["o1"]);
            let left = world.row("o2");
            if second == Expiry::Tier {
                assert_eq!(left.expires_by, ExpiresBy::Tier, "{case}");
                assert_eq!(left.expires_at.is_some(), tier == Tier::Working, "{case}");
            } else {
                assert_eq!(left.expires_at, end, "{case}");
            }
            world.check();
        }
    }
}

/// LIFE-71: an end that a caller set goes with the last writer that set one.
#[test]
fn life_71_forgetting_the_longer_write_shortens_the_row() {
    let world = World::new();
    let draft = |key: &str| text("omega fact").tier(Tier::Working).key(key);
    let id = world.add(draft("o1")).id;
    for key in ["o2", "o3"] {
        assert_eq!(world.add(draft(key).expiry(Expiry::Never)).id, id);
    }
    world.advance("10h");
    world.forget(&["o2"]);
    assert_eq!(world.row(id).expires_at, None, "o3 said so too");
    world.forget(&["o3"]);
    let row = world.row(id);
    assert_eq!((row.expires_at, row.expires_by), (Some(world.ahead("62h")), ExpiresBy::Tier));
    world.check();
}

/// LIFE-71: the writes of one writer without a key are one row, and the later end holds. A row of another run, or with
/// other tags, has an end of its own.
#[test]
fn life_71_one_writer_without_a_key_moves_its_own_end() {
    let world = World::new();
    let draft = |ttl: &str, tag: &str| text("build 7 runs").tag(tag).expiry(Expiry::After(span(ttl)));
    let first = world.add(draft("1h", "ci")).id;
    for minutes in 1..20 {
        world.advance("1m");
        assert_eq!(world.add(draft("1h", "ci")).id, first, "after {minutes} minutes");
    }
    assert_eq!(world.row(first).expires_at, Some(world.ahead("1h")));
    let other = world.add(draft("2h", "nightly")).id;
    assert_ne!(other, first);
    assert_eq!(world.row(first).expires_at, Some(world.ahead("1h")));
    // Many writers with ends of their own stand between a writer and its row.
    for n in 0..40 {
        world.add(draft("3h", "ci").key(format!("k{n}")));
        world.advance("1s");
    }
    let last = world.add(draft("4h", "last")).id;
    assert_eq!(world.add(draft("5h", "last")).id, last);
    world.check();
}

/// LIFE-7: an earlier text whose own end has passed comes back for as long as its tier says. What a caller had set is a promise, so
/// nothing comes back, and the key stays where it is. It went at once, with the key of the present text.
#[test]
fn life_7_an_earlier_text_whose_life_is_over_takes_no_key_away() {
    for by_caller in [false, true] {
        let mut world = World::new();
        let first = text("the door code is 1234").key("door");
        let first = match by_caller {
            true => first.expiry(Expiry::After(span("1d"))),
            false => first.tier(Tier::Working),
        };
        let first = world.add(first).id;
        world.advance("6h");
        let second = world
            .add(text("the door code is 9999").key("door").expiry(Expiry::Never).tier(Tier::Semantic))
            .id;
        world.advance("9d");
        match by_caller {
            true => {
                let refused = world.ns.restore(first.to_string()).unwrap_err();
                assert_eq!(refused.kind(), ErrorKind::Conflict, "{refused}");
                assert_eq!(world.row("door").id, second);
            }
            false => {
                world.ns.restore(first.to_string()).unwrap();
                let row = world.row("door");
                assert_eq!(
                    (row.id, row.state, row.expires_at),
                    (first, State::Live, Some(world.ahead("3d")))
                );
                assert_eq!(world.row(second).text, "the door code is 9999");
            }
        }
        world.check();
        world.reopen();
        world.check();
    }
}

/// LIFE-71: what joined a memory after the first of two passes keeps its life when that pass is taken back, and the end of before
/// comes back with the second.
#[test]
fn life_71_the_undo_of_a_first_pass_shortens_nothing_that_joined_since() {
    for pass in [Pass::NearDuplicates, Pass::VectorDuplicates] {
        let world = World::at_with(0, keeping);
        let how = oubliette::WriteOptions { no_dedup: true, ..Default::default() };
        let say = || text("the queue is empty").vector(axis(0).to_vec());
        let run = |drafts: Vec<Draft>| {
            world.ns.add_all(drafts, &how).unwrap();
            world.ns.maintain_with(&MaintainOptions::live().passes([pass])).unwrap().run.unwrap()
        };
        let end = world.ahead("5d");
        let first = run(vec![say().expiry(Expiry::At(end)), say()]);
        let second = run(vec![say().key("k")]);
        world.ns.undo(first).unwrap();
        assert_eq!(world.row("k").expires_at, None, "{pass:?}");
        world.ns.undo(second).unwrap();
        assert_eq!(world.row("k").expires_at, None);
        let ends: Vec<_> =
            world.live().into_iter().map(|id| (world.row(id).expires_at, world.row(id).expires_by)).collect();
        assert_eq!(ends.len(), 3, "{ends:?}");
        assert_eq!(
            ends.iter().filter(|(at, by)| *at == Some(end) && *by == ExpiresBy::Caller).count(),
            1,
            "{pass:?}: {ends:?}"
        );
        world.check();
    }
}

/// A memory that a pass has merged, and whose life was over meanwhile, gets another one when it comes back.
#[test]
fn what_was_merged_comes_back_with_a_life() {
    for by_undo in [false, true] {
        let world = World::at_with(0, keeping);
        let how = oubliette::WriteOptions { no_dedup: true, ..Default::default() };
        let say = |key: &str| text("the queue is empty").key(key).tier(Tier::Working);
        let ids: Vec<MemoryId> =
            world.ns.add_all(vec![say("a"), say("b")], &how).unwrap().iter().map(|row| row.id).collect();
        let run =
            world.ns.maintain_with(&MaintainOptions::live().passes([Pass::NearDuplicates])).unwrap().run;
        world.advance("2d");
        world.ns.touch(["a"], Expiry::After(span("9d"))).unwrap();
        world.advance("2d");
        match by_undo {
            true => _ = world.ns.undo(run.unwrap()).unwrap(),
            false => _ = world.ns.restore(ids[1].to_string()).unwrap(),
        }
        assert_eq!((world.row("b").id, world.row("b").state), (ids[1], State::Live), "{by_undo}");
        world.add(text("something else"));
        assert_eq!(world.row("b").state, State::Live);
        world.check();
    }
}

/// MODEL-42: a handle that can't settle what came due counts as if it had.
#[test]
fn a_reader_counts_what_came_due_as_a_writer_does() {
    fn counting(builder: Builder) -> Builder {
        let policy = "purge.per_write = 0\nsweeper.stages = [\"limbo\"]\nstats.max_due = 5";
        builder.policy(Policy::parse(policy, Syntax::Toml).unwrap())
    }
    let mut world = World::at_with(0, counting);
    for at in 0..8 {
        world.add(ends(&format!("short {at}"), 1_000 + at).tag("t").agent(format!("a{}", at % 2)));
        world.add(text(&format!("lasting {at}")).tag("t"));
    }
    world.add(text("true from then on").valid_from(ms(500)));
    for instant in [600, 1_001, 5_000] {
        world.db.clone().close().unwrap();
        world.set(instant);
        let reader = counting(world.builder()).read_only(true).open(world.path()).unwrap();
        let small = reader.namespace(world.ns.name()).unwrap().memory_stats().unwrap();
        let (whole, of_ns) =
            (reader.stats().unwrap(), reader.namespace(world.ns.name()).unwrap().stats().unwrap());
        reader.close().unwrap();
        world.open_again(counting);
        let written = world.db.stats().unwrap();
        assert_eq!(whole.memories, written.memories, "at {instant}");
        assert_eq!(whole.pending_due, written.pending_due, "at {instant}");
        for (read, write) in [
            (&whole.by_namespace, &written.by_namespace),
            (&whole.by_partition, &written.by_partition),
            (&whole.by_kind, &written.by_kind),
            (&whole.by_tier, &written.by_tier),
        ] {
            assert_eq!(read, write, "at {instant}");
        }
        assert_eq!(of_ns.memories, whole.memories);
        if written.pending_due == 0 {
            assert_eq!(small, world.ns.memory_stats().unwrap(), "at {instant}");
        }
    }
    assert_eq!(world.db.stats().unwrap().memories.live, 9);
}

/// LIFE-1: what is announced lives from the instant on at which it begins, whoever gave it a lifetime, and has no end before.
#[test]
fn life_1_what_is_announced_does_not_end_before_it_begins() {
    let world = World::new();
    let at = world.ahead("10d");
    let begins = |words: &str| text(words).valid_from(at);
    let closed = world.add(begins("the office is closed").expiry(span("3h")).key("office")).id;
    let mut draft = begins("the build is red");
    draft.fields.tier = Some(Tier::Working);
    let red = world.add(draft).id;
    assert_eq!(
        [closed, red].map(|id| world.row(id).expires_at),
        ["3h", "72h"].map(|ttl| Some(at.plus(span(ttl))))
    );
    // So does a lifetime that a change of the memory gives before it begins.
    world.ns.update("office", Patch::new().expiry(span("4h"))).unwrap();
    assert_eq!(world.row("office").expires_at, Some(at.plus(span("4h"))));
    let later = world.ahead("20d");
    world.ns.update(red.to_string(), Patch::new().valid_from(later)).unwrap();
    assert_eq!(world.row(red).expires_at, Some(later.plus(span("72h"))));
    for end in ["9d", "10d"] {
        let end = Expiry::At(world.ahead(end));
        let refused = world.ns.add(begins("the lab is closed").expiry(end)).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Invalid);
        assert!(refused.to_string().starts_with("expires_at"), "{refused}");
        let patch = Patch::new().valid_from(at).expiry(end);
        assert_eq!(world.ns.update("office", patch).unwrap_err().kind(), ErrorKind::Invalid);
    }
    world.check();
}

/// A key says another text from an instant on by which the text of before has ended: that end is none of the new text (LIFE-1).
#[test]
fn life_1_a_new_text_that_begins_later_does_not_end_as_the_one_before() {
    let world = World::new();
    let at = world.ahead("7d");
    world.add(text("Door code 1234").key("door").expiry(span("48h")));
    world.import(world.start_import(), vec![text("Door code 5678").key("door").valid_from(at)]);
    assert_eq!(world.row("door").expires_at, None);
    world.check();
    world.clock.set(at);
    let told = (world.row("door").text, world.live().len());
    assert_eq!(told, ("Door code 5678".to_owned(), 1));
}

/// LIFE-1: nor does what is announced get an end before it begins by a change of the memory, and no memory that ends before takes a place
/// at the instant. The refusal names the field, the value and the bound, and nothing has changed.
#[test]
fn life_1_no_change_lets_what_is_announced_end_before_it_begins() {
    let world = World::new();
    let (at, early, late) = (world.ahead("60d"), world.ahead("20d"), world.ahead("70d"));
    world.add(text("Ann works at Acme").key("a"));
    let globex = world.add(text("Ann works at Globex").key("c").supersedes("a").valid_from(at)).id;
    let refused = |patch: Patch, name: &str, says: &str| {
        let before = world.row(globex);
        let why = world.ns.update(name, patch).unwrap_err();
        assert_eq!((why.kind(), why.to_string()), (ErrorKind::Invalid, says.to_owned()));
        assert_eq!(world.row(globex), before);
    };
    let says = |end| format!("expires_at: must lie after valid_from, {at} (got {end})");
    for name in ["c", &globex.to_string()] {
        for end in [early, at] {
            refused(Patch::new().expiry(Expiry::At(end)), name, &says(end));
            refused(Patch::new().expiry(Expiry::At(end)).text("Ann works at Globex Corp"), name, &says(end));
        }
    }
    world.ns.update("c", Patch::new().expiry(Expiry::At(late))).unwrap();
    let says = format!("valid_from: must lie before expires_at, {late} (got {late})");
    refused(Patch::new().valid_from(late), "c", &says);
    // One of several names keeps no other from its end.
    let ends = world.ns.touch(["c", "a"], early).unwrap();
    assert_eq!(ends[0].as_ref().unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!((world.row("a").expires_at, world.row("c").expires_at), (Some(early), Some(late)));
    world.check();
    // What takes a place ends before it takes the place: by a lifetime, and by its tier.
    let mut short = text("Ann has a desk at Globex").key("d");
    short.fields.tier = Some(Tier::Working);
    let short = world.add(short).id;
    let lent = world.add(text("Ann is lent to Globex").key("e").expiry(span("30d"))).id;
    world.add(text("Ann works in Ghent").key("f"));
    for (key, id) in [("d", short), ("e", lent)] {
        let end = world.row(id).expires_at.unwrap();
        for name in [key, &id.to_string()] {
            let why = world.ns.supersede_all(["f"], name, SupersedeMode::Replaced, Some(at)).unwrap_err();
            let says =
                format!("at: must lie before {end}, when the memory that takes the place ends (got {at})");
            assert_eq!((why.kind(), why.to_string()), (ErrorKind::Invalid, says));
        }
        world.ns.supersede_all(["f"], key, SupersedeMode::Replaced, Some(world.ahead("1h"))).unwrap();
        world.ns.restore("f").unwrap();
    }
    world.check();
}

/// LIFE-1: a text that takes the place of others at an instant lives from then on, with a key and without, and so does its correction.
#[test]
fn life_1_a_text_that_takes_a_place_later_lives_from_then_on() {
    for (key, expiry, tier, lives) in [
        (Some("a"), Some("3h"), None, "3h"),
        (None, Some("3h"), None, "3h"),
        (Some("a"), None, Some(Tier::Working), "72h"),
        (None, None, Some(Tier::Working), "72h"),
    ] {
        let world = World::new();
        let at = world.ahead("60d");
        let old = world.add(Draft { key: key.map(str::to_owned), ..text("Ann works at Acme") }).id;
        let mut new = text("Ann works at Globx");
        new.expiry = expiry.map(|ttl| span(ttl).into());
        new.fields.tier = tier;
        let replaced = SupersedeMode::Replaced;
        let mut id = world.ns.replace([old.to_string()], new, replaced, Some(at)).unwrap().id;
        for say in ["Ann works at Globx", "Ann works at Globex"] {
            id = world.ns.update(id.to_string(), Patch::new().text(say)).unwrap().id;
            assert_eq!(world.row(id).expires_at, Some(at.plus(span(lives))), "{key:?} {tier:?} {say}");
        }
        world.check();
    }
}
