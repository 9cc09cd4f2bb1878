//! Declared indexes of metadata: no answer changes by one, whatever is done to the memories, and `check` finds nothing.
//! The same filter behind an `$or` of itself is what no index can answer.

use crate::world::{World, axis, text};
use oubliette::memory::Expiry;
use oubliette::memory::{Fields, SupersedeMode};
use oubliette::report::{CheckOptions, ErasedProbe};
use oubliette::{
    Database, Draft, ErrorKind, Filter, Forget, Mode, NamespaceName, PageRequest, Patch, Query, Scope, State,
    WriteOptions,
};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Value, json};

/// Paths with an index at some time, and one that never has one.
const PATHS: [&str; 4] = ["a", "b.c", "list", "never"];

fn scalar() -> impl Strategy<Value = Value> {
    let long = |tail: &str| json!(format!("{}{tail}", "x".repeat(256)));
    select(vec![
        Value::Null,
        json!(true),
        json!(false),
        json!(0),
        json!(-0.0),
        json!(1),
        json!(1.0),
        json!(-1),
        json!(0.5),
        json!(9_007_199_254_740_992_u64),
        json!(9_007_199_254_740_993_u64),
        json!(u64::MAX),
        json!(1e300),
        json!(""),
        json!("1"),
        json!("x"),
        json!("xy"),
        json!("é"),
        long(""),
        long("y"),
        long("z"),
    ])
}

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        6 => scalar(),
        2 => prop::collection::vec(scalar(), 0..4).prop_map(Value::Array),
        1 => prop::collection::vec(scalar(), 0..3).prop_map(|items| json!([items])),
        // More values than an index holds of one memory.
        1 => (0..300_u32).prop_map(|from| json!((from..from + 257).collect::<Vec<_>>())),
    ]
}

fn metadata() -> impl Strategy<Value = Value> {
    let field = || prop::option::weighted(0.7, value());
    (field(), field(), field(), field(), any::<bool>()).prop_map(|(a, c, list, never, many)| {
        let b = c.map(|c| json!({ "c": c }));
        let list = list.map(|item| if many { json!([item, "x", 1]) } else { item });
        let fields = [("a", a), ("b", b), ("list", list), ("never", never)];
        fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
    })
}

fn test() -> impl Strategy<Value = Value> {
    let equal = (0..PATHS.len(), scalar()).prop_map(|(path, value)| json!({ PATHS[path]: value }));
    let among = (0..PATHS.len(), prop::collection::vec(scalar(), 0..5))
        .prop_map(|(path, values)| json!({ PATHS[path]: { "$in": values } }));
    let whole = (0..300_u32).prop_map(|value| json!({ "a": value }));
    let prefixes = vec!["x", "xy", "1", "é", "\u{0}"].into_iter().map(str::to_owned);
    let prefixes = prefixes.chain(["", "y"].map(|tail| format!("{}{tail}", "x".repeat(256))));
    let begins = (0..PATHS.len(), select(prefixes.collect::<Vec<_>>()))
        .prop_map(|(path, prefix)| json!({ PATHS[path]: { "$prefix": prefix } }));
    prop_oneof![4 => equal, 4 => among, 2 => begins, 1 => whole].prop_map(|test| {
        let test = test.as_object().unwrap().iter();
        test.map(|(path, value)| (format!("metadata.{path}"), value.clone())).collect()
    })
}

fn filters() -> impl Strategy<Value = Vec<Value>> {
    let filter = prop_oneof![
        3 => test(),
        2 => (test(), test()).prop_map(|(a, b)| json!({ "$and": [a, b] })),
        1 => (test(), test()).prop_map(|(a, b)| json!({ "$and": [a, { "$not": b }] })),
        1 => (test(), test()).prop_map(|(a, b)| json!({ "$or": [a, b] })),
        1 => test().prop_map(|a| json!({ "$and": [a, { "importance": { "$gte": 0.1 } }] })),
        1 => test().prop_map(|a| json!({ "$and": [a, { "text": { "$gte": "m" } }] })),
    ];
    prop::collection::vec(filter, 1..6)
}

#[derive(Clone, Debug)]
enum Deed {
    Add(Value, Option<usize>, bool),
    Update(Index, Value),
    Forget(Index),
    ForgetBy(Value),
    Supersede(Index, Index),
    Import(Vec<Value>, bool),
    Collapse,
    Undo,
    Pass(u32),
    Declare(usize),
    End(usize),
    Reindex,
    Compact,
    Reopen,
}

