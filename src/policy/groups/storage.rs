//! How long rows, tombstones, journal and events stay, and how much work a pass may do.

use serde::{Deserialize, Serialize};

use super::group;
use crate::model::closed::closed_set;
use crate::model::{Span, Stage};
use crate::policy::bounds::{COUNT_MAX, any, count, days, lasting, maybe_zero, name, set, share, weight};

group! {
    /// Time to live of the short-term tiers.
    Ttl {
        /// Lifetime of a memory of tier `working`.
        working: Span = Span::from_hours(72), lasting;
        /// Lifetime of a memory of tier `episodic`.
        episodic: Span = Span::from_days(30), lasting;
    }
}

group! {
    /// Removal of memories whose life is over.
    Purge {
        /// Memories that one slice of the pass `expire` removes, at least 1.
        batch: u32 = 500, count(1, 10_000);
        /// Memories whose life is over that each write removes from its namespace; 0 is off.
        per_write: u32 = 8, count(0, 1_000);
    }
}

group! {
    /// Taking back what maintenance removed.
    Undo {
        /// How long removed content stays in limbo; 0 erases it in the same transaction.
        horizon: Span = Span::from_days(7), maybe_zero;
    }
}

group! {
    /// What remains of a removed memory.
    Tombstone {
        /// Hash of text and keys in a tombstone: `hmac` or `sha256`.
        hash: TombstoneHash = TombstoneHash::Hmac, any;
        /// How long a tombstone is kept, beyond `undo.horizon` in any case, and while something names its memory; 0 keeps it for
        /// ever.
        retention: Span = Span::ZERO, maybe_zero;
    }
}

/// How a Tombstone names the content that is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TombstoneHash {
    /// HMAC-SHA-256 with the secret of the store: short texts cannot be guessed from it.
    Hmac,
    /// Plain SHA-256, which other systems can compare.
    Sha256,
}

group! {
    /// The journal.
    Journal {
        /// How long rows of the journal, and plans of summaries that are over, are kept, beyond `undo.horizon` in any case.
        max_age: Span = Span::from_days(30), lasting;
        /// Number of rows of the file that are kept, the latest ones; rows younger than `undo.horizon` are kept in any case.
        max_rows: u64 = 1_000_000, count(1, COUNT_MAX);
    }
}

group! {
    /// Messages as they came.
    Events {
        /// How long after a message was written its event keeps what it said, beyond `undo.horizon` in any case.
        payload_ttl: Span = Span::from_days(30), lasting;
        /// How long after a message was written its event is kept, beyond `undo.horizon` in any case.
        metadata_ttl: Span = Span::from_days(365), lasting;
        /// Number of events of a namespace that are kept, the latest ones; younger events than `undo.horizon` are kept in any
        /// case; 0 is off.
        max_rows: u64 = 0, count(0, COUNT_MAX);
    }
}

group! {
    /// How much automatic actors may destroy in one sweep of a namespace.
    Budget {
        /// Share of the live memories that one sweep may remove, 0 to 1.
        share: f64 = 0.25, share;
        /// Number of memories that one sweep may always remove, however few are live.
        floor: u64 = 500, count(0, COUNT_MAX);
    }
}

group! {
    /// Size of one plan of a maintenance pass.
    Plan {
        /// Rows of one slice of a plan, at least 1.
        max_rows: u32 = 10_000, count(1, 10_000_000);
        /// Milliseconds of work in one slice of a plan, before its commit.
        max_ms: u32 = 5, count(1, 60_000);
    }
}

group! {
    /// The vector index.
    Index {
        /// Bytes of codes above which a partition gets a graph; a smaller partition is scanned. A vector counts as one
        /// byte a dimension and 64 more.
        scan_max: u64 = 90_000_000, count(0, COUNT_MAX);
        /// Number of vectors that may lie beside the graph of any partition; past this number writers help to link them.
        tail_min: u32 = 2_048, count(0, 1_000_000_000);
        /// Share of the vectors of a partition that may lie beside its graph, 0 to 1.
        tail_share: f64 = 0.0625, share;
    }
}

group! {
    /// The full-text index.
    Text {
        /// Language whose word endings are removed, or `none`. An index keeps the language that it was made with until
        /// `reindex`.
        stemming: Stemming = Stemming::default(), any;
    }
}

