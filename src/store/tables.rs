//! The tables of the file: a table is one row of `tables!`.
//!
//! A row declares the name on disk, who writes the table, how its values are read and of which parts its keys are made.
//! From the row come the key builder, the reader of keys from disk, the address of a row and what `check` can say of a
//! row without knowing its meaning. The bytes are written down in `docs/format.md`.

use serde::de::DeserializeOwned;

use crate::error::{Error, Result};
use crate::limits::{FORMAT_VERSION, IMPORTANCE_CLASSES, SIMHASH_BANDS, USES_MAX};
use crate::model::{self, AuthorKind, MemoryId, NamespaceName, RunId, Tier, Time, check_index_key};
use crate::record::{
    self, At, decode_access, decode_content, decode_holder, decode_journal, decode_meta, decode_payload,
    decode_tombstone, decode_vitals,
};
use crate::store::control::{
    AggregateRow, BitsHead, Clock, ContextRow, CounterRow, CounterSort, EventRow, FamilyRow, GoalEpochRow,
    GoalRow, GraphHead, Identity, JournalHeadRow, LimboRow, NamespaceRow, PassRow, QueryRow, RunRow, SizeRow,
    SlotHead, SpaceRow, TextHead, UnfinishedRow,
};
use crate::store::part::{
    self, Address, End, IndexId, Key, KeyArgument, NsId, Part, PartId, Rest, SpaceId, Text,
};
use crate::store::planned::{GroupRow, PlanRow};

/// Key of the identity row.
pub(crate) const IDENTITY: &[u8] = b"identity";
/// Key of the clock row.
pub(crate) const CLOCK: &[u8] = b"clock";
/// Key of the row that says how much of the file its rows take.
pub(crate) const SIZE: &[u8] = b"size";

/// Who writes a table, and from what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sort {
    /// What is known: `ledger` alone writes it.
    Truth,
    /// What follows from the truth.
    Derived,
    /// What belongs to the engine.
    Control,
}

