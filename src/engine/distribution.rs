//! How memories are used: one walk over them, for a host that wants to know before use decides what goes.

use std::sync::Arc;

use crate::engine::database::Database;
use crate::engine::namespace::Namespace;
use crate::error::Result;
use crate::hygiene::{AccessDistribution, Distribution, Field};
use crate::model::NamespaceName;
use crate::recall::Reader;

/// Contexts of a memory that are told.
const CONTEXTS: usize = 3;

impl Database {
    /// How the visible memories of all namespaces are used: by number of retrievals, mean relevance and utility, what each
    /// threshold of utility would prune, and which were retrieved most, with the contexts that they were in last. It reads the
    /// vitals and statistics of every memory.
    ///
    /// ```
    /// use oubliette::{Database, Draft};
    /// # let folder = tempfile::tempdir()?;
    /// # let db = Database::open(folder.path().join("m.oub"))?;
    /// db.namespace("team")?.add(Draft::new("Ann prefers tea").retrieval_count(5))?;
    /// db.namespace("other")?.add("Bob prefers coffee")?;
    /// let used = db.access_distribution()?;
    /// assert_eq!((used.memories, used.never_retrieved_share), (2, Some(0.5)));
    /// assert_eq!((used.most_retrieved[0].retrieval_count, used.most_retrieved.len()), (5, 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Corrupted`, `Closed`. Damaged memories are left out.
    pub fn access_distribution(&self) -> Result<AccessDistribution> {
        self.access_distribution_in(None)
    }

    fn access_distribution_in(&self, only: Option<&NamespaceName>) -> Result<AccessDistribution> {
        let policy = self.inner.in_force().policy.clone();
        self.read(|published, now| {
            let rows = published.snapshot();
            let field = |ns| {
                let noted = Arc::clone(&self.inner.accesses);
                Field::new(ns, now, noted)
            };
            let tenants = self.tenants(only)?;
            let mut all = Distribution::new(&policy);
            for (name, ns) in &tenants {
                all.add(name.as_str(), &field(*ns), rows)?;
            }
            let number = |name: &str| tenants.iter().find(|(of, _)| of.as_str() == name).map(|(_, ns)| *ns);
            all.finish(
                now,
                |name, id| {
                    let access = number(name).map(|ns| field(ns).access(rows, id)).transpose()?;
                    Ok(access.flatten().unwrap_or_default())
                },
                |name, id| {
                    let name = name.parse()?;
                    let reader = Reader::open(published, &name, &self.inner.secret, now)?;
                    Ok(reader.contexts_of(&id.to_string(), None, CONTEXTS)?.items)
                },
            )
        })
    }
}

impl Namespace {
    /// As [`Database::access_distribution`], of the memories of this namespace.
    ///
    /// ```
    /// use oubliette::{Database, Draft};
    /// # let folder = tempfile::tempdir()?;
    /// # let team = Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// assert_eq!(team.access_distribution()?.never_retrieved_share, None); // There is no memory.
    /// team.add(Draft::new("Ann prefers tea").retrieval_count(5))?;
    /// let used = team.access_distribution()?;
    /// // ln(1 + 5) and 0.4: no threshold up to 0.6 would prune it.
    /// assert!(used.thresholds.iter().all(|effect| effect.below == 0 || effect.threshold > 0.6));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Database::access_distribution`].
    pub fn access_distribution(&self) -> Result<AccessDistribution> {
        self.db.access_distribution_in(Some(&self.name))
    }
}
