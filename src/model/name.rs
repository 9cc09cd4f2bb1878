//! Names and their bounds: namespace, partition, scope, key.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::limits::{KEY_BYTES_MAX, NAME_BYTES_MAX};
use crate::model::MemoryId;

/// The border between tenants: no read, group or plan crosses it.
///
/// A name has 1 to 256 bytes after trimming, no NUL, and is not `*`.
///
/// ```
/// use oubliette::NamespaceName;
/// assert_eq!(" team-a ".parse::<NamespaceName>()?.as_str(), "team-a");
/// assert!("*".parse::<NamespaceName>().is_err());
/// # Ok::<(), oubliette::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct NamespaceName(String);

impl NamespaceName {
    /// The name.
    ///
    /// ```
    /// use oubliette::NamespaceName;
    /// assert_eq!(NamespaceName::default().as_str(), "default");
    /// ```
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for NamespaceName {
    /// The namespace `default`.
    fn default() -> Self {
        NamespaceName("default".to_owned())
    }
}

impl FromStr for NamespaceName {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let name = check_name("namespace", text)?;
        if name == "*" {
            return Err(Error::invalid("namespace", "must not be *", name));
        }
        Ok(NamespaceName(name.to_owned()))
    }
}

impl TryFrom<String> for NamespaceName {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

impl TryFrom<&str> for NamespaceName {
    type Error = Error;

    fn try_from(text: &str) -> Result<Self> {
        text.parse()
    }
}

impl TryFrom<&String> for NamespaceName {
    type Error = Error;

    fn try_from(text: &String) -> Result<Self> {
        text.parse()
    }
}

impl From<&NamespaceName> for NamespaceName {
    fn from(name: &NamespaceName) -> Self {
        name.clone()
    }
}

impl From<NamespaceName> for String {
    fn from(name: NamespaceName) -> String {
        name.0
    }
}

impl fmt::Display for NamespaceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a caller names a memory by: an id, or a key. A name in the form of an id means the memory with this id where there
/// is one, and else the key.
///
/// ```
/// use oubliette::{MemoryId, Name};
/// assert_eq!(Name::from("ann:home").as_str(), "ann:home");
/// let id: MemoryId = "019b7e26-5500-7000-8000-000000000000".parse()?;
/// assert_eq!(Name::from(id).as_str(), id.to_string());
/// # Ok::<(), oubliette::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(String);

impl Name {
    /// The id or the key.
    ///
    /// ```
    /// use oubliette::Name;
    /// assert_eq!(Name::from("ann:home").as_str(), "ann:home");
    /// ```
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The id or the key, as a text of its own.
    ///
    /// ```
    /// use oubliette::Name;
    /// assert_eq!(Name::from("ann:home").into_string(), "ann:home");
    /// ```
    pub fn into_string(self) -> String {
        self.0
    }
}

impl From<&str> for Name {
    fn from(name: &str) -> Self {
        Name(name.to_owned())
    }
}

impl From<String> for Name {
    fn from(name: String) -> Self {
        Name(name)
    }
}

impl From<&String> for Name {
    fn from(name: &String) -> Self {
        Name(name.clone())
    }
}

impl From<MemoryId> for Name {
    fn from(id: MemoryId) -> Self {
        Name(id.to_string())
    }
}

impl From<&Name> for Name {
    fn from(name: &Name) -> Self {
        name.clone()
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The place of a memory in a namespace: the shared part, or the part of one agent. Every memory is in
/// exactly one partition. In JSON it is the name of the agent, or null.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "Option<String>", into = "Option<String>")]
pub enum Partition {
    /// The shared part: memories that a user would search for later.
    #[default]
    Shared,
    /// The part of one agent: internal or operational data of one component. The name has 1 to 256 bytes.
    Agent(AgentName),
}

/// A checked name of an agent. [`Partition::agent`] makes one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AgentName(String);

impl AgentName {
    /// The name.
    ///
    /// ```
    /// use oubliette::memory::Partition;
    /// let Partition::Agent(name) = Partition::agent(" crawler ")? else { unreachable!() };
    /// assert_eq!(name.as_str(), "crawler");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Partition {
    /// The partition of the agent `name`: 1 to 256 bytes after trimming, no NUL.
    ///
    /// ```
    /// use oubliette::memory::Partition;
    /// assert_eq!(Partition::agent("crawler")?.to_string(), "crawler");
    /// assert!(Partition::agent("").is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn agent(name: &str) -> Result<Self> {
        Ok(Partition::Agent(AgentName(check_name("agent", name)?.to_owned())))
    }

    /// The partition of an optional agent; none stands for the shared partition.
    ///
    /// ```
    /// use oubliette::memory::Partition;
    /// assert_eq!(Partition::of(None)?, Partition::Shared);
    /// assert_eq!(Partition::of(Some("crawler"))?, Partition::agent("crawler")?);
    /// assert!(Partition::of(Some("")).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn of(agent: Option<&str>) -> Result<Self> {
        agent.map_or(Ok(Partition::Shared), Partition::agent)
    }

