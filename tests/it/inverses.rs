//! Each pass is carried out and taken back (LIFE-63): the export of every state afterwards is the export before. Where a pass has
//! no inverse, the row says why.

use crate::damage::store::{overwrite, tables};
use crate::world::{World, axis, span, text};
use oubliette::exchange::{Export, VectorsTo};
use oubliette::maintain::{MaintainOptions, Pass};
use oubliette::memory::{Expiry, Field, SupersedeMode, Tier};
use oubliette::policy::Syntax;
use oubliette::{Kind, MemoryId, Patch, Query, WriteOptions};
use serde_json::{Value, json};

/// What taking a pass back comes to.
#[derive(Clone, Copy, PartialEq)]
enum Inverse {
    /// Everything is as before.
    Whole,
    /// Everything is as before but for the versions, which tell readers that the row went and came back, and the numbers of
    /// holders, which are never given out again.
    ButVersions,
    /// As before, but for the end of the memories, which live on from the undo.
    ButEnds,
    /// There is none, because of this.
    None(&'static str),
}

const POLICY: &str = "sweeper.demote_after = '7d'\nsweeper.short_term_cap = 2\nsweeper.tombstone_ttl = '10d'\n\
    purge.per_write = 0\nundo.horizon = '7d'\nprune.enabled = true";

/// A pass, what taking it back comes to, and what gives it something to do.
type Story = (Pass, Inverse, fn(&World));

const PASSES: [Story; 22] = [
    (Pass::Fold, Inverse::None("a use has happened"), |world| {
        world.add(text("used").vector(axis(0)));
        world.ns.search(Query::vector(axis(0)).track(true)).unwrap();
    }),
    (Pass::Expire, Inverse::ButEnds, |world| {
        world.add(text("over").tier(Tier::Working));
        world.advance("73h");
    }),
    (Pass::Cap, Inverse::ButVersions, |world| {
        for at in 0..4 {
            world.add(text(&format!("short {at}")).tier(Tier::Working));
        }
    }),
    (Pass::Superseded, Inverse::None("what is older than the undo horizon is erased"), |world| {
        let [old, new] = ["old", "new"].map(|name| world.add(text(name)).id);
        world.supersede(old, new, SupersedeMode::Correction, None).unwrap();
        world.advance("20d");
    }),
    (Pass::Demote, Inverse::Whole, |world| {
        for at in 0..5 {
            world.add(text(&format!("little {at}")).importance(0.3).vector(axis(at % 4)));
        }
        world.advance("8d");
    }),
    (Pass::Snapshots, Inverse::ButVersions, |world| {
        let drafts = (1..4).map(|hour| {
            let stamp = json!({ "timestamp": format!("2026-01-01T0{hour}:00:00Z") });
            text(&format!("profile {hour}")).kind(Kind::Snapshot).metadata(stamp)
        });
        // They were written under a policy with shorter periods.
        world.db.set_policy("snapshot.period = '1h'", Syntax::Toml).unwrap();
        drafts.for_each(|draft| drop(world.add(draft)));
        world.db.set_policy(POLICY, Syntax::Toml).unwrap();
    }),
    (Pass::Collapse, Inverse::ButVersions, |world| {
        for apps in [4, 7, 9] {
            world.add(text(&format!("Gateway status: {apps} apps pending")).kind(Kind::Profile));
        }
    }),
    // Different ends and tiers, of which the longest and the most durable are kept while the rows are one.
    (Pass::Collapse, Inverse::ButVersions, |world| {
        for (apps, days) in [(4, "5d"), (7, "9d"), (9, "7d")] {
            let report = text(&format!("Gateway status: {apps} apps pending")).kind(Kind::Profile);
            world.add(report.expiry(span(days)));
        }
        for (apps, tier) in [(1, Tier::Working), (2, Tier::Semantic)] {
            world.add(text(&format!("Patrol status: {apps} rigs idle")).kind(Kind::Profile).tier(tier));
        }
    }),
    (Pass::VectorDuplicates, Inverse::ButVersions, |world| {
        for (name, days) in [("a tall tree", "5d"), ("a high tree", "9d")] {
            world.add(text(name).vector(axis(1)).expiry(span(days)));
        }
    }),
    (Pass::NearDuplicates, Inverse::ButVersions, |world| {
        world.ns.add_all(vec![text("the same"); 3], &apart()).unwrap();
    }),
    (Pass::VectorDuplicates, Inverse::ButVersions, |world| {
        for name in ["a tall tree", "a high tree"] {
            world.add(text(name).vector(axis(1)));
        }
    }),
    (Pass::Backfill, Inverse::Whole, |world| {
        for at in 0..7 {
            let id = world.add(text(&format!("unsure {at}"))).id;
            let mut patch = Patch::default();
            patch.fields.confidence = Field::Null;
            world.ns.update(id, patch).unwrap();
        }
    }),
    (Pass::Supersession, Inverse::None("what it mends is damage, which nobody wants back"), |world| {
        let [old, new] = ["old", "new"].map(|name| world.add(text(name).tag(name)).id);
        world.supersede(old, new, SupersedeMode::Correction, None).unwrap();
        world.forget_tag("new");
    }),
    (Pass::Promote, Inverse::Whole, |world| {
        for (at, length) in [1, 1, 30].into_iter().enumerate() {
            let said = format!("useful {at}, ").repeat(length);
            used(world, world.add(text(&said).tier(Tier::Working)).id);
        }
    }),
    (
        Pass::Embed,
        Inverse::None("a vector follows from a text; without an embedder there is none"),
        |world| {
            world.add(text("without a vector"));
        },
    ),
    (Pass::Prune, Inverse::ButVersions, |world| {
        for at in 0..3 {
            let chapter = text(&format!("chapter {at}")).kind(Kind::ChapterSummary);
            world.add(chapter.created_at(world.ago("40d")).vector(axis(at)));
        }
    }),
    (Pass::Cluster, Inverse::Whole, |world| {
        for name in ["a tall tree", "a high tree", "a big tree"] {
            world.add(text(name).vector(axis(1)));
        }
    }),
    (Pass::Limbo, Inverse::None("what is past its horizon is erased"), |world| {
        world.add(text("over").tier(Tier::Working));
        world.advance("73h");
        world.ns.maintain_with(&MaintainOptions::live().passes([Pass::Expire])).unwrap();
        world.advance("8d");
    }),
    (Pass::Retention, Inverse::None("what is past its time is erased"), |world| {
        world.add(text("long ago"));
        world.advance("40d");
    }),
    (Pass::Index, Inverse::None("an index follows from the memories"), |world| {
        world.add(text("indexed").vector(axis(2)));
    }),
    (Pass::Repair, Inverse::None("an index follows from the memories"), |world| {
        world.add(text("repaired").vector(axis(2)));
    }),
    // The same pass again, with a promise: a caller's end is kept to the letter.
    (Pass::Expire, Inverse::None("a caller had set the end, and nothing is kept of it"), |world| {
        world.add(text("promised").expiry(span("1h")));
        world.advance("2h");
    }),
];

fn apart() -> WriteOptions {
    WriteOptions { no_dedup: true, ..WriteOptions::default() }
}

fn used(world: &World, id: MemoryId) {
    let mut patch = Patch::default();
    patch.fields.retrieval_count = Some(3);
    patch.fields.last_retrieved = Field::Value(world.now());
    world.ns.update(id, patch).unwrap();
}

/// The memories of an export in every state, each as one line. The runs and tombstones beside them tell what maintenance
/// did, which undo does not unsay.
fn exported(world: &World, left_out: &[&str]) -> Vec<Value> {
    let mut lines = Vec::new();
    let export = Export { all_states: true, ..Export::new(["default".parse().unwrap()]) };
    let snapshot = world.db.snapshot().unwrap();
    export.write(&snapshot, &mut lines, "lines", VectorsTo::<std::io::Empty>::Lines).unwrap();
    let lines: Vec<Value> = std::str::from_utf8(&lines)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let memories = lines.into_iter().filter(|line| line.get("text").is_some());
    let trimmed = memories.map(|mut line| {
        left_out.iter().for_each(|name| drop(line.as_object_mut().unwrap().remove(*name)));
        line
    });
    trimmed.collect()
}

#[test]
fn life_63_each_pass_is_carried_out_and_taken_back() {
    for pass in Pass::ALL {
        assert!(PASSES.iter().any(|(of, ..)| of == pass), "{pass} has no story here");
    }
    for (pass, inverse, story) in PASSES {
        let world = World::new();
        world.db.set_policy(POLICY, Syntax::Toml).unwrap();
        story(&world);
        let left_out: &[&str] = match inverse {
            Inverse::Whole => &[],
            Inverse::ButVersions => &["version", "next_holder"],
            Inverse::ButEnds => &["version", "next_holder", "expires_at", "state"],
            Inverse::None(_) => &["version"],
        };
        let before = exported(&world, left_out);
        let report = world.ns.maintain_with(&MaintainOptions::live().passes([pass])).unwrap();
        if let Inverse::None(_) = inverse {
            // What has no inverse says so by a run that gives nothing back.
            if let Some(run) = report.run {
                let undone = world.ns.undo(run).unwrap();
                assert_eq!(undone.restored, 0, "{pass}");
            }
            continue;
        }
        assert!(report.passes[0].changed > 0, "{pass} has found nothing to do");
        assert_ne!(exported(&world, left_out), before, "{pass} has changed nothing");
        let undone = world.ns.undo(report.run.unwrap()).unwrap();
        assert_eq!((undone.restored, undone.lost.len()), (report.passes[0].changed, 0), "{pass}");
        assert_eq!(exported(&world, left_out), before, "{pass}");
        world.check();
    }
}

/// V-300: three passes, each its own run, taken back the last first.
#[test]
fn v300_three_runs_are_taken_back_in_reverse_order() {
    let world = World::new();
    world.db.set_policy("sweeper.demote_after = '7d'", Syntax::Toml).unwrap();
    for (pass, _, story) in PASSES {
        if [Pass::Demote, Pass::Backfill, Pass::Promote].contains(&pass) {
            story(&world);
        }
    }
    let before = exported(&world, &[]);
    let run = |pass: Pass| {
        let report = world.ns.maintain_with(&MaintainOptions::live().passes([pass])).unwrap();
        (report.run.unwrap(), report.passes[0].changed)
    };
    let runs = [run(Pass::Demote), run(Pass::Promote), run(Pass::Backfill)];
    assert_eq!(runs.map(|(_, changed)| changed), [5, 3, 7]);
    for (run, changed) in runs.into_iter().rev() {
        let undone = world.ns.undo(run).unwrap();
        assert_eq!((undone.restored, undone.lost.len()), (changed, 0));
    }
    assert_eq!(exported(&world, &[]), before);
    world.check();
}

/// A row that had taken another in gives back the life of the other also where a later merge has taken it in itself.
#[test]
fn life_63_a_life_goes_back_whichever_merge_is_taken_back_first() {
    for order in [[0, 1], [1, 0]] {
        let world = World::new();
        let mut near = axis(0);
        near[1] = 0.01;
        let drafts = [
            text("zebra likes the green tea").key("c"),
            text("zebra likes the green tea").tier(Tier::Working).importance(0.95).vector(axis(0)).key("b"),
            text("zebra likes the green tea much").importance(0.1).vector(near).key("a"),
        ];
        for draft in drafts {
            world.ns.add_all(vec![draft], &apart()).unwrap();
            world.advance("1s");
        }
        let before = exported(&world, &["version", "next_holder"]);
        let runs = [Pass::VectorDuplicates, Pass::NearDuplicates].map(|pass| {
            let report = world.ns.maintain_with(&MaintainOptions::live().passes([pass])).unwrap();
            report.run.unwrap()
        });
        for at in order {
            assert_eq!(world.ns.undo(runs[at]).unwrap().lost, [""; 0], "{order:?}");
        }
        assert_eq!(exported(&world, &["version", "next_holder"]), before, "{order:?}");
        world.check();
    }
}

/// What a pass changed of a row goes back although another pass has merged or removed the row since, in the same run or in one
/// that was taken back before.
#[test]
fn life_63_fields_go_back_where_the_row_went_and_came_back_since() {
    let passes = [Pass::Collapse, Pass::NearDuplicates, Pass::VectorDuplicates, Pass::Cap];
    for (later, is_one) in passes.into_iter().flat_map(|pass| [(pass, true), (pass, false)]) {
        let world = World::new();
        world.db.set_policy("sweeper.demote_after = '7d'\nsweeper.short_term_cap = 1", Syntax::Toml).unwrap();
        let says = |at: u32| match later {
            Pass::NearDuplicates => "Backup job finished, status ok".to_owned(),
            Pass::VectorDuplicates => format!("Backup job finished, status ok{}", ".".repeat(at as usize)),
            _ => format!("Backup job finished: {at} files copied, status ok"),
        };
        for at in 3..5 {
            let draft = text(&says(at)).kind(Kind::Profile).importance(0.2).vector(axis(0));
            world.ns.add_all(vec![draft.key(format!("k{at}"))], &apart()).unwrap();
        }
        world.advance("8d");
        let left_out = ["version", "next_holder"];
        let before = exported(&world, &left_out);
        let run = |passes: &[Pass]| {
            let report = world.ns.maintain_with(&MaintainOptions::live().passes(passes)).unwrap();
            assert!(
                report.passes.iter().all(|of| of.changed > 0 || of.pass == Pass::Supersession),
                "{later}: {report:?}"
            );
            report.run.unwrap()
        };
        let runs = if is_one {
            vec![run(&[Pass::Demote, later])]
        } else {
            vec![run(&[Pass::Demote]), run(&[later])]
        };
        for run in runs.into_iter().rev() {
            assert_eq!(world.ns.undo(run).unwrap().lost, [""; 0], "{later}, one run: {is_one}");
        }
        assert_eq!(exported(&world, &left_out), before, "{later}, one run: {is_one}");
        world.check();
    }
}

/// What has no inverse is named, so that an undo never says that a run changed nothing which changed something.
#[test]
fn the_undo_of_a_repair_says_what_stays() {
    let mut world = World::new();
    let [old, new] = ["old", "new"].map(|name| world.add(text(name).tag(name)).id);
    world.supersede(old, new, SupersedeMode::Correction, None).unwrap();
    // While it can't be read it does not come back with the end of the other.
    world.db.clone().close().unwrap();
    let rows = tables(&world.path());
    let (key, value) = rows["memory"].iter().find(|(key, _)| key.ends_with(old.as_bytes())).unwrap();
    overwrite(&world.path(), "memory", key, &value[1..]);
    world.reopen();
    world.forget_tag("new");
    world.db.clone().close().unwrap();
    overwrite(&world.path(), "memory", key, value);
    world.reopen();
    let report = world.ns.maintain_with(&MaintainOptions::live().passes([Pass::Supersession])).unwrap();
    assert_eq!((report.passes[0].changed, world.is_live(old)), (1, true));
    let undone = world.ns.undo(report.run.unwrap()).unwrap();
    assert_eq!(undone.lost, ["what supersession mended stays: 1 memory"]);
}

/// What somebody gave the row that stayed since the merge is no part of what the merge did (LIFE-56, LIFE-63).
#[test]
fn the_undo_of_a_merge_leaves_a_life_that_the_row_was_given_since() {
    type Gift = fn(&World, MemoryId);
    let gifts: [(&str, Gift); 5] = [
        ("never", |world, id| drop(world.ns.touch([id], Expiry::Never).unwrap())),
        ("an instant", |world, id| drop(world.ns.touch([id], span("300d")).unwrap())),
        ("durable", |world, id| drop(world.ns.update(id, Patch::default().tier(Tier::Semantic)).unwrap())),
        ("shorter", |world, id| drop(world.ns.update(id, Patch::default().tier(Tier::Working)).unwrap())),
        ("promoted", |world, id| {
            used(world, id);
            let passes = [Pass::Fold, Pass::Promote];
            world.ns.maintain_with(&MaintainOptions::live().passes(passes)).unwrap();
            assert_eq!(world.row(id.to_string()).tier, Tier::Semantic);
        }),
    ];
    for (what, give) in gifts {
        let world = World::new();
        world.add(text("The cellar door sticks").tier(Tier::Episodic));
        world.advance("4d");
        let again = text("The cellar door sticks").tier(Tier::Episodic);
        world.ns.add_all(vec![again], &apart()).unwrap();
        let merge = MaintainOptions::live().passes([Pass::NearDuplicates]);
        let report = world.ns.maintain_with(&merge).unwrap();
        assert_eq!(report.passes[0].changed, 1);
        let stays = world.live()[0];
        give(&world, stays);
        let life = |world: &World| {
            let row = world.row(stays.to_string());
            (row.tier, row.expires_at, row.expires_by)
        };
        let given = life(&world);
        world.ns.undo(report.run.unwrap()).unwrap();
        assert_eq!(life(&world), given, "{what}");
        assert_eq!(world.live().len(), 2, "{what}");
        world.check();
    }
}
