//! What a search by words ranks by beside the words: neighbours, time, the policy's priors; and what is asked about it.

use oubliette::clock::ManualClock;
use oubliette::embed::HashEmbedder;
use oubliette::memory::{PointInTime, Significance, SupersedeMode};
use oubliette::policy::Policy;
use oubliette::{Database, Draft, Filter, Kind, MemoryId, Namespace, Query, Scope, Time};
use serde_json::json;
use tempfile::TempDir;

fn ns(db: &Database) -> Namespace {
    db.namespace("default").unwrap()
}

fn at(text: &str) -> Time {
    text.parse().unwrap()
}

fn open(folder: &TempDir, policy: Policy) -> Database {
    let clock = ManualClock::at(at("2026-06-01T00:00:00Z"));
    Database::builder().clock(clock).policy(policy).open(folder.path().join("m.oub")).unwrap()
}

fn said(session: &str, when: &str, words: &str) -> Draft {
    let mut draft = Draft::new(words);
    draft.fields.session = Some(session.to_owned()).into();
    draft.fields.happened_at = Some(at(when)).into();
    draft
}

fn hits(db: &Database, query: &Query) -> Vec<MemoryId> {
    ns(db).search(query).unwrap().hits.into_iter().map(|hit| hit.id).collect()
}

/// Fills up a partition with texts that say nothing of what is asked.
fn others(db: &Database) {
    let texts =
        (0..30).map(|number| Draft::new(format!("filler sentence {number} about gardens and weather")));
    ns(db).add_all(texts.collect(), &Default::default()).unwrap();
}

#[test]
fn the_turn_between_two_halves_of_an_answer_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(&folder, Policy::default());
    others(&db);
    let turns = [
        "Ann: did you ever get the violin repaired?",
        "Ben: yes, last week, at the little shop near the station, it cost me a fortune though",
        "Ann: the luthier there is wonderful",
        "Ann: anyway, what is for dinner?",
    ];
    let ids: Vec<MemoryId> = turns
        .iter()
        .map(|words| ns(&db).add(said("s1", "2026-03-01T10:00:00Z", words)).unwrap().id)
        .collect();
    let query = Query::text("where did Ben have the violin repaired by a luthier").k(3);
    let found = ns(&db).search(&query).unwrap();
    let middle = found.hits.iter().find(|hit| hit.id == ids[1]).expect("the turn in the middle");
    assert!(middle.signals.context > Some(0.0), "{middle:?}");
    let around = ns(&db).around(ids[1], 1).unwrap();
    assert_eq!((around.before, around.after), (vec![ids[0]], vec![ids[2]]));
    let mut alone = Policy::default();
    alone.recall.window = 0.0;
    let folder = tempfile::tempdir().unwrap();
    let db = open(&folder, alone);
    for words in turns {
        ns(&db).add(said("s1", "2026-03-01T10:00:00Z", words)).unwrap();
    }
    let found = ns(&db).search(&query).unwrap();
    assert!(found.hits.iter().all(|hit| hit.signals.context == Some(0.0)), "the policy turns it off");
}

/// What is no longer visible takes no place in its thread, whether or not its row is still there.
#[test]
fn the_turns_on_both_sides_of_a_superseded_one_are_neighbours() {
    let folder = TempDir::new().unwrap();
    let clock = ManualClock::at(at("2026-06-01T00:00:00Z"));
    let db = Database::builder().clock(clock.clone()).open(folder.path().join("m.oub")).unwrap();
    let team = ns(&db);
    let turn = |key: &str, minute: u32, words: &str| {
        let when = format!("2026-05-01T10:{minute:02}:00Z");
        team.add(said("t", &when, words).key(key)).unwrap().id
    };
    let asked = turn("a", 0, "shall we eat out tonight");
    let between: Vec<MemoryId> = (1..4).map(|at| turn(&format!("b{at}"), at, &format!("hmm {at}"))).collect();
    let answer = turn("c", 9, "Luigi on the corner");
    let query = || Query::text("eat out tonight");
    let scores = |query: Query| -> Vec<(MemoryId, u32)> {
        team.search(query).unwrap().hits.iter().map(|hit| (hit.id, hit.score.to_bits())).collect()
    };
    assert!(!scores(query()).iter().any(|(id, _)| *id == answer), "too far away");
    clock.advance("1h".parse().unwrap());
    let other = team.add("the weather of May").unwrap().id;
    for id in &between {
        team.supersede_all([*id], other, SupersedeMode::Correction, None).unwrap();
    }
    let live = scores(query());
    assert_eq!(live.iter().map(|(id, _)| *id).collect::<Vec<_>>(), [asked, answer]);
    clock.advance("1h".parse().unwrap());
    assert_eq!(scores(query().as_of(at("2026-06-01T01:30:00Z"))), live);
    let then = PointInTime::as_of(at("2026-06-01T00:30:00Z"));
    assert_eq!(team.around_at(asked, 9, &then).unwrap().after, [between.clone(), vec![answer]].concat());
    assert_eq!(team.around(asked, 9).unwrap().after, [answer]);
    between.iter().for_each(|id| drop(team.forget(*id).unwrap()));
    assert_eq!(scores(query()), live);
}

