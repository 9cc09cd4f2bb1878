//! What a command of another process works on: the handle that is open here, and the options that it was opened with.

use std::path::PathBuf;

use oubliette::memory::Actor;
use oubliette::policy::Policy;
use oubliette::{Database, Durability, Error, Result, Time};

use crate::caller::Caller;
use crate::embedder;

/// What a command asks of an opening beside its access.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Extra {
    /// Dimensions of the vectors.
    pub(crate) dimensions: Option<usize>,
    /// Whether a language model writes, and not a person.
    pub(crate) is_tool: bool,
    /// Whether searches are noted where the query does not say.
    pub(crate) track: bool,
}

impl Extra {
    /// Who the journal says it was.
    pub(crate) fn actor(self) -> Actor {
        if self.is_tool { Actor::Tool } else { Actor::Caller }
    }
}

/// Options that belong to an opening, as they were named.
#[derive(Clone, Debug, Default)]
pub(crate) struct Terms {
    pub(crate) now: Option<Time>,
    pub(crate) policy: Option<Policy>,
    pub(crate) instructions: Option<PathBuf>,
    pub(crate) durability: Option<Durability>,
    pub(crate) embedder: Option<String>,
}

/// The handle that is open, and its options.
#[derive(Debug)]
pub(crate) struct Host {
    database: Database,
    terms: Terms,
}

impl Host {
    pub(super) fn new(database: Database, terms: &Terms) -> Self {
        Host { database, terms: terms.clone() }
    }

    /// Whether another file has the name of the one that is open here. Where that can't be found out, the file refuses writes itself.
    pub(super) fn is_replaced(&self) -> bool {
        self.database.is_replaced().unwrap_or(false)
    }

    /// The present instant, if it was named.
    pub(crate) fn now(&self) -> Option<Time> {
        self.terms.now
    }

    /// A handle for a command that names these options.
    ///
    /// # Errors
    /// `Invalid` naming an option that is another here: the handle has one of each.
    pub(crate) fn open(
        &self,
        terms: &Terms,
        caller: &Caller,
        read_only: bool,
        extra: Extra,
    ) -> Result<Database> {
        self.check(terms, caller)?;
        if let Some(asked) = extra.dimensions {
            match self.database.dimensions()? {
                Some(found) if found == asked => {}
                Some(found) => {
                    return Err(Error::invalid(
                        "dimensions",
                        format!("must be {found}, as in the file"),
                        asked,
                    ));
                }
                None => return Err(refused("--dim", None, asked)),
            }
        }
        let database = self.database.with_actor(extra.actor()).with_track(extra.track);
        Ok(if read_only { database.reader() } else { database })
    }

    fn check(&self, asked: &Terms, caller: &Caller) -> Result<()> {
        let ours = &self.terms;
        if asked.now != ours.now {
            return Err(refused("--now", ours.now.map(|now| now.to_string()), told(asked.now)));
        }
        if asked.policy != ours.policy {
            return Err(refused(
                "--policy",
                ours.policy.as_ref().map(|_| "another".to_owned()),
                given(&asked.policy),
            ));
        }
        // A folder that is gone has no paths; they are compared as they were typed then.
        let whole = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone());
        let instructions =
            |terms: &Terms| terms.instructions.as_ref().map(whole).map(|path| path.display().to_string());
        if instructions(asked) != instructions(ours) {
            return Err(refused("--instructions", instructions(ours), told(instructions(asked))));
        }
        let durability = ours.durability.unwrap_or_default();
        if let Some(asked) = asked.durability
            && asked != durability
        {
            return Err(refused("--durability", Some(durability.as_str().to_owned()), asked.as_str()));
        }
        match &asked.embedder {
            Some(asked) if !self.embeds_by(asked, caller)? => {
                Err(refused("--embedder", ours.embedder.clone(), asked))
            }
            _ => Ok(()),
        }
    }

    /// Whether the embedder of the handle is the one of this name.
    fn embeds_by(&self, name: &str, caller: &Caller) -> Result<bool> {
        match &self.terms.embedder {
            Some(ours) => Ok(ours == name),
            None => embedder::is_attached(&self.database, name, caller),
        }
    }
}

fn told(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "nothing".to_owned(), |value| value.to_string())
}

fn given(policy: &Option<Policy>) -> &'static str {
    if policy.is_some() { "a policy" } else { "nothing" }
}

fn refused(option: &str, ours: Option<String>, asked: impl ToString) -> Error {
    let ours = ours.unwrap_or_else(|| "left out".to_owned());
    let why =
        format!("must be as in the process that has the database open ({ours}), or that process must end");
    Error::invalid(option, why, asked.to_string())
}
