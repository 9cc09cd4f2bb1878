//! What a host puts into the contexts of a language model: the inclusion log.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::limits::{CONTEXT_ITEMS_MAX, CONTEXT_NAME_BYTES_MAX, KEY_BYTES_MAX};
use crate::model::closed::closed_set;
use crate::model::id::MemoryId;
use crate::model::memory::Memory;
use crate::model::name::{Name, check_text};
use crate::model::parts::Access;
use crate::model::time::Time;

const DAY_MS: f64 = 86_400_000.0;

closed_set! {
    /// Why a memory was put into a context.
    pub Bucket "bucket" {
        /// The memory is in every context.
        Persistent = 0, "persistent";
        /// The memory answers what was asked.
        Related = 1, "related";
        /// The memory is a part of what was said last.
        Recent = 2, "recent";
    }
}

/// A memory that was put into a context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inclusion {
    /// Id or key of the memory.
    pub name: Name,
    /// The tokens that it took.
    pub tokens: u32,
    /// Why it was put there, if the host says so.
    pub bucket: Option<Bucket>,
}

impl Inclusion {
    /// A memory that took so many tokens.
    ///
    /// ```
    /// use oubliette::memory::{Bucket, Inclusion};
    /// let tea = Inclusion::new("ann:drink", 12).bucket(Bucket::Related);
    /// assert_eq!((tea.name.as_str(), tea.tokens), ("ann:drink", 12));
    /// ```
    pub fn new(name: impl Into<Name>, tokens: u32) -> Self {
        Inclusion { name: name.into(), tokens, bucket: None }
    }

    /// With the reason.
    ///
    /// ```
    /// use oubliette::memory::{Bucket, Inclusion};
    /// assert_eq!(Inclusion::new("rules", 90).bucket(Bucket::Persistent).bucket, Some(Bucket::Persistent));
    /// ```
    #[must_use]
    pub fn bucket(mut self, bucket: Bucket) -> Self {
        self.bucket = Some(bucket);
        self
    }
}

/// A context that a host has put together, for the inclusion log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContextDraft {
    /// The host's name of the context: 1 to 128 bytes, no NUL. A context is counted once.
    pub id: String,
    /// The memories: 1 to 500. A memory that stands twice counts once, and its tokens are added up.
    pub items: Vec<Inclusion>,
    /// The session of the host: 1 to 128 bytes, no NUL.
    pub session: Option<String>,
    /// The tokens that the context had room for.
    pub window_tokens: Option<u32>,
    /// When the context was put together; now by default. An instant ahead counts as now.
    pub at: Option<Time>,
}

impl ContextDraft {
    /// A context of these memories.
    ///
    /// ```
    /// use oubliette::memory::{ContextDraft, Inclusion};
    /// assert!(ContextDraft::new("turn-17", [Inclusion::new("ann:drink", 12)]).check().is_ok());
    /// assert!(ContextDraft::new("turn-18", []).check().is_err());
    /// ```
    pub fn new(id: impl Into<String>, items: impl IntoIterator<Item = Inclusion>) -> Self {
        ContextDraft { id: id.into(), items: items.into_iter().collect(), ..ContextDraft::default() }
    }

    /// Checks the bounds.
    ///
    /// ```
    /// use oubliette::memory::{ContextDraft, Inclusion};
    /// let why = ContextDraft::new("", [Inclusion::new("ann:drink", 12)]).check().unwrap_err();
    /// assert!(why.to_string().starts_with("context_id: "));
    /// ```
    ///
    /// # Errors
    /// `Invalid` naming the field that breaks its bound.
    pub fn check(&self) -> Result<()> {
        check_text("context_id", &self.id, CONTEXT_NAME_BYTES_MAX)?;
        let session = self.session.as_deref();
        session.map_or(Ok(()), |session| check_text("session_id", session, CONTEXT_NAME_BYTES_MAX))?;
        if self.items.is_empty() || self.items.len() > CONTEXT_ITEMS_MAX {
            let why = format!("must have 1 to {CONTEXT_ITEMS_MAX} items");
            return Err(Error::invalid("items", why, self.items.len()));
        }
        self.items.iter().try_for_each(|item| check_text("memory_id", item.name.as_str(), KEY_BYTES_MAX))
    }
}

/// What became of a context in the inclusion log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ContextReport {
    /// The number of memories whose inclusion counts.
    pub counted: u64,
    /// Whether the context was in the log already; nothing changed then.
    pub already: bool,
    /// The names that led to no visible memory. They are not counted.
    pub unknown: Vec<String>,
}

/// A memory of a context in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Included {
    /// The memory; none where a key led to no memory.
    pub id: Option<MemoryId>,
    /// The tokens that it took.
    pub tokens: u32,
    /// Why it was put there, if the host said so.
    pub bucket: Option<Bucket>,
    /// Whether the inclusion counts.
    pub counted: bool,
}

/// A context of the inclusion log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContextLog {
    /// The host's name of the context.
    pub id: String,
    /// When the context was put together.
    pub at: Time,
    /// The session of the host.
    pub session: Option<String>,
    /// The tokens that the context had room for.
    pub window_tokens: Option<u32>,
    /// The memories, in the order in which they were named.
    pub items: Vec<Included>,
}

