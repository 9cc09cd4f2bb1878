//! Asking the scorer of a handle: on a thread of its own, with a deadline.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use crate::engine::database::Database;
use crate::engine::inner::Inner;
use crate::error::{Error, Result};
use crate::hygiene::{Judge, Scorer};
use crate::index::Published;
use crate::ledger::{Context, Why};
use crate::model::{Actor, Evidence, Goal, Memory, MemoryId, NamespaceName, Op, RuleId, Span, Time};
use crate::recall::{Got, Reader};
use crate::store::NsId;

/// Longest deadline of one answer.
const DEADLINE_MAX: Span = Span::from_hours(1);
/// Memories with a row of the journal each, of those about which the hook gave no answer in one pass.
const NAMED_MAX: usize = 100;

/// The scorer of a handle.
#[derive(Clone)]
pub(super) struct AttachedScorer {
    scorer: Arc<dyn Scorer>,
    deadline: Duration,
}

/// What the hook is asked.
enum Asked {
    Importance(Box<Memory>),
    Relevance(Box<Memory>, Vec<Goal>),
}

impl Asked {
    const fn name(&self) -> &'static str {
        match self {
            Asked::Importance(_) => "importance",
            Asked::Relevance(..) => "relevance",
        }
    }
}

/// Answers of the hook, or why there is none.
type Answer = std::result::Result<f64, &'static str>;

/// The thread on which the hook works. One that hangs is left alone, and ends when the hook does.
struct Worker {
    asked: Sender<Asked>,
    answers: Receiver<Answer>,
}

impl Worker {
    fn start(scorer: Arc<dyn Scorer>) -> Option<Self> {
        let (asked, coming) = channel::<Asked>();
        let (answering, answers) = channel();
        let work = move || {
            for asked in coming {
                let answer = catch_unwind(AssertUnwindSafe(|| match &asked {
                    Asked::Importance(memory) => scorer.importance(memory),
                    Asked::Relevance(memory, goals) => scorer.relevance(memory, goals),
                }));
                let answer = match answer {
                    Ok(Ok(score)) if (0.0..=1.0).contains(&score) => Ok(score),
                    Ok(Ok(_)) => Err("out of range"),
                    Ok(Err(why)) => {
                        tracing::warn!(%why, "the scorer has failed");
                        Err("failed")
                    }
                    Err(_) => Err("panicked"),
                };
                if answering.send(answer).is_err() {
                    break;
                }
            }
        };
        let thread = std::thread::Builder::new().name("oubliette-scorer".to_owned()).spawn(work);
        thread.ok().map(|_| Worker { asked, answers })
    }

    fn ask(&self, asked: Asked, deadline: Duration) -> Answer {
        if self.asked.send(asked).is_err() {
            return Err("panicked");
        }
        match self.answers.recv_timeout(deadline) {
            Ok(answer) => answer,
            Err(RecvTimeoutError::Timeout) => Err("late"),
            Err(RecvTimeoutError::Disconnected) => Err("panicked"),
        }
    }
}

/// The first memories about which the hook gave no answer, and how many more there were.
#[derive(Clone, Debug, Default, PartialEq)]
struct Faults {
    named: Vec<MemoryId>,
    unnamed: u64,
}

/// The scorer of a handle, as the planning of one pass asks it.
pub(super) struct Asking<'p> {
    attached: AttachedScorer,
    reader: Reader<'p>,
    worker: RefCell<Option<Worker>>,
    /// Whether the hook hangs: it is asked no more.
    hangs: Cell<bool>,
    /// By what was asked, and why there was no answer.
    faults: RefCell<BTreeMap<(&'static str, &'static str), Faults>>,
}

impl Asking<'_> {
    fn ask(&self, id: MemoryId, about: impl FnOnce(Box<Memory>) -> Asked) -> Option<f64> {
        if self.hangs.get() {
            return None;
        }
        let Ok(Got::Memory(memory)) = self.reader.get(&id.to_string(), false) else { return None };
        let asked = about(memory);
        let name = asked.name();
        let mut worker = self.worker.borrow_mut();
        if worker.is_none() {
            *worker = Worker::start(Arc::clone(&self.attached.scorer));
        }
        let answer =
            worker.as_ref().map_or(Err("failed"), |worker| worker.ask(asked, self.attached.deadline));
        match answer {
            Ok(score) => Some(score),
            Err(why) => {
                self.hangs.set(why == "late");
                let mut all = self.faults.borrow_mut();
                let faults = all.entry((name, why)).or_default();
                if faults.named.len() < NAMED_MAX {
                    faults.named.push(id);
                } else {
                    faults.unnamed += 1;
                }
                None
            }
        }
    }
}

