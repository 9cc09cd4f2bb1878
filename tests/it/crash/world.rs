//! What a scenario acts on: a database on a simulated disk, with a clock, ids and a secret that repeat; and what a
//! reader sees of it, as lines that can be compared.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use oubliette::clock::{IdSource, ManualClock};
use oubliette::exchange::JournalRow;
use oubliette::exchange::{journal_json, write_memory, write_tombstone};
use oubliette::maintain::{MaintainOptions, Pass, RunId};
use oubliette::memory::{EventQuery, Got};
use oubliette::report::CheckOptions;
use oubliette::{
    Builder, Database, Durability, Effort, Error, ErrorKind, NamespaceName, PageRequest, Query, Result,
    Scope, State, Time,
};

use crate::disk::{Image, SimDisk};

/// The database of every scenario.
pub const FILE: &str = "/db/memory.oub";
/// Where a backup goes.
pub const COPY: &str = "/db/copy.oub";
/// Dimensions of every vector.
pub const DIM: usize = 8;

/// Ids that repeat when a step is tried again.
#[derive(Clone, Debug, Default)]
pub struct StepIds(Arc<AtomicU64>);

impl StepIds {
    /// From now on the ids of step `step`.
    pub fn begin(&self, step: usize) {
        self.0.store((step as u64 + 1) << 32, Ordering::SeqCst);
    }
}

impl IdSource for StepIds {
    fn next(&self, now: Time) -> oubliette::Result<[u8; 16]> {
        let number = self.0.fetch_add(1, Ordering::SeqCst);
        let mut id = [0; 16];
        id[..6].copy_from_slice(&now.as_millis().to_be_bytes()[2..]);
        (id[6], id[8]) = (0x70, 0x80);
        id[9..].copy_from_slice(&number.to_be_bytes()[1..]);
        Ok(id)
    }
}

/// A database on a simulated disk.
pub struct World {
    pub disk: SimDisk,
    pub clock: ManualClock,
    pub ids: StepIds,
    pub durability: Durability,
    pub db: Option<Database>,
    pub run: Option<RunId>,
}

impl World {
    pub fn new(image: Image, durability: Durability) -> Self {
        World {
            disk: SimDisk::new(image),
            clock: ManualClock::at("2026-03-01T12:00:00Z".parse().unwrap()),
            ids: StepIds::default(),
            durability,
            db: None,
            run: None,
        }
    }

    pub fn builder(&self) -> Builder {
        Database::builder()
            .disk(Arc::new(self.disk.clone()))
            .durability(self.durability)
            .clock(self.clock.clone())
            .ids(self.ids.clone())
            .secret([7; 32])
            .cache_bytes(4 << 20)
    }

    pub fn open(&mut self) -> Result<()> {
        self.db = None;
        self.db = Some(self.builder().open(FILE)?);
        Ok(())
    }

    pub fn db(&self) -> &Database {
        self.db.as_ref().unwrap()
    }

    pub fn close(&mut self) -> Result<()> {
        self.db.take().map_or(Ok(()), Database::close)
    }

    /// What a reader sees of the open database, and of the backup beside it; each file after a walk that finds no
    /// fault.
    pub fn seen(&self) -> Result<Vec<String>> {
        seen_with_copy(self.db(), &self.disk.image())
    }
}

/// What a reader sees of the database of an image; none when there is no such file.
pub fn seen_in(image: &Image, write_too: bool) -> Result<Option<Vec<String>>> {
    if !image.names.contains_key(Path::new(FILE)) {
        return Ok(None);
    }
    let mut world = World::new(image.clone(), Durability::Safe);
    world.db = match world.builder().create(false).open(FILE) {
        // The name was claimed for a file that is not whole yet.
        Err(why) if why.kind() == ErrorKind::NotFound => return Ok(None),
        opened => Some(opened?),
    };
    let seen = seen_with_copy(world.db(), image)?;
    if write_too {
        let draft = oubliette::Draft::new("written after the recovery").key("after").vector([0.5; DIM]);
        world.ids.begin(1_000);
        world.db().namespace("after")?.add(draft)?;
        let report =
            world.db().maintain_with(&MaintainOptions::live().passes([Pass::Index, Pass::Repair]))?;
        let vectors = world.db().stats()?.vectors;
        if report.passes.iter().any(|pass| pass.left > 0) || (vectors.dead, vectors.tail) != (0, 0) {
            let why = format!("maintenance after the recovery leaves something: {report:?}, {vectors:?}");
            return Err(Error::Conflict { what: "maintenance".to_owned(), why });
        }
        let again = seen_with_copy(world.db(), image)?;
        // The first vector of a file fixes its dimensions.
        let kept = |line: &&String| line.starts_with("policy ") || again.contains(line);
        if let Some(line) = seen.iter().find(|line| !kept(line)) {
            let why = format!("after the recovery maintenance changes {line}, and what is seen is {again:?}");
            return Err(Error::Conflict { what: "maintenance".to_owned(), why });
        }
        world.close()?;
    }
    Ok(Some(seen))
}

