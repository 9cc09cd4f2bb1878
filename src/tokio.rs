//! The handles with async methods, for hosts that run on tokio.
//!
//! A call to the database blocks its thread. Here each call runs on a thread that may block (`spawn_blocking`, so within a
//! runtime of tokio). Names, arguments and answers are those of the handles at the root of the crate. [`Namespace::call`]
//! and [`Database::call`] carry out every method that has no async form of its own.
//!
//! A future that is dropped before its first poll does nothing. After that poll the call is carried out even when the
//! future is dropped: a write takes place or fails as a whole, and nobody is told which.
//!
//! ```
//! use oubliette::tokio::Database;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! let db = Database::open(folder.path().join("memory.oub")).await?;
//! let team = db.namespace("team")?;
//! let (tea, coffee) = tokio::join!(team.add("Ann prefers tea"), team.add("Bob prefers coffee"));
//! assert_ne!(tea?.id, coffee?.id);
//! assert_eq!(team.search("Ann").await?.hits[0].text, "Ann prefers tea");
//! db.close().await?;
//! # Ok(())
//! # }
//! ```

use std::fmt;
use std::panic::resume_unwind;
use std::path::Path;
use std::sync::Arc;

use crate::engine::{
    self, Batch, Builder, ConsolidateReport, Forget, FsckReport, MaintainReport, Snapshot, WriteOptions,
};
use crate::error::{Error, Result};
use crate::model::{Draft, Forgotten, Memory, Name, NamespaceName, Outcome, Page, PageRequest, Patch, Query};
use crate::recall::SearchResult;
use crate::summary::Summarizer;

/// Carries out a call on a thread that may block. A panic of the call goes on here.
async fn blocking<R: Send + 'static>(call: impl FnOnce() -> Result<R> + Send + 'static) -> Result<R> {
    match ::tokio::task::spawn_blocking(call).await {
        Ok(answer) => answer,
        Err(failed) => match failed.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            Err(stopped) => Err(Error::Unavailable { why: format!("the runtime stopped: {stopped}") }),
        },
    }
}

/// An example within a runtime, with the database `db` and its namespace `team`.
macro_rules! example {
    ($($line:literal),+) => {
        concat!(
            "```\n# use oubliette::{Draft, PageRequest, Patch, WriteOptions, tokio::Database};\n\
             # #[tokio::main(flavor = \"current_thread\")]\n\
             # async fn main() -> Result<(), Box<dyn std::error::Error>> {\n\
             # let folder = tempfile::tempdir()?;\n\
             # let path = folder.path().join(\"m.oub\");\n\
             # let db = Database::open(&path).await?;\n\
             # let team = db.namespace(\"team\")?;\n",
            $($line, "\n",)+
            "# Ok(())\n# }\n```"
        )
    };
}

