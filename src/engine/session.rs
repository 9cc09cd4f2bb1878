//! A commit from the inside: the ledger of its transaction, and everything that units are decided with.

use std::cell::{Cell, OnceCell};
use std::collections::{BTreeMap, BTreeSet};

use crate::engine::in_force::InForce;
use crate::error::{Error, Result};
use crate::hygiene::{Accesses, Removing, Unsettled, expire, settle_due};
use crate::index::{Linked, Published};
use crate::ingest::{EmbedderSpace, NamespaceWriter, open_namespace};
use crate::ledger::{Context, Ledger};
use crate::model::{Actor, IdSource, NamespaceName, Query, RunId, Span};
use crate::recall::{Reader, SearchResult};
use crate::store::control::dropped_name;
use crate::store::{IndexId, NsId, Rows, WriteTx};

/// Instants that came without a write, looked at by each unit at least: bounds what a unit pays for others.
const SETTLE_PER_UNIT: usize = 8;

/// One caller's work in a group: it may run more than once, each time in a fresh transaction.
pub(super) type Work = Box<dyn FnMut(&mut Session<'_, '_, '_>) -> Result<()> + Send>;

/// Whether units remove memories whose life is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Forgetting {
    /// They do.
    On,
    /// A unit is at it. Where the transaction fails, that is why.
    AtWork,
    /// They do not, because it has failed.
    Off,
}

/// What units see of the transaction that they share.
pub(super) struct Session<'s, 'a, 't> {
    pub(super) ledger: &'s mut Ledger<'a, 't>,
    pub(super) in_force: &'s InForce,
    pub(super) ids: &'s dyn IdSource,
    /// The space of the handle's embedder.
    pub(super) embeds: Option<EmbedderSpace>,
    pub(super) actor: Actor,
    /// The state that the transaction began with.
    pub(super) published: &'s Published,
    /// Namespaces to which it may have written.
    pub(super) opened: BTreeSet<NamespaceName>,
    /// Namespaces to which the present unit writes, each with the memories whose end has come and was not settled.
    pub(super) wrote: BTreeMap<NamespaceName, (NsId, Unsettled)>,
    pub(super) forgetting: &'s mut Forgetting,
    /// Uses that no commit has counted.
    pub(super) noted: &'s Accesses,
    /// Namespaces whose rows are gone with this commit.
    pub(super) dropped: Vec<NsId>,
    /// Graphs that this commit replaces; none where it drops one.
    pub(super) linked: BTreeMap<IndexId, Option<Linked>>,
    /// Indexes that this commit has written anew.
    pub(super) reset: BTreeSet<IndexId>,
}

/// What a commit means to the images of indexes, beside the blocks of codes that it wrote.
#[derive(Debug, Default)]
pub(super) struct CommitEffects {
    pub(super) dropped: Vec<NsId>,
    pub(super) linked: BTreeMap<IndexId, Option<Linked>>,
    pub(super) reset: BTreeSet<IndexId>,
}

