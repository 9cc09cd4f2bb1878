//! Passes over memories, from plan to undo: collapse, destruction budget, limbo, plans that grow old, runs that are cut
//! off (DEDUP-11 to DEDUP-24, MODEL-29, MODEL-33 to MODEL-35).

mod door;

use crate::world::{World, axis, holders, ms, span, text};
use oubliette::clock::{Clock, ManualClock};
use oubliette::maintain::{
    DedupJob, DedupOptions, MaintainOptions, MaintainReport, Pass, PassReport, ProfileCollapseOptions,
    ProfileCollapseReport, collapse_operational_profile_snapshots,
};
use oubliette::memory::Expiry;
use oubliette::memory::{Entity, Got, Link, Significance, Tier, TombstoneReason};
use oubliette::policy::Syntax;
use oubliette::report::RuleId;
use oubliette::{Draft, ErrorKind, Forget, Kind, MemoryId, Namespace, Patch, Scope, Span, State, Time};

fn profile(words: &str) -> Draft {
    let mut draft = text(words);
    draft.fields.kind = Some(Kind::Profile);
    draft
}

fn counted(words: &str, significance: Significance, count: i64) -> Draft {
    let mut draft = profile(words);
    draft.fields.significance = Some(significance);
    draft.fields.reinforcement_count = Some(count);
    draft
}

fn run(world: &World, pass: Pass, options: &MaintainOptions) -> PassReport {
    let mut report: MaintainReport = world.db.maintain_with(&options.clone().passes([pass])).unwrap();
    report.passes.swap_remove(0)
}

fn live(world: &World, pass: Pass) -> PassReport {
    run(world, pass, &MaintainOptions::live())
}

fn collapse(report: &PassReport) -> ProfileCollapseReport {
    report.report.get::<ProfileCollapseReport>().unwrap().clone()
}

/// The three reports of V-50 and a line that is none.
fn gateway(world: &World) -> [MemoryId; 4] {
    [
        profile("Gateway status: 4 apps pending, checked 2026-02-25 10:00"),
        profile("Gateway status: 7 apps pending, checked 2026-02-25 10:05"),
        profile("Gateway status: 3 apps pending, checked 2026-02-25 10:10"),
        profile("Ann prefers tea"),
    ]
    .map(|draft| world.add(draft).id)
}

#[test]
fn v50_a_dry_run_tells_the_documents_report_and_changes_nothing() {
    let world = World::new();
    gateway(&world);
    let before = world.db.stats().unwrap();
    let report = collapse(&run(&world, Pass::Collapse, &MaintainOptions::default()));
    assert!(report.dry_run && report.totals.run_id.is_none());
    let plan = [
        report.scanned_profiles,
        report.operational_profiles,
        report.unique_signatures,
        report.duplicate_groups,
        report.duplicates_found,
        report.exact_duplicate_groups,
        report.token_duplicate_groups,
        report.fuzzy_duplicate_groups,
    ];
    assert_eq!(plan, [4, 3, 1, 1, 2, 1, 0, 0]);
    let totals = &report.totals;
    assert_eq!([totals.groups_collapsed, totals.duplicates_removed, totals.reinforcements_applied], [0; 3]);
    assert_eq!(report.samples[0].signature, "gateway status <num> apps pending checked <datetime>");
    assert_eq!(world.db.stats().unwrap().memories, before.memories);
}

#[test]
fn v51_a_live_run_collapses_once() {
    let world = World::new();
    let [first, second, third, tea] = gateway(&world);
    let done = live(&world, Pass::Collapse);
    let report = collapse(&done);
    assert_eq!((report.totals.groups_collapsed, report.totals.duplicates_removed), (1, 2));
    assert_eq!((report.totals.reinforcements_applied, done.tombstoned), (2, 2));
    assert_eq!((report.duplicate_groups, report.duplicates_found), (1, 2), "the plan, as in the dry run");
    assert_eq!(world.row(first).reinforcement_count, 3);
    assert_eq!(world.live(), [first, tea]);
    for id in [second, third] {
        let row = world.row(id);
        assert_eq!((row.state, row.superseded_by()), (State::Limbo, Some(first)));
    }
    assert_eq!(world.list_in(Scope::Shared, State::Limbo).len(), 2);
    let told = world.ns.history(first.to_string()).unwrap();
    let signatures: Vec<_> =
        told.events.iter().filter_map(|event| event.evidence.signature.as_deref()).collect();
    let signature = "op-1 gateway status <num> apps pending checked <datetime>";
    assert!(signatures.contains(&signature), "the journal names the normalizer (DEDUP-1): {signatures:?}");
    let again = collapse(&live(&world, Pass::Collapse));
    assert_eq!((again.duplicate_groups, again.totals.duplicates_removed), (0, 0));
}

