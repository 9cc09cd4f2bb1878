//! Forgetting on request: at once, or as a plan that says what would go.

use std::collections::BTreeSet;

use crate::engine::namespace::Namespace;
use crate::engine::queue::{ONE, Weight, weight_of};
use crate::engine::session::Session;
use crate::error::{Error, Result, sound};
use crate::ingest::ForgetNames;
use crate::limits::FORGET_SAMPLE_MAX;
use crate::model::{Filter, Forgotten, MemoryId, Name, NamespaceName, Scope, State};
use crate::store::{NsId, Rows};

/// What to forget.
#[derive(Clone, Debug)]
pub enum Forget {
    /// Memories by id or key.
    Names {
        /// Ids or keys.
        names: Vec<String>,
        /// Where. What a name leads to elsewhere stays, and counts as missing.
        scope: Scope,
        /// Leave the superseded versions of a key.
        keep_history: bool,
        /// With an id, erase rows that were merged into it as duplicates as well; with the memory of an aggregate, by id or
        /// key, the first message.
        also_merged: bool,
        /// With an id, erase the earlier and the later versions and every other row that a key of it leads to as well. With a key,
        /// erase what others have put in the place of its texts as well.
        with_history: bool,
    },
    /// Every write that brought a tag. A tag `import:<source>:<date>` takes back one import: a memory whose key others have said as
    /// well, before it or in another import, stays and loses only the tag.
    Tag {
        /// The tag.
        tag: String,
        /// Where.
        scope: Scope,
        /// Leave protected rows.
        keep_pinned: bool,
    },
    /// Every memory that matches: visible, superseded, expired or in limbo.
    Filter {
        /// The condition.
        filter: Filter,
        /// Where.
        scope: Scope,
        /// Only memories that a search can see now.
        visible_only: bool,
        /// Whether a filter without any condition, which matches everything, is meant.
        all: bool,
    },
}

impl Forget {
    /// Memories by key with all that the key has said, or by id. The earlier and the later versions of an id stay, unless
    /// [`Forget::with_history`] takes them too. What others have put in the place of what a key has said stays.
    ///
    /// ```
    /// use oubliette::{Draft, Forget};
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// team.add(Draft::new("Ann lives in Ghent").key("home"))?;
    /// team.add(Draft::new("Ann works in Bruges").key("work"))?;
    /// assert_eq!(team.forget(Forget::names(["home", "work"]))?.forgotten, 2);
    /// assert!(team.forget(Forget::names(Vec::<String>::new())).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn names<S: Into<Name>>(names: impl IntoIterator<Item = S>) -> Self {
        let names = names.into_iter().map(|name| name.into().into_string()).collect();
        Forget::Names {
            names,
            scope: Scope::Any,
            keep_history: false,
            also_merged: true,
            with_history: false,
        }
    }

    /// With an id, the earlier and the later versions and every other row that a key of it leads to go as well; with a key, what
    /// others have put in the place of its texts.
    ///
    /// ```
    /// use oubliette::{Draft, Forget};
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// let ghent = team.add("Ann lives in Ghent")?.id;
    /// let bruges = team.supersede(ghent, "Ann lives in Bruges")?.id;
    /// team.forget(Forget::names([bruges]).with_history())?;
    /// assert_eq!(team.text(ghent)?, None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn with_history(mut self) -> Self {
        if let Forget::Names { with_history, .. } = &mut self {
            *with_history = true;
        }
        self
    }

    /// Every write that brought `tag`, in every partition. A repeated message that an aggregate counts brings no tag: the
    /// aggregate stays, and the answer names it as derived.
    ///
    /// ```
    /// use oubliette::{Draft, Forget};
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// team.add(Draft::new("Ann lives in Ghent").tag("people"))?;
    /// assert_eq!(team.forget(Forget::tag("people"))?.forgotten, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn tag(tag: impl Into<String>) -> Self {
        Forget::Tag { tag: tag.into(), scope: Scope::Any, keep_pinned: false }
    }

    /// Every memory of `scope` that matches, in any state. Of a memory of several writers only those go that match by their own
    /// key, tags, categories or entities, if any does. A filter without any condition is refused.
    ///
    /// ```
    /// use oubliette::{Draft, Filter, Forget, Scope};
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// team.add(Draft::new("It rains").importance(0.1))?;
    /// let dull = Filter::parse(r#"{"importance": {"$lt": 0.5}}"#)?;
    /// assert_eq!(team.forget(Forget::filter(dull, Scope::Any))?.forgotten, 1);
    /// assert!(team.forget(Forget::filter(Filter::parse("{}")?, Scope::Any)).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn filter(filter: Filter, scope: Scope) -> Self {
        Forget::Filter { filter, scope, visible_only: false, all: false }
    }

    /// The names of records that are given.
    fn asked(&self) -> Vec<String> {
        match self {
            Forget::Names { names, .. } => names.clone(),
            Forget::Tag { .. } | Forget::Filter { .. } => Vec::new(),
        }
    }
}

