//! What a database goes through while the power may fail: short stories, each over a prepared database.

use std::sync::Arc;

use oubliette::gc::{Extractive, GcOptions, GcPlan, InputPack, Summarizer};
use oubliette::maintain::{MaintainOptions, Pass};
use oubliette::memory::{AuthorKind, Entity, Expiry, GoalDraft, Link, SupersedeMode, Tier};
use oubliette::policy::Syntax;
use oubliette::{
    Database, Draft, Filter, Forget, Kind, Memory, Namespace, NamespaceName, Patch, Query, Result, Scope,
    WriteOptions,
};

use super::world::{COPY, DIM, World};

/// One call of the story.
pub struct Step {
    pub run: fn(&mut World) -> Result<()>,
    /// Whether all that came before it is durable after it, in every mode.
    pub flushes: bool,
}

const fn step(run: fn(&mut World) -> Result<()>) -> Step {
    Step { run, flushes: false }
}

const fn flushing(run: fn(&mut World) -> Result<()>) -> Step {
    Step { run, flushes: true }
}

/// A story.
pub struct Scenario {
    pub name: &'static str,
    /// What is there before the first step; nothing, not even a file, where it does not open the database.
    pub before: fn(&mut World) -> Result<()>,
    pub steps: &'static [Step],
}

const OPEN: Step = flushing(World::open);
const CLOSE: Step = flushing(World::close);

fn ns(db: &Database) -> Namespace {
    db.namespace("default").unwrap()
}

fn vector(seed: usize) -> Vec<f32> {
    (0..DIM).map(|at| 1.0 + ((seed * 7 + at * 3) % 11) as f32).collect()
}

fn entity(name: &str) -> Entity {
    Entity { name: name.to_owned(), role: "mentioned".to_owned() }
}

/// Row `at` of the library: every other one with a tag, every third of an agent, the last without a vector.
fn row(at: usize) -> Draft {
    let draft = Draft::new(format!("memory number {at}")).key(format!("k{at}"));
    let draft = if at == 7 { draft } else { draft.vector(vector(at)) };
    let draft = if at.is_multiple_of(2) { draft.tag("even") } else { draft };
    if at.is_multiple_of(3) { draft.agent("scout") } else { draft }
}

fn nothing(_: &mut World) -> Result<()> {
    Ok(())
}

fn empty(w: &mut World) -> Result<()> {
    w.open()
}

fn library(w: &mut World) -> Result<()> {
    w.open()?;
    ns(w.db()).add_all((0..8).map(row).collect(), &WriteOptions::default())?;
    ns(w.db()).add(row(1).key("k1b").tag("held"))?;
    ns(w.db()).update("k2", Patch { text: Some("the second, revised".to_owned()), ..Patch::default() })?;
    let short = Draft::new("soon over").key("short").tier(Tier::Working).vector(vector(20));
    ns(w.db()).add(short.expiry(Expiry::After("1h".parse()?)))?;
    w.db().namespace("other")?.add(Draft::new("of another tenant").key("k1").vector(vector(30)))?;
    Ok(())
}

/// A library with memories that a tier, a caller and a pin let live or not.
fn short_lived(w: &mut World) -> Result<()> {
    library(w)?;
    // One slice does it all, however slow the machine is: a step is told whole or not at all.
    w.db().set_policy("plan.max_ms = 60_000", Syntax::Toml)?;
    for at in 40..44 {
        let draft = Draft::new(format!("for some days {at}")).tier(Tier::Working).vector(vector(at));
        ns(w.db()).add(if at == 42 { draft.tag("pinned") } else { draft.key(format!("d{at}")) })?;
    }
    Ok(())
}

/// A library with messages, and a memory that was forgotten.
fn told(w: &mut World) -> Result<()> {
    library(w)?;
    // Each step lets one sort of rows grow too old, and a step is told whole or not at all.
    let ages = "plan.max_ms = 60_000\ntombstone.retention = \"400d\"\njournal.max_age = \"4000d\"";
    w.db().set_policy(ages, Syntax::Toml)?;
    for at in [1, 1, 2] {
        ns(w.db()).add(message(AuthorKind::Bot, at))?;
        ns(w.db()).add(message(AuthorKind::Human, at))?;
    }
    ns(w.db()).forget("k3").map(drop)
}

fn retention_on(w: &mut World, day: &str) -> Result<()> {
    w.clock.set(day.parse()?);
    sweep(w, Pass::Retention)
}

