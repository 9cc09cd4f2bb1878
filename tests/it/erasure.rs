//! What was forgotten is nowhere: a random store, of which a random part is forgotten and erased, has no word and no vector
//! that only the forgotten had, in any file of its folder (I17; MODEL-30, MODEL-59), and what was not forgotten is found.
//!
//! Left out, since a memory that is kept may show it: what a draft of the same key does not name and so takes over from the
//! version before. An erased event keeps the number of its partition, so the agent of a message stays while its event does;
//! no message here has an agent.
//!
//! `PROPTEST_CASES=2000 cargo test --test it erasure::` for longer.

use std::collections::{BTreeMap, BTreeSet};

use crate::world::{World, random, text};
use oubliette::maintain::{DedupOptions, MaintainOptions, Pass, RunId};
use oubliette::memory::{AuthorKind, Entity, Got, SupersedeMode, Tier};
use oubliette::policy::Syntax;
use oubliette::report::{CheckOptions, ErasedProbe};
use oubliette::{
    Decision, Draft, ErrorKind, Forget, Kind, MemoryId, Outcome, Patch, Query, Scope, Span, State,
    WriteOptions,
};
use proptest::prelude::*;

/// Dimensions of the vectors: a code of so many bytes is no accident.
const DIM: usize = 32;
/// Keys; each has a partition of its own choice, the last are those of snapshots.
const KEYS: usize = 9;
/// What a message says, and of whom.
const MESSAGE: [&str; 4] = ["message", "author", "channel", "thread"];
const PASSES: [Pass; 6] = [
    Pass::Collapse,
    Pass::NearDuplicates,
    Pass::VectorDuplicates,
    Pass::Snapshots,
    Pass::Index,
    Pass::Repair,
];

