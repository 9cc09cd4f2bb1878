//! One message of JSON-RPC, read strictly.
//!
//! A message whose objects have a name twice is refused: the usual reader would silently keep the last of both. So is a whole
//! number of more than 64 bits, which would lose digits.

use rmcp::RoleServer;
use rmcp::service::RxJsonRpcMessage;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use crate::json;

/// What JSON-RPC calls bytes that are not JSON, a message of another form, and parameters of another form.
const PARSE_ERROR: i32 = -32_700;
const INVALID_REQUEST: i32 = -32_600;
const INVALID_PARAMS: i32 = -32_602;

/// The message of these bytes; none where there is nothing to answer.
///
/// # Errors
/// The error of JSON-RPC that answers what is no message, as JSON.
pub(super) fn read(bytes: &[u8]) -> Result<Option<RxJsonRpcMessage<RoleServer>>, String> {
    let bytes = bytes.trim_ascii();
    if bytes.is_empty() {
        return Ok(None);
    }
    let Ok(text) = std::str::from_utf8(bytes) else {
        return Err(answer(PARSE_ERROR, &Value::Null, "a message is UTF-8"));
    };
    let value = json::read_exact(text).map_err(|why| {
        // Whoever waits for an answer gets this one.
        let called = text.starts_with('{').then(|| serde_json::from_str(text).ok()).flatten();
        let is_json = serde_json::from_str::<IgnoredAny>(text).is_ok();
        let code = if is_json { INVALID_REQUEST } else { PARSE_ERROR };
        let place = if why.pointer.is_empty() { "the message" } else { &*why.pointer };
        let Called { id } = called.unwrap_or_default();
        answer(code, &id, &format!("{place}: {}", why.why))
    })?;
    if value.is_array() {
        return Err(refused("an array of messages is not read: send each on a line of its own"));
    }
    let id = value.get("id").cloned();
    let is_call = value.get("method").is_some();
    match serde_json::from_value(value) {
        Ok(message) => Ok(Some(message)),
        // A notification of a sort that nobody knows is no news.
        Err(_) if is_call && id.is_none() => Ok(None),
        Err(why) => Err(answer(INVALID_REQUEST, &id.unwrap_or_default(), &json::clean(&why))),
    }
}

/// What a message that can't be read is answered by. Members that are ignored may be of any depth, and have half a character or a
/// number that nothing can hold.
#[derive(Default, Deserialize)]
struct Called {
    #[serde(default)]
    id: Value,
}

fn answer(code: i32, id: &Value, why: &str) -> String {
    let id = if id.is_string() || id.is_number() { id } else { &Value::Null };
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": why } }).to_string()
}

/// The answer to request `id` of a client that has not begun, and whose request has not told these members either.
pub(super) fn not_begun(id: &Value, missing: &[&str]) -> String {
    let missing = missing.join(" and ");
    let why =
        format!("begin with the request initialize; without it, each request must have {missing} in _meta");
    answer(INVALID_PARAMS, id, &why)
}

/// The answer to a message that is not read, because of what is wrong with it as a whole.
pub(super) fn refused(why: &str) -> String {
    answer(INVALID_REQUEST, &Value::Null, why)
}
