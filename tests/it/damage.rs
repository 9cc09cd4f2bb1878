//! One damaged value keeps no other memory from being read, written, exported or forgotten, nor itself from being forgotten.
//!
//! A store with every sort of row, after every pass, is damaged at one value at a time, in several ways, in every table.
//! `OUBLIETTE_DAMAGE=n` damages n values of each table in every way.

mod bits;
mod copies;
mod derived;
mod disorder;
mod log;
mod passes;
pub(crate) mod store;
mod told;
mod tools;
mod undone;
mod united;
mod uses;
mod whole;
mod writes;

use std::io::Cursor;

use crate::world::{World, axis, keeping};
use oubliette::exchange::{Export, VectorsTo};
use oubliette::gc::{Extractive, GcOptions, GcRunOptions};
use oubliette::maintain::{MaintainOptions, Pass};
use oubliette::memory::Expiry;
use oubliette::memory::{AuthorKind, EventQuery, Got};
use oubliette::report::CheckOptions;
use oubliette::{
    Database, Draft, Effort, ErrorKind, Forget, Kind, MemoryId, Namespace, PageRequest, Patch, Query, Scope,
};
use store::{Store, WAYS, damaged, draft, message, overwrite, store, tables, try_open, vector, word};

/// Tables of the store as a whole, and the row that says that a namespace is there: `whole` has what is left without these.
const OF_THE_STORE: [&str; 4] = ["meta", "space", "policy", "namespace"];
/// Tables in which an index of thousands of slots has rows: `bits` has the damage to these.
const OF_LARGE_INDEXES: [&str; 2] = ["bits", "bits_head"];
/// Damage to these hides memories from some searches, until `reindex`.
const HIDING: [&str; 5] = ["slot", "slot_head", "vector", "text_doc", "text_posting"];

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
                let got = self.ns.look_up(&name, false);
                if let Some(got) = self.note(&format!("get {name}"), got) {
                    let memory = got.into_memory();
                    let told =
                        memory.is_some_and(|memory| memory.id == id && memory.text.contains(&word(at)));
                    self.expect(&format!("{name} is another"), told);
                }
            }
        }
        if let Some(victim) = self.victim.filter(|id| self.store.rows.contains_key(id)) {
            match self.ns.look_up(victim.to_string(), false) {
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
        let page = self.ns.list(&request);
        if let Some(page) = self.note("list", page) {
            let listed: Vec<MemoryId> = page.items.iter().map(|memory| memory.id).collect();
            for (id, at) in self.others() {
                self.expect(&format!("row {at} is not listed"), listed.contains(&id));
            }
        }
        let all = PageRequest { any_state: true, ..request };
        let page = self.ns.list(&all);
        self.note("list in every state", page);
        let page = self.ns.tombstones(None, 1_000);
        self.note("tombstones", page);
    }

    fn searches(&mut self, healed: bool) {
        let lenient = !healed && HIDING.contains(&self.table);
        for (id, at) in self.others().into_iter().step_by(7) {
            let found = self.ns.search(Query::text(word(at)).scope(Scope::Any).k(5));
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
                let found = self.ns.search(&query);
                if let Some(found) = self.note("search by vector", found) {
                    let hit = found.hits.first().is_some_and(|hit| hit.id == id);
                    self.expect(&format!("row {at} is not found by its vector"), hit || lenient);
                }
            }
        }
        let filter = oubliette::Filter::parse(r#"{"metadata.room": 2}"#).unwrap();
        let query = Query::vector(vector(2)).filter(filter).k(5);
        let found = self.ns.search(&query);
        self.note("search with a filter", found);
    }

    fn writes(&mut self, step: usize) {
        for agent in [None, Some("scout")] {
            let mut new = draft(500 + step).key(format!("new {step} {agent:?}"));
            new.text = format!("new {step} for {agent:?}");
            new.vector = Some(vector(500 + 2 * step + usize::from(agent.is_some())));
            new.agent = agent.map(str::to_owned);
            let added = self.ns.add(new);
            self.note("add", added);
        }
        let added = self.ns.add(message(AuthorKind::Bot, &format!("build done 12:4{step}")));
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
            let updated = self.ns.update(id.to_string(), patch);
            self.note(&format!("update {round}"), updated);
            let back = Patch { vector: Some(vector(self.store.rows[&id])), ..Patch::default() };
            let updated = self.ns.update(id.to_string(), back);
            self.note("update back", updated);
        }
        let forgotten = self.ns.forget(Forget::names([format!("new {step} None")]));
        self.note("forget another", forgotten);
    }

    fn upkeep(&mut self) {
        let stats = self.db.stats();
        self.note("stats", stats);
        let stats = self.ns.memory_stats();
        self.note("memory stats", stats);
        let done = self.db.maintain();
        self.note("maintain", done);
        let done = self.db.maintain_with(&MaintainOptions::live().passes(Pass::ALL));
        self.note("maintain all", done);
        let mut out = Vec::new();
        let export = Export { namespaces: vec![self.ns.name().clone()], all_states: true };
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
            let there = !matches!(self.ns.look_up(victim.to_string(), false), Ok(Got::Tombstone(_)));
            let done = self.ns.forget(Forget::names([victim.to_string()]));
            if let Some(done) = self.note("forget the damaged", done) {
                self.expect(
                    "the damaged is not forgotten",
                    done.forgotten == 1 || !there || self.table == "tombstone",
                );
            }
        }
        let done = self.db.reindex();
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
    let (db, clock) = match try_open(&path, store.now) {
        Ok(open) => open,
        Err(why) => return vec![format!("open: {why}")],
    };
    let victim = victim_of(table, key);
    let mut patient =
        Patient { ns: db.namespace("default").unwrap(), db, store, victim, table, wrong: Vec::new() };
    patient.reads();
    patient.searches(false);
    patient.writes(0);
    // What comes due in the meantime is settled by whoever comes next.
    clock.advance("2h".parse().unwrap());
    patient.writes(1);
    patient.upkeep();
    let done = patient.db.reindex();
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
        // Nothing of the journal is old enough to have been removed.
        let may_be_empty = table == "journal_head" || OF_LARGE_INDEXES.contains(&table.as_str());
        if may_be_empty && rows.is_empty() {
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
    let mut world = World::with(keeping);
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
    world.open_again(keeping);
    (world, bad)
}

