//! Search by words: what it finds after everything that can happen to a memory, that nothing of a forgotten text stays,
//! what queries may be, and what the turns of a conversation lend each other.

use std::collections::BTreeMap;

use crate::world::{World, axis, text};
use oubliette::maintain::{IndexReport, MaintainOptions, Pass};
use oubliette::memory::Expiry;
use oubliette::memory::SupersedeMode;
use oubliette::policy::Syntax;
use oubliette::{Database, Draft, ErrorKind, Hit, Kind, MemoryId, Mode, Patch, Query, Scope, WriteOptions};

const WORDS: [&str; 12] = [
    "lamp",
    "kitchen",
    "running",
    "Ann",
    "garden",
    "getUserName",
    "coffee",
    "the",
    "meeting",
    "blue",
    "runs",
    "tomorrow",
];

/// A text of its own for each number, of words that many have.
fn sentence(number: usize) -> String {
    let word = |step: usize| WORDS[(number * step + step) % WORDS.len()];
    format!("{} {} {} note{number} {}", word(1), word(5), word(7), word(number % 4))
}

fn by_words(words: &str) -> Query {
    Query::text(words).mode(Mode::Text).scope(Scope::Any).k(1_000)
}

fn hits(world: &World, words: &str) -> Vec<Hit> {
    world.ns.search(by_words(words)).unwrap().hits
}

fn found(world: &World, words: &str) -> Vec<MemoryId> {
    hits(world, words).iter().map(|hit| hit.id).collect()
}

fn index(world: &World) {
    let report = world.db.maintain_with(&MaintainOptions::live().passes([Pass::Index])).unwrap();
    assert!(report.passes.iter().all(|pass| pass.left == 0 && pass.skipped == 0), "{report:?}");
}

/// Scores by text.
fn scores(world: &World, words: &str) -> BTreeMap<String, f32> {
    let text = |id: MemoryId| world.row(id).row_text;
    hits(world, words).iter().map(|hit| (text(hit.id), hit.score)).collect()
}

/// That two stores answer alike, to rounding.
fn assert_alike(one: &World, other: &World, what: &str) {
    let queries =
        ["lamp", "the running lamp", "\"getUserName\"", "run*", "note7 note8 kitchen", "user blue ann"];
    for words in queries {
        let (one, other) = (scores(one, words), scores(other, words));
        assert_eq!(one.keys().collect::<Vec<_>>(), other.keys().collect::<Vec<_>>(), "{what}: {words}");
        for (text, score) in &one {
            assert!((score - other[text]).abs() < 1e-4, "{what}: {words}: {text}: {score}, {}", other[text]);
        }
    }
}

fn agent(draft: Draft, number: usize) -> Draft {
    if number.is_multiple_of(5) { draft.agent("ann") } else { draft }
}

#[test]
fn a_store_that_forgot_half_is_one_of_the_other_half() {
    let world = World::new();
    let ids: Vec<MemoryId> = (0..120)
        .map(|number| {
            if number == 70 {
                index(&world);
            }
            world.add(agent(text(&sentence(number)), number)).id
        })
        .collect();
    let kept: Vec<usize> = (0..120).filter(|number| number % 2 == 0).collect();
    // Once as they lie, once asked before, so that what is in memory must be brought along.
    hits(&world, "lamp");
    for number in (0..120).filter(|number| number % 2 == 1) {
        world.forget_id(ids[number]);
    }
    let fresh = World::new();
    for number in kept {
        fresh.add(agent(text(&sentence(number)), number));
    }
    assert_alike(&world, &fresh, "forgotten");
    index(&world);
    assert_alike(&world, &fresh, "posted");
    world.db.compact().unwrap();
    assert_alike(&world, &fresh, "compacted");
    index(&fresh);
    assert_alike(&world, &fresh, "both posted");
    let backup = world.beside("backup.oub");
    world.db.backup(&backup).unwrap();
    let copy = Database::builder().secret([7; 32]).read_only(true).open(&backup).unwrap();
    let of_copy = copy.namespace(world.ns.name()).unwrap().search(by_words("the running lamp")).unwrap().hits;
    assert_eq!(of_copy, hits(&world, "the running lamp"));
    world.db.reindex().unwrap();
    assert_alike(&world, &fresh, "indexed anew");
    let mut world = world;
    world.reopen();
    assert_alike(&world, &fresh, "opened again");
}

