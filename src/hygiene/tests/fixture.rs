//! A small store with a row in every table.

use std::sync::Arc;

use crate::error::Result;
use crate::index::bit_rows::make as make_bits;
use crate::index::text::upkeep::post;
use crate::index::{Published, ViewBudget};
use crate::ledger::{Change, Context, Entry, Ledger, NewRow, Raise, Recorded};
use crate::model::{
    Access, Actor, AuthorKind, Content, Entity, Holder, Kind, Link, MemoryId, Payload, RuleId, RunId,
    Significance, SupersedeMode, Tier, Time, TombstoneReason, Vitals,
};
use crate::model::{EventDecision, GoalId, GroupState, Included, PlanState, Refusal};
use crate::record::{ALIVE, GraphNode, NODES_PER_BLOCK, SlotMeta};
use crate::store::control::{
    GraphHead, JournalHeadRow, NamespaceRow, PassRow, RecallPoint, RunRow, RunSort, SlotHead, SpaceRow,
};
use crate::store::disk::Folder;
use crate::store::{
    AggregateRow, ContextRow, EventRow, FamilyRow, GoalEpochRow, GoalRow, GroupRow, Id, PlanRow, QueryRow,
    Stamp,
};
use crate::store::{Durability, IndexId, NsId, Options, PartId, Rows, SpaceId, Store, TextId, Truth};
use crate::text::{Secret, normal_form};
use crate::vector::{UnitVector, encode};

pub(super) const NAME: &str = "team";
pub(super) const NS: NsId = NsId(1);
pub(super) const PART: PartId = PartId(1);
pub(super) const SPACE: SpaceId = SpaceId(1);
pub(super) const SHARED: IndexId = IndexId { ns: NS, part: PartId(0), space: SPACE };
/// Documents: A 0, C 1, D 2, F 4, G 5; those of E, 3, and H, 6, are gone. Postings are written of those before 5. A, C
/// and F lie in a thread.
pub(super) const SHARED_TEXT: TextId = TextId { ns: NS, part: PartId(0) };
pub(super) const THREAD: &str = "\u{1}shall";
pub(super) const DIM: usize = 24;
pub(super) const RUN: RunId = RunId::from_bytes([0xaa; 16]);
pub(super) const NOW: Time = Time::from_millis(1_800_000_000_000);
/// A memory with everything: key, tag, category, entity, run, statistics, vector. Its node has level 1.
pub(super) const A: MemoryId = MemoryId::from_bytes([1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 21]);
/// A short-term memory of an agent, linked to A and made from it.
pub(super) const B: MemoryId = MemoryId::from_bytes([2; 16]);
/// Superseded by D.
pub(super) const C: MemoryId = MemoryId::from_bytes([3; 16]);
/// Expires, and waits for a vector.
pub(super) const D: MemoryId = MemoryId::from_bytes([4; 16]);
/// Erased.
pub(super) const E: MemoryId = MemoryId::from_bytes([5; 16]);
/// Says what A says.
pub(super) const F: MemoryId = MemoryId::from_bytes([6; 16]);
/// A snapshot, and an earlier one of its day that waits in limbo.
pub(super) const G: MemoryId = MemoryId::from_bytes([7; 16]);
pub(super) const H: MemoryId = MemoryId::from_bytes([8; 16]);
/// A memory of the agent that expired.
pub(super) const I: MemoryId = MemoryId::from_bytes([9; 16]);
/// The event of a message that became D, and that of its repeat.
pub(super) const FIRST: Id = [70; 16];
pub(super) const REPEAT: Id = [71; 16];
/// What counts the two.
pub(super) const AGGREGATE: Id = [74; 16];
/// Never was.
pub(super) const NOBODY: MemoryId = MemoryId::from_bytes([99; 16]);
pub(super) const ERASED_TEXT: &str = "Robin's pass phrase was correct horse battery staple";
pub(super) const ERASED_KEY: &str = "robin-pass-phrase";

pub(super) struct Fixture {
    pub(super) store: Store,
    pub(super) folder: tempfile::TempDir,
}

impl Fixture {
    /// The whole store, E erased.
    pub(super) fn new() -> Self {
        let fixture = Fixture::with_e();
        let reason = (TombstoneReason::Forget, None);
        let change = Change::Remove { id: E, reason: reason.0, replaced_by: reason.1 };
        fixture.apply(vec![(RuleId::FORGET_ID, change)]);
        let (reason, replaced_by) = (TombstoneReason::SnapshotReplaced, Some(G));
        let retire = Change::Retire { id: H, reason, replaced_by };
        fixture.apply_as(Actor::Sweeper, vec![(RuleId::PRUNE_SNAPSHOTS, retire)]);
        fixture.write(graph_rows);
        fixture
    }