/// What a forget would do.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ForgetPlan {
    /// Live memories that would go.
    pub live: u64,
    /// Superseded ones.
    pub superseded: u64,
    /// Expired ones.
    pub expired: u64,
    /// Those that maintenance removed and that wait in limbo.
    pub limbo: u64,
    /// Those that are too damaged to tell.
    pub damaged: u64,
    /// Texts that would go from memories that stay for other writers. Each has a tombstone of its own.
    pub texts: u64,
    /// The first that would go, at most 20, without the damaged ones.
    pub sample: Vec<Doomed>,
    /// What the forget would answer. Where a text goes and its memory stays, the id of the tombstone is a new one each time.
    pub answer: Forgotten,
}

impl ForgetPlan {
    /// Memories and versions that would go, whatever their state, one for each tombstone that the forget would leave.
    ///
    /// ```
    /// use oubliette::{Draft, Forget};
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// team.add(Draft::new("Ann lives in Ghent").tag("people"))?;
    /// assert_eq!(team.forget_plan(Forget::tag("people"))?.memories(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn memories(&self) -> u64 {
        self.live + self.superseded + self.expired + self.limbo + self.damaged + self.texts
    }
}

/// A memory that a forget would take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Doomed {
    /// Its id.
    pub id: MemoryId,
    /// Its state now.
    pub state: State,
    /// The keys that it answers to, sorted.
    pub keys: Vec<String>,
}