impl Judge for Asking<'_> {
    fn importance(&self, id: MemoryId) -> Option<f64> {
        self.ask(id, Asked::Importance)
    }

    fn relevance(&self, id: MemoryId, goals: Vec<Goal>) -> Option<f64> {
        self.ask(id, |memory| Asked::Relevance(memory, goals))
    }
}

impl Inner {
    /// The scorer of the handle, for a plan on this state; none without one.
    pub(super) fn asking<'p>(
        &'p self,
        published: &'p Published,
        namespace: &'p NamespaceName,
        now: Time,
    ) -> Result<Option<Asking<'p>>> {
        let Some(attached) = self.scorer.read().clone() else { return Ok(None) };
        Ok(Some(Asking {
            attached,
            reader: Reader::open(published, namespace, &self.secret, now)?,
            worker: RefCell::new(None),
            hangs: Cell::new(false),
            faults: RefCell::default(),
        }))
    }

    /// Writes to the journal about which memories an answer of the scorer did not count, and why.
    pub(super) fn journal_faults(&self, ns: NsId, asking: &Asking<'_>) -> Result<()> {
        let faults = asking.faults.take();
        if faults.is_empty() {
            return Ok(());
        }
        self.run_alone(|session| {
            if session.is_dropping(ns)? {
                return Ok(());
            }
            let context = Context { actor: Actor::Sweeper, ..session.context(ns, None) };
            for ((asked, why), Faults { unnamed, named }) in &faults {
                let mut note = |id: Option<MemoryId>, told: String| {
                    let evidence = Evidence { signature: Some(told), ..Evidence::default() };
                    let (subject, rule) = (id.map(|id| (id, None)), RuleId::SCORER);
                    session.ledger.journal(
                        &context,
                        Op::Unscored,
                        subject,
                        Vec::new(),
                        Why { rule, evidence },
                    )
                };
                for id in named {
                    note(Some(*id), format!("{asked}: {why}"))?;
                }
                if *unnamed > 0 {
                    note(None, format!("{asked}: {why}, {unnamed} more"))?;
                }
            }
            Ok(())
        })
    }
}

impl Database {
    /// Lets a hook score memories in place of the built-in formulas, for this handle and its clones, from now on. An answer that
    /// takes longer than `deadline`, 1 ms to 1 h, does not count, and a hook that was late once is asked no more in that
    /// pass.
    ///
    /// ```
    /// use oubliette::maintain::Scorer;
    /// use oubliette::memory::Goal;
    /// use oubliette::{Memory, Result};
    /// struct Half;
    /// impl Scorer for Half {
    ///     fn importance(&self, _: &Memory) -> Result<f64> {
    ///         Ok(0.5)
    ///     }
    ///     fn relevance(&self, _: &Memory, _: &[Goal]) -> Result<f64> {
    ///         Ok(0.5)
    ///     }
    /// }
    /// # let folder = tempfile::tempdir()?;
    /// # let db = oubliette::Database::open(folder.path().join("m.oub"))?;
    /// db.use_scorer(Half, "100ms".parse()?)?;
    /// assert!(db.use_scorer(Half, "0".parse()?).is_err());
    /// db.detach_scorer();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Invalid` for a deadline out of its bounds.
    pub fn use_scorer(&self, scorer: impl Scorer + 'static, deadline: Span) -> Result<()> {
        if deadline <= Span::ZERO || deadline > DEADLINE_MAX {
            return Err(Error::invalid(
                "deadline",
                format!("must be above 0 and at most {DEADLINE_MAX}"),
                deadline,
            ));
        }
        let deadline = Duration::from_millis(deadline.as_millis().unsigned_abs());
        *self.inner.scorer.write() = Some(AttachedScorer { scorer: Arc::new(scorer), deadline });
        Ok(())
    }

    /// Leaves the handle without a scorer: the built-in formulas stand.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let db = oubliette::Database::open(folder.path().join("m.oub"))?;
    /// db.detach_scorer();
    /// assert!(db.namespace("team")?.goals()?.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn detach_scorer(&self) {
        *self.inner.scorer.write() = None;
    }
}
