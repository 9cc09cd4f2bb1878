//! The inclusion log: contexts come, with the statistics of their memories, and go when they are old.

use crate::error::{Result, sound};
use crate::ledger::applied::Applied;
use crate::ledger::fold::Folded;
use crate::ledger::writer::{Context, Ledger, Why, truth};
use crate::model::{Delta, Op};
use crate::store::{ContextRow, ContextRows};

impl Ledger<'_, '_> {
    /// Writes a context that the log does not have, and the statistics of its memories.
    pub(super) fn log_context(
        &mut self,
        context: &Context,
        name: &str,
        row: &ContextRow,
        rows: Vec<Folded>,
        why: Why,
    ) -> Result<Applied> {
        debug_assert!(self.tx.context(context.ns, name)?.is_none(), "a context is written once");
        truth(self.tx).put_context(context.ns, name, row)?;
        self.fold(context, rows, why)
    }

    /// Takes contexts out of the log. What they counted stays counted.
    pub(super) fn drop_contexts(&mut self, context: &Context, names: &[String], why: Why) -> Result<Applied> {
        for name in names {
            self.drop_context(context, name)?;
        }
        let contexts = Delta {
            field: "contexts".to_owned(),
            before: names.len().into(),
            after: serde_json::Value::Null,
        };
        self.journal(context, Op::Fold, None, vec![contexts], why)?;
        Ok(Applied::default())
    }

    /// Takes a context out of the log. One that can't be read is found by nothing else than its name.
    fn drop_context(&mut self, context: &Context, name: &str) -> Result<()> {
        let row = sound(self.tx.context(context.ns, name))?.flatten().unwrap_or_default();
        truth(self.tx).delete_context(context.ns, name, &row)
    }
}
