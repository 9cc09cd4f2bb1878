//! A commit from the inside: the ledger of its transaction, and everything that units are decided with.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use crate::engine::database::Inner;
use crate::engine::embed::Given;
use crate::engine::queue::{Committer, failed_together};
use crate::error::{Error, Result};
use crate::index::{Linked, Published};
use crate::ingest::{Desk, Rulebook, open_namespace};
use crate::ledger::{Context, Ledger};
use crate::limits::SLICE_ROWS_MAX;
use crate::model::{Actor, IdSource, NamespaceName, Query, RunId};
use crate::policy::Policy;
use crate::recall::{Reader, SearchResult};
use crate::store::control::dropped_name;
use crate::store::{Durability, IndexId, NsId, Rows, Table, TextId, WriteTx};
use crate::text::Messages;

/// Instants that came without a write, applied at the head of each unit: bounds what a unit pays for others.
const SETTLE_PER_UNIT: usize = 64;

/// The policy in force, with what journal rows carry of it.
#[derive(Debug)]
pub(super) struct InForce {
    pub(super) policy: Policy,
    /// What the write ladder looks up in it.
    pub(super) rules: Rulebook,
    /// How it reads messages: its patterns, compiled.
    pub(super) messages: Messages,
    /// Id of the analyzer of full-text indexes that are new.
    pub(super) analyzer: String,
    pub(super) number: u64,
    pub(super) hash: [u8; 8],
}

/// One caller's work in a group: it may run more than once, each time in a fresh transaction.
pub(super) type Work = Box<dyn FnMut(&mut Session<'_, '_, '_>) -> Result<()> + Send>;

/// What units see of the transaction that they share.
pub(super) struct Session<'s, 'a, 't> {
    pub(super) ledger: &'s mut Ledger<'a, 't>,
    pub(super) in_force: &'s InForce,
    pub(super) ids: &'s dyn IdSource,
    /// Name and dimensions of the space that the vectors of the handle's embedder open.
    pub(super) embeds: Option<(Arc<str>, usize)>,
    pub(super) actor: Actor,
    /// The state that the transaction began with.
    pub(super) published: &'s Published,
    /// Namespaces to which it may have written.
    opened: BTreeSet<NamespaceName>,
    /// Namespaces whose rows are gone with this commit.
    pub(super) dropped: Vec<NsId>,
    /// Graphs that this commit replaces; none where it drops one.
    pub(super) linked: BTreeMap<IndexId, Option<Linked>>,
    /// Indexes that this commit has written anew.
    pub(super) reset: BTreeSet<IndexId>,
}

/// What a commit means to the images of indexes, beside the blocks of codes that it wrote.
#[derive(Debug, Default)]
pub(super) struct Turn {
    pub(super) dropped: Vec<NsId>,
    pub(super) linked: BTreeMap<IndexId, Option<Linked>>,
    pub(super) reset: BTreeSet<IndexId>,
}

impl<'a, 't> Session<'_, 'a, 't> {
    /// The desk of a namespace, which is made if need be. What came due there is settled first.
    pub(super) fn desk<'d>(
        &'d mut self,
        namespace: &'d NamespaceName,
        run: Option<RunId>,
        no_dedup: bool,
    ) -> Result<Desk<'d, 'a, 't>> {
        let ns = open_namespace(self.ledger, namespace)?;
        self.opened.insert(namespace.clone());
        let context = self.context(ns, run);
        self.ledger.settle(&context, SETTLE_PER_UNIT)?;
        Ok(Desk {
            ledger: self.ledger,
            context,
            namespace,
            policy: &self.in_force.policy,
            rules: &self.in_force.rules,
            messages: &self.in_force.messages,
            ids: self.ids,
            embeds: self.embeds.clone(),
            no_dedup,
            skip_instructions: false,
            published: self.published,
            near: None,
            guards: OnceCell::new(),
        })
    }

    /// The desk of a namespace that is there; none makes one for a write that can only find nothing.
    ///
    /// # Errors
    /// `NotFound` for a namespace that no write has made.
    pub(super) fn known_desk<'d>(&'d mut self, namespace: &'d NamespaceName) -> Result<Desk<'d, 'a, 't>> {
        if self.ledger.tx.namespace(namespace.as_str())?.is_none() {
            return Err(Error::NotFound { what: "namespace", name: namespace.to_string() });
        }
        self.desk(namespace, None, false)
    }

    /// Reads a namespace with what the transaction has written so far.
    pub(super) fn reader<'d>(&'d self, namespace: &'d NamespaceName) -> Result<Reader<'d, WriteTx<'t>>> {
        Reader::open(&*self.ledger.tx, namespace, self.ledger.secret, self.ledger.now())
    }

    /// Searches a namespace in the state that the transaction began with.
    ///
    /// # Errors
    /// `Conflict` if the transaction has written to the namespace.
    pub(super) fn search(&self, namespace: &NamespaceName, query: &Query) -> Result<SearchResult> {
        if self.opened.contains(namespace) {
            return Err(Error::Conflict {
                what: "search within a batch".to_owned(),
                why: format!("the batch has written to {namespace}: search before, or after the batch"),
            });
        }
        let reader = Reader::open(self.published, namespace, self.ledger.secret, self.ledger.now())?;
        reader.search(query, &self.in_force.policy.recall)
    }

    /// Whether a namespace is still there with the number that was read before the transaction began: what upkeep writes to
    /// one that was dropped meanwhile would be left over.
    pub(super) fn stands(&self, namespace: &NamespaceName, ns: NsId) -> Result<bool> {
        let row = self.ledger.tx.namespace(namespace.as_str())?;
        Ok(row.is_some_and(|row| row.number == ns.0 && !row.dropping))
    }

    /// Whether the rows of a namespace are being deleted.
    pub(super) fn is_dropping(&self, ns: NsId) -> Result<bool> {
        Ok(self.ledger.tx.namespace(&dropped_name(ns))?.is_some())
    }

    pub(super) fn context(&self, ns: NsId, run: Option<RunId>) -> Context {
        Context {
            ns,
            now: self.ledger.now(),
            actor: self.actor,
            run,
            policy_number: self.in_force.number,
            policy_hash: self.in_force.hash,
            keeps_limbo: self.in_force.policy.undo.horizon.as_ms() > 0,
        }
    }
}

