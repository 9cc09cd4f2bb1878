//! Rows that follow from others, and are damaged: which of them an error names, and how they are written anew.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use crate::engine::inner::Inner;
use crate::engine::session::Session;
use crate::error::{Error, Result};
use crate::ledger::Context;
use crate::limits::SLICE_ROWS_MAX;
use crate::store::{Durability, IndexId, NsId, Rows, Table, TextId};

/// Indexes of one namespace that a unit of work has written anew one by one, before all that is derived is.
const NAMED_MAX: usize = 4;
/// Memories of indexes that are written anew in one transaction. It reads the namespace once, however few memories each of
/// the indexes has.
const REBUILT_ROWS: u64 = 4 * SLICE_ROWS_MAX as u64;

/// What one or more transactions came to, as [`Inner::attempt`] tells it.
type Step = Result<(), (Option<usize>, Error)>;

/// Damage to rows that follow from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Damaged {
    /// An index of vectors.
    Index(IndexId),
    /// A full-text index.
    Text(TextId),
    /// The indexes of metadata that a namespace has declared.
    Declared(NsId),
    /// Rows of a namespace that are mended one by one.
    Small(NsId),
    /// All of these in a namespace.
    All(NsId),
}

impl Damaged {
    /// What an error names; none where it is no damage, or nothing that follows from others.
    fn of(why: &Error) -> Option<Self> {
        let Error::Corrupted { table, key, .. } = why else { return None };
        let table = Table::named(table).filter(|table| table.is_rebuilt() && why.is_damage())?;
        let bytes: Vec<u8> = (0..key.len())
            .step_by(2)
            .map_while(|at| u8::from_str_radix(key.get(at..at + 2)?, 16).ok())
            .collect();
        let (address, _) = table.address(&bytes);
        let ns = address.ns?;
        Some(match (address.part, address.space) {
            (Some(part), Some(space)) if table.is_of_index() => Damaged::Index(IndexId { ns, part, space }),
            (Some(part), _) if table.is_of_text() => Damaged::Text(TextId { ns, part }),
            // An error can name all indexes of a namespace at once.
            _ if table.is_of_index() || table.is_of_text() => Damaged::All(ns),
            _ if table == Table::MetaValue => Damaged::Declared(ns),
            _ => Damaged::Small(ns),
        })
    }

    fn ns(self) -> NsId {
        match self {
            Damaged::Index(index) => index.ns,
            Damaged::Text(text) => text.ns,
            Damaged::Declared(ns) | Damaged::Small(ns) | Damaged::All(ns) => ns,
        }
    }

    /// What is to be written anew after an error, if so much was already: what the error names, or all of the namespace where
    /// that did not help, or where one index after the other is damaged. None where nothing helps.
    pub(super) fn next(why: &Error, mended: &BTreeSet<Damaged>) -> Option<Self> {
        let named = Damaged::of(why)?;
        let all = Damaged::All(named.ns());
        let before = mended.iter().filter(|other| other.ns() == named.ns()).count();
        let next = if mended.contains(&named) || before >= NAMED_MAX { all } else { named };
        (!mended.contains(&all)).then_some(next)
    }
}

/// The indexes of a namespace in batches of so few memories that one transaction writes a batch anew. A larger index is a
/// batch of its own.
pub(super) fn batches(indexes: BTreeMap<IndexId, u64>) -> Vec<BTreeSet<IndexId>> {
    let mut batches: Vec<BTreeSet<IndexId>> = Vec::new();
    let mut room = 0;
    for (index, rows) in indexes {
        // An index without memories costs something, too.
        let cost = rows + 1;
        match batches.last_mut().filter(|_| cost <= room) {
            Some(batch) => drop(batch.insert(index)),
            None => {
                batches.push(BTreeSet::from([index]));
                room = REBUILT_ROWS;
            }
        }
        room = room.saturating_sub(cost);
    }
    batches
}

