//! Which operational reports say the same but for their numbers and dates? The pass `collapse`.
//!
//! One walk over the vitals in id order, a page at a time, and one look at the text of each row of the kinds. Kept in
//! memory: a fixed-width entry for each operational row, each signature once, and for the fuzzy phase the tokens of the
//! rows that nothing consumed. Texts are read again only for the samples of the report.

mod fuzzy;
mod report;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::error::{Error, Result};
use crate::hygiene::grouping::{Groups, Member};
use crate::hygiene::pass::{DueInput, MaintenancePass, PlanInput, Planned};
use crate::hygiene::plan::{
    Action, Field, KeptApart, Page, Pages, Phase, Plan, Stop, told_apart, visible_of_kind,
};
use crate::ingest::{is_record_of_its_own, owner_of};
use crate::model::{Kind, MemoryId, Time, Vitals};
use crate::policy::Policy;
use crate::record::{At, decode_content, decode_text};
use crate::store::keys;
use crate::store::{PartId, Rows, Snapshot, Table};
use crate::text::{Guard, Guards, Operational};

pub(super) use report::samples;
pub use report::{MergeTotals, ProfileCollapseGroupSample, ProfileCollapseReport};

/// Rows of a page at least.
const PAGE_ROWS_MIN: u32 = 50;

/// The pass `collapse`.
pub(crate) struct Collapse;

impl MaintenancePass for Collapse {
    fn plan(&self, input: PlanInput<'_>, stop: Stop<'_>) -> Result<Option<Planned>> {
        let found = plan(input.published.snapshot(), input.field, input.policy, stop)?;
        Ok(found.map(|(plan, report)| Planned::actions(plan, report.scanned_profiles, report)))
    }

    /// Visible rows of the collapse kinds past the threshold are looked at on demand.
    fn is_due(&self, input: &DueInput<'_>) -> Result<bool> {
        for ns in input.namespaces {
            let kinds = input.policy.collapse.kinds.iter().map(|kind| visible_of_kind(input.rows, *ns, kind));
            if is_due(input.policy, kinds.sum::<Result<u64>>()?) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Plans the collapse of the operational rows of a field. `policy.collapse` holds the options
/// of the report as well: `fuzzy`, `max_samples`, `batch`. None when `stop` ended it.
///
/// # Errors
/// Damage.
pub(crate) fn plan(
    rows: &Snapshot,
    field: &Field,
    policy: &Policy,
    stop: Stop<'_>,
) -> Result<Option<(Plan, ProfileCollapseReport)>> {
    let mut scan = Scan::new(field, policy);
    let mut pages = Pages::new(field, policy.collapse.batch.max(PAGE_ROWS_MIN) as usize);
    loop {
        let wanted =
            |vitals: &Vitals| scan.kinds.may_be(vitals.kind_code) && vitals.times.is_current(field.now);
        match pages.turn(rows, stop, wanted)? {
            Page::Rows(page) => {
                for (id, vitals) in page {
                    scan.look(rows, id, &vitals)?;
                }
            }
            Page::End => break,
            Page::Stopped => return Ok(None),
        }
    }
    let mut report = scan.report();
    let mut groups = Groups::new(policy.collapse.canonical);
    let mut hints = Vec::new();
    for (place, shelf) in &scan.shelves {
        let Some(apart) = shelf.group(place.part, &scan, &mut groups, stop) else { return Ok(None) };
        hints.extend(apart);
    }
    report.protected_skipped = groups.protected;
    let Some(found) = groups.into_sorted(rows, field, stop)? else { return Ok(None) };
    report.count(&found);
    (report.kept_apart, report.hints) = told_apart(&hints, policy);
    report.samples = report::samples(rows, field.ns, &found, policy.collapse.max_samples as usize)?;
    let plan =
        Plan { actions: found.into_iter().map(Action::Merge).collect(), hints, budget_exhausted: false };
    Ok(Some((plan, report)))
}

/// Whether the visible rows of the collapse kinds are so many that the pass runs on demand.
pub(super) fn is_due(policy: &Policy, visible: u64) -> bool {
    policy.collapse.threshold > 0 && visible > policy.collapse.threshold
}

/// The kinds that are scanned.
struct Kinds {
    codes: BTreeSet<u8>,
    /// Names of the custom ones.
    customs: BTreeSet<String>,
}

impl Kinds {
    fn new(names: &[String]) -> Self {
        let kinds: Vec<Kind> = names.iter().filter_map(|name| name.parse().ok()).collect();
        let codes = kinds.iter().map(Kind::code).collect();
        let custom = |kind| if let Kind::Custom(name) = kind { Some(name) } else { None };
        Kinds { codes, customs: kinds.into_iter().filter_map(custom).collect() }
    }

    /// As far as the hot part of a row tells.
    fn may_be(&self, code: u8) -> bool {
        self.codes.contains(&code)
    }
}

/// What a row turned out to be.
enum Seen {
    OtherKind,
    Plain,
    Operational { signature: String, owner: String, negations: usize, tags: usize },
}

/// What rows have in common before one of them stands for the others.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    part: PartId,
    owner: String,
    /// From when they are true, if that is to come. What is true stands for what is true.
    from: Option<Time>,
    /// Until when they are true.
    until: Option<Time>,
}

/// The walk over the rows.
struct Scan<'p> {
    field: &'p Field,
    policy: &'p Policy,
    kinds: Kinds,
    operational: Operational,
    guards: Guards,
    scanned: u64,
    shelves: BTreeMap<Place, Shelf>,
}

impl<'p> Scan<'p> {
    fn new(field: &'p Field, policy: &'p Policy) -> Self {
        Scan {
            field,
            policy,
            kinds: Kinds::new(&policy.collapse.kinds),
            operational: Operational::new(&policy.collapse),
            guards: Guards::new(&policy.guards, &policy.collapse),
            scanned: 0,
            shelves: BTreeMap::new(),
        }
    }

