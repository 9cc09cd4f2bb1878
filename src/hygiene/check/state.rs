//! A check under way: what it knows of the file, what it has counted and what it has found.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use crate::error::{Error, FILE_CUT, Result};
use crate::hygiene::check::circles::Settled;
use crate::hygiene::check::tallies::{Center, Counts, LastInThread, Mesh, Sets, Tally, TextTally};
use crate::hygiene::report::{CheckReport, Code, hex};
use crate::model::{MemoryId, Time, Vitals};
use crate::store::control::{Clock, GraphHead, SlotHead};
use crate::store::{IndexId, NsId, PartId, Read, Rows, Snapshot, SpaceId, Table, TextId, Walk, keys};

/// What is said of a row that a walk meets and a look-up does not.
const OUT_OF_REACH: &str = "no look-up comes to this row, and others of its table may be missed as well: `compact` writes the table anew";

/// A namespace as the keys name it.
pub(super) struct Tenant {
    pub(super) next_part: u32,
    pub(super) dropping: bool,
}

/// A check under way.
pub(super) struct Check<'s> {
    pub(super) snapshot: &'s Snapshot,
    pub(super) deep: bool,
    pub(super) report: CheckReport,
    /// The clock; one that allows everything where it is damaged.
    pub(super) clock: Clock,
    /// Time of the last commit, where it is known.
    pub(super) now: Option<Time>,
    pub(super) tenants: BTreeMap<NsId, Tenant>,
    /// Numbers of the namespaces that the walk has met.
    pub(super) numbers: BTreeSet<u32>,
    pub(super) parts: BTreeSet<(NsId, PartId)>,
    /// The paths of metadata with an index.
    pub(super) declared: BTreeMap<NsId, Vec<Arc<str>>>,
    /// Declared indexes that are not whole: what stands in them, or does not, is no finding.
    pub(super) unfinished: BTreeMap<NsId, Vec<Arc<str>>>,
    /// Dimensions of the spaces.
    pub(super) spaces: BTreeMap<SpaceId, usize>,
    pub(super) heads: BTreeMap<IndexId, SlotHead>,
    pub(super) slots: BTreeMap<IndexId, Tally>,
    /// The indexes with a graph; its head is none where it is damaged.
    pub(super) graphs: BTreeMap<IndexId, Option<GraphHead>>,
    pub(super) meshes: BTreeMap<IndexId, Mesh>,
    /// The centers of the one-bit codes.
    pub(super) centers: BTreeMap<IndexId, Center>,
    pub(super) texts: BTreeMap<TextId, TextTally>,
    /// The thread that is being walked, its last document and what that says of the next.
    pub(super) thread_at: Option<LastInThread>,
    pub(super) counts: Counts,
    /// Bytes of the keys and values of every row.
    pub(super) bytes: u64,
    /// Whether every row was met.
    pub(super) walked: bool,
    /// Rows of `settled_ns` whose chain of superseders was walked.
    pub(super) settled: Settled<MemoryId>,
    pub(super) settled_ns: Option<NsId>,
    /// By which memories the rows of the journal are found that tell of many, each with the number of its holder if the row is
    /// about one.
    pub(super) merges: Sets<u64, (MemoryId, Option<u32>)>,
    /// By which hashes the tombstones of many keys are found.
    pub(super) stones: Sets<MemoryId, [u8; 32]>,
    /// The ring of past queries that is being walked, and the number of its first query.
    pub(super) ring_at: Option<(NsId, PartId, u64)>,
    /// The key that is being walked, and the current row that holds it.
    pub(super) key_at: Option<(NsId, String, Option<MemoryId>)>,
}

impl<'s> Check<'s> {
    /// A check that knows the clock alone.
    pub(super) fn new(snapshot: &'s Snapshot, deep: bool) -> Result<Self> {
        let clock = seen(snapshot.clock())?;
        // A damaged clock is one finding. Compared with it, every number in the file would be another one.
        let lenient = Clock {
            commit: u64::MAX,
            at_ms: i64::MAX,
            next_seq: u64::MAX,
            next_ns: u32::MAX,
            next_term: u32::MAX,
            next_space: u16::MAX,
            policy: 0,
            space: 0,
            nonce: [0; 16],
        };
        Ok(Check {
            snapshot,
            deep,
            report: CheckReport::default(),
            now: clock.map(|clock| Time::from_millis(clock.at_ms)),
            clock: clock.unwrap_or(lenient),
            tenants: BTreeMap::new(),
            numbers: BTreeSet::new(),
            parts: BTreeSet::new(),
            declared: BTreeMap::new(),
            unfinished: BTreeMap::new(),
            spaces: BTreeMap::new(),
            heads: BTreeMap::new(),
            slots: BTreeMap::new(),
            graphs: BTreeMap::new(),
            meshes: BTreeMap::new(),
            centers: BTreeMap::new(),
            texts: BTreeMap::new(),
            thread_at: None,
            counts: Counts::default(),
            bytes: 0,
            walked: true,
            settled: Settled::default(),
            settled_ns: None,
            merges: Sets::default(),
            stones: Sets::default(),
            ring_at: None,
            key_at: None,
        })
    }

