//! Snapshots of a series, and the instructions for the host's language model.

use std::io::Read;
use std::path::Path;

use crate::engine::database::Database;
use crate::engine::namespace::Namespace;
use crate::error::{Error, Result};
use crate::ingest::prepare;
use crate::limits::POLICY_BYTES_MAX;
use crate::model::{Draft, Kind, Outcome, Time};

use super::queue::Weight;

impl Namespace {
    /// Pushes a snapshot that was taken at `at`. Of a series and a period of `snapshot.period`, a
    /// day by default, only the latest stays live: earlier ones go in the same transaction, with `replaced_by`, and
    /// a late arrival is ignored, with the id of the one that stays. Of equal instants the larger id stays.
    ///
    /// Without an agent it lies in the partition of `snapshot.agent`, `profile-mgr` by default; without a series in
    /// `profile`. A `timestamp` in its metadata, RFC 3339 or milliseconds, says when it was taken in place of `at`; one
    /// that can't be read keeps it out of every period. The text is stored as it is.
    ///
    /// ```
    /// # use oubliette::{Database, Decision, Draft, Scope};
    /// # let folder = tempfile::tempdir()?;
    /// # let team = Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// let noon = team.push_snapshot("12 facts", "2026-01-03T12:00:00Z".parse()?)?;
    /// let late = team.push_snapshot("11 facts", "2026-01-03T09:00:00Z".parse()?)?;
    /// assert_eq!((late.decision, late.id), (Decision::Ignored, noon.id));
    /// let all = team.list_snapshots(&Scope::agent("profile-mgr")?, "profile", None, None)?;
    /// assert_eq!(all.iter().map(|row| row.text.as_str()).collect::<Vec<_>>(), ["12 facts"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// - `Invalid` for a draft of another kind, and as [`Namespace::add`];
    /// - `Policy` when this machine does not know `snapshot.zone`;
    /// - those of [`Namespace::add`].
    pub fn push_snapshot(&self, draft: impl Into<Draft>, at: Time) -> Result<Outcome> {
        let agent = self.db.inner.in_force().policy.snapshot.agent.clone();
        let mut prepared = prepare(snapshot_draft(draft.into(), at, &agent)?)?;
        let works = self.db.inner.embed_drafts(&self.name, std::slice::from_mut(&mut prepared), true)?;
        let weight = Weight { rows: 1, bytes: prepared.weight() };
        let namespace = self.name.clone();
        let mut outcome = self.db.submit_embedded(weight, works, move |session| {
            let mut writer = session.writer(&namespace, None, false)?;
            writer.leave_out_strangers(std::slice::from_mut(&mut prepared))?;
            writer.push_snapshot(&prepared)
        })?;
        self.tell_pending(std::slice::from_mut(&mut outcome));
        Ok(outcome)
    }
}

impl Database {
    /// What the host's language model is to be told about storing, byte for byte: the file of
    /// [`Builder::instructions_file`](crate::Builder::instructions_file) if there is one, else `rules.text` of the policy
    /// in force.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let db = oubliette::Database::open(folder.path().join("m.oub"))?;
    /// assert!(db.instructions().starts_with("STORE:\n- decisions together with the reasons for them\n"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn instructions(&self) -> String {
        match &self.inner.own_instructions {
            Some(own) => own.clone(),
            None => self.inner.in_force().policy.rules.text.clone(),
        }
    }
}

/// The draft of a snapshot that was taken at `at`.
pub(super) fn snapshot_draft(mut draft: Draft, at: Time, agent: &str) -> Result<Draft> {
    match &draft.fields.kind {
        None | Some(Kind::Snapshot) => draft.fields.kind = Some(Kind::Snapshot),
        Some(other) => return Err(Error::invalid("kind", "must be snapshot or absent", other)),
    }
    draft.agent.get_or_insert_with(|| agent.to_owned());
    draft.fields.created_at = Some(at);
    Ok(draft)
}

/// The trimmed text of a file; none where there is none.
pub(super) fn read_instructions(path: &Path) -> Result<Option<String>> {
    let io = |source| Error::io("read", path, source);
    let file = match std::fs::File::open(path) {
        Err(why) if why.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        file => file.map_err(io)?,
    };
    let mut bytes = Vec::new();
    file.take(POLICY_BYTES_MAX as u64 + 1).read_to_end(&mut bytes).map_err(io)?;
    if bytes.len() > POLICY_BYTES_MAX {
        let why = format!("must be at most {POLICY_BYTES_MAX} bytes");
        return Err(Error::invalid("instructions", why, "a longer file"));
    }
    let text = String::from_utf8(bytes).map_err(|why| {
        let at = why.utf8_error().valid_up_to();
        Error::invalid("instructions", "must be UTF-8", format!("other bytes from byte {at} on"))
    })?;
    Ok(Some(text.trim().to_owned()))
}
