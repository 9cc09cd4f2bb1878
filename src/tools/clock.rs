//! What is told of a write by a clock that is behind the last write of its file.

use std::fmt::Display;

use serde_json::{Value, json};

use crate::engine::Database;
use crate::model::{Span, Time};
use crate::tools::reading::told;
use crate::tools::shape::Member;

/// A clock that is behind the last write of a file by so much or less is not told of: two processes of one machine may differ by moments.
pub const BEHIND_UNTOLD: Span = Span::from_mins(1);

/// What is told of a write where `clock` says `at`, and the file was last written at `last`, which is later.
///
/// ```
/// use oubliette::tools::behind_told;
/// let told = behind_told("the clock", "2026-02-01", "2036-02-01");
/// assert!(told.starts_with("the clock says 2026-02-01, but the file was last written at 2036-02-01: "));
/// ```
pub fn behind_told(clock: &str, at: impl Display, last: impl Display) -> String {
    format!(
        "{clock} says {at}, but the file was last written at {last}: what was written counts as of then, and so does a ttl; what \
         ends before then has ended at once"
    )
}

/// An answer with what is told of the clock after a write; the write has been done, whatever can be read of it.
pub(super) fn dated(mut answer: Value, database: &Database) -> Value {
    if let (Value::Object(members), Some(told)) = (&mut answer, clock_told(database)) {
        members.insert("clock".to_owned(), json!(told));
    }
    answer
}

fn clock_told(database: &Database) -> Option<String> {
    let (last, behind) = (database.last_write().ok()?, database.behind().ok()?);
    let at = Time::from_millis(last.as_millis() - behind.as_millis());
    (behind > BEHIND_UNTOLD).then(|| behind_told("the clock", at, last))
}

/// The member that [`dated`] adds.
pub(super) fn clock_member() -> Member {
    told().optional().about("Says so where the clock is behind the last write of the file.").named("clock")
}
