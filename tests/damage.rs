//! One damaged value keeps no other memory from being read, written, exported or forgotten, nor itself from being forgotten.
//!
//! A store with every sort of row, after every pass, is damaged at one value at a time, in several ways, in every table.
//! `OUBLIETTE_DAMAGE=n` damages n values of each table in every way.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "a test may panic and tell"
)]

mod world;

use std::collections::BTreeMap;
use std::io::Cursor;
use std::path::{Path, PathBuf};

use oubliette::exchange::{Export, VectorsTo};
use oubliette::policy::{Policy, Syntax};
use oubliette::{
    AuthorKind, CheckOptions, Database, Draft, Durability, Effort, Entity, ErrorKind, Expiry, Field, Forget,
    Got, Kind, Link, MaintainOptions, ManualClock, MemoryId, Namespace, PageRequest, Pass, Patch, Query,
    Scope, Time, WriteOptions,
};
use redb::{ReadableDatabase, ReadableTable};
use serde_json::json;
use world::{World, axis};

const DIM: usize = 64;
/// Memories that are read and searched for.
const ROWS: usize = 90;
/// Tables of the store as a whole: without these no namespace is readable. And the row that says that a namespace is there.
const OF_THE_STORE: [&str; 4] = ["meta", "space", "policy", "namespace"];
/// Damage to these hides memories from some searches, until `reindex`.
const HIDING: [&str; 5] = ["slot", "slot_head", "vector", "text_doc", "text_posting"];

/// A vector of its own for each row.
fn vector(at: usize) -> Vec<f32> {
    let mut state = at as u64 + 1;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as f32 / (1_u64 << 31) as f32 - 0.5
    };
    (0..DIM).map(|_| next()).collect()
}

/// A word that only one row has.
fn word(at: usize) -> String {
    let letter = |digit: usize| char::from(b'a' + digit as u8);
    format!("zq{}{}{}x", letter(at / 26), letter(at % 26), letter((at * 7) % 26))
}

fn options(builder: oubliette::Builder) -> oubliette::Builder {
    let policy = "[index]\nexact_max = 30\nexact_min = 10\ntail_min = 8\n[write]\nop_match = false";
    builder.policy(Policy::parse(policy, Syntax::Toml).unwrap())
}

/// What was written: number of the row by id.
struct Store {
    _folder: tempfile::TempDir,
    file: PathBuf,
    now: Time,
    rows: BTreeMap<MemoryId, usize>,
}

