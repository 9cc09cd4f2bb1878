//! The tool that runs maintenance, in rounds, so that a caller who leaves does not wait for the rest.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::engine::{FailedPass, MaintainOptions, MaintainReport};
use crate::error::{Error, Result};
use crate::hygiene::RepairReport;
use crate::model::{Pass, RunId, Span};
use crate::tools::arguments::arguments;
use crate::tools::host::{Caller, Host};
use crate::tools::reading::{all, told};
use crate::tools::shape::{Shape, at_least, integer, set};

/// Milliseconds of a round, after which a caller who has left is noticed.
const ROUND_MS: i64 = 250;
/// Rounds of a second.
const ROUNDS: u64 = 4;

arguments! {
    /// The arguments of `run_maintenance`.
    MaintainArguments {
        passes: Option<Vec<Pass>> = set(Shape::Word(Pass::ALL.iter().map(|pass| pass.as_str()).collect()), 1, Pass::ALL.len())
            .optional().about(
                "Which passes; by default those that the policy enables. expire, superseded, limbo and retention remove what is over; \
                 collapse, near-duplicates and vector-duplicates unite what says the same; embed, index and repair serve the search.",
            );
        dry_run: Option<bool> = Shape::Flag.or(true).about("true tells what there is to do; false does it.");
        max_seconds: Option<u64> = integer(1, 600).or(20).about("How long to work; the next call goes on with the rest.");
    }
}

/// A pass over all rounds.
struct Told {
    pass: Pass,
    planned: u64,
    changed: u64,
    removed: u64,
    left: u64,
    run: Option<RunId>,
}

/// `run_maintenance`: until nothing is left to do, a pass has failed, the time is over or nobody waits any more. What the passes have done
/// is told, also of one that has failed, because it stands.
pub(super) fn run(host: &Host, args: MaintainArguments, caller: &dyn Caller) -> Result<Value> {
    let dry_run = args.dry_run.unwrap_or(true);
    let options = MaintainOptions {
        dry_run,
        budget: (!dry_run).then(|| Span::from_millis(ROUND_MS)),
        ..MaintainOptions::default().passes(args.passes.unwrap_or_default())
    };
    let (mut passes, mut runs, mut failed) = (Vec::new(), BTreeSet::new(), Vec::new());
    for _ in 0..args.max_seconds.unwrap_or(20).saturating_mul(ROUNDS) {
        let round = match host.namespace.maintain_with(&options) {
            Err(why) if !passes.is_empty() => {
                if let Error::PartlyDone { run, .. } = &why {
                    runs.extend(run.parse::<RunId>().ok());
                }
                failed.push(FailedPass::unbegun(&why));
                break;
            }
            round => round?,
        };
        let moved = add(&mut passes, &round);
        let (done, left) =
            passes.iter().fold((0, 0), |(done, left), pass| (done + pass.changed, left + pass.left));
        runs.extend(passes.iter().filter_map(|pass| pass.run).chain(round.run));
        failed.extend(round.failed);
        caller.progress(done, Some(done + left));
        if dry_run || left == 0 || !moved || !failed.is_empty() || caller.is_gone() {
            break;
        }
    }
    let passes = passes.iter().map(|told| {
        json!({
            "pass": told.pass, "planned": told.planned, "changed": told.changed, "removed": told.removed,
            "left": told.left, "run": told.run,
        })
    });
    let failed = failed.iter().map(|failed| json!({ "pass": failed.pass, "kind": failed.kind.to_string(), "why": failed.why, "hint": failed.hint }));
    Ok(json!({
        "dry_run": dry_run, "runs": runs, "passes": passes.collect::<Vec<_>>(), "failed": failed.collect::<Vec<_>>(),
    }))
}

/// Adds a round; tells whether it came any further.
fn add(passes: &mut Vec<Told>, round: &MaintainReport) -> bool {
    let mut moved = false;
    let of_failed = round.failed.iter().filter_map(|failed| failed.done.as_ref());
    for report in round.passes.iter().chain(of_failed) {
        let pass = report.pass;
        let at = passes.iter().position(|told| told.pass == pass).unwrap_or_else(|| {
            passes.push(Told { pass, planned: 0, changed: 0, removed: 0, left: 0, run: None });
            passes.len() - 1
        });
        let Some(told) = passes.get_mut(at) else { continue };
        told.planned = told.planned.max(report.planned);
        told.changed += report.changed;
        told.removed += report.tombstoned;
        told.left = report.left;
        // Before the first dead node can go, its neighbours are mended, which can take rounds by itself.
        let mended = report.report.get::<RepairReport>().is_some_and(|told| told.mended > 0);
        moved |= report.changed > 0 || mended;
        told.run = report.run.or(told.run);
    }
    moved
}

/// What `run_maintenance` answers.
pub(super) fn answer() -> Shape {
    let pass = Shape::Open(vec![
        told().required().named("pass"),
        at_least(0).required().about("Memories there are to work on.").named("planned"),
        at_least(0).required().named("changed"),
        at_least(0).required().named("removed"),
        at_least(0).required().about("What the next call goes on with.").named("left"),
        Shape::Any.required().about("Its last run.").named("run"),
    ]);
    let failed = Shape::Open(vec![
        Shape::Any
            .required()
            .about("Its name; null for one that an earlier part of the call had begun well.")
            .named("pass"),
        told().required().about("The kind of its error.").named("kind"),
        told().required().named("why"),
        told().required().about("What to do next.").named("hint"),
    ]);
    Shape::Open(vec![
        Shape::Flag.required().named("dry_run"),
        all(told()).required().about("The runs of the call, for memory_undo.").named("runs"),
        all(pass).required().about("What passes have done; of one that failed, too.").named("passes"),
        all(failed)
            .optional()
            .about("Passes that failed; what they have done before stands.")
            .named("failed"),
    ])
}
