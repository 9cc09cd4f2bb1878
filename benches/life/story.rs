//! Two years of an agent's life with two stores: one that forgets by its policy, and one that keeps everything.
//!
//! Of what the agent writes, 70 of 100 are status lines (tier `working`), 15 are facts under a key, each of which changes
//! every four weeks, 10 are events (tier `episodic`), and 5 are remarks that matter little and that nobody asks for. The
//! agent asks for one fact for ten writes, and its interest moves on through the facts. The forgetting store is swept by
//! days and opened anew each month, as by a host that is updated.

use std::path::{Path, PathBuf};
use std::time::Instant;

use oubliette::clock::{Clock, ManualClock};
use oubliette::memory::Tier;
use oubliette::policy::{Policy, Syntax};
use oubliette::report::CheckOptions;
use oubliette::{
    Database, Draft, Durability, Filter, Kind, Namespace, PageRequest, Query, Scope, Span, State,
    WriteOptions,
};
use tempfile::TempDir;

/// Days of the whole life.
pub const DAYS: usize = 720;
/// Days from one look at the stores to the next.
pub const MONTH: usize = 30;
/// Dimensions of the vectors.
const DIM: usize = 32;
/// Days after which a fact changes.
const CHANGE: usize = 28;
/// Facts that are asked for at each look.
const PROBES: usize = 50;
/// Hits of a probe.
const K: usize = 10;
/// Hits of a search of the agent, which it uses.
const ASKED: usize = 3;
/// Bytes by which a file may be longer than its rows ask for: it grows by doubling, and closing cuts off what is free at its
/// end.
const SLACK: u64 = 4 << 20;

const FORGETTING: &str = "undo.horizon = '7d'\njournal.max_age = '30d'\nsweeper.demote_after = '14d'\n\
    sweeper.tombstone_ttl = '60d'\nsweeper.short_term_cap = 5000\n\
    sweeper.stages = ['fold', 'purge', 'cap', 'superseded_purge', 'demote', 'promote', 'limbo', 'retention']";
const KEEPING: &str =
    "ttl.working = '36500d'\nttl.episodic = '36500d'\nsweeper.stages = ['fold']\npurge.per_write = 0";

/// What a look at the forgetting store shows.
pub struct Month {
    pub number: usize,
    /// Writes so far.
    pub writes: usize,
    /// Visible memories of the tiers working, episodic, semantic and procedural.
    pub tiers: [u64; 4],
    /// Memories that are not visible: superseded, expired or in limbo.
    pub hidden: u64,
    /// Visible memories of the store that keeps everything.
    pub kept: u64,
    /// Bytes of all rows, and of the file.
    pub live: u64,
    pub file: u64,
    /// Bytes of the file of the store that keeps everything.
    pub file_kept: u64,
    /// Of the hits that the store which keeps everything gives for what is current, the share that this store gives.
    pub recall: f64,
    /// Visible memories whose end is past.
    pub over: usize,
    /// What a deep check found.
    pub findings: usize,
    /// Longest sweep of the month in milliseconds.
    pub sweep_ms: f64,
}

impl Month {
    /// Whether the file is as short as its rows ask for: at most 2.5 times as long, and some pages longer.
    pub fn is_compact(&self) -> bool {
        self.file as f64 <= 2.5 * self.live as f64 + SLACK as f64
    }
}

struct Store {
    path: PathBuf,
    policy: &'static str,
    db: Database,
    ns: Namespace,
}

impl Store {
    fn open(folder: &Path, name: &str, policy: &'static str, clock: &ManualClock) -> Self {
        let path = folder.join(name);
        let parsed = Policy::parse(policy, Syntax::Toml).unwrap();
        let builder = Database::builder().durability(Durability::Batch).clock(clock.clone()).policy(parsed);
        let db = builder.open(&path).unwrap();
        let ns = db.namespace("agent").unwrap();
        Store { path, policy, db, ns }
    }