/// Async methods: the signature, what the call must own of its arguments, the call, and an example.
macro_rules! verbs {
    ($of:ident $($(#[$doc:meta])* $name:ident($($given:ident: $ty:ty),*) -> $answer:ty
        { $(let $own:ident = $value:expr;)* $call:expr } $($line:literal)+)+) => {$(
        #[doc = concat!("As [`", stringify!($of), "::", stringify!($name), "`](crate::", stringify!($of), "::", stringify!($name), ").")]
        $(#[$doc])*
        ///
        #[doc = example!($($line),+)]
        ///
        /// # Errors
        #[doc = concat!("As [`", stringify!($of), "::", stringify!($name), "`](crate::", stringify!($of), "::", stringify!($name), ").")]
        pub async fn $name(&self, $($given: $ty),*) -> Result<$answer> {
            $(let $own = $value;)*
            self.call($call).await
        }
    )+};
}

/// A [`Database`](crate::Database) with async methods; cheap to clone.
#[derive(Clone, Debug)]
pub struct Database(engine::Database);

impl From<engine::Database> for Database {
    fn from(db: engine::Database) -> Self {
        Database(db)
    }
}

impl Database {
    /// As [`Database::open`](crate::Database::open).
    ///
    #[doc = example!(
        "let other = Database::open(folder.path().join(\"other.oub\")).await?;\n\
         assert!(Database::open(\"no such folder/m.oub\").await.is_err());"
    )]
    ///
    /// # Errors
    /// As [`Database::open`](crate::Database::open).
    pub async fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref().to_path_buf();
        Ok(Database(blocking(move || engine::Database::open(path)).await?))
    }

    /// As [`Builder::open`], with the options of the builder.
    ///
    #[doc = example!(
        "let options = oubliette::Database::builder().create(false);\n\
         assert!(Database::open_with(options, folder.path().join(\"none.oub\")).await.is_err());"
    )]
    ///
    /// # Errors
    /// As [`Builder::open`].
    pub async fn open_with(options: Builder, path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref().to_path_buf();
        Ok(Database(blocking(move || options.open(path)).await?))
    }

    /// The handle whose methods block.
    ///
    #[doc = example!("assert_eq!(db.blocking().path(), path);")]
    pub fn blocking(&self) -> &engine::Database {
        &self.0
    }

    /// The namespace with a name, as [`Database::namespace`](crate::Database::namespace) makes it. Nothing blocks here.
    ///
    #[doc = example!(
        "db.namespace(\"team\")?.add(\"Ann prefers tea\").await?;\n\
         assert!(db.namespace(\"*\").is_err());"
    )]
    ///
    /// # Errors
    /// As [`Database::namespace`](crate::Database::namespace).
    pub fn namespace<N>(&self, name: N) -> Result<Namespace>
    where
        N: TryInto<NamespaceName, Error: Into<Error>>,
    {
        self.0.namespace(name).map(Namespace)
    }

    /// Calls a method of [`Database`](crate::Database) that has no async form here.
    ///
    #[doc = example!(
        "let copy = folder.path().join(\"copy.oub\");\n\
         assert!(db.call(move |db| db.backup(copy)).await?.whole);"
    )]
    ///
    /// # Errors
    /// Those of the method, and `Unavailable` when the runtime stops before the call begins.
    pub async fn call<R: Send + 'static>(
        &self,
        call: impl FnOnce(&engine::Database) -> Result<R> + Send + 'static,
    ) -> Result<R> {
        let db = self.0.clone();
        blocking(move || call(&db)).await
    }

    /// As [`Database::batch`](crate::Database::batch). Other writers wait while `unit` runs, so `unit` waits for nothing.
    ///
    #[doc = example!(
        "let team: oubliette::NamespaceName = \"team\".parse()?;\n\
         let name = team.clone();\n\
         db.batch(move |b| b.add(&name, \"Ann prefers tea\")).await?;\n\
         assert!(db.batch(move |b| b.add(&team, \"\")).await.is_err());"
    )]
    ///
    /// # Errors
    /// As [`Database::batch`](crate::Database::batch).
    pub async fn batch<R: Send + 'static>(
        &self,
        unit: impl FnMut(&mut Batch<'_, '_, '_, '_>) -> Result<R> + Send + 'static,
    ) -> Result<R> {
        self.call(move |db| db.batch(unit)).await
    }

    verbs! { Database
        /// `Namespace::from(snapshot.namespace("team")?)` has its async reads.
        snapshot() -> Snapshot { |db: &engine::Database| db.snapshot() }
        "let before = oubliette::tokio::Namespace::from(db.snapshot().await?.namespace(\"team\")?);\n\
         let tea = team.add(\"Ann prefers tea\").await?.id;\nassert!(before.get(tea).await?.is_none());"

        maintain() -> MaintainReport { |db: &engine::Database| db.maintain() }
        "assert!(db.maintain().await.is_ok());"

        fsck(dry_run: bool) -> FsckReport { move |db: &engine::Database| db.fsck(dry_run) }
        "assert!(db.fsck(true).await?.check.ok);"

        flush() -> () { |db: &engine::Database| db.flush() }
        "team.add(\"Ann prefers tea\").await?;\ndb.flush().await?;"

        close() -> () { |db: &engine::Database| db.clone().close() }
        "db.close().await?;\nassert!(team.add(\"Ann prefers tea\").await.is_err());"
    }
}

/// A [`Namespace`](crate::Namespace) with async methods; cheap to clone.
pub struct Namespace<Of = engine::Database>(engine::Namespace<Of>);

impl<Of> Clone for Namespace<Of> {
    fn clone(&self) -> Self {
        Namespace(self.0.clone())
    }
}

impl<Of> fmt::Debug for Namespace<Of> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<Of> From<engine::Namespace<Of>> for Namespace<Of> {
    fn from(namespace: engine::Namespace<Of>) -> Self {
        Namespace(namespace)
    }
}