fn draft(at: usize) -> Draft {
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

fn message(kind: AuthorKind, text: &str) -> Draft {
    let mut draft = Draft::new(text).kind(Kind::Message);
    draft.fields.author_kind = Field::from(Some(kind));
    draft.fields.channel = Field::from(Some("c1".to_owned()));
    draft
}

/// A store with every sort of row, after the passes.
fn store() -> Store {
    let world = World::with(options);
    let (db, ns) = (&world.db, &world.ns);
    db.declare_index(ns, "room").unwrap();
    let run = world.start_import();
    let how = WriteOptions { run: Some(run), ..WriteOptions::default() };
    db.add_all(ns, (0..20).map(draft).collect(), &how).unwrap();
    db.add_all(ns, (20..ROWS).map(draft).collect(), &WriteOptions::default()).unwrap();
    let first = world.row("k0").id;
    let mut linked = Draft::new("linked to the first").key("linked");
    linked.links = Some(vec![Link { to: first, relation: "after".to_owned() }]);
    linked.sources = Some(vec![first]);
    world.add(linked);
    for at in 0..3 {
        let mut turn = Draft::new(format!("turn {at} of a conversation"));
        turn.fields.channel = Field::from(Some("c2".to_owned()));
        turn.fields.session = Field::from(Some("s1".to_owned()));
        world.add(turn);
    }
    world.add(Draft::new("short of life").key("short").expiry(Expiry::At(world.ahead("1h"))));
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
    db.maintain(&[Pass::Collapse], &MaintainOptions::live()).unwrap();
    db.maintain(&[], &MaintainOptions::live()).unwrap();
    // Behind the graph, and not posted.
    db.forget(ns, Forget::names(["k1", "k11"])).unwrap();
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
type Rows = Vec<(Vec<u8>, Vec<u8>)>;

/// The rows of every table of a file.
fn tables(path: &Path) -> BTreeMap<String, Rows> {
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

fn overwrite(path: &Path, table: &str, key: &[u8], value: &[u8]) {
    let db = redb::Database::open(path).unwrap();
    let tx = db.begin_write().unwrap();
    {
        let mut table = tx.open_table(redb::TableDefinition::<&[u8], &[u8]>::new(table)).unwrap();
        table.insert(key, value).unwrap();
    }
    tx.commit().unwrap();
}

/// The ways in which a value is damaged.
const WAYS: [&str; 5] = ["a bit", "cut", "zeroed", "of another row", "emptied"];

fn damaged(way: &str, at: usize, rows: &[(Vec<u8>, Vec<u8>)]) -> Vec<u8> {
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

/// One damaged copy under examination.
struct Patient<'s> {
    db: Database,
    ns: Namespace,
    store: &'s Store,
    victim: Option<MemoryId>,
    table: &'s str,
    wrong: Vec<String>,
}

impl Patient<'_> {
    fn note<T>(&mut self, what: &str, done: oubliette::Result<T>) -> Option<T> {
        done.map_err(|why| self.wrong.push(format!("{what}: {why}"))).ok()
    }

    fn expect(&mut self, what: &str, holds: bool) {
        if !holds {
            self.wrong.push(what.to_owned());
        }
    }

    fn others(&self) -> Vec<(MemoryId, usize)> {
        let others = self.store.rows.iter().filter(|(id, _)| Some(**id) != self.victim);
        others.map(|(id, at)| (*id, *at)).collect()
    }

    fn reads(&mut self) {
        for (id, at) in self.others() {
            let names = [id.to_string(), format!("k{at}")];
            for name in names.into_iter().take(if at % 8 == 0 { 2 } else { 1 }) {
                let got = self.db.get(&self.ns, &name, false);
                if let Some(got) = self.note(&format!("get {name}"), got) {
                    let memory = got.into_memory();
                    let told =
                        memory.is_some_and(|memory| memory.id == id && memory.text.contains(&word(at)));
                    self.expect(&format!("{name} is another"), told);
                }
            }
        }
        if let Some(victim) = self.victim.filter(|id| self.store.rows.contains_key(id)) {
            match self.db.get(&self.ns, &victim.to_string(), false) {
                Ok(Got::Memory(memory)) => {
                    let at = self.store.rows[&victim];
                    self.expect("other data", memory.text.contains(&word(at)));
                }
                Ok(Got::Tombstone(_)) => self.wrong.push("the damaged one was never forgotten".to_owned()),
                Err(why) => {
                    self.expect(&format!("get of the damaged: {why}"), why.kind() == ErrorKind::Corrupted)
                }
            }
        }
        let request = PageRequest { scope: Scope::Any, limit: 10_000, ..PageRequest::default() };
        let page = self.db.list(&self.ns, &request);
        if let Some(page) = self.note("list", page) {
            let listed: Vec<MemoryId> = page.items.iter().map(|memory| memory.id).collect();
            for (id, at) in self.others() {
                self.expect(&format!("row {at} is not listed"), listed.contains(&id));
            }
        }
        let all = PageRequest { any_state: true, ..request };
        let page = self.db.list(&self.ns, &all);
        self.note("list in every state", page);
        let page = self.db.tombstones(&self.ns, None, 1_000);
        self.note("tombstones", page);
    }

    fn searches(&mut self, healed: bool) {
        let lenient = !healed && HIDING.contains(&self.table);
        for (id, at) in self.others().into_iter().step_by(7) {
            let found = self.db.search(&self.ns, &Query::text(word(at)).scope(Scope::Any).k(5));
            if let Some(found) = self.note("search by words", found) {
                let hit = found.hits.first().is_some_and(|hit| hit.id == id);
                self.expect(&format!("row {at} is not found by its word"), hit || lenient);
            }
            // A vector that is lost is no memory's any more.
            if self.table == "vector" {
                continue;
            }
            for effort in [Effort::Exact, Effort::Ef(200)] {
                let query = Query::vector(vector(at)).scope(Scope::Any).k(5).effort(effort);
                let found = self.db.search(&self.ns, &query);
                if let Some(found) = self.note("search by vector", found) {
                    let hit = found.hits.first().is_some_and(|hit| hit.id == id);
                    self.expect(&format!("row {at} is not found by its vector"), hit || lenient);
                }
            }
        }
        let filter = oubliette::Filter::parse(r#"{"metadata.room": 2}"#).unwrap();
        let query = Query::vector(vector(2)).filter(filter).k(5);
        let found = self.db.search(&self.ns, &query);
        self.note("search with a filter", found);
    }

    fn writes(&mut self, step: usize) {
        for agent in [None, Some("scout")] {
            let mut new = draft(500 + step).key(format!("new {step} {agent:?}"));
            new.text = format!("new {step} for {agent:?}");
            new.vector = Some(vector(500 + 2 * step + usize::from(agent.is_some())));
            new.agent = agent.map(str::to_owned);
            let added = self.db.add(&self.ns, new);
            self.note("add", added);
        }
        let added = self.db.add(&self.ns, message(AuthorKind::Bot, &format!("build done 12:4{step}")));
        self.note("add a message", added);
        let others = self.others();
        for (round, patch) in [
            Patch { tags: Some(vec!["changed".to_owned()]), ..Patch::default() },
            Patch { vector: Some(vector(700 + step)), ..Patch::default() },
        ]
        .into_iter()
        .enumerate()
        {
            let (id, _) = others[(step * 13 + round * 5 + 3) % others.len()];
            let updated = self.db.update(&self.ns, &id.to_string(), patch);
            self.note(&format!("update {round}"), updated);
            let back = Patch { vector: Some(vector(self.store.rows[&id])), ..Patch::default() };
            let updated = self.db.update(&self.ns, &id.to_string(), back);
            self.note("update back", updated);
        }
        let forgotten = self.db.forget(&self.ns, Forget::names([format!("new {step} None")]));
        self.note("forget another", forgotten);
    }

    fn upkeep(&mut self) {
        let stats = self.db.stats(None);
        self.note("stats", stats);
        let stats = self.db.memory_stats(&self.ns);
        self.note("memory stats", stats);
        let done = self.db.maintain(&[], &MaintainOptions::live());
        self.note("maintain", done);
        let done = self.db.maintain(&Pass::ALL, &MaintainOptions::live());
        self.note("maintain all", done);
        let mut out = Vec::new();
        let export = Export { namespaces: vec![self.ns.clone()], all_states: true };
        let snapshot = self.db.snapshot().unwrap();
        let written = export.write(&snapshot, &mut out, "lines", VectorsTo::<Cursor<Vec<u8>>>::Lines);
        drop(snapshot);
        self.note("export", written);
        let lines = String::from_utf8(out).unwrap();
        for (_, at) in self.others() {
            self.expect(&format!("row {at} is not exported"), lines.contains(&word(at)));
        }
        let report = self.db.check(&CheckOptions::default());
        self.note("check", report);
    }

    /// Forgets the victim, has everything written anew, and finds nothing wrong.
    fn heal(&mut self) {
        if let Some(victim) = self.victim {
            let there = !matches!(self.db.get(&self.ns, &victim.to_string(), false), Ok(Got::Tombstone(_)));
            let done = self.db.forget(&self.ns, Forget::names([victim.to_string()]));
            if let Some(done) = self.note("forget the damaged", done) {
                self.expect(
                    "the damaged is not forgotten",
                    done.forgotten == 1 || !there || self.table == "tombstone",
                );
            }
        }
        let done = self.db.reindex(None);
        self.note("reindex again", done);
        let report = self.db.check(&CheckOptions { deep: true, ..CheckOptions::default() });
        if let Some(report) = self.note("deep check", report) {
            self.expect(&format!("healed, and still {:?}", report.findings), report.ok);
        }
    }
}

/// The memory whose row a value is.
fn victim_of(table: &str, key: &[u8]) -> Option<MemoryId> {
    let own = ["vitals", "memory", "access", "holder", "limbo", "tombstone"];
    own.contains(&table).then(|| MemoryId::from_bytes(key[4..20].try_into().unwrap()))
}

fn examine(store: &Store, table: &str, at: usize, way: &str, rows: &[(Vec<u8>, Vec<u8>)]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("memory.oub");
    std::fs::copy(&store.file, &path).unwrap();
    let key = &rows[at].0;
    overwrite(&path, table, key, &damaged(way, at, rows));
    let clock = ManualClock::at(store.now);
    let builder = options(
        Database::builder()
            .clock(clock.clone())
            .secret([7; 32])
            .cache_bytes(4 << 20)
            .durability(Durability::Batch),
    );
    let db = match builder.open(&path) {
        Ok(db) => db,
        Err(why) => return vec![format!("open: {why}")],
    };
    let victim = victim_of(table, key);
    let mut patient = Patient { db, ns: Namespace::default(), store, victim, table, wrong: Vec::new() };
    patient.reads();
    patient.searches(false);
    patient.writes(0);
    // What comes due in the meantime is settled by whoever comes next.
    clock.advance("2h".parse().unwrap());
    patient.writes(1);
    patient.upkeep();
    let done = patient.db.reindex(None);
    patient.note("reindex", done);
    patient.reads();
    patient.searches(true);
    patient.writes(2);
    patient.heal();
    let wrong = std::mem::take(&mut patient.wrong);
    patient.db.clone().close().unwrap();
    wrong
}

#[test]
fn a_damaged_value_stops_nobody_else() {
    let store = store();
    let copy = store.file.with_extension("read");
    std::fs::copy(&store.file, &copy).unwrap();
    let asked = std::env::var("OUBLIETTE_DAMAGE").ok().map(|n| n.parse::<usize>().unwrap());
    let only = std::env::var("OUBLIETTE_DAMAGE_TABLE").ok();
    let (mut cases, mut failures) = (0, Vec::new());
    for (number, (table, rows)) in tables(&copy).iter().enumerate() {
        if OF_THE_STORE.contains(&table.as_str()) || only.as_ref().is_some_and(|only| only != table) {
            continue;
        }
        if rows.is_empty() {
            failures.push(format!("the store has no row in {table}"));
            continue;
        }
        let most = asked.unwrap_or(1).min(rows.len());
        for turn in 0..most {
            // Spread over the table, and another place for each table.
            let at = (turn * rows.len() / most + number * 31) % rows.len();
            let all_key = rows[at].1.is_empty();
            let ways: Vec<&str> = match asked {
                _ if all_key => vec![WAYS[0]],
                Some(_) => WAYS.to_vec(),
                None => vec![WAYS[number % WAYS.len()]],
            };
            for way in ways {
                cases += 1;
                let wrong = examine(&store, table, at, way, rows);
                if !wrong.is_empty() {
                    let shown: Vec<_> = wrong.iter().take(8).collect();
                    failures.push(format!("{table} row {at} {way}: {} wrong: {shown:#?}", wrong.len()));
                }
            }
        }
    }
    eprintln!("{cases} damaged copies");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// A store with one memory whose content is damaged behind the back of everything, before its expiry comes.
fn with_damaged_content(table: &str) -> (World, MemoryId) {
    let mut world = World::new();
    let bad = Draft::new("damaged harbour").key("bad").tag("tagged").vector(axis(0));
    let bad = world.add(bad.expiry(Expiry::At(world.ahead("1h")))).id;
    for at in 0..5 {
        world.add(Draft::new(format!("good {at} harbour")).key(format!("good{at}")).vector(axis(1)));
    }
    world.db.clone().close().unwrap();
    let key = [&[0, 0, 0, 1], bad.as_bytes().as_slice()].concat();
    let rows = tables(&world.path());
    let (_, value) = rows[table].iter().find(|(found, _)| found.starts_with(&key)).unwrap();
    let mut value = value.clone();
    let middle = value.len() / 2;
    value[middle] ^= 1;
    let (key, _) = rows[table].iter().find(|(found, _)| found.starts_with(&key)).unwrap();
    overwrite(&world.path(), table, key, &value);
    let open = world.builder().open(world.path()).unwrap();
    world.db = open;
    (world, bad)
}

/// A5: what comes due is settled from vitals, so writes, statistics and searches of the namespace go on.
#[test]
fn a_damaged_row_whose_expiry_comes_blocks_nothing() {
    for table in ["memory", "vitals", "holder"] {
        let (world, bad) = with_damaged_content(table);
        let found = world.db.search(&world.ns, &Query::text("good")).unwrap();
        assert_eq!(found.hits.len(), 5, "{table}");
        world.advance("2h");
        world.add(Draft::new("written after it"));
        let patch = Patch { text: Some("better".to_owned()), ..Patch::default() };
        world.db.update(&world.ns, "good0", patch).unwrap();
        world.forget(&["good1"]);
        world.db.stats(None).unwrap();
        world.db.reindex(None).unwrap();
        world.db.maintain(&[], &MaintainOptions::live()).unwrap();
        let why = world.db.get(&world.ns, &bad.to_string(), false).unwrap_err();
        assert_eq!(why.kind(), ErrorKind::Corrupted, "{table}");
        assert!(why.to_string().contains(table), "{why}");
        let gone = world.forget(&[&bad.to_string()]);
        assert_eq!((gone.forgotten, gone.tombstones.as_slice()), (1, [bad].as_slice()), "{table}");
        world.check();
        // Its tombstone says what was known: when it went, and the keys that it had.
        assert_eq!(world.tombstone("bad").id, bad, "{table}");
    }
}

/// A5: a listing names what it leaves out, and so does an export; neither fails.
#[test]
fn a_damaged_row_is_named_beside_the_others() {
    for table in ["memory", "vitals", "holder"] {
        let (world, bad) = with_damaged_content(table);
        let page = world.db.list(&world.ns, &PageRequest::default()).unwrap();
        assert_eq!((page.items.len(), page.damaged.as_slice()), (5, [bad].as_slice()), "{table}");
        let mut out = Vec::new();
        let export = Export { namespaces: vec![world.ns.clone()], all_states: true };
        let snapshot = world.db.snapshot().unwrap();
        let report = export.write(&snapshot, &mut out, "lines", VectorsTo::<Cursor<Vec<u8>>>::Lines).unwrap();
        assert_eq!((report.memories, report.damaged), (5, vec![(world.ns.clone(), bad)]), "{table}");
        world.forget(&[&bad.to_string()]);
    }
}

/// A5: a damaged row goes by its key, by its tag, and by a filter on what can be read of it.
#[test]
fn a_damaged_row_is_forgotten_by_whatever_leads_to_it() {
    for table in ["memory", "vitals", "holder"] {
        let (world, bad) = with_damaged_content(table);
        assert_eq!(world.forget(&["bad"]).tombstones, [bad], "{table} by key");
        world.check();
        let (world, bad) = with_damaged_content(table);
        assert_eq!(world.forget_tag("tagged").tombstones, [bad], "{table} by tag");
        world.check();
    }
    let (world, bad) = with_damaged_content("memory");
    let filter = oubliette::Filter::parse(&format!(r#"{{"id": "{bad}"}}"#)).unwrap();
    let gone = world.db.forget(&world.ns, Forget::filter(filter, Scope::Shared)).unwrap();
    assert_eq!(gone.tombstones, [bad]);
    world.check();
    // The text can be written again, and the key.
    world.add(Draft::new("damaged harbour").key("bad").vector(axis(0)));
    assert_eq!(world.find(axis(0), 1), [world.row("bad").id]);
}

/// One of two writes behind a damaged text is forgotten: the other keeps the row.
#[test]
fn a_holder_leaves_a_damaged_row() {
    let mut world = World::new();
    let row = world.add(Draft::new("shared by two").key("one").tag("a")).id;
    world.add(Draft::new("shared by two").key("two").tag("b"));
    world.db.clone().close().unwrap();
    let (key, value) = &tables(&world.path())["memory"][0];
    // As long as before: rot moves no bytes, and the sum of all rows stays what it was.
    overwrite(&world.path(), "memory", key, &vec![b'x'; value.len()]);
    let open = world.builder().open(world.path()).unwrap();
    world.db = open;
    let gone = world.forget(&["one"]);
    assert_eq!((gone.forgotten, gone.detached), (0, 1));
    let why = world.get("two").unwrap_err();
    assert_eq!(why.kind(), ErrorKind::Corrupted);
    assert!(world.unknown("one"));
    assert_eq!(world.forget(&["two"]).tombstones, [row]);
    world.check();
}

/// A vector that is damaged can be replaced; `reindex` lets its memory wait for another.
#[test]
fn a_damaged_vector_is_replaced_or_waited_for() {
    for heal in [false, true] {
        let mut world = World::new();
        for at in 0..3 {
            world.add(Draft::new(format!("row {at}")).key(format!("k{at}")).vector(axis(at)));
        }
        world.db.clone().close().unwrap();
        let rows = tables(&world.path());
        let (key, value) = &rows["vector"][0];
        let mut value = value.clone();
        // The first number of the second vector.
        value[8 + 20 + 4] ^= 1;
        overwrite(&world.path(), "vector", key, &value);
        let open = world.builder().open(world.path()).unwrap();
        world.db = open;
        let damaged = world.row("k1").id;
        assert_eq!(world.find(axis(0), 3).len(), 2, "the others are found");
        world.forget(&["k2"]);
        if heal {
            assert_eq!(world.db.reindex(None).unwrap(), 1);
            assert_eq!(world.db.stats(None).unwrap().pending, 1);
            world.check();
        }
        let patch = Patch { vector: Some(axis(3).to_vec()), ..Patch::default() };
        world.db.update(&world.ns, "k1", patch).unwrap();
        assert_eq!(world.find(axis(3), 1), [damaged]);
        world.check();
    }
}