#[test]
fn v45_v46_v47_reinforcement_moves_and_saturates() {
    let world = World::new();
    let stays = world.add(counted("status 1", Significance::Important, 2)).id;
    // A count of 0 cannot be stored; it counts as 1 (DEDUP-17).
    for (number, count) in [3, 1, 1, 1].into_iter().enumerate() {
        world.add(counted(&format!("status {}", 10 + number), Significance::Routine, count));
        world.advance("1s");
    }
    let totals = collapse(&live(&world, Pass::Collapse)).totals;
    assert_eq!((totals.duplicates_removed, totals.reinforcements_applied), (4, 6), "V-45");
    assert_eq!(world.row(stays).reinforcement_count, 8);
    let core = world.add(counted("queue 5 core", Significance::Core, 5)).id;
    world.add(counted("queue 6 core", Significance::Routine, 3));
    world.add(counted("queue 7 core", Significance::Routine, 2));
    let totals = collapse(&live(&world, Pass::Collapse)).totals;
    assert_eq!((totals.duplicates_removed, totals.reinforcements_applied), (2, 5), "V-46");
    assert_eq!(world.row(core).reinforcement_count, 10);
    let full = world.add(counted("uptime 1 full", Significance::Core, i64::from(u32::MAX))).id;
    world.add(profile("uptime 2 full"));
    live(&world, Pass::Collapse);
    assert_eq!(world.row(full).reinforcement_count, u32::MAX, "V-47");
}

#[test]
fn v48_v217_protected_rows_stay_and_shielded_ones_do_not() {
    let world = World::new();
    let stays = world.add(counted("alert 1 x", Significance::Core, 1)).id;
    let mut pinned = profile("alert 2 x");
    pinned.fields.pinned = Some(true);
    let pinned = world.add(pinned).id;
    let mut shielded = profile("alert 3 x");
    shielded.fields.protected_until = Some(world.ahead("30d")).into();
    let shielded = world.add(shielded).id;
    let pass = live(&world, Pass::Collapse);
    let report = collapse(&pass);
    assert_eq!((report.totals.duplicates_removed, report.protected_skipped), (1, 1));
    assert_eq!(world.live(), [stays, pinned], "V-217: {shielded} is gone");
    let removed = world.ns.explain(shielded.to_string()).unwrap().removed.unwrap();
    assert_eq!(
        (removed.run, removed.rule),
        (pass.run, Some(RuleId::COLLAPSE)),
        "MODEL-31: of a row in limbo too"
    );
    assert_eq!(world.row(pinned).reinforcement_count, 1);
}

type Joined = (Option<Vec<String>>, Option<Vec<Entity>>);

fn joined(category: &str, role: &str) -> Joined {
    let entity = Entity { name: "e1".to_owned(), role: role.to_owned() };
    (Some(vec![category.to_owned()]), Some(vec![entity]))
}

#[test]
fn v54_the_longest_life_of_one_writer_stays() {
    let world = World::at(10);
    let stays = counted("metric 1", Significance::Core, 1).expiry(Expiry::At(ms(100)));
    let stays = world.add(stays).id;
    world.add(profile("metric 2"));
    live(&world, Pass::Collapse);
    assert_eq!((world.live(), world.row(stays).expires_at), (vec![stays], None));
}

#[test]
fn v56_all_links_stay() {
    let world = World::at(10);
    let near = world.add(text("near")).id;
    let mut canonical = counted("metric 1", Significance::Core, 1);
    (canonical.categories, canonical.entities) = joined("c0", "mentioned");
    let stays = world.add(canonical).id;
    let mut loser = profile("metric 2").key("second").tag("t");
    (loser.categories, loser.entities) = joined("c1", "subject");
    loser.links = Some(vec![Link { to: near, relation: "about".to_owned() }]);
    let gone = world.add(loser).id;
    let mut points = text("points at what goes");
    points.links = Some(vec![Link { to: gone, relation: "see".to_owned() }]);
    let points = world.add(points).id;
    live(&world, Pass::Collapse);
    let row = world.row(stays);
    assert_eq!(row.categories, ["c0", "c1"], "V-56");
    let roles: Vec<_> = row.entities.iter().map(|entity| entity.role.as_str()).collect();
    assert_eq!(roles, ["mentioned", "subject"]);
    assert_eq!(row.links, [Link { to: near, relation: "about".to_owned() }]);
    assert_eq!(row.tags, ["t"]);
    assert_eq!(world.row(points).links, [Link { to: stays, relation: "see".to_owned() }]);
    let answer = world.row("second");
    assert_eq!((answer.id, answer.text.as_str()), (stays, "metric 2"), "a key answers with its own text");
}

/// Nobody is told that there is nothing to do where nobody has looked (MODEL-34).
#[test]
fn a_pass_whose_call_is_over_before_it_has_looked_says_so() {
    let world = World::new();
    world.ns.add_all((0..40).map(|n| profile(&format!("count {n}"))).collect(), &Default::default()).unwrap();
    for options in [MaintainOptions::default(), MaintainOptions::live()] {
        let options = options.passes([Pass::Collapse]);
        let looked = |options: &MaintainOptions| {
            let passes = world.ns.maintain_with(options).unwrap().passes;
            passes.iter().map(|pass| (pass.planned > 0, pass.cut_short)).collect::<Vec<_>>()
        };
        assert_eq!(looked(&MaintainOptions { max_rows: Some(0), ..options.clone() }), [(false, true)]);
        assert_eq!(looked(&options), [(true, false)]);
    }
}