impl<Of: 'static> Namespace<Of> {
    /// The handle whose methods block.
    ///
    #[doc = example!("assert_eq!(team.blocking().name().as_str(), \"team\");")]
    pub fn blocking(&self) -> &engine::Namespace<Of> {
        &self.0
    }

    /// Calls a method of [`Namespace`](crate::Namespace) that has no async form here.
    ///
    #[doc = example!(
        "let tea = team.add(\"Ann prefers tea\").await?.id;\n\
         team.call(move |team| team.pin(tea, true)).await?;\n\
         assert!(team.call(|team| team.pin(\"coffee\", true)).await.is_err());"
    )]
    ///
    /// # Errors
    /// Those of the method, and `Unavailable` when the runtime stops before the call begins.
    pub async fn call<R: Send + 'static>(
        &self,
        call: impl FnOnce(&engine::Namespace<Of>) -> Result<R> + Send + 'static,
    ) -> Result<R> {
        let namespace = self.0.clone();
        blocking(move || call(&namespace)).await
    }

    verbs! { Namespace
        search(query: impl Into<Query>) -> SearchResult {
            let query = query.into();
            move |of: &engine::Namespace<Of>| of.search(query)
        }
        "team.add(\"Ann prefers tea\").await?;\nassert_eq!(team.search(\"tea\").await?.hits.len(), 1);"

        get(name: impl Into<Name>) -> Option<Memory> {
            let name = name.into();
            move |of: &engine::Namespace<Of>| of.get(name)
        }
        "assert!(team.get(\"ann:home\").await?.is_none());"

        list(request: &PageRequest) -> Page<Memory> {
            let request = request.clone();
            move |of: &engine::Namespace<Of>| of.list(&request)
        }
        "assert!(team.list(&PageRequest::default()).await?.items.is_empty());"
    }
}

impl Namespace {
    verbs! { Namespace
        add(draft: impl Into<Draft>) -> Outcome {
            let draft = draft.into();
            move |team: &engine::Namespace| team.add(draft)
        }
        "team.add(Draft::new(\"Ann lives in Ghent\").key(\"ann:home\")).await?;\nassert!(team.add(\"\").await.is_err());"

        add_all(drafts: Vec<Draft>, how: &WriteOptions) -> Vec<Outcome> {
            let how = *how;
            move |team: &engine::Namespace| team.add_all(drafts, &how)
        }
        "team.add_all(vec![\"Ann prefers tea\".into()], &WriteOptions::default()).await?;"

        update(name: impl Into<Name>, patch: Patch) -> Outcome {
            let name = name.into();
            move |team: &engine::Namespace| team.update(name, patch)
        }
        "let tea = team.add(\"Ann prefers tea\").await?.id;\nteam.update(tea, Patch::new().importance(0.9)).await?;"

        supersede(old: impl Into<Name>, new: impl Into<Draft>) -> Outcome {
            let old = old.into();
            let new = new.into();
            move |team: &engine::Namespace| team.supersede(old, new)
        }
        "let ghent = team.add(\"Ann lives in Ghent\").await?.id;\nteam.supersede(ghent, \"Ann lives in Bruges\").await?;"

        forget(what: impl Into<Forget>) -> Forgotten {
            let what = what.into();
            move |team: &engine::Namespace| team.forget(what)
        }
        "let tea = team.add(\"Ann prefers tea\").await?.id;\nassert_eq!(team.forget(tea).await?.forgotten, 1);"

        maintain() -> MaintainReport { |team: &engine::Namespace| team.maintain() }
        "assert!(team.maintain().await.is_ok());"

        consolidate(summarizer: Arc<dyn Summarizer>) -> ConsolidateReport {
            move |team: &engine::Namespace| team.consolidate(&summarizer)
        }
        "let builtin = std::sync::Arc::new(oubliette::gc::Extractive::default());\nassert_eq!(team.consolidate(builtin).await?.shown, 0); // Nothing was used."

        consolidate_clusters(summarizer: Arc<dyn Summarizer>) -> ConsolidateReport {
            move |team: &engine::Namespace| team.consolidate_clusters(&summarizer)
        }
        "let builtin = std::sync::Arc::new(oubliette::gc::Extractive::default());\nassert_eq!(team.consolidate_clusters(builtin).await?.shown, 0); // There is no cluster."
    }
}
