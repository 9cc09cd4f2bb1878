//! Memories that move from tier to tier: those that nobody uses go down, those in use go up.

use std::sync::Arc;

use crate::world::{World, axis, span, text};
use oubliette::exchange::{Export, VectorsTo};
use oubliette::gc::{Extractive, InputPack, Summarizer};
use oubliette::maintain::{DemoteReport, MaintainOptions, Pass, PassReport, PromoteReport, RunId};
use oubliette::memory::{Expiry, Field, Tier};
use oubliette::policy::Syntax;
use oubliette::report::Op;
use oubliette::{Database, Draft, Error, Kind, Memory, MemoryId, Patch, Query, Result};

/// A world whose policy is the default with these keys.
fn with(policy: &str) -> World {
    let world = World::new();
    world.db.set_policy(policy, Syntax::Toml).unwrap();
    world
}

/// Runs a pass, with its run if it wrote anything.
fn run(world: &World, pass: Pass) -> (Option<RunId>, PassReport) {
    let mut report = world.ns.maintain_with(&MaintainOptions::live().passes([pass])).unwrap();
    (report.run, report.passes.remove(0))
}

/// An export of every memory in every state.
fn exported(db: &Database) -> String {
    let mut lines = Vec::new();
    let export = Export { all_states: true, ..Export::new(["default".parse().unwrap()]) };
    export.write(&db.snapshot().unwrap(), &mut lines, "lines", VectorsTo::<std::io::Empty>::Lines).unwrap();
    // Runs and tombstones tell what maintenance did, and undo does not unsay it.
    let lines = String::from_utf8(lines).unwrap();
    lines.lines().filter(|line| line.contains("\"text\"")).collect::<Vec<_>>().join("\n")
}

/// Gives a memory so many uses, the last of them now.
fn used(world: &World, id: MemoryId, times: u64) {
    let mut patch = Patch::default();
    patch.fields.retrieval_count = Some(times);
    patch.fields.last_retrieved = Field::Value(world.now());
    world.ns.update(id, patch).unwrap();
}

fn little(name: &str) -> Draft {
    text(name).importance(0.49)
}

const DEMOTING: &str = "sweeper.demote_after = '7d'";

#[test]
fn v168_a_durable_memory_that_matters_little_and_was_never_used_becomes_episodic() {
    let world = with(DEMOTING);
    let id = world.add(little("the old gate").vector(axis(0))).id;
    world.advance("8d");
    let before = (exported(&world.db), world.row(id));
    let dry = world.ns.maintain_with(&MaintainOptions::default().passes([Pass::Demote])).unwrap();
    assert_eq!((dry.passes[0].planned, dry.run), (1, None));
    assert_eq!(exported(&world.db), before.0, "a dry run writes nothing");
    let (run, report) = run(&world, Pass::Demote);
    assert_eq!((report.planned, report.changed, report.tombstoned), (1, 1, 0));
    let details = report.report.get::<DemoteReport>().unwrap();
    assert_eq!((details.unused, details.demoted, details.exempt), (1, 1, 0));
    let row = world.row(id);
    assert_eq!((row.tier, row.expires_at), (Tier::Episodic, Some(world.ahead("30d"))));
    assert_eq!((row.updated_at, row.confidence), (before.1.updated_at, Some(0.4)));
    assert_eq!(row.version, before.1.version + 1);
    let undone = world.ns.undo(run.unwrap()).unwrap();
    assert_eq!((undone.restored, undone.lost.len()), (1, 0));
    assert_eq!(exported(&world.db), before.0);
    world.check();
}

#[test]
fn v169_what_matters_was_used_is_pinned_written_lately_or_exempt_stays() {
    let world = with(DEMOTING);
    world.add(text("of the ordinary importance"));
    let seen = world.add(little("used once")).id;
    used(&world, seen, 1);
    world.add(little("pinned").tag("pinned"));
    world.add(
        little("a snapshot").kind(Kind::Snapshot).metadata(serde_json::json!({"timestamp": "2026-01-02"})),
    );
    world.add(little("never ends, says its writer").expiry(Expiry::Never));
    world.add(little("already short").tier(Tier::Working).expiry(span("300d")));
    world.advance("7d");
    // Written at the very instant: not before it.
    let (run, report) = run(&world, Pass::Demote);
    let details = report.report.get::<DemoteReport>().unwrap();
    assert_eq!((report.planned, run), (0, None));
    assert_eq!((details.unused, details.exempt), (0, 0));
    world.advance("1ms");
    let report = self::run(&world, Pass::Demote).1;
    let details = report.report.get::<DemoteReport>().unwrap();
    assert_eq!((report.planned, details.unused, details.exempt), (0, 1, 1), "the snapshot is exempt");
    world.check();
}