#[test]
fn what_is_not_visible_counts_for_nothing() {
    let world = World::new();
    let old = world.add(text("the lamp in the hall")).id;
    let new = world.add(text("the lamp in the kitchen")).id;
    world.add(text("something else"));
    let short = text("a lamp for an hour").expiry(Expiry::After("1h".parse().unwrap()));
    let short = world.add(short).id;
    index(&world);
    assert_eq!(found(&world, "lamp").len(), 3);
    world.supersede(old, new, SupersedeMode::Correction, None).unwrap();
    assert!(!found(&world, "lamp hall").contains(&old));
    world.advance("2h");
    assert_eq!(found(&world, "lamp"), [new]);
    let fresh = World::new();
    fresh.add(text("the lamp in the kitchen"));
    fresh.add(text("something else"));
    assert_eq!(scores(&world, "the lamp"), scores(&fresh, "the lamp"), "statistics are of what is visible");
    world.ns.restore(old.to_string()).unwrap();
    assert!(found(&world, "lamp hall").contains(&old));
    assert!(!found(&world, "lamp").contains(&short));
}

#[test]
fn nothing_of_a_forgotten_text_is_left_in_the_file() {
    let world = World::new();
    let gone = world.add(text("the xylophonist hides a quokkasaur")).id;
    world.add(text("the lamp in the hall"));
    index(&world);
    let has = |word: &[u8]| {
        let bytes = std::fs::read(world.path()).unwrap();
        bytes.windows(word.len()).any(|window| window == word)
    };
    let terms: [&[u8]; 2] = [b"xylophonist", b"quokkasaur"];
    assert!(terms.iter().all(|term| has(term)), "its terms are keys of postings");
    assert_eq!(found(&world, "quokkasaur"), [gone]);
    world.forget_id(gone);
    assert_eq!(found(&world, "quokkasaur xylophonist"), []);
    world.db.compact().unwrap();
    assert!(!terms.iter().any(|term| has(term)));
    assert_eq!(found(&world, "lamp").len(), 1);
}

#[test]
fn an_undone_collapse_brings_texts_back() {
    let world = World::new();
    let drafts = [
        "Gateway status: 4 apps pending, checked 2026-02-25 10:00",
        "Gateway status: 7 apps pending, checked 2026-02-25 10:05",
        "Gateway status: 3 apps pending, checked 2026-02-25 10:10",
    ];
    let ids = drafts.map(|words| world.add(text(words).kind(Kind::Profile)).id);
    index(&world);
    let before = scores(&world, "gateway 7");
    let report = world.db.maintain_with(&MaintainOptions::live().passes([Pass::Collapse])).unwrap();
    assert_eq!(found(&world, "gateway"), [ids[0]]);
    index(&world);
    world.ns.undo(report.run.unwrap()).unwrap();
    assert_eq!(scores(&world, "gateway 7"), before);
    index(&world);
    assert_eq!(scores(&world, "gateway 7"), before);
}

#[test]
fn a_dropped_namespace_leaves_no_text() {
    let world = World::new();
    let other = world.db.namespace("other").unwrap();
    other.add(text("the zebra of a tenant")).unwrap();
    world.add(text("the zebra of ours"));
    index(&world);
    assert_eq!(other.search(by_words("zebra")).unwrap().hits.len(), 1);
    world.db.drop_namespace(other.name()).unwrap();
    let gone = other.search(by_words("zebra"));
    assert!(gone.map_or(true, |found| found.hits.is_empty()));
    other.add(text("a lamp")).unwrap();
    assert!(other.search(by_words("zebra")).unwrap().hits.is_empty());
    assert_eq!(other.search(by_words("lamp")).unwrap().hits.len(), 1);
    assert_eq!(found(&world, "zebra").len(), 1);
}

