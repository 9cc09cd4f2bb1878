//! The path of a write.

use oubliette::memory::{AuthorKind, Field};
use oubliette::policy::Syntax;
use oubliette::tools::KnowledgeGraph;
use oubliette::{Draft, Forget, Kind};
use serde_json::{Value, json};

use crate::ground::{Ground, median_ms, ms};
use crate::{Bound, Row};

pub const ROWS: &[Row] = &[
    Row {
        name: "a key revised n times, an add",
        unit: "ms",
        sizes: (1_000, 8_000),
        bound: Bound::Growth(2.0),
        measure: key_revised,
    },
    Row {
        name: "n equal texts with other metadata, an add",
        unit: "ms",
        sizes: (1_000, 8_000),
        bound: Bound::Growth(2.0),
        measure: equal_texts,
    },
    Row {
        name: "n equal messages of other owners, an add",
        unit: "ms",
        sizes: (1_000, 8_000),
        bound: Bound::Growth(2.0),
        measure: equal_messages,
    },
    Row {
        name: "a knowledge graph of n, a new relation",
        unit: "ms",
        sizes: (1_000, 8_000),
        bound: Bound::Growth(2.0),
        measure: new_relation,
    },
    Row {
        name: "forgetting a member of a category of n",
        unit: "ms",
        sizes: (2_000, 32_000),
        bound: Bound::Growth(2.0),
        measure: member_of_a_category,
    },
    Row {
        name: "a new partition among n, an add",
        unit: "ms",
        sizes: (1_000, 8_000),
        bound: Bound::Growth(2.0),
        measure: new_partition,
    },
    Row {
        name: "n drafts with vectors in one transaction, a draft",
        unit: "ms",
        sizes: (8_000, 32_000),
        bound: Bound::Growth(2.0),
        measure: staged_vectors,
    },
];

fn key_revised(n: usize) -> f64 {
    let ground = Ground::new();
    let say = |at: usize| Draft::new(format!("status number {at}")).key("status");
    ground.fill(n, false, say);
    median_ms(101, |at| drop(ground.add(say(n + at))))
}

fn equal_texts(n: usize) -> f64 {
    let ground = Ground::new();
    let say = |at: usize| Draft::new("user opened the settings page").metadata(json!({ "user_id": at }));
    ground.fill(n, false, say);
    median_ms(101, |at| drop(ground.add(say(n + at))))
}

fn equal_messages(n: usize) -> f64 {
    let ground = Ground::new();
    let say = |at: usize| {
        let mut draft = Draft::new("the nightly job is done").kind(Kind::Message);
        draft.fields.author_kind = Field::Value(AuthorKind::Bot);
        draft.metadata(json!({ "user_id": at }))
    };
    ground.fill(n, false, say);
    median_ms(101, |at| drop(ground.add(say(n + at))))
}

fn new_relation(n: usize) -> f64 {
    let ground = Ground::new();
    let graph = KnowledgeGraph::new(ground.ns.clone());
    let relation = |from: usize, to: usize| json!({ "from": format!("p{from}"), "to": format!("p{to}"), "relationType": "knows" });
    let tell = |all: Vec<Value>| drop(graph.call("create_relations", json!({ "relations": all })).unwrap());
    tell((0..n).map(|at| relation(at, at + 1)).collect());
    median_ms(101, |at| tell(vec![relation(at, at + 2)]))
}

fn member_of_a_category(n: usize) -> f64 {
    let ground = Ground::new();
    let all = ground.fill(n, false, |at| Draft {
        categories: Some(vec!["work".to_owned()]),
        ..Draft::new(format!("memory {at} of the crowd")).key(format!("k{at}"))
    });
    median_ms(31, |at| {
        ground.ns.forget(Forget::names([all[at * 7].id.to_string()])).unwrap();
    })
}

fn new_partition(n: usize) -> f64 {
    let ground = Ground::new();
    let say = |at: usize| Draft::new(format!("note {at}")).agent(format!("agent-{at:06}"));
    ground.fill(n, false, say);
    median_ms(101, |at| drop(ground.add(say(n + at))))
}

fn staged_vectors(n: usize) -> f64 {
    let ground = Ground::new();
    // What a writer does who links past the bound of the tail is another matter.
    ground.db.set_policy("index.scan_max = 1000000000000", Syntax::Toml).unwrap();
    let drafts =
        (0..n).map(|at| Draft::new(format!("row {at}")).vector(crate::ground::vector(at, 64))).collect();
    let how = Default::default();
    ms(|| drop(ground.ns.add_all(drafts, &how).unwrap())) / n as f64
}