#[test]
fn v184_the_destruction_budget_cuts_the_plan() {
    let world = World::new();
    let drafts = (0..1_200).map(|n| profile(&format!("service s{} count {n}", letters(n % 600)))).collect();
    world.ns.add_all(drafts, &Default::default()).unwrap();
    let first = live(&world, Pass::Collapse);
    assert_eq!((first.planned, first.tombstoned, first.budget_exhausted), (600, 500, true));
    let second = live(&world, Pass::Collapse);
    assert_eq!((second.planned, second.tombstoned, second.budget_exhausted), (100, 100, false));
    let world = World::new();
    let drafts = (0..1_200).map(|n| profile(&format!("service s{} count {n}", letters(n % 300)))).collect();
    world.ns.add_all(drafts, &Default::default()).unwrap();
    let first = collapse(&live(&world, Pass::Collapse)).totals;
    assert_eq!(
        (first.groups_collapsed, first.duplicates_removed),
        (167, 500),
        "the cut falls inside a group"
    );
    let second = live(&world, Pass::Collapse);
    assert_eq!((second.planned, second.tombstoned), (400, 400));
    let raised = MaintainOptions { destroy_max: Some(0), ..MaintainOptions::live() };
    world.add(profile("service s count 1"));
    world.add(profile("service s count 2"));
    assert_eq!(run(&world, Pass::Collapse, &raised).tombstoned, 0);
}

/// MODEL-35: a dry run tells what a live one would do. It gave each pass the whole budget, and did not say how much was cut.
#[test]
fn model_35_a_dry_run_is_cut_as_a_live_one_is() {
    let world = World::new();
    let policy = "budget.floor = 3\nbudget.share = 0.0\nsweeper.short_term_cap = 1\npurge.per_write = 0";
    world.db.set_policy(policy, Syntax::Toml).unwrap();
    for at in 0..5 {
        world.add(text(&format!("over {at}")).expiry(span("1h")));
    }
    let drafts = (0..4).map(|n| profile(&format!("service s{} count {n}", letters(n % 2)))).collect();
    world.ns.add_all(drafts, &Default::default()).unwrap();
    for at in 0..4 {
        world.add(text(&format!("short {}", letters(at))).tier(Tier::Working));
    }
    world.advance("2h");
    let passes = [Pass::Expire, Pass::Collapse, Pass::Cap];
    let told = |options: MaintainOptions| {
        let report = world.db.maintain_with(&options.passes(passes)).unwrap();
        report.passes.iter().map(|pass| (pass.planned, pass.cut, pass.budget_exhausted)).collect::<Vec<_>>()
    };
    let dry = told(MaintainOptions::default());
    assert_eq!(dry, [(5, 0, false), (2, 0, false), (3, 2, true)], "what is over is not counted");
    let before = world.live().len();
    assert_eq!(told(MaintainOptions::live()), dry);
    assert_eq!(world.live().len(), before - 3);
}

/// A number in letters: digits would be the same to the signature.
fn letters(number: usize) -> String {
    let letter = |at: usize| char::from(b'a' + u8::try_from(at % 26).unwrap());
    [letter(number), letter(number / 26), letter(number / 676), 'q'].iter().collect()
}

#[test]
fn v238_an_undo_brings_rows_back_with_counts_and_links() {
    let world = World::new();
    let near = world.add(text("near")).id;
    let stays = world.add(counted("status 1", Significance::Important, 2).vector(axis(0))).id;
    let ids: Vec<MemoryId> = [3, 1, 1, 1]
        .iter()
        .enumerate()
        .map(|(n, count)| {
            let words = format!("status {}", n + 2);
            let mut draft = counted(&words, Significance::Routine, *count).key(format!("k{n}"));
            draft.links = Some(vec![Link { to: near, relation: format!("r{n}") }]);
            world.add(draft.vector(axis(n % 4)).tag(format!("t{n}"))).id
        })
        .collect();
    let before: Vec<_> = ids.iter().map(|id| world.row(*id)).collect();
    let canonical = world.row(stays);
    let report = world.db.maintain_with(&MaintainOptions::live().passes([Pass::Collapse])).unwrap();
    assert_eq!(world.row(stays).reinforcement_count, 8);
    assert_eq!(world.find(axis(1), 10), [stays], "what went takes no slot of a result");
    world.advance("6d");
    let undone = world.ns.undo(report.run.unwrap()).unwrap();
    assert_eq!((undone.restored, undone.lost), (4, vec![]));
    let after = world.row(stays);
    assert_eq!(after.reinforcement_count, 2);
    assert_eq!((&after.links, holders(&after)), (&canonical.links, holders(&canonical)));
    for was in &before {
        let row = world.row(was.id);
        assert_eq!((row.state, &row.links, &row.keys), (State::Live, &was.links, &was.keys));
        assert_eq!(row.reinforcement_count, was.reinforcement_count);
        assert_eq!(holders(&row), holders(was));
        assert_eq!(world.row(&was.keys[0]).id, was.id);
    }
    assert_eq!(world.find(axis(1), 10).len(), 5, "vectors are back");
    assert_eq!(world.ns.undo(report.run.unwrap()).unwrap().restored, 0, "twice is a no-op");
    let report = world.db.maintain_with(&MaintainOptions::live().passes([Pass::Collapse])).unwrap();
    world.advance("8d");
    let late = world.ns.undo(report.run.unwrap()).unwrap_err();
    assert_eq!(late.kind(), ErrorKind::Conflict, "{late}");
}