/// A library with memories that their use moves from tier to tier.
fn tiered(w: &mut World) -> Result<()> {
    library(w)?;
    w.db().set_policy("plan.max_ms = 60_000\nsweeper.demote_after = \"1d\"", Syntax::Toml)?;
    for at in 40..44 {
        let draft = Draft::new(format!("of little importance {at}")).importance(0.3).vector(vector(at));
        ns(w.db()).add(draft)?;
        let id = ns(w.db()).add(Draft::new(format!("in use {at}")).tier(Tier::Working))?.id;
        let mut patch = Patch::default();
        patch.fields.retrieval_count = Some(3);
        ns(w.db()).update(id, patch)?;
    }
    Ok(())
}

/// Puts the texts of memories one behind the other.
struct Joining;

impl Summarizer for Joining {
    fn summarize(&self, pack: &InputPack) -> Result<String> {
        Extractive::default().summarize(pack)
    }

    fn consolidate(&self, memories: &[Memory]) -> Result<Draft> {
        let texts: Vec<&str> = memories.iter().map(|memory| memory.text.as_str()).collect();
        Ok(Draft::new(texts.join("; ")))
    }
}

/// A file whose last pages are in use, and most of those before them are free.
fn mostly_free(w: &mut World) -> Result<()> {
    library(w)?;
    w.db().set_policy("undo.horizon = \"0s\"", Syntax::Toml)?;
    for at in 0..6_u32 {
        let noise =
            (0..225 << 10).flat_map(|word: u32| (word ^ at << 20).wrapping_mul(0x9e37_79b1).to_le_bytes());
        let payload: Vec<u8> = noise.collect();
        ns(w.db()).add(Draft::new(format!("call {at}")).key(format!("call{at}")).payload(payload))?;
    }
    ns(w.db()).forget(Forget::names((0..5).map(|at| format!("call{at}")))).map(drop)
}

fn imported(w: &mut World) -> Result<()> {
    library(w)?;
    import_start(w)?;
    import(w, 0..3)
}

fn import_start(w: &mut World) -> Result<()> {
    w.run = Some(ns(w.db()).start_import()?);
    Ok(())
}

fn import(w: &mut World, rows: std::ops::Range<usize>) -> Result<()> {
    let mut drafts: Vec<Draft> = rows
        .map(|at| {
            Draft::new(format!("imported {at}")).key(format!("i{at}")).tag("import").vector(vector(40 + at))
        })
        .collect();
    // One that is there already, and one that revises.
    drafts.push(Draft::new("memory number 1").vector(vector(1)));
    drafts.push(Draft::new("memory number 4, as imported").key("k4").vector(vector(60)));
    ns(w.db()).add_all(drafts, &WriteOptions { run: w.run, ..WriteOptions::default() }).map(drop)
}

/// Rows of the partition that gets a graph.
const CROWD: usize = 28;
/// A policy under which a partition of that size has a graph: one of more than 20 rows gets it.
const GRAPHS: &str = "[index]\nscan_max = 1_440\ntail_min = 8\ntail_share = 0.0";
/// A policy under which it loses it.
const NO_GRAPHS: &str = "[index]\nscan_max = 144_000";