#[test]
fn an_index_keeps_its_stemming_until_it_is_made_anew() {
    let world = World::new();
    let houses = world.add(text("Die Häuser stehen leer")).id;
    index(&world);
    assert_eq!(found(&world, "Haus"), []);
    world.db.set_policy("text.stemming = 'german'", Syntax::Toml).unwrap();
    let later = world.add(text("Viele Häuser brennen")).id;
    assert_eq!(found(&world, "Haus"), [], "one index has one stemming");
    assert_eq!(found(&world, "Häuser").len(), 2);
    world.db.reindex().unwrap();
    let mut both = found(&world, "Haus");
    both.sort_unstable();
    assert_eq!(both, [houses, later]);
    let of_agent = world.add(text("Häuser des Agenten").agent("ann")).id;
    assert!(found(&world, "Haus").contains(&of_agent));
}

/// An image that was in memory before must not be taken for that of the index that begins again.
#[test]
fn an_index_of_which_nothing_was_left_begins_again() {
    let world = World::new();
    for scope in [None, Some("ann")] {
        let draft = |words: &str| scope.map_or_else(|| text(words), |agent| text(words).agent(agent));
        let ids = ["a lamp", "two lamps", "a hall"].map(|words| world.add(draft(words)).id);
        let query = |words: &str| match scope {
            None => by_words(words).scope(Scope::Shared),
            Some(agent) => by_words(words).scope(Scope::agent(agent).unwrap()),
        };
        let count = |words: &str| world.ns.search(query(words)).unwrap().hits.len();
        assert_eq!(count("lamp"), 2);
        ids.iter().for_each(|id| drop(world.forget_id(*id)));
        assert_eq!(count("lamp"), 0);
        world.db.reindex().unwrap();
        world.add(draft("a lamp again"));
        assert_eq!((count("lamp"), count("hall"), count("again")), (1, 0, 1));
    }
}

#[test]
fn queries_of_any_text_are_answered() {
    let world = World::new();
    let lamp = world.add(text("the lamp 灯 😀 مصباح über the hall")).id;
    world.add(text("مرحبا بالعالم and hello world"));
    world.add(text("of the"));
    index(&world);
    world.add(text("to be or not to be"));
    for words in
        ["", " ", "\n\t", "...", "?!", "\"\"", "\"", "*", "a*", "\u{0}", "😀😀😀", "\u{202e}abc", "\u{200d}"]
    {
        let query = by_words(words);
        assert!(hits(&world, words).len() <= 4, "{words:?}");
        assert!(world.ns.search(query.mode(Mode::Hybrid)).is_ok());
    }
    assert!(hits(&world, "").is_empty() && hits(&world, "...").is_empty());
    assert_eq!(found(&world, "to be or not to be").len(), 1, "words that say little are words");
    for words in ["😀", "مصباح", "灯", "UBER", "lamp\u{0}hall", "la\u{300}mp", "ｌａｍｐ"] {
        assert_eq!(found(&world, words).first(), Some(&lamp), "{words:?}");
    }
    assert_eq!(found(&world, "مرحبا world").len(), 1);
    let most = "lamp ".repeat((64 << 10) / 5);
    assert_eq!(found(&world, &most), [lamp]);
    let long = world.ns.search(by_words(&"a".repeat((64 << 10) + 1))).unwrap_err();
    assert_eq!(
        (long.kind(), long.to_string()),
        (ErrorKind::Invalid, "query: must have at most 65536 bytes (got 65537)".to_owned())
    );
    let many: String = (0..400).map(|number| format!("word{number} ")).collect();
    assert!(world.ns.search(by_words(&many)).unwrap().plan.cut);
}

