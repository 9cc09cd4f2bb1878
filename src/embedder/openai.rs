//! Vectors over HTTP, from any server that answers like OpenAI's `/v1/embeddings`.

#[cfg(test)]
mod tests;

use super::Embedder;
use crate::error::{Error, Result};
use crate::limits::{DIM_MAX, within};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// The longest name of a model in bytes, and the largest number of texts in a request.
const MODEL_BYTES_MAX: usize = 200;
const BATCH_MAX: usize = 2048;
const TIMEOUT_MAX: Duration = Duration::from_secs(3600);
const RETRIES_MAX: u32 = 10;

/// The wait before the first retry. It doubles with each retry, up to the second constant.
const BACKOFF_MIN: Duration = Duration::from_millis(250);
const BACKOFF_MAX: Duration = Duration::from_secs(8);

/// The bytes of an answer for each number, and for everything else.
const NUMBER_BYTES_MAX: usize = 40;
const ANSWER_BYTES_MAX: usize = 1 << 20;

/// How many characters of a server's answer an error repeats.
const SAID_CHARS_MAX: usize = 200;

/// Where the server of an [`OpenAiEmbedder`] is, and how to ask it.
#[derive(Clone)]
#[non_exhaustive]
pub struct OpenAiOptions {
    /// The address above `/embeddings`, such as `https://api.openai.com/v1` or `http://localhost:11434/v1`.
    pub base_url: String,
    /// The name of the model, 1 to 200 bytes.
    pub model: String,
    /// The number of dimensions of the vectors, 1 to 4,096. An answer with another number is an error.
    pub dimensions: usize,
    /// Whether to send the number of dimensions to the server, for models that can shorten their vectors. Off
    /// by default.
    pub send_dimensions: bool,
    /// The bearer token. It appears in no error and in no `Debug` output.
    pub api_key: Option<String>,
    /// The number of texts in one request, 1 to 2,048; 64 by default.
    pub batch_size: usize,
    /// The longest time for one request, up to an hour; 30 seconds by default.
    pub timeout: Duration,
    /// How often a request is repeated after the server put it off (429) or failed (5xx), 0 to 10; 3 by default. The
    /// wait is 0.25 s at first and doubles each time, up to 8 s.
    pub retries: u32,
}

impl OpenAiOptions {
    /// Options for `model` at `base_url`, with every other option at its default.
    ///
    /// ```
    /// use oubliette::embed::OpenAiOptions;
    /// let options = OpenAiOptions::new("http://localhost:11434/v1", "all-minilm", 384);
    /// assert_eq!((options.batch_size, options.retries), (64, 3));
    /// ```
    #[must_use]
    pub fn new(base_url: impl Into<String>, model: impl Into<String>, dimensions: usize) -> Self {
        Self {
            base_url: base_url.into(),
            model: model.into(),
            dimensions,
            send_dimensions: false,
            api_key: None,
            batch_size: 64,
            timeout: Duration::from_secs(30),
            retries: 3,
        }
    }

    fn check(&self) -> Result<()> {
        let bounded = |field: &str, holds: bool, why: String, value: &dyn fmt::Display| {
            if holds { Ok(()) } else { Err(Error::invalid(field, why, value)) }
        };
        within("dimensions", self.dimensions, 1..=DIM_MAX)?;
        let models = 1..=MODEL_BYTES_MAX;
        let why = format!("must have 1 to {MODEL_BYTES_MAX} bytes");
        bounded("model", models.contains(&self.model.len()), why, &self.model)?;
        within("batch_size", self.batch_size, 1..=BATCH_MAX)?;
        let timeouts = !self.timeout.is_zero() && self.timeout <= TIMEOUT_MAX;
        let why = format!("must be above 0 and at most {} s", TIMEOUT_MAX.as_secs());
        bounded("timeout", timeouts, why, &format!("{:?}", self.timeout))?;
        within("retries", self.retries, 0..=RETRIES_MAX)?;
        let rest = ["http://", "https://"].iter().find_map(|scheme| self.base_url.strip_prefix(scheme));
        let plain = rest.is_some_and(|rest| !rest.is_empty() && !rest.contains(['@', '?', '#', ' ']));
        let why = "must begin with http:// or https://, without user, query and fragment".to_owned();
        // The invalid part of the address may be a password, so the error does not repeat it.
        bounded("base_url", plain, why, &"another address")?;
        let visible = |key: &String| !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_graphic());
        let keys = self.api_key.as_ref().is_none_or(visible);
        bounded("api_key", keys, "must be visible ASCII, without spaces".to_owned(), &"another key")
    }
}

