//! A call as a line of JSON: `{"type":"tool_call","name":NAME,"args":{…}}`, read strictly.

use serde_json::{Map, Value};

use crate::error::Error;
use crate::json;
use crate::limits::LINE_BYTES_MAX;
use crate::tools::error::ToolError;
use crate::tools::shape::Shape;

/// What an envelope must be, with these names of tools.
pub(super) fn shape(names: Vec<&'static str>) -> Shape {
    Shape::Closed(vec![
        Shape::Const("tool_call").required().named("type"),
        Shape::Word(names).required().named("name"),
        Shape::Object.required().named("args"),
    ])
}

/// The name and the arguments of a call of one of these tools.
///
/// # Errors
/// With each wrong value of the envelope.
pub(super) fn read(line: &[u8], names: Vec<&'static str>) -> Result<(String, Map<String, Value>), ToolError> {
    if line.len() > LINE_BYTES_MAX {
        let why = format!("must be at most {LINE_BYTES_MAX} bytes");
        return Err(Error::invalid("envelope", why, format!("{} bytes", line.len())).into());
    }
    let text = std::str::from_utf8(line).map_err(|why| {
        ToolError::from(Error::invalid(
            "envelope",
            "must be UTF-8",
            format!("other bytes from byte {} on", why.valid_up_to()),
        ))
    })?;
    let mut value = json::read_exact(text).map_err(|refusal| {
        let pointers = vec![refusal.pointer];
        ToolError { pointers, ..ToolError::new(None, "invalid_json", refusal.why) }
    })?;
    let name = value.get("name").and_then(Value::as_str).map(str::to_owned);
    let faults = shape(names).check(&mut value, "");
    match (name, value.get_mut("args").map(Value::take)) {
        (Some(name), Some(Value::Object(args))) if faults.is_empty() => Ok((name, args)),
        (name, _) => {
            let unknown = matches!(faults.as_slice(), [only] if only.pointer == "/name" && name.is_some());
            let code = if unknown { "unknown_tool" } else { "invalid_envelope" };
            Err(ToolError::of_faults(name.as_deref(), code, &faults))
        }
    }
}