    fn look(&mut self, rows: &Snapshot, id: MemoryId, vitals: &Vitals) -> Result<()> {
        let seen = rows
            .row(Table::Memory, &keys::memory(self.field.ns, id), |at, bytes| self.judge(at, bytes, vitals));
        let Some(seen) = self.field.sound(seen)? else { return Ok(()) };
        let Some(seen) = seen else {
            return Err(Error::corrupted(Table::Memory.name(), id.as_bytes(), "vitals without content"));
        };
        self.scanned += u64::from(!matches!(seen, Seen::OtherKind));
        if let Seen::Operational { signature, owner, negations, tags } = seen {
            let from = vitals.times.valid_from.filter(|from| *from > self.field.now);
            let until = vitals.times.valid_to;
            let place = Place { part: PartId(vitals.place.partition), owner, from, until };
            let shelf = self.shelves.entry(place).or_default();
            let next = shelf.signatures.len();
            let signature = *shelf.signatures.entry(signature).or_insert(next);
            shelf.rows.push(OperationalRow {
                member: Member::of(id, vitals, tags, self.field),
                signature,
                negations,
            });
        }
        Ok(())
    }

    fn judge(&self, at: At<'_>, bytes: &[u8], vitals: &Vitals) -> Result<Seen> {
        if vitals.kind_code == Kind::CUSTOM_CODE {
            let name = decode_content(at, bytes)?.custom_kind;
            if !name.is_some_and(|name| self.kinds.customs.contains(&name)) {
                return Ok(Seen::OtherKind);
            }
        }
        let text = decode_text(at, bytes)?;
        let signature = self.operational.signature(text);
        let Some(signature) = signature.filter(|found| self.operational.is_operational(text, found)) else {
            return Ok(Seen::Plain);
        };
        // The text is read where it lies. The rest is decoded only for what could be merged.
        let content = decode_content(at, bytes)?;
        if is_record_of_its_own(vitals, &content) {
            return Ok(Seen::Plain);
        }
        let owner = owner_of(&content.metadata);
        // Only the fuzzy phase asks.
        let negations = if self.policy.collapse.fuzzy { self.guards.negations(text) } else { 0 };
        let (signature, tags) = (signature.into_string(), content.tags.len());
        Ok(Seen::Operational { signature, owner, negations, tags })
    }

