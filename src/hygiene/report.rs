//! What a check found.

use serde::Serialize;

use crate::model::MemoryId;

/// Findings that a report shows; the rest is counted.
const FINDINGS_MAX: usize = 1_000;

/// One thing that is not as it must be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What sort of fault it is: `corrupted`, `index_missing`, `counter` …
    pub code: &'static str,
    /// Table, as in `docs/format.md`; `file` for a residue.
    pub table: &'static str,
    /// Key of the row, in hexadecimal; the offset for a residue.
    pub key: String,
    /// What does not fit, in words.
    pub what: String,
    /// The namespace in which it stands, where that has a name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The agent in whose partition it stands; none in the shared one, or where it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The memory or the message that it is a row of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<MemoryId>,
    /// A key of that memory; else the tag, the name or the path that the row is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl Finding {
    pub(crate) fn new(code: Code, table: &'static str, key: String, what: impl Into<String>) -> Self {
        let what = what.into();
        Finding { code: code.as_str(), table, key, what, namespace: None, agent: None, id: None, name: None }
    }

    /// A row that can't be read.
    pub(crate) fn corrupted(table: &'static str, key: &[u8], what: String) -> Self {
        Finding::new(Code::Corrupted, table, hex(key), what)
    }

    /// Where it stands in words: namespace and agent, id, key or name; the bytes of its key where these tell nothing.
    ///
    /// ```
    /// use oubliette::report::CheckOptions;
    /// # let folder = tempfile::tempdir()?;
    /// # let db = oubliette::Database::open(folder.path().join("m.oub"))?;
    /// for finding in db.check(&CheckOptions::default())?.findings {
    ///     println!("{}: {} ({})", finding.place(), finding.what, finding.code);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn place(&self) -> String {
        let scope =
            self.namespace.iter().chain(&self.agent).map(String::as_str).collect::<Vec<_>>().join("/");
        let id = self.id.map(|id| id.to_string());
        let words: Vec<&str> = [Some(scope.as_str()), id.as_deref(), self.name.as_deref()]
            .into_iter()
            .flatten()
            .filter(|word| !word.is_empty())
            .collect();
        match self.id.is_none() && self.name.is_none() {
            true => words.into_iter().chain([self.key.as_str()]).collect::<Vec<_>>().join(" "),
            false => words.join(" "),
        }
    }
}

/// Result of a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CheckReport {
    /// Whether nothing was found.
    pub ok: bool,
    /// What was found, at most 1,000.
    pub findings: Vec<Finding>,
    /// How many more findings there are.
    pub more: u64,
    /// Rows that were checked, of all tables.
    pub checked: u64,
    /// Records of an earlier export ([`ErasedProbe`](crate::report::ErasedProbe)) with a text of which nothing was searched for: memories that are still
    /// there, in whatever state, say the same, or the text has fewer than 5 bytes. Nothing is proved of them.
    pub unproven: u64,
}

impl Default for CheckReport {
    fn default() -> Self {
        CheckReport { ok: true, findings: Vec::new(), more: 0, checked: 0, unproven: 0 }
    }
}

impl CheckReport {
    /// Adds that no write can open the file.
    pub(crate) fn file_misfits(&mut self, why: &str) {
        let what =
            format!("{why}: no write can open the file; `backup` writes a whole one of all that can be read");
        self.add(Code::FileLength, "file", String::new(), what);
    }

    /// Adds a finding; past 1,000 they are only counted.
    pub(crate) fn add(&mut self, code: Code, table: &'static str, key: String, what: impl Into<String>) {
        self.ok = false;
        if self.findings.len() < FINDINGS_MAX {
            self.findings.push(Finding::new(code, table, key, what));
        } else {
            self.more += 1;
        }
    }
}

