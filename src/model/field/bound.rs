//! The bounds of the fields, under the names that the table uses.

use serde_json::Value;

use crate::error::{Error, Result};
use crate::limits::{
    ATTACHMENTS_MAX, CONSOLIDATED_MAX, FIELD_BYTES_MAX, LINKS_MAX, METADATA_BYTES_MAX, METADATA_DEPTH_MAX,
    SUMMARY_ITEMS_MAX, TAG_BYTES_MAX, TAGS_MAX,
};
use crate::model::field::value::{Attachment, Embed, Entity, Link, TimeRange};
use crate::model::id::MemoryId;
use crate::model::name::{check_key, check_text};

/// Any value of the type.
pub(super) fn free<T>(_: &str, _: &T) -> Result<()> {
    Ok(())
}

/// From 0 to 1.
pub(super) fn unit(field: &str, value: &f32) -> Result<()> {
    match (0.0..=1.0).contains(value) {
        true => Ok(()),
        false => Err(Error::invalid(field, "must be from 0 to 1", value)),
    }
}

/// Finite and not negative.
pub(super) fn amount(field: &str, value: &f64) -> Result<()> {
    match value.is_finite() && *value >= 0.0 {
        true => Ok(()),
        false => Err(Error::invalid(field, "must be finite and not negative", value)),
    }
}

/// A text within its bound, without NUL.
pub(super) fn name(field: &str, text: &str) -> Result<()> {
    check_text(field, text, FIELD_BYTES_MAX)
}

/// A range that ends where it starts, or later.
pub(super) fn range(field: &str, range: &TimeRange) -> Result<()> {
    match range.end < range.start {
        true => Err(Error::invalid(field, "must not end before it starts", range.end)),
        false => Ok(()),
    }
}

/// At most 64 attachments, with names within their bounds.
pub(super) fn attachments(field: &str, list: &[Attachment]) -> Result<()> {
    check_count(field, list.len(), ATTACHMENTS_MAX)?;
    list.iter().try_for_each(|item| {
        name("attachments.type", &item.media_type)?;
        item.blob_id.as_deref().map_or(Ok(()), |id| name("attachments.blob_id", id))
    })
}

/// At most 64 embeds, with texts within their bounds.
pub(super) fn embeds(field: &str, list: &[Embed]) -> Result<()> {
    check_count(field, list.len(), ATTACHMENTS_MAX)?;
    list.iter().try_for_each(|item| {
        name("embeds.url", &item.url)?;
        item.title.as_deref().map_or(Ok(()), |title| name("embeds.title", title))
    })
}

/// As many ids as a write may say were merged into its memory.
pub(super) fn ids(field: &str, list: &[MemoryId]) -> Result<()> {
    check_count(field, list.len(), CONSOLIDATED_MAX)
}

/// A JSON array of bounded length and size.
pub(super) fn array(field: &str, value: &Value) -> Result<()> {
    let Value::Array(items) = value else {
        return Err(Error::invalid(field, "must be a JSON array", value));
    };
    check_count(field, items.len(), SUMMARY_ITEMS_MAX)?;
    check_json(field, value)
}

/// A JSON object of bounded depth and size.
pub(crate) fn metadata(field: &str, value: &Value) -> Result<()> {
    match value.is_object() {
        true => check_json(field, value),
        false => Err(Error::invalid(field, "must be a JSON object", value)),
    }
}

/// How the docs describe a bound.
#[cfg(test)]
pub(super) fn told(bound: &str) -> String {
    match bound {
        "unit" => "0 to 1".to_owned(),
        "amount" => "finite, not negative".to_owned(),
        "name" => format!("1 to {FIELD_BYTES_MAX} bytes, no NUL"),
        "range" => "ends where it starts or later".to_owned(),
        "attachments" | "embeds" => format!("at most {ATTACHMENTS_MAX}"),
        "ids" => format!("at most {CONSOLIDATED_MAX}"),
        "array" => format!("a JSON array of at most {SUMMARY_ITEMS_MAX}, {METADATA_BYTES_MAX} bytes"),
        "metadata" => {
            format!("a JSON object, {METADATA_BYTES_MAX} bytes, {METADATA_DEPTH_MAX} levels")
        }
        _ => String::new(),
    }
}

fn check_count(field: &str, count: usize, max: usize) -> Result<()> {
    if count > max {
        return Err(Error::invalid(field, format!("must have at most {max} entries"), count));
    }
    Ok(())
}

/// Checks depth, size and NUL of a JSON value that is stored unchanged.
fn check_json(field: &str, value: &Value) -> Result<()> {
    fn walk(field: &str, value: &Value, depth: usize) -> Result<()> {
        if depth > METADATA_DEPTH_MAX {
            return Err(Error::invalid(
                field,
                format!("must nest at most {METADATA_DEPTH_MAX} deep"),
                "deeper",
            ));
        }
        let text = |text: &str| match text.contains('\0') {
            true => Err(Error::invalid(field, "must not contain NUL", text.escape_default())),
            false => Ok(()),
        };
        match value {
            Value::String(s) => text(s),
            Value::Array(items) => items.iter().try_for_each(|item| walk(field, item, depth + 1)),
            Value::Object(map) => map.iter().try_for_each(|(name, item)| {
                text(name)?;
                walk(field, item, depth + 1)
            }),
            Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
        }
    }
    walk(field, value, 0)?;
    let bytes = value.to_string().len();
    if bytes > METADATA_BYTES_MAX {
        return Err(Error::invalid(
            field,
            format!("must be at most {METADATA_BYTES_MAX} bytes of JSON"),
            bytes,
        ));
    }
    Ok(())
}

/// The tags as a set in byte order, within their bounds.
///
/// # Errors
/// `Invalid` for more than 64 tags, or for a tag that is empty, longer than 128 bytes, or has a NUL.
pub(crate) fn check_tags(tags: &[String]) -> Result<Vec<String>> {
    let set = check_set("tags", tags, TAGS_MAX)?;
    Ok(set)
}

/// The names of categories as a set in byte order.
pub(crate) fn check_categories(names: &[String]) -> Result<Vec<String>> {
    check_set("categories", names, LINKS_MAX)
}

fn check_set(field: &str, names: &[String], max: usize) -> Result<Vec<String>> {
    for name in names {
        check_text(field, name, TAG_BYTES_MAX)?;
    }
    let mut set = names.to_vec();
    set.sort_unstable();
    set.dedup();
    check_count(field, set.len(), max)?;
    Ok(set)
}

/// The entities as a set, with names and roles within their bounds.
pub(crate) fn check_entities(entities: &[Entity]) -> Result<Vec<Entity>> {
    for entity in entities {
        check_text("entities.name", &entity.name, TAG_BYTES_MAX)?;
        check_text("entities.role", &entity.role, TAG_BYTES_MAX)?;
    }
    let mut set = entities.to_vec();
    set.sort_unstable();
    set.dedup();
    check_count("entities", set.len(), LINKS_MAX)?;
    Ok(set)
}

/// The links as a set, with relations within their bounds.
pub(crate) fn check_links(links: &[Link]) -> Result<Vec<Link>> {
    for link in links {
        check_text("links.relation", &link.relation, TAG_BYTES_MAX)?;
    }
    let mut set = links.to_vec();
    set.sort_unstable();
    set.dedup();
    check_count("links", set.len(), LINKS_MAX)?;
    Ok(set)
}

/// Checks the keys or ids that a draft supersedes.
pub(crate) fn check_supersedes(names: &[String]) -> Result<()> {
    check_count("supersedes", names.len(), LINKS_MAX)?;
    names.iter().try_for_each(|name| check_key(name))
}
