//! What the pass `collapse` plans.

// DEDUP-11 to DEDUP-22.

use serde_json::json;

use super::bed::{Bed, NOW, NS, field, go, id, pin, profile};
use crate::hygiene::collapse::{ProfileCollapseReport, is_due, plan};
use crate::hygiene::plan::{Action, Group, KeptApart, Loser, Plan};
use crate::ledger::NewRow;
use crate::model::{MemoryId, Significance, SupersedeMode, Time};
use crate::policy::{Canonical, Policy};
use crate::store::{PartId, Table, keys};
use crate::text::Guard;

fn planned(rows: Vec<NewRow>, policy: &Policy) -> (Plan, ProfileCollapseReport) {
    plan(&Bed::of(rows).snapshot(), &field(), policy, &mut go).unwrap().unwrap()
}

fn fuzzy() -> Policy {
    let mut policy = Policy::default();
    policy.collapse.fuzzy = true;
    policy
}

fn groups(plan: &Plan) -> Vec<&Group> {
    plan.actions.iter().map(group_of).collect()
}

fn group_of(action: &Action) -> &Group {
    if let Action::Merge(group) = action { group } else { panic!("{action:?}") }
}

fn losers(group: &Group) -> Vec<MemoryId> {
    group.losers.iter().map(|loser| loser.id).collect()
}

/// The canonical row and the others of a group of operational rows that differ in what `change` makes of them.
fn order(change: impl Fn(usize, &mut NewRow), policy: &Policy) -> Vec<MemoryId> {
    let mut rows = vec![profile(1, "gateway status 1"), profile(2, "gateway status 2")];
    rows.iter_mut().enumerate().for_each(|(at, row)| {
        row.vitals.created_at = NOW;
        change(at, row);
    });
    let (plan, _) = planned(rows, policy);
    let [group] = groups(&plan)[..] else { panic!("{plan:?}") };
    [vec![group.canonical], losers(group)].concat()
}

const OPERATIONAL: [&str; 3] = [
    "Gateway status: 4 apps pending, checked 2026-02-25 10:00",
    "Gateway status: 7 apps pending, checked 2026-02-25 10:05",
    "Gateway status: 3 apps pending, checked 2026-02-25 10:10",
];
const ATERA: [&str; 3] = [
    "The conversation states there are 2 open tickets total in Atera.",
    "There are 4 total open tickets in the connected Atera environment.",
    "There are 0 tickets assigned to him",
];

fn profiles(texts: &[&str]) -> Vec<NewRow> {
    texts.iter().zip(1..).map(|(text, n)| profile(n, text)).collect()
}

#[test]
fn v41_to_v44_the_canonical_row_of_a_group() {
    let policy = Policy::default();
    let set = |sig: [Significance; 2], count: [u32; 2], created: [i64; 2]| {
        move |at: usize, row: &mut NewRow| {
            row.vitals.significance = sig[at];
            row.vitals.reinforcement_count = count[at];
            row.vitals.created_at = Time::from_millis(created[at]);
        }
    };
    use Significance::{Core, Important, Routine};
    assert_eq!(order(set([Important, Core], [9, 1], [1, 99]), &policy), [id(2), id(1)], "V-41");
    assert_eq!(order(set([Routine; 2], [2, 5], [1, 2]), &policy), [id(2), id(1)], "V-42");
    assert_eq!(order(set([Routine; 2], [2; 2], [20, 10]), &policy), [id(2), id(1)], "V-43");
    assert_eq!(order(set([Routine; 2], [2; 2], [10; 2]), &policy), [id(1), id(2)], "V-44");
    let mut other = Policy::default();
    other.collapse.canonical = Canonical::ReinforcementFirst;
    assert_eq!(order(set([Core, Routine], [1, 9], [1, 2]), &other), [id(2), id(1)], "DEDUP-16");
    assert_eq!(order(set([Core; 2], [1; 2], [1, 2]), &other), [id(2), id(1)], "the newest");
}

