//! Summaries by a language model over HTTP, from any server that answers like OpenAI's `/v1/chat/completions`.

#[cfg(test)]
mod tests;

use super::document::Fault;
use super::pack::InputPack;
use super::summarizer::Summarizer;
use crate::error::{Error, Result};
use crate::limits::SUMMARY_JSON_BYTES_MAX;
use crate::server::{Access, Server};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::fmt;
use std::time::Duration;

/// The bytes of an answer: those of the longest summary, each escaped, and of everything else.
const ANSWER_BYTES_MAX: usize = 2 * SUMMARY_JSON_BYTES_MAX + (1 << 20);

/// Where the server of an [`OpenAiSummarizer`] is, and how to ask it.
#[derive(Clone)]
#[non_exhaustive]
pub struct ChatOptions {
    /// The address above `/chat/completions`, such as `https://api.openai.com/v1` or `http://localhost:11434/v1`.
    pub base_url: String,
    /// The name of the model, 1 to 200 bytes.
    pub model: String,
    /// Whether to ask the server for nothing but a JSON object (`response_format`). On by default; servers that do not know
    /// it may refuse.
    pub json_object: bool,
    /// The bearer token. It appears in no error and in no `Debug` output.
    pub api_key: Option<String>,
    /// The longest time for one request, up to an hour; 2 minutes by default.
    pub timeout: Duration,
    /// How often a request is repeated after the server put it off (429) or failed (5xx), 0 to 10; 3 by default. The
    /// wait is 0.25 s at first and doubles each time, up to 8 s.
    pub retries: u32,
}

impl ChatOptions {
    /// Options for `model` at `base_url`, with every other option at its default.
    ///
    /// ```
    /// use oubliette::gc::ChatOptions;
    /// let options = ChatOptions::new("http://localhost:11434/v1", "qwen3:8b");
    /// assert_eq!((options.json_object, options.retries), (true, 3));
    /// ```
    #[must_use]
    pub fn new(base_url: impl Into<String>, model: impl Into<String>) -> Self {
        Self {
            base_url: base_url.into(),
            model: model.into(),
            json_object: true,
            api_key: None,
            timeout: Duration::from_secs(120),
            retries: 3,
        }
    }
}

impl fmt::Debug for ChatOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChatOptions")
            .field("base_url", &self.base_url)
            .field("model", &self.model)
            .field("json_object", &self.json_object)
            .field("api_key", &self.api_key.as_ref().map(|_| "…"))
            .field("timeout", &self.timeout)
            .field("retries", &self.retries)
            .finish()
    }
}

/// A language model behind HTTP that writes summaries: OpenAI's service, and the many servers that answer like it.
///
/// The instructions of a pack are the system's message, the rest of the pack is the user's. An answer that is no summary is given
/// back with what is wrong with it. Calls block. Redirections are not followed.
///
/// ```no_run
/// use oubliette::Database;
/// use oubliette::gc::{ChatOptions, GcRunOptions, OpenAiSummarizer};
///
/// let writer = OpenAiSummarizer::new(ChatOptions::new("http://localhost:11434/v1", "qwen3:8b"))?;
/// let team = Database::open("memories.oub")?.namespace("team")?;
/// team.gc_run(&writer, &GcRunOptions::default(), |_| ())?;
/// # Ok::<(), oubliette::Error>(())
/// ```
#[derive(Debug)]
pub struct OpenAiSummarizer {
    options: ChatOptions,
    server: Server,
}

#[derive(Serialize)]
struct Message<'m> {
    role: &'static str,
    content: &'m str,
}

#[derive(Serialize)]
struct Request<'m> {
    model: &'m str,
    messages: Vec<Message<'m>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<Value>,
}

#[derive(Deserialize)]
struct Answer {
    choices: Vec<Choice>,
}

#[derive(Deserialize)]
struct Choice {
    message: Said,
    #[serde(default)]
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Said {
    #[serde(default)]
    content: Option<String>,
    #[serde(default)]
    refusal: Option<String>,
}

impl OpenAiSummarizer {
    /// Checks the options. Nothing is sent before there is something to summarize.
    ///
    /// ```
    /// use oubliette::gc::{ChatOptions, OpenAiSummarizer};
    /// let mut options = ChatOptions::new("http://localhost:11434/v1", "qwen3:8b");
    /// assert!(OpenAiSummarizer::new(options.clone()).is_ok());
    /// options.retries = 11;
    /// assert!(OpenAiSummarizer::new(options).is_err());
    /// ```
    ///
    /// # Errors
    /// `Invalid`, with the name of the option that breaks its bound.
    pub fn new(options: ChatOptions) -> Result<Self> {
        let access = Access {
            base_url: &options.base_url,
            model: &options.model,
            api_key: options.api_key.as_deref(),
            timeout: options.timeout,
            retries: options.retries,
        };
        let server = Server::new(&access, "chat/completions")?;
        Ok(Self { options, server })
    }

    /// What the model says to a pack, after what was said before.
    fn ask(&self, pack: &InputPack, before: &[(&'static str, &str)]) -> Result<String> {
        let mut shown = json!(pack);
        let members = shown.as_object_mut();
        members.map(|members| members.shift_remove("instructions"));
        let shown = shown.to_string();
        let first = [("system", pack.instructions.as_str()), ("user", shown.as_str())];
        let messages = first.iter().chain(before).map(|(role, content)| Message { role, content });
        let request = Request {
            model: &self.options.model,
            messages: messages.collect(),
            response_format: self.options.json_object.then(|| json!({ "type": "json_object" })),
        };
        let answer = self.server.ask(&request, ANSWER_BYTES_MAX);
        answer.and_then(|bytes| self.read(&bytes)).map_err(|why| {
            let what = format!("the summarizer openai:{}", self.options.model);
            Error::Conflict { what, why }
        })
    }

    /// What a model says in an answer, or why it says nothing.
    fn read(&self, bytes: &[u8]) -> Result<String, String> {
        let answer: Answer =
            serde_json::from_slice(bytes).map_err(|error| format!("not an answer of a model: {error}"))?;
        let choice = answer.choices.into_iter().next().ok_or("an answer without a choice")?;
        if choice.finish_reason.as_deref() == Some("length") {
            return Err("the answer was cut at the length that the server allows".to_owned());
        }
        let Said { content, refusal } = choice.message;
        match content.filter(|content| !content.is_empty()) {
            Some(content) => Ok(content),
            None => Err(match refusal {
                Some(refusal) => format!("the model refuses: {}", self.server.repeat(&refusal)),
                None => "an empty answer".to_owned(),
            }),
        }
    }
}

impl Summarizer for OpenAiSummarizer {
    fn summarize(&self, pack: &InputPack) -> Result<String> {
        self.ask(pack, &[])
    }

    fn repair(&self, pack: &InputPack, answer: &str, faults: &[Fault]) -> Result<Option<String>> {
        let wrong: String = faults.iter().map(|fault| format!("\n- {fault}")).collect();
        let told = format!(
            "That is no summary of the form that was asked for:{wrong}\nOutput only the corrected JSON."
        );
        self.ask(pack, &[("assistant", answer), ("user", told.as_str())]).map(Some)
    }
}
