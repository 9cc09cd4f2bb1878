//! A file that is imported again, of which later lines had revised what earlier lines wrote under the same keys.
//!
//! The earlier line of such a key says what the key no longer says. Written once more, it would take the newer text back, and
//! the later line would bring that again: two rows more with each import. So the lines of one key in a batch are looked at
//! together. If the versions of the key end with what these lines say, one after the other, each line is the same write again.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use crate::error::{Error, Result};
use crate::ingest::{NamespaceWriter, Prepared};
use crate::model::{Decision, Evidence, MemoryId, Outcome, RuleId};
use crate::store::Rows;

/// The drafts of a batch whose key comes more than once in it.
#[derive(Default)]
pub(crate) struct Rewrites {
    /// The places of the drafts of one key, by the place of the first.
    lines: BTreeMap<usize, Vec<usize>>,
    /// The version of its key that a draft repeats, by its place.
    again: BTreeMap<usize, MemoryId>,
}

impl Rewrites {
    /// Finds the keys that come more than once.
    pub(crate) fn of(batch: &[Prepared]) -> Self {
        let mut first: BTreeMap<&str, usize> = BTreeMap::new();
        let mut lines: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (at, prepared) in batch.iter().enumerate() {
            let Some(key) = prepared.checked.key() else { continue };
            match first.entry(key) {
                Entry::Vacant(place) => drop(place.insert(at)),
                Entry::Occupied(place) => {
                    lines.entry(*place.get()).or_insert_with(|| vec![*place.get()]).push(at);
                }
            }
        }
        Rewrites { lines, again: BTreeMap::new() }
    }
}

impl NamespaceWriter<'_, '_, '_> {
    /// Decides about the draft at a place of the batch, if it is the same write again.
    pub(crate) fn written_before(
        &mut self,
        batch: &[Prepared],
        at: usize,
        rewrites: &mut Rewrites,
    ) -> Result<Option<Outcome>> {
        if let Some(places) = rewrites.lines.remove(&at) {
            let drafts: Vec<&Prepared> = places.iter().filter_map(|place| batch.get(*place)).collect();
            let versions = self.last_versions(&drafts)?.unwrap_or_default();
            rewrites.again.extend(places.into_iter().zip(versions));
        }
        let Some((id, prepared)) = rewrites.again.remove(&at).zip(batch.get(at)) else { return Ok(None) };
        let (decision, rule) = (Decision::Unchanged, RuleId::KEY);
        let outcome = self.outcome(prepared, id, decision, rule, Evidence::default(), Vec::new());
        self.settled(outcome).map(Some)
    }

    /// The version of their key that each of these drafts repeats, if the last versions of the key are just these.
    fn last_versions(&self, drafts: &[&Prepared]) -> Result<Option<Vec<MemoryId>>> {
        let Some(key) = drafts.first().and_then(|draft| draft.checked.key()) else { return Ok(None) };
        let Some((mut at, _)) = self.holder_to_change(key)? else { return Ok(None) };
        let mut versions = Vec::with_capacity(drafts.len());
        for prepared in drafts.iter().rev() {
            // What a draft supersedes besides is looked up again with each write.
            let is_plain = prepared.checked.draft().supersedes.is_empty();
            let says = |id: MemoryId| Ok::<_, Error>(is_plain && self.said_under(key, id, prepared)?);
            if !says(at)? {
                // The last of the drafts says what the key says now, or all are written.
                if versions.is_empty() {
                    return Ok(None);
                }
                let mut earlier = None;
                for old in self.ledger.tx.superseded_by(self.ns(), at)? {
                    earlier = says(old)?.then_some(old).or(earlier);
                }
                let Some(earlier) = earlier else { return Ok(None) };
                at = earlier;
            }
            versions.push(at);
        }
        versions.reverse();
        Ok(Some(versions))
    }

    /// Whether a version of a key says what a draft says.
    fn said_under(&self, key: &str, id: MemoryId, prepared: &Prepared) -> Result<bool> {
        for holder in self.ledger.readable_holders(self.ns(), id)? {
            if holder.key.as_deref() == Some(key) && self.says_again(prepared, id, &holder)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
