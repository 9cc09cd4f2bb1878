//! Reads of what was: a memory at an instant.

use crate::engine::namespace::Namespace;
use crate::error::Result;
use crate::model::{Memory, Name, PointInTime};

impl<Of> Namespace<Of> {
    /// The memory that an id or key led to at an instant; none if no memory with that name was visible then.
    ///
    /// ```
    /// use oubliette::Draft;
    /// use oubliette::memory::PointInTime;
    /// # let folder = tempfile::tempdir()?;
    /// # let clock = oubliette::clock::ManualClock::at("2026-03-01T00:00:00Z".parse()?);
    /// # let builder = oubliette::Database::builder().clock(clock.clone());
    /// # let team = builder.open(folder.path().join("m.oub"))?.namespace("team")?;
    /// team.add(Draft::new("Ann lives in Ghent").key("home"))?;
    /// let march = PointInTime::as_of("2026-03-02T00:00:00Z".parse()?);
    /// # clock.set("2026-05-01T00:00:00Z".parse()?);
    /// team.add(Draft::new("Ann lives in Bruges").key("home"))?;
    /// assert_eq!(team.get("home")?.ok_or("gone")?.text, "Ann lives in Bruges");
    /// assert_eq!(team.get_at("home", &march)?.ok_or("not then")?.text, "Ann lives in Ghent");
    /// assert!(team.get_at("work", &march)?.is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Invalid` for an instant of transaction time that lies ahead; `BeforePurgeHorizon`; `Corrupted`, `Closed`.
    pub fn get_at(&self, name: impl Into<Name>, at: &PointInTime) -> Result<Option<Memory>> {
        let name = name.into();
        self.ask(|reader| reader.get_at(name.as_str(), at))
    }
}