#[test]
fn v45_v46_v47_what_a_group_transfers() {
    let transfer = |rows: &[(u8, Significance, u32)]| {
        let row = |(n, significance, count): &(u8, Significance, u32)| {
            let mut row = profile(*n, &format!("gateway status {n}"));
            (row.vitals.significance, row.vitals.reinforcement_count) = (*significance, *count);
            row
        };
        let (plan, _) = planned(rows.iter().map(row).collect(), &Policy::default());
        let [group] = groups(&plan)[..] else { panic!("{plan:?}") };
        (group.canonical, group.transfer(), group.losers.len())
    };
    use Significance::{Core, Important, Routine};
    let v45 = [(5, Important, 2), (1, Routine, 3), (2, Routine, 1), (3, Routine, 1), (4, Routine, 0)];
    assert_eq!(transfer(&v45), (id(5), 6, 4), "V-45: an imported 0 counts as 1");
    assert_eq!(transfer(&[(3, Core, 5), (1, Routine, 3), (2, Routine, 2)]), (id(3), 5, 2), "V-46");
    assert_eq!(transfer(&[(2, Routine, u32::MAX), (1, Routine, 1)]), (id(2), 1, 1), "V-47");
}

#[test]
fn v48_v49_v217_protected_rows_stay() {
    let with = |n: u8, change: fn(&mut NewRow)| {
        let mut rows = profiles(&OPERATIONAL);
        rows.truncate(usize::from(n));
        change(&mut rows[1]);
        planned(rows, &Policy::default())
    };
    let (plan, report) = with(3, pin);
    let [group] = groups(&plan)[..] else { panic!("V-48: {plan:?}") };
    assert_eq!((group.canonical, losers(group), group.protected), (id(1), vec![id(3)], 1), "V-48");
    assert_eq!((report.duplicates_found, report.protected_skipped), (1, 1));
    assert_eq!((report.samples[0].group_size, report.samples[0].reinforcement_transfer), (3, 1));
    let locks: [fn(&mut NewRow); 3] =
        [|row| row.vitals.admin_locked = true, |row| row.vitals.system_locked = true, pin];
    for lock in locks {
        let (plan, report) = with(2, lock);
        assert_eq!((plan.actions.len(), report.duplicate_groups, report.duplicates_found), (0, 0, 0), "V-49");
        assert_eq!(report.protected_skipped, 1, "and is told");
    }
    let shield: fn(&mut NewRow) = |row| row.access.protected_until = Some(NOW.plus("1d".parse().unwrap()));
    let (plan, report) = with(2, shield);
    assert_eq!((losers(groups(&plan)[0]), report.protected_skipped), (vec![id(2)], 0), "V-217: shielded");
}

#[test]
fn v50_the_report_of_a_dry_run() {
    let mut rows = profiles(&OPERATIONAL);
    rows.push(profile(9, "likes tea"));
    let mut knowledge = profile(8, OPERATIONAL[0]);
    knowledge.vitals.kind_code = 7;
    rows.push(knowledge);
    let (plan, report) = planned(rows, &Policy::default());
    let mut json = serde_json::to_value(&report).unwrap();
    let samples = json["samples"].take();
    assert_eq!(
        json,
        json!({
            "dryRun": true, "scannedProfiles": 4, "operationalProfiles": 3, "uniqueSignatures": 1,
            "duplicateGroups": 1, "duplicatesFound": 2, "exactDuplicateGroups": 1, "tokenDuplicateGroups": 0,
            "fuzzyDuplicateGroups": 0, "groupsCollapsed": 0, "duplicatesRemoved": 0,
            "reinforcementsApplied": 0, "run_id": null, "budget_exhausted": false, "samples": null,
            "protectedSkipped": 0,
        })
    );
    assert_eq!(
        samples,
        json!([{
            "signature": "gateway status <num> apps pending checked <datetime>", "groupSize": 3,
            "canonicalId": id(1), "canonicalSummary": OPERATIONAL[0], "duplicateIds": [id(2), id(3)],
            "duplicateSummaries": OPERATIONAL[1..], "reinforcementTransfer": 2,
        }])
    );
    let losers = &groups(&plan)[0].losers;
    let first = Loser { id: id(2), version: 1, count: 1, happened_at: None, visible: true };
    assert_eq!(losers[0], first);
    assert_eq!(
        serde_json::from_value::<ProfileCollapseReport>(serde_json::to_value(&report).unwrap()).unwrap(),
        report
    );
}

