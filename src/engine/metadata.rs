//! Indexes of metadata: declared by namespace and path, kept by every write, used by every filter.

use crate::engine::database::Database;
use crate::error::Result;
use crate::model::{Namespace, RunId, check_index_key};
use crate::store::{NsId, Rows};

impl Database {
    /// Declares an index of `metadata.KEY` in a namespace, which is made if need be. From then on a search, a listing and
    /// a `forget` with a filter that demands `{"metadata.KEY": value}` or `$in` of it look at the matching rows alone; no
    /// answer changes. `key` is what stands behind `metadata.` in a filter: names, with dots between them where it
    /// descends. Gives the number of memories that stand in the new index: those with a value that is a text, a
    /// number, a truth value or a list of these; 0 where the index is there already.
    ///
    /// ```
    /// use oubliette::{Database, Draft, Filter, Namespace, PageRequest};
    /// # let folder = tempfile::tempdir()?;
    /// # let db = Database::open(folder.path().join("m.oub"))?;
    /// let ns = Namespace::default();
    /// let mut draft = Draft::new("Ann prefers tea");
    /// draft.fields.metadata = Some(serde_json::json!({ "user": { "id": 7 } }));
    /// db.add(&ns, draft)?;
    /// assert_eq!(db.declare_index(&ns, "user.id")?, 1);
    /// assert_eq!(db.indexes(&ns)?, ["user.id"]);
    /// let filter = Some(Filter::parse(r#"{"metadata.user.id": 7}"#)?);
    /// let page = db.list(&ns, &PageRequest { filter, ..PageRequest::default() })?;
    /// assert_eq!(page.items.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Invalid` for a key that is no path of 1 to 128 bytes without NUL, and for more than 16 indexes in a namespace;
    /// `Corrupted` when a memory is damaged; `Retry`, `Unavailable`, `ReadOnly`, `Closed`.
    pub fn declare_index(&self, namespace: &Namespace, key: &str) -> Result<u64> {
        check_index_key(key)?;
        self.inner.run_alone(|session| {
            let desk = session.desk(namespace, None, false)?;
            Ok(desk.ledger.declare(&desk.context, key)?.unwrap_or(0))
        })
    }

    /// Ends the index of `metadata.KEY`; false where there was none. No answer changes.
    ///
    /// # Errors
    /// As [`Database::declare_index`].
    pub fn drop_index(&self, namespace: &Namespace, key: &str) -> Result<bool> {
        check_index_key(key)?;
        self.inner.run_alone(|session| {
            let Some(row) = session.ledger.tx.namespace(namespace.as_str())? else { return Ok(false) };
            let context = session.context(NsId(row.number), None);
            session.ledger.end_declared(&context, key)
        })
    }

    /// The keys below `metadata` that have an index in a namespace, by name.
    ///
    /// # Errors
    /// `Corrupted`, `Closed`.
    pub fn indexes(&self, namespace: &Namespace) -> Result<Vec<String>> {
        self.read(|published, _| {
            let snapshot = published.snapshot();
            let Some(row) = snapshot.namespace(namespace.as_str())? else { return Ok(Vec::new()) };
            Ok(snapshot.meta_keys(NsId(row.number))?.iter().map(|path| path.to_string()).collect())
        })
    }

    /// Writes the declared indexes of a namespace, or of all, anew from the memories.
    pub(super) fn rebuild_declared(&self, namespace: Option<&Namespace>, run: RunId) -> Result<()> {
        for (name, ns) in self.tenants(namespace)? {
            self.inner.run_alone(|session| {
                if !session.stands(&name, ns)? {
                    return Ok(0);
                }
                let context = session.context(ns, Some(run));
                session.ledger.rebuild_declared(&context)
            })?;
        }
        Ok(())
    }
}