/// A forget as a unit of work. It may run more than once, each time in a fresh transaction.
type Forgetting = Box<dyn FnMut(&mut Session<'_, '_, '_>) -> Result<Forgotten> + Send>;

impl<T: Into<Name>> From<T> for Forget {
    /// One memory by key with all its versions, or by id.
    fn from(name: T) -> Self {
        Forget::names([name])
    }
}

impl Namespace {
    /// Forgets at once: rows, vectors, index entries; only tombstones stay. Bytes that a deletion leaves
    /// in free pages of the file go with [`Database::compact`](crate::Database::compact).
    ///
    /// One id or key is given as it is, several through [`Forget::names`]. [`Forget::tag`] and [`Forget::filter`] name
    /// memories by what they have.
    ///
    /// ```
    /// use oubliette::{Database, Draft, Forget};
    /// # let folder = tempfile::tempdir()?;
    /// # let team = Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// team.add(Draft::new("Ann lives in Ghent").key("ann:home").tag("people"))?;
    /// assert_eq!(team.forget("bob:home")?.missing(), 1);
    /// assert_eq!(team.forget(Forget::names(["ann:home", "bob:home"]))?.forgotten, 1);
    /// assert_eq!(team.forget(Forget::tag("people"))?.forgotten, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Invalid` for an empty list of names, and for a filter without any condition where `all` is not set.
    pub fn forget(&self, what: impl Into<Forget>) -> Result<Forgotten> {
        let what = what.into();
        let asked = what.asked();
        let done = self.forgetting(what).and_then(|(work, weight)| self.db.submit(weight, work));
        // Nothing was ever remembered there.
        done.or_else(unless_known(|| Forgotten::none_of(&asked)))
    }

    /// What [`Namespace::forget`] would do, and takes nothing away: the forget runs in a transaction that is given up. As any
    /// write it waits for others, and needs a handle that may write.
    ///
    /// ```
    /// # use oubliette::{Database, Draft};
    /// # let folder = tempfile::tempdir()?;
    /// # let team = Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// team.add(Draft::new("Ann prefers tea").key("drink"))?;
    /// team.add(Draft::new("Ann prefers coffee").key("drink"))?;
    /// let plan = team.forget_plan("drink")?;
    /// assert_eq!((plan.live, plan.superseded), (1, 1));
    /// assert_eq!(team.text(plan.sample[0].id)?.as_deref(), Some("Ann prefers tea"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Those of `forget`.
    pub fn forget_plan(&self, what: impl Into<Forget>) -> Result<ForgetPlan> {
        let what = what.into();
        let asked = what.asked();
        let planned = self.forgetting(what).and_then(|(mut work, _)| {
            self.db.inner.rehearse(|session| {
                let answer = work(session)?;
                plan_of(session, &self.name, answer)
            })
        });
        planned.or_else(unless_known(|| ForgetPlan {
            answer: Forgotten::none_of(&asked),
            ..ForgetPlan::default()
        }))
    }

    fn forgetting(&self, what: Forget) -> Result<(Forgetting, Weight)> {
        let ns = self.name.clone();
        Ok(match what {
            Forget::Names { mut names, scope, keep_history, also_merged, with_history } => {
                // A name given twice is found once, and not missing.
                let mut given = BTreeSet::new();
                names.retain(|name| given.insert(name.clone()));
                if names.is_empty() {
                    return Err(Error::invalid("names", "must name at least one memory", "none"));
                }
                let weight = weight_of(names.len());
                let work: Forgetting = Box::new(move |session| {
                    let mut writer = session.known_writer(&ns)?;
                    let Some(part) = writer.part_of(&scope)? else {
                        return Ok(Forgotten::none_of(&names));
                    };
                    writer.forget_names(&names, ForgetNames { part, keep_history, also_merged, with_history })
                });
                (work, weight)
            }
            Forget::Tag { tag, scope, keep_pinned } => {
                let work: Forgetting = Box::new(move |session| {
                    let mut writer = session.known_writer(&ns)?;
                    let Some(part) = writer.part_of(&scope)? else { return Ok(Forgotten::default()) };
                    writer.forget_tag(&tag, part, keep_pinned)
                });
                (work, ONE)
            }
            Forget::Filter { filter, scope, visible_only, all } => {
                if filter.holds_always() && !all {
                    return Err(Error::invalid(
                        "filter",
                        "must have a condition: it matches everything",
                        &filter,
                    ));
                }
                let (found, undecided) = self.ask(|reader| reader.matching(&filter, &scope, visible_only))?;
                let weight = weight_of(found.len());
                let work: Forgetting = Box::new(move |session| {
                    // Others may have written since. What does not match any more is not what was meant.
                    let still = session.reader(&ns)?.matching_still(&found, &filter, visible_only)?;
                    let mut writer = session.known_writer(&ns)?;
                    let Some(part) = writer.part_of(&scope)? else { return Ok(Forgotten::default()) };
                    let answer = writer.forget_found(&still.0, part)?;
                    Ok(Forgotten { undecided: undecided.iter().chain(&still.1).copied().collect(), ..answer })
                });
                (work, weight)
            }
        })
    }
}

/// Answers for a namespace that no write has made.
fn unless_known<T>(answer: impl FnOnce() -> T) -> impl FnOnce(Error) -> Result<T> {
    move |why| match why {
        Error::NotFound { what: "namespace", .. } => Ok(answer()),
        other => Err(other),
    }
}

/// Counts the memories that went by the state that they had before.
fn plan_of(
    session: &Session<'_, '_, '_>,
    namespace: &NamespaceName,
    answer: Forgotten,
) -> Result<ForgetPlan> {
    let (before, now) = (session.published.snapshot(), session.ledger.now());
    let mut plan = ForgetPlan::default();
    let Some(row) = before.namespace(namespace.as_str())? else { return Ok(plan) };
    let ns = NsId(row.number);
    for &id in &answer.tombstones {
        let Some(vitals) = sound(before.vitals(ns, id))? else {
            plan.damaged += 1;
            continue;
        };
        // The tombstone of a text whose memory stays is that of no memory.
        let Some(vitals) = vitals else {
            plan.texts += 1;
            continue;
        };
        // What another memory is to replace at an instant ahead is true until then.
        let state = match vitals.times.state(now) {
            State::Superseded if vitals.times.is_or_will_be_true(now) => State::Live,
            state => state,
        };
        match state {
            State::Live => plan.live += 1,
            State::Superseded => plan.superseded += 1,
            State::Expired => plan.expired += 1,
            State::Limbo | State::Tombstoned => plan.limbo += 1,
        }
        if plan.sample.len() < FORGET_SAMPLE_MAX {
            let holders = sound(before.holders(ns, id))?.unwrap_or_default();
            let mut keys: Vec<String> = holders.into_iter().filter_map(|h| h.key).collect();
            keys.sort_unstable();
            keys.dedup();
            plan.sample.push(Doomed { id, state, keys });
        }
    }
    Ok(ForgetPlan { answer, ..plan })
}