#[test]
fn a_text_of_a_mebibyte_is_indexed_and_forgotten() {
    let world = World::new();
    let mut long: String = (0..).map(|number: u32| format!("w{:x} ", number % 5_000)).take(180_000).collect();
    long.truncate((1 << 20) - 7);
    long.push_str(" zebra");
    let id = world.add(text(&long)).id;
    let other = world.add(text("a short zebra")).id;
    assert_eq!(found(&world, "zebra"), [other, id], "length counts against it");
    index(&world);
    assert_eq!(found(&world, "zebra"), [other, id]);
    assert_eq!(found(&world, "w1f"), [id]);
    world.forget_id(id);
    assert_eq!(found(&world, "zebra w1f"), [other]);
}

/// It had found only the text in which the character stands alone.
#[test]
fn one_character_of_a_script_without_spaces_is_found_before_another() {
    let world = World::new();
    let alone = world.add(text("猫 is a cat")).id;
    let before = world.add(text("我的猫很可爱")).id;
    world.add(text("我的狗很可爱"));
    for posted in [false, true] {
        if posted {
            index(&world);
        }
        let mut all = found(&world, "猫");
        all.sort();
        assert_eq!(all, [alone, before], "posted: {posted}");
    }
}

#[test]
fn words_need_no_vectors_and_vectors_need_an_embedder() {
    let world = World::new();
    let lamp = world.add(text("a lamp")).id;
    let ask = |query: Query| world.ns.search(&query);
    for mode in [Mode::Hybrid, Mode::Text] {
        let result = ask(Query::text("lamp").mode(mode)).unwrap();
        assert_eq!((result.hits[0].id, result.plan.mode), (lamp, "text"));
    }
    let refused = ask(Query::text("lamp").mode(Mode::Vector)).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::NoEmbedder);
    let near = world.add(text("something near").vector(axis(0))).id;
    let both = Query { text: Some("lamp".to_owned()), ..Query::vector(axis(0)).k(10) };
    let result = ask(both.clone()).unwrap();
    assert_eq!((result.plan.mode, result.hits.len()), ("hybrid", 2));
    let of = |id: MemoryId| result.hits.iter().find(|hit| hit.id == id).unwrap().signals;
    assert!(of(lamp).vector.is_none() && of(lamp).text.unwrap() > 0.5);
    assert!(of(near).vector.unwrap() > 0.99 && of(near).text == Some(0.0));
    assert_eq!(ask(both.mode(Mode::Vector)).unwrap().hits.len(), 1);
}

/// A turn of a session, so many minutes after the start.
fn turn(world: &World, session: &str, words: &str, minute: i64) -> MemoryId {
    let mut draft = text(words);
    draft.fields.session = Some(session.to_owned()).into();
    draft.fields.happened_at = Some(world.ago("10d").plus(format!("{minute}m").parse().unwrap())).into();
    world.add(draft).id
}

