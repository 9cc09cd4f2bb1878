//! One message of JSON-RPC, read strictly.
//!
//! A message whose objects have a name twice is refused: the usual reader would silently keep the last of both. So is a whole
//! number of more than 64 bits, which would lose digits.

use rmcp::RoleServer;
use rmcp::service::RxJsonRpcMessage;
use serde_json::{Value, json};

use crate::json;

/// What JSON-RPC calls bytes that are no JSON, and a message of another form.
const PARSE_ERROR: i32 = -32_700;
const INVALID_REQUEST: i32 = -32_600;

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
        // The id is that of the usual reader, so that whoever waits for an answer gets this one.
        let lax: Value = serde_json::from_str(text).unwrap_or_default();
        let code = if lax.is_null() { PARSE_ERROR } else { INVALID_REQUEST };
        let place = if why.pointer.is_empty() { "the message" } else { &*why.pointer };
        answer(code, lax.get("id").unwrap_or(&Value::Null), &format!("{place}: {}", why.why))
    })?;
    let id = value.get("id").cloned();
    let is_call = value.get("method").is_some();
    match serde_json::from_value(value) {
        Ok(message) => Ok(Some(message)),
        // A notification of a sort that nobody knows is no news.
        Err(_) if is_call && id.is_none() => Ok(None),
        Err(why) => Err(answer(INVALID_REQUEST, &id.unwrap_or_default(), &json::clean(&why))),
    }
}

fn answer(code: i32, id: &Value, why: &str) -> String {
    let id = if id.is_string() || id.is_number() { id } else { &Value::Null };
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": why } }).to_string()
}

/// The answer to a message that is not read, because of what is wrong with it as a whole.
pub(super) fn refused(why: &str) -> String {
    answer(INVALID_REQUEST, &Value::Null, why)
}