/// A5: what comes due is settled from vitals, so writes, statistics and searches of the namespace go on.
#[test]
fn a_damaged_row_whose_expiry_comes_blocks_nothing() {
    for table in ["memory", "vitals", "holder"] {
        let (world, bad) = with_damaged_content(table);
        let found = world.ns.search(Query::text("good")).unwrap();
        assert_eq!(found.hits.len(), 5, "{table}");
        world.advance("2h");
        world.add(Draft::new("written after it"));
        let patch = Patch { text: Some("better".to_owned()), ..Patch::default() };
        world.ns.update("good0", patch).unwrap();
        world.forget(&["good1"]);
        world.db.stats().unwrap();
        world.db.reindex().unwrap();
        world.db.maintain().unwrap();
        let why = world.ns.look_up(bad.to_string(), false).unwrap_err();
        assert_eq!(why.kind(), ErrorKind::Corrupted, "{table}");
        assert!(why.to_string().contains(table), "{why}");
        let gone = world.forget(&[&bad.to_string()]);
        assert_eq!((gone.forgotten, gone.tombstones.as_slice()), (1, [bad].as_slice()), "{table}");
        world.check();
        // Its tombstone says what was known: when it went, and the keys that it had.
        assert_eq!(world.tombstone("bad").id, bad, "{table}");
    }
}

/// A backup of a damaged file mends its draft, and has it locked from the first byte to its name: another process that clears
/// the folder would take it away otherwise.
#[cfg(all(unix, feature = "faults"))]
#[test]
fn the_draft_of_a_mended_backup_is_locked() {
    for table in ["memory", "vitals"] {
        let (world, bad) = with_damaged_content(table);
        world.db.clone().close().unwrap();
        let disk = crate::seam::SeamDisk::default();
        let db = world.builder().disk(std::sync::Arc::new(disk.clone())).open(world.path()).unwrap();
        let copied = db.backup(world.beside("copy.oub")).unwrap();
        assert_eq!((copied.whole, copied.lost.as_slice()), (true, [bad].as_slice()), "{table}");
        let unlocked = disk.0.unlocked.load(std::sync::atomic::Ordering::SeqCst);
        assert_eq!(unlocked, 0, "{table}");
        db.close().unwrap();
        world.builder().open(world.beside("copy.oub")).unwrap().check(&CheckOptions::default()).unwrap();
    }
}