/// A row of the crowd. No two have the same vector.
fn one_of_many(at: usize) -> Draft {
    let mixed = |place: usize| (at * 8 + place + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
    let vector: Vec<f32> = (0..DIM).map(|place| mixed(place) as f32 / (1 << 23) as f32 - 1.0).collect();
    Draft::new(format!("one of many {at}")).key(format!("m{at}")).vector(vector)
}

fn add_crowd(w: &World, rows: std::ops::Range<usize>) -> Result<()> {
    ns(w.db()).add_all(rows.map(one_of_many).collect(), &WriteOptions::default()).map(drop)
}

fn forget_crowd(w: &World, rows: impl Iterator<Item = usize>) -> Result<()> {
    ns(w.db()).forget(Forget::names(rows.map(|at| format!("m{at}")))).map(drop)
}

/// A pass that does at most so many rows; with none it has nothing left to do.
fn maintain(w: &World, pass: Pass, max_rows: Option<u64>) -> Result<()> {
    let report =
        w.db().maintain_with(&MaintainOptions { max_rows, ..MaintainOptions::live() }.passes([pass]))?;
    assert!(max_rows.is_some() || report.passes.iter().all(|pass| pass.left == 0), "{report:?}");
    Ok(())
}

/// Messages that are old enough for a summary.
fn old_messages(w: &mut World) -> Result<()> {
    w.open()?;
    let old = "2001-01-02T10:00:00Z".parse()?;
    let draft = |at: usize| {
        let text = format!(
            "Ann: Box {at} went to Ghent{at}. That is how it was, and so it will be for all of us. Well, when would you do that?"
        );
        Draft::new(text)
            .kind(Kind::Message)
            .channel("yard")
            .created_at(old)
            .vector(vector(at))
            .key(format!("m{at}"))
    };
    ns(w.db()).add_all((0..4).map(draft).collect(), &WriteOptions::default()).map(drop)
}

fn plan_summaries(w: &World) -> Result<GcPlan> {
    ns(w.db()).gc_plan(&GcOptions::default())
}

/// A partition that is large enough for a graph and has none yet.
fn crowd(w: &mut World) -> Result<()> {
    w.open()?;
    add_crowd(w, 0..CROWD)?;
    w.db().set_policy(GRAPHS, Syntax::Toml).map(drop)
}

/// The same with its graph.
fn linked_crowd(w: &mut World) -> Result<()> {
    crowd(w)?;
    maintain(w, Pass::Index, None)?;
    assert_eq!(w.db().stats()?.vectors.in_graph, CROWD as u64);
    Ok(())
}

/// The same with nodes whose memories are gone, and some rows beside the graph.
fn worn_crowd(w: &mut World) -> Result<()> {
    linked_crowd(w)?;
    forget_crowd(w, (0..CROWD).step_by(4))?;
    add_crowd(w, CROWD..CROWD + 4)?;
    let vectors = w.db().stats()?.vectors;
    assert_eq!((vectors.dead, vectors.tail), (CROWD as u64 / 4, 4));
    Ok(())
}

/// Operational reports and what hangs on them: keys, tags, links to them and from them, vectors. No slice is cut by
/// the time that it takes.
fn reports(w: &mut World) -> Result<()> {
    w.open()?;
    w.db().set_policy("plan.max_ms = 60_000", Syntax::Toml)?;
    let around = ns(w.db()).add(row(1))?.id;
    let mut reports = Vec::new();
    for at in 0..5 {
        let mut draft =
            Draft::new(format!("gateway health: {at} agents")).kind(Kind::Profile).tag(format!("t{at}"));
        draft.links = Some(vec![Link { to: around, relation: "about".to_owned() }]);
        draft = if at == 3 { draft } else { draft.key(format!("r{at}")).vector(vector(70 + at)) };
        reports.push(ns(w.db()).add(draft)?.id);
    }
    let mut sees = row(2);
    sees.links = Some(vec![Link { to: reports[4], relation: "sees".to_owned() }]);
    ns(w.db()).add(sees)?;
    let twins = (0..2).map(|at| Draft::new("the same twice").key(format!("twin{at}"))).collect();
    ns(w.db()).add_all(twins, &WriteOptions { no_dedup: true, ..WriteOptions::default() }).map(drop)
}

/// Summaries that are too old, under a policy that prunes them.
fn old_summaries(w: &mut World) -> Result<()> {
    w.open()?;
    let policy = "plan.max_ms = 60_000\nprune.enabled = true\nprune.mode = 'hybrid'";
    w.db().set_policy(policy, Syntax::Toml)?;
    for at in 0..4 {
        let draft = Draft::new(format!("chapter {at}")).kind(Kind::ChapterSummary).vector(vector(90 + at));
        ns(w.db()).add(draft.created_at("2020-01-01T00:00:00Z".parse()?))?;
    }
    Ok(())
}

/// A library whose questions are kept. They are asked before the story: what a handle has noted and a disk has refused is
/// written with the next step.
fn questioned(w: &mut World) -> Result<()> {
    library(w)?;
    w.db().set_policy("gc.keep_queries = true", Syntax::Toml)?;
    for words in ["memory number 1", "the second, revised", "memory number 4 or 5"] {
        ask(w, words)?;
    }
    w.db().flush_access()
}

fn ask(w: &World, words: &str) -> Result<()> {
    let found =
        ns(w.db()).search(Query { vector: Some(vector(5)), ..Query::text(words).k(3).track(true) })?;
    assert!(!found.hits.is_empty(), "{words}");
    Ok(())
}

/// Memories of near vectors, of which one may stand for the others.
fn clustered(w: &mut World) -> Result<()> {
    w.open()?;
    w.db().set_policy("plan.max_ms = 60_000\ncluster.prune = true", Syntax::Toml)?;
    for (at, say) in ["a tall tree", "a high tree", "a big tree"].into_iter().enumerate() {
        let draft = Draft::new(say).vector(vector(90)).tag(format!("t{at}"));
        // Used, so that it stays beside the one that stands for all.
        ns(w.db()).add(if at == 2 { draft.relevance_max(1.0) } else { draft })?;
    }
    Ok(())
}

/// A message that repeats another but for its figure.
fn message(author: AuthorKind, figure: usize) -> Draft {
    let mut draft = Draft::new(format!("build {figure} failed on main")).kind(Kind::Message).tag("said");
    draft.fields.author_kind = Some(author).into();
    draft.fields.channel = Some("ops".to_owned()).into();
    draft.vector(vector(80))
}

/// A pass whose run can be taken back.
fn sweep(w: &mut World, pass: Pass) -> Result<()> {
    let report = w.db().maintain_with(&MaintainOptions::live().passes([pass]))?;
    assert!(report.passes.iter().all(|pass| pass.left == 0), "{report:?}");
    w.run = report.run;
    Ok(())
}

/// Every story.
pub const SCENARIOS: &[Scenario] = &[
    Scenario { name: "create", before: nothing, steps: &[OPEN, CLOSE] },
    Scenario {
        name: "create_with_dimensions",
        before: nothing,
        steps: &[
            OPEN,
            CLOSE,
            step(|w| {
                w.db = None;
                w.db = Some(w.builder().dimensions(DIM).open(super::world::FILE)?);
                Ok(())
            }),
        ],
    },
    Scenario {
        name: "first_add",
        before: nothing,
        steps: &[OPEN, step(|w| ns(w.db()).add(row(0)).map(drop))],
    },
    Scenario {
        name: "adds",
        before: empty,
        steps: &[
            OPEN,
            step(|w| ns(w.db()).add(row(0)).map(drop)),
            step(|w| {
                let mut draft = row(1).tag("a").tag("b").kind(Kind::Message);
                draft.entities = Some(vec![entity("Ann"), entity("Bob")]);
                draft.categories = Some(vec!["drinks".to_owned()]);
                ns(w.db()).add(draft.metadata(serde_json::json!({"n": 1}))).map(drop)
            }),
            step(|w| w.db().namespace("other")?.add(row(2).agent("scout")).map(drop)),
        ],
    },
    Scenario {
        name: "import",
        before: library,
        steps: &[
            OPEN,
            step(import_start),
            step(|w| import(w, 0..6)),
            step(|w| import(w, 6..12)),
            step(|w| ns(w.db()).finish_import(w.run.unwrap())),
        ],
    },
    Scenario {
        name: "revise_by_key",
        before: library,
        steps: &[
            OPEN,
            step(|w| ns(w.db()).add(Draft::new("another text").key("k1").vector(vector(50))).map(drop)),
        ],
    },
    Scenario {
        name: "update",
        before: library,
        steps: &[
            OPEN,
            step(|w| {
                let tags = Some(vec!["patched".to_owned()]);
                ns(w.db()).update("k4", Patch { tags, ..Patch::default() }).map(drop)
            }),
            step(|w| {
                let (text, vector) = (Some("patched".to_owned()), Some(vector(51)));
                ns(w.db()).update("k5", Patch { text, vector, ..Patch::default() }).map(drop)
            }),
        ],
    },
    Scenario {
        name: "pin",
        before: library,
        steps: &[
            OPEN,
            step(|w| ns(w.db()).pin("k1", true).map(drop)),
            step(|w| ns(w.db()).pin("k1", false).map(drop)),
        ],
    },
    Scenario {
        name: "supersede",
        before: library,
        steps: &[
            OPEN,
            step(|w| {
                let old = ["k4".to_owned(), "k5".to_owned()];
                ns(w.db()).supersede_all(&old, "k7", SupersedeMode::Correction, None).map(drop)
            }),
        ],
    },
    Scenario {
        name: "restore",
        before: |w| {
            library(w)?;
            ns(w.db()).supersede_all(["k4"], "k5", SupersedeMode::Duplicate, None).map(drop)
        },
        steps: &[
            OPEN,
            step(|w| {
                let versions = ns(w.db()).history("k4")?.versions;
                let old = versions.iter().find(|version| version.superseded_by.is_some());
                let name = old.map_or("k4".to_owned(), |version| version.id.to_string());
                ns(w.db()).restore(&name).map(drop)
            }),
        ],
    },
    Scenario {
        name: "forget_names",
        before: library,
        steps: &[
            OPEN,
            step(|w| ns(w.db()).forget(Forget::names(["k2", "k7"])).map(drop)),
            step(|w| w.db().namespace("other")?.forget(Forget::names(["k1", "unknown"])).map(drop)),
            step(|w| ns(w.db()).add(Draft::new("in a slot of the dead").vector(vector(52))).map(drop)),
        ],
    },
    Scenario {
        name: "forget_tag",
        before: library,
        steps: &[OPEN, step(|w| ns(w.db()).forget(Forget::tag("even")).map(drop))],
    },
    Scenario {
        name: "forget_filter",
        before: library,
        steps: &[
            OPEN,
            step(|w| {
                let filter = Filter::parse(r#"{"tier":"semantic"}"#)?;
                ns(w.db()).forget(Forget::filter(filter, Scope::Shared)).map(drop)
            }),
        ],
    },
    Scenario {
        name: "hold_and_reinforce",
        before: library,
        steps: &[
            OPEN,
            step(|w| ns(w.db()).add(Draft::new("memory number 1").tag("again").vector(vector(1))).map(drop)),
            step(|w| ns(w.db()).reinforce("k4", 3)),
            step(|w| ns(w.db()).forget(Forget::names(["k1"])).map(drop)),
        ],
    },
    Scenario {
        name: "drop_namespace",
        before: library,
        steps: &[OPEN, step(|w| w.db().drop_namespace(NamespaceName::default()).map(drop))],
    },
    Scenario {
        name: "undo",
        before: imported,
        steps: &[OPEN, step(|w| ns(w.db()).undo(w.run.unwrap()).map(drop))],
    },
    Scenario {
        name: "messages",
        before: library,
        steps: &[
            OPEN,
            step(|w| ns(w.db()).add(message(AuthorKind::Bot, 1)).map(drop)),
            step(|w| ns(w.db()).add(message(AuthorKind::Bot, 2)).map(drop)),
            step(|w| ns(w.db()).add(message(AuthorKind::Bot, 3)).map(drop)),
            step(|w| ns(w.db()).add(message(AuthorKind::Human, 4)).map(drop)),
            step(|w| ns(w.db()).add(message(AuthorKind::Human, 4)).map(drop)),
            step(|w| ns(w.db()).add(Draft::new("as of now").kind(Kind::Snapshot)).map(drop)),
            step(|w| ns(w.db()).add(Draft::new("as of a bit later").kind(Kind::Snapshot)).map(drop)),
            step(|w| ns(w.db()).forget(Forget::tag("said")).map(drop)),
        ],
    },
    Scenario {
        name: "messages_grow_old",
        before: told,
        steps: &[
            OPEN,
            step(|w| retention_on(w, "2026-04-10T14:00:00Z")),
            step(|w| ns(w.db()).add(message(AuthorKind::Bot, 5)).map(drop)),
            step(|w| retention_on(w, "2026-06-01T14:00:00Z")),
            step(|w| retention_on(w, "2027-03-20T14:00:00Z")),
            step(|w| retention_on(w, "2027-04-07T14:00:00Z")),
        ],
    },
    Scenario {
        name: "collapse_and_undo",
        before: reports,
        steps: &[
            OPEN,
            step(|w| sweep(w, Pass::Collapse)),
            step(|w| ns(w.db()).undo(w.run.unwrap()).map(drop)),
        ],
    },
    Scenario {
        name: "summary_and_undo",
        before: old_messages,
        steps: &[
            OPEN,
            step(|w| plan_summaries(w).map(drop)),
            step(|w| {
                let ns = ns(w.db());
                let plan = ns.gc_plans()?.remove(0).plan_id;
                let answer = Extractive::default().summarize(&ns.gc_pack(plan, "1")?)?;
                w.run = ns.gc_commit(plan, "1", &answer, None)?.run;
                Ok(())
            }),
            step(|w| ns(w.db()).undo(w.run.unwrap()).map(drop)),
        ],
    },
    Scenario {
        name: "near_duplicates_and_limbo",
        before: reports,
        steps: &[
            OPEN,
            step(|w| sweep(w, Pass::NearDuplicates)),
            step(|w| ns(w.db()).forget(Forget::names(["twin1"])).map(drop)),
            step(|w| sweep(w, Pass::Collapse)),
            step(|w| {
                w.clock.set("2026-03-10T14:00:00Z".parse()?);
                sweep(w, Pass::Limbo)
            }),
        ],
    },
    Scenario {
        name: "batch",
        before: library,
        steps: &[
            OPEN,
            step(|w| {
                w.db().batch(|b| {
                    b.add(&NamespaceName::default(), Draft::new("in a batch").key("b1").vector(vector(53)))?;
                    b.add(
                        &NamespaceName::default(),
                        Draft::new("in a batch, revised").key("b1").vector(vector(54)),
                    )?;
                    b.forget(&NamespaceName::default(), &["k4".to_owned()])?;
                    b.supersede(
                        &NamespaceName::default(),
                        &["k5".to_owned()],
                        "b1",
                        SupersedeMode::Replaced,
                        None,
                    )?;
                    b.reinforce(&NamespaceName::default(), "k7", 1)
                })
            }),
        ],
    },
    Scenario {
        name: "expiry",
        before: library,
        steps: &[
            OPEN,
            step(|w| {
                w.clock.set("2026-03-01T14:00:00Z".parse()?);
                w.db().stats().map(drop)
            }),
            step(|w| ns(w.db()).add(Draft::new("soon over").key("short").vector(vector(20))).map(drop)),
        ],
    },
    Scenario {
        name: "expire_and_undo",
        before: short_lived,
        steps: &[
            OPEN,
            step(|w| {
                w.clock.set("2026-03-10T14:00:00Z".parse()?);
                sweep(w, Pass::Expire)
            }),
            step(|w| ns(w.db()).undo(w.run.unwrap()).map(drop)),
            step(|w| ns(w.db()).add(Draft::new("a write that forgets")).map(drop)),
        ],
    },
    Scenario {
        name: "tiers_and_undo",
        before: tiered,
        steps: &[
            OPEN,
            step(|w| sweep(w, Pass::Promote)),
            step(|w| ns(w.db()).undo(w.run.unwrap()).map(drop)),
            step(|w| {
                let summarizer: Arc<dyn Summarizer> = Arc::new(Joining);
                w.run = ns(w.db()).consolidate(&summarizer)?.run;
                Ok(())
            }),
            step(|w| ns(w.db()).undo(w.run.unwrap()).map(drop)),
            step(|w| {
                w.clock.set("2026-03-10T14:00:00Z".parse()?);
                sweep(w, Pass::Demote)
            }),
            step(|w| ns(w.db()).undo(w.run.unwrap()).map(drop)),
        ],
    },
    Scenario {
        name: "goals_prune_and_undo",
        before: old_summaries,
        steps: &[
            OPEN,
            step(|w| ns(w.db()).set_goal(GoalDraft::new("the first").vector(vector(90))).map(drop)),
            step(|w| sweep(w, Pass::Prune)),
            step(|w| ns(w.db()).undo(w.run.unwrap()).map(drop)),
            step(|w| {
                let goals = ns(w.db()).goals()?;
                goals.iter().try_for_each(|goal| ns(w.db()).drop_goal(goal.id).map(drop))
            }),
        ],
    },
    Scenario {
        name: "kept_queries_go",
        before: questioned,
        steps: &[
            OPEN,
            step(|w| ns(w.db()).forget("k2").map(drop)),
            step(|w| w.db().set_policy("gc.keep_queries = false", Syntax::Toml).map(drop)),
        ],
    },
    Scenario {
        name: "clusters_and_undo",
        before: clustered,
        steps: &[
            OPEN,
            step(|w| sweep(w, Pass::Cluster)),
            step(|w| ns(w.db()).undo(w.run.unwrap()).map(drop)),
            step(|w| {
                let summarizer: Arc<dyn Summarizer> = Arc::new(Joining);
                w.run = ns(w.db()).consolidate_clusters(&summarizer)?.run;
                Ok(())
            }),
            step(|w| ns(w.db()).undo(w.run.unwrap()).map(drop)),
        ],
    },
    Scenario {
        name: "set_policy",
        before: library,
        steps: &[
            OPEN,
            step(|w| w.db().set_policy("ttl.working = \"2h\"", Syntax::Toml).map(drop)),
            step(|w| ns(w.db()).add(row(9).tier(Tier::Working)).map(drop)),
        ],
    },
    Scenario {
        name: "compact",
        before: library,
        steps: &[
            OPEN,
            step(|w| ns(w.db()).add(row(9)).map(drop)),
            flushing(|w| w.db().compact().map(drop)),
            step(|w| ns(w.db()).add(row(10)).map(drop)),
        ],
    },
    Scenario {
        name: "forget_half_and_compact",
        before: library,
        steps: &[
            OPEN,
            step(|w| ns(w.db()).forget(Forget::names(["k1", "k1b", "k3", "k5", "k7"])).map(drop)),
            flushing(|w| w.db().compact().map(drop)),
        ],
    },
    Scenario {
        name: "backup",
        before: library,
        steps: &[OPEN, step(|w| w.db().backup(COPY).map(drop)), step(|w| ns(w.db()).add(row(9)).map(drop))],
    },
    Scenario {
        name: "give_space_back",
        before: mostly_free,
        steps: &[OPEN, CLOSE, OPEN, step(|w| ns(w.db()).add(row(9)).map(drop)), CLOSE],
    },
    Scenario {
        name: "close_and_reopen",
        before: library,
        steps: &[
            OPEN,
            step(|w| ns(w.db()).add(row(9)).map(drop)),
            CLOSE,
            OPEN,
            step(|w| ns(w.db()).add(row(10)).map(drop)),
            CLOSE,
        ],
    },
    Scenario {
        name: "flush",
        before: library,
        steps: &[
            OPEN,
            step(|w| ns(w.db()).add(row(9)).map(drop)),
            step(|w| ns(w.db()).add(row(10)).map(drop)),
            flushing(|w| w.db().flush()),
            step(|w| ns(w.db()).add(row(11)).map(drop)),
        ],
    },
    Scenario {
        name: "graph_build",
        before: crowd,
        steps: &[
            OPEN,
            step(|w| maintain(w, Pass::Index, Some(10))),
            step(|w| maintain(w, Pass::Index, Some(10))),
            step(|w| maintain(w, Pass::Index, None)),
        ],
    },
    Scenario {
        name: "graph_tail",
        before: linked_crowd,
        steps: &[
            OPEN,
            step(|w| add_crowd(w, CROWD..CROWD + 6)),
            step(|w| maintain(w, Pass::Index, None)),
            // More than a tail may hold: the writer links them.
            step(|w| add_crowd(w, CROWD + 6..CROWD + 20)),
            step(|w| {
                let patch = Patch { vector: one_of_many(1_000).vector, ..Patch::default() };
                ns(w.db()).update("m5", patch).map(drop)
            }),
            step(|w| maintain(w, Pass::Index, None)),
        ],
    },
    Scenario {
        name: "graph_repair",
        before: worn_crowd,
        steps: &[
            OPEN,
            step(|w| forget_crowd(w, [1, 2, 3, CROWD].into_iter())),
            step(|w| maintain(w, Pass::Repair, Some(8))),
            step(|w| maintain(w, Pass::Repair, None)),
            step(|w| add_crowd(w, CROWD + 4..CROWD + 6)),
        ],
    },
    Scenario {
        name: "graph_drop",
        before: worn_crowd,
        steps: &[
            OPEN,
            step(|w| w.db().set_policy(NO_GRAPHS, Syntax::Toml).map(drop)),
            step(|w| maintain(w, Pass::Index, None)),
            step(|w| add_crowd(w, CROWD + 4..CROWD + 6)),
        ],
    },
    Scenario {
        name: "graph_forgotten",
        before: worn_crowd,
        steps: &[
            OPEN,
            // Too few rows are left for a graph: the writer drops it.
            step(|w| forget_crowd(w, 6..CROWD)),
            step(|w| add_crowd(w, CROWD + 4..CROWD + 6)),
        ],
    },
    Scenario {
        name: "graph_reindex",
        before: worn_crowd,
        steps: &[OPEN, step(|w| w.db().reindex().map(drop))],
    },
    Scenario {
        name: "graph_compact",
        before: worn_crowd,
        steps: &[
            OPEN,
            flushing(|w| w.db().compact().map(drop)),
            step(|w| add_crowd(w, CROWD + 4..CROWD + 6)),
            step(|w| maintain(w, Pass::Index, None)),
        ],
    },
];