closed_set! {
    /// The language whose word endings are removed.
    #[derive(Default)]
    pub Stemming "stemming" {
        /// No endings are removed: words are found in the form in which they stand.
        None = 0, "none";
        /// Arabic.
        Arabic = 1, "arabic";
        /// Danish.
        Danish = 2, "danish";
        /// Dutch.
        Dutch = 3, "dutch";
        /// English.
        #[default]
        English = 4, "english";
        /// Finnish.
        Finnish = 5, "finnish";
        /// French.
        French = 6, "french";
        /// German.
        German = 7, "german";
        /// Greek.
        Greek = 8, "greek";
        /// Hungarian.
        Hungarian = 9, "hungarian";
        /// Italian.
        Italian = 10, "italian";
        /// Norwegian.
        Norwegian = 11, "norwegian";
        /// Portuguese.
        Portuguese = 12, "portuguese";
        /// Romanian.
        Romanian = 13, "romanian";
        /// Russian.
        Russian = 14, "russian";
        /// Spanish.
        Spanish = 15, "spanish";
        /// Swedish.
        Swedish = 16, "swedish";
        /// Tamil.
        Tamil = 17, "tamil";
        /// Turkish.
        Turkish = 18, "turkish";
    }
}

group! {
    /// How a search by words, or by words and vector, ranks (`docs/recall.md`).
    Recall {
        /// Weight of a function word of a query as a share of its weight by rarity, 0 to 1.
        function_words: f64 = 0.25, share;
        /// Share of its words that a memory receives from its next neighbours in a thread, 0 to 1; 0 turns neighbours
        /// off.
        window: f64 = 0.45, share;
        /// Factor by which that share shrinks with each further step, 0 to 1.
        window_decay: f64 = 0.7, share;
        /// Number of steps to each side from which neighbours lend words.
        window_reach: u32 = 2, count(0, 16);
        /// Weight of the cosine beside the words.
        vector: f64 = 0.7, weight;
        /// Weight of the amount by which the cosine exceeds that of the tenth nearest memory.
        margin: f64 = 0.5, weight;
        /// Score added to a memory of a month that the query names; 0 is off.
        month: f64 = 0.15, weight;
        /// Score added to a memory of a day that the query names in full; a third of it three days off; 0 is off.
        day: f64 = 0.2, weight;
        /// Score added to a summary that has sources, or has taken their place, because it stands for several memories; 0 is off.
        summary: f64 = 0.2, weight;
        /// Score added to the newest memory; it decays with age by `recall.recency_days`; 0 is off.
        recency: f64 = 0.0, weight;
        /// Number of days after which a third of the recency is left.
        recency_days: f64 = 30.0, days;
        /// Score added to a memory of full confidence; half of it without a confidence; 0 is off.
        trust: f64 = 0.0, weight;
        /// Score added to a core memory; an important memory gets two thirds of it, a noteworthy memory one third; 0 is
        /// off.
        significance: f64 = 0.0, weight;
    }
}

group! {
    /// Statistics.
    Stats {
        /// Name of the shared partition among the agents.
        shared_label: String = "shared-memory".to_owned(), name;
        /// Number of due instants that one call applies before it counts.
        max_due: u32 = 10_000, count(1, 10_000_000);
        /// How far the clock may be behind the last commit before a warning.
        clock_warn: Span = Span::from_hours(24), lasting;
    }
}

group! {
    /// The passes of a sweep.
    Sweeper {
        /// Time from one sweep of the sweeper to the next; 0 is off.
        interval: Span = Span::ZERO, maybe_zero;
        /// How long superseded memories are kept, beyond `undo.horizon` in any case; 0 keeps them for ever.
        tombstone_ttl: Span = Span::ZERO, maybe_zero;
        /// How long a durable memory that nobody has used stays one after its last write, before the pass `demote`; 0 is off.
        demote_after: Span = Span::ZERO, maybe_zero;
        /// The passes that maintenance runs when no pass is named, a set.
        stages: Vec<Stage> = vec![
            Stage::Fold, Stage::Purge, Stage::Cap, Stage::SupersededPurge, Stage::Demote, Stage::Limbo,
            Stage::Retention,
        ], set(any);
        /// Visible memories of the short-term tiers that a namespace may have; 0 and less is off.
        short_term_cap: i64 = 0, any;
    }
}