/// What the values of a table are.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Codec {
    /// There are none: the key says all.
    Empty,
    /// Blocks, of which more must be known than the bytes to read one as a whole.
    Block,
    /// Small metadata rows with a tag in their header, or records, which have tag 0 here.
    Value { tag: u8, read: fn(At<'_>, &[u8]) -> Result<()> },
}

/// A small metadata row.
pub(crate) fn meta_of<T: DeserializeOwned>(table: Table, key: &[u8], bytes: &[u8]) -> Result<T> {
    record::decode_meta(table.tag(), At::new(table.name(), key), bytes)
}

/// The row of an embedding space, also where one byte of it is damaged: no vector of the file can be read without the row.
pub(crate) fn space_of(key: &[u8], bytes: &[u8]) -> Result<SpaceRow> {
    record::decode_mended_meta(Table::Space.tag(), At::new(Table::Space.name(), key), bytes)
}

/// Small metadata rows with a tag.
macro_rules! row {
    ($tag:literal, $row:ty) => {
        Codec::Value { tag: $tag, read: |at, bytes| decode_meta::<$row>($tag, at, bytes).map(drop) }
    };
}

/// Records, by their decoder.
macro_rules! record {
    ($decode:ident) => {
        Codec::Value { tag: 0, read: |at, bytes| $decode(at, bytes).map(drop) }
    };
}

/// `format` is the version of the file format that brought the tables of a block. A row has the name on disk, the sort,
/// the codec and the parts of the key:
///
/// - `fn` names the builder of the key; a table whose keys are built alike is `like` that one;
/// - `named` is the part that a finding of `check` shows as a name;
/// - `if` says what else must be true of the parts.
macro_rules! tables {
    ($(format $format:literal {$(
        $(#[$doc:meta])*
        $table:ident = $name:literal, $sort:ident, $codec:expr,
        $(like $other:ident)?
        $(
            fn $builder:ident$(<$life:lifetime>)?($($part:ident: $kind:ty),+)
            $(named $named:ident)?
            $(if $sound:expr)?
        )?;
    )+})+) => {
        /// A table of the file.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub(crate) enum Table { $($($(#[$doc])* $table,)+)+ }

        $(const _: () = assert!($format <= FORMAT_VERSION, "tables of a format that is not yet");)+

        impl Table {
            /// Every table, in the order in which compaction copies them.
            pub(crate) const ALL: &'static [Table] = &[$($(Table::$table,)+)+];

            /// Its name on disk.
            pub(crate) const fn name(self) -> &'static str {
                match self { $($(Table::$table => $name,)+)+ }
            }

            /// Who writes it.
            pub(crate) const fn sort(self) -> Sort {
                match self { $($(Table::$table => Sort::$sort,)+)+ }
            }

            /// What its values are.
            pub(crate) const fn codec(self) -> Codec {
                match self { $($(Table::$table => $codec,)+)+ }
            }

            /// Whether each of its rows belongs to a namespace, whose number stands first in the key.
            pub(crate) const fn is_of_namespace(self) -> bool {
                match self { $($(Table::$table => keys::$table::OF_NAMESPACE,)+)+ }
            }

            /// To what a key belongs, as far as its parts can be read, and whether it is built as those of this table.
            pub(crate) fn address(self, key: &[u8]) -> (Address<'_>, bool) {
                match self {
                    $($(Table::$table => {
                        let (address, parts) = keys::$table::open(key);
                        (address, parts.is_some())
                    })+)+
                }
            }
        }

        /// The parts of the keys of each table, and the functions that build keys.
        pub(crate) mod keys {
            use super::*;

            $($(
                $(
                    #[doc = concat!("Keys of `", $name, "`.")]
                    pub(crate) type $table = $other;
                )?
                $(
                    #[doc = concat!("The parts of a key of `", $name, "`.")]
                    #[allow(dead_code, reason = "not every part is asked for")]
                    pub(crate) struct $table$(<$life>)? { $(pub(crate) $part: $kind,)+ }

                    #[allow(dead_code, reason = "not every key is asked everything")]
                    #[allow(mismatched_lifetime_syntaxes, reason = "not every key holds a reference")]
                    impl$(<$life>)? $table$(<$life>)? {
                        pub(super) const OF_NAMESPACE: bool = false $(|| <$kind as Part<'_>>::OF_NAMESPACE)+;

                        pub(super) fn open(key: &$($life)? [u8]) -> (Address<'_>, Option<Self>) {
                            let (mut left, mut address) = (key, Address::default());
                            $(
                                let Some($part) = <$kind as Part<'_>>::take(&mut left) else {
                                    return (address, None);
                                };
                                <$kind as Part<'_>>::tell(&$part, &mut address);
                            )+
                            $(address.name = Some($named.into());)?
                            let sound = left.is_empty() $(&& $sound)?;
                            (address, sound.then_some($table { $($part),+ }))
                        }

                        /// The parts of a key from disk; none where it is not built like this.
                        pub(crate) fn parse(key: &$($life)? [u8]) -> Option<Self> {
                            Self::open(key).1
                        }

                        /// The parts of a key of a table.
                        ///
                        /// # Errors
                        /// `Corrupted` where it is not built like this.
                        pub(crate) fn read(table: Table, key: &$($life)? [u8]) -> Result<Self> {
                            Self::parse(key).ok_or_else(|| bad_key(table, key))
                        }
                    }

                    #[doc = concat!("A key of `", $name, "`.")]
                    #[allow(dead_code, reason = "not every key is built from its parts")]
                    pub(crate) fn $builder$(<$life>)?($($part: <$kind as KeyArgument>::Arg),+) -> Key {
                        let key = Key::new();
                        $(
                            let $part: $kind = $part.into();
                            let key = key.and(&$part);
                        )+
                        key
                    }
                )?
            )+)+
        }
    };
}

tables! {
    format 6 {
        /// Format, secret, numbers and clock of the store.
        Meta = "meta", Control, Codec::Value { tag: 16, read: read_meta },
            fn meta<'k>(row: &'k str) named row if [IDENTITY, CLOCK, SIZE].contains(&row.as_bytes());
        /// Name of a namespace → its number and numbers to give out.
        Namespace = "namespace", Control, row!(17, NamespaceRow),
            fn namespace<'k>(name: &'k str) named name if is_namespace(name);
        /// Name of a partition → its number.
        Partition = "partition", Control, row!(18, u32),
            fn partition<'k>(ns: NsId, name: Rest<'k>) named name
            if model::Partition::agent(name.0).is_ok_and(|agent| agent.agent_name() == Some(name.0));
        /// Number of a partition → its name.
        PartitionName = "partition_name", Control, row!(19, String), fn ns_part(ns: NsId, part: PartId);
        /// Number of an embedding space → its name and dimensions.
        Space = "space", Control, row!(20, SpaceRow), fn space(space: SpaceId);
        /// Runs: imports, drops.
        Run = "run", Control, row!(21, RunRow), fn run(ns: NsId, run: RunId);
        /// The policy document, by number.
        Policy = "policy", Control, row!(22, String), fn policy(number: u64);
        /// Codes and slot data, in blocks. Copied before vitals, whose slots it renumbers.
        Slot = "slot", Derived, Codec::Block, fn block(index: IndexId, block: u32);
        /// How many slots a partition has.
        SlotHead = "slot_head", Derived, row!(23, SlotHead), fn index(index: IndexId);
        /// Slots that can be used again.
        SlotFree = "slot_free", Derived, Codec::Empty, fn slot_ended(index: IndexId, died: u64, slot: u32);
        /// Links of the graph of an index, in blocks.
        Graph = "graph", Derived, Codec::Block, like Slot;
        /// Entry, size and measured recall of the graph of an index.
        GraphHead = "graph_head", Derived, row!(27, GraphHead), like SlotHead;
        /// Slots whose memory is gone and which the graph still needs.
        SlotDead = "slot_dead", Derived, Codec::Empty, like SlotFree;
        /// f32 vectors, in blocks.
        Vector = "vector", Truth, Codec::Block, like Slot;
        /// Hot part of a memory.
        Vitals = "vitals", Truth, record!(decode_vitals), like Memory;
        /// Cold part of a memory.
        Memory = "memory", Truth, record!(decode_content), fn memory(ns: NsId, id: MemoryId);
        /// Access statistics of a memory.
        Access = "access", Truth, record!(decode_access), like Memory;
        /// The writes that a memory stands for.
        Holder = "holder", Truth, record!(decode_holder), fn holder(ns: NsId, id: MemoryId, number: u32);
        /// Key → holder.
        HolderKey = "holder_key", Truth, Codec::Empty,
            fn holder_key<'k>(ns: NsId, key: Text<'k>, id: MemoryId, number: u32) named key;
        /// Tag → holder.
        HolderTag = "holder_tag", Truth, Codec::Empty,
            fn holder_tag<'k>(ns: NsId, tag: Text<'k>, id: MemoryId, number: u32) named tag
            if !tag.0.is_empty();
        /// Run → holder.
        HolderRun = "holder_run", Truth, Codec::Empty,
            fn holder_run(ns: NsId, run: RunId, id: MemoryId, number: u32);
        /// Name of a category or an entity → its number.
        Term = "term", Truth, row!(24, u32),
            fn term<'k>(ns: NsId, sort: part::Junction, name: Rest<'k>) named name
            if sort.is_term() && !name.0.is_empty();
        /// Number of a category or an entity → its name.
        TermName = "term_name", Truth, row!(25, String),
            fn term_name(ns: NsId, sort: part::Junction, term: u32) if sort.is_term();
        /// Memory → category, entity with role, link, source.
        Junction = "junction", Truth, Codec::Empty,
            fn junction<'k>(ns: NsId, id: MemoryId, end: End<'k>, role: Rest<'k>);
        /// The same, from the other end.
        JunctionBack = "junction_back", Truth, Codec::Empty,
            fn junction_back<'k>(ns: NsId, end: End<'k>, id: MemoryId, role: Rest<'k>);
        /// Superseding memory → superseded memory.
        Superseded = "superseded", Truth, Codec::Empty, fn superseded(ns: NsId, new: MemoryId, id: MemoryId);
        /// What was done.
        Journal = "journal", Truth, record!(decode_journal), fn journal(ns: NsId, seq: u64);
        /// Memory → its journal rows.
        JournalSubject = "journal_subject", Derived, Codec::Empty,
            fn journal_subject(ns: NsId, id: MemoryId, holder: Option<u32>, seq: u64);
        /// What stays of a memory that is gone.
        Tombstone = "tombstone", Truth, record!(decode_tombstone), like Memory;
        /// HMAC of a key or a content → tombstone.
        TombstoneHash = "tombstone_hash", Truth, Codec::Empty,
            fn tombstone_hash<'k>(ns: NsId, hash: &'k [u8; 32], id: MemoryId);
        /// Memories of a partition by creation.
        ByTime = "by_time", Derived, Codec::Empty,
            fn by_time(ns: NsId, part: PartId, created: Time, id: MemoryId);
        /// Memories of a partition and tier by fingerprint.
        ByFingerprint = "by_fingerprint", Derived, Codec::Empty,
            fn by_fingerprint<'k>(
                ns: NsId, part: PartId, tier: Tier,
                fingerprint: &'k [u8; 16], likeness: &'k [u8; 12], id: MemoryId
            );
        /// Instants at which visibility changes without a write.
        Due = "due", Derived, Codec::Empty, like LimboTime;
        /// Memories without a vector.
        Pending = "pending", Derived, Codec::Empty, fn pending(ns: NsId, part: PartId, id: MemoryId);
        /// Counters.
        Counter = "counter", Derived, row!(26, CounterRow),
            fn counter<'k>(ns: NsId, part: PartId, sort: u8, name: Rest<'k>)
            if CounterSort::from_code(sort).is_some();
        /// What maintenance removed, until its undo horizon.
        Limbo = "limbo", Truth, row!(28, LimboRow), like Memory;
        /// Rows of limbo by the instant of their removal.
        LimboTime = "limbo_time", Derived, Codec::Empty, fn by_instant(ns: NsId, at: Time, id: MemoryId);
        /// Messages as they came.
        Event = "event", Truth, row!(29, EventRow), like Memory;
        /// Events by time; those without a text behind the others.
        EventTime = "event_time", Derived, Codec::Empty,
            fn event_time(ns: NsId, textless: u8, at: Time, id: MemoryId) if textless <= 1;
        /// Aggregate or memory → its events.
        EventOf = "event_of", Derived, Codec::Empty,
            fn event_of<'k>(ns: NsId, owner: &'k [u8; 16], at: Time, id: MemoryId);
        /// Families of repeated messages in numbers.
        Aggregate = "aggregate", Truth, row!(30, AggregateRow), like Memory;
        /// A family of messages in one slice of time.
        Family = "family", Truth, row!(31, FamilyRow), like Memory;
        /// Exact key of a message → families.
        FamilyKey = "family_key", Derived, Codec::Empty,
            fn family_key<'k>(
                ns: NsId, part: PartId, key: &'k [u8; 32], standing: &'k [u8; 8], latest: Time, id: MemoryId
            );
        /// Band of a SimHash → families.
        FamilyBand = "family_band", Derived, Codec::Empty,
            fn family_band<'k>(
                ns: NsId, part: PartId, author: u8, print: &'k [u8; 8], band: &'k [u8; 2],
                latest: Time, id: MemoryId
            )
            if AuthorKind::from_code(author).is_some() && usize::from(band[0]) < SIMHASH_BANDS;
        /// Snapshots of a series by their time.
        Series = "series", Derived, Codec::Empty,
            fn series<'k>(ns: NsId, part: PartId, series: Text<'k>, at: Time, id: MemoryId);
        /// Run of maintenance → its journal rows.
        JournalRun = "journal_run", Derived, Codec::Empty, fn journal_run(ns: NsId, run: RunId, seq: u64);
        /// Last run of each pass, and how far it is.
        Pass = "pass", Control, row!(32, PassRow),
            fn pass<'k>(ns: NsId, name: Rest<'k>) named name if !name.0.is_empty();
        /// Analyzer and size of a full-text index.
        TextHead = "text_head", Derived, row!(33, TextHead), like PartitionName;
        /// Documents of a full-text index, in blocks.
        TextDoc = "text_doc", Derived, Codec::Block, fn text(ns: NsId, part: PartId, block: u32);
        /// Documents of a thread by time.
        Thread = "thread", Derived, Codec::Empty,
            fn thread<'k>(ns: NsId, part: PartId, thread: Text<'k>, at: Time, doc: u32);
        /// Term of a full-text index → its documents, in blocks.
        TextPosting = "text_posting", Derived, Codec::Block,
            fn posting<'k>(ns: NsId, part: PartId, term: Text<'k>, first: u32) if !term.0.is_empty();
        /// Paths below `metadata` that have an index.
        MetaKey = "meta_key", Control, row!(34, Option<UnfinishedRow>),
            fn meta_key<'k>(ns: NsId, path: Rest<'k>) named path if check_index_key(path.0).is_ok();
        /// Memories by the values of such a path.
        MetaValue = "meta_value", Derived, Codec::Empty,
            fn meta_row<'k>(ns: NsId, path: Text<'k>, value: model::MetaValue, id: MemoryId)
            if check_index_key(path.0).is_ok();
    }
    format 7 {
        /// What memories carry beside their texts.
        Payload = "payload", Truth, record!(decode_payload), like Memory;
    }
    format 8 {
        /// Memories whose life is over and which still stand, by the end of life; protected ones behind the others.
        Ended = "ended", Derived, Codec::Empty,
            fn ended(ns: NsId, protected: u8, at: Time, id: MemoryId) if protected <= 1;
        /// The inclusion log: what went into the contexts of a language model.
        Context = "context", Truth, row!(50, ContextRow),
            fn context<'k>(ns: NsId, context: Rest<'k>) named context if !context.0.is_empty();
        /// Contexts by time.
        ContextTime = "context_time", Derived, Codec::Empty,
            fn context_time<'k>(ns: NsId, at: Time, context: Rest<'k>) named context;
        /// Memory → the contexts that it was in.
        ContextOf = "context_of", Derived, Codec::Empty,
            fn context_of<'k>(ns: NsId, id: MemoryId, at: Time, context: Rest<'k>) named context;
        /// Visible memories of the short-term tiers.
        ShortTerm = "short_term", Derived, Codec::Empty, like Memory;
        /// Visible durable memories that nobody has used, by sixteenths of their importance and the last write.
        Unused = "unused", Derived, Codec::Empty,
            fn unused(ns: NsId, sixteenth: u8, updated: Time, id: MemoryId) if sixteenth < IMPORTANCE_CLASSES;
        /// Visible short-term memories in use that no consolidation has looked at, by tier and the number of uses.
        InUse = "in_use", Derived, Codec::Empty,
            fn in_use(ns: NsId, tier: Tier, uses: u8, id: MemoryId) if tier.is_short_term() && uses <= USES_MAX;
        /// Superseded memories by the instant of their supersession.
        SupersededTime = "superseded_time", Derived, Codec::Empty, like LimboTime;
        /// From where on the journal of a namespace is whole; no row while nothing was removed from it.
        JournalHead = "journal_head", Control, row!(45, JournalHeadRow), fn journal_head(ns: NsId);
        /// Plans of summaries.
        GcPlan = "gc_plan", Control, row!(60, PlanRow), fn gc_plan(ns: NsId, plan: RunId);
        /// The groups of a plan.
        GcGroup = "gc_group", Control, row!(61, GroupRow), fn gc_group(ns: NsId, plan: RunId, group: u32);
        /// One-bit codes of slots, in rows of 64.
        Bits = "bits", Derived, Codec::Block, like Slot;
        /// The center that the one-bit codes of an index are made with.
        BitsHead = "bits_head", Derived, row!(62, BitsHead), like SlotHead;
        /// Visible summaries of sessions and of chapters by creation.
        ByLevel = "by_level", Derived, Codec::Empty,
            fn by_level(ns: NsId, level: u8, created: Time, id: MemoryId) if matches!(level, 1 | 2);
        /// What agents are after.
        Goal = "goal", Truth, row!(70, GoalRow), like Memory;
        /// HMAC of an agent, or zero bytes for the goals of all → how often its goals have changed.
        GoalEpoch = "goal_epoch", Truth, row!(71, GoalEpochRow), fn goal_epoch<'k>(ns: NsId, agent: &'k [u8; 32]);
        /// Past queries of the ring of a partition, as questions for summaries.
        Query = "query", Truth, row!(63, QueryRow), fn query(ns: NsId, part: PartId, number: u64);
        /// Memory → the queries that had found it.
        QueryOf = "query_of", Derived, Codec::Empty,
            fn query_of(ns: NsId, id: MemoryId, part: PartId, number: u64);
    }
    format 11 {
        /// Tombstones by the instant of their removal.
        TombstoneTime = "tombstone_time", Derived, Codec::Empty, like LimboTime;
    }
}

