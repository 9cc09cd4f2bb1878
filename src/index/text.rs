//! Which texts hold the words of a query, and how much do the words count?
//!
//! Every memory of the main table has a document in the index of its partition: a number, and the instants of its
//! visibility. A new document lies in the *tail*. Its text is read from its memory when somebody searches, and each
//! published state hands the terms of the tail on to the next. The pass `index`, or a writer past a bound, writes the
//! postings of tail documents, by term, in blocks ([`upkeep`]). Blocks of one term are joined later. So a write costs
//! one entry of a block, and forgetting removes the postings of the text in its own transaction.
//!
//! Statistics are exact for the documents that are visible at the instant of the query: their number, their length,
//! and the number that hold a term (design, law 3).

mod held;
mod image;
mod loose;
mod posted;
mod run;
mod score;
pub(crate) mod upkeep;

pub(crate) use image::TextView;
pub(crate) use score::{DocRef, Lexical, TextAsk, Window, lexical};

use crate::error::{Error, Result};
use crate::store::{TextId, WriteTx};
use crate::text::Analyzer;
use std::collections::BTreeSet;

/// The analyzer that an index names.
///
/// # Errors
/// `Corrupted` if this build does not have the analyzer.
pub(crate) fn analyzer_of(text: TextId, id: &str) -> Result<Analyzer> {
    Analyzer::from_id(id).ok_or_else(|| {
        let key = crate::store::keys::ns_part(text.ns, text.part);
        Error::corrupted("text_head", &key, format!("the analyzer {id:?} is unknown"))
    })
}

/// Removes a text from the postings of its document. Damage to them must not keep a memory from being forgotten. Such
/// damage is left for `check` to report and for `reindex` to repair.
///
/// # Errors
/// Errors other than damage: `Retry`.
pub(crate) fn erase_postings(tx: &mut WriteTx<'_>, text: TextId, doc: u32, words: &str) -> Result<()> {
    use crate::store::Read;
    let Some(head) = tx.text_head(text)? else { return Ok(()) };
    let mut terms = BTreeSet::new();
    analyzer_of(text, &head.analyzer)?.analyze(words, &mut |term, _| {
        if !terms.contains(term) {
            terms.insert(term.to_owned());
        }
    });
    for term in terms {
        match tx.remove_posting(text, &term, doc) {
            Err(why @ Error::Corrupted { .. }) => {
                tracing::warn!(%why, "a posting of a forgotten text could not be taken out");
            }
            other => other?,
        }
    }
    Ok(())
}
