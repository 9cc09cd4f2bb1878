//! What a message costs as its namespace grows, in rows read and written.

use crate::growth::{constant, cost, exported, fill, linear, world};
use crate::world::{span, text};
use oubliette::exchange::{Import, LineReader};
use oubliette::memory::{AuthorKind, Expiry, Field, Tier};
use oubliette::{Decision, Draft, Kind, WriteOptions};
use serde_json::json;

fn message(author: AuthorKind) -> Draft {
    let mut draft = text("the nightly job is done").kind(Kind::Message);
    draft.fields.author_kind = Field::Value(author);
    draft.fields.channel = Field::Value("jobs".to_owned());
    draft
}

/// DEDUP-39: a message is compared with the family that may take it in, not with all families of other owners, tiers or validities
/// that say the same.
#[test]
fn equal_messages_of_many_owners() {
    for author in [AuthorKind::Bot, AuthorKind::Human] {
        let world = world();
        let say = |at: usize| message(author).metadata(json!({ "user_id": at }));
        let add = |at: usize| {
            let mut decision = None;
            (cost(|| decision = Some(world.add(say(at)).decision)), decision.unwrap())
        };
        let new = |at: usize| match add(at) {
            (cost, Decision::Stored) => cost,
            other => panic!("{other:?}"),
        };
        let again = |at: usize| match add(at) {
            (cost, Decision::Aggregated { .. } | Decision::Reinforced) => cost,
            other => panic!("{other:?}"),
        };
        fill(&world, 0, 50, say);
        let small = (new(50), again(17));
        fill(&world, 51, 1_000, say);
        constant(small.0, new(1_000));
        constant(small.1, again(517));
        assert_eq!(world.live().len(), 1_001);
        world.check();
    }
}

/// The same of ends that many authors set (LIFE-71).
#[test]
fn equal_messages_of_many_authors_that_set_an_end() {
    let world = world();
    let say = |at: usize| {
        let mut draft = message(AuthorKind::Human).expiry(Expiry::After(span("30d")));
        draft.fields.author_id = Field::Value(format!("author {at}"));
        draft
    };
    let add = |at: usize| cost(|| assert_eq!(world.add(say(at)).decision, Decision::Stored));
    fill(&world, 0, 50, say);
    let small = add(50);
    fill(&world, 51, 1_000, say);
    constant(small, add(1_000));
    assert_eq!(world.add(say(400)).decision, Decision::Reinforced, "the author says it again");
}

/// Messages whose memories have ended take nothing in. How many of them there are does not matter.
#[test]
fn equal_messages_that_have_ended() {
    let world = world();
    let say = || message(AuthorKind::Bot).expiry(Expiry::After(span("1s")));
    let add = || {
        world.advance("2s");
        cost(|| assert_eq!(world.add(say()).decision, Decision::Stored))
    };
    for _ in 0..30 {
        add();
    }
    let small = add();
    for _ in 0..300 {
        add();
    }
    constant(small, add());
    assert!(matches!(world.add(say()).decision, Decision::Aggregated { .. }), "the latest is current");
}

/// MODEL-33: an import of repeats is undone at the cost of its messages.
#[test]
fn undoing_an_import_of_messages_of_many_owners() {
    let of = |n: usize| {
        let world = world();
        let say = |at: usize| message(AuthorKind::Bot).metadata(json!({ "user_id": at }));
        fill(&world, 0, n, say);
        fill(&world, 0, n, say);
        let run = world.ns.start_import().unwrap();
        let how = WriteOptions { run: Some(run), ..WriteOptions::default() };
        world.ns.add_all((0..n).map(say).collect(), &how).unwrap();
        let cost = cost(|| drop(world.ns.undo(run).unwrap()));
        let all = world.ns.aggregates(None, 1_000).unwrap().items;
        assert_eq!((all.len(), all.iter().all(|family| family.dup_count == 2)), (n, true));
        world.check();
        cost
    };
    linear(of(50), of(200), 4);
}

/// A family whose first message has another tier, validity or owner than a message is another family, also after an export.
#[test]
fn a_family_takes_in_after_an_export_what_it_took_in_before() {
    let world = world();
    let mut says = vec![message(AuthorKind::Bot), message(AuthorKind::Human)];
    says.push(message(AuthorKind::Bot).tier(Tier::Working));
    says.push(message(AuthorKind::Bot).metadata(json!({ "user_id": "ann" })));
    says.push(message(AuthorKind::Human).expiry(Expiry::After(span("9d"))));
    for say in &says {
        assert_eq!(world.add(say.clone()).decision, Decision::Stored);
    }
    world.add(says[0].clone());
    let (lines, copy) = (exported(&world), self::world());
    Import::default().run(&copy.db, LineReader::new(&lines[..], "lines"), &mut ()).unwrap();
    for say in &says {
        assert!(!matches!(copy.add(say.clone()).decision, Decision::Stored), "{say:?}");
    }
    copy.check();
}