#[test]
fn limbo_is_erased_at_its_horizon_and_forgetting_does_not_wait_for_it() {
    let world = World::new();
    let [first, second, third, _] = gateway(&world);
    live(&world, Pass::Collapse);
    world.advance("6d");
    let report = live(&world, Pass::Limbo);
    assert_eq!((report.changed, report.run), (0, None), "what wrote nothing is no run");
    let forgotten = world.ns.forget(Forget::names([third.to_string()])).unwrap();
    assert_eq!((forgotten.forgotten, forgotten.tombstones), (1, vec![third]));
    let stone = world.tombstone(third);
    assert_eq!((stone.reason, stone.erased_at), (TombstoneReason::Collapsed, Some(world.now())));
    world.advance("1d");
    assert_eq!(run(&world, Pass::Limbo, &MaintainOptions::default()).planned, 1);
    let report = live(&world, Pass::Limbo);
    assert_eq!((report.changed, report.run.is_some()), (1, true));
    let tombstone = world.tombstone(second);
    assert_eq!((tombstone.reason, tombstone.replaced_by), (TombstoneReason::Collapsed, Some(first)));
    assert_eq!(world.db.stats().unwrap().memories.limbo, 0);
    assert!(!world.db.stats().unwrap().purge_horizon.is_empty(), "reads of before it are bounded (MODEL-18)");
    assert_eq!(world.row(first).reinforcement_count, 3, "what moved stays");
}

#[test]
fn v175_forgetting_what_stands_for_others_erases_them_too() {
    let world = World::new();
    let [first, second, third, tea] = gateway(&world);
    live(&world, Pass::Collapse);
    let forgotten = world.forget_id(first);
    assert_eq!(forgotten.tombstones.len(), 3);
    assert!([first, second, third].iter().all(|id| matches!(world.get(id).unwrap(), Got::Tombstone(_))));
    assert_eq!(world.live(), [tea]);
}

#[test]
fn a_key_forgotten_while_its_row_is_in_limbo_does_not_come_back() {
    let world = World::new();
    let stays = world.add(counted("status 1", Significance::Core, 1).key("a")).id;
    let gone = world.add(profile("status 2").key("b")).id;
    let report = world.db.maintain_with(&MaintainOptions::live().passes([Pass::Collapse])).unwrap();
    assert_eq!(world.row("b").id, stays);
    let forgotten = world.forget(&["b"]);
    assert_eq!((forgotten.forgotten, forgotten.detached), (1, 0), "no other write says that");
    assert!(matches!(world.get(gone).unwrap(), Got::Tombstone(_)), "its last holder was that of the key");
    let undone = world.ns.undo(report.run.unwrap()).unwrap();
    assert_eq!((undone.restored, undone.lost.len()), (0, 1));
    assert_eq!(world.row(stays).keys, ["a"]);
}

#[test]
fn a_row_can_be_restored_by_itself() {
    let world = World::new();
    let [first, second, _, _] = gateway(&world);
    live(&world, Pass::Collapse);
    assert_eq!(world.ns.restore(second.to_string()).unwrap().id, second);
    assert_eq!(world.row(second).state, State::Live);
    assert_eq!(world.row(first).reinforcement_count, 2);
    assert_eq!(world.ns.update(second.to_string(), Default::default()).unwrap().id, second);
}

#[test]
fn what_was_merged_twice_comes_back_from_the_first_run() {
    let world = World::new();
    let low = world.add(counted("status 1", Significance::Noteworthy, 4).key("low")).id;
    let gone = world.add(profile("status 2").key("gone")).id;
    let first = world.db.maintain_with(&MaintainOptions::live().passes([Pass::Collapse])).unwrap();
    let top = world.add(counted("status 3", Significance::Core, 1).key("top")).id;
    world.db.maintain_with(&MaintainOptions::live().passes([Pass::Collapse])).unwrap();
    assert_eq!(world.row(top).keys, ["gone", "low", "top"]);
    assert_eq!(world.row(top).reinforcement_count, 6);
    let undone = world.ns.undo(first.run.unwrap()).unwrap();
    assert_eq!((undone.restored, undone.lost), (1, vec![]));
    assert_eq!(world.row(gone).state, State::Live);
    assert_eq!(world.row("gone").id, gone);
    assert_eq!(
        (world.row(top).keys, world.row(top).reinforcement_count),
        (vec!["low".into(), "top".into()], 5)
    );
    assert_eq!(world.row(low).state, State::Limbo);
}

