//! The sweeper: a thread that maintains the file at intervals (LIFE-46, LIFE-47, LIFE-64), and summarizes (GC-8).

use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use oubliette::embed::embedder_fn;
use oubliette::gc::{Extractive, InputPack, Summarizer};
use oubliette::maintain::{MaintainOptions, Pass, SweepReport, Sweeper, SweeperConfig};
use oubliette::memory::Actor;
use oubliette::policy::Syntax;
use oubliette::{Database, Draft, Error, ErrorKind, Kind, Result, Span};

use crate::world::{DIM, World};

/// Longer than any sweep of these tests takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

fn every(interval: &str) -> SweeperConfig {
    SweeperConfig { interval: Some(interval.parse().unwrap()), ..SweeperConfig::default() }
}

/// A sweeper whose reports come through a channel.
fn reporting(db: &Database, config: SweeperConfig) -> (Sweeper, mpsc::Receiver<SweepReport>) {
    let (told, reports) = mpsc::channel();
    let on_sweep = Box::new(move |report: &SweepReport| drop(told.send(report.clone())));
    (db.sweeper(SweeperConfig { on_sweep: Some(on_sweep), ..config }).unwrap(), reports)
}

#[test]
fn the_first_sweep_begins_at_once_and_does_what_the_policy_enables() {
    let world = World::new();
    for apps in [4, 7] {
        let draft = Draft::new(format!("Gateway status: {apps} apps pending")).kind(Kind::Profile);
        world.ns.add(draft).unwrap();
    }
    world.db.set_policy("sweeper.stages = [\"collapse\", \"limbo\"]", Syntax::Toml).unwrap();
    let (sweeper, reports) = reporting(&world.db, every("1h"));
    let report = reports.recv_timeout(PATIENCE).unwrap();
    let passes: Vec<Pass> = report.passes.iter().map(|pass| pass.pass).collect();
    assert!(passes.starts_with(&[Pass::Collapse]), "{passes:?}");
    assert_eq!((report.failed.len(), report.passes[0].tombstoned), (0, 1));
    assert!(report.run.is_some());
    sweeper.stop();
    assert_eq!(world.ns.stats().unwrap().memories.live, 1);
}

#[test]
fn sweeps_come_back_at_the_interval_until_the_sweeper_is_dropped() {
    let world = World::new();
    let (sweeper, reports) = reporting(&world.db, every("1ms"));
    for _ in 0..3 {
        reports.recv_timeout(PATIENCE).unwrap();
    }
    drop(sweeper);
    // The sender went with the thread, so that nothing can come after what has come already.
    while reports.try_recv().is_ok() {}
    assert_eq!(reports.recv().unwrap_err(), mpsc::RecvError);
}

/// The sweeper was made by one handle, which goes: the file is open by the other.
#[test]
fn a_sweeper_ends_with_the_last_handle_whichever_started_it() {
    let world = World::new();
    let maker = world.db.with_actor(Actor::Tool);
    let (sweeper, reports) = reporting(&maker, every("1s"));
    reports.recv_timeout(PATIENCE).unwrap();
    drop(maker);
    for _ in 0..2 {
        reports.recv_timeout(PATIENCE).unwrap();
    }
    assert!(sweeper.is_running());
    sweeper.stop();
    world.db.sweeper(every("1h")).unwrap().stop();
}

#[test]
fn a_file_has_one_sweeper_and_an_interval_of_zero_is_none() {
    let world = World::new();
    let first = world.db.sweeper(every("1h")).unwrap();
    assert_eq!(world.db.clone().sweeper(every("1h")).unwrap_err().kind(), ErrorKind::Conflict);
    first.stop();
    let off = world.db.sweeper(SweeperConfig::default()).unwrap();
    assert!(!off.is_running());
    let negative = SweeperConfig { interval: Some(Span::from_millis(-5)), ..SweeperConfig::default() };
    assert!(!world.db.sweeper(negative).unwrap().is_running());
    assert!(world.db.sweeper(every("1h")).unwrap().is_running(), "the others hold no place");
}

#[test]
fn options_that_no_sweep_can_have_are_refused() {
    let world = World::new();
    for options in
        [MaintainOptions::default(), MaintainOptions { threads: Some(0), ..MaintainOptions::live() }]
    {
        let refused = world.db.sweeper(SweeperConfig { options, ..every("1h") }).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Invalid);
    }
    assert!(world.db.sweeper(every("1h")).is_ok(), "a refused one holds no place");
}

