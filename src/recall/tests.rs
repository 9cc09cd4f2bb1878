//! Reads over rows that the ledger wrote into a real file.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::error::{Error, ErrorKind};
use crate::index::{Changes, Published, ViewBudget};
use crate::ledger::{Change, Context, Entry, Ledger, NewRow, RestoreTo};
use crate::model::{
    Access, Actor, Content, Entity, Evidence, Filter, Holder, Kind, Link, MemoryId, Mode, PageRequest, Query,
    RuleId, State, SupersedeMode, Time, Tombstone, TombstoneReason, Vitals,
};
use crate::policy::Stats as StatsPolicy;
use crate::store::control::{NamespaceRow, SpaceRow};
use crate::store::disk::Folder;
use crate::store::{Durability, Options, Rows, SIZE, Store, Table, Truth};
use crate::text::normal_form;
use crate::vector::UnitVector;

const NS: NsId = NsId(1);
const AGENTS: [&str; 2] = ["profile-mgr", "perplexity"];

fn id(number: u32) -> MemoryId {
    let mut bytes = [2; 16];
    bytes[12..].copy_from_slice(&number.to_be_bytes());
    MemoryId::from_bytes(bytes)
}

fn at(millis: i64) -> Time {
    Time::from_millis(millis)
}

/// A row about to be written: number, text, and what differs from the plain one.
fn row(number: u32, text: &str) -> NewRow {
    let mut vitals = Vitals::new(text, Time::EPOCH);
    vitals.place.space = 1;
    vitals.place.fingerprint = normal_form(text).prefix();
    let content = Content::new(text);
    NewRow {
        id: id(number),
        vitals,
        content,
        access: Access::default(),
        holder: Holder { count: 1, share: 1, ..Holder::default() },
        vector: Some(UnitVector::new("vector", &[1.0, number as f32 / 100.0]).unwrap()),
        sources: Vec::new(),
        payload: None,
    }
}

impl NewRow {
    fn key(mut self, key: &str) -> Self {
        self.holder.key = Some(key.to_owned());
        self
    }

    fn part(mut self, part: u32) -> Self {
        self.vitals.place.partition = part;
        self
    }

    fn tags(mut self, tags: &[&str]) -> Self {
        self.holder.tags = tags.iter().map(|tag| (*tag).to_owned()).collect();
        self
    }
}

