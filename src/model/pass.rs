//! The list of maintenance passes: one row a pass, and all that names passes is made from the rows.

use crate::model::closed::closed_set;

/// Hands the rows to the macro `$with`, which lives where a list of passes is needed.
///
/// A row reads `Name = code, "name", rule RULE "rule", stage Stage, in file;`, below the sentence that documents
/// the pass and stands in the help of the command line. The order of the rows is the order in which passes run. A model may be slow, so `embed` waits behind all that erases.
///
/// - `code` and `rule` are those of the [`RuleId`](crate::model::RuleId) that its journal rows name: the code stands on disk, and no other rule
///   may have it.
/// - `stage` names it in `sweeper.stages` of the policy; a pass without it is none that a policy can ask for.
/// - `file` is the module of `hygiene` that implements it, for a type with the name of the pass.
macro_rules! passes {
    ($with:ident) => {
        $with! {
            /// Counts the searches that found memories and that no write has counted yet, and trims old entries of the inclusion log.
            Fold = 44, "fold", rule FOLD "MODEL-40", stage Fold, in fold;
            /// Removes memories whose life is over: to limbo where a tier had set the end, at once where a caller had.
            Expire = 36, "expire", rule EXPIRED "LIFE-3", stage Purge, in expire;
            /// Removes the short-term memories least worth keeping, where there are more than the policy allows.
            Cap = 41, "cap", rule CAP "LIFE-4", stage Cap, in cap;
            /// Erases memories that were superseded longer ago than `sweeper.tombstone_ttl`.
            Superseded = 42, "superseded", rule PURGE_SUPERSEDED "LIFE-10", stage SupersededPurge, in superseded;
            /// Makes durable memories that matter little and were never used episodic, so that they end unless they are used.
            Demote = 70, "demote", rule DEMOTE "LIFE-24", stage Demote, in demote;
            /// Keeps the latest snapshot of each period and removes the others.
            Snapshots = 33, "snapshots", rule PRUNE_SNAPSHOTS "DEDUP-69", stage Snapshots, in snapshots;
            /// Collapses operational reports that differ only in numbers and dates.
            Collapse = 29, "collapse", rule COLLAPSE "DEDUP-18", stage Collapse, in collapse;
            /// Merges memories of equal text, as the write path would have done.
            NearDuplicates = 31, "near-duplicates", rule NEAR_DUPLICATES "pass.near-duplicates", in near;
            /// Merges memories whose vectors are nearly equal.
            VectorDuplicates = 32, "vector-duplicates", rule VECTOR_DUPLICATES "DEDUP-46", stage Dedup, in vector_duplicates;
            /// Gives durable memories without a confidence that of an imported memory.
            Backfill = 47, "backfill", rule BACKFILL "LIFE-17", in backfill;
            /// Restores superseded memories whose chain of superseders leads nowhere.
            Supersession = 34, "supersession", rule REPAIR_SUPERSESSION "LIFE-9", in chains;
            /// Moves short-term memories in use to a more durable tier: those of `working` to `episodic`, and short texts to a durable one.
            Promote = 71, "promote", rule PROMOTE "LIFE-23", stage Promote, in promote;
            /// Removes summaries of sessions and of chapters that are too old, or too little used, if `prune.enabled` says so.
            Prune = 72, "prune", rule PRUNE "LIFE-34", stage Prune, in prune;
            /// Marks memories of near vectors as clusters with a representative each; a sweeper does so while nobody calls, if `cluster.enabled` says so.
            Cluster = 75, "cluster", rule CLUSTER "LIFE-42", stage Cluster, in cluster;
            /// Erases memories that have been in limbo for longer than the undo horizon.
            Limbo = 35, "limbo", rule LIMBO "MODEL-29", stage Limbo, in limbo;
            /// Removes what is older, or more, than the policy keeps: rows of the journal, texts of messages, events, tombstones.
            Retention = 43, "retention", rule RETENTION "MODEL-52", stage Retention, in retention;
            /// Embeds the memories that wait for a vector; does nothing without an embedder.
            Embed = 30, "embed", rule EMBED "pass.embed", in embed;
            /// Builds the indexes of large partitions, links new rows, drops the indexes of small partitions, and finishes declared indexes.
            Index = 18, "index", rule INDEX "pass.index", in link;
            /// Unlinks the nodes of deleted memories, erases their codes and frees their slots.
            Repair = 19, "repair", rule REPAIR "pass.repair", in repair;
        }
    };
}

pub(crate) use passes;

macro_rules! enumerated {
    ($(
        #[doc = $help:literal] $name:ident = $code:literal, $text:literal,
        rule $rule:ident $id:literal, $(stage $stage:ident,)? in $file:ident;
    )+) => {
        closed_set! {
            /// A maintenance pass.
            pub Pass "pass" {
                $(#[doc = $help] $name = $code, $text;)+
            }
        }

        impl Pass {
            /// What it does, in a sentence.
            ///
            /// ```
            /// use oubliette::maintain::Pass;
            /// for pass in Pass::ALL {
            ///     println!("{pass:20} {}", pass.help());
            /// }
            /// assert!(Pass::ALL.iter().all(|pass| pass.help().ends_with('.')));
            /// ```
            pub fn help(self) -> &'static str {
                match self { $(Pass::$name => $help.trim_ascii(),)+ }
            }
        }

        /// What the policy may enable in a sweep, by its name there: passes, and summaries.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Stage {
            $($(#[doc = $help] $stage,)?)+
            /// Lets summaries take the place of old and unused memories; a sweeper does so that has a summarizer.
            Gc,
        }

        impl Stage {
            /// The pass that it runs; none of summaries, whose writer no pass waits for.
            pub(crate) const fn pass(self) -> Option<Pass> {
                match self {
                    $($(Stage::$stage => Some(Pass::$name),)?)+
                    Stage::Gc => None,
                }
            }
        }
    };
}

passes!(enumerated);
