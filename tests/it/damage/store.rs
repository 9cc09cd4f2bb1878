//! A store with every sort of row, its tables read and damaged behind the back of everything.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use oubliette::clock::ManualClock;
use oubliette::gc::GcOptions;
use oubliette::maintain::{MaintainOptions, Pass};
use oubliette::memory::{AuthorKind, ContextDraft, Entity, Field, GoalDraft, Inclusion, Link};
use oubliette::memory::{Expiry, Tier};
use oubliette::policy::{Policy, Syntax};
use oubliette::{Database, Draft, Durability, Forget, Kind, MemoryId, Query, Span, Time, WriteOptions};
use redb::{ReadableDatabase, ReadableTable};
use serde_json::json;

use crate::world::World;

pub(crate) const DIM: usize = 64;
/// Memories that are read and searched for.
pub(crate) const ROWS: usize = 90;

/// A vector of its own for each row.
pub(crate) fn vector(at: usize) -> Vec<f32> {
    let mut state = at as u64 + 1;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as f32 / (1_u64 << 31) as f32 - 0.5
    };
    (0..DIM).map(|_| next()).collect()
}

/// A word that only one row has.
pub(crate) fn word(at: usize) -> String {
    let letter = |digit: usize| char::from(b'a' + digit as u8);
    format!("zq{}{}{}x", letter(at / 26), letter(at % 26), letter((at * 7) % 26))
}

pub(crate) fn options(builder: oubliette::Builder) -> oubliette::Builder {
    // More than 30 rows have a graph.
    let policy =
        "[index]\nscan_max = 3_840\ntail_min = 8\n[write]\nop_match = false\n[gc]\nkeep_queries = true";
    builder.policy(Policy::parse(policy, Syntax::Toml).unwrap())
}

/// What was written: number of the row by id.
pub(crate) struct Store {
    _folder: tempfile::TempDir,
    pub(crate) file: PathBuf,
    pub(crate) now: Time,
    pub(crate) rows: BTreeMap<MemoryId, usize>,
}

pub(crate) fn draft(at: usize) -> Draft {
    let mut draft = Draft::new(format!("{} row {at} of the store", word(at)))
        .key(format!("k{at}"))
        .tag(format!("t{}", at % 3))
        .vector(vector(at))
        .metadata(json!({ "room": at % 4 }));
    draft.categories = Some(vec![format!("c{}", at % 4)]);
    draft.entities = Some(vec![Entity { name: format!("e{}", at % 5), role: "about".to_owned() }]);
    draft.fields.retrieval_count = Some(at as u64);
    if at % 10 == 9 {
        draft = draft.agent("scout");
    }
    draft
}

pub(crate) fn message(kind: AuthorKind, text: &str) -> Draft {
    let mut draft = Draft::new(text).kind(Kind::Message);
    draft.fields.author_kind = Field::from(Some(kind));
    draft.fields.channel = Field::from(Some("c1".to_owned()));
    draft
}

/// A store with every sort of row, after the passes.
pub(crate) fn store() -> Store {
    let world = World::with(options);
    let (db, ns) = (&world.db, world.ns.name());
    db.namespace(ns).unwrap().declare_index("room").unwrap();
    let run = world.start_import();
    let how = WriteOptions { run: Some(run), ..WriteOptions::default() };
    db.namespace(ns).unwrap().add_all((0..20).map(draft).collect(), &how).unwrap();
    db.namespace(ns).unwrap().add_all((20..ROWS).map(draft).collect(), &WriteOptions::default()).unwrap();
    let first = world.row("k0").id;
    let mut linked = Draft::new("linked to the first").key("linked");
    linked.links = Some(vec![Link { to: first, relation: "after".to_owned() }]);
    linked.sources = Some(vec![first]);
    linked.payload = Some(vec![7; 100].into());
    world.add(linked);
    for at in 0..3 {
        let mut turn = Draft::new(format!("turn {at} of a conversation"));
        turn.fields.channel = Field::from(Some("c2".to_owned()));
        turn.fields.session = Field::from(Some("s1".to_owned()));
        world.add(turn);
    }
    let short = Draft::new("short of life").key("short").tier(Tier::Working);
    world.add(short.expiry(Expiry::At(world.ahead("1h"))));
    world.add(Draft::new("in use for now").key("used").tier(Tier::Working).retrieval_count(2));
    world.add(Draft::new("revised once").key("rev").vector(vector(901)));
    world.add(Draft::new("revised twice").key("rev").vector(vector(902)));
    world.add(Draft::new("gone soon").key("gone").vector(vector(903)));
    world.forget(&["gone"]);
    for at in 0..3 {
        world.add(Draft::new(format!("Gateway status: {at} apps pending")).kind(Kind::Profile));
        world.add(message(AuthorKind::Bot, &format!("build done 12:3{at}")));
    }
    let mut snapshot = Draft::new("snapshot of the day").kind(Kind::Snapshot);
    snapshot.vector = Some(vector(904));
    world.add(snapshot);
    world.add(message(AuthorKind::Human, "is the build done?"));
    world.add(message(AuthorKind::Human, "who looks after the log?"));
    world.add(Draft::new("what a session came to").kind(Kind::ConsolidatedSummary).vector(vector(907)));
    let context = ContextDraft::new("turn-1", [Inclusion::new("k2", 12), Inclusion::new("k3", 9)]);
    world.ns.context_log_write(&context).unwrap();
    world.ns.set_goal(GoalDraft::new("Keep the store whole").agent("keeper").vector(vector(906))).unwrap();
    // The next write keeps it.
    let question = Query { vector: Some(vector(2)), ..Query::text(word(2)).k(5).track(true) };
    world.ns.search(question).unwrap();
    db.maintain_with(&MaintainOptions::live().passes([Pass::Collapse])).unwrap();
    db.maintain().unwrap();
    // Behind the graph, and not posted.
    db.namespace(ns).unwrap().forget(Forget::names(["k1", "k11"])).unwrap();
    world.add(Draft::new("pinned past its end").tag("pinned").expiry(Expiry::At(world.ahead("1s"))));
    world.advance("1m");
    let plan = world.ns.gc_plan(&GcOptions { age_min: Some(Span::ZERO), ..GcOptions::default() }).unwrap();
    assert!(!plan.groups.is_empty(), "a plan with a group");
    for late in ["late", "freed"] {
        world.add(Draft::new(format!("{late} after the passes")).key(late).vector(vector(905 + late.len())));
    }
    world.forget(&["freed"]);
    world.check();
    let truth = (0..ROWS).filter(|at| ![1, 11].contains(at));
    let rows = truth.map(|at| (world.row(format!("k{at}")).id, at)).collect();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("store.oub");
    db.clone().close().unwrap();
    std::fs::copy(world.path(), &file).unwrap();
    Store { _folder: folder, file, now: world.now(), rows }
}

