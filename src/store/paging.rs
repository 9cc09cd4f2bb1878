//! Walks that stop and go on, each page in a call of its own.

use std::ops::ControlFlow;

use crate::error::Result;
use crate::store::raw::{Visit, Walk};
use crate::store::tables::Table;
use crate::store::tx::Read;

#[cfg(test)]
mod tests;

/// Where a walk that is read in pages goes on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum PagePlace {
    /// Nothing was read yet.
    #[default]
    Start,
    /// Behind this key.
    Behind(Vec<u8>),
    /// There are no more rows.
    End,
}

/// The next page of a walk. `visit` breaks off when it has enough. It gets the rows that follow nevertheless, up to a place at
/// which a walk of its own goes on with the row that comes next: mostly none. So no row is read twice, and none is passed over,
/// where a damaged key is out of order. A walk behind such a key, and behind some of its neighbours, begins elsewhere.
///
/// # Errors
/// Those of the walk and of `visit`.
pub(crate) fn walk_page(
    rows: &(impl Read + ?Sized),
    table: Table,
    walk: &Walk,
    place: &mut PagePlace,
    visit: Visit<'_>,
) -> Result<()> {
    let behind = |key: &[u8]| match walk.is_reversed() {
        true => walk.clone().before(key),
        false => walk.clone().after(key),
    };
    let from = match place {
        PagePlace::Start => walk.clone(),
        PagePlace::Behind(key) => behind(key),
        PagePlace::End => return Ok(()),
    };
    let (mut full, mut next): (Option<Vec<u8>>, _) = (None, PagePlace::End);
    rows.walk(table, &from, &mut |key, value| {
        if let Some(last) = full.take()
            && begins_with(rows, table, &behind(&last), key)?
        {
            next = PagePlace::Behind(last);
            return Ok(ControlFlow::Break(()));
        }
        full = visit(key, value)?.is_break().then(|| key.to_vec());
        Ok(ControlFlow::Continue(()))
    })?;
    *place = next;
    Ok(())
}

/// Whether a walk has this key as its first.
fn begins_with(rows: &(impl Read + ?Sized), table: Table, walk: &Walk, first: &[u8]) -> Result<bool> {
    let mut begins = false;
    rows.walk(table, walk, &mut |key, _| {
        begins = key == first;
        Ok(ControlFlow::Break(()))
    })?;
    Ok(begins)
}
