//! Which texts hold the words of a query, and how much do these say?
//!
//! Every memory of the main table has a document in the index of its partition: a number, and the instants of its
//! visibility. A new document lies in the *tail*: its text is read from its memory when somebody searches, and the
//! terms of the tail are kept in memory from one published state to the next. The pass `index`, or a writer past a
//! bound, writes the postings of tail documents, by term, in blocks ([`upkeep`]); blocks of one term are joined later.
//! So a write costs one entry of a block, and forgetting takes the postings of the text away in its own transaction.
//!
//! Statistics are those of the visible documents at the instant of the query, exactly: how many there are, how long
//! they are, and how many hold a term (design, law 3).

mod held;
mod image;
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
/// `Corrupted` for one that this build does not have.
pub(crate) fn analyzer_of(text: TextId, id: &str) -> Result<Analyzer> {
    Analyzer::from_id(id).ok_or_else(|| {
        let key = crate::store::keys::ns_part(text.ns, text.part);
        Error::corrupted("text_head", &key, format!("the analyzer {id:?} is unknown"))
    })
}

/// Takes a text out of the postings of its document. Damage there must not keep a memory from being forgotten: it is
/// left for `check` to tell and for `reindex` to heal.
///
/// # Errors
/// What is no damage: `Retry`.
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
