//! A run of summaries that ends in an error holds no sources (GC-15, GC-23).

use std::sync::Arc;

use crate::disk::{Image, Plan, SimDisk, Site, broken};
use oubliette::gc::{Extractive, GcRunOptions, InputPack, PlanState, Summarizer};
use oubliette::{Database, Draft, Error, ErrorKind, Kind, Result};

const TEXTS: [&str; 2] = [
    "Ann: The boiler broke on 3 March. It is so cold here, and there is no hot water for any of us. What should we do?",
    "Bob: The plumber asks for 480 euros. I told him that this is much more than we had. Should we do it all the same?",
];

fn written() -> (Database, SimDisk) {
    let disk = SimDisk::new(Image::default());
    let db = Database::builder().disk(Arc::new(disk.clone())).secret([3; 32]).open("m.oub").unwrap();
    let ns = db.namespace("team").unwrap();
    for text in TEXTS {
        let old = "2025-01-02T10:00:00Z".parse().unwrap();
        ns.add(Draft::new(text).kind(Kind::Message).channel("home").created_at(old)).unwrap();
    }
    (db, disk)
}

/// Writes a summary, and then something happens.
struct Then<F: Fn() + Send + Sync>(F);

impl<F: Fn() + Send + Sync> Summarizer for Then<F> {
    fn summarize(&self, pack: &InputPack) -> Result<String> {
        let summary = Extractive::default().summarize(pack);
        (self.0)();
        summary
    }
}

/// Wherever the disk fails once in the commit of a summary.
#[test]
fn a_plan_whose_run_failed_is_given_up() {
    let mut failed = 0;
    for skipped in 0..1_000 {
        let (db, disk) = written();
        let ns = db.namespace("team").unwrap();
        let fail = || {
            let at = disk.changes() + skipped;
            disk.fail(Plan { site: Site::Change, at, lasting: false, error: broken });
        };
        let run = ns.gc_run(&Then(fail), &GcRunOptions::default(), |_| ());
        if !disk.has_failed() {
            assert!(run.is_ok() && failed > 0, "{failed} of {skipped} runs failed");
            return;
        }
        let Err(why) = run else { continue };
        failed += 1;
        assert_eq!(why.kind(), ErrorKind::Retry, "{why}");
        assert!(!matches!(why, Error::PlanOpen { .. }), "one failure alone: {why}");
        let plan = ns.gc_plans().unwrap().remove(0);
        assert_ne!(plan.state, PlanState::Open, "after {skipped} changes");
        if plan.state == PlanState::Aborted {
            assert!(plan.reason.unwrap().contains("the run that made it failed"));
            let again = ns.gc_run(&Extractive::default(), &GcRunOptions::default(), |_| ()).unwrap();
            assert_eq!((again.committed, again.sources), (1, 2), "its sources are free");
        }
    }
    panic!("no run ended without a failure");
}

#[test]
fn a_plan_that_can_not_be_given_up_is_named_with_both_errors() {
    let (db, _) = written();
    let ns = db.namespace("team").unwrap();
    let close = || db.clone().close().unwrap();
    let why = ns.gc_run(&Then(close), &GcRunOptions::default(), |_| ()).unwrap_err();
    assert_eq!(why.kind(), ErrorKind::Closed);
    let Error::PlanOpen { plan, source, abort } = why else { panic!("{why}") };
    assert_eq!([source.kind(), abort.kind()], [ErrorKind::Closed; 2]);
    assert_eq!(plan.len(), 36, "an id");
}

/// Has so much to say of the messages of one channel that no memory can hold it.
struct Verbose;

impl Summarizer for Verbose {
    fn summarize(&self, pack: &InputPack) -> Result<String> {
        let answer = Extractive::default().summarize(pack)?;
        if !pack.sources[0].text.contains("attic") {
            return Ok(answer);
        }
        let mut summary: serde_json::Value = serde_json::from_str(&answer).unwrap();
        summary["decisions"] = serde_json::json!(["word ".repeat(14_000)]);
        Ok(summary.to_string())
    }
}

#[test]
fn a_summary_past_a_bound_refuses_its_group_alone() {
    let (db, _) = written();
    let ns = db.namespace("team").unwrap();
    for text in TEXTS {
        let old = "2025-01-01T10:00:00Z".parse().unwrap();
        let text = text.replace("here", "in the attic");
        ns.add(Draft::new(text + " In the attic.").kind(Kind::Message).channel("attic").created_at(old))
            .unwrap();
    }
    for options in [GcRunOptions { dry_run: true, ..GcRunOptions::default() }, GcRunOptions::default()] {
        let done = ns.gc_run(&Verbose, &options, |_| ()).unwrap();
        assert_eq!((done.groups, done.refused, done.committed, done.sources), (2, 1, 1, 2));
        assert!(done.failures[0].contains("must have at most 65536 bytes of JSON"), "{:?}", done.failures);
    }
}
