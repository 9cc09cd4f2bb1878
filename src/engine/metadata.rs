//! Indexes of metadata: declared by namespace and path, kept by every write, used by every filter.

use crate::engine::database::Database;
use crate::engine::maintain::Sweep;
use crate::engine::namespace::Namespace;
use crate::engine::options::MaintainOptions;
use crate::engine::sweep::Site;
use crate::error::Result;
use crate::hygiene::Declaring;
use crate::model::{NamespaceName, RunId, RunSort, check_index_key};
use crate::store::{NsId, Rows};

impl Namespace {
    /// Declares an index of `metadata.KEY` in a namespace, which is made if need be. From then on a search, a listing and
    /// a `forget` with a filter that demands `{"metadata.KEY": value}` or `$in` of it look at the matching rows alone; no
    /// answer changes. `key` is what stands behind `metadata.` in a filter: names, with dots between them where it
    /// descends. Gives the number of memories that stand in the new index: those with a value that is a text, a
    /// number, a truth value or a list of these; 0 where the index is there already. It is filled in slices beside other
    /// writers, and no read asks it before it is whole; one that was cut off is gone on with by the next call, or by the pass
    /// `index`.
    ///
    /// ```
    /// use oubliette::{Database, Draft, Filter, PageRequest};
    /// # let folder = tempfile::tempdir()?;
    /// # let team = Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// let mut draft = Draft::new("Ann prefers tea");
    /// draft.fields.metadata = Some(serde_json::json!({ "user": { "id": 7 } }));
    /// team.add(draft)?;
    /// assert_eq!(team.declare_index("user.id")?, 1);
    /// assert_eq!(team.indexes()?, ["user.id"]);
    /// let filter = Some(Filter::parse(r#"{"metadata.user.id": 7}"#)?);
    /// let page = team.list(&PageRequest { filter, ..PageRequest::default() })?;
    /// assert_eq!(page.items.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Invalid` for a key that is no path of 1 to 128 bytes without NUL, and for more than 16 indexes in a namespace;
    /// `Retry`, `Unavailable`, `ReadOnly`, `Closed`.
    pub fn declare_index(&self, key: &str) -> Result<u64> {
        check_index_key(key)?;
        let at_work = self.db.inner.works_on_new()?;
        let run = at_work.run();
        let begun = self.db.inner.run_alone(|session| {
            let writer = session.writer(&self.name, Some(run), false)?;
            let begun = writer.ledger.declare(&writer.context, key)?;
            if begun {
                writer.ledger.note_part(&writer.context, run, RunSort::Index, [])?;
            }
            Ok(begun.then_some(writer.context.ns))
        })?;
        begun.map_or(Ok(0), |ns| self.db.finish_index(&self.name, ns, run, key))
    }

    /// Ends the index of `metadata.KEY`; false where there was none. No answer changes.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// team.declare_index("user.id")?;
    /// assert!(team.drop_index("user.id")?);
    /// assert!(!team.drop_index("user.id")?);
    /// assert!(team.drop_index("").is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Namespace::declare_index`].
    pub fn drop_index(&self, key: &str) -> Result<bool> {
        check_index_key(key)?;
        let at_work = self.db.inner.works_on_new()?;
        let run = at_work.run();
        let begun = self.db.inner.run_alone(|session| {
            let Some(row) = session.ledger.tx.namespace(self.name.as_str())? else { return Ok(None) };
            let context = session.context(NsId(row.number), Some(run));
            let begun = session.ledger.end_declared(&context, key)?;
            if begun {
                session.ledger.note_part(&context, run, RunSort::Index, [])?;
            }
            Ok(begun.then_some(context.ns))
        })?;
        let Some(ns) = begun else { return Ok(false) };
        self.db.finish_index(&self.name, ns, run, key).map(|_| true)
    }

    /// The keys below `metadata` that have an index in a namespace, by name.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// team.declare_index("user.id")?;
    /// assert_eq!(team.indexes()?, ["user.id"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Corrupted`, `Closed`.
    pub fn indexes(&self) -> Result<Vec<String>> {
        self.read(|published, _| {
            let snapshot = published.snapshot();
            let Some(row) = snapshot.namespace(self.name.as_str())? else { return Ok(Vec::new()) };
            Ok(snapshot.indexed_paths(NsId(row.number))?.iter().map(|path| path.to_string()).collect())
        })
    }
}

impl Database {
    /// Writes and clears rows of an index until it is whole or gone. Gives the memories that stand in it.
    fn finish_index(&self, namespace: &NamespaceName, ns: NsId, run: RunId, path: &str) -> Result<u64> {
        let (mut job, options) = (Declaring::new(path.into()), MaintainOptions::live());
        let policy = &self.inner.in_force().policy;
        let site = Site { namespace, ns, run, counted_as: "memories", policy, threads: options.threads() };
        let mut sweep = Sweep::new(run, RunSort::Index, Some(namespace.clone()), &options);
        self.work(&mut job, &site, &mut sweep)?;
        self.end_runs(&sweep);
        Ok(job.rows)
    }

    /// Lets the declared indexes of a namespace, or of all, be written anew from the memories, by the pass `index`.
    pub(super) fn void_declared(&self, namespace: Option<&NamespaceName>, run: RunId) -> Result<()> {
        for (name, ns) in self.tenants(namespace)? {
            self.inner.run_alone(|session| {
                if !session.stands(&name, ns)? {
                    return Ok(());
                }
                let context = session.context(ns, Some(run));
                session.ledger.void_declared(&context)
            })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