struct World {
    _folder: tempfile::TempDir,
    store: Store,
    secret: Secret,
    namespace: NamespaceName,
    published: Published,
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let options = Options {
            path: folder.path().join("memory.oub"),
            cache_bytes: 16 << 20,
            shared: false,
            read_only: false,
            create: true,
            paranoid: false,
            secret: [3; 32],
            opener: [1; 8],
        };
        let store = Store::open(Arc::new(Folder), options).unwrap();
        let made = store.write(Durability::Batch, |tx| {
            tx.put_space(crate::store::SpaceId(1), &SpaceRow { name: "caller".to_owned(), dim: 2 })?;
            let row = NamespaceRow {
                number: NS.0,
                created_ms: 0,
                next_part: 3,
                horizon_known_ms: i64::MIN,
                horizon_valid_ms: i64::MIN,
                dropping: false,
            };
            tx.put_namespace("team", &row)?;
            for (part, name) in (1..).zip(AGENTS) {
                tx.put_partition(NS, name, PartId(part))?;
            }
            let clock = tx.clock()?;
            tx.put_clock(&crate::store::control::Clock { space: 1, next_space: 2, next_ns: 2, ..clock })
        });
        made.unwrap();
        let snapshot = store.snapshot().unwrap();
        let clock = snapshot.clock().unwrap();
        let published = Published::first(Arc::new(snapshot), &clock, ViewBudget::new(1 << 20));
        World {
            _folder: folder,
            store,
            secret: Secret::from_bytes([3; 32]),
            namespace: "team".parse().unwrap(),
            published,
        }
    }

    fn publish(&mut self, blocks: &crate::store::StagedBlocks) {
        let snapshot = Arc::new(self.store.snapshot().unwrap());
        let clock = snapshot.clock().unwrap();
        let (linked, reset) = Default::default();
        let changes = Changes { blocks, dropped: &[], linked: &linked, reset: &reset };
        self.published = self.published.next(snapshot, &clock, &changes);
    }

    /// One transaction at clock `now`.
    fn apply(&mut self, now: i64, changes: Vec<(RuleId, Change)>) {
        let secret = &self.secret;
        let written = self.store.write(Durability::Batch, |tx| {
            let mut ledger = Ledger::open(tx, secret, crate::limits::ANALYZER.to_owned(), at(now))?;
            let context = Context {
                ns: NS,
                now: ledger.now(),
                actor: Actor::Caller,
                run: None,
                policy_number: 0,
                policy_hash: [0; 8],
                keeps_limbo: true,
                ttl: crate::policy::Ttl::default(),
                confidence: crate::policy::Confidence::default(),
            };
            for (rule, change) in changes {
                ledger.apply(&context, Entry { change, rule, evidence: Evidence::default() })?;
            }
            ledger.finish().map(|_| ())
        });
        self.publish(&written.unwrap().staged);
    }

    /// New rows, recorded and created at the transaction time of the commit.
    fn add(&mut self, now: i64, rows: Vec<NewRow>) {
        let time =
            at(now).max(if self.published.commit() == 0 { at(now) } else { self.published.committed_at() });
        let insert = |mut row: NewRow| {
            row.vitals.times.recorded_at = time;
            row.vitals.created_at = time;
            row.vitals.updated_at = time;
            (RuleId::STORE, Change::Insert(Box::new(row)))
        };
        self.apply(now, rows.into_iter().map(insert).collect());
    }

    fn supersede(&mut self, now: i64, old: u32, new: u32, mode: SupersedeMode, when: i64) {
        let change = Change::Supersede {
            old: id(old),
            new: id(new),
            mode,
            at: at(when),
            moves: crate::ledger::Moves::All,
            since: None,
            via: None,
        };
        self.apply(now, vec![(RuleId::SUPERSEDE, change)]);
    }

    fn remove(&mut self, now: i64, number: u32) {
        let change = Change::Remove { id: id(number), reason: TombstoneReason::Forget, replaced_by: None };
        self.apply(now, vec![(RuleId::FORGET_ID, change)]);
    }

    fn control(&mut self, change: impl FnOnce(&mut Truth<'_, '_>) -> Result<()>) {
        let written = self.store.write(Durability::Batch, |tx| change(&mut tx.forged())).unwrap();
        self.publish(&written.staged);
    }

    fn reader(&self, now: i64) -> Reader<'_> {
        Reader::open(&self.published, &self.namespace, &self.secret, at(now)).unwrap()
    }

    fn found(&self, now: i64, query: &Query) -> Vec<MemoryId> {
        self.reader(now)
            .search(query, &crate::policy::Recall::default())
            .unwrap()
            .hits
            .into_iter()
            .map(|hit| hit.id)
            .collect()
    }

    fn got(&self, now: i64, name: &str) -> crate::model::Memory {
        match self.reader(now).get(name, false).unwrap() {
            Got::Memory(memory) => *memory,
            Got::Tombstone(gone) => panic!("{gone:?}"),
        }
    }
}

fn query() -> Query {
    Query::vector([1.0, 0.0])
}

#[test]
fn a_scope_is_a_partition_or_all_of_them() {
    let mut world = World::new();
    let rows = [0, 0, 0, 1, 1, 2].into_iter().zip(1..);
    world.add(10, rows.map(|(part, number)| row(number, &format!("text {number}")).part(part)).collect());
    let agent = |name: &str| query().scope(Scope::agent(name).unwrap());
    assert_eq!(world.found(10, &query()).len(), 3, "V-191 default");
    assert_eq!(world.found(10, &agent("perplexity")).len(), 1, "V-191 agent");
    assert_eq!(world.found(10, &query().scope(Scope::Any)), (1..=6).map(id).collect::<Vec<_>>(), "V-191 any");
    assert_eq!(world.found(10, &agent("nobody")), []);
    let plan =
        world.reader(10).search(&query().scope(Scope::Any), &crate::policy::Recall::default()).unwrap().plan;
    assert_eq!((plan.partitions, plan.scanned, plan.regime, plan.pending), (3, 6, "codes", 0));
}

