//! Which visible memories say the same?

use std::collections::BTreeMap;

use crate::error::Result;
use crate::hygiene::plan::{Field, Page, Pages};
use crate::model::{Kind, MemoryId};
use crate::store::{Rows, Snapshot};
use crate::text::normal_form;

/// Rows of a page.
const PAGE_ROWS: usize = 500;

/// The visible memories of a namespace whose texts have an equal normal form: groups of at least two, ids and groups in
/// order. Snapshots repeat themselves by their nature and are left out, and so are memories without a text.
///
/// Kept in memory: 32 bytes for each visible memory. Of those with an equal fingerprint the texts are read.
///
/// # Errors
/// `Corrupted`, except for damaged rows, which are left out.
pub(crate) fn duplicate_groups(rows: &Snapshot, field: &Field) -> Result<Vec<Vec<MemoryId>>> {
    let mut all = Vec::new();
    let mut pages = Pages::new(field, PAGE_ROWS);
    let snapshot = Kind::Snapshot.code();
    let mut never = |_| false;
    loop {
        let wanted = |vitals: &crate::model::Vitals| {
            vitals.times.visible_live(field.now) && vitals.kind_code != snapshot
        };
        let Page::Rows(page) = pages.turn(rows, &mut never, wanted)? else { break };
        all.extend(page.iter().filter_map(|(id, vitals)| Some((vitals.place.fingerprint?, *id))));
    }
    all.sort_unstable();
    let mut groups = Vec::new();
    for near in all.chunk_by(|(a, _), (b, _)| a == b).filter(|near| near.len() > 1) {
        let mut by_form: BTreeMap<Option<[u8; 32]>, Vec<MemoryId>> = BTreeMap::new();
        for (_, id) in near {
            let Some(content) = field.sound(rows.content(field.ns, *id))?.flatten() else { continue };
            by_form.entry(normal_form(&content.text).fingerprint()).or_default().push(*id);
        }
        groups.extend(
            by_form.into_iter().filter(|(form, ids)| form.is_some() && ids.len() > 1).map(|(_, ids)| ids),
        );
    }
    groups.sort_unstable();
    Ok(groups)
}