#[test]
fn v290_a_plan_of_another_policy_is_refused() {
    let world = World::new();
    gateway(&world);
    let plan = world.ns.plan(&MaintainOptions::default().passes([Pass::Collapse])).unwrap();
    assert_eq!((plan.planned(), plan.report().planned), (2, 2));
    world.db.set_policy("collapse.max_samples = 3", Syntax::Toml).unwrap();
    let why = world.ns.carry_out(&plan, &MaintainOptions::live()).unwrap_err();
    assert!(why.kind() == ErrorKind::Conflict && why.to_string().contains("policy_changed"), "{why}");
    assert_eq!(world.live().len(), 4, "nothing was written");
    let plan = world.ns.plan(&MaintainOptions::default().passes([Pass::Collapse])).unwrap();
    world.advance("25h");
    let why = world.ns.carry_out(&plan, &MaintainOptions::live()).unwrap_err();
    assert!(why.to_string().contains("plan_expired"), "{why}");
}

/// The handle of a namespace maintains that namespace and no other, and the handle of the database all of them.
#[test]
fn each_handle_maintains_what_it_is_a_handle_of() {
    let world = World::new();
    gateway(&world);
    let other = world.db.namespace("other").unwrap();
    other
        .add_all([4, 7].map(|n| profile(&format!("queue: {n} jobs"))).to_vec(), &Default::default())
        .unwrap();
    let live = |of: &Namespace| of.stats().unwrap().memories.live;
    let options = MaintainOptions::live().passes([Pass::Collapse]);

    assert_eq!(world.ns.maintain_with(&options).unwrap().passes[0].tombstoned, 2);
    assert_eq!((live(&world.ns), live(&other)), (2, 2));
    assert_eq!(world.db.maintain_with(&options).unwrap().passes[0].tombstoned, 1);
    assert_eq!((live(&world.ns), live(&other)), (2, 1));
    assert_eq!(world.db.stats().unwrap().memories.live, 3);

    // The short forms do the work of the stages of the policy, as the command line does.
    world.db.set_policy("sweeper.stages = [\"collapse\"]", Syntax::Toml).unwrap();
    other.add(profile("queue: 9 jobs")).unwrap();
    assert_eq!(world.ns.maintain().unwrap().passes[0].tombstoned, 0);
    let done = other.maintain().unwrap();
    assert_eq!((done.passes[0].pass, done.passes[0].tombstoned, live(&other)), (Pass::Collapse, 1, 1));
    assert!(world.db.maintain().unwrap().run.is_none(), "nothing is left to do");
}

#[test]
fn a_plan_is_of_one_pass_and_one_namespace() {
    let world = World::new();
    gateway(&world);
    for passes in [&[][..], &[Pass::Collapse, Pass::Snapshots]] {
        let why = world.ns.plan(&MaintainOptions::live().passes(passes)).unwrap_err();
        assert!(why.kind() == ErrorKind::Invalid && why.to_string().starts_with("passes: "), "{why}");
    }
    let options = MaintainOptions::live().passes([Pass::Collapse]);
    let plan = world.ns.plan(&options).unwrap();
    let other = world.db.namespace("other").unwrap();
    let why = other.carry_out(&plan, &options).unwrap_err();
    assert_eq!(why.to_string(), "plan: must be of the namespace other (got default)");
    let dry = world.ns.carry_out(&plan, &MaintainOptions::default()).unwrap();
    assert_eq!(
        (dry.planned > 0, dry.changed, dry.run),
        (true, 0, None),
        "a dry run only says what there is to do"
    );
    assert_eq!(world.ns.carry_out(&plan, &options).unwrap().tombstoned, 2);
}

/// A pass carries out its own plan at once; how long plans are kept is nothing to it.
#[test]
fn a_short_life_of_plans_stops_no_pass() {
    let world = World::new();
    gateway(&world);
    world.db.set_policy("gc.plan_ttl = \"1ms\"\nplan.max_rows = 1", Syntax::Toml).unwrap();
    world.db.clone().close().unwrap();
    let db = world.builder().clock(Ticking(world.clock.clone())).open(world.path()).unwrap();
    let report = db.maintain_with(&MaintainOptions::live().passes([Pass::Collapse])).unwrap();
    assert_eq!((report.passes[0].tombstoned, report.passes[0].left), (2, 0));
}

/// A clock that goes on whenever it is asked.
struct Ticking(ManualClock);

impl Clock for Ticking {
    fn now(&self) -> Time {
        self.0.advance(span("10ms"));
        self.0.now()
    }
}