#[test]
fn a_query_says_what_is_wrong_with_it() {
    let world = World::new();
    let refused =
        |query: &Query| world.reader(0).search(query, &crate::policy::Recall::default()).unwrap_err();
    assert_eq!(refused(&Query::text("tea").mode(Mode::Vector)).kind(), ErrorKind::NoEmbedder);
    assert_eq!(
        refused(&Query { k: 1, ..Query::default() }).to_string(),
        "query: must have a vector or a text (got neither)"
    );
    assert_eq!(refused(&query().k(1_001)).to_string(), "k: must be 1 to 1000 (got 1001)");
    assert_eq!(
        refused(&Query::vector([1.0, 2.0, 3.0])).to_string(),
        "vector: must have 2 dimensions (got 3)"
    );
}

#[test]
fn a_namespace_that_is_not_there_is_empty() {
    let mut world = World::new();
    world.namespace = "other".parse().unwrap();
    assert_eq!(world.found(0, &query()), []);
    assert_eq!(world.reader(0).list(&PageRequest::default()).unwrap().items, []);
    let why = world.reader(0).get("k", false).unwrap_err();
    assert_eq!(why.to_string(), "memory not found: k");
    assert_eq!(world.reader(0).explain("k").unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn dead_rows_take_no_place_of_live_ones() {
    let mut world = World::new();
    let dead = (1..=80).map(|number| {
        let mut row = row(number, &format!("dead {number}"));
        row.vitals.times.expires_at = Some(at(50));
        row
    });
    let live = (81..=83).map(|number| row(number, &format!("live {number}")));
    world.add(10, dead.chain(live).collect());
    assert_eq!(world.found(50, &query().k(3)), [id(81), id(82), id(83)], "V-218");
}

#[test]
fn a_supersession_ahead_shows_both_ids() {
    let mut world = World::new();
    world.add(100, vec![row(1, "drinks tea").key("drink")]);
    world.add(300, vec![row(2, "drinks coffee")]);
    world.supersede(300, 1, 2, SupersedeMode::Replaced, 600);
    assert_eq!(world.found(500, &query()), [id(1)], "V-211 at 500");
    assert_eq!(world.found(600, &query()), [id(2)], "V-211 at 600");
    let at_500 = world.got(500, "drink");
    assert_eq!(
        (at_500.id, at_500.also),
        (id(1), Some(id(2))),
        "V-211: the key answers with what is true, both are shown"
    );
    let old = world.got(500, &id(1).to_string());
    assert_eq!((old.state, old.also), (State::Superseded, Some(id(2))));
    let at_600 = world.got(600, "drink");
    assert_eq!((at_600.id, at_600.also, at_600.keys), (id(2), None, vec!["drink".to_owned()]));
}

#[test]
fn restoring_keeps_the_end_that_the_caller_set() {
    let mut world = World::new();
    let mut old = row(1, "true until 400");
    old.vitals.times.valid_to = Some(at(400));
    world.add(100, vec![old, row(2, "true until 400")]);
    world.supersede(300, 1, 2, SupersedeMode::Duplicate, 300);
    assert_eq!(world.found(310, &query()), [id(2)]);
    world.apply(320, vec![(RuleId::RESTORE, Change::Restore { id: id(1), to: RestoreTo::Live })]);
    let restored = world.got(330, &id(1).to_string());
    assert_eq!((restored.state, restored.valid_to), (State::Live, Some(at(400))), "V-216");
    assert_eq!(world.found(400, &query()), [id(2)]);
}

#[test]
fn a_clock_that_stepped_back_hides_nothing() {
    let mut world = World::new();
    world.add(1_000, vec![row(1, "one")]);
    world.add(400, vec![row(2, "two").key("two")]);
    assert_eq!(world.got(400, "two").recorded_at, at(1_000), "V-284");
    assert_eq!(world.found(400, &query()), [id(1), id(2)], "V-284");
    let page = world.reader(400).list(&PageRequest::default()).unwrap();
    assert_eq!(page.items.len(), 2, "V-284");
}

#[test]
fn a_key_prefers_its_current_holder_then_the_last_one_then_the_tombstone() {
    let mut world = World::new();
    world.add(10, vec![row(1, "v1").key("k")]);
    world.add(20, vec![row(2, "v2").key("k")]);
    world.supersede(20, 1, 2, SupersedeMode::Correction, 20);
    assert_eq!(world.got(30, "k").id, id(2));
    world.add(40, vec![row(3, "v3").key("k")]);
    world.supersede(40, 2, 3, SupersedeMode::Correction, 40);
    world.remove(50, 3);
    let last = world.got(60, "k");
    assert_eq!((last.id, last.state), (id(2), State::Superseded), "who held it last");
    world.remove(60, 2);
    world.remove(70, 1);
    let Got::Tombstone(gone) = world.reader(80).get("k", false).unwrap() else { panic!("a tombstone") };
    assert_eq!(
        (gone.id, gone.reason),
        (id(1), TombstoneReason::Forget),
        "by the HMAC of the key, the latest"
    );
    assert!(
        matches!(world.reader(80).get(&id(2).to_string(), false).unwrap(), Got::Tombstone(gone) if gone.id == id(2))
    );
    assert_eq!(world.reader(80).get("never", false).unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn a_memory_is_whole() {
    let mut world = World::new();
    let mut whole = row(2, "Ann likes tea").key("ann").tags(&["drink"]).part(1);
    whole.holder.categories = vec!["taste".to_owned()];
    whole.holder.entities = vec![Entity { name: "Ann".to_owned(), role: "subject".to_owned() }];
    whole.holder.links = vec![Link { to: id(1), relation: "about".to_owned() }];
    whole.sources = vec![id(1)];
    world.add(10, vec![row(1, "source"), whole]);
    let other = Holder {
        key: Some("ann2".to_owned()),
        count: 1,
        share: 1,
        text: Some("ANN likes tea".to_owned()),
        ..Holder::default()
    };
    let hold = Change::Hold { id: id(2), holder: Box::new(other), raise: crate::ledger::Raise::default() };
    world.apply(20, vec![(RuleId::CONTENT, hold)]);
    let reader = world.reader(20);
    let Got::Memory(memory) = reader.get("ann", true).unwrap() else { panic!("a memory") };
    assert_eq!(
        (memory.text.as_str(), &memory.partition),
        ("Ann likes tea", &Partition::agent("profile-mgr").unwrap())
    );
    assert_eq!(
        (memory.keys.clone(), memory.categories.clone()),
        (vec!["ann".to_owned(), "ann2".to_owned()], vec!["taste".to_owned()])
    );
    assert_eq!(
        (memory.entities[0].role.as_str(), memory.links[0].to, memory.sources.clone()),
        ("subject", id(1), vec![id(1)])
    );
    assert_eq!((memory.holders.len(), memory.reinforcement_count), (2, 2));
    let expected = UnitVector::new("vector", &[1.0, 0.02]).unwrap();
    assert_eq!(memory.vector.as_deref(), Some(expected.as_slice()));
    assert_eq!(world.got(20, "ann2").text, "ANN likes tea", "MODEL-20: a holder answers with its own text");
    assert_eq!(reader.text(id(2)).unwrap().as_deref(), Some("Ann likes tea"));
    assert_eq!(reader.keys_of(id(2)).unwrap(), ["ann", "ann2"]);
    assert_eq!(reader.text(id(9)).unwrap(), None);
    for filter in [r#"{"keys": "ann2"}"#, r#"{"categories": "taste"}"#, r#"{"tags": "drink"}"#] {
        let any = query().scope(Scope::Any).filter(Filter::parse(filter).unwrap());
        assert_eq!(world.found(20, &any), [id(2)], "{filter}");
    }
}

#[test]
fn a_dropped_namespace_leaves_a_hint() {
    let mut world = World::new();
    world.add(10, vec![row(1, "gone").key("k")]);
    let row = world.published.snapshot().namespace("team").unwrap().unwrap();
    world.control(|tx| tx.put_namespace("team", &NamespaceRow { dropping: true, ..row }));
    let hint = format!("memory not found: {} (the namespace team was dropped)", id(1));
    assert_eq!(
        world.reader(20).get(&id(1).to_string(), false).unwrap_err().to_string(),
        hint,
        "V-283, while it goes"
    );
    assert_eq!(world.found(20, &query()), []);
    let hash = world.secret.of_namespace("team");
    world.control(|tx| {
        while tx.delete_rows_of(NS, 1_000)? > 0 {}
        tx.delete_namespace("team")?;
        let reason = TombstoneReason::NamespaceDropped;
        tx.put_tombstone(
            DROPPED,
            &Tombstone { content_hash: hash, rows: 1_000, ..Tombstone::bare(id(99), at(20), reason) },
        )
    });
    assert_eq!(world.reader(30).get(&id(1).to_string(), false).unwrap_err().to_string(), hint, "V-283");
}

#[test]
fn pages_hold_what_matches_in_order_and_follow_each_other() {
    let mut world = World::new();
    for number in 1..=12 {
        let tag: &[&str] = if number % 2 == 0 { &["even"] } else { &[] };
        world.add(
            i64::from(number / 4) * 10,
            vec![row(number, &format!("text {number}")).part(number % 3).tags(tag)],
        );
    }
    world.remove(100, 5);
    // The holder of 6 moves to 9, and its tag with it.
    world.supersede(100, 6, 9, SupersedeMode::Correction, 100);
    let all = |request: &PageRequest| {
        let mut request = request.clone();
        let mut ids = Vec::new();
        loop {
            let page = world.reader(100).list(&request).unwrap();
            assert!(
                page.items.len() <= request.limit
                    && (page.next.is_none() || page.items.len() == request.limit)
            );
            ids.extend(page.items.iter().map(|memory| memory.id));
            match page.next {
                Some(next) => request.cursor = Some(next),
                None => return ids,
            }
        }
    };
    let ids = |numbers: &[u32]| numbers.iter().copied().map(id).collect::<Vec<_>>();
    for limit in [1, 2, 3, 100] {
        let any = PageRequest { scope: Scope::Any, limit, ..PageRequest::default() };
        assert_eq!(all(&any), ids(&[3, 9, 12, 1, 4, 7, 10, 2, 8, 11]), "partition by partition, by creation");
        assert_eq!(all(&PageRequest { limit, ..PageRequest::default() }), ids(&[3, 9, 12]));
        let even = |json: &str| PageRequest { filter: Some(Filter::parse(json).unwrap()), ..any.clone() };
        assert_eq!(all(&even(r#"{"tags": "even"}"#)), ids(&[9, 12, 4, 10, 2, 8]), "limit {limit}, by tag");
        assert_eq!(
            all(&even(r#"{"tags": {"$in": ["even", "x"]}}"#)),
            ids(&[9, 12, 4, 10, 2, 8]),
            "limit {limit}, by scan"
        );
        let superseded = PageRequest { state: State::Superseded, ..any.clone() };
        assert_eq!(all(&superseded), ids(&[6]));
    }
    let gone = world.reader(100).tombstones(None, 10).unwrap();
    assert_eq!((gone.items.len(), gone.items[0].id, gone.next), (1, id(5), None));
}

#[test]
fn a_cursor_of_another_listing_is_refused() {
    let mut world = World::new();
    world.add(10, (1..=4).map(|number| row(number, &format!("text {number}")).part(number % 2)).collect());
    let page = |request: &PageRequest| world.reader(10).list(request);
    let first = PageRequest { limit: 1, ..PageRequest::default() };
    let cursor = page(&first).unwrap().next.unwrap();
    for bad in ["", "zz", &cursor[2..], &cursor.to_uppercase().replace('0', "é"), &format!("{cursor}00")] {
        let why = page(&PageRequest { cursor: Some(bad.to_owned()), ..first.clone() }).unwrap_err();
        assert!(matches!(why, Error::Invalid { ref field, .. } if field == "cursor"), "{bad}: {why}");
    }
    let agent =
        PageRequest { scope: Scope::agent("profile-mgr").unwrap(), cursor: Some(cursor), ..first.clone() };
    assert_eq!(page(&agent).unwrap_err().kind(), ErrorKind::Invalid, "a cursor of another partition");
    assert_eq!(
        page(&PageRequest { state: State::Tombstoned, ..first }).unwrap_err().kind(),
        ErrorKind::Invalid
    );
}

#[test]
fn history_and_explanation_tell_the_whole_chain() {
    let mut world = World::new();
    world.add(10, vec![row(1, "v1").key("k")]);
    world.add(20, vec![row(2, "v2")]);
    world.supersede(20, 1, 2, SupersedeMode::Correction, 20);
    world.add(30, vec![row(3, "v2 ")]);
    world.supersede(30, 3, 2, SupersedeMode::Duplicate, 30);
    for name in ["k", &id(1).to_string(), &id(3).to_string()] {
        let history = world.reader(40).history(name).unwrap();
        let ids: Vec<_> = history.versions.iter().map(|version| version.id).collect();
        assert_eq!(ids, [id(1), id(2), id(3)], "{name}");
        assert_eq!(history.versions[0].superseded_by, Some(id(2)));
        let ops: Vec<_> = history.events.iter().map(|row| row.op.as_str()).collect();
        assert_eq!(ops, ["insert", "insert", "supersede", "insert", "supersede"]);
        assert!(history.events.is_sorted_by_key(|row| row.seq));
    }
    let explained = world.reader(40).explain("v2").unwrap();
    assert_eq!((explained.id, explained.merged_from, explained.replaces), (id(2), vec![id(3)], vec![id(1)]));
    assert_eq!((explained.created.at, explained.created.rule), (Some(at(20)), Some(RuleId::STORE)));
    world.remove(50, 2);
    for name in ["v2", &id(2).to_string()] {
        let explained = world.reader(60).explain(name).unwrap();
        let removed = explained.removed.unwrap();
        assert_eq!((explained.id, explained.state, removed.at), (id(2), State::Tombstoned, at(50)), "{name}");
        assert_eq!(
            (removed.reason, removed.rule),
            (TombstoneReason::Forget, Some(RuleId::FORGET_ID)),
            "MODEL-31"
        );
        assert_eq!(explained.merged_from, [id(3)]);
    }
    assert_eq!(world.reader(60).explain("never said").unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn statistics_are_the_counters() {
    let mut world = World::new();
    let (policy, none) = (StatsPolicy::default(), BTreeMap::new());
    let context = |now| StatsContext {
        now: at(now),
        clock: at(now),
        file_bytes: 1 << 20,
        policy: &policy,
        unsettled: &none,
    };
    let small = |world: &World, now| {
        memory_stats(&world.published, &world.namespace, &world.secret, context(now)).unwrap()
    };
    let empty = serde_json::to_value(small(&world, 0)).unwrap();
    assert_eq!(empty["local"]["date_range"], serde_json::json!({"oldest": null, "newest": null}), "V-193");
    assert_eq!(
        (&empty["local"]["total"], &empty["health"]["last_prune"]),
        (&0.into(), &serde_json::Value::Null),
        "V-193"
    );
    let mut pending = row(3, "three").part(2);
    pending.vector = None;
    world.add(86_400_000, vec![row(1, "one").tags(&["preferences", "workflow"])]);
    let mut snapshot = row(2, "two").part(1);
    snapshot.vitals.kind_code = Kind::Snapshot.code();
    world.add(2 * 86_400_000, vec![snapshot, pending, row(4, "gone"), row(5, "old")]);
    world.remove(2 * 86_400_000, 4);
    world.supersede(2 * 86_400_000, 5, 1, SupersedeMode::Correction, 0);
    let now = 2 * 86_400_000;
    let stats_of = serde_json::to_value(small(&world, now)).unwrap();
    assert_eq!(
        stats_of["local"],
        serde_json::json!({
            "total": 1, "by_scope": {"global": 1}, "by_tag": {"preferences": 1, "workflow": 1},
            "date_range": {"oldest": "1970-01-02", "newest": "1970-01-02"},
        }),
        "V-192"
    );
    assert_eq!(
        stats_of["mem0"],
        serde_json::json!({
            "total": 3, "by_agent": {"shared-memory": 1, "profile-mgr": 1, "perplexity": 1},
        })
    );
    assert_eq!(
        stats_of["health"],
        serde_json::json!({
            "duplicates_detected": 0, "profile_snapshots": 1, "last_prune": null,
        })
    );
    for namespace in [Some(&world.namespace), None] {
        let stats = stats(&world.published, namespace, context(now)).unwrap();
        let expected = MemoryCounts { live: 3, superseded: 1, tombstoned: 1, ..MemoryCounts::default() };
        assert_eq!(stats.memories, expected);
        assert_eq!(
            (stats.vectors.live, stats.vectors.free, stats.vectors.regime, stats.pending),
            (3, 1, "exact", 1)
        );
        assert_eq!((stats.by_namespace["team"], stats.by_partition.len(), stats.pending_due), (3, 3, 0));
        let BytesStats { file, live, overhead, free } = stats.bytes;
        let exact = file_stats(world.published.snapshot(), 1 << 20).unwrap();
        assert_eq!((file, live, overhead + free), (1 << 20, exact.bytes.live, file - live));
    }
    let search = {
        let scoped = query().scope(Scope::agent("perplexity").unwrap());
        world.reader(now).search(&scoped, &crate::policy::Recall::default()).unwrap()
    };
    assert_eq!((search.hits.len(), search.plan.pending), (0, 1));
}

/// Writes and reads go on without it, and a copy counts the rows anew.
#[test]
fn a_damaged_sum_of_the_rows_is_a_warning() {
    let (policy, none) = (StatsPolicy::default(), BTreeMap::new());
    let context =
        StatsContext { now: at(0), clock: at(0), file_bytes: 1 << 20, policy: &policy, unsettled: &none };
    for damage in [None, Some(b"rubbish")] {
        let mut world = World::new();
        let damaged = world.store.write(Durability::Batch, |tx| match damage {
            Some(bytes) => tx.forged().put(Table::Meta, SIZE, bytes),
            None => tx.forged().delete(Table::Meta, SIZE),
        });
        damaged.unwrap();
        world.add(1, vec![row(1, "one")]);
        let told = stats(&world.published, None, context).unwrap();
        assert!(told.health.size_warning.unwrap().contains("`compact`"));
        assert_eq!(told.bytes, BytesStats { file: 1 << 20, live: 0, overhead: 1 << 20, free: 0 });
        world.store.write(Durability::Batch, |tx| tx.count_size()).unwrap();
        let rows = world.store.snapshot().unwrap();
        let counted = file_stats(&rows, 1 << 20).unwrap().bytes.live;
        assert_eq!(rows.size().unwrap().unwrap().live, counted);
        drop(rows);
        assert!(world.store.compact(&[1; 32], false, &mut |_, _| Ok(())).unwrap().damaged.is_empty());
        let rows = world.store.snapshot().unwrap();
        let counted = file_stats(&rows, 1 << 20).unwrap().bytes.live;
        assert_eq!(rows.size().unwrap().unwrap().live, counted);
    }
}

#[test]
fn a_clock_far_behind_the_last_commit_is_a_warning() {
    const HOUR: i64 = 3_600_000;
    let mut world = World::new();
    world.add(100 * HOUR, vec![row(1, "one")]);
    let (policy, none) = (StatsPolicy::default(), BTreeMap::new());
    let warning = |behind: i64| {
        let now = at((100 - behind) * HOUR);
        let context = StatsContext { now, clock: now, file_bytes: 0, policy: &policy, unsettled: &none };
        stats(&world.published, None, context).unwrap().health.clock_warning
    };
    assert!(warning(25).unwrap().contains("25 hours"), "V-285");
    assert_eq!(warning(23), None, "V-285");
    assert_eq!(warning(24), None);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    /// A filter by id, tag or key takes a short cut; the answer is that of trying all rows.
    #[test]
    fn a_short_cut_answers_as_a_scan(picks in prop::collection::vec((0_u32..3, 0_u32..4, 0_i64..40), 1..30), now in 10_i64..60) {
        let mut world = World::new();
        let rows = (1..).zip(&picks).map(|(number, (part, tag, until))| {
            let mut row = row(number, &format!("text {number}")).part(*part).tags(&[&format!("t{tag}")]);
            row.vitals.times.expires_at = Some(*until).filter(|until| *until > 10).map(at);
            row
        });
        world.add(10, rows.collect());
        let count = picks.len() as u32;
        let ids = |from: u32| (from..=count).map(|number| format!("{:?}", id(number).to_string())).collect::<Vec<_>>().join(",");
        let tagged = [r#"{"tags": "t1"}"#.to_owned(), r#"{"$or": [{"tags": "t1"}]}"#.to_owned()];
        let named = [format!(r#"{{"id": {{"$in": [{}]}}}}"#, ids(count / 2 + 1)), format!(r#"{{"$not": {{"id": {{"$nin": [{}]}}}}}}"#, ids(count / 2 + 1))];
        for [short, long] in [tagged, named] {
            let [short, long] = [short, long].map(|filter| query().k(5).scope(Scope::Any).filter(Filter::parse(&filter).unwrap()));
            prop_assert_eq!(world.found(now, &short), world.found(now, &long));
        }
    }
}
