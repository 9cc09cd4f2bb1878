//! A knowledge graph as memories: each entity, observation and relation is one.
//!
//! The key of a memory is made from what the graph holds fast, so the same element is never stored twice. An observation is written behind the name of
//! its entity unless it contains the name: alone it would not tell of whom it speaks, and equal observations of two entities would be one memory.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::model::{Draft, Entity, Kind};

/// Roles of the entities of a memory.
const SUBJECT: &str = "subject";
const OBJECT: &str = "object";

/// An element of a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Element<'e> {
    /// An entity by itself.
    Entity {
        name: &'e str,
        sort: &'e str,
    },
    /// What was observed of an entity of a sort.
    Observation {
        entity: &'e str,
        sort: &'e str,
        text: &'e str,
    },
    Relation {
        from: &'e str,
        relation: &'e str,
        to: &'e str,
    },
}

/// Keys that an element can have.
const KEYS_MAX: usize = 8;

impl<'e> Element<'e> {
    /// The roles in which memories that are elements are joined to their entities.
    pub(crate) const ROLES: [&'static str; 2] = [SUBJECT, OBJECT];
    /// What the keys of elements begin with.
    pub(crate) const KEYS: [&'static str; 3] = ["entity:", "observation:", "relation:"];

    /// The key of its memory.
    pub(crate) fn key(&self) -> String {
        self.nth_key(0)
    }

    /// The keys that its memory can have, the usual one first: another memory can have that, one that was this element before
    /// somebody gave it another text.
    pub(crate) fn keys(&self) -> impl Iterator<Item = String> {
        (0..KEYS_MAX).map(|number| self.nth_key(number))
    }

    fn nth_key(&self, number: usize) -> String {
        let [entity, observation, relation] = Self::KEYS;
        let (begins, mut parts) = match self {
            Element::Entity { name, .. } => (entity, vec![json!(name)]),
            Element::Observation { entity, text, .. } => (observation, vec![json!(entity), json!(text)]),
            Element::Relation { from, relation: what, to } => {
                (relation, vec![json!(from), json!(what), json!(to)])
            }
        };
        parts.extend((number > 0).then(|| json!(number)));
        format!("{begins}{}", digest(&json!(parts)))
    }

    /// The memory that it is.
    pub(crate) fn draft(&self) -> Draft {
        let entity = |name: &str, role: &str| Entity { name: name.to_owned(), role: role.to_owned() };
        let (text, entities, sort) = match *self {
            Element::Entity { name, sort } => (format!("{name} ({sort})"), vec![entity(name, SUBJECT)], sort),
            Element::Observation { entity: name, sort, text } if text.contains(name) => {
                (text.to_owned(), vec![entity(name, SUBJECT)], sort)
            }
            Element::Observation { entity: name, sort, text } => {
                (format!("{name}: {text}"), vec![entity(name, SUBJECT)], sort)
            }
            Element::Relation { from, relation, to } => {
                (format!("{from} {relation} {to}"), vec![entity(from, SUBJECT), entity(to, OBJECT)], "")
            }
        };
        let mut draft = Draft::new(text).key(self.key()).kind(Kind::Knowledge);
        draft.entities = Some(entities);
        draft.categories = (!sort.is_empty()).then(|| vec![sort.to_owned()]);
        draft
    }

    /// The entities of its memory.
    pub(crate) fn about(&self) -> Vec<&'e str> {
        match *self {
            Element::Entity { name: entity, .. } | Element::Observation { entity, .. } => vec![entity],
            Element::Relation { from, to, .. } => vec![from, to],
        }
    }

    /// The texts with which a memory says it, whatever its key is; none of an entity, which goes by its key alone.
    pub(crate) fn texts(&self) -> Vec<String> {
        match *self {
            Element::Entity { .. } => Vec::new(),
            Element::Observation { entity, text, .. } => vec![text.to_owned(), format!("{entity}: {text}")],
            Element::Relation { from, relation, to } => {
                vec![relation.to_owned(), format!("{from} {relation} {to}")]
            }
        }
    }

    /// The element that a memory of this text, these entities and this first category is by one of its keys; none where it is no element.
    /// A text that was changed since is taken as it stands.
    pub(crate) fn of(text: &'e str, entities: &'e [Entity], sort: &'e str, key: &str) -> Option<Self> {
        let (what, digits) = key.split_once(':')?;
        if digits.len() != DIGITS || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        let named = |role: &'static str| {
            let entities = entities.iter().filter(move |entity| entity.role == role);
            entities.map(|entity| entity.name.as_str())
        };
        let of_entities = || named(SUBJECT).flat_map(|entity| observations(entity, sort, text));
        let of_ends =
            || named(SUBJECT).flat_map(|from| named(OBJECT).map(move |to| relation(from, text, to)));
        let is_keyed = |one: &Element<'_>| one.keys().any(|of_one| of_one == key);
        match what {
            "entity" => named(SUBJECT).map(|name| Element::Entity { name, sort }).find(is_keyed),
            "observation" => of_entities().find(is_keyed).or_else(|| of_entities().next()),
            "relation" => of_ends().find(is_keyed).or_else(|| of_ends().next()),
            _ => None,
        }
    }
}

/// What a text may say of an entity: what stands behind the name, or all of it.
fn observations<'e>(entity: &'e str, sort: &'e str, text: &'e str) -> impl Iterator<Item = Element<'e>> {
    let behind = text.strip_prefix(entity).and_then(|rest| rest.strip_prefix(": "));
    behind.into_iter().chain([text]).map(move |text| Element::Observation { entity, sort, text })
}

/// What a text says of two entities.
fn relation<'e>(from: &'e str, text: &'e str, to: &'e str) -> Element<'e> {
    let between = text.strip_prefix(from).and_then(|rest| rest.strip_suffix(to));
    let between = between.and_then(|rest| rest.strip_prefix(' ')?.strip_suffix(' '));
    Element::Relation { from, relation: between.unwrap_or(text), to }
}

/// Digits of a key.
const DIGITS: usize = 16;

/// Hexadecimal digits that stand for a list of texts: names can be longer than a key.
fn digest(parts: &Value) -> String {
    let hash = Sha256::digest(parts.to_string());
    let short = hash.iter().take(DIGITS / 2).fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    format!("{short:016x}")
}