fn deed() -> impl Strategy<Value = Deed> {
    prop_oneof![
        12 => (metadata(), prop::option::of(0..5_usize), any::<bool>())
            .prop_map(|(metadata, key, ends)| Deed::Add(metadata, key, ends)),
        4 => (any::<Index>(), metadata()).prop_map(|(at, metadata)| Deed::Update(at, metadata)),
        2 => any::<Index>().prop_map(Deed::Forget),
        1 => test().prop_map(Deed::ForgetBy),
        2 => (any::<Index>(), any::<Index>()).prop_map(|(old, new)| Deed::Supersede(old, new)),
        2 => (prop::collection::vec(metadata(), 1..6), any::<bool>())
            .prop_map(|(rows, undo)| Deed::Import(rows, undo)),
        1 => Just(Deed::Collapse),
        1 => Just(Deed::Undo),
        1 => (1..40_u32).prop_map(Deed::Pass),
        4 => (0..3_usize).prop_map(Deed::Declare),
        1 => (0..3_usize).prop_map(Deed::End),
        1 => Just(Deed::Reindex),
        1 => Just(Deed::Compact),
        1 => Just(Deed::Reopen),
    ]
}

const WORDS: [&str; 6] = ["lamp", "door", "hall", "stone", "river", "tower"];

struct Story {
    world: World,
    count: usize,
    runs: Vec<oubliette::maintain::RunId>,
}

impl Story {
    fn draft(&mut self, metadata: Value) -> Draft {
        self.count += 1;
        let at = self.count;
        let words = format!("{} {} number {at}", WORDS[at % 6], WORDS[at / 6 % 6]);
        let draft = text(&words).metadata(metadata);
        if at.is_multiple_of(4) {
            return draft;
        }
        draft.vector([(at % 7) as f32 + 0.1, (at % 5) as f32, (at % 3) as f32, 1.0])
    }

    fn any(&self, at: Index) -> Option<String> {
        let live = self.world.live();
        (!live.is_empty()).then(|| at.get(&live).to_string())
    }

    fn act(&mut self, deed: Deed) {
        let (db, ns) = (self.world.db.clone(), self.world.ns.name().clone());
        match deed {
            Deed::Add(metadata, key, ends) => {
                let mut draft = self.draft(metadata);
                draft.expiry = Some(Expiry::After("20d".parse().unwrap())).filter(|_| ends);
                let draft = key.into_iter().fold(draft, |draft, key| draft.key(format!("k{key}")));
                self.world.add(draft);
            }
            Deed::Update(at, metadata) => {
                let Some(name) = self.any(at) else { return };
                let fields = Fields { metadata: Some(metadata), ..Fields::default() };
                db.namespace(&ns).unwrap().update(&name, Patch { fields, ..Patch::default() }).unwrap();
            }
            Deed::Forget(at) => {
                let Some(name) = self.any(at) else { return };
                db.namespace(&ns).unwrap().forget(Forget::names([name])).unwrap();
            }
            Deed::ForgetBy(filter) => {
                let filter = Filter::from_json(&filter).unwrap();
                db.namespace(&ns).unwrap().forget(Forget::filter(filter, Scope::Shared)).unwrap();
            }
            Deed::Supersede(old, new) => {
                let (Some(old), Some(new)) = (self.any(old), self.any(new)) else { return };
                if old != new {
                    db.namespace(&ns)
                        .unwrap()
                        .supersede_all(&[old], &new, SupersedeMode::Correction, None)
                        .unwrap();
                }
            }
            Deed::Import(rows, undo) => {
                let run = self.world.start_import();
                let drafts = rows.into_iter().map(|metadata| self.draft(metadata)).collect();
                self.world.import(run, drafts);
                db.namespace(&ns).unwrap().finish_import(run).unwrap();
                if undo {
                    db.namespace(&ns).unwrap().undo(run).unwrap();
                }
            }
            Deed::Collapse => {
                for (at, room) in ["x", "y", "z"].into_iter().enumerate() {
                    let draft = text("twins in the tower").metadata(json!({ "a": room, "list": [at, "x"] }));
                    let options = WriteOptions { no_dedup: true, ..WriteOptions::default() };
                    db.namespace(&ns).unwrap().add_all(vec![draft], &options).unwrap();
                }
                let done = db.maintain_with(
                    &oubliette::maintain::MaintainOptions::live()
                        .passes([oubliette::maintain::Pass::NearDuplicates]),
                );
                self.runs.extend(done.unwrap().passes.iter().filter_map(|pass| pass.run));
            }
            Deed::Undo => {
                if let Some(run) = self.runs.pop() {
                    // Past its horizon nothing of it is left.
                    let undone = db.namespace(&ns).unwrap().undo(run);
                    assert!(undone.is_ok() || undone.is_err_and(|why| why.kind() == ErrorKind::Conflict));
                }
            }
            Deed::Pass(days) => self.world.advance(&format!("{days}d")),
            Deed::Declare(path) => drop(db.namespace(&ns).unwrap().declare_index(PATHS[path]).unwrap()),
            Deed::End(path) => drop(db.namespace(&ns).unwrap().drop_index(PATHS[path]).unwrap()),
            Deed::Reindex => drop(db.reindex().unwrap()),
            Deed::Compact => drop(db.compact().unwrap()),
            Deed::Reopen => {
                drop(db);
                self.world.reopen();
            }
        }
    }
}