impl<'a, 't> Session<'_, 'a, 't> {
    /// The writer of a namespace, which is made if need be. Some of what came due there is settled first, but for memories
    /// whose life is over: they are left to the end of the unit, which removes them.
    pub(super) fn writer<'d>(
        &'d mut self,
        namespace: &'d NamespaceName,
        run: Option<RunId>,
        no_dedup: bool,
    ) -> Result<NamespaceWriter<'d, 'a, 't>> {
        let ns = open_namespace(self.ledger, namespace)?;
        self.opened.insert(namespace.clone());
        let context = self.context(ns, run);
        if !self.wrote.contains_key(namespace) {
            let most = self.removed_per_unit();
            let looked_at = most.max(SETTLE_PER_UNIT);
            let over = if most > 0 {
                settle_due(self.ledger, &context, context.now, looked_at)?.over
            } else {
                self.ledger.settle(&context, looked_at, |_, _| Ok(false))?;
                Vec::new()
            };
            self.wrote.insert(namespace.clone(), (ns, over));
        }
        Ok(NamespaceWriter {
            ledger: self.ledger,
            context,
            namespace,
            policy: &self.in_force.policy,
            rules: &self.in_force.rules,
            messages: &self.in_force.messages,
            ids: self.ids,
            last_id: Cell::new(None),
            embeds: self.embeds.clone(),
            no_dedup,
            skip_instructions: false,
            keep_part: false,
            published: self.published,
            near: None,
            guards: OnceCell::new(),
        })
    }

    /// The writer of a namespace that is there; none makes one for a write that can only find nothing.
    ///
    /// # Errors
    /// `NotFound` for a namespace that no write has made.
    pub(super) fn known_writer<'d>(
        &'d mut self,
        namespace: &'d NamespaceName,
    ) -> Result<NamespaceWriter<'d, 'a, 't>> {
        if self.ledger.tx.namespace(namespace.as_str())?.is_none() {
            return Err(Error::NotFound { what: "namespace", name: namespace.to_string() });
        }
        self.writer(namespace, None, false)
    }

    /// Lets the present unit forget no memory when it ends: it writes none, or puts memories back as they were.
    pub(super) fn forget_nothing(&mut self) {
        self.wrote.clear();
    }

    /// Ends a unit: some memories whose life is over leave the namespaces to which it wrote, so that a database whose host
    /// never calls maintenance forgets too. They go after the work of the unit, which may have given them a longer life.
    pub(super) fn end_unit(&mut self) -> Result<()> {
        let wrote = std::mem::take(&mut self.wrote);
        // What the unit itself does wrong is known before that.
        self.ledger.tx.put_gathered()?;
        let most = self.removed_per_unit();
        if most == 0 {
            return Ok(());
        }
        *self.forgetting = Forgetting::AtWork;
        for (namespace, (ns, unsettled)) in &wrote {
            let context = Context { actor: Actor::Sweeper, ..self.context(*ns, None) };
            let policy = &self.in_force.policy;
            let (until, noted) = (context.now, self.noted);
            let removing = Removing { namespace, until, unsettled, most, noted, policy };
            expire(self.ledger, &context, removing, &mut || false)?;
        }
        self.ledger.tx.put_gathered()?;
        *self.forgetting = Forgetting::On;
        Ok(())
    }

    /// How many memories whose life is over leave a namespace with a unit that writes to it.
    fn removed_per_unit(&self) -> usize {
        if *self.forgetting == Forgetting::Off { 0 } else { self.in_force.policy.purge.per_write as usize }
    }

    /// Reads a namespace with what the transaction has written so far.
    pub(super) fn reader<'d>(&'d self, namespace: &'d NamespaceName) -> Result<Reader<'d, WriteTx<'t>>> {
        Reader::open(&*self.ledger.tx, namespace, self.ledger.secret, self.ledger.now())
    }

    /// Searches a namespace in the state that the transaction began with.
    /// The number of the namespace, if it exists, comes with what was found.
    ///
    /// # Errors
    /// `Conflict` if the transaction has written to the namespace.
    pub(super) fn search(
        &self,
        namespace: &NamespaceName,
        query: &Query,
    ) -> Result<(SearchResult, Option<NsId>)> {
        if self.opened.contains(namespace) {
            return Err(Error::Conflict {
                what: "search within a batch".to_owned(),
                why: format!("the batch has written to {namespace}: search before, or after the batch"),
            });
        }
        let reader = Reader::open(self.published, namespace, self.ledger.secret, self.ledger.now())?;
        Ok((reader.search(query, &self.in_force.policy.recall)?, reader.ns()))
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
            keeps_limbo: self.in_force.policy.undo.horizon > Span::ZERO,
            ttl: self.in_force.policy.ttl.clone(),
            confidence: self.in_force.policy.confidence.clone(),
        }
    }
}