#[test]
fn a_named_month_is_preferred_and_filters_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(&folder, Policy::default());
    let march = ns(&db).add(said("a", "2026-03-09T08:00:00Z", "Ann went hiking in the hills")).unwrap().id;
    let may = ns(&db).add(said("b", "2026-05-09T08:00:00Z", "Ann went hiking by the sea")).unwrap().id;
    assert_eq!(hits(&db, &Query::text("where did Ann go hiking in May")), [may, march]);
    assert_eq!(hits(&db, &Query::text("where did Ann go hiking in March 2026")), [march, may]);
    assert_eq!(hits(&db, &Query::text("hiking on 9 May 2026"))[0], may);
    let found = ns(&db).search(Query::text("hiking in May")).unwrap();
    assert_eq!(found.hits[0].signals.time, Some(0.15));
}

#[test]
fn priors_are_off_until_the_policy_weighs_them() {
    let draft = |words: &str, significance| {
        let mut draft = Draft::new(words);
        draft.fields.significance = Some(significance);
        draft
    };
    let texts =
        [("the deploy key rotates", Significance::Routine), ("a deploy key is kept", Significance::Core)];
    let mut weighed = Policy::default();
    weighed.recall.significance = 1.0;
    for (policy, prior) in [(Policy::default(), false), (weighed, true)] {
        let folder = tempfile::tempdir().unwrap();
        let db = open(&folder, policy);
        let ids = texts.map(|(words, significance)| ns(&db).add(draft(words, significance)).unwrap().id);
        let found = ns(&db).search(Query::text("deploy key")).unwrap();
        assert_eq!(found.hits.iter().all(|hit| hit.signals.prior.is_some()), prior);
        if prior {
            assert_eq!(found.hits[0].id, ids[1]);
        }
    }
}

/// GC-43: a question whose evidence was compacted is answered by the summary that stands for it.
#[test]
fn a_summary_gains_for_standing_for_others() {
    let mut off = Policy::default();
    off.recall.summary = 0.0;
    for (policy, prior) in [(Policy::default(), Some(0.2)), (off, None)] {
        let folder = tempfile::tempdir().unwrap();
        let db = open(&folder, policy);
        let summary = |words: &str, sources: Vec<MemoryId>| {
            let mut draft = Draft::new(words).kind(Kind::Summary);
            draft.sources = Some(sources);
            ns(&db).add(draft).unwrap().id
        };
        let turn = ns(&db).add("Ben: the deploy key rotates on Monday").unwrap().id;
        let with = summary("the week: Ben spoke about a deploy key and about lunch", vec![turn]);
        let without = summary("the month: Ben spoke about a deploy key and about supper", vec![]);
        let found = ns(&db).search(Query::text("when does the deploy key rotate")).unwrap().hits;
        let gained = |id| found.iter().find(|hit| hit.id == id).unwrap().signals.prior;
        assert_eq!([with, turn, without].map(gained), [prior, None, None]);
        let score = |id| found.iter().find(|hit| hit.id == id).unwrap().score;
        let more = score(with) - score(without);
        assert!((more - prior.unwrap_or(0.0)).abs() < 1e-5, "of two that say as much: {found:?}");
    }
}

