//! Closed sets: each member is one row with its name and its code. Every list of the members is made from the rows. A name is
//! read in capitals, too, and written as it stands in the row.

use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serializer};

use crate::error::Error;

/// A closed set: `pub Name "field" { Member = code, "name"; }`.
///
/// `code` is the value on disk. `name` is the value in JSON, on the command line and in messages. `field` names the
/// set in the error for an unknown name. A set that is `pub` can be named from outside, in the root of the crate or
/// in a module of it: its first member is the example.
macro_rules! closed_set {
    ($(#[$doc:meta])* pub $name:ident $field:literal {
        $(#[$vdoc:meta])* $variant:ident = $code:literal, $text:literal; $($rest:tt)*
    }) => {
        closed_set! {
            @ [concat!(
                "```\n# use oubliette::{exchange::*, gc::*, maintain::*, memory::*, policy::*, report::*, *};\nassert_eq!(",
                stringify!($name), "::", stringify!($variant), ".as_str(), \"", $text, "\");\n```"
            )]
            $(#[$doc])* pub $name $field { $(#[$vdoc])* $variant = $code, $text; $($rest)* }
        }
    };
    ($(#[$doc:meta])* pub(crate) $($set:tt)+) => {
        closed_set! { @ [""] $(#[$doc])* pub(crate) $($set)+ }
    };
    (@ [$example:expr] $(#[$doc:meta])* $vis:vis $name:ident $field:literal {
        $($(#[$vdoc:meta])* $variant:ident = $code:literal, $text:literal;)+
    }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        $vis enum $name {
            $($(#[$vdoc])* $variant = $code,)+
        }

        #[allow(dead_code, reason = "not every set is asked everything")]
        impl $name {
            /// Every member, in order.
            $vis const ALL: &[$name] = &[$($name::$variant,)+];

            /// The name in JSON and on the command line.
            ///
            #[doc = $example]
            $vis const fn as_str(self) -> &'static str {
                match self { $($name::$variant => $text,)+ }
            }

            /// The code on disk.
            pub(crate) const fn code(self) -> u8 {
                self as u8
            }

            /// The member with a code from disk.
            pub(crate) const fn from_code(code: u8) -> Option<Self> {
                match code { $($code => Some($name::$variant),)+ _ => None }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = crate::error::Error;

            fn from_str(text: &str) -> crate::error::Result<Self> {
                let named = $name::ALL.iter().find(|one| one.as_str().eq_ignore_ascii_case(text));
                let all = &[$($text,)+];
                named.copied().ok_or_else(|| $crate::model::closed::no_member($field, all, text))
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                $crate::model::closed::write(self.as_str(), self.code(), serializer)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $crate::model::closed::read($name::from_code, deserializer)
            }
        }
    };
}

pub(crate) use closed_set;

/// Writes a member: its name in text, its code on disk.
///
/// # Errors
/// Those of the serializer.
pub(crate) fn write<S: Serializer>(name: &str, code: u8, serializer: S) -> Result<S::Ok, S::Error> {
    if serializer.is_human_readable() {
        serializer.serialize_str(name)
    } else {
        serializer.serialize_u8(code)
    }
}

/// Reads what `write` wrote.
///
/// # Errors
/// If no member has the name or the code, and the errors of the deserializer.
pub(crate) fn read<'de, T, D>(from_code: fn(u8) -> Option<T>, deserializer: D) -> Result<T, D::Error>
where
    T: FromStr<Err = Error>,
    D: Deserializer<'de>,
{
    if deserializer.is_human_readable() {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    } else {
        let code = u8::deserialize(deserializer)?;
        from_code(code).ok_or_else(|| D::Error::custom(format_args!("no member has the code {code}")))
    }
}

/// The error for a name that no member has: `must be a, b or c`, and which of them is much like it.
pub(crate) fn no_member(field: &'static str, names: &[&str], text: &str) -> Error {
    let mut why = match names {
        [first @ .., last] if !first.is_empty() => format!("must be {} or {last}", first.join(", ")),
        _ => format!("must be {}", names.concat()),
    };
    if let Some(near) = nearest(names, text) {
        why.push_str(&format!("; {near} is the nearest"));
    }
    Error::invalid(field, why, text)
}

/// The name that a slip of the finger would turn into the text: two of three letters are where they were.
pub(crate) fn nearest<'n>(names: &[&'n str], text: &str) -> Option<&'n str> {
    let text = text.to_ascii_lowercase();
    let all = names.iter().map(|name| (slips(name, &text), *name));
    let near = all.filter(|(slips, name)| slips * 3 <= name.len());
    near.min_by_key(|(slips, _)| *slips).map(|(_, name)| name)
}

/// Letters that are put in, left out or changed between two names (Levenshtein); of a text that is much longer, or empty, the
/// length of the longer one.
fn slips(name: &str, text: &str) -> usize {
    if text.is_empty() || text.len() > 2 * name.len() {
        return text.len().max(name.len());
    }
    let mut row: Vec<usize> = (0..=text.len()).collect();
    for (at, letter) in (1..).zip(name.bytes()) {
        let (mut left, mut corner) = (at, at - 1);
        for (above, other) in row.iter_mut().skip(1).zip(text.bytes()) {
            left = (corner + usize::from(letter != other)).min(left + 1).min(*above + 1);
            corner = std::mem::replace(above, left);
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::nearest;
    use crate::model::{AuthorKind, Kind, Significance, State, Tier};

    #[test]
    fn a_name_of_a_closed_set_is_read_in_any_letters() {
        for text in ["working", "Working", "WORKING"] {
            assert_eq!(text.parse::<Tier>().unwrap(), Tier::Working);
            assert!(text.parse::<Significance>().is_err());
        }
        assert_eq!("Core".parse::<Significance>().unwrap(), Significance::Core);
        assert_eq!("BOT".parse::<AuthorKind>().unwrap(), AuthorKind::Bot);
        assert_eq!("Live".parse::<State>().unwrap(), State::Live);
        assert_eq!("Tool_Result".parse::<Kind>().unwrap(), Kind::ToolResult);
        assert_eq!(Tier::Working.to_string(), "working");
    }

    #[test]
    fn a_slip_leads_to_the_name_that_was_meant() {
        let tiers = ["working", "episodic", "semantic", "procedural"];
        for (text, meant) in [
            ("workng", "working"),
            ("EPISODICAL", "episodic"),
            ("sematnic", "semantic"),
            ("procedura", "procedural"),
        ] {
            assert_eq!(nearest(&tiers, text), Some(meant));
        }
        for text in ["", "poem", "eternal", "a working day is long enough"] {
            assert_eq!(nearest(&tiers, text), None);
        }
        assert_eq!(nearest(&["on", "off"], "of"), Some("off"));
    }
}