impl fmt::Debug for OpenAiOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenAiOptions")
            .field("base_url", &self.base_url)
            .field("model", &self.model)
            .field("dimensions", &self.dimensions)
            .field("send_dimensions", &self.send_dimensions)
            .field("api_key", &self.api_key.as_ref().map(|_| "…"))
            .field("batch_size", &self.batch_size)
            .field("timeout", &self.timeout)
            .field("retries", &self.retries)
            .finish()
    }
}

/// An embedder behind HTTP: OpenAI's service, and the many servers that answer like it, such as Ollama or llama.cpp.
///
/// The id is `openai:MODEL@DIMENSIONS`, whoever serves the model. Calls block. Every answer is checked: one vector for
/// each text, with these dimensions, finite and not zero. Redirections are not followed.
///
/// ```no_run
/// use oubliette::embed::{Embedder, OpenAiEmbedder, OpenAiOptions};
///
/// let mut options = OpenAiOptions::new("http://localhost:11434/v1", "nomic-embed-text", 768);
/// options.batch_size = 16;
/// let embedder = OpenAiEmbedder::new(options)?;
/// assert_eq!(embedder.id(), "openai:nomic-embed-text@768");
/// assert_eq!(embedder.embed_query("Where are the keys?")?.len(), 768);
/// # Ok::<(), oubliette::Error>(())
/// ```
#[derive(Debug)]
pub struct OpenAiEmbedder {
    id: String,
    url: String,
    options: OpenAiOptions,
    agent: ureq::Agent,
}

#[derive(Serialize)]
struct Request<'a> {
    model: &'a str,
    input: &'a [&'a str],
    encoding_format: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    dimensions: Option<usize>,
}

#[derive(Deserialize)]
struct Answer {
    data: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    index: usize,
    embedding: Vec<f32>,
}

/// Why a request gave no vectors.
struct Failure {
    why: String,
    /// Whether the request may succeed the next time.
    passing: bool,
}

impl Failure {
    fn lasting(why: String) -> Self {
        Self { why, passing: false }
    }
}

