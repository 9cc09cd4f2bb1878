//! Which memories follow each other?

use std::borrow::Cow;

use serde_json::Value;

use crate::limits::FIELD_BYTES_MAX;
use crate::model::memory::{Content, Vitals};
use crate::model::time::Time;

/// The place of a memory in the order of its thread: the thread and the time. Memories of one time follow each other as
/// they were stored.
///
/// The thread is its `thread`, else its `session`, else the member `thread` or `session` of its metadata, a text or a
/// number; the time is `happened_at`, else `created_at`. None for a memory that lies in no thread.
pub(crate) fn thread_place(vitals: &Vitals, content: &Content) -> Option<(String, Time)> {
    let of = |sort: char, name: Cow<'_, str>| {
        let sound = !name.is_empty() && name.len() <= FIELD_BYTES_MAX && !name.contains('\0');
        sound.then(|| format!("{sort}{name}"))
    };
    let told = |name: &str| match content.metadata.get(name)? {
        Value::String(text) => Some(Cow::Borrowed(text.as_str())),
        Value::Number(number) => Some(Cow::Owned(number.to_string())),
        _ => None,
    };
    let thread = content.thread.as_deref().map(Cow::Borrowed).or_else(|| told("thread"));
    let session = || content.session.as_deref().map(Cow::Borrowed).or_else(|| told("session"));
    let name = thread.and_then(|name| of('t', name)).or_else(|| of('s', session()?))?;
    Some((name, vitals.happened_at.unwrap_or(vitals.created_at)))
}
