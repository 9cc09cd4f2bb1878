//! Published variants of pruning, by their names. A host compares them with its own policy before it takes one over.

use crate::error::Result;
use crate::model::closed::closed_set;
use crate::policy::{Policy, Syntax};

closed_set! {
    /// A published variant of pruning. A preset is a partial document, laid over a policy.
    pub Preset "preset" {
        /// The pair of thresholds that was chosen in trials, of memory saved against quality of retrieval; the defaults, switched on.
        L1LowL2Medium = 0, "l1_low_l2_medium";
        /// By steps of the host alone, at the lower ends of the published ranges: summaries of sessions after 50, of chapters after 500.
        StepsEarly = 1, "steps_early";
        /// By steps of the host alone, at the upper ends: after 100 and after 1,000.
        StepsLate = 2, "steps_late";
        /// The lowest scores of each level, whatever they are: 30 % of the summaries of sessions, 10 % of those of chapters.
        BottomShare = 3, "bottom_share";
        /// Members of clusters that add little to their representative, from a cosine of 0.92 on.
        Redundancy = 4, "redundancy";
    }
}

impl Preset {
    /// The document, in TOML.
    ///
    /// ```
    /// use oubliette::policy::{Policy, Preset, Syntax};
    /// for preset in Preset::ALL {
    ///     Policy::parse(preset.document(), Syntax::Toml)?;
    /// }
    /// # Ok::<(), oubliette::Error>(())
    /// ```
    pub const fn document(self) -> &'static str {
        match self {
            Preset::L1LowL2Medium => {
                "prune.enabled = true\nprune.mode = 'both'\nprune.l1.mus = 0.2\nprune.l2.mus = 0.3\n"
            }
            // Steps alone: the other rules of age are put out of reach.
            Preset::StepsEarly => {
                "prune.enabled = true\nprune.mode = 'age'\n\
                 prune.l1 = { max_steps = 50, delay_steps = 9007199254740992, min_age = '36525d' }\n\
                 prune.l2 = { max_steps = 500, max_age = '36525d' }\n"
            }
            Preset::StepsLate => {
                "prune.enabled = true\nprune.mode = 'age'\n\
                 prune.l1 = { max_steps = 100, delay_steps = 9007199254740992, min_age = '36525d' }\n\
                 prune.l2 = { max_steps = 1000, max_age = '36525d' }\n"
            }
            Preset::BottomShare => {
                "prune.enabled = true\nprune.mode = 'mus'\nprune.l1.bottom = 0.3\nprune.l2.bottom = 0.1\n"
            }
            Preset::Redundancy => "cluster.enabled = true\ncluster.cosine = 0.92\ncluster.prune = true\n",
        }
    }
}

impl Policy {
    /// This policy with the keys of a preset in place of its own.
    ///
    /// ```
    /// use oubliette::policy::{Policy, Preset};
    /// let policy = Policy::default().with_preset(Preset::BottomShare)?;
    /// assert_eq!((policy.prune.enabled, policy.prune.l1.bottom), (true, 0.3));
    /// # Ok::<(), oubliette::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Policy` where another key of this policy is out of its bounds.
    pub fn with_preset(&self, preset: Preset) -> Result<Policy> {
        self.overlaid(preset.document(), Syntax::Toml)
    }
}