    /// The store before E was erased.
    pub(super) fn with_e() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let options = Options {
            path: folder.path().join("check.db"),
            cache_bytes: 1 << 20,
            shared: false,
            read_only: false,
            create: true,
            paranoid: false,
            secret: [7; 32],
            opener: [1; 8],
        };
        let fixture = Fixture { store: Store::open(Arc::new(Folder), options).unwrap(), folder };
        fixture.write(control_rows);
        fixture.apply(changes());
        fixture.post(SHARED_TEXT, 5);
        fixture.post(TextId { ns: NS, part: PART }, 1);
        fixture
    }

    /// Writes the postings of the first documents of a tail.
    fn post(&self, text: TextId, most: usize) {
        let snapshot = Arc::new(self.store.snapshot().unwrap());
        let clock = snapshot.clock().unwrap();
        let published = Published::first(snapshot, &clock, ViewBudget::new(1 << 20));
        let edit = post(&published, text, most).unwrap().unwrap();
        self.write(|tx| edit.write(tx).map(|written| assert!(written)));
    }

    pub(super) fn write(&self, unit: impl FnOnce(&mut Truth<'_, '_>) -> Result<()>) {
        self.store.write(Durability::Batch, |tx| unit(&mut tx.forged())).unwrap();
    }

    fn apply(&self, changes: Vec<(RuleId, Change)>) {
        self.apply_as(Actor::Caller, changes);
    }

    pub(super) fn apply_as(&self, actor: Actor, changes: Vec<(RuleId, Change)>) {
        self.write(|tx| {
            let secret = Secret::from_bytes([7; 32]);
            let mut ledger = Ledger::open(tx, &secret, crate::limits::ANALYZER.to_owned(), NOW)?;
            let context = Context {
                ns: NS,
                now: NOW,
                actor,
                run: Some(RUN),
                policy_number: 1,
                policy_hash: [0; 8],
                keeps_limbo: true,
                ttl: crate::policy::Ttl::default(),
                confidence: crate::policy::Confidence::default(),
            };
            ledger.clock.next_ns = 2;
            ledger.clock.next_space = 2;
            ledger.clock.space = SPACE.0;
            ledger.clock.policy = 1;
            for (rule, change) in changes {
                ledger.apply(&context, Entry::new(rule, change))?;
            }
            ledger.finish().map(|_| ())
        });
    }
}

/// The path of metadata that has an index.
pub(super) const ROOM: &str = "room";

fn control_rows(tx: &mut Truth<'_, '_>) -> Result<()> {
    let row = NamespaceRow {
        number: NS.0,
        created_ms: 0,
        next_part: 2,
        horizon_known_ms: i64::MIN,
        horizon_valid_ms: i64::MIN,
        dropping: false,
    };
    tx.put_namespace(NAME, &row)?;
    tx.put_partition(NS, "scout", PART)?;
    tx.put_meta_key(NS, ROOM, None)?;
    tx.put_journal_head(NS, &JournalHeadRow::default())?;
    tx.put_space(SPACE, &SpaceRow { name: SpaceRow::CALLER.to_owned(), dim: DIM as u32 })?;
    tx.put_policy(1, "")?;
    tx.put_pass(NS, "snapshots", &PassRow { run: RUN, ..PassRow::default() })?;
    put_plan(tx)?;
    put_context(tx)?;
    put_goal(tx)?;
    tx.put_query(NS, (PartId(0), 1), &past_query()?)?;
    tx.put_run(NS, RUN, &RunRow::new(RunSort::Import, Actor::Caller, Time::EPOCH))
}

/// A context that A was in.
fn put_context(tx: &mut Truth<'_, '_>) -> Result<()> {
    let item = Included { id: Some(A), tokens: 12, bucket: None, counted: true };
    let row = ContextRow { at_ms: 0, session: None, window_tokens: None, items: vec![item], digest: None };
    tx.put_context(NS, "turn-1", &row)
}

/// A goal with a vector.
fn put_goal(tx: &mut Truth<'_, '_>) -> Result<()> {
    let row = GoalRow {
        agent: Some("scout".to_owned()),
        text: "find the lamp".to_owned(),
        weight: 1.0,
        set_ms: 0,
        space: SPACE.0,
        vector: UnitVector::new("vector", &values(11))?.as_slice().to_vec(),
    };
    tx.put_goal(NS, GoalId::from_bytes([5; 16]), &row)?;
    tx.put_goal_epoch(NS, Some(&[6; 32]), &GoalEpochRow { epoch: 1, changed_ms: 0 })
}

