//! What does the store know about this, at this instant?
//!
//! The room has every read of the public API: searching, getting, listing, explaining, counting. A [`Reader`]
//! stands on one published state, so everything that it says belongs to one commit.
//!
//! Invariants: visibility is the one predicate of `model`, and a filter and a limit are applied after it. A namespace
//! that does not exist, or is being dropped, is empty to a search, a listing and the statistics, and `NotFound` to a
//! read of a memory by name.
//!
//! The room never writes, opens no write transaction, reads no clock and counts no retrievals. The reader brings the
//! instant, and the engine later folds in what is worth recording.

mod around;
mod assemble;
mod chain;
mod contexts;
mod deadline;
mod distinct;
mod events;
mod explain;
mod feed;
mod goals;
mod hybrid;
mod instants;
mod kept;
mod keyed;
mod list;
mod matching;
mod past;
mod prior;
mod read;
mod rehearsal;
mod relevance;
mod runs;
mod search;
mod series;
mod size;
mod source;
mod stats;
mod why;

#[cfg(test)]
mod tests;

use crate::error::Result;
use crate::index::Published;
use crate::model::{NamespaceName, Partition, Scope, Time};
use crate::recall::instants::Past;
use crate::store::control::DROPPED;
use crate::store::{NsId, PartId, Rows, Traces};
use crate::text::Secret;

pub use around::Around;
pub use chain::ChainEnd;
pub(crate) use deadline::Deadline;
pub use explain::{Explanation, History, Origin, Removal, Version};
pub(crate) use keyed::{Keyed, Said, Sought};
pub use read::Got;
pub(crate) use rehearsal::{Newcomer, Rehearsed};
pub(crate) use runs::RunContext;
pub use search::SearchResult;
pub(crate) use size::file_stats;
pub use size::{BytesStats, FileStats, TableStats};
pub(crate) use source::Source;
pub use stats::{AgentStats, Stats, VectorStats};
pub use stats::{
    DateRange, HealthStats, IndexStats, LastRun, LocalStats, MemoryCounts, MemoryHealth, MemoryStats,
};
pub(crate) use stats::{StatsContext, Unsettled, index_stats, memory_stats, stats};
pub use why::Why;

/// One namespace at one commit and one instant.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'p, S = Published> {
    source: &'p S,
    namespace: &'p NamespaceName,
    secret: &'p Secret,
    now: Time,
    /// The namespace; none if it does not exist.
    ns: Option<NsId>,
    dropped: bool,
    /// The deadline; none if the read may take any time.
    deadline: Option<&'p Deadline<'p>>,
    /// The instants of a reader of the past; none for a live reader.
    past: Option<Past>,
    /// A memory that takes part as if it was stored.
    newcomer: Option<&'p Newcomer>,
}

impl<'p, S: Source> Reader<'p, S> {
    /// Reads `namespace` in a state, as a live read at clock `now` does.
    ///
    /// # Errors
    /// `Corrupted`.
    pub(crate) fn open(
        source: &'p S,
        namespace: &'p NamespaceName,
        secret: &'p Secret,
        now: Time,
    ) -> Result<Self> {
        let row = source.rows().namespace(namespace.as_str())?;
        let ns = row.as_ref().filter(|row| !row.dropping).map(|row| NsId(row.number));
        let dropped = match &row {
            Some(row) => row.dropping,
            None => {
                source.rows().no_namespace_is_damaged()?;
                let hash = secret.of_namespace(namespace.as_str());
                !source.rows().tombstones_of_hash(DROPPED, &hash)?.is_empty()
            }
        };
        Ok(Reader { source, namespace, secret, now, ns, dropped, deadline: None, past: None, newcomer: None })
    }

    /// The namespace; none if it does not exist.
    pub(crate) fn ns(&self) -> Option<NsId> {
        self.ns
    }

    /// The same reader with a deadline.
    pub(crate) fn until(self, deadline: &'p Deadline<'p>) -> Self {
        Reader { deadline: Some(deadline), ..self }
    }

    /// Whether the time is over.
    fn is_over(&self) -> bool {
        self.deadline.is_some_and(Deadline::is_over)
    }

    fn rows(&self) -> &'p S::Rows {
        self.source.rows()
    }

    /// The partition of a scope; none if no memory was ever stored in it.
    fn part(&self, ns: NsId, scope: &Scope) -> Result<Part> {
        Ok(match scope {
            Scope::Shared => Part::One(SHARED),
            Scope::Any => Part::Every,
            Scope::Agent(name) => self.rows().partition(ns, name.as_str())?.map_or(Part::Nowhere, Part::One),
        })
    }

    /// The partition with a number.
    fn partition(&self, ns: NsId, part: PartId) -> Result<Partition> {
        if part == SHARED {
            return Ok(Partition::Shared);
        }
        match self.rows().partition_name(ns, part)? {
            Some(name) => Partition::agent(&name),
            None => Err(crate::error::Error::corrupted(
                "partition_name",
                &crate::store::keys::ns_part(ns, part),
                "a memory lies in a partition without a name",
            )),
        }
    }
}

/// The shared partition.
const SHARED: PartId = PartId(0);

/// Which partitions a scope means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// One partition.
    One(PartId),
    /// All partitions of the namespace.
    Every,
    /// A partition that does not exist.
    Nowhere,
}

impl Part {
    fn holds(self, part: u32) -> bool {
        match self {
            Part::One(one) => one.0 == part,
            Part::Every => true,
            Part::Nowhere => false,
        }
    }
}