impl Inner {
    /// Writes rows anew that follow from others, some in each transaction. What is not done when it is cut off is met again.
    pub(super) fn rebuild(&self, durability: Durability, damaged: Damaged) -> Step {
        match damaged {
            Damaged::Index(_) | Damaged::Text(_) | Damaged::Small(_) => {
                self.step(durability, damaged.ns(), |session, _| session.write_anew(damaged))
            }
            Damaged::Declared(ns) => self.declared_anew(durability, ns),
            Damaged::All(ns) => {
                let mut indexes = BTreeMap::new();
                self.step(durability, ns, |session, context| {
                    session.ledger.mend(context)?;
                    indexes = session.ledger.tx.indexes_of(ns)?;
                    Ok(())
                })?;
                for batch in batches(indexes) {
                    self.step(durability, ns, |session, context| session.indexes_anew(context, &batch))?;
                }
                self.step(durability, ns, |session, context| session.texts_anew(context, None))?;
                self.declared_anew(durability, ns)
            }
        }
    }

    /// One transaction.
    fn step(
        &self,
        durability: Durability,
        ns: NsId,
        mut work: impl FnMut(&mut Session<'_, '_, '_>, &Context) -> Result<()>,
    ) -> Step {
        // Accesses are left to the write that comes after it.
        self.attempt(durability, 0, |session| {
            let context = session.context(ns, None);
            work(session, &context).map_err(|why| (0, why))
        })
    }

    fn declared_anew(&self, durability: Durability, ns: NsId) -> Step {
        let mut declared = Vec::new();
        self.step(durability, ns, |session, context| {
            session.ledger.void_declared(context)?;
            declared = session.ledger.tx.meta_keys(ns)?;
            Ok(())
        })?;
        for (path, _) in declared {
            let mut at = ControlFlow::Continue(());
            while at.is_continue() {
                self.step(durability, ns, |session, context| {
                    at = session.ledger.go_on_declared(context, &path, SLICE_ROWS_MAX)?;
                    Ok(())
                })?;
            }
        }
        Ok(())
    }
}

impl Session<'_, '_, '_> {
    /// Writes rows anew that follow from others, all in the transaction of the session, which is given up afterwards or is
    /// small.
    ///
    /// # Errors
    /// Those of the ledger, where what the rows follow from is damaged too.
    pub(super) fn write_anew(&mut self, damaged: Damaged) -> Result<()> {
        let ns = damaged.ns();
        let context = self.context(ns, None);
        match damaged {
            Damaged::Index(index) => self.indexes_anew(&context, &BTreeSet::from([index])),
            Damaged::Text(text) => self.texts_anew(&context, Some(text)),
            Damaged::Small(_) => self.ledger.mend(&context),
            Damaged::Declared(_) => self.declared_anew(&context),
            Damaged::All(_) => {
                self.ledger.mend(&context)?;
                let indexes = self.ledger.tx.indexes_of(ns)?;
                self.indexes_anew(&context, &indexes.into_keys().collect())?;
                self.texts_anew(&context, None)?;
                self.declared_anew(&context)
            }
        }
    }

    fn indexes_anew(&mut self, context: &Context, indexes: &BTreeSet<IndexId>) -> Result<()> {
        self.reset.extend(indexes);
        self.ledger.rebuild_indexes(context, indexes).map(drop)
    }

    fn texts_anew(&mut self, context: &Context, only: Option<TextId>) -> Result<()> {
        let (texts, _) = self.ledger.rebuild_texts(context, only)?;
        self.reset.extend(texts.into_iter().map(TextId::index));
        Ok(())
    }

    fn declared_anew(&mut self, context: &Context) -> Result<()> {
        self.ledger.void_declared(context)?;
        for (path, _) in self.ledger.tx.meta_keys(context.ns)? {
            while self.ledger.go_on_declared(context, &path, SLICE_ROWS_MAX)?.is_continue() {}
        }
        Ok(())
    }
}