#[test]
fn v52_the_token_phase() {
    let (plan, report) = planned(profiles(&ATERA), &Policy::default());
    assert_eq!((report.token_duplicate_groups, report.duplicates_found, report.unique_signatures), (1, 1, 3));
    assert_eq!(report.samples[0].signature, "tokens:atera open ticket total");
    assert_eq!((groups(&plan)[0].canonical, losers(groups(&plan)[0])), (id(1), vec![id(2)]));
}

#[test]
fn v53_what_is_consumed_takes_no_part_in_the_next_phase() {
    let texts = ["gateway queue alert 1", "gateway queue alert 2", "alert gateway queue 3"];
    let (plan, report) = planned(profiles(&texts), &fuzzy());
    assert_eq!((report.exact_duplicate_groups, report.duplicate_groups), (1, 1));
    let [group] = groups(&plan)[..] else { panic!("{plan:?}") };
    assert_eq!((group.canonical, losers(group)), (id(1), vec![id(2)]));
}

#[test]
fn v55_page_and_samples() {
    // More rows than a page of 50, with signatures that only letters tell apart.
    let row = |n: u8| {
        let word = char::from(b'a' + n % 26);
        profile(n + 1, &format!("gateway {word}{word} status {n}"))
    };
    let rows: Vec<_> = (0..120).map(row).collect();
    let mut policy = Policy::default();
    (policy.collapse.batch, policy.collapse.max_samples) = (10, 0);
    let (small, report) = planned(rows.clone(), &policy);
    assert_eq!((report.scanned_profiles, report.duplicate_groups), (120, 26));
    assert_eq!(report.samples, []);
    policy.collapse.max_samples = 3;
    policy.collapse.batch = 500;
    let (large, report) = planned(rows, &policy);
    assert_eq!(small, large, "the page decides nothing");
    let first: Vec<_> = report.samples.iter().map(|sample| sample.canonical_id).collect();
    assert_eq!(first, [id(1), id(2), id(3)], "by canonical id");
}

#[test]
fn the_fuzzy_phase_runs_when_it_is_asked_for_and_respects_negation() {
    // V-35, V-40: of two near rows the second says the contrary.
    let near = [
        "gateway queue alert provider latency dashboard cron ticket 1",
        "gateway queue alert provider latency dashboard cron 2",
        "gateway queue alert provider latency dashboard cron not pending 3",
    ];
    let (plan, report) = planned(profiles(&near), &Policy::default());
    assert_eq!((plan.actions.len(), report.fuzzy_duplicate_groups), (0, 0));
    let (plan, report) = planned(profiles(&near), &fuzzy());
    let [group] = groups(&plan)[..] else { panic!("{plan:?}") };
    assert_eq!((group.canonical, losers(group)), (id(1), vec![id(2)]));
    assert_eq!(group.signature, "fuzzy:alert cron dashboard gateway latency provider queue ticket");
    assert_eq!((report.fuzzy_duplicate_groups, report.duplicates_found), (1, 1));
    assert_eq!(plan.hints, [], "at 7 of 10 tokens it is not near");
    let near = ["gateway queue alert provider latency 1", "gateway queue alert provider latency not 2"];
    let (plan, _) = planned(profiles(&near), &fuzzy());
    assert_eq!(
        (plan.actions.len(), plan.hints),
        (0, vec![KeptApart { id: id(2), near: id(1), guard: Guard::Negation }])
    );
}