#[test]
fn rows_that_changed_since_the_plan_are_left_alone() {
    let world = World::new();
    let [first, second, third, _] = gateway(&world);
    let plan = world.ns.plan(&MaintainOptions::default().passes([Pass::Collapse])).unwrap();
    world.ns.pin(second.to_string(), true).unwrap();
    let report = world.ns.carry_out(&plan, &MaintainOptions::live()).unwrap();
    assert_eq!((report.tombstoned, report.skipped), (1, 1));
    assert_eq!(world.row(second).state, State::Live);
    let totals = collapse(&report).totals;
    assert_eq!((totals.groups_collapsed, totals.reinforcements_applied), (1, 1), "DEDUP-19");
    assert_eq!(world.row(first).reinforcement_count, 2);
    assert_eq!(world.row(third).state, State::Limbo);
    // Its canonical row has changed: the group is another.
    let world = World::new();
    let [first, ..] = gateway(&world);
    let plan = world.ns.plan(&MaintainOptions::default().passes([Pass::Collapse])).unwrap();
    world.ns.reinforce(first.to_string(), 1).unwrap();
    let report = world.ns.carry_out(&plan, &MaintainOptions::live()).unwrap();
    assert_eq!((report.tombstoned, report.skipped), (0, 2));
}

#[test]
fn a_run_that_stops_early_goes_on_and_tells_the_same_totals() {
    let build = || {
        let world = World::new();
        let drafts = (0..400).map(|n| profile(&format!("service s{} count {n}", letters(n % 40)))).collect();
        world.ns.add_all(drafts, &Default::default()).unwrap();
        world
    };
    let whole = build();
    let expected = live(&whole, Pass::Collapse);
    let world = build();
    let part = MaintainOptions { max_rows: Some(67), ..MaintainOptions::live() };
    let mut reports = Vec::new();
    for _ in 0..10 {
        let report = run(&world, Pass::Collapse, &part);
        let left = report.left;
        reports.push(report);
        if left == 0 {
            break;
        }
        assert!(world.db.stats().unwrap().memories.limbo > 0);
    }
    assert_eq!(reports.len(), 6, "360 rows in runs of 67");
    let last = reports.last().unwrap();
    assert!(last.resumed && !reports[0].resumed);
    let mut totals = collapse(last);
    let mut wanted = collapse(&expected);
    // Samples are of what was left to do, and every world draws its own runs.
    (totals.samples, wanted.samples) = (vec![], vec![]);
    assert_eq!(totals.totals.run_id, collapse(&reports[0]).totals.run_id, "one run");
    totals.totals.run_id = wanted.totals.run_id;
    assert_eq!(totals, wanted);
    assert_eq!((last.planned, last.tombstoned), (expected.planned, expected.tombstoned));
    let stays = |world: &World| {
        let rows = world.list_in(Scope::Any, State::Live);
        rows.iter().map(|row| (row.text.clone(), row.reinforcement_count)).collect::<Vec<_>>()
    };
    assert_eq!(
        stays(&world),
        stays(&whole),
        "what is left does not depend on where slices are cut (MODEL-34)"
    );
    let undone = world.ns.undo(collapse(last).totals.run_id.unwrap()).unwrap();
    assert_eq!(undone.restored, 360, "and one undo takes all of it back");
}

#[test]
fn without_a_horizon_nothing_waits() {
    let world = World::new();
    world.db.set_policy("undo.horizon = 0", Syntax::Toml).unwrap();
    let [first, second, _, _] = gateway(&world);
    let report = collapse(&live(&world, Pass::Collapse));
    assert_eq!(report.totals.duplicates_removed, 2, "the counts are the same (DEDUP-21)");
    assert_eq!(world.tombstone(second).replaced_by, Some(first));
    assert_eq!(world.db.stats().unwrap().memories.limbo, 0);
}

#[test]
fn bad_options_are_refused() {
    let world = World::new();
    let refused =
        |options: MaintainOptions| world.db.maintain_with(&options.passes([Pass::Collapse])).unwrap_err();
    let samples = refused(MaintainOptions { max_samples: Some(10_001), ..MaintainOptions::default() });
    assert!(samples.to_string().contains("max_samples"), "{samples}");
    gateway(&world);
    let none = world.ns.plan(&MaintainOptions::default().passes([Pass::Index])).unwrap_err();
    assert_eq!(none.kind(), ErrorKind::Invalid);
    let nowhere =
        world.db.namespace("nowhere").unwrap().plan(&MaintainOptions::default().passes([Pass::Collapse]));
    assert_eq!(nowhere.unwrap_err().kind(), ErrorKind::NotFound);
    let unknown = world.ns.undo("0198c0de-0000-7000-8000-000000000001".parse().unwrap());
    assert!(matches!(unknown.unwrap_err().kind(), ErrorKind::NotFound));
    let over = MaintainOptions { budget: Some(Span::ZERO), ..MaintainOptions::live() };
    assert_eq!(run(&world, Pass::Collapse, &over).tombstoned, 0);
}

