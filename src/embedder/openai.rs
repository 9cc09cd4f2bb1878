//! Vectors over HTTP, from any server that answers like OpenAI's `/v1/embeddings`.

#[cfg(test)]
mod tests;

use super::Embedder;
use crate::error::{Error, Result};
use crate::limits::{DIM_MAX, within};
use crate::server::{Access, Server};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// The largest number of texts in a request.
const BATCH_MAX: usize = 2048;

/// The bytes of an answer for each number, and for everything else.
const NUMBER_BYTES_MAX: usize = 40;
const ANSWER_BYTES_MAX: usize = 1 << 20;

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
        within("dimensions", self.dimensions, 1..=DIM_MAX)?;
        within("batch_size", self.batch_size, 1..=BATCH_MAX)
    }

    fn access(&self) -> Access<'_> {
        Access {
            base_url: &self.base_url,
            model: &self.model,
            api_key: self.api_key.as_deref(),
            timeout: self.timeout,
            retries: self.retries,
        }
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
    options: OpenAiOptions,
    server: Server,
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
        let server = Server::new(&options.access(), "embeddings")?;
        let id = format!("openai:{}@{}", options.model, options.dimensions);
        Ok(Self { id, options, server })
    }

    /// The vectors of one batch.
    fn ask(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>> {
        let request = Request {
            model: &self.options.model,
            input: texts,
            encoding_format: "float",
            dimensions: self.options.send_dimensions.then_some(self.options.dimensions),
        };
        let bytes_max = ANSWER_BYTES_MAX + texts.len() * self.options.dimensions * NUMBER_BYTES_MAX;
        let answer = self.server.ask(&request, bytes_max);
        answer.and_then(|bytes| self.read(&bytes, texts.len())).map_err(|why| self.error(why))
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

    fn error(&self, why: String) -> Error {
        Error::Embedding { embedder: self.id.clone(), why }
    }
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
