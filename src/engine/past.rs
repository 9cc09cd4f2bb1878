//! Reads of what was, and what became of it: a memory at an instant, the end of a chain, the changes since.

use crate::engine::namespace::Namespace;
use crate::error::Result;
use crate::model::{Changes, Memory, MemoryId, Name, PointInTime};
use crate::recall::{Around, ChainEnd};

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

    /// As [`Namespace::around`], the neighbours that were visible at an instant of the past.
    ///
    /// ```
    /// use oubliette::clock::ManualClock;
    /// use oubliette::memory::PointInTime;
    /// use oubliette::{Database, Draft};
    /// # let folder = tempfile::tempdir()?;
    /// let clock = ManualClock::at("2026-01-01T12:00:00Z".parse()?);
    /// let db = Database::builder().clock(clock.clone()).open(folder.path().join("m.oub"))?;
    /// let team = db.namespace("team")?;
    /// let first = team.add(Draft::new("Shall we meet?").thread("t1"))?.id;
    /// clock.advance("1h".parse()?);
    /// team.add(Draft::new("Yes, at noon").thread("t1"))?;
    /// let then = PointInTime::as_of("2026-01-01T12:30:00Z".parse()?);
    /// assert_eq!(team.around(first, 5)?.after.len(), 1);
    /// assert!(team.around_at(first, 5, &then)?.after.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Invalid` for more than 1,000 steps and for an instant of transaction time that lies ahead; `BeforePurgeHorizon`.
    pub fn around_at(&self, id: MemoryId, steps: usize, at: &PointInTime) -> Result<Around> {
        self.ask(|reader| reader.around(id, steps, at))
    }

    /// What stands in the end in the place of the memory with an id or key: itself while it is visible, else what has taken
    /// its place, over any number of steps.
    ///
    /// ```
    /// use oubliette::report::ChainEnd;
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// let ghent = team.add("Ann lives in Ghent")?.id;
    /// let bruges = team.supersede(ghent, "Ann lives in Bruges")?.id;
    /// let rome = team.supersede(bruges, "Ann lives in Rome")?.id;
    /// assert_eq!(team.resolve(ghent)?, ChainEnd::Visible(rome));
    /// assert!(team.resolve("nobody").is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `NotFound` for a name that nothing is known of; `Corrupted`, `Closed`.
    pub fn resolve(&self, name: impl Into<Name>) -> Result<ChainEnd> {
        let name = name.into();
        self.ask(|reader| reader.chain_end(name.as_str()))
    }

    /// What changed in the namespace, from a cursor on: the journal as a feed, in the order of the changes, without content.
    /// The cursor is 0, or `next` of the page before. The journal reaches back as far as the policy says (`journal.max_age`,
    /// `journal.max_rows`), and at least over `undo.horizon`.
    ///
    /// ```
    /// use oubliette::report::Op;
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// let tea = team.add("Ann prefers tea")?.id;
    /// let page = team.changes(0, 100)?;
    /// assert_eq!((page.changes[0].op, page.changes[0].id), (Op::Insert, Some(tea)));
    /// team.forget(tea)?;
    /// assert_eq!(team.changes(page.next, 100)?.changes[0].op, Op::Remove);
    /// assert!(team.changes(1_000_000, 100).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `CursorTooOld` with the oldest cursor that can be answered, when changes behind the cursor were removed from the
    /// journal: the host must read everything anew. `Invalid` when the limit is not 1 to 10,000, or for a cursor that this
    /// file never gave. `Corrupted`, `Closed`.
    pub fn changes(&self, since: u64, limit: usize) -> Result<Changes> {
        self.ask(|reader| reader.changes(since, limit))
    }
}
