//! The list of tables and their names on disk. `docs/format.md` says of which sort each is: truth, which `ledger`
//! alone writes, derived, or control.
//!
//! Keys and values of every table are byte strings. How a key is built stands in `keys`, what a value holds in
//! `record`; both are written down byte by byte in `docs/format.md`.

macro_rules! tables {
    ($($(#[$doc:meta])* $table:ident = $name:literal, $tag:literal;)+) => {
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
        }
    };
}

tables! {
    /// Format, secret, numbers and clock of the store.
    Meta = "meta", 16;
    /// Name of a namespace → its number and numbers to give out.
    Namespace = "namespace", 17;
    /// Name of a partition → its number.
    Partition = "partition", 18;
    /// Number of a partition → its name.
    PartitionName = "partition_name", 19;
    /// Number of an embedding space → its name and dimensions.
    Space = "space", 20;
    /// Runs: imports, drops.
    Run = "run", 21;
    /// The policy document, by number.
    Policy = "policy", 22;
    /// Codes and slot data, in blocks. Copied before vitals, whose slots it renumbers.
    Slot = "slot", 0;
    /// How many slots a partition has.
    SlotHead = "slot_head", 23;
    /// Slots that can be used again.
    SlotFree = "slot_free", 0;
    /// Links of the graph of an index, in blocks.
    Graph = "graph", 0;
    /// Entry, size and measured recall of the graph of an index.
    GraphHead = "graph_head", 27;
    /// Slots whose memory is gone and which the graph still needs.
    SlotDead = "slot_dead", 0;
    /// f32 vectors, in blocks.
    Vector = "vector", 0;
    /// Hot part of a memory.
    Vitals = "vitals", 0;
    /// Cold part of a memory.
    Memory = "memory", 0;
    /// Access statistics of a memory.
    Access = "access", 0;
    /// The writes that a memory stands for.
    Holder = "holder", 0;
    /// Key → holder.
    HolderKey = "holder_key", 0;
    /// Tag → holder.
    HolderTag = "holder_tag", 0;
    /// Run → holder.
    HolderRun = "holder_run", 0;
    /// Name of a category or an entity → its number.
    Term = "term", 24;
    /// Number of a category or an entity → its name.
    TermName = "term_name", 25;
    /// Memory → category, entity with role, link, source.
    Junction = "junction", 0;
    /// The same, from the other end.
    JunctionBack = "junction_back", 0;
    /// Superseding memory → superseded memory.
    Superseded = "superseded", 0;
    /// What was done.
    Journal = "journal", 0;
    /// Memory → its journal rows.
    JournalSubject = "journal_subject", 0;
    /// What stays of a memory that is gone.
    Tombstone = "tombstone", 0;
    /// HMAC of a key or a content → tombstone.
    TombstoneHash = "tombstone_hash", 0;
    /// Memories of a partition by creation.
    ByTime = "by_time", 0;
    /// Memories of a partition and tier by fingerprint.
    ByFingerprint = "by_fingerprint", 0;
    /// Instants at which visibility changes without a write.
    Due = "due", 0;
    /// Memories without a vector.
    Pending = "pending", 0;
    /// Counters.
    Counter = "counter", 26;
    /// What maintenance removed, until its undo horizon.
    Limbo = "limbo", 28;
    /// Rows of limbo by the instant of their removal.
    LimboTime = "limbo_time", 0;
    /// Messages as they came.
    Event = "event", 29;
    /// Events by time.
    EventTime = "event_time", 0;
    /// Aggregate or memory → its events.
    EventOf = "event_of", 0;
    /// Families of repeated messages in numbers.
    Aggregate = "aggregate", 30;
    /// A family of messages in one slice of time.
    Family = "family", 31;
    /// Exact key of a message → families.
    FamilyKey = "family_key", 0;
    /// Band of a SimHash → families.
    FamilyBand = "family_band", 0;
    /// Snapshots of a series by their time.
    Series = "series", 0;
    /// Run of maintenance → its journal rows.
    JournalRun = "journal_run", 0;
    /// Last run of each pass, and how far it is.
    Pass = "pass", 32;
    /// Analyzer and size of a full-text index.
    TextHead = "text_head", 33;
    /// Documents of a full-text index, in blocks.
    TextDoc = "text_doc", 0;
    /// Documents of a thread by time.
    Thread = "thread", 0;
    /// Term of a full-text index → its documents, in blocks.
    TextPosting = "text_posting", 0;
    /// Paths below `metadata` that have an index.
    MetaKey = "meta_key", 34;
    /// Memories by the values of such a path.
    MetaValue = "meta_value", 0;
}

impl Table {
    /// How many there are.
    pub(crate) const COUNT: usize = Table::ALL.len();

    /// Whether its rows have no value: the key says all.
    pub(crate) const fn is_all_key(self) -> bool {
        matches!(
            self,
            Table::SlotFree
                | Table::SlotDead
                | Table::HolderKey
                | Table::HolderTag
                | Table::HolderRun
                | Table::Junction
                | Table::JunctionBack
                | Table::Superseded
                | Table::JournalSubject
                | Table::TombstoneHash
                | Table::ByTime
                | Table::ByFingerprint
                | Table::Due
                | Table::Pending
                | Table::LimboTime
                | Table::EventTime
                | Table::EventOf
                | Table::FamilyKey
                | Table::FamilyBand
                | Table::Series
                | Table::JournalRun
                | Table::Thread
                | Table::MetaValue
        )
    }

    /// Whether `reindex` writes its rows anew from others, or mends those that are damaged.
    pub(crate) const fn is_rebuilt(self) -> bool {
        matches!(
            self,
            Table::Slot
                | Table::SlotHead
                | Table::SlotFree
                | Table::SlotDead
                | Table::Graph
                | Table::GraphHead
                | Table::Counter
                | Table::TextHead
                | Table::TextDoc
                | Table::Thread
                | Table::TextPosting
                | Table::MetaValue
                | Table::Event
                | Table::Family
                | Table::Aggregate
        )
    }

    /// The table with a name.
    pub(crate) fn named(name: &str) -> Option<Table> {
        Table::ALL.iter().copied().find(|table| table.name() == name)
    }

    /// Its position in [`Table::ALL`].
    pub(crate) const fn at(self) -> usize {
        self as usize
    }
}