    fn open_again(&mut self, clock: &ManualClock) {
        self.db.clone().close().unwrap();
        let name = self.path.file_name().unwrap().to_str().unwrap().to_owned();
        *self = Store::open(self.path.parent().unwrap(), &name, self.policy, clock);
    }

    /// The texts of the facts nearest to a vector.
    fn facts(&self, vector: &[f32]) -> Vec<String> {
        let filter = Filter::parse(r#"{"tags": {"$in": ["fact"]}}"#).unwrap();
        let query = Query::vector(vector.to_vec()).k(K).filter(filter);
        self.ns.search(query).unwrap().hits.into_iter().map(|hit| hit.text).collect()
    }
}

/// Numbers that look like chance and are the same in each run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: usize) -> usize {
        (self.roll() % end.max(1) as u64) as usize
    }

    /// A direction, or one near to another.
    fn vector(&mut self, near: Option<&[f32]>, noise: f32) -> Vec<f32> {
        (0..DIM)
            .map(|at| {
                let chance = (self.roll() % 2_000) as f32 / 1_000.0 - 1.0;
                near.map_or(chance, |near| near[at] + noise * chance)
            })
            .collect()
    }
}

pub struct Life {
    clock: ManualClock,
    forgetting: Store,
    keeping: Store,
    dice: Dice,
    /// The direction of each fact.
    facts: Vec<Vec<f32>>,
    /// How often each fact has changed.
    changes: Vec<usize>,
    next: usize,
    a_day: f64,
    sweep_every: usize,
    day: usize,
    writes: usize,
    owed: f64,
    recalls: usize,
    sweep_ms: f64,
    _folder: TempDir,
}

impl Life {
    /// A life of so many writes, with a sweep after so many days.
    pub fn new(writes: usize, sweep_every: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock = ManualClock::at("2024-01-01T00:00:00Z".parse().unwrap());
        let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
        let a_day = writes as f64 / DAYS as f64;
        let count = ((a_day * 0.15 * CHANGE as f64) as usize).max(2 * K);
        Life {
            forgetting: Store::open(folder.path(), "forgetting.oub", FORGETTING, &clock),
            keeping: Store::open(folder.path(), "keeping.oub", KEEPING, &clock),
            facts: (0..count).map(|_| dice.vector(None, 0.0)).collect(),
            changes: vec![0; count],
            clock,
            dice,
            next: 0,
            a_day,
            sweep_every,
            day: 0,
            writes: 0,
            owed: 0.0,
            recalls: 0,
            sweep_ms: 0.0,
            _folder: folder,
        }
    }

    /// Searches that were counted so far.
    pub fn recalls(&self) -> usize {
        self.recalls
    }

    /// Lives for a month and looks at the stores.
    pub fn month(&mut self) -> Month {
        self.sweep_ms = 0.0;
        for _ in 0..MONTH {
            self.live_a_day();
        }
        self.forgetting.open_again(&self.clock);
        self.look()
    }

    fn live_a_day(&mut self) {
        self.owed += self.a_day;
        let mut drafts = Vec::new();
        while self.owed >= 1.0 {
            self.owed -= 1.0;
            drafts.push(self.draft());
        }
        self.writes += drafts.len();
        for store in [&self.forgetting, &self.keeping] {
            store.ns.add_all(drafts.clone(), &WriteOptions::default()).unwrap();
        }
        // One search for ten writes.
        while self.recalls < self.writes / 10 {
            self.recalls += 1;
            let fact = self.interest();
            let vector = self.dice.vector(Some(&self.facts[fact]), 0.1);
            self.forgetting.ns.search(Query::vector(vector).k(ASKED).track(true)).unwrap();
        }
        self.clock.advance(Span::from_hours(24));
        self.day += 1;
        if self.day.is_multiple_of(self.sweep_every) {
            let begun = Instant::now();
            self.forgetting.db.maintain().unwrap();
            self.sweep_ms = self.sweep_ms.max(begun.elapsed().as_secs_f64() * 1_000.0);
        }
    }

