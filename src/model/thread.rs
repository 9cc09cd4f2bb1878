//! Which memories follow each other?

use std::borrow::Cow;

use serde_json::Value;

use crate::limits::FIELD_BYTES_MAX;
use crate::model::parts::Content;
use crate::model::time::Time;
use crate::model::vitals::Vitals;

/// The members of the metadata that say where a memory lies, where its fields do not.
pub(crate) const PLACE_NAMES: [&str; 3] = ["thread", "session", "conversation"];

/// The place of a memory in the order of its thread: the thread and the time. Memories of one time follow each other
/// in the order in which they were stored.
///
/// The thread is the field `thread`, or else `session`, within the `channel` if there is one. If a field is not set,
/// the metadata may hold a text or a number under the same name, or under `conversation` for the channel. The time is
/// `happened_at`, or else `created_at`. None for a memory that lies in no thread.
pub(crate) fn thread_place(vitals: &Vitals, content: &Content) -> Option<(String, Time)> {
    let sound = |name: &Cow<'_, str>| {
        !name.is_empty() && name.len() <= FIELD_BYTES_MAX && !name.contains(['\0', '\u{1}'])
    };
    let told = |name: &str| match content.metadata.get(name)? {
        Value::String(text) => Some(Cow::Borrowed(text.as_str())),
        Value::Number(number) => Some(Cow::Owned(number.to_string())),
        _ => None,
    };
    let field = |field: &'_ Option<String>| field.clone().map(Cow::Owned);
    let thread = field(&content.thread).or_else(|| told("thread")).filter(sound).map(|name| ('t', name));
    let session =
        || field(&content.session).or_else(|| told("session")).filter(sound).map(|name| ('s', name));
    let (sort, name) = thread.or_else(session)?;
    let channel = field(&content.channel).or_else(|| told("conversation")).filter(sound).unwrap_or_default();
    Some((format!("{channel}\u{1}{sort}{name}"), vitals.happened_at.unwrap_or(vitals.created_at)))
}
