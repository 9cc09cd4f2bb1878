//! The destruction budget cuts a plan in its own order.

// MODEL-35.

use proptest::prelude::*;

use super::bed::id;
use crate::hygiene::plan::{Action, Group, Loser, Phase, Plan, Pruning, Similar};
use crate::model::{MemoryId, TombstoneReason};
use crate::store::PartId;

fn loser(visible: bool) -> Loser {
    Loser { id: id(9), version: 1, count: 1, happened_at: None, visible }
}

fn group(losers: Vec<Loser>) -> Action {
    let (phase, part) = (Phase::Exact, PartId(0));
    let signature = String::new();
    Action::Merge(Group { phase, part, signature, canonical: id(1), version: 1, losers, protected: 0 })
}

fn cluster(visible: Vec<bool>) -> Action {
    let member = |visible| Similar { id: id(9), version: 1, score: 0.99, visible };
    Action::Supersede { by: id(1), members: visible.into_iter().map(member).collect() }
}

fn plan(actions: Vec<Action>) -> Plan {
    Plan { actions, ..Plan::default() }
}

/// Rows that a plan removes, in order, as they are identified by their place in the plan.
fn removals(plan: &Plan) -> Vec<(MemoryId, bool)> {
    let of = |action: &Action| match action {
        Action::Merge(group) => group.losers.iter().map(|loser| (loser.id, loser.visible)).collect(),
        Action::Supersede { members, .. } => members.iter().map(|row| (row.id, row.visible)).collect(),
        Action::Retire { id, visible, .. } => vec![(*id, *visible)],
        Action::Prune(pruning) => vec![(pruning.id, true)],
        Action::Restore { .. } | Action::Adjust { .. } | Action::Repoint { .. } => Vec::new(),
    };
    plan.actions.iter().flat_map(of).collect()
}

#[test]
fn v184_the_cut_may_fall_inside_a_group() {
    for (groups, losers, left) in [(600, 1, 100), (300, 3, 400)] {
        let mut all = plan((0..groups).map(|_| group(vec![loser(true); losers])).collect());
        assert_eq!(all.cost(), groups as u64 * losers as u64);
        assert!(all.cut(500) && all.budget_exhausted);
        assert_eq!(all.cost(), 500);
        assert_eq!(groups as u64 * losers as u64 - all.cost(), left, "for the next run");
        let whole = all.actions.iter().filter(|action| action.cost() == losers as u64).count();
        assert_eq!((whole, all.actions.len()), if losers == 1 { (500, 500) } else { (166, 167) });
    }
}

#[test]
fn what_fits_is_not_cut() {
    let mut all = plan(vec![group(vec![loser(true); 2]), Action::Restore { id: id(3), version: 1 }]);
    let before = all.clone();
    assert!(!all.cut(2));
    assert_eq!(all, before);
    assert!(all.cut(0));
    assert_eq!((all.actions.len(), all.budget_exhausted), (0, true));
}

fn any_plan() -> impl Strategy<Value = Plan> {
    let retire = any::<bool>().prop_map(|visible| Action::Retire {
        id: id(0),
        version: 1,
        access_seq: None,
        visible,
        reason: TombstoneReason::SnapshotReplaced,
        replaced_by: None,
    });
    let merge = prop::collection::vec(any::<bool>(), 1..6)
        .prop_map(|losers| group(losers.into_iter().map(loser).collect()));
    let other = Just(Action::Restore { id: id(0), version: 1 });
    let supersede = prop::collection::vec(any::<bool>(), 1..6).prop_map(cluster);
    prop::collection::vec(prop_oneof![retire, merge, supersede, other], 0..12).prop_map(|actions| {
        let mut plan = plan(actions);
        // Each removal gets a name of its own.
        let mut n = 0_u8;
        for action in &mut plan.actions {
            match action {
                Action::Merge(group) => {
                    for loser in &mut group.losers {
                        n += 1;
                        loser.id = id(n);
                    }
                }
                Action::Supersede { members, .. } => {
                    for member in members {
                        n += 1;
                        member.id = id(n);
                    }
                }
                Action::Retire { id: of, .. } | Action::Prune(Pruning { id: of, .. }) => {
                    n += 1;
                    *of = id(n);
                }
                Action::Restore { .. } | Action::Adjust { .. } | Action::Repoint { .. } => {}
            }
        }
        plan
    })
}

proptest! {
    /// A plan that is cut is the beginning of the whole, costs what was allowed, and has no empty group.
    #[test]
    fn a_cut_plan_is_a_beginning(whole in any_plan(), budget in 0_u64..40) {
        let mut plan = whole.clone();
        let cut = plan.cut(budget);
        prop_assert_eq!(cut, whole.cost() > budget);
        prop_assert_eq!(plan.budget_exhausted, cut);
        prop_assert_eq!(plan.cost(), whole.cost().min(budget));
        let (all, kept) = (removals(&whole), removals(&plan));
        prop_assert!(all.starts_with(&kept));
        if cut {
            prop_assert!(all[kept.len()].1, "it ends before a visible row");
        } else {
            prop_assert_eq!(&plan, &whole);
        }
        let empty = |action: &Action| match action {
            Action::Merge(group) => group.losers.is_empty(),
            Action::Supersede { members, .. } => members.is_empty(),
            _ => false,
        };
        prop_assert!(!plan.actions.iter().any(empty));
    }
}