/// A5: a listing names what it leaves out, and so does an export; neither fails.
#[test]
fn a_damaged_row_is_named_beside_the_others() {
    for table in ["memory", "vitals", "holder"] {
        let (world, bad) = with_damaged_content(table);
        let page = world.ns.list(&PageRequest::default()).unwrap();
        assert_eq!((page.items.len(), page.damaged.as_slice()), (5, [bad].as_slice()), "{table}");
        let mut out = Vec::new();
        let export = Export { namespaces: vec![world.ns.name().clone()], all_states: true };
        let snapshot = world.db.snapshot().unwrap();
        let report = export.write(&snapshot, &mut out, "lines", VectorsTo::<Cursor<Vec<u8>>>::Lines).unwrap();
        assert_eq!((report.memories, report.damaged), (5, vec![(world.ns.name().clone(), bad)]), "{table}");
        world.forget(&[&bad.to_string()]);
    }
}

/// A damaged message is counted by its listing and by the pass that would end it, whether it has a text or none; a damaged
/// aggregate by its listing.
#[test]
fn damaged_messages_are_counted() {
    for (table, redacted) in [("event", false), ("event", true), ("aggregate", false)] {
        let mut world = World::with(keeping);
        for at in 0..4 {
            world.add(message(AuthorKind::Bot, &format!("build done 12:3{at}")));
        }
        let retain = |world: &World| {
            let mut report =
                world.db.maintain_with(&MaintainOptions::live().passes([Pass::Retention])).unwrap();
            report.passes.remove(0)
        };
        if redacted {
            world.advance("40d");
            retain(&world);
            let told = world.ns.events(&EventQuery::default()).unwrap().items;
            assert!(told.iter().all(|event| event.payload.is_none()), "{told:?}");
        }
        world.db.clone().close().unwrap();
        let rows = tables(&world.path());
        let (key, value) = rows[table].first().unwrap();
        let mut value = value.clone();
        let middle = value.len() / 2;
        value[middle] ^= 1;
        overwrite(&world.path(), table, key, &value);
        world.open_again(keeping);
        let events = world.ns.events(&EventQuery::default()).unwrap();
        let aggregates = world.ns.aggregates(None, 100).unwrap();
        let (of_events, of_aggregates) = if table == "event" { (1, 0) } else { (0, 1) };
        assert_eq!((events.items.len(), events.damaged.len()), (4 - of_events, of_events), "{table}");
        assert_eq!(
            (aggregates.items.len(), aggregates.damaged.len()),
            (1 - of_aggregates, of_aggregates),
            "{table}"
        );
        world.advance("400d");
        let report = retain(&world);
        assert_eq!(report.damaged, of_events as u64, "{table}, redacted: {redacted}");
        world.db.clone().close().unwrap();
    }
}

/// An export of everything names the goals, the families of messages and the contexts that it leaves out, too.
#[test]
fn an_export_names_a_damaged_goal_a_damaged_family_and_a_damaged_context() {
    let store = store();
    for (table, left) in [("goal", [1, 0, 0]), ("aggregate", [0, 1, 0]), ("context", [0, 0, 1])] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("memory.oub");
        std::fs::copy(&store.file, &path).unwrap();
        let rows = &tables(&path)[table];
        overwrite(&path, table, &rows[0].0, &damaged("a bit", 0, rows));
        let (db, _) = try_open(&path, store.now).unwrap();
        let name = db.namespace("default").unwrap().name().clone();
        let export = Export { namespaces: vec![name.clone()], all_states: true };
        let snapshot = db.snapshot().unwrap();
        let mut out = Vec::new();
        let report = export.write(&snapshot, &mut out, "lines", VectorsTo::<Cursor<Vec<u8>>>::Lines).unwrap();
        drop(snapshot);
        let told = [report.damaged_goals.len(), report.damaged.len(), report.damaged_contexts.len()];
        assert_eq!(told, left, "{table}");
        // A context has the name that its caller gave it.
        let id = if table == "context" { &rows[0].0[4..] } else { &rows[0].0[4..20] };
        let goals = report.damaged_goals.iter().map(|(of, id)| (of, id.as_bytes().to_vec()));
        let others = report.damaged.iter().map(|(of, id)| (of, id.as_bytes().to_vec()));
        let contexts = report.damaged_contexts.iter().map(|(of, id)| (of, id.as_bytes().to_vec()));
        let named: Vec<_> = goals.chain(others).chain(contexts).collect();
        assert_eq!(named, [(&name, id.to_vec())], "{table}");
        db.close().unwrap();
    }
}