#[test]
fn only_current_rows_of_one_partition_are_grouped() {
    let mut rows = profiles(&["status 1", "status 2", "status 3", "status 4", "status 5", "status 6"]);
    rows[2].vitals.place.partition = 1;
    rows[3].vitals.place.partition = 1;
    rows[4].vitals.times.expires_at = Some(NOW);
    rows[5].vitals.times.valid_from = Some(NOW.plus("1d".parse().unwrap()));
    let bed = Bed::of(rows);
    let policy = Policy::default();
    let (all, report) = plan(&bed.snapshot(), &field(), &policy, &mut go).unwrap().unwrap();
    let found: Vec<_> =
        groups(&all).iter().map(|group| (group.part, group.canonical, losers(group))).collect();
    assert_eq!(
        found,
        [(PartId(0), id(1), vec![id(2)]), (PartId(1), id(3), vec![id(4)])],
        "DEDUP-3: what is to come is current and stands apart, what expired is not"
    );
    assert_eq!((report.scanned_profiles, report.unique_signatures), (5, 3), "places are summed");
    assert_eq!(all.cost(), 2);
    bed.supersede(2, 1, SupersedeMode::Correction);
    let (left, _) = plan(&bed.snapshot(), &field(), &policy, &mut go).unwrap().unwrap();
    assert_eq!(left.actions.len(), 1, "what is superseded is not current");
}

#[test]
fn kinds_are_those_of_the_policy() {
    let mut rows = profiles(&["status 1", "status 2", "status 3", "status 4"]);
    for (row, name) in rows.iter_mut().zip(["beat", "beat", "pulse"]) {
        row.vitals.kind_code = 255;
        row.content.custom_kind = Some(name.to_owned());
    }
    let mut policy = Policy::default();
    policy.collapse.kinds = vec!["custom:beat".to_owned()];
    let (plan, report) = planned(rows, &policy);
    assert_eq!((report.scanned_profiles, report.duplicates_found), (2, 1));
    assert_eq!((groups(&plan)[0].canonical, losers(groups(&plan)[0])), (id(1), vec![id(2)]));
}

#[test]
fn it_stops_when_it_is_told_to_and_counts_every_row() {
    let bed = Bed::of(profiles(&OPERATIONAL));
    let policy = fuzzy();
    let mut units = 0;
    let mut count = |done| {
        units += done;
        false
    };
    assert!(plan(&bed.snapshot(), &field(), &policy, &mut count).unwrap().is_some());
    assert!(units >= 3, "{units}");
    for limit in 0..units {
        let mut left = limit;
        let mut stop = |done| {
            let over = done > left;
            left = left.saturating_sub(done);
            over
        };
        assert!(plan(&bed.snapshot(), &field(), &policy, &mut stop).unwrap().is_none(), "after {limit}");
    }
}

#[test]
fn a_long_text_is_shortened_in_a_sample() {
    let long = format!("status {}é 1", "ö".repeat(200));
    let (_, report) = planned(profiles(&[&long, &long]), &Policy::default());
    let shown = &report.samples[0].canonical_summary;
    assert!(shown.len() <= 256 && shown.ends_with('…') && long.starts_with(shown.trim_end_matches('…')));
    assert!(shown.len() > 250);
}

#[test]
fn a_damaged_row_is_counted_and_left_alone() {
    let bed = Bed::of(profiles(&OPERATIONAL));
    bed.write(|tx| tx.put(Table::Memory, &keys::memory(NS, id(2)), b"rubbish"));
    let field = field();
    let (plan, _) = plan(&bed.snapshot(), &field, &Policy::default(), &mut go).unwrap().unwrap();
    assert_eq!(field.damaged.get(), 1);
    let names_it = |action: &Action| match action {
        Action::Merge(group) => {
            group.canonical == id(2) || group.losers.iter().any(|loser| loser.id == id(2))
        }
        _ => false,
    };
    assert!(!plan.actions.iter().any(names_it), "{plan:?}");
}

#[test]
fn it_is_due_past_the_threshold() {
    // DEDUP-23.
    let mut policy = Policy::default();
    assert!(!is_due(&policy, u64::MAX), "0 is off");
    policy.collapse.threshold = 10;
    assert!(!is_due(&policy, 10) && is_due(&policy, 11));
}