#[test]
fn a_caller_is_believed_more_than_demotion_in_profile_v2() {
    let world = with("sweeper.demote_after = '7d'\ndemote.profile = 'v2'");
    let say = |name: &str, importance, confidence| text(name).importance(importance).confidence(confidence);
    let doubted = world.add(say("doubted", 0.74, 0.3)).id;
    world.add(say("handed over", 0.74, 0.3).tag("handoff"));
    world.add(say("believed", 0.74, 0.7));
    world.add(say("important", 0.75, 0.3));
    let unknown = world.add(say("without a confidence", 0.5, 0.3)).id;
    let mut patch = Patch::default();
    patch.fields.confidence = Field::Null;
    world.ns.update(unknown, patch).unwrap();
    world.advance("8d");
    let report = run(&world, Pass::Demote).1;
    let details = report.report.get::<DemoteReport>().unwrap();
    assert_eq!((details.unused, details.demoted, details.exempt), (4, 1, 3));
    assert_eq!(world.row(doubted).tier, Tier::Episodic);
    // Confidence falls with time, so the believed one follows: 0.7 - 0.05 × 7.1 weeks.
    world.advance("50d");
    assert_eq!(run(&world, Pass::Demote).1.changed, 1);
    world.check();
}

/// V-249: a use that no commit has counted keeps a memory, also in a dry run.
#[test]
fn v249_a_use_before_the_pass_keeps_a_memory() {
    let world = with(DEMOTING);
    let id = world.add(little("the harbour gate").vector(axis(0))).id;
    world.advance("8d");
    world.ns.search(Query::vector(axis(0)).track(true)).unwrap();
    let dry = world.ns.maintain_with(&MaintainOptions::default().passes([Pass::Demote])).unwrap();
    assert_eq!(dry.passes[0].planned, 0);
    assert_eq!(run(&world, Pass::Demote).1.planned, 0);
    assert_eq!(world.row(id).tier, Tier::Semantic);
    world.check();
}

/// LIFE-59: what a plan saw as unused and was used since stays, though its version is the same.
#[test]
fn a_use_between_plan_and_pass_keeps_a_memory() {
    let world = with(DEMOTING);
    let id = world.add(little("the harbour gate").vector(axis(0))).id;
    world.advance("8d");
    let options = MaintainOptions::live().passes([Pass::Demote]);
    let plan = world.ns.plan(&options).unwrap();
    world.ns.search(Query::vector(axis(0)).track(true)).unwrap();
    world.db.flush_access().unwrap();
    let report = world.ns.carry_out(&plan, &options).unwrap();
    assert_eq!((report.planned, report.changed, report.skipped), (1, 0, 1));
    assert_eq!(world.row(id).tier, Tier::Semantic);
}

#[test]
fn a_demoted_memory_lives_on_with_its_uses_and_ends_without_them() {
    let world = with("sweeper.demote_after = '7d'\nundo.horizon = '100d'");
    let [kept, gone] = [0, 1].map(|at| world.add(little(&format!("gate {at}")).vector(axis(at))).id);
    world.advance("8d");
    let demoted = run(&world, Pass::Demote).0.unwrap();
    world.advance("29d");
    world.ns.search(Query::vector(axis(0)).k(1).track(true)).unwrap();
    world.db.flush_access().unwrap();
    assert_eq!(world.row(kept).expires_at, Some(world.ahead("30d")));
    world.advance("2d");
    assert_eq!(world.live(), [kept]);
    run(&world, Pass::Expire);
    // The demotion is taken back of the one that is there, with its use; the other ended meanwhile.
    let undone = world.ns.undo(demoted).unwrap();
    assert_eq!((undone.restored, undone.lost.len()), (1, 1), "{:?}", undone.lost);
    let row = world.row(kept);
    assert_eq!((row.tier, row.expires_at, row.retrieval_count), (Tier::Semantic, None, 1));
    assert!(!world.is_live(gone));
    world.check();
}

fn working(name: &str) -> Draft {
    text(name).tier(Tier::Working)
}