/// A message whose family can't be read is named by whatever lists it, its aggregate or its memory.
#[test]
fn a_damaged_family_is_named_by_its_readers() {
    let world = World::new();
    for at in 0..3 {
        world.add(message(AuthorKind::Bot, &format!("build done 12:3{at}")));
    }
    let alone = world.add(message(AuthorKind::Bot, "the gate is open")).id;
    let memories = world.ns.list(&PageRequest::default()).unwrap().items;
    let stands_for = memories.iter().find(|memory| memory.kind == oubliette::Kind::Aggregate).unwrap().id;
    let before = world.ns.events(&EventQuery::default()).unwrap();
    assert_eq!((before.items.len(), before.damaged.len()), (4, 0));
    world.db.clone().close().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("memory.oub");
    std::fs::copy(world.path(), &path).unwrap();
    let rows = tables(&path)["family"].clone();
    let ids: Vec<MemoryId> =
        rows.iter().map(|(key, _)| MemoryId::from_bytes(key[4..].try_into().unwrap())).collect();
    for (at, (key, _)) in rows.iter().enumerate() {
        overwrite(&path, "family", key, &damaged("a bit", at, &rows));
    }
    assert_eq!(rows.len(), 2);
    let (db, _) = try_open(&path, world.now()).unwrap();
    let team = db.namespace("default").unwrap();
    let page = team.events(&EventQuery::default()).unwrap();
    assert_eq!((page.items.len(), page.damaged), (4, ids.clone()));
    let page = team.aggregates(None, 10).unwrap();
    assert_eq!((page.items.len(), page.damaged), (1, vec![ids[0]]));
    assert_eq!(team.history(stands_for).unwrap().damaged, [ids[0]]);
    assert_eq!(team.history(alone).unwrap().damaged, [ids[1]]);
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
    let gone = world.ns.forget(Forget::filter(filter, Scope::Shared)).unwrap();
    assert_eq!(gone.tombstones, [bad]);
    world.check();
    // The text can be written again, and the key.
    world.add(Draft::new("damaged harbour").key("bad").vector(axis(0)));
    assert_eq!(world.find(axis(0), 1), [world.row("bad").id]);
}