#[test]
fn the_thread_ends_with_the_file_and_does_not_keep_it_open() {
    let world = World::new();
    let (sweeper, reports) = reporting(&world.db, every("1h"));
    reports.recv_timeout(PATIENCE).unwrap();
    world.db.clone().close().unwrap();
    let begun = Instant::now();
    while sweeper.is_running() {
        assert!(begun.elapsed() < PATIENCE);
        std::thread::yield_now();
    }
    let failed = world.db.sweeper(every("1h")).unwrap_err();
    assert_eq!(failed.kind(), ErrorKind::Closed);
}

#[test]
fn wait_lasts_until_the_file_is_closed() {
    let world = World::new();
    let closing = world.db.clone();
    let on_sweep = Box::new(move |_: &SweepReport| drop(closing.clone().close()));
    let sweeper = world.db.sweeper(SweeperConfig { on_sweep: Some(on_sweep), ..every("1ms") }).unwrap();
    sweeper.wait();
    assert_eq!(world.ns.add("Ann prefers tea").unwrap_err().kind(), ErrorKind::Closed);
}

#[test]
fn a_pass_that_fails_is_told_and_the_next_ones_run() {
    let world = World::with(|builder| {
        let failing = embedder_fn("failing-1", DIM, |_: &[&str]| {
            Err(Error::Unavailable { why: "the model is away".to_owned() })
        });
        builder.embedder(failing.unwrap())
    });
    // Stored without a vector, since the embedder is away.
    world.ns.add("Ann prefers tea").unwrap();
    let (sweeper, reports) = reporting(&world.db, every("1h"));
    let report = reports.recv_timeout(PATIENCE).unwrap();
    let failed: Vec<Option<Pass>> = report.failed.iter().map(|failed| failed.pass).collect();
    assert_eq!(failed, [Some(Pass::Embed)]);
    assert!(report.failed[0].why.contains("the model is away"), "{report:?}");
    let passes: Vec<Pass> = report.passes.iter().map(|pass| pass.pass).collect();
    assert!(passes.ends_with(&[Pass::Index, Pass::Repair]), "{passes:?}");
    assert_eq!(sweeper.last_report(), Some(report));
}

/// Old messages of one channel, in a world whose sweeps summarize, sweep limbo and look for nothing else.
fn with_old_messages(policy: &str) -> World {
    let world = World::new();
    let policy = format!("sweeper.stages = ['prune', 'gc', 'limbo']\n{policy}");
    world.db.set_policy(&policy, Syntax::Toml).unwrap();
    old_messages(&world, "yard");
    world
}

fn old_messages(world: &World, channel: &str) {
    for at in 0..3 {
        let rest = "That is how it was, and so it will be for all of us. Well, when would you do that?";
        let draft =
            Draft::new(format!("Ann: Box {at} of {channel} went to Ghent{at}. {rest}")).kind(Kind::Message);
        world.ns.add(draft.channel(channel).created_at(world.ago("20d"))).unwrap();
    }
}

fn summarizing(summarizer: Arc<dyn Summarizer>) -> SweeperConfig {
    SweeperConfig { summarizer: Some(summarizer), ..every("1ms") }
}

/// MODEL-35: the budget of a sweep holds for all of its summaries together.
#[test]
fn model_35_a_sweep_lets_no_more_memories_go_for_summaries_than_its_budget() {
    let world = with_old_messages("budget = { share = 0.0, floor = 7 }");
    old_messages(&world, "harbour");
    old_messages(&world, "mill");
    let (sweeper, reports) = reporting(&world.db, summarizing(Arc::new(Extractive::default())));
    let first = reports.recv_timeout(PATIENCE).unwrap();
    sweeper.stop();
    let run = first.summaries[0].report.as_ref().unwrap();
    assert_eq!((run.committed, run.sources, run.budget_exhausted), (2, 6, true));
    assert!(run.failures.is_empty());
    assert_eq!(world.ns.stats().unwrap().memories.live, 2 + 3);
}

/// A group that no sweep could do keeps no other from its summary.
#[test]
fn model_35_a_group_above_the_budget_of_a_sweep_is_refused() {
    let world = with_old_messages("budget = { share = 0.0, floor = 4 }");
    for at in 0..2 {
        let draft = Draft::new(format!("Bob: Crate {at} waits for the crane.")).kind(Kind::Message);
        world.ns.add(draft.channel("yard").created_at(world.ago("20d"))).unwrap();
    }
    old_messages(&world, "harbour");
    let (sweeper, reports) = reporting(&world.db, summarizing(Arc::new(Extractive::default())));
    let first = reports.recv_timeout(PATIENCE).unwrap();
    sweeper.stop();
    let run = first.summaries[0].report.as_ref().unwrap();
    assert_eq!((run.committed, run.sources, run.refused), (1, 3, 1), "{:?}", run.failures);
    assert_eq!(world.ns.gc_report(None).unwrap().refusals.get("budget"), Some(&1));
}

