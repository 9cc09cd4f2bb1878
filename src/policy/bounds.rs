//! What a value of the policy may be, beyond its type. A bound is a function that says in words what is broken.

use std::collections::{BTreeMap, BTreeSet};

use regex::RegexBuilder;
use serde::Serialize;

use crate::error::Error;
use crate::limits::{KEY_BYTES_MAX, NAME_BYTES_MAX, POLICY_ITEMS_MAX, REGEX_BYTES_MAX, TAG_BYTES_MAX};
use crate::model::{Kind, Span};

/// The bound holds, or this is what is wrong.
pub(super) type Checked = Result<(), String>;

/// Largest count: exact in JSON readers that hold numbers as f64, and far from the end of i64 in TOML.
pub(super) const COUNT_MAX: u64 = 1 << 53;

/// Every value of the type will do.
pub(super) fn any<T>(_: &T) -> Checked {
    Ok(())
}

/// A finite number from `low` to `high`, both included.
pub(super) fn within(low: f64, high: f64) -> impl Fn(&f64) -> Checked {
    move |value| match (low..=high).contains(value) {
        true => Ok(()),
        false => Err(format!("must be {low} to {high} (got {value})")),
    }
}

/// A share, weight or similarity: 0 to 1.
pub(super) fn share(value: &f64) -> Checked {
    within(0.0, 1.0)(value)
}

/// A weight beside others: 0 to 10.
pub(super) fn weight(value: &f64) -> Checked {
    within(0.0, 10.0)(value)
}

/// A cosine: -1 to 1.
pub(super) fn cosine(value: &f64) -> Checked {
    within(-1.0, 1.0)(value)
}

/// A time constant in days: above 0, so that a division by it is defined.
pub(super) fn days(value: &f64) -> Checked {
    within(0.001, 36_525.0)(value)
}

/// A count from `low` to `high`, both included.
pub(super) fn count<T: Copy + Into<u64>>(low: u64, high: u64) -> impl Fn(&T) -> Checked {
    move |value| {
        let value: u64 = (*value).into();
        match (low..=high).contains(&value) {
            true => Ok(()),
            false => Err(format!("must be {low} to {high} (got {value})")),
        }
    }
}

/// A span above 0.
pub(super) fn lasting(span: &Span) -> Checked {
    if *span == Span::ZERO {
        return Err("must be longer than 0".to_owned());
    }
    maybe_zero(span)
}

/// A span that may be 0, with the meaning that the key gives to 0.
pub(super) fn maybe_zero(span: &Span) -> Checked {
    match *span <= Span::MAX {
        true => Ok(()),
        false => Err(format!("must be at most {} (got {span})", Span::MAX)),
    }
}

/// A list of at most [`POLICY_ITEMS_MAX`] items without repetition, of which each passes `item`.
pub(super) fn set<T: Ord + Serialize>(item: impl Fn(&T) -> Checked) -> impl Fn(&Vec<T>) -> Checked {
    move |items| {
        let mut seen = BTreeSet::new();
        for value in bounded(items)? {
            let shown = || serde_json::to_string(value).unwrap_or_default();
            item(value).map_err(|why| format!("{}: {why}", shown()))?;
            if !seen.insert(value) {
                return Err(format!("{} stands in the list twice", shown()));
            }
        }
        Ok(())
    }
}

/// The items of a list that is not too long.
pub(super) fn bounded<T>(items: &[T]) -> Result<&[T], String> {
    match items.len() <= POLICY_ITEMS_MAX {
        true => Ok(items),
        false => Err(format!("must have at most {POLICY_ITEMS_MAX} items (got {})", items.len())),
    }
}

/// A short text: 1 to `bytes_max` bytes, no NUL, no white space at its ends.
pub(super) fn text(bytes_max: usize) -> impl Fn(&String) -> Checked {
    move |value| {
        if value.is_empty() || value.len() > bytes_max {
            return Err(format!("must be 1 to {bytes_max} bytes (got {})", value.len()));
        }
        if value.contains('\0') || value.trim().len() != value.len() {
            return Err("must have no NUL and no white space at its ends".to_owned());
        }
        Ok(())
    }
}

