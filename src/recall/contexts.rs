//! In which contexts of a language model was a memory?

use crate::error::{Result, sound};
use crate::model::hex::hex;
use crate::model::{ContextLog, InContext, Included, MemoryId, Page, PageRequest};
use crate::recall::Reader;
use crate::recall::list::{nothing, position};
use crate::recall::read::Named;
use crate::store::keys;
use crate::store::{ContextPlace, ContextRow, ContextRows, NsId, Walk};

impl Reader<'_> {
    /// # Errors
    /// `NotFound`; `Invalid` for a limit outside 1 to 10,000 or a cursor of another listing; `Corrupted`.
    pub(crate) fn contexts_of(
        &self,
        name: &str,
        cursor: Option<&str>,
        limit: usize,
    ) -> Result<Page<InContext>> {
        PageRequest { limit, ..PageRequest::default() }.check()?;
        match (self.ns, self.resolve(name)?) {
            (Some(ns), Some(Named::Row(id, ..))) => self.in_contexts(ns, id, cursor, limit),
            (Some(ns), Some(Named::Gone(tombstone))) => self.in_contexts(ns, tombstone.id, cursor, limit),
            _ => Err(self.not_found(name)),
        }
    }

    /// The contexts in which a memory was, the latest first. One that is damaged is left out.
    pub(super) fn in_contexts(
        &self,
        ns: NsId,
        id: MemoryId,
        cursor: Option<&str>,
        limit: usize,
    ) -> Result<Page<InContext>> {
        let after = cursor.map(|cursor| at(cursor, &keys::memory(ns, id))).transpose()?;
        let mut places = self.rows().contexts_of(ns, id, after.as_deref(), limit + 1)?;
        let next = cut(&mut places, limit).map(|(at, context)| hex(&keys::context_of(ns, id, *at, context)));
        let mut page = nothing();
        page.next = next;
        for (at, context) in places {
            let Some(row) = sound(self.rows().context(ns, &context))?.flatten() else { continue };
            let items: Vec<&Included> = row.items.iter().filter(|item| item.id == Some(id)).collect();
            let bucket = items.iter().find_map(|item| item.bucket);
            let tokens = items.iter().fold(0_u32, |sum, item| sum.saturating_add(item.tokens));
            page.items.push(InContext { context, at, bucket, tokens });
        }
        Ok(page)
    }

    /// A page of the inclusion log, and the ids of the contexts of the page that are damaged and left out.
    ///
    /// # Errors
    /// `Invalid` for a limit outside 1 to 10,000 or a cursor of another listing; `Corrupted`.
    pub(crate) fn contexts(
        &self,
        cursor: Option<&str>,
        limit: usize,
    ) -> Result<(Page<ContextLog>, Vec<String>)> {
        PageRequest { limit, ..PageRequest::default() }.check()?;
        let Some(ns) = self.ns else { return Ok((nothing(), Vec::new())) };
        let prefix = keys::ns(ns);
        let mut walk = Walk::prefix(&prefix);
        if let Some(cursor) = cursor {
            walk = walk.after(&at(cursor, &prefix)?);
        }
        let mut places = self.rows().context_places(&walk, limit + 1)?;
        let next = cut(&mut places, limit).map(|(at, context)| hex(&keys::context_time(ns, *at, context)));
        let (mut page, mut damaged) = (nothing(), Vec::new());
        page.next = next;
        for (_, context) in places {
            // A place without its row is as damaged as a row that can't be read.
            match sound(self.rows().context(ns, &context))?.flatten() {
                Some(row) => page.items.push(shown(context, row)),
                None => damaged.push(context),
            }
        }
        Ok((page, damaged))
    }
}

fn shown(id: String, row: ContextRow) -> ContextLog {
    let at = row.at();
    let ContextRow { session, window_tokens, items, .. } = row;
    ContextLog { id, at, session, window_tokens, items }
}

/// The key that a cursor of any length stands for.
fn at(cursor: &str, prefix: &[u8]) -> Result<Vec<u8>> {
    position(cursor, prefix, cursor.len() / 2)
}

/// Leaves the first `limit` places, and gives the last of them where there are more.
fn cut(places: &mut Vec<ContextPlace>, limit: usize) -> Option<&ContextPlace> {
    let more = places.len() > limit;
    places.truncate(limit);
    places.last().filter(|_| more)
}
