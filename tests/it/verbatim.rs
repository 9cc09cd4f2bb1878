//! What a host wants kept as it was given is a row of its own, whatever is near or equal (MODEL-62).

use std::io::Cursor;

use oubliette::exchange::{Export, Import, LineReader, VectorsTo};
use oubliette::maintain::{MaintainOptions, Pass};
use oubliette::memory::{AuthorKind, Field};
use oubliette::policy::{NormalizedMatch, OnKey, Policy, VectorMatch};
use oubliette::report::CheckOptions;
use oubliette::{Database, Decision, Draft, Kind, NamespaceName, Outcome, Patch, State, Time, WriteOptions};

use crate::world::{World, axis, text};

const VERBATIM: WriteOptions =
    WriteOptions { run: None, no_dedup: false, skip_instructions: false, verbatim: true, keep_part: false };

impl World {
    fn keep(&self, draft: Draft) -> Outcome {
        self.ns.add_all(vec![draft], &VERBATIM).unwrap().pop().unwrap()
    }
}

fn lines(db: &Database) -> String {
    let mut out = Vec::new();
    let export = Export { namespaces: vec![NamespaceName::default()], all_states: true };
    export.write(&db.snapshot().unwrap(), &mut out, "out", VectorsTo::<Cursor<Vec<u8>>>::Lines).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn equal_verbatim_texts_are_rows_of_their_own() {
    let world = World::new();
    let plain = world.add(text("said twice"));
    let first = world.keep(text("said twice"));
    let second = world.ns.add(text("said twice").verbatim(true)).unwrap();
    assert_eq!((&first.decision, &second.decision), (&Decision::Stored, &Decision::Stored));
    assert!(first.hints.is_empty(), "{:?}", first.hints);
    assert!(plain.id != first.id && first.id != second.id);
    assert_eq!(world.live().len(), 3);
    let kept = world.ns.get(first.id).unwrap().unwrap();
    assert!(kept.verbatim && !world.ns.get(plain.id).unwrap().unwrap().verbatim);
    assert_eq!(world.add(text("said twice")).decision, Decision::Reinforced, "a plain write is as any other");
    assert_eq!(world.live().len(), 3);
    // The draft has the last word.
    assert_eq!(world.keep(text("said twice").verbatim(false)).decision, Decision::Reinforced);
    world.check();
}

#[test]
fn a_verbatim_row_alone_stands_for_a_later_plain_write_and_not_for_a_verbatim_one() {
    let world = World::new();
    let first = world.keep(text("said").key("a"));
    let plain = world.add(text("said").key("b"));
    assert_eq!((plain.decision, plain.id), (Decision::Reinforced, first.id));
    let again = world.keep(text("said").key("c"));
    assert_eq!(again.decision, Decision::Stored);
    // The other writer's record goes alone.
    assert_eq!(world.ns.forget("b").unwrap().detached, 1);
    assert_eq!(world.ns.keys_of(first.id).unwrap(), ["a"]);
    // What shares a plain row gets a row of its own by its key.
    let shared = world.add(text("shared").key("d")).id;
    world.add(text("shared").key("e"));
    let own = world.keep(text("shared").key("e"));
    assert_ne!(own.id, shared);
    assert!(world.ns.get("e").unwrap().unwrap().verbatim && !world.ns.get("d").unwrap().unwrap().verbatim);
    world.check();
}

#[test]
fn keys_still_revise_whatever_the_policy_says() {
    for on_key in [OnKey::Revise, OnKey::Error, OnKey::Reinforce] {
        let mut world = World::new();
        world.open_with_policy(|policy| policy.write.on_key = on_key);
        let first = world.keep(text("one").key("k"));
        assert_eq!(world.keep(text("one").key("k")).decision, Decision::Unchanged);
        let second = world.keep(text("two").key("k"));
        assert_eq!(second.decision, Decision::Revised { old: first.id });
        assert_eq!(world.ns.state(first.id).unwrap(), Some(State::Superseded));
        assert_eq!(world.ns.get("k").unwrap().unwrap().text, "two");
        // The field stays until a write says otherwise.
        let third = world.ns.update("k", Patch::new().text("three")).unwrap();
        assert!(world.ns.get(third.id).unwrap().unwrap().verbatim);
        world.ns.update("k", Patch::new().verbatim(false)).unwrap();
        assert!(!world.ns.get(third.id).unwrap().unwrap().verbatim);
        world.check();
    }
}

/// Every rule of the defaults, every step of the ladder that the policy can switch on, families of messages and snapshots.
#[test]
fn neither_a_rule_nor_a_step_unites_a_verbatim_row_with_another() {
    let mut world = World::new();
    world.open_with_policy(|policy| {
        policy.write.normalized_match = NormalizedMatch::Absorb;
        policy.write.op_match = true;
        policy.write.token_match = true;
        policy.write.vector_match = VectorMatch::Reinforce;
    });
    let message = |who| {
        let mut draft = text("build 17 failed").kind(Kind::Message).channel("ops");
        draft.fields.author_kind = Field::Value(who);
        draft
    };
    let drafts = [
        text("Ann prefers tea").vector(axis(0)),
        text("  ann prefers   TEA").vector(axis(0)),
        text("Gateway status: 4 apps pending").kind(Kind::Profile),
        text("Gateway status: 7 apps pending").kind(Kind::Profile),
        text("what is oubliette").kind(Kind::SearchHistory),
        message(AuthorKind::Bot),
        message(AuthorKind::Bot),
        message(AuthorKind::Human),
        message(AuthorKind::Human),
        text("morning").kind(Kind::Snapshot),
        text("evening").kind(Kind::Snapshot),
    ];
    for draft in drafts.clone().into_iter().chain(drafts.clone()) {
        let outcome = world.keep(draft.clone());
        assert_eq!((outcome.decision, outcome.policy_rule), (Decision::Stored, None), "{draft:?}");
        assert!(outcome.event.is_none() && outcome.hints.is_empty(), "{draft:?}");
        assert_eq!(world.ns.text(outcome.id).unwrap(), Some(draft.text));
    }
    let all = 2 * drafts.len();
    assert_eq!(world.live().len(), all);
    let stats = world.db.stats().unwrap();
    assert_eq!((stats.memories.limbo, stats.memories.superseded), (0, 0), "shared, all of them");
    // By its own method, and by a plain snapshot of the same day.
    let at: Time = world.now();
    world.ns.push_snapshot(text("noon").verbatim(true).agent("profile-mgr"), at).unwrap();
    world.ns.push_snapshot(text("noon").agent("profile-mgr"), at).unwrap();
    assert_eq!(world.live().len(), all + 2);
    world.check();
}

#[test]
fn no_pass_unites_verbatim_rows() {
    let mut world = World::new();
    world.open_with_policy(|policy| {
        policy.write.vector_match = VectorMatch::Off;
        policy.collapse.fuzzy = true;
    });
    for round in 0..2 {
        for apps in [4, 7] {
            let draft = text(&format!("Gateway status: {apps} apps pending")).kind(Kind::Profile);
            world.keep(draft.vector(axis(apps % 4)));
        }
        world.keep(text("morning").kind(Kind::Snapshot).agent("profile-mgr").key(format!("s{round}")));
        world.keep(text("Ann prefers tea").vector(axis(1)));
    }
    // A row with a payload beside them.
    world.add(text("Bob prefers tea").vector(axis(1)).payload(vec![1]));
    let live = world.live();
    let passes =
        [Pass::Collapse, Pass::NearDuplicates, Pass::VectorDuplicates, Pass::Snapshots, Pass::Supersession];
    let options = MaintainOptions { destroy_max: Some(1_000), ..MaintainOptions::live() };
    let done = world.db.maintain_with(&options.clone().passes(passes)).unwrap();
    assert!(done.passes.iter().all(|pass| pass.changed == 0), "{:?}", done.passes);
    assert_eq!(world.live(), live);
    // The same rows without the field are united.
    let page = world.ns.list(&Default::default()).unwrap();
    for memory in page.items {
        world.ns.update(memory.id, Patch::new().verbatim(false)).unwrap();
    }
    let done = world.db.maintain_with(&options.clone().passes(passes)).unwrap();
    assert!(done.passes.iter().map(|pass| pass.changed).sum::<u64>() > 0, "{:?}", done.passes);
    world.check();
}

#[test]
fn a_row_that_became_verbatim_leaves_its_family() {
    let world = World::new();
    let message = || {
        let mut draft = text("build 17 failed").kind(Kind::Message).channel("ops");
        draft.fields.author_kind = Field::Value(AuthorKind::Bot);
        draft
    };
    let first = world.add(message());
    world.ns.update(first.id, Patch::new().verbatim(true)).unwrap();
    let second = world.add(message());
    assert_eq!(second.decision, Decision::Stored);
    assert_eq!(world.ns.state(first.id).unwrap(), Some(State::Live));
    assert!(matches!(world.add(message()).decision, Decision::Aggregated { .. }), "with the second");
    world.check();
}

#[test]
fn verbatim_rows_survive_export_import_limbo_and_undo() {
    let world = World::new();
    world.keep(text("said twice").key("a"));
    world.keep(text("said twice"));
    world.add(text("said twice"));
    world.keep(text("old").key("k"));
    world.keep(text("new").key("k"));
    let before = lines(&world.db);
    assert_eq!(before.matches(r#""verbatim":true"#).count(), 4, "{before}");
    let other = World::new();
    Import::default().run(&other.db, LineReader::new(before.as_bytes(), "lines"), &mut ()).unwrap();
    assert_eq!(lines(&other.db), before);
    other.check();

    // A line says it of itself, or the import of all; undo takes them back.
    let import = Import { verbatim: true, ..Import::default() };
    let plain = b"{\"text\":\"said twice\"}\n{\"text\":\"said twice\"}\n".as_slice();
    let report = import.run(&world.db, LineReader::new(plain, "lines"), &mut ()).unwrap();
    assert_eq!(report.stored, 2);
    let undone = world.ns.undo(report.runs[0].1).unwrap();
    assert_eq!(undone.removed, 2);
    let line = b"{\"text\":\"said twice\",\"verbatim\":true}\n".as_slice();
    let report = Import::default().run(&world.db, LineReader::new(line, "lines"), &mut ()).unwrap();
    assert_eq!(report.stored, 1);
    assert!(world.db.check(&CheckOptions { deep: true, ..CheckOptions::default() }).unwrap().ok);
}

#[test]
fn a_batch_writes_verbatim_too() {
    let world = World::new();
    let name = world.ns.name().clone();
    let ids = world.db.batch(|batch| {
        let mut one = || batch.add_with(&name, "said", &VERBATIM).map(|outcome| outcome.id);
        Ok([one()?, one()?])
    });
    let [one, other] = ids.unwrap();
    assert_ne!(one, other);
    world.check();
}

impl World {
    fn open_with_policy(&mut self, change: impl FnOnce(&mut Policy)) {
        let mut policy = Policy::default();
        change(&mut policy);
        self.db.clone().close().unwrap();
        self.open_again(|builder| builder.policy(policy));
    }
}
