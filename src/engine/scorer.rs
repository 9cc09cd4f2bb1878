//! Asking the scorer of a handle: on a thread of its own, with a deadline.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use crate::hygiene::{Judge, Scorer};
use crate::model::{Goal, Memory, MemoryId};
use crate::recall::{Got, Reader};

/// Memories with a row of the journal each, of those about which the hook gave no answer in one pass.
const NAMED_MAX: usize = 100;

/// The scorer of a handle.
#[derive(Clone)]
pub(super) struct AttachedScorer {
    pub(super) scorer: Arc<dyn Scorer>,
    /// How long an answer may take.
    pub(super) deadline: Duration,
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

/// One sort of answers that do not count.
pub(super) struct Fault {
    /// What was asked.
    pub(super) asked: &'static str,
    /// Why there was no answer.
    pub(super) why: &'static str,
    /// The first memories that it was asked of.
    pub(super) named: Vec<MemoryId>,
    /// How many more there were.
    pub(super) unnamed: u64,
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

impl<'p> Asking<'p> {
    pub(super) fn new(attached: AttachedScorer, reader: Reader<'p>) -> Self {
        let (worker, hangs) = (RefCell::new(None), Cell::new(false));
        Asking { attached, reader, worker, hangs, faults: RefCell::default() }
    }

    /// What was asked without an answer that counts, and why, each once.
    pub(super) fn faults(&self) -> Vec<Fault> {
        let all = self.faults.take().into_iter();
        all.map(|((asked, why), Faults { named, unnamed })| Fault { asked, why, named, unnamed }).collect()
    }

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