    /// A fact that the agent is interested in now: one of a quarter of them, which moves on.
    fn interest(&mut self) -> usize {
        let count = self.facts.len();
        (self.day * count / 240 + self.dice.below(count / 4)) % count
    }

    fn draft(&mut self) -> Draft {
        let at = self.writes + self.dice.below(1_000_000);
        match self.dice.below(100) {
            0..70 => {
                let (gateway, apps) = (self.dice.below(20), self.dice.below(500));
                let text = format!("Gateway {gateway} status: {apps} apps pending at {}", self.clock.now());
                let vector = self.dice.vector(None, 0.0);
                Draft::new(text).kind(Kind::Profile).tier(Tier::Working).vector(vector)
            }
            70..85 => self.fact(),
            85..95 => {
                let fact = self.interest();
                let vector = self.dice.vector(Some(&self.facts[fact]), 0.6);
                let text = format!("On day {} the agent worked on fact {fact}, step {at}", self.day);
                Draft::new(text).kind(Kind::Episode).tier(Tier::Episodic).vector(vector)
            }
            _ => {
                let vector = self.dice.vector(None, 0.0);
                Draft::new(format!("A remark by the way, number {at}")).importance(0.3).vector(vector)
            }
        }
    }

    /// The next fact in turn, as it is from now on.
    fn fact(&mut self) -> Draft {
        let fact = self.next;
        self.next = (fact + 1) % self.facts.len();
        self.changes[fact] += 1;
        let vector = self.dice.vector(Some(&self.facts[fact]), 0.05);
        let text = format!("Fact {fact} is {} since day {}", self.changes[fact], self.day);
        Draft::new(text).key(format!("fact-{fact}")).tag("fact").importance(0.6).vector(vector)
    }

    fn look(&mut self) -> Month {
        let stats = self.forgetting.db.stats().unwrap();
        let kept = self.keeping.db.stats().unwrap();
        let of = |tier: Tier| stats.by_tier.get(tier.as_str()).copied().unwrap_or_default();
        let check = CheckOptions { deep: true, ..CheckOptions::default() };
        Month {
            number: self.day / MONTH,
            writes: self.writes,
            tiers: [Tier::Working, Tier::Episodic, Tier::Semantic, Tier::Procedural].map(of),
            hidden: stats.memories.superseded + stats.memories.expired + stats.memories.limbo,
            kept: kept.memories.live,
            live: stats.bytes.live,
            file: stats.bytes.file,
            file_kept: kept.bytes.file,
            recall: self.recall(),
            over: self.over(),
            findings: self.forgetting.db.check(&check).unwrap().findings.len(),
            sweep_ms: self.sweep_ms,
        }
    }

    fn recall(&mut self) -> f64 {
        let (mut found, mut expected) = (0, 0);
        for _ in 0..PROBES.min(self.facts.len()) {
            let fact = self.dice.below(self.facts.len());
            let vector = self.dice.vector(Some(&self.facts[fact]), 0.1);
            let (here, there) = (self.forgetting.facts(&vector), self.keeping.facts(&vector));
            expected += there.len();
            found += there.iter().filter(|text| here.contains(text)).count();
        }
        found as f64 / expected.max(1) as f64
    }

    /// Visible memories whose life or whose truth is over.
    fn over(&self) -> usize {
        let (now, mut over, mut cursor) = (self.clock.now(), 0, None);
        loop {
            let request = PageRequest {
                scope: Scope::Any,
                state: State::Live,
                limit: 1_000,
                cursor,
                ..PageRequest::default()
            };
            let page = self.forgetting.ns.list(&request).unwrap();
            let has_ended = |end: Option<oubliette::Time>| end.is_some_and(|end| end <= now);
            over +=
                page.items.iter().filter(|row| has_ended(row.expires_at) || has_ended(row.valid_to)).count();
            match page.next {
                Some(next) => cursor = Some(next),
                None => return over,
            }
        }
    }
}
