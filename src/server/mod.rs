//! How is a server asked that answers like OpenAI's?
//!
//! A [`Server`] sends a JSON document to one address, asks again where the server put it off, and gives back the bytes
//! of an answer of bounded length. Redirections are not followed. The key appears in no error and in no `Debug` output.
//!
//! The room never knows what is asked.

#[cfg(test)]
pub(crate) mod fake;
#[cfg(test)]
mod tests;

use std::fmt::{self, Display};
use std::time::Duration;

use serde::Serialize;

use crate::error::{Error, Result};
use crate::limits::within;

/// The longest name of a model in bytes.
const MODEL_BYTES_MAX: usize = 200;
const TIMEOUT_MAX: Duration = Duration::from_secs(3600);
const RETRIES_MAX: u32 = 10;

/// The wait before the first retry. It doubles with each retry, up to the second constant.
const BACKOFF_MIN: Duration = Duration::from_millis(250);
const BACKOFF_MAX: Duration = Duration::from_secs(8);

/// How many characters of a server's answer an error repeats.
const SAID_CHARS_MAX: usize = 200;

/// Where a server is, and how to ask it.
pub(crate) struct Access<'o> {
    /// The address above that of the service.
    pub(crate) base_url: &'o str,
    /// The model that is asked for.
    pub(crate) model: &'o str,
    pub(crate) api_key: Option<&'o str>,
    /// The longest time for one request.
    pub(crate) timeout: Duration,
    /// How often a request is repeated after the server put it off (429) or failed (5xx).
    pub(crate) retries: u32,
}

impl Access<'_> {
    fn check(&self) -> Result<()> {
        let bounded = |field: &str, holds: bool, why: String, value: &dyn Display| {
            if holds { Ok(()) } else { Err(Error::invalid(field, why, value)) }
        };
        let models = 1..=MODEL_BYTES_MAX;
        let why = format!("must have 1 to {MODEL_BYTES_MAX} bytes");
        bounded("model", models.contains(&self.model.len()), why, &self.model)?;
        let timeouts = !self.timeout.is_zero() && self.timeout <= TIMEOUT_MAX;
        let why = format!("must be above 0 and at most {} s", TIMEOUT_MAX.as_secs());
        bounded("timeout", timeouts, why, &format!("{:?}", self.timeout))?;
        within("retries", self.retries, 0..=RETRIES_MAX)?;
        let rest = ["http://", "https://"].iter().find_map(|scheme| self.base_url.strip_prefix(scheme));
        let plain = rest.is_some_and(|rest| !rest.is_empty() && !rest.contains(['@', '?', '#', ' ']));
        let why = "must begin with http:// or https://, without user, query and fragment".to_owned();
        // The invalid part of the address may be a password, so the error does not repeat it.
        bounded("base_url", plain, why, &"another address")?;
        let visible = |key: &str| !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_graphic());
        let keys = self.api_key.is_none_or(visible);
        bounded("api_key", keys, "must be visible ASCII, without spaces".to_owned(), &"another key")
    }
}

/// A server that answers at one address.
pub(crate) struct Server {
    url: String,
    api_key: Option<String>,
    retries: u32,
    agent: ureq::Agent,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let api_key = self.api_key.as_ref().map(|_| "…");
        f.debug_struct("Server").field("url", &self.url).field("api_key", &api_key).finish_non_exhaustive()
    }
}

/// Why a request gave no answer.
struct Failure {
    why: String,
    /// Whether the request may succeed the next time.
    passing: bool,
}

impl Failure {
    fn lasting(why: String) -> Self {
        Failure { why, passing: false }
    }
}

impl Server {
    /// A server that answers under `path`. Nothing is sent.
    ///
    /// # Errors
    /// `Invalid`, with the name of the option that breaks its bound.
    pub(crate) fn new(access: &Access<'_>, path: &str) -> Result<Self> {
        access.check()?;
        let mut config = ureq::Agent::config_builder()
            .timeout_global(Some(access.timeout))
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false);
        if is_loopback(access.base_url) {
            // A proxy for the outside world cannot reach a server on this machine.
            config = config.proxy(None);
        }
        Ok(Server {
            url: format!("{}/{path}", access.base_url.trim_end_matches('/')),
            api_key: access.api_key.map(str::to_owned),
            retries: access.retries,
            agent: config.build().into(),
        })
    }

    /// The answer to a document, of at most so many bytes.
    ///
    /// # Errors
    /// Why there is none.
    pub(crate) fn ask(&self, document: &impl Serialize, bytes_max: usize) -> Result<Vec<u8>, String> {
        let body = serde_json::to_vec(document).map_err(|error| error.to_string())?;
        let (mut backoff, mut retries) = (BACKOFF_MIN, self.retries);
        loop {
            match self.send(&body, bytes_max) {
                Ok(bytes) => return Ok(bytes),
                Err(Failure { why, passing: true }) if retries > 0 => {
                    tracing::debug!(url = self.url, why, "asking again");
                    std::thread::sleep(backoff);
                    backoff = (backoff * 2).min(BACKOFF_MAX);
                    retries -= 1;
                }
                Err(Failure { why, .. }) => return Err(why),
            }
        }
    }

    fn send(&self, body: &[u8], bytes_max: usize) -> Result<Vec<u8>, Failure> {
        let mut request = self.agent.post(&self.url).header("Content-Type", "application/json");
        if let Some(key) = &self.api_key {
            request = request.header("Authorization", format!("Bearer {key}"));
        }
        let mut response = request.send(body).map_err(|error| Failure::lasting(error.to_string()))?;
        let status = response.status();
        let bytes = response.body_mut().with_config().limit(bytes_max as u64).read_to_vec();
        if status != 200 {
            let said = bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
            let why = format!("HTTP {}: {}", status.as_u16(), self.repeat(&said));
            let passing = status == 429 || status.is_server_error();
            return Err(Failure { why, passing });
        }
        bytes.map_err(|error| Failure::lasting(format!("the answer broke off: {error}")))
    }

    /// A text of the server, shortened to one line and without the key, which some servers repeat.
    pub(crate) fn repeat(&self, said: &str) -> String {
        let hidden = match &self.api_key {
            Some(key) => said.replace(key.as_str(), "…"),
            None => said.to_owned(),
        };
        hidden.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(SAID_CHARS_MAX).collect()
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