#[test]
fn v55_the_function_of_the_document_has_its_options() {
    let world = World::new();
    gateway(&world);
    let options = ProfileCollapseOptions { batch_size: 10, max_sample_groups: 0, ..Default::default() };
    let report = collapse_operational_profile_snapshots(&world.db, &options).unwrap();
    assert_eq!((report.dry_run, report.duplicates_found, report.samples.len()), (true, 2, 0));
    let refused = ProfileCollapseOptions { batch_size: 0, ..Default::default() };
    let why = collapse_operational_profile_snapshots(&world.db, &refused).unwrap_err();
    assert!(why.to_string().contains("batch_size"), "{why}");
    let options = ProfileCollapseOptions { dry_run: false, ..Default::default() };
    let report = collapse_operational_profile_snapshots(&world.db, &options).unwrap();
    assert_eq!((report.dry_run, report.totals.duplicates_removed, report.samples.len()), (false, 2, 1));
    let empty = World::new();
    assert!(collapse_operational_profile_snapshots(&empty.db, &Default::default()).unwrap().dry_run);
}

#[test]
fn v102_the_vector_pass_is_off_below_zero_and_refuses_what_is_no_similarity() {
    let world = World::new();
    world.add(text("the cat sat").vector([1.0, 0.0, 0.0, 0.0]));
    world.add(text("the cat sat down").vector([0.999, 0.01, 0.0, 0.0]));
    let dedup = |similarity| world.db.dedup(&DedupOptions { similarity, ..DedupOptions::default() });
    let off = dedup(-1.0).unwrap();
    assert_eq!((off.memories_seen, off.clusters_found), (0, 0));
    assert!(dedup(f64::NAN).is_err() && dedup(1.5).is_err());
    let tiers = vec![Tier::Working];
    let other = world.db.dedup(&DedupOptions { tiers, ..DedupOptions::default() }).unwrap();
    assert_eq!(other.clusters_found, 0);
    let done = dedup(0.0).unwrap();
    assert_eq!((done.clusters_found, done.tombstoned, done.actions[0].size), (1, 1, 2));
    assert_eq!(world.live().len(), 1);
    let job = DedupJob { interval: Span::ZERO, options: DedupOptions::default() };
    let (_stop, stopped) = std::sync::mpsc::channel();
    job.run(&world.db, &stopped, |_| panic!("DEDUP-48: an interval of nothing runs nothing")).unwrap();
}

#[test]
fn v263_v250_a_cluster_is_one_row_with_all_keys_until_it_is_restored() {
    let world = World::new();
    let first = world.add(text("the cat sat on the mat").key("a").vector([1.0, 0.0, 0.0, 0.0])).id;
    let second = world.add(text("the cat sat on a mat").key("b").vector([0.999, 0.01, 0.0, 0.0])).id;
    let report = world.db.maintain_with(&MaintainOptions::live().passes([Pass::VectorDuplicates])).unwrap();
    assert_eq!(report.passes[0].changed, 1);
    assert_eq!(report.passes[1].pass, Pass::Supersession, "the repair follows (DEDUP-46)");
    let [stays] = world.live()[..] else { panic!("one row") };
    let gone = if stays == first { second } else { first };
    let row = world.row(stays);
    assert_eq!((row.keys, row.reinforcement_count), (vec!["a".into(), "b".into()], 1));
    assert_eq!(world.row("a").text, "the cat sat on the mat", "a key answers with its own text (DEDUP-4)");
    assert_eq!(world.row("b").text, "the cat sat on a mat");
    assert_eq!(world.row(gone).state, State::Superseded);
    let undone = world.ns.undo(report.run.unwrap()).unwrap();
    assert_eq!((undone.restored, undone.lost), (1, vec![]));
    assert_eq!((world.row(first).keys, world.row(second).keys), (vec!["a".into()], vec!["b".into()]));
}

#[test]
fn v189_v190_histories_are_pruned_to_one_a_day() {
    let world = World::new();
    let taken = |at: &str| {
        let mut draft = text(&format!("profile as of {at}")).kind(Kind::Snapshot).agent("profile-mgr");
        draft.fields.metadata = Some(serde_json::json!({ "timestamp": at }));
        draft
    };
    let day = ["16:43:35", "17:42:17", "22:49:36", "23:05:49"];
    // From before there were periods: as they stood, side by side.
    let rows = day.map(|at| taken(&format!("2026-01-02T{at}Z")));
    let mut ids: Vec<MemoryId> = Vec::new();
    for (n, draft) in rows.into_iter().chain([taken("no time at all")]).enumerate() {
        let mut draft = draft;
        draft.fields.kind = Some(Kind::Knowledge);
        let id = world.add(draft).id;
        let mut patch = Patch::default();
        patch.fields.kind = Some(Kind::Snapshot);
        world.ns.update(id.to_string(), patch).unwrap();
        assert_eq!(ids.len(), n);
        ids.push(id);
    }
    let dry = world.ns.prune_history(None, true).unwrap();
    assert_eq!((dry.planned, dry.deleted, dry.skipped), (3, 0, 1));
    assert_eq!(world.ns.memory_stats().unwrap().health.last_prune, None);
    let report = world.db.maintain().unwrap();
    assert!(
        report.passes.iter().any(|pass| pass.pass == Pass::Snapshots && pass.tombstoned == 3),
        "once, by itself"
    );
    assert_eq!(world.live(), [ids[3], ids[4]]);
    assert!(world.ns.memory_stats().unwrap().health.last_prune.is_some());
    assert_eq!(world.ns.prune_history(Some("profile"), false).unwrap().deleted, 0, "V-189: idempotent");
    let again = world.db.maintain().unwrap();
    assert!(
        again.passes.iter().all(|pass| pass.pass != Pass::Snapshots),
        "the mark is in the store (DEDUP-69)"
    );
    let last = &world.ns.stats().unwrap().passes["snapshots"];
    assert!(!last.open && last.report["deleted"] == 3, "a run without anything to do writes nothing");
}