#[test]
fn a_hit_and_a_miss_are_explained() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(&folder, Policy::default());
    let add = |key: &str, words: &str| ns(&db).add(Draft::new(words).key(key)).unwrap().id;
    add("tea", "Ann drinks green tea");
    add("tea2", "green tea, green tea, Ann");
    add("sea", "Ben sails the sea");
    ns(&db).add(Draft::new("Ann drinks tea alone").key("far").agent("other")).unwrap();
    let query = Query::text("Ann green tea").k(1);
    let why = |name: &str, query: &Query| ns(&db).why(query, name).unwrap();
    let best = ns(&db).keys_of(hits(&db, &query)[0]).unwrap().remove(0);
    let other = if best == "tea" { "tea2" } else { "tea" };
    assert_eq!((why(&best, &query).reason, why(&best, &query).rank), ("hit", Some(1)));
    let second = why(other, &query);
    assert_eq!((second.reason, second.rank), ("others_are_better", None));
    assert!(second.score <= second.least && second.signals.text > Some(0.0), "{second:?}");
    assert_eq!(why("sea", &query).reason, "nothing_in_common");
    assert_eq!(why("far", &query).reason, "other_partition");
    let tagged = query.filter(Filter::from_json(&json!({ "tags": "x" })).unwrap());
    assert_eq!(why("tea", &tagged).reason, "filter");
    ns(&db).forget(oubliette::Forget::names(["sea"])).unwrap();
    assert_eq!(why("sea", &Query::text("sea")).reason, "not_visible");
    assert!(ns(&db).why(Query::text("sea"), "nobody").is_err());
}

#[test]
fn diverse_hits_differ() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(&folder, Policy::default());
    db.use_embedder(HashEmbedder::new()).unwrap();
    let same = ["the build failed on arm", "the build failed on arm!", "the build failed on arm again"];
    for words in same {
        ns(&db).add(Draft::new(words)).unwrap();
    }
    let other = ns(&db).add(Draft::new("a failed disk stopped the night build")).unwrap().id;
    let query = Query::text("failed build").k(2);
    assert!(hits(&db, &query.clone().diversity(0.9)).contains(&other));
    assert_eq!(hits(&db, &query.clone().diversity(0.0)), hits(&db, &query));
    assert!(Query::text("x").diversity(1.5).check().is_err());
    assert!(Query::text("x").diversity(f32::NAN).check().is_err());
}

#[test]
fn life_25_a_briefing_begins_with_what_is_pinned() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(&folder, Policy::default());
    let mut weak =
        Draft::new("pinned, of little importance, and quite long so that it takes tokens").tag("pinned");
    weak.fields.importance = Some(0.1);
    let mut strong = Draft::new("pinned and important").tag("pinned");
    strong.fields.importance = Some(0.9);
    let (weak, strong) = (ns(&db).add(weak).unwrap().id, ns(&db).add(strong).unwrap().id);
    let mut worth = Draft::new("worth keeping");
    worth.fields.importance = Some(1.0);
    let worth = ns(&db).add(worth).unwrap().id;
    let less = ns(&db).add(Draft::new("less worth it")).unwrap().id;
    let ids = |tokens| -> Vec<MemoryId> {
        let briefed = ns(&db).briefing(&Scope::Shared, tokens).unwrap();
        briefed.items.into_iter().map(|briefed| briefed.memory.id).collect()
    };
    assert_eq!(ids(1_000), [strong, weak, worth, less]);
    assert_eq!(ids(0), [strong, weak], "the budget never cuts pinned ones");
    assert_eq!(ids(27), [strong, weak, worth]);
}

#[test]
fn a_deadline_ends_a_query_with_what_it_has() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(&folder, Policy::default());
    others(&db);
    let query = Query::text("filler sentence about gardens");
    let whole = ns(&db).search(query.clone().deadline("1h".parse::<oubliette::Span>().unwrap())).unwrap();
    assert!(!whole.plan.partial && whole.hits.len() == 10);
    assert_eq!(whole.hits, ns(&db).search(&query).unwrap().hits);
    let none = ns(&db).search(query.deadline("0s".parse::<oubliette::Span>().unwrap())).unwrap();
    assert!(none.plan.partial && none.hits.is_empty(), "{:?}", none.plan);
}
