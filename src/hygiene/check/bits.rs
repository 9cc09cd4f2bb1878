//! One-bit codes: those of every slot that holds a memory, around one center, and nothing of any other slot.

use crate::error::Result;
use crate::hygiene::check::state::{Check, seen};
use crate::hygiene::check::tallies::Center;
use crate::hygiene::report::Code;
use crate::index::bit_rows::{Coder, frame_of, is_due};
use crate::record::{At, BIT_ROW_SLOTS, BitRow, slots_per_block};
use crate::store::control::BitsHead;
use crate::store::{BitRows, IndexId, Read, Table, keys, meta_of};

impl Check<'_> {
    fn center(&mut self, index: IndexId, dim: usize) -> Result<&mut Center> {
        if !self.centers.contains_key(&index) {
            let head: Option<Option<BitsHead>> = seen(self.snapshot.bits_head(index))?;
            let there = head != Some(None);
            let head = head.flatten();
            let known = match head.map(|head| (head.center, frame_of(index, &head, dim))) {
                Some((center, frame)) => seen(frame)?.map(|frame| (center, Coder::new(frame))),
                None => None,
            };
            self.centers.insert(index, Center { known, there, rows: 0 });
        }
        Ok(self.centers.entry(index).or_default())
    }

    pub(super) fn bits_head(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let head: BitsHead = meta_of(Table::BitsHead, key, value)?;
        let keys::BitsHead { index } = keys::BitsHead::read(Table::BitsHead, key)?;
        self.len_of(Table::BitsHead, key, index);
        let Some(dim) = self.spaces.get(&index.space).copied() else { return Ok(()) };
        frame_of(index, &head, dim).map(drop)
    }

    pub(super) fn bits(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let Some((index, number, dim)) = self.block_of(key) else { return Ok(()) };
        let row = BitRow::decode(At::new(Table::Bits.name(), key), dim, value)?;
        let len = self.len_of(Table::Bits, key, index);
        let first = u64::from(number) * BIT_ROW_SLOTS as u64;
        let center = self.center(index, dim)?;
        center.rows += 1;
        let (there, named) = (center.there, center.known.as_ref().map(|(center, _)| *center));
        if !there || first >= len {
            let what = format!("{len} slots, and one-bit codes from {first} on");
            self.find(Code::Bits, Table::Bits, key, if there { what } else { "no center".to_owned() });
            return Ok(());
        }
        if named.is_some_and(|named| named != row.center) {
            let what = format!("codes of center {}, and the index has another", row.center);
            self.find(Code::Bits, Table::Bits, key, what);
            return Ok(());
        }
        // The row begins below the length, which is a u32.
        match self.differing_slot(index, first as u32, dim, &row)? {
            Some(slot) => {
                let what = format!("the one-bit code of slot {slot} is not that of its code");
                self.find(Code::Bits, Table::Bits, key, what);
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// The first slot of a row whose one-bit code or instants are not those that its code gives. Only a deep check
    /// makes codes again.
    fn differing_slot(
        &mut self,
        index: IndexId,
        first: u32,
        dim: usize,
        row: &BitRow,
    ) -> Result<Option<u32>> {
        let per = slots_per_block(dim) as u32;
        let mut block: Option<(u32, Option<_>)> = None;
        let zeros = BitRow::vacant(dim, row.center).code(0);
        for at in 0..BIT_ROW_SLOTS {
            let slot = first.saturating_add(at as u32);
            let number = slot / per;
            if block.as_ref().is_none_or(|(known, _)| *known != number) {
                block = Some((number, seen(self.snapshot.slot_block(index, number, dim))?));
            }
            // Nothing is concluded from a block that can't be read.
            let Some((_, Some(codes))) = &block else { continue };
            let place = (slot % per) as usize;
            let held = codes.as_ref().and_then(|codes| Some((codes.meta(place)?, codes.code(place)?)));
            let fits = match held.filter(|(meta, _)| !meta.is_vacant()) {
                None => row.span(at).is_none() && row.code(at) == zeros,
                Some((meta, code)) => {
                    let coder = self.centers.get_mut(&index).and_then(|center| center.known.as_mut());
                    let made = coder.filter(|_| self.deep).map(|(_, coder)| coder.code(code, meta.scale));
                    row.span(at) == Some((meta.from, meta.until))
                        && made.is_none_or(|made| made == row.code(at))
                }
            };
            if !fits {
                return Ok(Some(slot));
            }
        }
        Ok(None)
    }

    /// Every index that is large enough has one-bit codes of all its slots.
    pub(super) fn finish_bits(&mut self) -> Result<()> {
        let heads: Vec<_> = self.heads.iter().map(|(index, head)| (*index, head.len)).collect();
        for (index, len) in heads {
            let Some(dim) = self.spaces.get(&index.space).copied() else { continue };
            if self.tenants.get(&index.ns).is_none_or(|tenant| tenant.dropping) {
                continue;
            }
            let Center { there, rows, .. } = *self.center(index, dim)?;
            let needed = len.div_ceil(BIT_ROW_SLOTS as u32);
            if (there && rows != needed) || (!there && is_due(len, dim)) {
                let what = format!("{rows} rows of one-bit codes where {len} slots need {needed}");
                self.find(Code::Bits, Table::BitsHead, &keys::index(index), what);
            }
        }
        Ok(())
    }
}