/// A query that had found A, and with it B of another partition.
pub(super) fn past_query() -> Result<QueryRow> {
    let vector = UnitVector::new("vector", &values(12))?.as_slice().to_vec();
    Ok(QueryRow { at_ms: 0, text: "where is the lamp?".to_owned(), space: SPACE.0, vector, hits: vec![A, B] })
}

/// A plan of summaries with a group.
fn put_plan(tx: &mut Truth<'_, '_>) -> Result<()> {
    let stamp = |id| Stamp { id, version: 1, access_seq: 0, at_ms: 0 };
    let plan = PlanRow {
        state: PlanState::Open,
        created_ms: 0,
        expires_ms: 1,
        policy_number: 1,
        policy_hash: [0; 8],
        groups: 1,
        reason: None,
        probes: vec!["where is the boiler?".to_owned()],
    };
    let group = GroupRow {
        state: GroupState::Refused,
        part: 0,
        sources: vec![stamp(A), stamp(B)],
        tokens: 9,
        summary: None,
        digest: None,
        run: None,
        removed: 0,
        skipped: vec![(B, Refusal::SourceUsed)],
        guard: [3, 2, 1],
        refusal: Some(Refusal::SourceUsed),
        reason: None,
    };
    tx.put_gc_plan(NS, RUN, &plan)?;
    tx.put_gc_group(NS, RUN, 1, &group)
}

/// A graph of the shared index: A (slot 0, the entry, level 1), C (slot 1), and slot 3, whose memory is gone and over
/// which alone C is found. E's slot, 2, is free.
fn graph_rows(tx: &mut Truth<'_, '_>) -> Result<()> {
    let vector = UnitVector::new("vector", &values(9))?;
    let mut code = vec![0_i8; DIM];
    let params = encode(&vector, &mut code);
    let commit = tx.clock()?.commit;
    let block = tx.slot_block_mut(SHARED, 0, DIM)?;
    let (born, died) = (commit - 1, ALIVE);
    let (scale, residual) = (params.scale, params.residual);
    block.put(3, SlotMeta { id: NOBODY, from: 1, until: 2, born, died, scale, residual }, &code);
    block.bury(3, commit);
    tx.put_dead_slot(SHARED, commit, 3)?;
    tx.put_slot_head(SHARED, SlotHead { len: 4, used: 2 });
    tx.put_graph_head(SHARED, &graph_head())?;
    put_links(tx, &[(0, &[3]), (1, &[3]), (3, &[0, 1])], &[vec![]])?;
    // An index of four slots needs no one-bit codes, but may have some.
    make_bits(tx, SHARED, DIM, 4)
}

pub(super) fn graph_head() -> GraphHead {
    let recall = vec![RecallPoint { ef: 32, recall: 9_900 }];
    GraphHead { version: 5, entry: Some(0), linked: 3, dead: 1, recall, calibrated_at: 2 }
}

/// Replaces the links of the shared index; `upper` are those of slot 0 on the levels from 1 on.
pub(super) fn put_links(tx: &mut Truth<'_, '_>, nodes: &[(usize, &[u32])], upper: &[Vec<u32>]) -> Result<()> {
    let mut block = [None; NODES_PER_BLOCK];
    for (slot, bottom) in nodes {
        block[*slot] = Some(GraphNode::linked(bottom, if *slot == 0 { upper } else { &[] }));
    }
    tx.put_graph_block(SHARED, 0, &block)
}

