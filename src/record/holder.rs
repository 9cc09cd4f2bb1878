//! Holders: [`Holder`] as parts.
//!
//! With one key and three field HMACs a row is 40 bytes and its strings. Mostly a holder is as old as its memory, whose id says when
//! it was made. So the instant of a holder is stored as the milliseconds after that, and not at all if there are none.

use crate::error::Result;
use crate::model::{Entity, Holder, Link, MemoryId, RunId, Time};
use crate::record::frame::{At, tag};
use crate::record::parts::{PartReader, PartWriter};

/// Writes `holder` into `out`, replacing what is there.
pub(crate) fn encode_holder(holder: &Holder, key: &[u8], out: &mut Vec<u8>) {
    let mut parts = PartWriter::begin(tag::HOLDER, out);
    parts.always(&(holder.number, holder.count, holder.share));
    parts.maybe(holder.key.as_deref());
    parts.list(&holder.tags);
    parts.list(&holder.categories);
    let entities: Vec<_> = holder.entities.iter().map(|e| (&*e.name, &*e.role)).collect();
    parts.list(&entities);
    let links: Vec<_> = holder.links.iter().map(|l| (l.to.as_bytes(), &*l.relation)).collect();
    parts.list(&links);
    parts.list(&holder.fields);
    parts.maybe(holder.run.as_ref().map(RunId::as_bytes));
    parts.maybe(holder.text.as_deref());
    parts.maybe(holder.from.as_ref().map(MemoryId::as_bytes));
    parts.maybe(holder.follows.then_some(()));
    parts.maybe(Some(holder.since.as_millis() - made_at(key)).filter(|later| *later != 0));
    parts.seal(key);
}

/// The holder that [`encode_holder`] wrote.
///
/// # Errors
/// `Corrupted` for other bytes.
pub(crate) fn decode_holder(at: At<'_>, bytes: &[u8]) -> Result<Holder> {
    let mut parts = PartReader::open(tag::HOLDER, at, bytes)?;
    let (number, count, share) = parts.always("number, count, share")?;
    let mut holder = Holder {
        number,
        count,
        share,
        since: Time::EPOCH,
        key: parts.maybe("key")?,
        tags: parts.list("tags")?,
        categories: parts.list("categories")?,
        entities: entities(parts.list("entities")?),
        links: links(parts.list("links")?),
        fields: parts.list("fields")?,
        run: parts.maybe("run")?.map(RunId::from_bytes),
        text: parts.maybe("text")?,
        from: parts.maybe("from")?.map(MemoryId::from_bytes),
        follows: parts.maybe::<()>("follows")?.is_some(),
    };
    let later: i64 = parts.maybe("since")?.unwrap_or_default();
    holder.since = at.time("since", made_at(at.key).saturating_add(later))?;
    parts.finish()?;
    Ok(holder)
}

/// The milliseconds in the id of the memory to which a key of a holder belongs: the id stands behind the number of the namespace.
fn made_at(key: &[u8]) -> i64 {
    let id = key.get(4..20).and_then(|id| id.try_into().ok()).map(MemoryId::from_bytes);
    id.unwrap_or_default().made_at().as_millis()
}

fn entities(rows: Vec<(String, String)>) -> Vec<Entity> {
    rows.into_iter().map(|(name, role)| Entity { name, role }).collect()
}

fn links(rows: Vec<([u8; 16], String)>) -> Vec<Link> {
    rows.into_iter().map(|(to, relation)| Link { to: MemoryId::from_bytes(to), relation }).collect()
}