fn seen_with_copy(db: &Database, image: &Image) -> Result<Vec<String>> {
    clean(db)?;
    let mut lines = seen(db)?;
    if image.names.contains_key(Path::new(COPY)) {
        let world = World::new(image.clone(), Durability::Safe);
        let copy = match world.builder().create(false).open(COPY) {
            Err(why) if why.kind() == ErrorKind::NotFound => return Ok(lines),
            opened => opened?,
        };
        clean(&copy)?;
        lines.extend(seen(&copy)?.into_iter().map(|line| format!("copy: {line}")));
    }
    Ok(lines)
}

/// Walks the whole file; what it finds is the error.
pub fn clean(db: &Database) -> Result<()> {
    let report = db.check(&CheckOptions { deep: true, ..CheckOptions::default() })?;
    match report.findings.first() {
        None => Ok(()),
        Some(first) => Err(Error::Conflict { what: "check".to_owned(), why: format!("{first:?}") }),
    }
}

/// Every memory with its vector and journal, every tombstone and the policy, as lines.
pub fn seen(db: &Database) -> Result<Vec<String>> {
    let (_, version) = db.policy();
    let mut lines = vec![format!("policy {} dimensions {:?}", version.number, db.dimensions()?)];
    for namespace in db.namespaces()? {
        let kept = db.namespace(&namespace)?.stats()?.kept_queries;
        lines.push(format!("namespace {namespace}, {kept} kept queries"));
        for id in ids(db, &namespace)? {
            let Got::Memory(mut memory) = db.namespace(&namespace).unwrap().look_up(&id, true)? else {
                return Err(Error::Conflict { what: id, why: "is listed, and is a tombstone".to_owned() });
            };
            find(db, &namespace, &memory)?;
            // These two depend on the clock of the reader.
            (memory.state, memory.also) = (State::Live, None);
            let mut line = Vec::new();
            write_memory(&memory, true, &mut line);
            lines.push(String::from_utf8(line).unwrap());
            let events = db.namespace(&namespace).unwrap().history(&id)?.events;
            lines.extend(events.iter().map(told));
        }
        let mut line = Vec::new();
        for tombstone in db.namespace(&namespace).unwrap().tombstones(None, 1_000)?.items {
            write_tombstone(&namespace, &tombstone, &mut line);
        }
        lines.push(String::from_utf8(line).unwrap());
        for event in db
            .namespace(&namespace)
            .unwrap()
            .events(&EventQuery { limit: 1_000, ..EventQuery::default() })?
            .items
        {
            lines.push(serde_json::to_string(&event).unwrap());
        }
        for aggregate in db.namespace(&namespace).unwrap().aggregates(None, 1_000)?.items {
            lines.push(serde_json::to_string(&aggregate).unwrap());
        }
    }
    Ok(lines)
}

/// A row of the journal without its number: a step of maintenance takes one as well, and whether it was done before or
/// after a write is nobody's promise.
fn told(event: &JournalRow) -> String {
    let mut row = journal_json(event);
    row.as_object_mut().unwrap().remove("seq").unwrap();
    row.to_string()
}

/// The ids of all rows, in order.
fn ids(db: &Database, namespace: &NamespaceName) -> Result<BTreeSet<String>> {
    let mut ids = BTreeSet::new();
    for state in [State::Live, State::Superseded, State::Expired, State::Limbo] {
        let request = PageRequest { scope: Scope::Any, state, limit: 10_000, ..PageRequest::default() };
        ids.extend(
            db.namespace(namespace)?.list(&request)?.items.into_iter().map(|memory| memory.id.to_string()),
        );
    }
    Ok(ids)
}

/// A live memory with a vector is found by it, and the nearest to it are those of a full scan.
fn find(db: &Database, namespace: &NamespaceName, memory: &oubliette::Memory) -> Result<()> {
    let Some(vector) = memory.vector.clone().filter(|_| memory.state == State::Live) else { return Ok(()) };
    let query = Query::vector(vector).k(50).scope(Scope::Any);
    let hits = db.namespace(namespace)?.search(&query)?.hits;
    if !hits.iter().any(|hit| hit.id == memory.id) {
        return Err(Error::Conflict { what: memory.id.to_string(), why: "does not find itself".to_owned() });
    }
    let best = db.namespace(namespace)?.search(query.k(5).effort(Effort::Exact))?.hits;
    match best.iter().zip(&hits).all(|(best, hit)| best.score == hit.score) {
        true => Ok(()),
        false => {
            let why = format!("finds {:?}, the nearest are {best:?}", hits.get(..best.len()));
            Err(Error::Conflict { what: memory.id.to_string(), why })
        }
    }
}