/// A key that is not built like those of its table.
pub(crate) fn bad_key(table: Table, key: &[u8]) -> Error {
    Error::corrupted(table.name(), key, "the key is not one of this table")
}

/// Id and number at the end of a key.
pub(crate) fn last_id_and_number(table: Table, key: &[u8]) -> Result<(MemoryId, u32)> {
    let ends = key.split_last_chunk().and_then(|(head, number)| Some((head.last_chunk()?, *number)));
    let (id, number) = ends.ok_or_else(|| bad_key(table, key))?;
    Ok((MemoryId::from_bytes(*id), u32::from_be_bytes(number)))
}

/// Id at the end of a key.
pub(crate) fn last_id(table: Table, key: &[u8]) -> Result<MemoryId> {
    key.last_chunk().copied().map(MemoryId::from_bytes).ok_or_else(|| bad_key(table, key))
}

/// A name that begins with NUL is one of a namespace that is being dropped; `check` looks closer.
fn is_namespace(key: &str) -> bool {
    key.starts_with('\0') || key.parse::<NamespaceName>().is_ok_and(|name| name.as_str() == key)
}

fn read_meta(at: At<'_>, bytes: &[u8]) -> Result<()> {
    let tag = Table::Meta.tag();
    match at.key {
        CLOCK => decode_meta::<Clock>(tag, at, bytes).map(drop),
        SIZE => decode_meta::<SizeRow>(tag, at, bytes).map(drop),
        _ => decode_meta::<Identity>(tag, at, bytes).map(drop),
    }
}