/// Compares every sort of answer to a filter with that to the same behind an `$or`.
fn compare(db: &Database, ns: &NamespaceName, filter: &Value) {
    let plain = Filter::from_json(&json!({ "$or": [filter, filter] })).unwrap();
    let asked = Filter::from_json(filter).unwrap();
    let states = [State::Live, State::Superseded, State::Expired, State::Limbo];
    for (state, any_state) in states.map(|state| (state, false)).into_iter().chain([(State::Live, true)]) {
        let [with, without] = [&asked, &plain].map(|filter| {
            let filter = Some(filter.clone());
            let request = PageRequest { filter, state, any_state, limit: 10_000, ..PageRequest::default() };
            db.namespace(ns).unwrap().list(&request).unwrap().items
        });
        assert_eq!(with, without, "{filter} lists {state:?}");
    }
    let [with, without] = [&asked, &plain].map(|filter| {
        let filter = Some(filter.clone());
        let mut request = PageRequest { filter, limit: 3, ..PageRequest::default() };
        let mut pages = Vec::new();
        for _ in 0..4 {
            let page = db.namespace(ns).unwrap().list(&request).unwrap();
            (request.cursor, pages) = (page.next.clone(), [pages, vec![page]].concat());
            if request.cursor.is_none() {
                break;
            }
        }
        pages
    });
    assert_eq!(with, without, "{filter} in pages");
    let by_words = || Query::text("lamp in the hall by the river").mode(Mode::Text);
    let hybrid = || Query { vector: Some(axis(0).to_vec()), ..by_words().mode(Mode::Hybrid) };
    for query in [Query::vector(axis(1)), by_words(), hybrid(), by_words().scope(Scope::Any)] {
        for k in [3, 1_000] {
            let [with, without] = [&asked, &plain].map(|filter| {
                db.namespace(ns).unwrap().search(query.clone().k(k).filter(filter.clone())).unwrap().hits
            });
            assert_eq!(with, without, "{filter} in {query:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_answer_changes_by_an_index(
        deeds in prop::collection::vec(deed(), 1..30),
        filters in filters(),
    ) {
        let mut story = Story { world: World::new(), count: 0, runs: Vec::new() };
        for deed in deeds {
            story.act(deed);
            story.world.check();
        }
        for filter in &filters {
            compare(&story.world.db, story.world.ns.name(), filter);
        }
    }
}

/// Lists long enough for every way to answer them.
#[test]
fn long_lists_answer_as_no_index_does() {
    let world = World::new();
    world.ns.declare_index("hundredth").unwrap();
    let mut drafts = Vec::new();
    for at in 0..4_200_usize {
        let metadata = json!({
            "name": format!("n{}-{}", at % 10, at % 100),
            "hundredth": at % 100, "tenth": at % 10, "third": at % 3, "most": at > 9, "tags": ["x", at % 7],
        });
        let words = format!("{} {} {} row {at}", WORDS[at % 6], WORDS[at / 5 % 6], WORDS[at / 11 % 6]);
        let turn = at as f32 * 0.37;
        let vector = [turn.sin(), turn.cos(), (turn * 1.7).sin(), (turn * 2.3).cos()];
        drafts.push(text(&words).metadata(metadata).vector(vector));
    }
    world.ns.add_all(drafts, &WriteOptions::default()).unwrap();
    for key in ["tenth", "third", "most", "tags", "name"] {
        assert_eq!(world.ns.declare_index(key).unwrap(), 4_200);
    }
    for filter in [
        json!({ "metadata.hundredth": 7 }),
        json!({ "metadata.hundredth": { "$in": [1, 2] } }),
        json!({ "metadata.tenth": 3 }),
        json!({ "metadata.third": 1 }),
        json!({ "metadata.most": true }),
        json!({ "metadata.tags": 5 }),
        json!({ "metadata.tags": "x", "metadata.tenth": { "$in": [1, 2] } }),
        json!({ "metadata.third": 1, "metadata.hundredth": 10 }),
        json!({ "metadata.third": 1, "text": { "$gt": "r" } }),
        json!({ "metadata.tenth": 3, "metadata.tenth_of": { "$exists": false } }),
        json!({ "metadata.tenth": "3" }),
        json!({ "metadata.name": { "$prefix": "n7-17" } }),
        json!({ "metadata.name": { "$prefix": "n3" } }),
        json!({ "metadata.name": { "$prefix": "n" }, "metadata.third": 1 }),
        json!({ "metadata.name": { "$prefix": "n1\u{0}" } }),
        json!({ "metadata.tenth": { "$in": [] } }),
        json!({ "metadata.tenth": { "$in": ["x\u{0}", 3] } }),
    ] {
        compare(&world.db, world.ns.name(), &filter);
    }
    world.check();
}

#[test]
fn a_key_has_bounds_and_a_namespace_has_so_many() {
    let world = World::new();
    let refused = |key: &str| world.ns.declare_index(key).unwrap_err().kind();
    for key in ["", "a\0b", "a..b", ".a", &"x".repeat(129)] {
        assert_eq!(refused(key), ErrorKind::Invalid, "{key:?}");
        assert_eq!(world.ns.drop_index(key).unwrap_err().kind(), ErrorKind::Invalid);
    }
    assert_eq!(world.ns.indexes().unwrap(), [""; 0], "no namespace");
    assert!(!world.ns.drop_index("a").unwrap(), "no namespace");
    assert_eq!(world.ns.declare_index(&"x".repeat(128)).unwrap(), 0);
    for at in 1..16 {
        world.ns.declare_index(&format!("k{at}")).unwrap();
    }
    assert_eq!(refused("one.more"), ErrorKind::Invalid);
    assert_eq!(world.ns.declare_index("k3").unwrap(), 0, "it is there");
    assert!(world.ns.drop_index("k3").unwrap());
    assert!(!world.ns.drop_index("k3").unwrap());
    world.ns.declare_index("one.more").unwrap();
    assert_eq!(world.ns.indexes().unwrap().len(), 16);
    assert_eq!(world.db.namespace("other").unwrap().indexes().unwrap(), [""; 0]);
}

#[test]
fn an_index_goes_with_its_namespace_and_stays_through_a_copy() {
    let mut world = World::new();
    let draft = |room: &str| text(&format!("in {room}")).metadata(json!({ "room": room }));
    world.add(draft("hall"));
    assert_eq!(world.ns.declare_index("room").unwrap(), 1);
    world.add(draft("cellar"));
    world.db.compact().unwrap();
    world.reopen();
    assert_eq!(world.ns.indexes().unwrap(), ["room"]);
    assert_eq!(world.ns.reindex().unwrap(), 0);
    compare(&world.db, world.ns.name(), &json!({ "metadata.room": "cellar" }));
    world.db.backup(world.beside("copy.oub")).unwrap();
    let copy = world.builder().open(world.beside("copy.oub")).unwrap();
    assert_eq!(copy.namespace(world.ns.name()).unwrap().indexes().unwrap(), ["room"]);
    compare(&copy, world.ns.name(), &json!({ "metadata.room": "cellar" }));
    world.db.drop_namespace(world.ns.name()).unwrap();
    assert_eq!(world.ns.indexes().unwrap(), [""; 0]);
    world.add(draft("hall"));
    assert_eq!(world.ns.declare_index("room").unwrap(), 1);
}

/// MODEL-30: what an index says of a memory goes with it.
#[test]
fn forgetting_leaves_no_value_in_the_file() {
    let world = World::new();
    let secret = "the combination of the safe is 31 7 22";
    world.ns.declare_index("note").unwrap();
    let id = world.add(text("a memory of the safe").metadata(json!({ "note": secret }))).id;
    world.add(text("a memory of the door").metadata(json!({ "note": "nothing" })));
    world.forget_id(id);
    world.db.compact().unwrap();
    let erased = vec![
        ErasedProbe { texts: vec![secret.to_owned()], ..ErasedProbe::default() },
        ErasedProbe { keys: vec!["note".to_owned()], ..ErasedProbe::default() },
    ];
    let report = world.db.check(&CheckOptions { deep: true, erased }).unwrap();
    assert!(report.ok, "{:#?}", report.findings);
    let again = world.add(text("a memory of the safe").metadata(json!({ "note": secret }))).id;
    assert!(world.is_live(again));
    let erased = vec![ErasedProbe { texts: vec![secret.to_owned()], ..ErasedProbe::default() }];
    let report = world.db.check(&CheckOptions { deep: true, erased }).unwrap();
    assert!(report.ok, "what a live row says is no residue: {:#?}", report.findings);
}