impl OpenAiEmbedder {
    /// Checks the options. Nothing is sent before a text is to be embedded.
    ///
    /// ```
    /// use oubliette::embed::{Embedder, OpenAiEmbedder, OpenAiOptions};
    /// let mut options = OpenAiOptions::new("http://localhost:11434/v1", "all-minilm", 384);
    /// let embedder = OpenAiEmbedder::new(options.clone())?; // Sends nothing yet.
    /// assert_eq!(embedder.dimensions(), 384);
    /// options.batch_size = 0;
    /// assert!(OpenAiEmbedder::new(options).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Invalid`, with the name of the option that breaks its bound.
    pub fn new(options: OpenAiOptions) -> Result<Self> {
        options.check()?;
        let url = format!("{}/embeddings", options.base_url.trim_end_matches('/'));
        let mut config = ureq::Agent::config_builder()
            .timeout_global(Some(options.timeout))
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false);
        if is_loopback(&options.base_url) {
            // A proxy for the outside world cannot reach a server on this machine.
            config = config.proxy(None);
        }
        let id = format!("openai:{}@{}", options.model, options.dimensions);
        Ok(Self { id, url, options, agent: config.build().into() })
    }

    /// The vectors of one batch.
    fn ask(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>> {
        let request = Request {
            model: &self.options.model,
            input: texts,
            encoding_format: "float",
            dimensions: self.options.send_dimensions.then_some(self.options.dimensions),
        };
        let body = serde_json::to_vec(&request).map_err(|error| self.error(error.to_string()))?;
        let (mut backoff, mut retries) = (BACKOFF_MIN, self.options.retries);
        loop {
            match self.send(&body, texts.len()) {
                Ok(vectors) => return Ok(vectors),
                Err(Failure { why, passing: true }) if retries > 0 => {
                    tracing::debug!(embedder = self.id, why, "asking again");
                    std::thread::sleep(backoff);
                    backoff = (backoff * 2).min(BACKOFF_MAX);
                    retries -= 1;
                }
                Err(Failure { why, .. }) => return Err(self.error(why)),
            }
        }
    }

    fn send(&self, body: &[u8], texts: usize) -> Result<Vec<Vec<f32>>, Failure> {
        let mut request = self.agent.post(&self.url).header("Content-Type", "application/json");
        if let Some(key) = &self.options.api_key {
            request = request.header("Authorization", format!("Bearer {key}"));
        }
        let mut response = request.send(body).map_err(|error| Failure::lasting(error.to_string()))?;
        let status = response.status();
        let bytes_max = ANSWER_BYTES_MAX + texts * self.options.dimensions * NUMBER_BYTES_MAX;
        let bytes = response.body_mut().with_config().limit(bytes_max as u64).read_to_vec();
        if status != 200 {
            let said = bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
            let why = format!("HTTP {}: {}", status.as_u16(), self.repeat(&said));
            let passing = status == 429 || status.is_server_error();
            return Err(Failure { why, passing });
        }
        let bytes = bytes.map_err(|error| Failure::lasting(format!("the answer broke off: {error}")))?;
        self.read(&bytes, texts).map_err(Failure::lasting)
    }

    /// The vectors of an answer, in the order of their texts, or what is wrong with the answer.
    fn read(&self, bytes: &[u8], texts: usize) -> Result<Vec<Vec<f32>>, String> {
        let answer: Answer = serde_json::from_slice(bytes)
            .map_err(|error| format!("not an answer with embeddings: {error}"))?;
        if answer.data.len() != texts {
            return Err(format!("{} vectors for {texts} texts", answer.data.len()));
        }
        let mut vectors = vec![Vec::new(); texts];
        for Item { index, embedding } in answer.data {
            if embedding.len() != self.options.dimensions {
                return Err(format!("{} dimensions instead of {}", embedding.len(), self.options.dimensions));
            }
            if !embedding.iter().all(|value| value.is_finite()) || embedding.iter().all(|value| *value == 0.0)
            {
                return Err(format!("the vector of text {index} is not finite, or zero"));
            }
            match vectors.get_mut(index) {
                Some(place) if place.is_empty() => *place = embedding,
                _ => return Err(format!("index {index} stands twice, or is none of {texts} texts")),
            }
        }
        Ok(vectors)
    }

    /// The server's message, shortened to one line and without the key, which some servers repeat.
    fn repeat(&self, said: &str) -> String {
        let hidden = match &self.options.api_key {
            Some(key) => said.replace(key.as_str(), "…"),
            None => said.to_owned(),
        };
        hidden.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(SAID_CHARS_MAX).collect()
    }

    fn error(&self, why: String) -> Error {
        Error::Embedding { embedder: self.id.clone(), why }
    }
}

/// Whether the address belongs to this machine.
fn is_loopback(base_url: &str) -> bool {
    let rest = base_url.split_once("://").map_or(base_url, |(_, rest)| rest);
    let authority = rest.split('/').next().unwrap_or(rest);
    let host = match authority.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or(rest),
        None => authority.split(':').next().unwrap_or(authority),
    };
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

impl Embedder for OpenAiEmbedder {
    fn id(&self) -> &str {
        &self.id
    }

    fn dimensions(&self) -> usize {
        self.options.dimensions
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>> {
        let mut vectors = Vec::with_capacity(texts.len());
        for batch in texts.chunks(self.options.batch_size) {
            vectors.extend(self.ask(batch)?);
        }
        Ok(vectors)
    }
}