impl Inner {
    /// Runs `units` in one transaction and publishes it. The first unit that fails ends the attempt; its place and
    /// error come back.
    fn attempt(
        &self,
        durability: Durability,
        mut units: impl FnMut(&mut Session<'_, '_, '_>) -> Result<(), (usize, Error)>,
    ) -> Result<(), (Option<usize>, Error)> {
        let mut culprit = None;
        let mut turn = Turn::default();
        let written = self.store.write(durability, |tx| {
            // Only the leader commits and publishes: nothing lies between this state and the transaction.
            let published = self.state()?;
            let in_force = self.in_force();
            let mut ledger = Ledger::open(tx, &self.secret, in_force.analyzer.clone(), self.clock.now())?;
            ledger.tombstone_hash = in_force.policy.tombstone.hash;
            let mut session = Session {
                ledger: &mut ledger,
                in_force: &in_force,
                ids: self.ids.as_ref(),
                embeds: self.embedder.read().as_ref().map(Given::space),
                actor: self.actor,
                published: &published,
                opened: BTreeSet::new(),
                dropped: Vec::new(),
                linked: BTreeMap::new(),
                reset: BTreeSet::new(),
            };
            let done = units(&mut session).map_err(|(at, why)| {
                culprit = Some(at);
                why
            });
            let Session { dropped, linked, reset, .. } = session;
            turn = Turn { dropped, linked, reset };
            done?;
            ledger.finish()
        });
        match written {
            Ok(written) => {
                self.publish(&written, &turn);
                Ok(())
            }
            // A storage that fails is nobody's fault, whoever was at work.
            Err(why @ (Error::Retry { .. } | Error::Unavailable { .. } | Error::Locked { .. })) => {
                self.catch_up();
                Err((None, why))
            }
            Err(why) => Err((culprit, why)),
        }
    }

    /// As [`Inner::attempt`]. A unit that meets damage to rows that follow from others has these written anew, and runs again.
    fn attempt_mended(
        &self,
        durability: Durability,
        mut units: impl FnMut(&mut Session<'_, '_, '_>) -> Result<(), (usize, Error)>,
    ) -> Result<(), (Option<usize>, Error)> {
        let mut mended = BTreeSet::new();
        loop {
            let done = self.attempt(durability, &mut units);
            let Err((at, why)) = done else { return Ok(()) };
            let Some(ns) = rebuilt_of(&why).filter(|ns| mended.insert(*ns)) else { return Err((at, why)) };
            tracing::warn!(%why, "a write has met damaged rows of an index: those of its namespace are written anew");
            self.rebuild(durability, ns)?;
        }
    }

    /// Writes everything of a namespace anew that follows from other rows, and mends what can be mended: an index in each
    /// transaction. What is not done when it is cut off is met again.
    fn rebuild(&self, durability: Durability, ns: NsId) -> Result<(), (Option<usize>, Error)> {
        let step = |work: &mut dyn FnMut(&mut Session<'_, '_, '_>, &Context) -> Result<()>| {
            self.attempt(durability, |session| {
                let context = session.context(ns, None);
                work(session, &context).map_err(|why| (0, why))
            })
        };
        let (mut indexes, mut declared) = (BTreeSet::new(), Vec::new());
        step(&mut |session, context| {
            session.ledger.mend(context)?;
            session.ledger.void_declared(context)?;
            (indexes, declared) = (session.ledger.tx.indexes_of(ns)?, session.ledger.tx.meta_keys(ns)?);
            Ok(())
        })?;
        for index in indexes {
            step(&mut |session, context| {
                session.reset.insert(index);
                session.ledger.rebuild_index(context, index).map(drop)
            })?;
        }
        step(&mut |session, context| {
            let (texts, _) = session.ledger.rebuild_texts(context)?;
            session.reset.extend(texts.into_iter().map(TextId::index));
            Ok(())
        })?;
        for (path, _) in declared {
            let mut at = ControlFlow::Continue(());
            while at.is_continue() {
                step(&mut |session, context| {
                    at = session.ledger.go_on_declared(context, &path, SLICE_ROWS_MAX)?;
                    Ok(())
                })?;
            }
        }
        Ok(())
    }

    /// Runs one unit that borrows from its caller, alone in a transaction.
    pub(super) fn run_alone<R>(&self, unit: impl FnMut(&mut Session<'_, '_, '_>) -> Result<R>) -> Result<R> {
        self.run_alone_as(self.durability, unit)
    }

    /// Makes every commit so far durable.
    pub(super) fn sync(&self) -> Result<()> {
        self.queue.alone(|| {
            let flushed = self.store.flush();
            self.catch_up();
            flushed
        })
    }

    /// As [`Inner::run_alone`], with another durability than that of the handle.
    pub(super) fn run_alone_as<R>(
        &self,
        durability: Durability,
        mut unit: impl FnMut(&mut Session<'_, '_, '_>) -> Result<R>,
    ) -> Result<R> {
        self.check_open()?;
        self.queue.alone(|| {
            let mut value = None;
            let done = self.attempt_mended(durability, |session| {
                value = Some(unit(session).map_err(|why| (0, why))?);
                Ok(())
            });
            match (done, value) {
                (Ok(()), Some(value)) => Ok(value),
                (Err((_, why)), _) => Err(why),
                (Ok(()), None) => unreachable!("a unit that succeeded has a value"),
            }
        })
    }
}

/// The namespace of damaged rows that are written anew from others.
fn rebuilt_of(why: &Error) -> Option<NsId> {
    let Error::Corrupted { table, key, .. } = why else { return None };
    Table::named(table).filter(|table| table.is_rebuilt() && why.is_damage())?;
    key.get(..8).and_then(|ns| u32::from_str_radix(ns, 16).ok()).map(NsId)
}

impl Inner {
    /// Runs one unit alone in a transaction and gives the transaction up: what the unit answers is all that is left.
    pub(super) fn rehearse<R>(
        &self,
        mut unit: impl FnMut(&mut Session<'_, '_, '_>) -> Result<R>,
    ) -> Result<R> {
        self.check_open()?;
        self.queue.alone(|| {
            let mut value = None;
            let done = self.attempt(self.durability, |session| {
                value = Some(unit(session).map_err(|why| (0, why))?);
                // Nobody sees this: an error is what gives a transaction up.
                let why = "a rehearsal is not committed".to_owned();
                Err((0, Error::Conflict { what: "rehearsal".to_owned(), why }))
            });
            match (value, done) {
                (Some(value), _) => Ok(value),
                (None, Err((_, why))) => Err(why),
                (None, Ok(())) => unreachable!("a rehearsal is never committed"),
            }
        })
    }
}

impl Committer for Arc<Inner> {
    type Unit = Work;

    fn commit(&self, units: &mut [Work]) -> Vec<Result<()>> {
        let mut answers: Vec<Option<Result<()>>> = units.iter().map(|_| None).collect();
        loop {
            let done = self.attempt_mended(self.durability, |session| {
                for (at, unit) in units.iter_mut().enumerate() {
                    if matches!(answers.get(at), Some(None)) {
                        unit(session).map_err(|why| (at, why))?;
                    }
                }
                Ok(())
            });
            match done {
                Ok(()) => return answers.into_iter().map(|answer| answer.unwrap_or(Ok(()))).collect(),
                Err((Some(at), why)) => {
                    // It alone gets the error; the others run again without it.
                    if let Some(answer) = answers.get_mut(at) {
                        *answer = Some(Err(why));
                    }
                    if answers.iter().all(Option::is_some) {
                        return answers.into_iter().flatten().collect();
                    }
                }
                Err((None, why)) => {
                    let fail =
                        |answer: Option<Result<()>>| answer.unwrap_or_else(|| Err(failed_together(&why)));
                    return answers.into_iter().map(fail).collect();
                }
            }
        }
    }
}