/// Keys and values of a table.
pub(crate) type Rows = Vec<(Vec<u8>, Vec<u8>)>;

/// The rows of every table of a file.
pub(crate) fn tables(path: &Path) -> BTreeMap<String, Rows> {
    let db = redb::Database::open(path).unwrap();
    let tx = db.begin_read().unwrap();
    let mut all = BTreeMap::new();
    for table in tx.list_tables().unwrap() {
        let name = redb::TableHandle::name(&table).to_owned();
        let table = tx.open_table(redb::TableDefinition::<&[u8], &[u8]>::new(&name)).unwrap();
        let rows = table.iter().unwrap().map(|row| row.unwrap());
        all.insert(name, rows.map(|(key, value)| (key.value().to_vec(), value.value().to_vec())).collect());
    }
    all
}

/// Rows of a table that are to be changed.
pub(crate) type Table<'t> = redb::Table<'t, &'static [u8], &'static [u8]>;

/// Changes a table behind the back of everything.
pub(crate) fn change(path: &Path, table: &str, change: impl FnOnce(&mut Table<'_>)) {
    let db = redb::Database::open(path).unwrap();
    let tx = db.begin_write().unwrap();
    change(&mut tx.open_table(redb::TableDefinition::<&[u8], &[u8]>::new(table)).unwrap());
    tx.commit().unwrap();
}

pub(crate) fn overwrite(path: &Path, table: &str, key: &[u8], value: &[u8]) {
    change(path, table, |rows| drop(rows.insert(key, value).unwrap()));
}

/// Damages one byte of the key of a row where it stands: the row keeps its place, which the key no longer fits.
pub(crate) fn rot_key(path: &Path, table: &str, key: &[u8], at: usize, byte: u8) {
    let rows = &tables(path)[table];
    let nth = rows.iter().position(|(other, _)| other == key).expect("a row under the key");
    let value = &rows[nth].1;
    let mut file = std::fs::read(path).unwrap();
    // Other tables have rows under the same key, and branches have the keys of leaves: the value tells the leaf.
    let found = |file: &[u8], what: &[u8]| file.windows(what.len()).position(|bytes| bytes == what);
    let mut from = 0;
    let needle = if value.is_empty() { key.to_vec() } else { value.clone() };
    while let Some(offset) = found(&file[from..], &needle) {
        let start = from + offset;
        let page = start / 4096 * 4096;
        let place = match value.is_empty() {
            true => Some(start),
            false => found(&file[page..start], key).map(|offset| page + offset),
        };
        if let Some(place) = place {
            file[place + at] = byte;
        }
        from = start + needle.len();
    }
    std::fs::write(path, file).unwrap();
    let mut rotten = key.to_vec();
    rotten[at] = byte;
    assert_eq!(tables(path)[table].get(nth).map(|(key, _)| key), Some(&rotten), "the row keeps its place");
}

/// Opens a copy of the store, with a clock of its own.
pub(crate) fn try_open(path: &Path, now: Time) -> oubliette::Result<(Database, ManualClock)> {
    let clock = ManualClock::at(now);
    let builder = Database::builder().clock(clock.clone()).secret([7; 32]).cache_bytes(4 << 20);
    let db = options(builder.durability(Durability::Batch)).open(path)?;
    Ok((db, clock))
}

pub(crate) fn open(path: &Path, now: Time) -> (Database, ManualClock) {
    try_open(path, now).unwrap()
}

/// The ways in which a value is damaged.
pub(crate) const WAYS: [&str; 5] = ["a bit", "cut", "zeroed", "of another row", "emptied"];

pub(crate) fn damaged(way: &str, at: usize, rows: &[(Vec<u8>, Vec<u8>)]) -> Vec<u8> {
    let mut value = rows[at].1.clone();
    // Where no value belongs any is damage.
    if value.is_empty() {
        return vec![7, 7, 7];
    }
    let middle = value.len() / 2;
    match way {
        "a bit" => value[middle] ^= 16,
        "cut" => value.truncate(middle),
        "zeroed" => value.fill(0),
        "of another row" => {
            let others = (0..rows.len()).map(|step| &rows[(at + 1 + step) % rows.len()].1);
            value = others.into_iter().find(|other| **other != value).cloned().unwrap_or(vec![9; 40]);
        }
        _ => value.clear(),
    }
    value
}