fn changes() -> Vec<(RuleId, Change)> {
    let holder =
        |key: Option<&str>| Holder { key: key.map(str::to_owned), count: 1, share: 1, ..Holder::default() };
    let a = Holder {
        tags: vec!["home".to_owned()],
        categories: vec!["light".to_owned()],
        entities: vec![Entity { name: "lamp".to_owned(), role: "thing".to_owned() }],
        ..holder(Some("lamp"))
    };
    let b = Holder { links: vec![Link { to: A, relation: "near".to_owned() }], ..holder(None) };
    let mut of_a = row(A, "The lamp stands in the hall", a, Some(1));
    of_a.access.retrieval_count = 3;
    let mut of_b = row(B, "The door is next to the lamp", b, Some(2));
    (of_b.vitals.place.partition, of_b.sources) = (PART.0, vec![A]);
    of_b.access.included_count_total = 2;
    (of_b.vitals.tier, of_b.vitals.kind_code) = (Tier::Working, Kind::ChapterSummary.code());
    let mut of_d = row(D, "The favourite colour is blue", holder(Some("colour")), None);
    of_d.vitals.times.expires_at = Some(Time::from_millis(NOW.as_millis() + 1_000));
    let mut of_c = row(C, "The favourite colour is red", holder(Some("colour")), Some(3));
    let mut of_f = row(F, "The lamp  stands in the HALL", holder(None), None);
    for turn in [&mut of_a, &mut of_c, &mut of_f] {
        turn.content.session = Some("hall".to_owned());
    }
    for room in [&mut of_a, &mut of_b] {
        room.content.metadata = serde_json::json!({ "room": ["hall", 7], "floor": { "number": 1 } });
    }
    let rows = [
        of_a,
        of_b,
        of_c,
        of_d,
        row(E, ERASED_TEXT, holder(Some(ERASED_KEY)), Some(5)),
        of_f,
        snapshot(G, "evening"),
        snapshot(H, "morning"),
    ];
    let mut all: Vec<_> =
        rows.into_iter().map(|row| (RuleId::STORE, Change::Insert(Box::new(row)))).collect();
    let (mode, at) = (SupersedeMode::Correction, NOW);
    all.push((
        RuleId::SUPERSEDE,
        Change::Supersede {
            old: C,
            new: D,
            mode,
            at,
            moves: crate::ledger::Moves::All,
            since: None,
            via: None,
        },
    ));
    all.extend(messages());
    let raise = Raise { significance: Some(Significance::Core), ..Raise::default() };
    all.push((RuleId::CONTENT, Change::Hold { id: E, holder: Box::new(holder(None)), raise }));
    let mut of_i = row(I, "The key lies under the mat", holder(None), None);
    (of_i.vitals.place.partition, of_i.vitals.times.expires_at) = (PART.0, Some(NOW));
    all.push((RuleId::STORE, Change::Insert(Box::new(of_i))));
    all
}

/// A snapshot of the series `profile`.
fn snapshot(id: MemoryId, text: &str) -> NewRow {
    let mut snapshot = row(id, text, Holder { count: 1, share: 1, ..Holder::default() }, None);
    snapshot.vitals.kind_code = Kind::Snapshot.code();
    snapshot.content.series = "profile".to_owned();
    snapshot
}

/// D as the first message of a family, and a repeat of it.
fn messages() -> Vec<(RuleId, Change)> {
    let event = |ts, decision| EventRow {
        ts,
        author: AuthorKind::Human.code(),
        channel: Some("hall".to_owned()),
        payload: Some("The favourite colour is blue".to_owned()),
        normalizer: "msg-1".to_owned(),
        memory: Some(*D.as_bytes()),
        run: Some(*RUN.as_bytes()),
        aggregate: Some(AGGREGATE).filter(|_| decision == EventDecision::Reinforced),
        decision,
        ..EventRow::default()
    };
    let family = FamilyRow {
        family: [72; 16],
        author: AuthorKind::Human.code(),
        channel: "hall".to_owned(),
        first_ts: 1_000,
        latest_ts: 1_000,
        dup_key: [73; 32],
        simhash: Some(0x0102_0304_0506_0708),
        first_memory: *D.as_bytes(),
        count: 1,
        ..FamilyRow::default()
    };
    let numbers = AggregateRow {
        family: [72; 16],
        first_event: FIRST,
        last_event: REPEAT,
        began: FIRST,
        first_ts: 1_000,
        last_ts: 2_000,
        dup_count: 2,
        examples: vec![FIRST, REPEAT],
        ..AggregateRow::default()
    };
    let repeated = FamilyRow { latest_ts: 2_000, aggregate: Some(AGGREGATE), count: 2, ..family.clone() };
    let record = |event, row, family, aggregate| {
        let recorded = Recorded { event, row, family: Some((FIRST, family)), aggregate, life: None };
        (RuleId::MESSAGE_EXACT, Change::Record(Box::new(recorded)))
    };
    vec![
        record(FIRST, event(1_000, EventDecision::Stored), family, None),
        record(REPEAT, event(2_000, EventDecision::Reinforced), repeated, Some((AGGREGATE, numbers))),
    ]
}

fn row(id: MemoryId, text: &str, holder: Holder, seed: Option<u32>) -> NewRow {
    let mut vitals = Vitals::new(text, NOW);
    vitals.place.space = if seed.is_some() { SPACE.0 } else { 0 };
    vitals.place.fingerprint = normal_form(text).prefix();
    let content = Content::new(text);
    let vector = seed.map(|seed| UnitVector::new("vector", &values(seed)).unwrap());
    NewRow {
        id,
        vitals,
        content,
        access: Access::default(),
        holder: Holder { run: Some(RUN), ..holder },
        vector,
        sources: Vec::new(),
        payload: (id == A).then(|| Payload::Bytes(vec![7])),
    }
}

/// A vector before it is brought to length 1.
pub(super) fn values(seed: u32) -> Vec<f32> {
    (0..DIM as u32).map(|at| ((seed * 131 + at * at * 29) % 97) as f32 - 41.5).collect()
}
