//! Reads snapshots back as a series over time.

use crate::error::{Result, sound};
use crate::model::{Memory, Scope, Span, Time};
use crate::recall::{Part, Reader, SHARED};
use crate::store::Rows;

impl Reader<'_> {
    /// The snapshots of a series that a live read sees, from one instant on and before another, by time and id.
    /// Damaged snapshots are left out.
    ///
    /// # Errors
    /// `Corrupted`.
    pub(crate) fn list_snapshots(
        &self,
        scope: &Scope,
        series: &str,
        from: Option<Time>,
        until: Option<Time>,
    ) -> Result<Vec<Memory>> {
        let Some(ns) = self.ns else { return Ok(Vec::new()) };
        // No name of a series holds a NUL. Snapshots at the first instant have no readable time.
        if series.contains('\0') {
            return Ok(Vec::new());
        }
        let from = from.unwrap_or(Time::MIN).max(Time::MIN.plus(Span::from_millis(1)));
        let parts = match self.part(ns, scope)? {
            Part::Nowhere => Vec::new(),
            Part::One(part) => vec![part],
            Part::Every => {
                let agents = self.rows().partitions(ns)?.into_iter().map(|(_, part)| part);
                std::iter::once(SHARED).chain(agents).collect()
            }
        };
        let mut places = Vec::new();
        for part in parts {
            places.extend(self.rows().series(ns, part, series, from, until)?);
        }
        places.sort_unstable();
        let mut all = Vec::new();
        for (_, id) in places {
            let Some(vitals) = sound(self.vitals(ns, id))? else { continue };
            if !self.sees(id, &vitals)? {
                continue;
            }
            all.extend(sound(self.memory(ns, id, vitals, None, false))?);
        }
        Ok(all)
    }
}
