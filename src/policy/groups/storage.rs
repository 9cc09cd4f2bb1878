//! How long rows, tombstones, journal and events stay, and how much work a pass may do.

use serde::Deserialize;
use serde::Serialize;

use super::group;
use crate::model::Stage;
use crate::policy::Span;
use crate::policy::bounds::COUNT_MAX;
use crate::policy::bounds::any;
use crate::policy::bounds::count;
use crate::policy::bounds::days;
use crate::policy::bounds::lasting;
use crate::policy::bounds::maybe_zero;
use crate::policy::bounds::name;
use crate::policy::bounds::set;
use crate::policy::bounds::share;
use crate::policy::bounds::weight;

group! {
    /// Time to live of the short-term tiers.
    Ttl {
        /// Lifetime of a row of tier working.
        working: Span = Span::hours(72), lasting;
        /// Lifetime of a row of tier episodic.
        episodic: Span = Span::days(30), lasting;
    }
}

group! {
    /// Taking back what maintenance removed.
    Undo {
        /// How long removed content stays in limbo; 0 erases it in the same transaction.
        horizon: Span = Span::days(7), maybe_zero;
    }
}

group! {
    /// What stays of a removed row.
    Tombstone {
        /// Hash of content and keys in a Tombstone: `hmac` or `sha256`.
        hash: TombstoneHash = TombstoneHash::Hmac, any;
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
    /// How much automatic actors may destroy in one sweep of a namespace.
    Budget {
        /// Share of the live rows, 0 to 1.
        share: f64 = 0.25, share;
        /// Rows that are allowed however few are live.
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
    /// Plans of maintenance.
    Gc {
        /// How long a plan may be carried out.
        plan_ttl: Span = Span::hours(24), lasting;
    }
}

group! {
    /// The vector index.
    Index {
        /// Vectors of a partition past which it gets a graph; a smaller one is scanned as a whole.
        exact_max: u32 = 10_000, count(0, 1_000_000_000);
        /// Vectors of a partition below which it loses its graph; at most `index.exact_max`.
        exact_min: u32 = 7_000, count(0, 1_000_000_000);
        /// Vectors that may lie beside the graph of a partition, however small it is; past that, writers help to link
        /// them.
        tail_min: u32 = 2_048, count(0, 1_000_000_000);
        /// Share of the vectors of a partition that may lie beside its graph, 0 to 1.
        tail_share: f64 = 0.0625, share;
    }
}

group! {
    /// The full-text index.
    Text {
        /// Language whose endings are taken off words, or `none`. An index keeps the one that it was made with; `reindex`
        /// brings it to this one.
        stemming: Stemming = Stemming::English, any;
    }
}

/// Which endings are taken off words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stemming {
    /// None: words are found in the form that they have.
    None,
    /// Arabic.
    Arabic,
    /// Danish.
    Danish,
    /// Dutch.
    Dutch,
    /// English.
    English,
    /// Finnish.
    Finnish,
    /// French.
    French,
    /// German.
    German,
    /// Greek.
    Greek,
    /// Hungarian.
    Hungarian,
    /// Italian.
    Italian,
    /// Norwegian.
    Norwegian,
    /// Portuguese.
    Portuguese,
    /// Romanian.
    Romanian,
    /// Russian.
    Russian,
    /// Spanish.
    Spanish,
    /// Swedish.
    Swedish,
    /// Tamil.
    Tamil,
    /// Turkish.
    Turkish,
}

impl Stemming {
    /// Its name in the document.
    pub const fn as_str(self) -> &'static str {
        match self {
            Stemming::None => "none",
            Stemming::Arabic => "arabic",
            Stemming::Danish => "danish",
            Stemming::Dutch => "dutch",
            Stemming::English => "english",
            Stemming::Finnish => "finnish",
            Stemming::French => "french",
            Stemming::German => "german",
            Stemming::Greek => "greek",
            Stemming::Hungarian => "hungarian",
            Stemming::Italian => "italian",
            Stemming::Norwegian => "norwegian",
            Stemming::Portuguese => "portuguese",
            Stemming::Romanian => "romanian",
            Stemming::Russian => "russian",
            Stemming::Spanish => "spanish",
            Stemming::Swedish => "swedish",
            Stemming::Tamil => "tamil",
            Stemming::Turkish => "turkish",
        }
    }
}

group! {
    /// How a search by words, or by words and vector, ranks (`docs/recall.md`).
    Recall {
        /// What a function word of the query counts for, beside its rarity, 0 to 1.
        function_words: f64 = 0.25, share;
        /// Share of its words that the neighbour of a memory in its thread lends it, 0 to 1; 0 is off.
        window: f64 = 0.45, share;
        /// What is left of that share with each step farther, 0 to 1.
        window_decay: f64 = 0.7, share;
        /// Steps to each side from which words are lent.
        window_reach: u32 = 2, count(0, 16);
        /// Weight of the cosine beside the words.
        vector: f64 = 0.7, weight;
        /// Weight of what the cosine is above that of the tenth nearest.
        margin: f64 = 0.5, weight;
        /// What a memory gets more whose time lies in a month that the query names; 0 is off.
        month: f64 = 0.15, weight;
        /// What it gets more on the day that the query names, in full, a third of it three days off; 0 is off.
        day: f64 = 0.2, weight;
        /// What the latest memory gets more, less by `recall.recency_days`; 0 is off.
        recency: f64 = 0.0, weight;
        /// After so many days a third of that is left.
        recency_days: f64 = 30.0, days;
        /// What a memory of full confidence gets more, one of none half of it; 0 is off.
        trust: f64 = 0.0, weight;
        /// What a core memory gets more, an important one two thirds of it, a noteworthy one a third; 0 is off.
        significance: f64 = 0.0, weight;
    }
}

group! {
    /// Statistics.
    Stats {
        /// Name of the shared partition among the agents.
        shared_label: String = "shared-memory".to_owned(), name;
        /// Due instants that one call applies before it counts.
        max_due: u32 = 10_000, count(1, 10_000_000);
        /// How far the clock may stand behind the last commit without a warning.
        clock_warn: Span = Span::hours(24), lasting;
    }
}

group! {
    /// What maintenance does by itself.
    Sweeper {
        /// What maintenance runs when no pass is named, a set.
        stages: Vec<Stage> = vec![Stage::Limbo], set(any);
    }
}