    /// Turns damage into a finding; what else went wrong ends the check.
    pub(super) fn note(&mut self, outcome: Result<()>) -> Result<()> {
        match outcome {
            Err(Error::Corrupted { table, key, why }) if why != FILE_CUT => {
                self.report.add(Code::Corrupted, table, key, why);
                Ok(())
            }
            other => other,
        }
    }

    pub(super) fn find(&mut self, code: Code, table: Table, key: &[u8], what: impl Into<String>) {
        self.report.add(code, table.name(), hex(key), what);
    }

    pub(super) fn knows_part(&self, ns: NsId, part: PartId) -> bool {
        part == PartId(0) || self.parts.contains(&(ns, part))
    }

    /// Whether a row is there; none where a damaged page keeps that from being known.
    fn is_there(&self, table: Table, key: &[u8]) -> Result<Option<bool>> {
        seen(self.snapshot.look(table, key, &mut |_| Ok(())))
    }

    /// Whether any key of a table begins with `prefix`; none where a damaged page keeps that from being known, or leads the
    /// walk to other keys.
    fn is_any_there(&self, table: Table, prefix: &[u8]) -> Result<Option<bool>> {
        let mut any = Some(false);
        let walked = self.snapshot.walk(table, &Walk::prefix(prefix), &mut |key, _| {
            any = key.starts_with(prefix).then_some(true);
            Ok(ControlFlow::Break(()))
        });
        Ok(seen(walked)?.and(any))
    }

    /// Whether a row is certainly there.
    pub(super) fn has(&self, table: Table, key: &[u8]) -> Result<bool> {
        Ok(self.is_there(table, key)? == Some(true))
    }

    /// Whether a row is certainly not there.
    pub(super) fn lacks(&self, table: Table, key: &[u8]) -> Result<bool> {
        Ok(self.is_there(table, key)? == Some(false))
    }

    /// Whether some key of a table certainly begins with `prefix`.
    pub(super) fn has_any(&self, table: Table, prefix: &[u8]) -> Result<bool> {
        Ok(self.is_any_there(table, prefix)? == Some(true))
    }

    /// Whether certainly no key of a table begins with `prefix`.
    pub(super) fn lacks_any(&self, table: Table, prefix: &[u8]) -> Result<bool> {
        Ok(self.is_any_there(table, prefix)? == Some(false))
    }

    /// Whether a look-up by its key comes to a row that a walk has met. If not, that is a finding. The look-up reads what
    /// the walk has passed by: the keys of inner pages.
    pub(super) fn comes_to(&mut self, table: Table, key: &[u8], value: &[u8]) -> Result<bool> {
        let mut same = false;
        let looked = self.snapshot.look(table, key, &mut |found| {
            same = found == value;
            Ok(())
        });
        seen(looked)?;
        if !same {
            self.find(Code::Corrupted, table, key, OUT_OF_REACH);
        }
        Ok(same)
    }

    /// Vitals of a memory: none when they are damaged, some(none) when there are none.
    pub(super) fn vitals_of(&self, ns: NsId, id: MemoryId) -> Result<Option<Option<Vitals>>> {
        seen(self.snapshot.vitals(ns, id))
    }

    pub(super) fn lacks_row(&self, ns: NsId, id: MemoryId) -> Result<bool> {
        self.lacks(Table::Vitals, &keys::memory(ns, id))
    }

    pub(super) fn has_tombstone(&self, ns: NsId, id: MemoryId) -> Result<bool> {
        self.has(Table::Tombstone, &keys::memory(ns, id))
    }

    pub(super) fn lacks_tombstone(&self, ns: NsId, id: MemoryId) -> Result<bool> {
        self.lacks(Table::Tombstone, &keys::memory(ns, id))
    }
}

/// A look-up, none where it met damage: that is reported by the walk of its own table.
pub(super) fn seen<T>(found: Result<T>) -> Result<Option<T>> {
    match found {
        Ok(value) => Ok(Some(value)),
        // Of a file that was cut nothing more can be read, so the check ends there.
        Err(why) if why.is_damage() => Ok(None),
        Err(other) => Err(other),
    }
}
