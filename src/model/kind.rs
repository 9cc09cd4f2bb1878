//! The small closed sets: kind, tier, significance, author kind, state, supersede mode.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::limits::TAG_BYTES_MAX;
use crate::model::closed::closed_set;
use crate::model::name::check_text;

closed_set! {
    /// How long a memory is meant to live. The order is that of durability.
    #[derive(Default)]
    pub Tier "tier" {
        /// Short-term: 72 hours by default.
        Working = 0, "working";
        /// Short-term: 30 days by default.
        Episodic = 1, "episodic";
        /// Durable facts.
        #[default]
        Semantic = 2, "semantic";
        /// Durable ways of working.
        Procedural = 3, "procedural";
    }
}

impl Tier {
    /// Whether memories of this tier expire by default.
    ///
    /// ```
    /// use oubliette::memory::Tier;
    /// assert!(Tier::Working.is_short_term());
    /// assert!(!Tier::Semantic.is_short_term());
    /// ```
    pub const fn is_short_term(self) -> bool {
        matches!(self, Tier::Working | Tier::Episodic)
    }
}

closed_set! {
    /// How much a memory matters, in ascending order.
    #[derive(Default)]
    pub Significance "significance" {
        /// Nothing special.
        #[default]
        Routine = 0, "routine";
        /// Worth a note.
        Noteworthy = 1, "noteworthy";
        /// Important.
        Important = 2, "important";
        /// Part of what makes up the user or the project.
        Core = 3, "core";
    }
}

closed_set! {
    /// Who wrote a message.
    pub AuthorKind "author.kind" {
        /// A person.
        Human = 0, "human";
        /// A program.
        Bot = 1, "bot";
    }
}

closed_set! {
    /// Why a memory was superseded.
    #[derive(Default)]
    pub SupersedeMode "supersede_mode" {
        /// The world changed at an instant.
        #[default]
        Replaced = 0, "replaced";
        /// The memory said the same.
        Duplicate = 1, "duplicate";
        /// The memory was wrong.
        Correction = 2, "correction";
        /// The memory became part of an aggregate.
        Aggregate = 3, "aggregate";
    }
}

closed_set! {
    /// Who set the end of a memory's life. An end that the tier set moves with each use. An end that a caller set
    /// stays until a write names another.
    #[derive(Default)]
    pub ExpiresBy "expires_by" {
        /// The tier, by its default lifetime.
        #[default]
        Tier = 0, "tier";
        /// A caller: an instant, a duration, or never.
        Caller = 1, "caller";
    }
}

closed_set! {
    /// The state of an id at an instant. The state is a label: only the instants of a memory decide its
    /// visibility.
    pub State "state" {
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
    }
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $variant:ident = $code:literal, $text:literal;)+) => {
        /// The kind of a memory.
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
            $($(#[$doc])* $variant,)+
            /// A kind of the caller's own: 1 to 128 bytes.
            Custom(String),
        }

        impl Kind {
            /// The names of the built-in kinds, in the order of their codes.
            const NAMES: &[&str] = &[$($text,)+];

            /// The code of a custom kind on disk. The name of the kind stands in the record.
            pub(crate) const CUSTOM_CODE: u8 = 255;

            /// The code on disk, 255 for a custom kind.
            pub(crate) const fn code(&self) -> u8 {
                match self { $(Kind::$variant => $code,)+ Kind::Custom(_) => Kind::CUSTOM_CODE }
            }

            /// Of a kind with this code that consolidates others: the level, 1 for a session and 2 for a chapter.
            pub(crate) fn level_of(code: u8) -> Option<u8> {
                let levels = [(Kind::ConsolidatedSummary.code(), 1), (Kind::ChapterSummary.code(), 2)];
                levels.into_iter().find(|(of, _)| *of == code).map(|(_, level)| level)
            }

            /// The kind with a code from disk; `custom` is the name that stands in the record.
            pub(crate) fn from_code(code: u8, custom: Option<&str>) -> Option<Self> {
                match code {
                    $($code => Some(Kind::$variant),)+
                    Kind::CUSTOM_CODE => custom.map(|name| Kind::Custom(name.to_owned())),
                    _ => None,
                }
            }

            /// The built-in kind with this name, in any letters.
            fn from_name(name: &str) -> Option<Self> {
                $(if name.eq_ignore_ascii_case($text) { return Some(Kind::$variant); })+
                None
            }
        }
    };
}

kinds! {
    /// A message of a person or another program.
    Message = 0, "message";
    /// A message of the assistant.
    AssistantMessage = 1, "assistant_message";
    /// The answer of a tool.
    ToolResult = 2, "tool_result";
    /// A line about a person or a thing, as a collector writes it.
    Profile = 3, "profile";
    /// An event.
    Event = 4, "event";
    /// A fact.
    #[default]
    Knowledge = 5, "knowledge";
    /// A habit.
    Behavior = 6, "behavior";
    /// An ability.
    Skill = 7, "skill";
    /// A tool.
    Tool = 8, "tool";
    /// A fact about the agent itself.
    SelfFact = 9, "self";
    /// An episode.
    Episode = 10, "episode";
    /// A whole profile at an instant.
    Snapshot = 11, "snapshot";
    /// A summary with its sources.
    Summary = 12, "summary";
    /// Many repeats of one message.
    Aggregate = 13, "aggregate";
    /// Summary of a session (level 1).
    ConsolidatedSummary = 14, "consolidated_summary";
    /// Summary of summaries (level 2).
    ChapterSummary = 15, "chapter_summary";
    /// Instructions of the system.
    System = 16, "system";
    /// Instructions of the developer.
    Developer = 17, "developer";
    /// Instructions of the administrator.
    Admin = 18, "admin";
    /// A past search query.
    SearchHistory = 19, "search_history";
}

impl Kind {
    /// The name of a custom kind.
    ///
    /// ```
    /// use oubliette::Kind;
    /// assert_eq!("custom:gossip".parse::<Kind>()?.custom_name(), Some("gossip"));
    /// assert_eq!(Kind::Knowledge.custom_name(), None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn custom_name(&self) -> Option<&str> {
        match self {
            Kind::Custom(name) => Some(name),
            _ => None,
        }
    }

    /// Whether rules for messages may apply.
    ///
    /// ```
    /// use oubliette::Kind;
    /// assert!(Kind::ToolResult.is_message());
    /// assert!(!Kind::Knowledge.is_message());
    /// ```
    pub fn is_message(&self) -> bool {
        matches!(self, Kind::Message | Kind::AssistantMessage | Kind::ToolResult)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Custom(name) => write!(f, "custom:{name}"),
            kind => f.write_str(Kind::NAMES.get(usize::from(kind.code())).copied().unwrap_or_default()),
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
        Kind::from_name(text).ok_or_else(|| {
            Error::invalid("kind", format!("must be {} or custom:NAME", Kind::NAMES.join(", ")), text)
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