/// An agent id or label.
pub(super) fn name(value: &String) -> Checked {
    text(NAME_BYTES_MAX)(value)
}

/// A tag.
pub(super) fn tag(value: &String) -> Checked {
    text(TAG_BYTES_MAX)(value)
}

/// A caller key.
pub(super) fn key(value: &String) -> Checked {
    text(KEY_BYTES_MAX)(value)
}

/// A word that is compared with words of lowercased text: anything else could never match.
pub(super) fn word(value: &String) -> Checked {
    tag(value)?;
    if value.chars().any(char::is_whitespace) {
        return Err("must be one word".to_owned());
    }
    if *value != value.to_lowercase() {
        return Err("must be lowercase, because it is compared with lowercased text".to_owned());
    }
    Ok(())
}

/// Two different words.
pub(super) fn pair(words: &[String; 2]) -> Checked {
    let [one, other] = words;
    word(one)?;
    word(other)?;
    if one == other { Err("a word is not its own opposite".to_owned()) } else { Ok(()) }
}

/// A host name in lowercase, as it stands in a canonical URL.
pub(super) fn host(value: &String) -> Checked {
    const HOST_BYTES_MAX: usize = 253;
    text(HOST_BYTES_MAX)(value)?;
    if value.chars().any(|c| c.is_whitespace() || c.is_control() || c.is_uppercase() || "/?#@".contains(c)) {
        return Err("must be a host name in lowercase, without scheme or path".to_owned());
    }
    Ok(())
}

/// A host name, or `*` for all.
pub(super) fn host_or_all(value: &String) -> Checked {
    if value == "*" { Ok(()) } else { host(value) }
}

/// For each host the query parameters to keep.
pub(super) fn parameters(table: &BTreeMap<String, Vec<String>>) -> Checked {
    if table.len() > POLICY_ITEMS_MAX {
        return Err(format!("must have at most {POLICY_ITEMS_MAX} hosts (got {})", table.len()));
    }
    for (domain, names) in table {
        host(domain).and_then(|()| set(tag)(names)).map_err(|why| format!("{domain:?}: {why}"))?;
    }
    Ok(())
}

/// A time zone: an IANA name or a fixed offset such as `+02:00`. Whether the machine knows it is asked where a
/// zone is used, for a stored document must load everywhere.
pub(super) fn zone(value: &String) -> Checked {
    text(64)(value)?;
    if value.chars().any(|c| !c.is_ascii_alphanumeric() && !"_+-/:".contains(c)) {
        return Err("must be an IANA zone name such as Europe/Vienna, or an offset such as +02:00".to_owned());
    }
    Ok(())
}

/// A regular expression that compiles within [`REGEX_BYTES_MAX`]; its matching takes linear time.
pub(super) fn regex(pattern: &str) -> Checked {
    compiled(pattern).map(|_| ())
}

/// A regular expression that never matches the empty text, so that replacing its matches ends.
pub(super) fn replaceable(pattern: &str) -> Checked {
    if compiled(pattern)?.is_match("") {
        return Err(format!("{pattern:?} matches the empty text"));
    }
    Ok(())
}

fn compiled(pattern: &str) -> Result<regex::Regex, String> {
    let built = RegexBuilder::new(pattern).size_limit(REGEX_BYTES_MAX).build();
    built.map_err(|error| format!("invalid regular expression {pattern:?}: {error}"))
}

/// A kind of memory: one that has a name of its own, or `custom:NAME`.
pub(super) fn kind(value: &String) -> Checked {
    if let Some(name) = value.strip_prefix("custom:") {
        return tag(&name.to_owned());
    }
    match value.parse::<Kind>() {
        Err(Error::Invalid { why, .. }) => Err(why),
        // Kinds of a policy are compared by their names.
        Ok(kind) if kind.to_string() != *value => Err(format!("must be in small letters: {kind}")),
        parsed => parsed.map(drop).map_err(|why| why.to_string()),
    }
}