    /// The name of the agent; none for the shared part.
    ///
    /// ```
    /// use oubliette::memory::Partition;
    /// assert_eq!(Partition::agent("crawler")?.agent_name(), Some("crawler"));
    /// assert_eq!(Partition::Shared.agent_name(), None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn agent_name(&self) -> Option<&str> {
        match self {
            Partition::Shared => None,
            Partition::Agent(name) => Some(&name.0),
        }
    }
}

impl TryFrom<Option<String>> for Partition {
    type Error = Error;

    fn try_from(agent: Option<String>) -> Result<Self> {
        Partition::of(agent.as_deref())
    }
}

impl From<Partition> for Option<String> {
    fn from(partition: Partition) -> Self {
        partition.agent_name().map(str::to_owned)
    }
}

impl fmt::Display for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.agent_name().unwrap_or("shared"))
    }
}

/// Which partitions a read looks at.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Scope {
    /// The shared part only.
    #[default]
    Shared,
    /// One agent's part only.
    Agent(AgentName),
    /// Every partition of the namespace.
    Any,
}

impl Scope {
    /// The scope of agent `name`.
    ///
    /// ```
    /// use oubliette::{PageRequest, Scope};
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// let request = PageRequest { scope: Scope::agent("crawler")?, ..PageRequest::default() };
    /// assert!(team.list(&request)?.items.is_empty());
    /// assert!(Scope::agent("").is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn agent(name: &str) -> Result<Self> {
        Ok(Scope::Agent(AgentName(check_name("agent", name)?.to_owned())))
    }

    /// The one partition of the scope; none for [`Scope::Any`].
    ///
    /// ```
    /// use oubliette::Scope;
    /// use oubliette::memory::Partition;
    /// assert_eq!(Scope::Shared.partition(), Some(Partition::Shared));
    /// assert_eq!(Scope::Any.partition(), None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn partition(&self) -> Option<Partition> {
        match self {
            Scope::Shared => Some(Partition::Shared),
            Scope::Agent(name) => Some(Partition::Agent(name.clone())),
            Scope::Any => None,
        }
    }
}

fn check_name<'a>(field: &str, text: &'a str) -> Result<&'a str> {
    let name = text.trim();
    check_text(field, name, NAME_BYTES_MAX)?;
    Ok(name)
}

/// Checks that a text is not empty, has at most `max` bytes, and no NUL.
pub fn check_text(field: &str, text: &str, max: usize) -> Result<()> {
    if text.is_empty() {
        return Err(Error::invalid(field, format!("must be 1 to {max} bytes"), "an empty text"));
    }
    if text.len() > max {
        return Err(Error::invalid(
            field,
            format!("must be 1 to {max} bytes"),
            format!("{} bytes", text.len()),
        ));
    }
    if text.contains('\0') {
        return Err(Error::invalid(field, "must not contain NUL", text.escape_default()));
    }
    Ok(())
}

/// Checks a caller's key: 1 to 512 bytes, no NUL.
pub fn check_key(key: &str) -> Result<()> {
    check_text("key", key, KEY_BYTES_MAX)
}