#[test]
fn gc_8_a_sweeper_summarizes_between_its_passes_and_not_before_its_interval() {
    let world = with_old_messages("");
    let (sweeper, reports) = reporting(&world.db, summarizing(Arc::new(Extractive::default())));
    let next = || reports.recv_timeout(PATIENCE).unwrap();
    let first = next();
    let [swept] = &first.summaries[..] else { panic!("{first:?}") };
    let run = swept.report.as_ref().unwrap();
    assert_eq!((swept.namespace.as_str(), run.committed, run.sources), ("default", 1, 3));
    let passes: Vec<Pass> = first.passes.iter().map(|pass| pass.pass).collect();
    assert!(passes.starts_with(&[Pass::Prune, Pass::Limbo]), "{passes:?}");
    assert_eq!(first.failed, []);
    assert_eq!(world.ns.stats().unwrap().memories.live, 1);
    old_messages(&world, "harbour");
    for _ in 0..3 {
        assert_eq!(next().summaries, [], "gc.interval is not over");
    }
    world.clock.advance("6h".parse().unwrap());
    let later = std::iter::repeat_with(next).find(|report| !report.summaries.is_empty()).unwrap();
    assert_eq!(later.summaries[0].report.as_ref().unwrap().committed, 1);
    sweeper.stop();
    assert_eq!(world.ns.stats().unwrap().memories.live, 2);
    world.check();
}

#[test]
fn without_a_summarizer_or_without_the_stage_nothing_is_summarized() {
    let world = with_old_messages("");
    let (sweeper, reports) = reporting(&world.db, every("1h"));
    assert_eq!(reports.recv_timeout(PATIENCE).unwrap().summaries, []);
    sweeper.stop();
    world.db.set_policy("sweeper.stages = ['limbo']", Syntax::Toml).unwrap();
    let (sweeper, reports) = reporting(&world.db, summarizing(Arc::new(Extractive::default())));
    assert_eq!(reports.recv_timeout(PATIENCE).unwrap().summaries, []);
    sweeper.stop();
    // A call has no summarizer, and passes over the stage.
    world.db.set_policy("sweeper.stages = ['gc']", Syntax::Toml).unwrap();
    world.db.maintain().unwrap();
    assert_eq!(world.ns.stats().unwrap().memories.live, 3);
}

/// Never answers, or panics.
struct Lost {
    panics: bool,
}

impl Summarizer for Lost {
    fn summarize(&self, _: &InputPack) -> Result<String> {
        assert!(!self.panics, "out of words");
        loop {
            std::thread::park();
        }
    }
}

#[test]
fn a_summarizer_that_hangs_or_panics_stops_neither_the_sweep_nor_the_sweeper() {
    for panics in [false, true] {
        let world = with_old_messages("gc.deadline = '1s'");
        let (sweeper, reports) = reporting(&world.db, summarizing(Arc::new(Lost { panics })));
        let report = reports.recv_timeout(PATIENCE).unwrap();
        let run = report.summaries[0].report.as_ref().unwrap();
        let why = if panics { "panicked" } else { "no answer within 1s" };
        assert_eq!((run.aborted, run.committed), (1, 0));
        assert!(run.failures[0].contains(why), "{:?}", run.failures);
        assert!(report.passes.iter().any(|pass| pass.pass == Pass::Limbo), "the next stage ran");
        sweeper.stop();
        assert_eq!(world.ns.stats().unwrap().memories.live, 3);
        world.check();
    }
    let world = with_old_messages("gc.deadline = '1h'");
    let (sweeper, _) = reporting(&world.db, summarizing(Arc::new(Lost { panics: false })));
    while world.ns.gc_plans().unwrap().is_empty() {
        std::thread::yield_now();
    }
    let begun = Instant::now();
    sweeper.stop();
    assert!(begun.elapsed() < PATIENCE, "it does not wait for the deadline");
}

/// The stages behind the summaries wait for them, so a sweep gives up on a summarizer that answers nobody.
#[test]
fn a_summarizer_that_answers_nobody_is_not_asked_for_every_group() {
    let world = with_old_messages("gc.deadline = '1s'");
    ["shed", "mill", "quay", "barn"].into_iter().for_each(|channel| old_messages(&world, channel));
    let (sweeper, reports) = reporting(&world.db, summarizing(Arc::new(Lost { panics: false })));
    let report = reports.recv_timeout(PATIENCE).unwrap();
    sweeper.stop();
    let run = report.summaries[0].report.as_ref().unwrap();
    assert_eq!((run.groups, run.aborted), (3, 3));
    assert!(report.passes.iter().any(|pass| pass.pass == Pass::Limbo), "the next stage ran");
    world.check();
}