#[test]
fn a_memory_in_use_is_promoted_and_the_promotion_is_taken_back() {
    let world = World::new();
    let long = "a long account of the day ".repeat(12);
    let [fact, skill, procedure, report, seldom] = [
        working("Ann lives in Ghent"),
        working("how to sail").kind(Kind::Skill),
        text("turn the key twice").tier(Tier::Episodic).tag("procedure"),
        working(&long),
        working("used twice"),
    ]
    .map(|draft| world.add(draft).id);
    for (id, times) in [(fact, 3), (skill, 4), (procedure, 40), (report, 3), (seldom, 2)] {
        used(&world, id, times);
    }
    let pinned = world.add(working("pinned").tag("pinned")).id;
    used(&world, pinned, 9);
    let promised = world.add(working("promised").expiry(span("5d"))).id;
    used(&world, promised, 3);
    world.advance("1h");
    let before = exported(&world.db);
    let updated = world.row(fact).updated_at;
    let (done, told) = run(&world, Pass::Promote);
    let details = told.report.get::<PromoteReport>().unwrap();
    assert_eq!((told.planned, details.in_use, details.promoted, details.too_long), (5, 5, 5, 0));
    let is = |id: MemoryId| (world.row(id).tier, world.row(id).expires_at);
    assert_eq!(is(fact), (Tier::Semantic, None));
    assert_eq!(is(skill), (Tier::Procedural, None));
    assert_eq!(is(procedure), (Tier::Procedural, None));
    assert_eq!(is(report), (Tier::Episodic, Some(world.ahead("30d"))));
    assert_eq!(is(promised), (Tier::Semantic, Some(world.ahead("119h"))), "a promise stays");
    assert_eq!((world.row(seldom).tier, world.row(pinned).tier), (Tier::Working, Tier::Working));
    let row = world.row(fact);
    assert_eq!((row.confidence, row.last_consolidated_at), (Some(0.4), Some(world.now())));
    assert_eq!((row.updated_at, row.promoted_at), (updated, None));
    assert_eq!(world.row(report).promoted_at, Some(world.now()));
    world.check();
    // Once: a second run promotes nothing, and tells of the text that is too long.
    let (again, told) = run(&world, Pass::Promote);
    assert_eq!((again, told.planned, told.report.get::<PromoteReport>().unwrap().too_long), (None, 0, 1));
    let undone = world.ns.undo(done.unwrap()).unwrap();
    assert_eq!((undone.restored, undone.lost.len()), (5, 0), "{:?}", undone.lost);
    assert_eq!(exported(&world.db), before);
    world.check();
}

#[test]
fn a_sweep_promotes_once_in_an_interval() {
    let world = with("sweeper.stages = ['promote']\nttl.working = '30d'");
    let [first, second, third] = [0, 1, 2].map(|at| world.add(working(&format!("fact {at}"))).id);
    let sweep = || {
        let report = world.ns.maintain().unwrap();
        report.passes.iter().find(|pass| pass.pass == Pass::Promote).unwrap().changed
    };
    assert_eq!(sweep(), 0);
    used(&world, first, 3);
    assert_eq!(sweep(), 1, "nothing was promoted before, so nothing has to be waited for");
    used(&world, second, 3);
    world.advance("23h");
    assert_eq!(sweep(), 0);
    world.advance("1h");
    assert_eq!(sweep(), 1);
    used(&world, third, 3);
    assert_eq!(run(&world, Pass::Promote).1.changed, 1, "who names the pass does not wait");
}

type Distil = fn(&[Memory]) -> Result<Draft>;

/// Does with memories what a function says.
struct Distiller(Distil);

impl Summarizer for Distiller {
    fn summarize(&self, _: &InputPack) -> Result<String> {
        panic!("asked for a summary")
    }

    fn consolidate(&self, memories: &[Memory]) -> Result<Draft> {
        (self.0)(memories)
    }
}

fn distiller(distil: Distil) -> Arc<dyn Summarizer> {
    Arc::new(Distiller(distil))
}

fn joined(memories: &[Memory]) -> Result<Draft> {
    let texts: Vec<&str> = memories.iter().map(|memory| memory.text.as_str()).collect();
    Ok(Draft::new(texts.join("; ")).importance(0.8))
}

