//! The values of a metadata key, counted in one walk over the memories that a live read sees.

use std::collections::BTreeMap;

use crate::error::{Result, sound};
use crate::limits::DISTINCT_VALUES_MAX;
use crate::model::{DistinctQuery, DistinctValue, DistinctValues, MemoryId, Scalar, Vitals};
use crate::recall::Reader;
use crate::recall::matching::Matcher;

/// The values met so far. No more are kept than an answer can hold.
#[derive(Default)]
struct Counts {
    of: BTreeMap<Scalar, u64>,
    memories: u64,
    damaged: u64,
    cut: bool,
}

impl Counts {
    /// Counts one memory. The values that are kept are the first in order. One that is dropped has as many before it, and
    /// so has it at the end: it is never counted again from 0.
    fn add(&mut self, values: impl ExactSizeIterator<Item = Scalar>) {
        self.memories += u64::from(values.len() > 0);
        for value in values {
            *self.of.entry(value).or_insert(0) += 1;
            if self.of.len() > DISTINCT_VALUES_MAX {
                self.of.pop_last();
                self.cut = true;
            }
        }
    }

    fn answer(self, limit: usize) -> DistinctValues {
        let mut all: Vec<(Scalar, u64)> = self.of.into_iter().collect();
        // Stable: equally frequent values stay in their order.
        all.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let left_out = all.len().saturating_sub(limit) as u64;
        all.truncate(limit);
        let values = all.into_iter().map(|(value, count)| DistinctValue { value: value.json(), count });
        DistinctValues {
            values: values.collect(),
            left_out,
            complete: !self.cut,
            memories: self.memories,
            damaged: self.damaged,
        }
    }
}

impl Reader<'_> {
    /// The values of a metadata key among the visible memories of a scope that match.
    ///
    /// # Errors
    /// `Invalid` for a query out of bounds; `Corrupted`.
    pub(crate) fn distinct(&self, query: &DistinctQuery) -> Result<DistinctValues> {
        query.check()?;
        let mut counts = Counts::default();
        let Some(ns) = self.ns else { return Ok(counts.answer(query.limit)) };
        let part = self.part(ns, &query.scope)?;
        let list = self.listed(ns, query.filter.as_ref())?;
        let mut matcher =
            query.filter.as_ref().map(|filter| Matcher::with(self, ns, Some(filter), list.as_ref()));
        let mut unreadable = 0;
        let mut offer = |matcher: &mut Option<Matcher<'_>>, id: MemoryId, vitals: &Vitals| -> Result<()> {
            if !part.holds(vitals.place.partition) || !self.sees(id, vitals)? {
                return Ok(());
            }
            if let Some(matcher) = matcher
                && !matcher.lets_pass(id, vitals)?
            {
                return Ok(());
            }
            match sound(self.content(ns, id))? {
                Some(content) => counts.add(Scalar::all_at(&content.metadata, &query.key).into_iter()),
                None => counts.damaged += 1,
            }
            Ok(())
        };
        match &list {
            Some(list) => {
                for id in &list.ids {
                    let vitals = matcher.as_mut().map(|matcher| matcher.vitals(*id)).transpose()?.flatten();
                    if let Some(vitals) = vitals {
                        offer(&mut matcher, *id, &vitals)?;
                    }
                }
            }
            None => self.each_of(ns, part, &mut |id, vitals| match vitals {
                Some(vitals) => offer(&mut matcher, id, vitals),
                None => {
                    unreadable += 1;
                    Ok(())
                }
            })?,
        }
        counts.damaged += unreadable;
        counts.damaged += matcher.as_ref().map_or(0, Matcher::damaged);
        Ok(counts.answer(query.limit))
    }
}