impl Table {
    /// How many there are.
    pub(crate) const COUNT: usize = Table::ALL.len();

    /// The tag in the header of its small metadata rows; 0 where its values are records or empty.
    pub(crate) const fn tag(self) -> u8 {
        match self.codec() {
            Codec::Value { tag, .. } => tag,
            Codec::Empty | Codec::Block => 0,
        }
    }

    /// Whether its rows have no value: the key says all.
    pub(crate) const fn is_all_key(self) -> bool {
        matches!(self.codec(), Codec::Empty)
    }

    /// Checks that a value is whole, unread.
    ///
    /// # Errors
    /// `Corrupted` where its checksum does not fit, or it stands where none belongs.
    pub(crate) fn check_value(self, key: &[u8], bytes: &[u8]) -> Result<()> {
        match self.codec() {
            Codec::Empty if bytes.is_empty() => Ok(()),
            Codec::Empty => Err(Error::corrupted(self.name(), key, "a value where none belongs")),
            Codec::Block | Codec::Value { .. } => record::check_sum(At::new(self.name(), key), bytes),
        }
    }

    /// Reads a value, as far as its bytes alone can be read.
    ///
    /// # Errors
    /// `Corrupted` where it can't be.
    pub(crate) fn read_value(self, key: &[u8], bytes: &[u8]) -> Result<()> {
        match self.codec() {
            Codec::Value { read, .. } => read(At::new(self.name(), key), bytes),
            Codec::Empty | Codec::Block => self.check_value(key, bytes),
        }
    }

    /// Whether `reindex` writes its rows anew from others, or mends those that are damaged.
    pub(crate) fn is_rebuilt(self) -> bool {
        self.sort() == Sort::Derived || matches!(self, Table::Event | Table::Family | Table::Aggregate)
    }

    /// Whether its rows are those of an index of vectors, which is written anew as a whole.
    pub(crate) const fn is_of_index(self) -> bool {
        matches!(
            self,
            Table::Slot
                | Table::SlotHead
                | Table::SlotFree
                | Table::SlotDead
                | Table::Graph
                | Table::GraphHead
                | Table::Bits
                | Table::BitsHead
        )
    }

    /// Whether its rows are those of a full-text index, which is written anew as a whole.
    pub(crate) const fn is_of_text(self) -> bool {
        matches!(self, Table::TextHead | Table::TextDoc | Table::Thread | Table::TextPosting)
    }

    /// Whether rows about dropped namespaces, which stand under no namespace, may lie in it.
    pub(crate) const fn tells_of_drops(self) -> bool {
        matches!(
            self,
            Table::Journal
                | Table::JournalSubject
                | Table::Tombstone
                | Table::TombstoneHash
                | Table::TombstoneTime
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
