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
    ($($(#[$doc:meta])* $table:ident = $name:literal, $sort:ident;)+) => {
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

            /// Of which sort it is.
            pub(crate) const fn sort(self) -> Sort {
                match self { $(Table::$table => Sort::$sort,)+ }
            }
        }
    };
}

tables! {
    /// Format, secret, numbers and clock of the store.
    Meta = "meta", Control;
    /// Name of a namespace → its number and numbers to give out.
    Namespace = "namespace", Control;
    /// Name of a partition → its number.
    Partition = "partition", Control;
    /// Number of a partition → its name.
    PartitionName = "partition_name", Control;
    /// Number of an embedding space → its name and dimensions.
    Space = "space", Control;
    /// Runs: imports, drops.
    Run = "run", Control;
    /// The policy document, by number.
    Policy = "policy", Control;
    /// Codes and slot data, in blocks. Copied before vitals, whose slots it renumbers.
    Slot = "slot", Derived;
    /// How many slots a partition has.
    SlotHead = "slot_head", Derived;
    /// Slots that can be used again.
    SlotFree = "slot_free", Derived;
    /// f32 vectors, in blocks.
    Vector = "vector", Truth;
    /// Hot part of a memory.
    Vitals = "vitals", Truth;
    /// Cold part of a memory.
    Memory = "memory", Truth;
    /// Access statistics of a memory.
    Access = "access", Truth;
    /// The writes that a memory stands for.
    Holder = "holder", Truth;
    /// Key → holder.
    HolderKey = "holder_key", Truth;
    /// Tag → holder.
    HolderTag = "holder_tag", Truth;
    /// Run → holder.
    HolderRun = "holder_run", Truth;
    /// Name of a category or an entity → its number.
    Term = "term", Truth;
    /// Number of a category or an entity → its name.
    TermName = "term_name", Truth;
    /// Memory → category, entity with role, link, source.
    Junction = "junction", Truth;
    /// The same, from the other end.
    JunctionBack = "junction_back", Truth;
    /// Superseding memory → superseded memory.
    Superseded = "superseded", Truth;
    /// What was done.
    Journal = "journal", Truth;
    /// Memory → its journal rows.
    JournalSubject = "journal_subject", Derived;
    /// What stays of a memory that is gone.
    Tombstone = "tombstone", Truth;
    /// HMAC of a key or a content → tombstone.
    TombstoneHash = "tombstone_hash", Truth;
    /// Memories of a partition by creation.
    ByTime = "by_time", Derived;
    /// Memories of a partition and tier by fingerprint.
    ByFingerprint = "by_fingerprint", Derived;
    /// Instants at which visibility changes without a write.
    Due = "due", Derived;
    /// Memories without a vector.
    Pending = "pending", Derived;
    /// Counters.
    Counter = "counter", Derived;
}

impl Table {
    /// How many there are.
    pub(crate) const COUNT: usize = Table::ALL.len();

    /// Its position in [`Table::ALL`].
    pub(crate) const fn at(self) -> usize {
        self as usize
    }
}