#[test]
fn messages_behind_a_merged_row_go_with_the_row_that_took_it_in() {
    let world = World::new();
    let message = |key: &str, tag: &str| {
        let mut draft = text("the secret word is heron").kind(Kind::Message).key(key).tag(tag);
        draft.fields.author_kind = Some(oubliette::memory::AuthorKind::Human).into();
        draft.fields.channel = Some("ops".to_owned()).into();
        draft
    };
    let how = oubliette::WriteOptions { no_dedup: true, ..Default::default() };
    let drafts = vec![message("a", "x"), message("b", "y")];
    let ids: Vec<MemoryId> = world.ns.add_all(drafts, &how).unwrap().iter().map(|o| o.id).collect();
    assert_eq!(live(&world, Pass::NearDuplicates).tombstoned, 1);
    world.advance("8d");
    assert_eq!(live(&world, Pass::Limbo).changed, 1);
    world.check();
    world.forget_id(ids[0]);
    let events = world.ns.events(&oubliette::memory::EventQuery::default()).unwrap().items;
    assert_eq!(events.len(), 2);
    assert!(events.iter().all(|event| event.payload.is_none() && event.normalized.is_none()), "{events:?}");
}

/// LIFE-71: a pass unites rows only where no key answers past the end that a caller set for it.
#[test]
fn life_71_no_pass_lengthens_the_end_of_a_key() {
    for keyed in [false, true] {
        for canonical in ["long", "short"] {
            let world = World::new();
            let draft = |name: &str, words| {
                let rank = if name == canonical { Significance::Core } else { Significance::Routine };
                let mut draft = counted(words, rank, 1);
                draft.key = keyed.then(|| name.to_owned());
                draft
            };
            let long = world.add(draft("long", "metric 1")).id;
            let short = world.add(draft("short", "metric 2").expiry(Expiry::After(span("1h")))).id;
            let report = live(&world, Pass::Collapse);
            assert_eq!((report.planned, report.changed), if keyed { (0, 0) } else { (1, 1) }, "{canonical}");
            world.advance("1h");
            assert_eq!(world.live().len(), 1);
            if keyed {
                assert_eq!(world.row(short).state, State::Expired);
                assert!(world.ns.get("short").unwrap().is_none_or(|row| row.state == State::Expired));
                assert_eq!(world.row(long).expires_at, None);
            }
            world.check();
        }
    }
}

/// LIFE-71: what can't go into the memory that stays goes together, whichever end is ranked first, and a second run finds nothing.
#[test]
fn life_71_duplicates_of_each_end_are_united() {
    let passes = [
        (Pass::Collapse, "metric", Kind::Profile),
        (Pass::NearDuplicates, "the cat sat on the mat", Kind::Knowledge),
        (Pass::VectorDuplicates, "the cat sat on the mat", Kind::Knowledge),
    ];
    for (pass, words, kind) in passes {
        for ends in
            [["1d", "2d", "1d", "2d", "", ""], ["", "", "2d", "1d", "2d", "1d"], ["1d", "", "", "", "", ""]]
        {
            let world = World::new();
            let how = oubliette::WriteOptions { no_dedup: true, ..Default::default() };
            let say = |(at, end): (usize, &&str)| {
                let number = if pass == Pass::Collapse { format!(" {at}") } else { String::new() };
                let draft = text(&format!("{words}{number}")).kind(kind.clone()).key(format!("k{at}"));
                let draft = draft.vector(axis(0).to_vec());
                if end.is_empty() { draft } else { draft.expiry(Expiry::After(span(end))) }
            };
            world.ns.add_all(ends.iter().enumerate().map(say).collect(), &how).unwrap();
            let different: std::collections::BTreeSet<&str> = ends.into_iter().collect();
            let report = live(&world, pass);
            let gone = (ends.len() - different.len()) as u64;
            assert_eq!((report.planned, report.changed), (gone, gone), "{pass:?}, {ends:?}");
            assert_eq!(world.live().len(), different.len());
            for (at, end) in ends.iter().enumerate() {
                let expires_at = (!end.is_empty()).then(|| world.ahead(end));
                assert_eq!(world.row(format!("k{at}")).expires_at, expires_at, "{pass:?}, {ends:?}: k{at}");
            }
            assert_eq!(live(&world, pass).planned, 0);
            world.check();
            world.ns.undo(report.run.unwrap()).unwrap();
            assert_eq!(world.live().len(), ends.len());
        }
    }
}