    /// What is known before the groups are.
    fn report(&self) -> ProfileCollapseReport {
        let sum = |of: fn(&Shelf) -> usize| self.shelves.values().map(|shelf| of(shelf) as u64).sum();
        ProfileCollapseReport {
            dry_run: true,
            scanned_profiles: self.scanned,
            operational_profiles: sum(|shelf| shelf.rows.len()),
            unique_signatures: sum(|shelf| shelf.signatures.len()),
            ..ProfileCollapseReport::default()
        }
    }
}

/// An operational row.
struct OperationalRow {
    member: Member,
    /// Position of its signature among those of the partition.
    signature: usize,
    negations: usize,
}

/// The operational rows of one owner in a partition.
#[derive(Default)]
struct Shelf {
    signatures: HashMap<String, usize>,
    rows: Vec<OperationalRow>,
}

impl Shelf {
    /// The three phases; what an earlier one consumed takes no part in a later one. The pairs that a guard kept apart;
    /// none when `stop` ended it.
    fn group(
        &self,
        part: PartId,
        scan: &Scan<'_>,
        groups: &mut Groups,
        stop: Stop<'_>,
    ) -> Option<Vec<KeptApart>> {
        let alone = self.exact(part, groups);
        let loose = Shelf::token(part, &alone, scan, groups);
        if scan.policy.collapse.fuzzy {
            fuzzy_phase(part, loose, scan, groups, stop)
        } else {
            Some(Vec::new())
        }
    }

    /// Equal signatures. The rows whose signature is theirs alone.
    fn exact<'s>(&'s self, part: PartId, groups: &mut Groups) -> Vec<(&'s OperationalRow, &'s str)> {
        let mut by_signature: Vec<Vec<&OperationalRow>> = Vec::new();
        by_signature.resize_with(self.signatures.len(), Vec::new);
        for row in &self.rows {
            if let Some(members) = by_signature.get_mut(row.signature) {
                members.push(row);
            }
        }
        let mut alone = Vec::new();
        for (signature, at) in &self.signatures {
            let members = by_signature.get(*at).map(Vec::as_slice).unwrap_or_default();
            match members {
                [row] => alone.push((*row, signature.as_str())),
                _ => {
                    groups.add(Phase::Exact, part, signature, members.iter().map(|row| &row.member).collect())
                }
            }
        }
        alone
    }

    /// Equal token keys. The rows that are left.
    fn token<'s>(
        part: PartId,
        alone: &[(&'s OperationalRow, &'s str)],
        scan: &Scan<'_>,
        groups: &mut Groups,
    ) -> Vec<(&'s OperationalRow, &'s str)> {
        let mut by_key: HashMap<String, Vec<(&OperationalRow, &str)>> = HashMap::new();
        let mut loose = Vec::new();
        for item in alone {
            match scan.operational.token_key(item.1, scan.policy.collapse.min_token_key as usize) {
                Some(key) => by_key.entry(key).or_default().push(*item),
                None => loose.push(*item),
            }
        }
        for (key, members) in by_key {
            match members.as_slice() {
                [item] => loose.push(*item),
                _ => {
                    groups.add(Phase::Token, part, &key, members.iter().map(|(row, _)| &row.member).collect())
                }
            }
        }
        loose
    }
}

/// Token sets near that of the first member of a cluster.
fn fuzzy_phase(
    part: PartId,
    mut loose: Vec<(&OperationalRow, &str)>,
    scan: &Scan<'_>,
    groups: &mut Groups,
    stop: Stop<'_>,
) -> Option<Vec<KeptApart>> {
    loose.sort_unstable_by_key(|(row, _)| (row.member.rank.created_at, row.member.rank.id));
    let bounds = fuzzy::Bounds {
        min_shared: scan.policy.collapse.min_shared as usize,
        jaccard: scan.policy.collapse.jaccard,
    };
    let tokens = loose.iter().map(|(_, signature)| scan.operational.tokens(signature));
    let (items, kept): (Vec<_>, Vec<_>) = tokens
        .zip(&loose)
        .filter(|(tokens, _)| tokens.len() >= bounds.min_shared)
        .map(|(tokens, (row, signature))| {
            (fuzzy::Item { tokens, negations: row.negations }, (*row, *signature))
        })
        .unzip();
    let found = fuzzy::cluster(items, bounds, stop)?;
    for members in found.clusters.iter().filter(|members| members.len() >= 2) {
        let rows: Vec<_> = members.iter().filter_map(|at| kept.get(*at)).collect();
        let Some((_, first)) = rows.first() else { continue };
        let signature = scan.operational.tokens(first).join(" ");
        groups.add(Phase::Fuzzy, part, &signature, rows.iter().map(|(row, _)| &row.member).collect());
    }
    let id = |at: usize| kept.get(at).map(|(row, _)| row.member.rank.id);
    let apart = found
        .apart
        .into_iter()
        .filter_map(|(at, near)| Some(KeptApart { id: id(at)?, near: id(near)?, guard: Guard::Negation }));
    Some(apart.collect())
}
