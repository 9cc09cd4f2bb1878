//! The list of tables: name on disk, and of which sort each is (design, "Tables are of three sorts").
//!
//! Keys and values of every table are byte strings. How a key is built stands in `keys`, what a value holds in
//! `record`; both are written down byte by byte in `docs/format.md`.

/// Of which sort a table is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sort {
    /// Written by `ledger` alone.
    Truth,
    /// Can be dropped and computed again from the truth.
    Derived,
    /// Belongs to `engine`.
    Control,
}

macro_rules! tables {
    ($($(#[$doc:meta])* $table:ident = $name:literal, $sort:ident, $tag:literal;)+) => {
        /// A table of the file.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub(crate) enum Table { $($(#[$doc])* $table,)+ }

        impl Table {
            /// Every table, in the order in which compaction copies them.
            pub(crate) const ALL: &'static [Table] = &[$(Table::$table,)+];

            /// Its name on disk.
            pub(crate) const fn name(self) -> &'static str {
                match self { $(Table::$table => $name,)+ }
            }

            /// The tag in the header of its small metadata rows; 0 where its values are records or empty.
            pub(crate) const fn tag(self) -> u8 {
                match self { $(Table::$table => $tag,)+ }
            }

            /// Of which sort it is.
            pub(crate) const fn sort(self) -> Sort {
                match self { $(Table::$table => Sort::$sort,)+ }
            }
        }
    };
}

tables! {
    /// Format, secret, numbers and clock of the store.
    Meta = "meta", Control, 16;
    /// Name of a namespace → its number and numbers to give out.
    Namespace = "namespace", Control, 17;
    /// Name of a partition → its number.
    Partition = "partition", Control, 18;
    /// Number of a partition → its name.
    PartitionName = "partition_name", Control, 19;
    /// Number of an embedding space → its name and dimensions.
    Space = "space", Control, 20;
    /// Runs: imports, drops.
    Run = "run", Control, 21;
    /// The policy document, by number.
    Policy = "policy", Control, 22;
    /// Codes and slot data, in blocks. Copied before vitals, whose slots it renumbers.
    Slot = "slot", Derived, 0;
    /// How many slots a partition has.
    SlotHead = "slot_head", Derived, 23;
    /// Slots that can be used again.
    SlotFree = "slot_free", Derived, 0;
    /// f32 vectors, in blocks.
    Vector = "vector", Truth, 0;
    /// Hot part of a memory.
    Vitals = "vitals", Truth, 0;
    /// Cold part of a memory.
    Memory = "memory", Truth, 0;
    /// Access statistics of a memory.
    Access = "access", Truth, 0;
    /// The writes that a memory stands for.
    Holder = "holder", Truth, 0;
    /// Key → holder.
    HolderKey = "holder_key", Truth, 0;
    /// Tag → holder.
    HolderTag = "holder_tag", Truth, 0;
    /// Run → holder.
    HolderRun = "holder_run", Truth, 0;
    /// Name of a category or an entity → its number.
    Term = "term", Truth, 24;
    /// Number of a category or an entity → its name.
    TermName = "term_name", Truth, 25;
    /// Memory → category, entity with role, link, source.
    Junction = "junction", Truth, 0;
    /// The same, from the other end.
    JunctionBack = "junction_back", Truth, 0;
    /// Superseding memory → superseded memory.
    Superseded = "superseded", Truth, 0;
    /// What was done.
    Journal = "journal", Truth, 0;
    /// Memory → its journal rows.
    JournalSubject = "journal_subject", Derived, 0;
    /// What stays of a memory that is gone.
    Tombstone = "tombstone", Truth, 0;
    /// HMAC of a key or a content → tombstone.
    TombstoneHash = "tombstone_hash", Truth, 0;
    /// Memories of a partition by creation.
    ByTime = "by_time", Derived, 0;
    /// Memories of a partition and tier by fingerprint.
    ByFingerprint = "by_fingerprint", Derived, 0;
    /// Instants at which visibility changes without a write.
    Due = "due", Derived, 0;
    /// Memories without a vector.
    Pending = "pending", Derived, 0;
    /// Counters.
    Counter = "counter", Derived, 26;
}

impl Table {
    /// How many there are.
    pub(crate) const COUNT: usize = Table::ALL.len();

    /// Its position in [`Table::ALL`].
    pub(crate) const fn at(self) -> usize {
        self as usize
    }
}
