//! How units become commits: one transaction for a group, once more without a unit that fails, and once more where damage
//! was mended.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::engine::attached::AttachedEmbedder;
use crate::engine::inner::Inner;
use crate::engine::queue::{Committer, failed_together};
use crate::engine::rebuild::Damaged;
use crate::engine::session::{CommitEffects, Forgetting, Session, Work};
use crate::error::{Error, Result};
use crate::hygiene::{Taken, TakenQueries};
use crate::ledger::Ledger;
use crate::store::Durability;

/// Most memories whose accesses one commit counts.
pub(super) const FOLDED_MAX: usize = 256;
/// Memories whose accesses a commit earns that is none of maintenance, and which it or a later one counts: writers pay little for
/// the searches before them. A memory that is found again and again waits for its turn, and is then written once.
const FOLDED_PER_WRITE: usize = 8;

impl Inner {
    /// Runs `units` in one transaction and publishes it. The first unit that fails ends the attempt; its place and
    /// error come back. Accesses of `counted` memories that searches have noted are counted first, and as many of
    /// their queries are kept.
    ///
    /// What the commit does beside the units must not stop them. If damage to one memory ends the counting, or the removal
    /// of a memory whose life is over, the units run again without that.
    pub(super) fn attempt(
        &self,
        durability: Durability,
        counted: usize,
        mut units: impl FnMut(&mut Session<'_, '_, '_>) -> Result<(), (usize, Error)>,
    ) -> Result<(), (Option<usize>, Error)> {
        let mut forgetting = Forgetting::On;
        // What an attempt that met damage was to count. The next attempt counts nothing, which shows who has met it.
        let mut suspected: Option<(Taken, TakenQueries, Error)> = None;
        loop {
            let counted = if suspected.is_some() { 0 } else { counted };
            let mut taken = self.accesses.take(counted);
            let mut queries = self.accesses.queries.take(counted);
            let done = self.attempt_once(durability, &mut forgetting, |session| {
                self.fold_taken(session, &taken, &queries).map_err(|why| (None, why))?;
                units(session).map_err(|(at, why)| (Some(at), why))
            });
            match done {
                Ok(()) => {
                    taken.is_committed();
                    queries.is_settled();
                    if let Some((mut taken, mut queries, why)) = suspected {
                        // Both are given up, whichever has met the damage.
                        tracing::warn!(%why, "accesses are not counted");
                        taken.give_up();
                        queries.is_settled();
                    }
                    return Ok(());
                }
                Err((_, why)) if why.is_damage() && !(taken.is_empty() && queries.is_empty()) => {
                    suspected = Some((taken, queries, why));
                }
                Err((_, why @ Error::Corrupted { .. })) if forgetting == Forgetting::AtWork => {
                    tracing::warn!(%why, "a memory whose life is over can't be removed");
                    (forgetting, suspected) = (Forgetting::Off, None);
                }
                Err(failed) => return Err(failed),
            }
        }
    }

    fn attempt_once(
        &self,
        durability: Durability,
        forgetting: &mut Forgetting,
        units: impl FnOnce(&mut Session<'_, '_, '_>) -> Result<(), (Option<usize>, Error)>,
    ) -> Result<(), (Option<usize>, Error)> {
        let mut culprit = None;
        let mut effects = CommitEffects::default();
        let written = self.store.write(durability, |tx| {
            // Only the leader commits and publishes: nothing lies between this state and the transaction.
            let published = self.state()?;
            let in_force = self.in_force();
            let mut ledger = Ledger::open(tx, &self.secret, in_force.analyzer.clone(), self.clock.now())?;
            ledger.tombstone_hash = in_force.policy.tombstone.hash;
            let mut session = Session {
                ledger: &mut ledger,
                in_force: &in_force,
                ids: self.ids.as_ref(),
                embeds: self.embedder.read().as_ref().map(AttachedEmbedder::space),
                actor: self.actor,
                published: &published,
                opened: BTreeSet::new(),
                wrote: BTreeMap::new(),
                forgetting,
                noted: &self.accesses,
                dropped: Vec::new(),
                linked: BTreeMap::new(),
                reset: BTreeSet::new(),
            };
            let done = units(&mut session).map_err(|(at, why)| {
                culprit = at;
                why
            });
            let Session { dropped, linked, reset, .. } = session;
            effects = CommitEffects { dropped, linked, reset };
            done?;
            ledger.finish()
        });
        match written {
            Ok(written) => {
                self.writes.fetch_add(u64::from(written.has_changed), Ordering::Relaxed);
                self.publish(&written, &effects);
                Ok(())
            }
            // A storage that fails is nobody's fault, whoever was at work.
            Err(why @ (Error::Retry { .. } | Error::Unavailable { .. } | Error::Locked { .. })) => {
                self.catch_up();
                Err((None, why))
            }
            Err(why) => Err((culprit, why)),
        }
    }

    /// As [`Inner::attempt`]. A unit that meets damage to rows that follow from others has these written anew, and runs again:
    /// first what the error names, then all that follows from others in the namespace.
    fn attempt_mended(
        &self,
        durability: Durability,
        counted: usize,
        mut units: impl FnMut(&mut Session<'_, '_, '_>) -> Result<(), (usize, Error)>,
    ) -> Result<(), (Option<usize>, Error)> {
        let mut mended = BTreeSet::new();
        loop {
            let done = self.attempt(durability, counted, &mut units);
            let Err((at, mut why)) = done else { return Ok(()) };
            // What is written anew may stand beside other damage.
            let mut is_mended = false;
            while !is_mended {
                let Some(damaged) = Damaged::next(&why, &mended) else { return Err((at, why)) };
                tracing::warn!(%why, ?damaged, "a write has met damaged rows that follow from others: they are written anew");
                mended.insert(damaged);
                match self.rebuild(durability, damaged) {
                    Ok(()) => is_mended = true,
                    Err((Some(_), met)) => why = met,
                    Err(failed @ (None, _)) => return Err(failed),
                }
            }
        }
    }

    /// Runs one unit that borrows from its caller, alone in a transaction.
    pub(super) fn run_alone<R>(&self, unit: impl FnMut(&mut Session<'_, '_, '_>) -> Result<R>) -> Result<R> {
        self.run_alone_as(self.durability, unit)
    }

    /// Makes every commit so far durable.
    pub(super) fn sync(&self) -> Result<()> {
        self.queue.alone(|| {
            let flushed = self.store.flush();
            self.catch_up();
            flushed
        })
    }

    /// As [`Inner::run_alone`], with another durability than that of the handle.
    pub(super) fn run_alone_as<R>(
        &self,
        durability: Durability,
        mut unit: impl FnMut(&mut Session<'_, '_, '_>) -> Result<R>,
    ) -> Result<R> {
        self.check_open()?;
        self.queue.alone(|| {
            let mut value = None;
            let done = self.attempt_mended(durability, FOLDED_MAX, |session| {
                value = Some(unit(session).map_err(|why| (0, why))?);
                session.end_unit().map_err(|why| (0, why))
            });
            match (done, value) {
                (Ok(()), Some(value)) => Ok(value),
                (Err((_, why)), _) => Err(why),
                (Ok(()), None) => unreachable!("a unit that succeeded has a value"),
            }
        })
    }
}

impl Inner {
    /// Runs one unit alone in a transaction and gives the transaction up: what the unit answers is all that is left. Damage to
    /// rows that follow from others is mended for the unit as it is for a write, and the mended rows are given up as well.
    pub(super) fn rehearse<R>(
        &self,
        mut unit: impl FnMut(&mut Session<'_, '_, '_>) -> Result<R>,
    ) -> Result<R> {
        self.check_open()?;
        self.queue.alone(|| {
            let (mut value, mut mended) = (None, BTreeSet::new());
            loop {
                let done = self.attempt(self.durability, FOLDED_MAX, |session| {
                    let mut answered = || {
                        mended.iter().try_for_each(|damaged| session.write_anew(*damaged))?;
                        let answer = unit(session)?;
                        session.ledger.tx.put_gathered()?;
                        Ok(answer)
                    };
                    value = Some(answered().map_err(|why| (0, why))?);
                    // Nobody sees this: an error is what gives a transaction up.
                    let why = "a rehearsal is not committed".to_owned();
                    Err((0, Error::Conflict { what: "rehearsal".to_owned(), why }))
                });
                let why = match (value.take(), done) {
                    (Some(value), _) => return Ok(value),
                    (None, Err((_, why))) => why,
                    (None, Ok(())) => unreachable!("a rehearsal is never committed"),
                };
                let Some(damaged) = Damaged::next(&why, &mended) else { return Err(why) };
                mended.insert(damaged);
            }
        })
    }
}

impl Committer for Arc<Inner> {
    type Unit = Work;

    fn commit(&self, units: &mut [Work]) -> Vec<Result<()>> {
        let mut answers: Vec<Option<Result<()>>> = units.iter().map(|_| None).collect();
        let counted = self.accesses.earn(FOLDED_PER_WRITE, FOLDED_MAX);
        loop {
            let done = self.attempt_mended(self.durability, counted, |session| {
                for (at, unit) in units.iter_mut().enumerate() {
                    if matches!(answers.get(at), Some(None)) {
                        unit(session).and_then(|()| session.end_unit()).map_err(|why| (at, why))?;
                    }
                }
                Ok(())
            });
            match done {
                Ok(()) => return answers.into_iter().map(|answer| answer.unwrap_or(Ok(()))).collect(),
                Err((Some(at), why)) => {
                    // It alone gets the error; the others run again without it.
                    if let Some(answer) = answers.get_mut(at) {
                        *answer = Some(Err(why));
                    }
                    if answers.iter().all(Option::is_some) {
                        return answers.into_iter().flatten().collect();
                    }
                }
                Err((None, why)) => {
                    let fail =
                        |answer: Option<Result<()>>| answer.unwrap_or_else(|| Err(failed_together(&why)));
                    return answers.into_iter().map(fail).collect();
                }
            }
        }
    }
}