impl ContextLog {
    /// Checks the bounds of a context from a file.
    pub(crate) fn check(&self) -> Result<()> {
        let items = self.items.iter().map(|_| Inclusion::new("item", 0)).collect();
        ContextDraft { id: self.id.clone(), session: self.session.clone(), items, ..ContextDraft::default() }
            .check()
    }
}

/// A context in which a memory was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InContext {
    /// The host's name of the context.
    pub context: String,
    /// When the context was put together.
    pub at: Time,
    /// Why the memory was put there, if the host said so.
    pub bucket: Option<Bucket>,
    /// The tokens that the memory took.
    pub tokens: u32,
}

/// The part of a count of inclusions that is left after a while: exp(-days / tau), with tau in days. Time that runs
/// backwards takes nothing away.
fn decayed(count: f64, last: Option<Time>, now: Time, tau_days: f64) -> f64 {
    let Some(last) = last else { return 0.0 };
    let days = ((now.as_millis() - last.as_millis()) as f64 / DAY_MS).max(0.0);
    count * (-days / tau_days).exp()
}

impl Access {
    /// The inclusions, each by what is left of it at an instant.
    pub(crate) fn included_count_at(&self, now: Time, tau_days: f64) -> f64 {
        decayed(self.included_count_decay, self.last_included_at, now, tau_days)
    }

    /// Counts an inclusion at an instant. One that comes late counts in full, and moves no stamp back.
    pub(crate) fn include(&mut self, at: Time, tau_days: f64) {
        let left = decayed(self.included_count_decay, self.last_included_at, at, tau_days);
        self.included_count_decay = left + 1.0;
        self.included_count_total = self.included_count_total.saturating_add(1);
        self.last_included_at = self.last_included_at.max(Some(at));
        self.access_seq = self.access_seq.saturating_add(1);
    }
}

impl Memory {
    /// How often the memory was included in contexts, each inclusion by what is left of it at an instant:
    /// exp(-age / `tau_days`). At least 0. The number that is stored is of the last inclusion, and says too much later.
    ///
    /// ```
    /// use oubliette::memory::{ContextDraft, Inclusion};
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// let tea = team.add("Ann prefers tea")?.id;
    /// team.context_log_write(&ContextDraft::new("turn-1", [Inclusion::new(tea, 12)]))?;
    /// let tea = team.get(tea)?.unwrap();
    /// let included = tea.last_included_at.unwrap();
    /// assert_eq!(tea.included_count_at(included, 21.0), 1.0);
    /// assert!(tea.included_count_at("2999-01-01T00:00:00Z".parse()?, 21.0) < 1e-9);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn included_count_at(&self, now: Time, tau_days: f64) -> f64 {
        decayed(self.included_count_decay, self.last_included_at, now, tau_days)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TAU: f64 = 21.0;

    fn day(days: f64) -> Time {
        Time::from_millis((days * DAY_MS).round() as i64)
    }

    fn near(found: f64, expected: f64) {
        assert!((found - expected).abs() <= 5e-7, "{found}, not {expected}");
    }

    fn included(days: &[f64]) -> Access {
        let mut access = Access::default();
        days.iter().for_each(|days| access.include(day(*days), TAU));
        access
    }

    #[test]
    fn v113_to_v116_and_v123_inclusions_decay_from_one_to_the_next() {
        for (days, stored, total, last) in [
            (&[0.0][..], 1.0, 1, 0.0),
            (&[0.0, 7.0], 1.716_531, 2, 7.0),
            (&[0.0, 7.0, 14.0], 2.229_948, 3, 14.0),
            (&[7.0, 0.0], 2.0, 2, 7.0),
            (&[1.0, 1.0 - 1.0 / 24.0], 2.0, 2, 1.0),
        ] {
            let access = included(days);
            near(access.included_count_decay, stored);
            assert_eq!((access.included_count_total, access.access_seq), (total, total));
            assert_eq!(access.last_included_at, Some(day(last)));
        }
    }

    fn left(access: &Access, now: Time) -> f64 {
        decayed(access.included_count_decay, access.last_included_at, now, TAU)
    }

    #[test]
    fn v117_and_v118_what_is_compared_is_decayed_to_now() {
        let one = included(&[0.0]);
        near(left(&one, day(4.68)), 0.800_229);
        near(left(&one, day(4.69)), 0.799_848);
        assert!(left(&one, day(730.0)) < 1e-12);
        assert_eq!(left(&Access::default(), day(1.0)), 0.0);
    }

    #[test]
    fn v119_to_v122_steady_states_just_before_the_next_inclusion() {
        for (every, expected) in [(7.0, 2.527_726), (14.0, 1.055_148), (21.0, 0.581_977), (30.0, 0.315_186)] {
            let days: Vec<f64> = (0..200).map(|number| f64::from(number) * every).collect();
            near(left(&included(&days), day(200.0 * every)), expected);
        }
    }
}