#[test]
fn turns_of_a_conversation_lend_each_other_their_words() {
    let world = World::new();
    // Told out of order; sorted by when they happened.
    let words = [
        (3, "we painted the kitchen yesterday with friends"),
        (1, "hello there how are you doing today"),
        (5, "that is a fine thing to hear"),
        (2, "what did you do on the weekend"),
        (6, "and what is planned for next week"),
        (4, "which colour was it that you took"),
    ];
    let mut ids = BTreeMap::new();
    for (minute, words) in words {
        ids.insert(minute, turn(&world, "s-1", words, minute));
    }
    turn(&world, "s-2", "nothing of all that is in this one", 3);
    for posted in [false, true] {
        if posted {
            index(&world);
        }
        let all = hits(&world, "kitchen");
        let order: Vec<MemoryId> = all.iter().map(|hit| hit.id).collect();
        assert_eq!(order[0], ids[&3]);
        let beside = |minutes: [i64; 2], at: std::ops::Range<usize>| {
            let mut found = order[at].to_vec();
            found.sort_unstable();
            let mut expected = minutes.map(|minute| ids[&minute]).to_vec();
            expected.sort_unstable();
            assert_eq!(found, expected);
        };
        beside([2, 4], 1..3);
        beside([1, 5], 3..5);
        assert_eq!(order.len(), 5, "the window ends after two steps, and at the end of the thread");
        assert!(all[0].signals.text.unwrap() > 0.5);
        for hit in &all[1..] {
            assert!(hit.signals.text == Some(0.0) && hit.signals.context.unwrap() > 0.0, "{hit:?}");
        }
    }
    // The one in between goes: the others move together.
    world.forget_id(ids[&4]);
    let order = found(&world, "kitchen");
    assert!(order[1..3].contains(&ids[&5]) && order[3..].contains(&ids[&6]), "{order:?}");
    world.forget_id(ids[&3]);
    assert_eq!(found(&world, "kitchen"), []);
    world.check();
}

#[test]
fn a_session_in_the_metadata_counts_as_one() {
    let world = World::new();
    let said = |words: &str, session: serde_json::Value| {
        world.advance("1m");
        world.add(text(words).metadata(serde_json::json!({ "session": session }))).id
    };
    let first = said("the kitchen is painted", "a".into());
    let second = said("what a nice colour", "a".into());
    let numbered = [said("the garage is empty", 7.into()), said("so it is indeed", 7.into())];
    said("another one altogether", "b".into());
    assert_eq!(found(&world, "kitchen"), [first, second]);
    assert_eq!(found(&world, "garage"), numbered);
    let mut moved = Patch::default();
    moved.fields.metadata = Some(serde_json::json!({ "session": "b" }));
    world.ns.update(second.to_string(), moved).unwrap();
    assert_eq!(found(&world, "kitchen"), [first]);
}

/// The next program that searches reads no text of an import, because the end of the import has written their postings. A
/// short import leaves its few texts to the search.
#[test]
fn the_end_of_an_import_posts_its_tail() {
    for (count, left) in [(300, 0), (20, 20)] {
        let world = World::new();
        let how = WriteOptions { run: Some(world.ns.start_import().unwrap()), ..WriteOptions::default() };
        let drafts = (0..count).map(|at| text(&format!("line {at} of the log"))).collect::<Vec<_>>();
        world.ns.add_all(drafts, &how).unwrap();
        world.ns.finish_import(how.run.unwrap()).unwrap();
        let plan = world.db.maintain_with(&MaintainOptions::default().passes([Pass::Index])).unwrap();
        assert_eq!(plan.passes[0].report.get::<IndexReport>().unwrap().unposted, left);
        world.check();
    }
}

/// A tail is bounded by its bytes as well as by its documents: writers post what is past that.
#[test]
fn a_tail_of_large_texts_is_posted_by_writers() {
    let world = World::new();
    let long =
        |at: usize| (0..14_000).map(|word| format!("word{} ", (word * 7 + at) % 500)).collect::<String>();
    for part in 0..6 {
        let drafts = (part * 10..part * 10 + 10).map(|at| text(&format!("{at} {}", long(at)))).collect();
        let how = WriteOptions { no_dedup: true, ..WriteOptions::default() };
        world.ns.add_all(drafts, &how).unwrap();
    }
    let plan = world.db.maintain_with(&MaintainOptions::default().passes([Pass::Index])).unwrap();
    let unposted = plan.passes[0].report.get::<IndexReport>().unwrap().unposted;
    assert!(unposted <= 30, "{unposted} of 60 texts of 110 kB wait");
    assert_eq!(world.ns.search(by_words("word17")).unwrap().hits.len(), 60);
    world.check();
}
