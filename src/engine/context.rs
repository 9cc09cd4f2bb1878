//! The inclusion log: which memories a host put into the contexts of a language model.

use crate::engine::namespace::Namespace;
use crate::engine::queue::weight_of;
use crate::error::Result;
use crate::model::{ContextDraft, ContextLog, ContextReport, InContext, Name, Page};

impl Namespace {
    /// Notes which memories went into a context of a language model, and counts them. A context is counted once: the
    /// same call again changes nothing and answers as before. Names that lead to no visible memory are noted, not counted.
    ///
    /// ```
    /// use oubliette::memory::{Bucket, ContextDraft, Inclusion};
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// let tea = team.add("Ann prefers tea")?.id;
    /// let items = [Inclusion::new(tea, 12).bucket(Bucket::Related), Inclusion::new("coffee", 9)];
    /// let context = ContextDraft::new("turn-1", items);
    /// let report = team.context_log_write(&context)?;
    /// assert_eq!((report.counted, report.already, &report.unknown[0][..]), (1, false, "coffee"));
    /// assert!(team.context_log_write(&context)?.already);
    /// assert_eq!(team.get(tea)?.unwrap().included_count_total, 1);
    /// assert!(team.context_log_write(&ContextDraft::new("turn-1", [Inclusion::new(tea, 7)])).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Invalid` naming the field that breaks its bound; `Conflict` for a context that the log has with other items; `NotFound`
    /// for a namespace that no write has made.
    pub fn context_log_write(&self, context: &ContextDraft) -> Result<ContextReport> {
        context.check()?;
        let (namespace, context) = (self.name.clone(), context.clone());
        self.db.submit(weight_of(context.items.len()), move |session| {
            session.known_writer(&namespace)?.write_context(&context)
        })
    }
}

impl<Of> Namespace<Of> {
    /// The contexts in which a memory was, the latest first, at most `limit`: 1 to 10,000. A memory that is gone may be
    /// named by its id.
    ///
    /// ```
    /// use oubliette::memory::{ContextDraft, Inclusion};
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// let tea = team.add("Ann prefers tea")?.id;
    /// for turn in ["turn-1", "turn-2"] {
    ///     team.context_log_write(&ContextDraft::new(turn, [Inclusion::new(tea, 12)]))?;
    /// }
    /// let page = team.contexts_of(tea, None, 1)?;
    /// assert_eq!(page.items.len(), 1);
    /// assert_eq!(team.contexts_of(tea, page.next.as_deref(), 1)?.next, None);
    /// assert!(team.contexts_of("coffee", None, 20).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `NotFound` for a name that nothing is known of; `Invalid` for a limit out of bounds or a cursor of another listing;
    /// `Corrupted`.
    pub fn contexts_of(
        &self,
        name: impl Into<Name>,
        cursor: Option<&str>,
        limit: usize,
    ) -> Result<Page<InContext>> {
        let name = name.into();
        self.ask(|reader| reader.contexts_of(name.as_str(), cursor, limit))
    }

    /// The inclusion log, the earliest contexts first, at most `limit`: 1 to 10,000. A context that is damaged is left out;
    /// `check` tells it.
    ///
    /// ```
    /// use oubliette::memory::{ContextDraft, Inclusion};
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// let tea = team.add("Ann prefers tea")?.id;
    /// team.context_log_write(&ContextDraft::new("turn-1", [Inclusion::new(tea, 12)]))?;
    /// assert_eq!(team.contexts(None, 100)?.items[0].items[0].id, Some(tea));
    /// assert!(team.contexts(None, 0).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Invalid` for a limit out of bounds or a cursor of another listing; `Corrupted`.
    pub fn contexts(&self, cursor: Option<&str>, limit: usize) -> Result<Page<ContextLog>> {
        Ok(self.contexts_left(cursor, limit)?.0)
    }

    /// A page of the inclusion log, and the ids of its contexts that are damaged.
    pub(crate) fn contexts_left(
        &self,
        cursor: Option<&str>,
        limit: usize,
    ) -> Result<(Page<ContextLog>, Vec<String>)> {
        self.ask(|reader| reader.contexts(cursor, limit))
    }
}