/// A filter that asks for what can't be read leaves its row out, and says so; a forget leaves the row alone and names it.
#[test]
fn what_a_filter_can_not_read_is_told() {
    let filter = || oubliette::Filter::parse(r#"{"metadata.room": null}"#).unwrap();
    for table in ["memory", "vitals"] {
        let (world, bad) = with_damaged_content(table);
        let find = |query: Query| world.ns.search(query.filter(filter())).unwrap().plan.damaged;
        assert_eq!(find(Query::vector(axis(0)).k(9)), 1, "{table}");
        assert_eq!(find(Query::vector(axis(1)).k(9).effort(Effort::Exact)), 1, "{table}");
        let never = oubliette::Filter::parse(r#"{"metadata.room": 7}"#).unwrap();
        let gone = world.ns.forget(Forget::filter(never, Scope::Shared)).unwrap();
        assert_eq!((gone.forgotten, gone.undecided), (0, vec![bad]), "{table}");
        world.forget(&[&bad.to_string()]);
        world.check();
    }
}

/// A version that can't be read is named beside the others.
#[test]
fn a_history_names_its_damaged_versions() {
    let mut world = World::new();
    let first = world.add(Draft::new("said first").key("k")).id;
    let second = world.add(Draft::new("said then").key("k")).id;
    world.db.clone().close().unwrap();
    let (key, value) = &tables(&world.path())["vitals"][0];
    overwrite(&world.path(), "vitals", key, &vec![b'x'; value.len()]);
    world.open_again(|builder| builder);
    let history = world.ns.history("k").unwrap();
    let versions: Vec<MemoryId> = history.versions.iter().map(|version| version.id).collect();
    assert_eq!((versions, history.damaged), (vec![second], vec![first]));
    world.forget(&[&first.to_string()]);
}

/// A memory that can't be read is in no summary, and whoever plans is told.
#[test]
fn a_plan_of_summaries_counts_what_it_can_not_read() {
    for table in ["memory", "vitals"] {
        let mut world = World::new();
        let at = world.now().minus("400d".parse().unwrap());
        let ids: Vec<_> = (0..6)
            .map(|number| {
                let say = format!(
                    "Ann: The boiler of house {number} broke again. There is no hot water for any of us there. Should we buy a new one?"
                );
                world.add(Draft::new(say).kind(Kind::Message).channel("home").created_at(at)).id
            })
            .collect();
        world.db.clone().close().unwrap();
        let rows = &tables(&world.path())[table];
        let place = rows.iter().position(|(key, _)| key.ends_with(ids[2].as_bytes())).unwrap();
        overwrite(&world.path(), table, &rows[place].0, &damaged("a bit", place, rows));
        world.open_again(|builder| builder);
        let dry = GcRunOptions { dry_run: true, ..GcRunOptions::default() };
        let told = world.ns.gc_run(&Extractive::default(), &dry, |_| ()).unwrap();
        assert_eq!((told.sources, told.damaged), (5, 1), "{table}");
        let plan = world.ns.gc_plan(&GcOptions::default()).unwrap();
        assert_eq!((plan.groups[0].source_ids.len(), plan.damaged), (5, 1), "{table}");
        world.ns.gc_abort(plan.plan_id, None, "to run it").unwrap();
        let done = world.ns.gc_run(&Extractive::default(), &GcRunOptions::default(), |_| ()).unwrap();
        assert_eq!((done.sources, done.damaged), (5, 1), "{table}");
        world.forget(&[&ids[2].to_string()]);
    }
}

/// A filter that names the rows which alone can match names those that can't be read, too.
#[test]
fn a_damaged_row_of_a_short_list_is_named() {
    let mut world = World::new();
    world.ns.declare_index("p").unwrap();
    let say = |at: usize| {
        let draft = Draft::new(format!("secret {at}")).key(format!("k{at}")).tag("t").vector(axis(at));
        draft.metadata(serde_json::json!({ "p": "x" }))
    };
    let ids: Vec<_> = (0..4).map(|at| world.add(say(at)).id).collect();
    world.db.clone().close().unwrap();
    let rows = &tables(&world.path())["vitals"];
    let place = rows.iter().position(|(key, _)| key.ends_with(ids[2].as_bytes())).unwrap();
    overwrite(&world.path(), "vitals", &rows[place].0, &damaged("a bit", place, rows));
    world.open_again(|builder| builder);
    let kind = oubliette::Filter::parse(r#"{"kind":"knowledge"}"#).unwrap();
    for (filter, others) in [
        (r#"{"key":"k2"}"#, 0),
        (r#"{"tags":"t"}"#, 3),
        (r#"{"metadata.p":"x"}"#, 3),
        (r#"{"kind":"knowledge"}"#, 3),
    ] {
        let filter = oubliette::Filter::parse(filter).unwrap();
        for newest_first in [false, true] {
            let mut request = PageRequest { limit: 2, newest_first, ..PageRequest::default() };
            request.filter = Some(filter.clone());
            let (mut items, mut named) = (0, Vec::new());
            loop {
                let page = world.ns.list(&request).unwrap();
                items += page.items.len();
                named.extend(page.damaged);
                request.cursor = page.next;
                if request.cursor.is_none() {
                    break;
                }
            }
            assert_eq!((items, named), (others, vec![ids[2]]), "{filter:?}, {newest_first}");
        }
        let found = world.ns.search(Query::vector(axis(0)).k(9).filter(filter.clone())).unwrap();
        assert_eq!((found.hits.len(), found.plan.damaged), (others, 1), "{filter:?}");
        // Without such a list the values are counted on the rows that can be read.
        if filter != kind {
            let query = oubliette::memory::DistinctQuery::from("p").filter(filter.clone());
            let values = world.ns.distinct(query).unwrap();
            assert_eq!((values.memories, values.damaged), (others as u64, 1), "{filter:?}");
        }
    }
    let filter = oubliette::Filter::parse(r#"{"metadata.p":"x"}"#).unwrap();
    let gone = world.ns.forget(Forget::filter(filter, Scope::Shared)).unwrap();
    assert_eq!((gone.forgotten, gone.undecided), (3, vec![ids[2]]));
    world.forget_id(ids[2]);
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
    world.open_again(|builder| builder);
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
        world.open_again(|builder| builder);
        let damaged = world.row("k1").id;
        assert_eq!(world.find(axis(0), 3).len(), 2, "the others are found");
        world.forget(&["k2"]);
        if heal {
            assert_eq!(world.db.reindex().unwrap(), 1);
            assert_eq!(world.db.stats().unwrap().pending, 1);
            world.check();
        }
        let patch = Patch { vector: Some(axis(3).to_vec()), ..Patch::default() };
        world.ns.update("k1", patch).unwrap();
        assert_eq!(world.find(axis(3), 1), [damaged]);
        world.check();
    }
}