#[test]
fn memories_in_use_are_distilled_in_batches_with_their_sources() {
    let world = with("promote.batch = 20");
    let mut shared: Vec<MemoryId> =
        (0..41).map(|at| world.add(working(&format!("shared {at:02}"))).id).collect();
    let skills = ["tie a knot", "set a sail"]
        .map(|name| world.add(working(name).agent("sailor").kind(Kind::Skill)).id);
    for id in shared.iter().chain(&skills) {
        used(&world, *id, 3);
    }
    world.add(working("seldom used"));
    world.advance("1h");
    let before = exported(&world.db);
    let report = world.ns.consolidate(&distiller(joined)).unwrap();
    assert_eq!((report.shown, report.created.len(), report.left), (43, 4, 0));
    assert!(report.failures.is_empty());
    let made: Vec<Memory> = report.created.iter().map(|id| world.row(*id)).collect();
    assert_eq!(made.iter().map(|row| row.sources.len()).collect::<Vec<_>>(), [20, 20, 1, 2]);
    assert_eq!((made[0].tier, made[3].tier), (Tier::Semantic, Tier::Procedural), "both sources are skills");
    assert_eq!((made[0].expires_at, made[0].confidence), (None, Some(0.4)));
    assert_eq!(made[3].partition.agent_name(), Some("sailor"));
    assert_eq!(made[3].text, "tie a knot; set a sail");
    shared.sort();
    assert_eq!(made[0].sources, shared[..20]);
    let row = world.row(shared[0]);
    assert_eq!((row.tier, row.last_consolidated_at), (Tier::Episodic, Some(world.now())));
    assert_eq!((row.promoted_at, row.text.as_str()), (Some(world.now()), "shared 00"));
    world.check();
    // What was shown is not shown again, and the pass has nothing to do with it.
    assert_eq!(world.ns.consolidate(&distiller(joined)).unwrap().shown, 0);
    assert_eq!(run(&world, Pass::Promote).1.planned, 0);
    let undone = world.ns.undo(report.run.unwrap()).unwrap();
    assert_eq!(undone.lost, Vec::<String>::new());
    assert_eq!(exported(&world.db), before);
    world.check();
}

/// LIFE-70: a hook that fails, hangs, panics or answers nonsense leaves the memories as they are, and the journal tells.
#[test]
fn a_distiller_without_a_good_answer_changes_nothing() {
    let world = with("promote.deadline = '3s'");
    let id = world.add(working("useful")).id;
    used(&world, id, 3);
    let before = exported(&world.db);
    let cases: [(Distil, &str); 8] = [
        (|_| Err(Error::Closed), "closed"),
        (|_| panic!("out of words"), "panicked"),
        (
            |memories| {
                std::thread::sleep(std::time::Duration::from_secs(60));
                joined(memories)
            },
            "no answer within 3s",
        ),
        (|_| Ok(Draft::new("not a number").importance(f32::NAN)), "importance"),
        (|_| Ok(Draft::new("too much").importance(7.0)), "importance"),
        (|_| Ok(Draft::new(" ")), "text"),
        (|_| Ok(Draft::new("keyed").key("k")), "key"),
        (|_| Ok(Draft::new("with a vector").vector(axis(0))), "vector"),
    ];
    for (distil, why) in cases {
        let report = world.ns.consolidate(&distiller(distil)).unwrap();
        assert_eq!((report.shown, report.left, report.run), (1, 1, None), "{why}");
        assert!(report.created.is_empty());
        assert!(report.failures[0].contains(why), "{:?} says nothing of {why}", report.failures);
        assert_eq!(exported(&world.db), before, "{why}");
    }
    let told = world.ns.consolidate(&(Arc::new(Extractive::default()) as Arc<dyn Summarizer>)).unwrap();
    assert!(told.failures[0].contains("writes summaries only"));
    let refused = world.ns.changes(0, 1_000).unwrap();
    let refused = refused.changes.iter().filter(|change| change.op == Op::Refuse).count();
    assert_eq!(refused, 9, "the journal tells of each");
    assert_eq!(world.ns.consolidate(&distiller(joined)).unwrap().created.len(), 1, "and is asked again");
}

/// A memory that changed while the distiller was at work is left, with all that was shown beside it.
#[test]
fn a_memory_that_changes_under_the_distiller_is_left() {
    static WORLD: std::sync::Mutex<Option<(oubliette::Namespace, MemoryId)>> = std::sync::Mutex::new(None);
    let world = World::new();
    let [first, second] = ["one", "two"].map(|name| world.add(working(name)).id);
    used(&world, first, 3);
    used(&world, second, 3);
    *WORLD.lock().unwrap() = Some((world.ns.clone(), second));
    let report = world
        .ns
        .consolidate(&distiller(|memories| {
            let (ns, id) = WORLD.lock().unwrap().take().unwrap();
            ns.update(id, Patch::new().importance(0.9)).unwrap();
            joined(memories)
        }))
        .unwrap();
    assert_eq!((report.shown, report.left, report.created.len(), report.run), (2, 2, 0, None));
    assert_eq!(world.row(first).last_consolidated_at, None);
    assert_eq!(world.ns.consolidate(&distiller(joined)).unwrap().created.len(), 1);
}