macro_rules! codes {
    ($($(#[$doc:meta])+ $code:ident = $name:literal;)+) => {
        /// Every sort of finding.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Code { $($(#[$doc])+ $code,)+ }

        impl Code {
            /// Every member, for the test that provokes each.
            #[cfg(test)]
            pub(crate) const ALL: &'static [Code] = &[$(Code::$code,)+];

            /// Its name in JSON.
            pub(crate) const fn as_str(self) -> &'static str {
                match self { $(Code::$code => $name,)+ }
            }
        }
    };
}

codes! {
    /// The bytes make no sense.
    Corrupted = "corrupted";
    /// A length of the file that its header contradicts: rows can be read, and no write can open the file.
    FileLength = "file_length";
    /// A key that is not built as the table's keys are.
    KeyShape = "key_shape";
    /// A value where none belongs, or one that contradicts its key.
    ValueShape = "value_shape";
    /// A row of a namespace that is not there.
    NamespaceUnknown = "namespace_unknown";
    /// A row of a partition that is not there.
    PartitionUnknown = "partition_unknown";
    /// A row of an embedding space that is not there.
    SpaceUnknown = "space_unknown";
    /// Identity or clock are missing, or the clock names what is not there.
    Meta = "meta";
    /// The sum of the bytes of all rows is missing or wrong; `reindex` and `compact` count it anew.
    Size = "size";
    /// Number of a namespace given twice, or not given out yet.
    Namespace = "namespace";
    /// Name and number of a partition disagree.
    Partition = "partition";
    /// An embedding space out of bounds.
    Space = "space";
    /// Vitals without content.
    ContentMissing = "content_missing";
    /// A row of a memory that is not there.
    RowMissing = "row_missing";
    /// Bytes of content miscounted.
    ContentBytes = "content_bytes";
    /// A kind that contradicts the name of a custom kind.
    Kind = "kind";
    /// Version 0.
    Version = "version";
    /// Instants that contradict each other or the clock of the store.
    Times = "times";
    /// Counted as used more, or less, than its statistics say.
    Usage = "usage";
    /// Counted as something that it is not.
    Counted = "counted";
    /// The fingerprint is not that of the text.
    Fingerprint = "fingerprint";
    /// A row of a secondary index is missing.
    IndexMissing = "index_missing";
    /// A row of a secondary index that must not be.
    IndexExtra = "index_extra";
    /// A memory without holders.
    HolderMissing = "holder_missing";
    /// Holders miscounted.
    HolderCount = "holder_count";
    /// Number of a holder not given out yet.
    HolderNumber = "holder_number";
    /// A holder that is not found by its key, tag or run.
    HolderIndexMissing = "holder_index_missing";
    /// A key, tag or run that finds no such holder.
    HolderIndexExtra = "holder_index_extra";
    /// Tags that are not the union of what the holders brought.
    Tags = "tags";
    /// What a holder brings is not joined.
    JunctionMissing = "junction_missing";
    /// A junction that no holder brings.
    JunctionExtra = "junction_extra";
    /// A junction with one direction only.
    JunctionOneWay = "junction_one_way";
    /// Reinforced less than the holders' shares.
    Reinforcement = "reinforcement";
    /// A key held by two current memories.
    KeyShared = "key_shared";
    /// Name and number of a category or an entity disagree.
    Term = "term";
    /// A category or an entity that nothing names.
    TermUnused = "term_unused";
    /// A link to nothing.
    LinkTarget = "link_target";
    /// A source that is neither memory nor tombstone.
    SourceTarget = "source_target";
    /// Superseded by what is neither memory nor tombstone.
    SupersederMissing = "superseder_missing";
    /// Supersession in a circle.
    SupersessionCycle = "supersession_cycle";
    /// The slot of a memory does not know it.
    SlotMissing = "slot_missing";
    /// Instants beside a code that are not those of its memory.
    SlotTimes = "slot_times";
    /// The text of a memory is that of none of its holders.
    TextWriter = "text_writer";
    /// A slot whose memory does not know it.
    SlotOrphan = "slot_orphan";
    /// The list of free slots contradicts the slots.
    SlotFree = "slot_free";
    /// A memory and its document in the full-text index do not know each other.
    TextDoc = "text_doc";
    /// Instants of a document that are not those of its memory.
    TextTimes = "text_times";
    /// The head of a full-text index contradicts its documents.
    TextHead = "text_head";
    /// Postings that are not those of the texts.
    TextPosting = "text_posting";
    /// The order of a thread contradicts its documents.
    Thread = "thread";
    /// The count of slots contradicts the slots.
    SlotHead = "slot_head";
    /// A code that is not that of its vector, or what is left in a free slot.
    SlotValue = "slot_code";
    /// One-bit codes that are not those of the codes beside them, or are missing.
    Bits = "bits";
    /// A slot from a commit that is not yet, or one that has ended.
    SlotBorn = "slot_born";
    /// The list of dead slots contradicts the slots.
    SlotDead = "slot_dead";
    /// A node of a graph without a slot that needs it, or a dead slot that is no node.
    GraphNode = "graph_node";
    /// A link to the node itself, twice to another, or to none of its level.
    GraphLink = "graph_link";
    /// A node whose level is not that of its memory.
    GraphLevel = "graph_level";
    /// Size or entry of a graph contradict its nodes, or a graph without its head.
    GraphHead = "graph_head";
    /// A live node that no search comes to.
    GraphReach = "graph_unreachable";
    /// Too many nodes that a search for their own vectors does not find.
    GraphRecall = "graph_recall";
    /// A code without its vector.
    VectorMissing = "vector_missing";
    /// A vector in a free slot.
    VectorExtra = "vector_extra";
    /// A vector whose length is not 1.
    VectorLength = "vector_length";
    /// A row of a memory that has a tombstone.
    TombstoneRow = "tombstone_row";
    /// A tombstone and its hashes disagree.
    TombstoneHash = "tombstone_hash";
    /// A journal row from a number or an instant that is not yet.
    JournalSeq = "journal_seq";
    /// A journal row and the list of its subject disagree.
    JournalSubject = "journal_subject";
    /// The list of what a run can take back names another journal row.
    JournalRun = "journal_run";
    /// A row in limbo without its tombstone, its vitals or its place in time, or the other way round.
    Limbo = "limbo";
    /// The journal tells a value of an erased memory.
    JournalPlain = "journal_plain";
    /// A message or a family names a memory, an aggregate, a run or an event that is not there.
    EventLink = "event_link";
    /// Members of an aggregate miscounted.
    AggregateCount = "aggregate_count";
    /// Members of a family miscounted, or its instants out of order.
    FamilyCount = "family_count";
    /// A counter that is not what the rows count up to.
    Counter = "counter";
    /// A counter row that stands at nothing.
    CounterZero = "counter_zero";
    /// Bytes of an erased memory are left in the file.
    Residue = "residue";
}

/// Bytes of a key that a finding shows.
pub(super) const KEY_BYTES_MAX: usize = 96;

/// A key in hexadecimal, its first 96 bytes.
pub(super) fn hex(key: &[u8]) -> String {
    crate::model::hex::hex(key.get(..KEY_BYTES_MAX).unwrap_or(key))
}

/// The bytes that [`hex`] shows.
pub(super) fn unhex(key: &str) -> Option<Vec<u8>> {
    let pairs = key.as_bytes().chunks(2);
    pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}
