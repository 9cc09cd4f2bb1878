//! Whoever writes summaries.

use super::document::Fault;
use super::pack::InputPack;
use crate::error::{Error, Result};
use crate::model::{Draft, Memory};

/// Writes the summary of a group of memories.
///
/// A summarizer is called outside of transactions. Its answer is repaired where that is certain, and read strictly. A
/// group whose answer is refused stays as it is.
///
/// ```
/// use oubliette::Result;
/// use oubliette::gc::{InputPack, Summarizer};
///
/// /// Says how many there were.
/// struct Counting;
///
/// impl Summarizer for Counting {
///     fn summarize(&self, pack: &InputPack) -> Result<String> {
///         Ok(format!(
///             r#"{{"topic": "messages", "time_range": {{"start": 0, "end": 0}}, "summary": ["{} messages"]}}"#,
///             pack.sources.len()
///         ))
///     }
/// }
/// ```
pub trait Summarizer: Send + Sync {
    /// The summary as text: JSON of the form `json_v1`.
    ///
    /// # Errors
    /// When there is no summary. The group then stays as it is. `Refused` with the code `no_gain`, where the sources are
    /// too short for a summary that is shorter: a run counts the group, and tells no failure.
    fn summarize(&self, pack: &InputPack) -> Result<String>;

    /// What memories come to, as one memory: short-term memories in use for
    /// [`Namespace::consolidate`](crate::Namespace::consolidate), which has an example, and the members of a cluster for
    /// [`Namespace::consolidate_clusters`](crate::Namespace::consolidate_clusters).
    ///
    /// ```
    /// use oubliette::gc::{Extractive, Summarizer};
    /// assert!(Extractive::default().consolidate(&[]).is_err()); // It copies sentences, and distils nothing.
    /// ```
    ///
    /// # Errors
    /// When there is nothing that they come to: the memories then stay as they are. Always, as here, from a summarizer
    /// that writes summaries only.
    fn consolidate(&self, memories: &[Memory]) -> Result<Draft> {
        Err(Error::Conflict {
            what: format!("a consolidation of {} memories", memories.len()),
            why: "this summarizer writes summaries only".to_owned(),
        })
    }

    /// The number of tokens that the sources of a summary should have: a run divides longer groups. None, as here, when a
    /// summary may be of as much as the policy allows.
    ///
    /// ```
    /// use oubliette::gc::{Extractive, Summarizer};
    /// assert_eq!(Extractive::default().group_tokens(), Some(1_000));
    /// ```
    fn group_tokens(&self) -> Option<u64> {
        None
    }

    /// Another answer, after `answer` was found to be no summary for these reasons. It is asked for at most
    /// `gc.repair_attempts` times. None, as here, when there is no better answer: the first one is refused then.
    ///
    /// ```
    /// use oubliette::gc::{Fault, GcRunOptions, InputPack, Summarizer};
    /// use oubliette::{Database, Draft, Kind, Result};
    ///
    /// /// Forgets the topic, until it is told.
    /// struct Hasty;
    ///
    /// impl Summarizer for Hasty {
    ///     fn summarize(&self, _: &InputPack) -> Result<String> {
    ///         Ok(r#"{"time_range": {"start": 0, "end": 0}, "summary": ["The boiler broke"]}"#.into())
    ///     }
    ///
    ///     fn repair(&self, _: &InputPack, answer: &str, faults: &[Fault]) -> Result<Option<String>> {
    ///         assert_eq!(faults[0].pointer, "/topic");
    ///         Ok(Some(answer.replacen('{', r#"{"topic": "home", "#, 1)))
    ///     }
    /// }
    /// # let folder = tempfile::tempdir()?;
    /// # let team = Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// for text in ["Ann: The boiler broke on 3 March.", "Bob: The plumber asks for 480 euros."] {
    ///     let old = "2025-01-02T10:00:00Z".parse()?;
    ///     team.add(Draft::new(text).kind(Kind::Message).channel("home").created_at(old))?;
    /// }
    /// assert_eq!(team.gc_run(&Hasty, &GcRunOptions::default(), |_| ())?.committed, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When there is none. The first answer is refused then.
    fn repair(&self, pack: &InputPack, answer: &str, faults: &[Fault]) -> Result<Option<String>> {
        // The writer that knows no way to repair needs none of them.
        let _ = (pack, answer, faults);
        Ok(None)
    }
}
