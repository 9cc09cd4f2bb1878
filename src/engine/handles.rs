//! Several handles of one open file: the same memories for callers of different sorts.

use std::sync::Arc;

use crate::engine::database::Database;
use crate::engine::inner::Inner;
use crate::model::Actor;

impl Database {
    /// Another handle of the open file, whose writes the journal counts as those of `actor`. A program that serves a language model and
    /// a person has a handle for each ([`Builder::actor`](crate::Builder::actor) for one that has a single caller).
    ///
    /// ```
    /// use oubliette::Database;
    /// use oubliette::memory::Actor;
    /// # let folder = tempfile::tempdir()?;
    /// let db = Database::open(folder.path().join("m.oub"))?;
    /// let model = db.with_actor(Actor::Tool).namespace("team")?;
    /// let person = db.namespace("team")?;
    /// let (tea, rain) = (model.add("Ann prefers tea")?.id, person.add("It rains")?.id);
    /// assert_eq!(person.history(tea)?.events[0].actor, Actor::Tool);
    /// assert_eq!(person.history(rain)?.events[0].actor, Actor::Caller);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn with_actor(&self, actor: Actor) -> Self {
        self.with(|inner| inner.actor = actor)
    }

    /// Another handle of the open file, whose searches note what they find, or do not, where
    /// [`Query::track`](crate::Query::track) does not say ([`Builder::track`](crate::Builder::track)).
    ///
    /// ```
    /// use oubliette::Database;
    /// # let folder = tempfile::tempdir()?;
    /// let db = Database::open(folder.path().join("m.oub"))?;
    /// let tea = db.namespace("team")?.add("Ann prefers tea")?.id;
    /// db.namespace("team")?.search("tea")?;
    /// db.with_track(true).namespace("team")?.search("tea")?;
    /// db.flush_access()?;
    /// assert_eq!(db.namespace("team")?.get(tea)?.unwrap().retrieval_count, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn with_track(&self, track: bool) -> Self {
        self.with(|inner| inner.track = track)
    }

    /// Another handle of the open file, which refuses to write.
    ///
    /// ```
    /// use oubliette::{Database, ErrorKind};
    /// # let folder = tempfile::tempdir()?;
    /// let db = Database::open(folder.path().join("m.oub"))?;
    /// let reader = db.reader();
    /// assert_eq!(reader.namespace("team")?.add("It rains").unwrap_err().kind(), ErrorKind::ReadOnly);
    /// db.namespace("team")?.add("Ann prefers tea")?;
    /// assert_eq!(reader.stats()?.memories.live, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn reader(&self) -> Self {
        self.with(|inner| inner.read_only = true)
    }

    /// A handle that writes, if the file is open for writing.
    pub(super) fn writer(&self) -> Self {
        self.with(|inner| inner.read_only = inner.current.is_none())
    }

    fn with(&self, change: impl FnOnce(&mut Inner)) -> Self {
        let mut inner = Inner::clone(&self.inner);
        change(&mut inner);
        Database::from_inner(Arc::new(inner))
    }
}
