//! The small closed sets: kind, tier, significance, author kind, state, supersede mode.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::limits::TAG_BYTES_MAX;
use crate::model::name::check_text;

/// A closed set whose members have a name in JSON and a code on disk.
macro_rules! closed_set {
    ($(#[$doc:meta])* $name:ident, $field:literal, $why:literal, { $($(#[$vdoc:meta])* $variant:ident = $code:literal, $text:literal;)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub enum $name {
            $($(#[$vdoc])* $variant,)+
        }

        impl $name {
            /// Every member, in order.
            pub const ALL: &[$name] = &[$($name::$variant,)+];

            /// Its name in JSON and on the command line.
            pub const fn as_str(self) -> &'static str {
                match self { $($name::$variant => $text,)+ }
            }

            /// Its code on disk.
            pub const fn code(self) -> u8 {
                match self { $($name::$variant => $code,)+ }
            }

            /// The member with a code from disk.
            pub const fn from_code(code: u8) -> Option<Self> {
                match code { $($code => Some($name::$variant),)+ _ => None }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl FromStr for $name {
            type Err = Error;

            fn from_str(text: &str) -> Result<Self> {
                match text {
                    $($text => Ok($name::$variant),)+
                    _ => Err(Error::invalid($field, $why, text)),
                }
            }
        }

        impl TryFrom<String> for $name {
            type Error = Error;

            fn try_from(text: String) -> Result<Self> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(member: $name) -> String {
                member.as_str().to_owned()
            }
        }
    };
}

closed_set!(
    /// How long a memory is meant to live: the order is that of durability.
    #[derive(Default)]
    Tier, "tier", "must be working, episodic, semantic or procedural", {
    /// Short-term: 72 hours by default.
    Working = 0, "working";
    /// Short-term: 30 days by default.
    Episodic = 1, "episodic";
    /// Durable facts.
    #[default]
    Semantic = 2, "semantic";
    /// Durable ways of working.
    Procedural = 3, "procedural";
});

impl Tier {
    /// Whether rows of this tier expire by default.
    pub const fn is_short_term(self) -> bool {
        matches!(self, Tier::Working | Tier::Episodic)
    }
}

closed_set!(
    /// How much a memory matters, in ascending order.
    #[derive(Default)]
    Significance, "significance", "must be routine, noteworthy, important or core", {
    /// Nothing special.
    #[default]
    Routine = 0, "routine";
    /// Worth a note.
    Noteworthy = 1, "noteworthy";
    /// Important.
    Important = 2, "important";
    /// Part of who the user or the project is.
    Core = 3, "core";
});

closed_set!(
    /// Who wrote a message.
    AuthorKind, "author.kind", "must be human or bot", {
    /// A person.
    Human = 0, "human";
    /// A program.
    Bot = 1, "bot";
});

closed_set!(
    /// Why a memory was superseded.
    #[derive(Default)]
    SupersedeMode, "supersede_mode", "must be replaced, duplicate, correction or aggregate", {
    /// The world changed at an instant.
    #[default]
    Replaced = 0, "replaced";
    /// It said the same.
    Duplicate = 1, "duplicate";
    /// It was wrong.
    Correction = 2, "correction";
    /// It became part of an aggregate.
    Aggregate = 3, "aggregate";
});

closed_set!(
    /// Who set the end of a memory's life. The tier's moves with each use; a caller's stays until a write names
    /// another.
    #[derive(Default)]
    ExpiresBy, "expires_by", "must be tier or caller", {
    /// The default life of its tier.
    #[default]
    Tier = 0, "tier";
    /// A caller: an instant, a duration, or never.
    Caller = 1, "caller";
});

closed_set!(
    /// State of an id at an instant: a label; visibility is decided by the instants of a memory alone.
    State, "state", "must be live, superseded, expired, limbo or tombstoned", {
    /// In the main table, not superseded, not expired.
    Live = 0, "live";
    /// Replaced by another row, kept, restorable.
    Superseded = 1, "superseded";
    /// Past its expiry, not yet purged.
    Expired = 2, "expired";
    /// Removed by maintenance, kept until the undo horizon.
    Limbo = 3, "limbo";
    /// Only a tombstone is left.
    Tombstoned = 4, "tombstoned";
});

/// What sort of memory it is.
///
/// ```
/// use oubliette::Kind;
/// assert_eq!("custom:gossip".parse::<Kind>()?.to_string(), "custom:gossip");
/// assert!("gossip".parse::<Kind>().is_err());
/// # Ok::<(), oubliette::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Kind {
    /// A message of a person or another program.
    Message,
    /// A message of the assistant.
    AssistantMessage,
    /// What a tool answered.
    ToolResult,
    /// A line about someone or something, as a collector writes it.
    Profile,
    /// Something that happened.
    Event,
    /// A fact.
    #[default]
    Knowledge,
    /// A habit.
    Behavior,
    /// An ability.
    Skill,
    /// A tool.
    Tool,
    /// About the agent itself.
    SelfFact,
    /// An episode.
    Episode,
    /// A whole profile at an instant.
    Snapshot,
    /// A summary with its sources.
    Summary,
    /// Many repeats of one message.
    Aggregate,
    /// Summary of a session (level 1).
    ConsolidatedSummary,
    /// Summary of summaries (level 2).
    ChapterSummary,
    /// Instructions of the system.
    System,
    /// Instructions of the developer.
    Developer,
    /// Instructions of the administrator.
    Admin,
    /// A search query of the past.
    SearchHistory,
    /// A kind of the caller's own: 1 to 128 bytes.
    Custom(String),
}

/// Name and code of every kind that has no name of its own. A static: a const of a type with a destructor is
/// built and dropped wherever it is named.
static KINDS: [(Kind, &str); 20] = [
    (Kind::Message, "message"),
    (Kind::AssistantMessage, "assistant_message"),
    (Kind::ToolResult, "tool_result"),
    (Kind::Profile, "profile"),
    (Kind::Event, "event"),
    (Kind::Knowledge, "knowledge"),
    (Kind::Behavior, "behavior"),
    (Kind::Skill, "skill"),
    (Kind::Tool, "tool"),
    (Kind::SelfFact, "self"),
    (Kind::Episode, "episode"),
    (Kind::Snapshot, "snapshot"),
    (Kind::Summary, "summary"),
    (Kind::Aggregate, "aggregate"),
    (Kind::ConsolidatedSummary, "consolidated_summary"),
    (Kind::ChapterSummary, "chapter_summary"),
    (Kind::System, "system"),
    (Kind::Developer, "developer"),
    (Kind::Admin, "admin"),
    (Kind::SearchHistory, "search_history"),
];

impl Kind {
    /// Code on disk of a custom kind, whose name stands in the record.
    pub const CUSTOM_CODE: u8 = 255;

    /// Its code on disk: the position in the list of kinds, 255 for a custom one.
    pub fn code(&self) -> u8 {
        KINDS
            .iter()
            .position(|(kind, _)| kind == self)
            .and_then(|at| u8::try_from(at).ok())
            .unwrap_or(Kind::CUSTOM_CODE)
    }

    /// The kind with a code from disk; `custom` is the name that stands in the record.
    pub fn from_code(code: u8, custom: Option<&str>) -> Option<Self> {
        match (KINDS.get(usize::from(code)), custom) {
            (Some((kind, _)), _) => Some(kind.clone()),
            (None, Some(name)) if code == Kind::CUSTOM_CODE => Some(Kind::Custom(name.to_owned())),
            _ => None,
        }
    }

    /// The name of a custom one.
    pub fn custom_name(&self) -> Option<&str> {
        match self {
            Kind::Custom(name) => Some(name),
            _ => None,
        }
    }

    /// Whether rules for messages may apply.
    pub fn is_message(&self) -> bool {
        matches!(self, Kind::Message | Kind::AssistantMessage | Kind::ToolResult)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self, KINDS.get(usize::from(self.code()))) {
            (Kind::Custom(name), _) => write!(f, "custom:{name}"),
            (_, Some((_, name))) => f.write_str(name),
            (_, None) => f.write_str("unknown"),
        }
    }
}

impl FromStr for Kind {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        if let Some(name) = text.strip_prefix("custom:") {
            check_text("kind", name, TAG_BYTES_MAX)?;
            return Ok(Kind::Custom(name.to_owned()));
        }
        let known = KINDS.iter().find(|(_, name)| *name == text).map(|(kind, _)| kind.clone());
        known.ok_or_else(|| {
            let names: Vec<&str> = KINDS.iter().map(|(_, name)| *name).collect();
            Error::invalid("kind", format!("must be {} or custom:NAME", names.join(", ")), text)
        })
    }
}

impl TryFrom<String> for Kind {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

impl From<Kind> for String {
    fn from(kind: Kind) -> String {
        kind.to_string()
    }
}
