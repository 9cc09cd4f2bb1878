//! Who answers what a client asks.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::error::Error;
use crate::limits::TOKEN_BYTES;
use crate::model::{Hit, Query, Scope};
use crate::tools::{Caller, KnowledgeGraph, ToolError, Toolbox, can_take_long, only_reads, only_reads_graph};

/// Tokens of the briefing and of the prompt.
const TOKENS: usize = 1_500;
/// Hits of the prompt.
const HITS: usize = 10;

/// What a client of the Model Context Protocol asks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Question {
    /// Which tools there are: a list of their schemas.
    Tools,
    /// What a tool answers.
    Call {
        /// Its name, with dots.
        name: String,
        /// Its arguments, an object.
        args: Value,
    },
    /// A memory in any state with its whole text, as `get_memory` tells it.
    Memory {
        /// Its id or its key.
        name: String,
    },
    /// What of the memories a conversation should know from the start: a text.
    Briefing,
    /// What the host's language model is to be told about storing: a text.
    Instructions,
    /// What is remembered of a topic: a text. Its hits count as retrieved.
    Recall {
        /// What the conversation is about.
        topic: String,
    },
}

impl Question {
    /// Whether it changes no memory, so that it may be asked again where no answer came. That a memory was found may then count twice.
    ///
    /// ```
    /// use oubliette::mcp::Question;
    /// use serde_json::json;
    /// let call = |name: &str| Question::Call { name: name.to_owned(), args: json!({}) };
    /// assert!(Question::Briefing.is_read() && call("search_memories").is_read());
    /// assert!(!call("add_memory").is_read());
    /// ```
    pub fn is_read(&self) -> bool {
        match self {
            Question::Tools
            | Question::Memory { .. }
            | Question::Briefing
            | Question::Instructions
            | Question::Recall { .. } => true,
            Question::Call { name, .. } => only_reads(name) || only_reads_graph(name),
        }
    }

    /// Whether whoever asks may leave before the answer: it changes no memory, or works in parts and ends with one of them. Any other write
    /// goes on to its end, and whoever asks the next question must know that it is over.
    ///
    /// ```
    /// use oubliette::mcp::Question;
    /// use serde_json::json;
    /// let call = |name: &str| Question::Call { name: name.to_owned(), args: json!({}) };
    /// assert!(Question::Briefing.may_be_left() && call("run_maintenance").may_be_left());
    /// assert!(!call("add_memory").may_be_left());
    /// ```
    pub fn may_be_left(&self) -> bool {
        self.is_read() || matches!(self, Question::Call { name, .. } if can_take_long(name))
    }

    pub(super) fn call(name: &str, args: Value) -> Self {
        Question::Call { name: name.to_owned(), args }
    }
}

/// Who answers: the tools of a namespace that is open here, or somebody who asks another process.
///
/// ```
/// use oubliette::mcp::{Desk, Question, Server};
/// use oubliette::tools::{Caller, ToolError, Toolbox};
/// use serde_json::{Value, json};
///
/// /// Forwards what it is asked, and keeps count.
/// struct Counting(Toolbox, std::sync::atomic::AtomicUsize);
///
/// impl Desk for Counting {
///     fn respond(&self, question: Question, caller: &dyn Caller) -> Result<Value, ToolError> {
///         self.1.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
///         self.0.respond(question, caller)
///     }
/// }
/// # let folder = tempfile::tempdir()?;
/// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
/// let server = Server::new(Counting(Toolbox::new(team), 0.into()));
/// # drop(server);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Desk: Send + Sync {
    /// The answer to a question, in the form that the question says. `caller` hears of the progress of a long one, and may leave.
    ///
    /// # Errors
    /// When the question is refused. Nothing has changed then, unless the error says that this is not known.
    fn respond(&self, question: Question, caller: &dyn Caller) -> Result<Value, ToolError>;
}

impl<D: Desk + ?Sized> Desk for Arc<D> {
    fn respond(&self, question: Question, caller: &dyn Caller) -> Result<Value, ToolError> {
        D::respond(self, question, caller)
    }
}

impl Desk for Toolbox {
    fn respond(&self, question: Question, caller: &dyn Caller) -> Result<Value, ToolError> {
        let failed = |why: Error| ToolError::of_error(&why);
        match question {
            Question::Tools => Ok(json!(self.all_schemas())),
            Question::Call { name, args } => self.call_for(&name, args, caller),
            Question::Memory { name } => self.whole_memory(name),
            Question::Briefing => {
                let briefed = self.namespace().briefing(&Scope::Shared, TOKENS).map_err(failed)?;
                Ok(briefed
                    .items
                    .iter()
                    .map(|one| format!("- {}\n", one.memory.row_text))
                    .collect::<String>()
                    .into())
            }
            Question::Instructions => Ok(self.namespace().database().instructions().into()),
            Question::Recall { topic } => recall(self, &topic).map(Value::from).map_err(failed),
        }
    }
}

/// The desk of a server with the face of the reference memory server, which has no memories as resources, no briefing and no prompt.
impl Desk for KnowledgeGraph {
    fn respond(&self, question: Question, _: &dyn Caller) -> Result<Value, ToolError> {
        match question {
            Question::Tools => Ok(self.schemas().into()),
            Question::Call { name, args } => self.call(&name, args),
            Question::Memory { .. }
            | Question::Briefing
            | Question::Instructions
            | Question::Recall { .. } => {
                let why = "a knowledge graph answers calls of tools only".to_owned();
                Err(ToolError::of_error(&Error::Conflict { what: "the question".to_owned(), why }))
            }
        }
    }
}

/// What is remembered of a topic.
fn recall(tools: &Toolbox, topic: &str) -> Result<String, Error> {
    let query = Query::text(topic).k(HITS).track(true);
    let fits = |hits: &[Hit]| {
        let ends = hits.iter().scan(0, |bytes, hit| {
            *bytes += hit.text.len();
            Some(*bytes)
        });
        ends.take_while(|bytes| *bytes <= TOKENS * TOKEN_BYTES).count()
    };
    let (found, _) = tools.namespace().search_given(query, fits).map_err(|why| match why {
        Error::Invalid { field, why, value } if field == "query" => {
            Error::Invalid { field: "topic".to_owned(), why, value }
        }
        why => why,
    })?;
    if found.hits.is_empty() {
        return Ok(format!("Nothing is remembered of {topic}."));
    }
    let mut text = format!("What is remembered of {topic}:\n");
    for hit in found.hits {
        text.push_str(&format!("- {}\n", hit.text));
    }
    text.push_str("Use what fits. Say so where it does not answer the question.");
    Ok(text)
}