/// A word of twelve letters that nothing else is made of, and that no stemmer shortens.
fn word(sort: &str, number: usize) -> String {
    let mut left = (number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (sort.len() as u64) << 32;
    let mut word = String::new();
    for byte in sort.bytes() {
        left = left.wrapping_mul(31).wrapping_add(u64::from(byte));
    }
    for _ in 0..11 {
        left = left.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        word.push(char::from(b"bcdfgjkmnpqvwxz"[(left >> 40) as usize % 15]));
    }
    word + "q"
}

/// A direction of its own.
fn direction(number: usize) -> Vec<f32> {
    let mut left = (number as u64 + 7).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (0..DIM)
        .map(|_| {
            left = left.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            (left >> 40) as f32 / 8_388_608.0 - 1.0
        })
        .collect()
}

/// What a write says.
#[derive(Clone, Copy, Debug)]
enum Words {
    /// A text of its own.
    Own,
    /// One that others may say as well.
    Shared(usize),
    /// A status line: those collapse.
    Status,
    /// A text of its own with a vector near that of others.
    Near(usize),
}

#[derive(Clone, Debug)]
struct Say {
    key: Option<usize>,
    words: Words,
    no_dedup: bool,
}

#[derive(Clone, Debug)]
enum Op {
    Write(Say),
    Import(Vec<Say>),
    /// New metadata, or a new text, by a key.
    Update(usize, bool),
    Supersede(usize, usize, SupersedeMode),
    Snapshot(usize),
    /// A message of one of three families.
    Message(usize),
    Pass(usize),
    /// A pass that ends at once.
    Cut,
    /// The last pass is taken back.
    Back,
    /// An index of metadata.
    Declare,
    Wait,
}

#[derive(Clone, Debug)]
enum Gone {
    Key(usize),
    /// The tag of a write.
    Tag(usize),
    /// A live row, with all that its keys lead to.
    Row(usize),
    /// An import.
    Undo(usize),
    /// A family of messages.
    Family(usize),
}

fn say() -> impl Strategy<Value = Say> {
    let words = prop_oneof![
        4 => Just(Words::Own),
        3 => (0..2_usize).prop_map(Words::Shared),
        3 => Just(Words::Status),
        2 => (0..2_usize).prop_map(Words::Near),
    ];
    (proptest::option::weighted(0.8, 0..KEYS - 2), words, proptest::bool::weighted(0.2))
        .prop_map(|(key, words, no_dedup)| Say { key, words, no_dedup })
}

fn op() -> impl Strategy<Value = Op> {
    let modes = [SupersedeMode::Replaced, SupersedeMode::Correction, SupersedeMode::Duplicate];
    prop_oneof![
        8 => say().prop_map(Op::Write),
        3 => proptest::collection::vec(say(), 1..5).prop_map(Op::Import),
        2 => (0..KEYS - 2, any::<bool>()).prop_map(|(key, revise)| Op::Update(key, revise)),
        2 => (0..KEYS - 2, 0..KEYS - 2, proptest::sample::select(modes.to_vec()))
            .prop_map(|(old, new, mode)| Op::Supersede(old, new, mode)),
        2 => (KEYS - 2..KEYS).prop_map(Op::Snapshot),
        3 => (0..3_usize).prop_map(Op::Message),
        4 => (0..PASSES.len()).prop_map(Op::Pass),
        1 => Just(Op::Cut),
        1 => Just(Op::Back),
        1 => Just(Op::Declare),
        1 => Just(Op::Wait),
    ]
}

fn gone() -> impl Strategy<Value = Gone> {
    prop_oneof![
        4 => (0..KEYS).prop_map(Gone::Key),
        3 => (0..32_usize).prop_map(Gone::Tag),
        3 => (0..32_usize).prop_map(Gone::Row),
        2 => (0..4_usize).prop_map(Gone::Undo),
        2 => (0..3_usize).prop_map(Gone::Family),
    ]
}

/// One write, with the words and the vector that it brought.
#[derive(Clone, Debug, Default)]
struct Wrote {
    key: Option<usize>,
    row: Option<MemoryId>,
    run: Option<RunId>,
    tag: String,
    words: BTreeSet<String>,
    vector: Option<Vec<f32>>,
    forgotten: bool,
}

struct Story {
    world: World,
    wrote: Vec<Wrote>,
    runs: Vec<RunId>,
    /// The last pass that wrote something.
    pass: Option<RunId>,
    /// Keys that a caller led elsewhere, or that an undone import had written: their answer may change.
    moved: BTreeSet<usize>,
    /// The rows of each family of messages: its messages that are memories, and those of its aggregates.
    families: BTreeMap<usize, BTreeSet<MemoryId>>,
}

fn key_of(key: usize) -> String {
    word("key", key)
}

/// The agent of a key: most are shared, two have one each.
fn agent_of(key: usize) -> Option<String> {
    matches!(key, 4 | 5).then(|| word("agent", key))
}

fn longest_word(text: &str) -> &str {
    text.split(|c: char| !c.is_alphanumeric()).max_by_key(|word| word.len()).unwrap()
}

impl Story {
    fn new() -> Self {
        let world = World::new();
        world.db.set_policy("gc.keep_queries = true", Syntax::Toml).unwrap();
        Story {
            world,
            wrote: Vec::new(),
            runs: Vec::new(),
            pass: None,
            moved: BTreeSet::new(),
            families: BTreeMap::new(),
        }
    }

    /// The next draft with words of its own in every place that holds some.
    fn draft(&mut self, say: &Say) -> (Draft, Wrote) {
        let number = self.wrote.len();
        let own = |sort: &str| word(sort, number);
        let mut wrote = Wrote { key: say.key, tag: own("tag"), ..Wrote::default() };
        let status = format!("{}", 10_000_000 + (number * 7_919_777) % 89_999_999);
        let said = match say.words {
            Words::Own | Words::Near(_) => own("text"),
            Words::Shared(at) => word("shared", at),
            Words::Status => status.clone(),
        };
        let mut draft = match say.words {
            Words::Status => text(&format!("Gateway status: {status} apps pending")).kind(Kind::Profile),
            _ => text(&format!("Ann has said {said} in the garden")),
        };
        let vector = match say.words {
            Words::Own if number.is_multiple_of(2) => Some(direction(number + 1_000)),
            Words::Near(base) => {
                let (base, own) = (direction(base), direction(number + 1_000));
                Some(base.iter().zip(&own).map(|(base, own)| base + own / 500.0).collect::<Vec<f32>>())
            }
            _ => None,
        };
        draft.vector.clone_from(&vector);
        // Equal texts are one row only with equal metadata.
        let fact = if matches!(say.words, Words::Shared(_)) { None } else { Some(own("fact")) };
        // What a draft does not name stays as the version before had it: everything is named.
        draft = draft.metadata(match &fact {
            Some(fact) => serde_json::json!({ "fact": fact }),
            None => serde_json::json!({}),
        });
        draft.tags = Some(vec![wrote.tag.clone()]);
        draft.categories = Some(vec![own("category")]);
        draft.entities = Some(vec![Entity { name: own("entity"), role: own("role") }]);
        wrote.words.extend([said, own("tag"), own("category"), own("entity"), own("role")]);
        wrote.words.extend(fact);
        if let Some(key) = say.key {
            draft.key = Some(key_of(key));
            draft.agent = agent_of(key);
            wrote.words.extend([Some(key_of(key)), agent_of(key)].into_iter().flatten());
        }
        wrote.vector = vector;
        (draft, wrote)
    }

    fn note(&mut self, mut wrote: Wrote, outcome: &Outcome) {
        wrote.row = Some(outcome.id);
        self.wrote.push(wrote);
        self.ask(outcome.id);
    }

    /// Asks for a memory in its own words, and lets the question be kept (GC-38).
    fn ask(&self, id: MemoryId) {
        let Ok(Got::Memory(row)) = self.world.get(id) else { return };
        let query = Query::text(longest_word(&row.row_text)).k(50).scope(Scope::Any).track(true);
        self.world.ns.search(query).unwrap();
    }

    fn write(&mut self, all: &[Say], run: Option<RunId>) {
        for say in all {
            let (draft, mut wrote) = self.draft(say);
            let how = WriteOptions { run, no_dedup: say.no_dedup, ..WriteOptions::default() };
            let outcome = self.world.ns.add_all(vec![draft], &how).unwrap().remove(0);
            // What it changed in a holder that is there belongs to the import which brought that holder.
            wrote.run = run.filter(|_| outcome.decision != Decision::Updated);
            self.note(wrote, &outcome);
        }
    }

    fn update(&mut self, key: usize, revise: bool) {
        let (draft, mut wrote) = self.draft(&Say { key: Some(key), words: Words::Own, no_dedup: false });
        let mut patch = Patch { fields: draft.fields.clone(), ..Patch::default() };
        if revise {
            (patch.text, patch.vector) = (Some(draft.text), draft.vector);
        } else {
            wrote.vector = None;
        }
        let world = &self.world;
        match world.ns.update(key_of(key), patch) {
            // A key whose row was superseded by one of another partition stays with its old row.
            Err(why) if matches!(why.kind(), ErrorKind::NotFound | ErrorKind::Conflict) => {}
            outcome => {
                // What it did not name stays as the write before had it.
                let before = self.wrote.iter().rev().find(|wrote| wrote.key == Some(key));
                wrote.words.extend(before.into_iter().flat_map(|before| before.words.clone()));
                self.moved.insert(key);
                let outcome = outcome.unwrap();
                self.note(wrote, &outcome);
            }
        }
    }

    /// The keys of the row that answers to this key.
    fn keys_beside(&self, key: usize) -> BTreeSet<usize> {
        let Ok(Got::Memory(row)) = self.world.get(key_of(key)) else { return BTreeSet::new() };
        (0..KEYS).filter(|other| row.keys.contains(&key_of(*other))).collect()
    }

    fn step(&mut self, op: &Op) {
        match op {
            Op::Write(say) => self.write(std::slice::from_ref(say), None),
            Op::Import(all) => {
                let run = self.world.start_import();
                self.write(all, Some(run));
                self.runs.push(run);
            }
            Op::Update(key, revise) => self.update(*key, *revise),
            Op::Supersede(old, new, mode) => {
                // A memory is superseded for every key that has it.
                let led: BTreeSet<usize> =
                    [*old, *new].into_iter().flat_map(|key| self.keys_beside(key)).collect();
                let world = &self.world;
                let answer = world.ns.supersede_all(&[key_of(*old)], key_of(*new), *mode, None);
                if answer.is_ok() {
                    self.moved.extend(led);
                }
            }
            Op::Snapshot(key) => {
                let number = self.wrote.len();
                let said = word("text", number);
                let draft = Draft::new(format!("{{\"version\": \"{said}\"}}")).key(key_of(*key));
                let world = &self.world;
                let outcome = world.ns.push_snapshot(draft, world.now()).unwrap();
                let words = [said, key_of(*key)].into_iter().collect();
                self.note(Wrote { key: Some(*key), words, ..Wrote::default() }, &outcome);
            }
            Op::Message(family) => {
                let [said, author, channel, thread] = MESSAGE.map(|sort| word(sort, *family));
                let mut draft = Draft::new(format!("{said} has no room left")).kind(Kind::Message);
                // People repeat themselves as well: a family of theirs has no memory but its first message.
                let kind = if *family == 2 { AuthorKind::Human } else { AuthorKind::Bot };
                draft.fields.author_kind = Some(kind).into();
                draft.fields.author_id = Some(author).into();
                draft.fields.channel = Some(channel).into();
                draft.fields.thread = Some(thread).into();
                let outcome = self.world.add(draft);
                self.families.entry(*family).or_default().insert(outcome.id);
                self.world.advance("1s");
            }
            Op::Pass(pass) => {
                let dedup = DedupOptions { dry_run: false, ..DedupOptions::default() };
                let options = MaintainOptions { dedup: Some(dedup), ..MaintainOptions::live() };
                let report = self.world.db.maintain_with(&options.passes([PASSES[*pass]])).unwrap();
                self.pass = report.run.filter(|_| *pass < 4).or(self.pass);
            }
            Op::Back => {
                if let Some(run) = self.pass.take() {
                    self.world.ns.undo(run).unwrap();
                }
            }
            Op::Declare => drop(self.world.ns.declare_index("fact").unwrap()),
            Op::Cut => {
                let budget = Some(Span::from_millis(1));
                let options = MaintainOptions { budget, ..MaintainOptions::live() };
                self.world.db.maintain_with(&options.passes([Pass::Index])).unwrap();
            }
            Op::Wait => self.world.advance("1h"),
        }
    }

    fn forget_where(&mut self, gone: impl Fn(&Wrote) -> bool) {
        self.wrote.iter_mut().filter(|wrote| gone(wrote)).for_each(|wrote| wrote.forgotten = true);
    }

    /// A key goes with all that it ever said.
    fn forget_key(&mut self, key: usize) {
        self.world.forget(&[&key_of(key)]);
        self.forget_where(|wrote| wrote.key == Some(key));
    }

    fn forget(&mut self, gone: &Gone) {
        match gone {
            Gone::Key(key) => self.forget_key(*key),
            Gone::Tag(at) if !self.wrote.is_empty() => {
                let chosen = self.wrote[at % self.wrote.len()].clone();
                if chosen.tag.is_empty() {
                    return;
                }
                self.world.forget_tag(&chosen.tag);
                match chosen.key {
                    // A tag is of one version; here all of its key go.
                    Some(key) => self.forget_key(key),
                    None => self.forget_where(|wrote| wrote.tag == chosen.tag),
                }
            }
            Gone::Row(at) => {
                let rows = self.world.list_in(Scope::Any, State::Live);
                let Some(row) = rows.get(at % rows.len().max(1)).cloned() else { return };
                let keys: BTreeSet<String> = row.keys.iter().cloned().collect();
                let forget = Forget::Names {
                    scope: Scope::Any,
                    names: vec![row.id.to_string()],
                    keep_history: false,
                    also_merged: true,
                    with_history: true,
                };
                self.world.ns.forget(forget).unwrap();
                self.forget_where(|wrote| match wrote.key {
                    Some(key) => keys.contains(&key_of(key)),
                    None => wrote.row == Some(row.id),
                });
            }
            Gone::Undo(at) => {
                let Some(place) = self.runs.len().checked_sub(1 + at) else { return };
                let run = self.runs.remove(place);
                self.world.ns.undo(run).unwrap();
                self.moved.extend(self.wrote.iter().filter(|w| w.run == Some(run)).filter_map(|w| w.key));
                self.forget_where(|wrote| wrote.run == Some(run));
            }
            Gone::Family(family) => {
                for id in self.families.get(family).cloned().unwrap_or_default() {
                    self.world.forget_id(id);
                }
            }
            Gone::Tag(_) => {}
        }
    }

    /// Words and vectors that only the forgotten had.
    fn only_theirs(&self) -> (BTreeSet<String>, Vec<Vec<f32>>) {
        let (gone, kept): (Vec<_>, Vec<_>) = self.wrote.iter().partition(|wrote| wrote.forgotten);
        let words = |all: &[&Wrote]| -> BTreeSet<String> {
            all.iter().flat_map(|wrote| wrote.words.iter().cloned()).collect()
        };
        let mut words: BTreeSet<String> = words(&gone).difference(&words(&kept)).cloned().collect();
        let is_there = |id: &MemoryId| matches!(self.world.get(id), Ok(Got::Memory(_)));
        for (family, rows) in &self.families {
            if !rows.iter().any(is_there) {
                words.extend(MESSAGE.map(|sort| word(sort, *family)));
            }
        }
        (words, gone.iter().filter_map(|wrote| wrote.vector.clone()).collect())
    }

    fn kept_keys(&self) -> BTreeSet<usize> {
        let touched: BTreeSet<usize> =
            self.wrote.iter().filter(|wrote| wrote.forgotten).filter_map(|wrote| wrote.key).collect();
        let all: BTreeSet<usize> = self.wrote.iter().filter_map(|wrote| wrote.key).collect();
        // The later snapshot of a day takes the place of the one before, whatever their keys.
        let stays = |key: &&usize| **key < KEYS - 2 && !self.moved.contains(key);
        all.difference(&touched).filter(stays).copied().collect()
    }

    /// What was not forgotten answers to its key, and a search for its word finds it.
    fn assert_kept(&self) {
        let world = &self.world;
        for key in self.kept_keys() {
            let Got::Memory(row) = world.get(key_of(key)).unwrap() else { panic!("key {key} is gone") };
            // The row may say it in the words of another that it was merged with.
            let said = longest_word(&row.row_text);
            let scope = match &row.partition {
                oubliette::memory::Partition::Shared => Scope::Shared,
                oubliette::memory::Partition::Agent(name) => Scope::Agent(name.clone()),
            };
            let query = Query::text(said).k(50).scope(scope);
            let hits = world.ns.search(&query).unwrap().hits;
            assert!(hits.iter().any(|hit| hit.id == row.id), "{said} of key {key} is not found: {row:?}");
        }
    }

    fn assert_erased(&self) {
        let (words, vectors) = self.only_theirs();
        let folder = self.world.path();
        for file in std::fs::read_dir(folder.parent().unwrap()).unwrap() {
            let path = file.unwrap().path();
            let bytes = std::fs::read(&path).unwrap();
            for word in &words {
                let at = bytes.windows(word.len()).position(|window| window == word.as_bytes());
                let around = |at: usize| {
                    String::from_utf8_lossy(&bytes[at.saturating_sub(200)..bytes.len().min(at + 200)])
                        .into_owned()
                };
                assert!(at.is_none(), "{word} is left in {path:?} at {at:?}: {:?}", at.map(around));
            }
        }
        let probe = |vector: Vec<f32>| ErasedProbe { vector: Some(vector), ..ErasedProbe::default() };
        let erased = vectors.into_iter().map(probe).collect();
        let report = self.world.db.check(&CheckOptions { deep: true, erased }).unwrap();
        assert!(report.ok, "{:#?}", report.findings);
    }
}

proptest! {
    #![proptest_config(random(12, 400))]

    #[test]
    fn what_was_forgotten_is_nowhere(
        ops in proptest::collection::vec(op(), 4..=40),
        gone in proptest::collection::vec(gone(), 1..=6),
    ) {
        let mut story = Story::new();
        for op in &ops {
            story.step(op);
        }
        for gone in &gone {
            story.forget(gone);
        }
        story.world.db.compact().unwrap();
        story.assert_erased();
        story.assert_kept();
        story.world.reopen();
        story.assert_kept();
    }
}

fn file_has(world: &World, word: &str) -> bool {
    std::fs::read(world.path()).unwrap().windows(word.len()).any(|window| window == word.as_bytes())
}

/// The name of an agent goes with the last memory of its partition, at the latest in a copy; one of which something is left
/// stays.
#[test]
fn the_name_of_an_agent_goes_with_its_last_memory() {
    let world = World::new();
    world.add(text("private").key("p").agent("patient-john").vector(direction(1)));
    world.add(text("superseded").key("q").agent("patient-jane"));
    world.add(text("superseded no more").key("q").agent("patient-jane"));
    world.add(text("kept").key("k").agent("patient-kurt").vector(direction(2)));
    world.forget(&["p"]);
    world.db.maintain_with(&MaintainOptions::live().passes([Pass::Index])).unwrap();
    world.db.backup(world.beside("copy.oub")).unwrap();
    let copy = std::fs::read(world.beside("copy.oub")).unwrap();
    assert!(!copy.windows(12).any(|window| window == b"patient-john"));
    world.check();
    world.db.compact().unwrap();
    assert!(!file_has(&world, "patient-john") && file_has(&world, "patient-jane"));
    // The same agent begins anew, beside those that stayed.
    let again = world.add(text("private again").key("p").agent("patient-john").vector(direction(3)));
    assert_eq!(world.row("p").id, again.id);
    assert_eq!(world.row("k").text, "kept");
    let agent = oubliette::memory::Partition::agent("patient-john").unwrap();
    let oubliette::memory::Partition::Agent(name) = agent else { unreachable!() };
    let query = Query::text("private").k(5).scope(Scope::Agent(name));
    assert_eq!(world.ns.search(&query).unwrap().hits.len(), 1);
    world.check();
    world.forget(&["q"]);
    world.db.compact().unwrap();
    assert!(!file_has(&world, "patient-jane") && file_has(&world, "patient-kurt"));
}

/// MODEL-59: a family of people has no memory but its first message, and its numbers name the channel.
/// The journal told the path of an index that had ended, though the only memory with that name in its metadata was forgotten.
#[test]
fn the_path_of_an_index_goes_with_the_index() {
    let world = World::new();
    world.add(Draft::new("a text").key("k").metadata(serde_json::json!({ "qzpath1x": "v" })));
    world.ns.declare_index("qzpath1x").unwrap();
    world.ns.forget("k").unwrap();
    assert!(world.ns.drop_index("qzpath1x").unwrap());
    world.db.compact().unwrap();
    assert!(!file_has(&world, "qzpath1x"));
}

#[test]
fn a_family_that_is_forgotten_leaves_its_channel_nowhere() {
    let mut story = Story::new();
    story.step(&Op::Message(2));
    story.step(&Op::Message(2));
    story.forget(&Gone::Family(2));
    story.world.db.compact().unwrap();
    story.assert_erased();
}

/// MODEL-8: a write that leaves the row of another takes along what it brought, and nothing that the other said.
#[test]
fn what_leaves_a_row_takes_nothing_of_another_along() {
    let world = World::new();
    let said = |fact: &str| serde_json::json!({ "fact": fact });
    world.add(text("Ann lives in Ghent").key("a").metadata(said("mine")));
    world.add(text("Ann lives in Bruges").key("b").metadata(said("theirs")));
    let old = world.row("a").id;
    let new = world.row("b").id;
    world.supersede(old, new, SupersedeMode::Replaced, None).unwrap();
    world.add(text("Ann lives in Namur").key("a").metadata(said("mine")));
    assert_eq!(world.row("a").metadata, said("mine"));
    // The same where both had written one text.
    let mut draft = text("tea").key("c");
    draft.fields.resource = Some("kettle".to_owned()).into();
    world.add(draft);
    assert_eq!(world.add(text("tea").key("d")).decision, Decision::Reinforced);
    world.add(text("coffee").key("d"));
    assert_eq!(world.row("d").resource, None);
    assert_eq!(world.row("c").resource.as_deref(), Some("kettle"));
}

/// A holder that followed one row into limbo and another out of it leaves no name behind.
#[test]
fn a_follower_of_a_merged_row_leaves_no_name() {
    let mut story = Story::new();
    let say = |key, words| Say { key, words, no_dedup: false };
    story.step(&Op::Write(say(None, Words::Status)));
    story.step(&Op::Write(say(Some(3), Words::Own)));
    story.step(&Op::Write(say(Some(6), Words::Status)));
    story.step(&Op::Supersede(3, 6, SupersedeMode::Replaced));
    story.step(&Op::Pass(0));
    story.world.check();
    story.step(&Op::Write(say(Some(6), Words::Own)));
    story.world.check();
    story.forget(&Gone::Tag(1));
    story.world.check();
    story.world.db.compact().unwrap();
    story.assert_erased();
}

/// A query that had found the text of a key goes when the key takes its text out of a merged row, where nobody would find it.
#[test]
fn a_query_goes_with_the_text_that_leaves_a_merged_row() {
    for revise in [false, true] {
        let mut story = Story::new();
        let say = |key| Say { key: Some(key), words: Words::Status, no_dedup: false };
        story.step(&Op::Write(say(2)));
        story.step(&Op::Write(say(0)));
        story.step(&Op::Pass(0));
        story.step(&Op::Update(2, revise));
        story.world.check();
        story.forget(&Gone::Key(2));
        story.world.db.compact().unwrap();
        story.assert_erased();
        story.assert_kept();
    }
}

/// What an undone merge had brought does not stay on the row that superseded the merged one.
#[test]
fn an_undone_merge_gives_back_what_a_revision_took_along() {
    let mut story = Story::new();
    let say = |key, words| Say { key, words, no_dedup: false };
    story.step(&Op::Import(vec![say(Some(2), Words::Status), say(None, Words::Status)]));
    let keyless = story.wrote[1].row.unwrap();
    story.step(&Op::Pass(0));
    story.step(&Op::Write(say(Some(2), Words::Own)));
    story.step(&Op::Back);
    story.world.check();
    let holders = story.world.row(key_of(2)).holders;
    assert_eq!(holders.len(), 1, "{holders:?}");
    story.world.forget_id(keyless);
    story.wrote[1].forgotten = true;
    story.world.db.compact().unwrap();
    story.assert_erased();
}

/// What a key brought through a merged memory is its own after the merge is undone, and goes with it.
#[test]
fn what_a_merged_key_brought_comes_back_with_it() {
    let mut story = Story::new();
    let say = |key, words| Say { key, words, no_dedup: true };
    story.step(&Op::Write(say(None, Words::Shared(1))));
    story.step(&Op::Write(say(Some(2), Words::Shared(1))));
    let own = story.wrote[1].row.unwrap();
    story.step(&Op::Pass(1));
    story.step(&Op::Write(Say { no_dedup: false, ..say(Some(2), Words::Shared(1)) }));
    let tags =
        story.world.row(key_of(2)).holders.into_iter().find(|holder| holder.key.is_some()).unwrap().tags;
    story.step(&Op::Back);
    story.world.check();
    assert_eq!(story.world.row(own).holders[0].tags, tags);
    assert_eq!(story.world.row(own).tags, tags);
    story.forget(&Gone::Key(2));
    story.world.check();
    story.world.db.compact().unwrap();
    story.assert_erased();
}

/// An update by id takes the tags of all writers away, and its step of the journal names them.
#[test]
fn a_tag_that_was_taken_away_goes_with_its_writer() {
    let world = World::new();
    let id = world.add(text("the queue is empty").key("a").tag("heron")).id;
    world.add(text("the queue is empty").key("b").tag("crane"));
    let patch = Patch { tags: Some(vec!["gull".to_owned()]), ..Patch::default() };
    world.ns.update(id.to_string(), patch).unwrap();
    world.forget(&["a"]);
    world.db.compact().unwrap();
    for (tag, is_left) in [("heron", false), ("gull", true)] {
        assert_eq!(world.has_bytes_of(tag), is_left, "{tag}");
    }
    world.check();
}

/// MODEL-32: without limbo a merge erases what it merges, and its own step keeps no word of that.
#[test]
fn a_merge_without_limbo_journals_no_word_of_what_it_erased() {
    let world = World::new();
    world.db.set_policy("undo.horizon = \"0s\"", Syntax::Toml).unwrap();
    for apps in [4, 7] {
        let status = text(&format!("Gateway status: {apps} apps pending")).key(format!("k{apps}"));
        world.add(status.kind(Kind::Profile));
    }
    world.db.maintain_with(&MaintainOptions::live().passes([Pass::Collapse])).unwrap();
    let told = world.ns.history("k4").unwrap().events;
    let merge = told.iter().find(|step| step.op == oubliette::report::Op::Merge).unwrap();
    let signature = merge.evidence.signature.as_deref().unwrap();
    assert!(signature.starts_with("hmac:"), "{signature}");
    let merged = merge.deltas.iter().find(|delta| delta.field == "merged").unwrap();
    assert!(merged.before.as_str().is_some_and(|hidden| hidden.starts_with("hmac:")), "{merged:?}");
    world.check();
}

/// What an erased text says is the folded form of a word of a live text: the term of the index is that of the live text (MODEL-30).
#[test]
fn a_term_of_a_live_text_is_no_residue() {
    let world = World::new();
    world.add(text("Set [SESSION_DURATION] first, then KITCHEN").key("live"));
    let gone = ["it writes session_duration as text", "kitchen", "the term accommodation_allowance is gone"];
    gone.iter().for_each(|words| drop(world.add(text(words).key(*words))));
    world.db.maintain_with(&MaintainOptions::live().passes([Pass::Index])).unwrap();
    world.forget(&gone);
    world.db.compact().unwrap();
    let probe = |words: &str| ErasedProbe { texts: vec![words.to_owned()], ..ErasedProbe::default() };
    let erased = || gone.map(probe).to_vec();
    let check = || world.db.check(&CheckOptions { deep: true, erased: erased() }).unwrap();
    assert!(check().ok, "{:#?}", check().findings);
    world.check();
}

/// The vector of a memory in limbo is there still, and no residue of one that is gone (MODEL-30).
#[test]
fn a_vector_in_limbo_is_no_residue() {
    let world = World::new();
    let vector: Vec<f32> = (0..DIM).map(|at| 1.0 + at as f32).collect();
    let mut draft = text("Ann is on the train").vector(vector).key("train");
    draft.fields.tier = Some(Tier::Working);
    world.add(draft);
    let shown = world.ns.look_up("train", true).unwrap().into_memory().unwrap().vector;
    world.advance("10d");
    world.db.maintain_with(&MaintainOptions::live().passes([Pass::Expire])).unwrap();
    assert_eq!(world.list_in(Scope::Any, State::Limbo).len(), 1);
    let probe = ErasedProbe { vector: shown, ..ErasedProbe::default() };
    let check = || world.db.check(&CheckOptions { deep: false, erased: vec![probe.clone()] }).unwrap();
    assert!(check().ok, "{:#?}", check().findings);
    world.forget(&["train"]);
    world.db.compact().unwrap();
    assert!(check().ok, "{:#?}", check().findings);
}
