//! Rows that stand for many writes.

use oubliette::maintain::{MaintainOptions, Pass, RunId};
use oubliette::{Draft, Forget, Kind, WriteOptions};

use crate::ground::{Ground, median_ms, ms};
use crate::{Bound, Row};

pub const ROWS: &[Row] = &[
    Row {
        name: "forgetting n holders of a row by key, a holder",
        unit: "ms",
        sizes: (250, 1_000),
        bound: Bound::Growth(1.5),
        measure: by_key,
    },
    Row {
        name: "forgetting n holders of a row by tag, a holder",
        unit: "ms",
        sizes: (250, 1_000),
        bound: Bound::Growth(1.5),
        measure: by_tag,
    },
    Row {
        name: "undoing an import of n equal texts, a text",
        unit: "ms",
        sizes: (250, 1_000),
        bound: Bound::Growth(1.5),
        measure: undo_of_equal_texts,
    },
    Row {
        name: "n holders with 64 tags each, an add",
        unit: "ms",
        sizes: (25, 200),
        bound: Bound::Growth(1.5),
        measure: tags_of_holders,
    },
    Row {
        name: "other tags through n keys of a row, a key",
        unit: "ms",
        sizes: (500, 4_000),
        bound: Bound::Growth(1.5),
        measure: other_tags,
    },
    Row {
        name: "forgetting all n keys of a united row, a key",
        unit: "ms",
        sizes: (1_000, 8_000),
        bound: Bound::Growth(2.0),
        measure: keys_of_united,
    },
    Row {
        name: "forgetting all n keys of a united row, each with a text of its own, a key",
        unit: "ms",
        sizes: (1_000, 8_000),
        bound: Bound::Growth(2.0),
        measure: texts_of_united,
    },
    Row {
        name: "undoing a pass that made one row of n, a row",
        unit: "ms",
        sizes: (1_000, 8_000),
        bound: Bound::Growth(2.0),
        measure: undo_of_united,
    },
];

/// Each brings a category that the others bring as well, and one of its own.
fn equal(at: usize) -> Draft {
    Draft {
        categories: Some(vec!["work".to_owned(), format!("work {at}")]),
        ..Draft::new("equal").key(format!("k{at}")).tag("all")
    }
}

fn by_key(n: usize) -> f64 {
    let ground = Ground::new();
    ground.fill(n, false, equal);
    let names: Vec<String> = (0..n).map(|at| format!("k{at}")).collect();
    ms(|| drop(ground.ns.forget(Forget::names(names)).unwrap())) / n as f64
}

fn by_tag(n: usize) -> f64 {
    let ground = Ground::new();
    ground.fill(n, false, equal);
    ms(|| drop(ground.ns.forget(Forget::tag("all")).unwrap())) / n as f64
}

fn undo_of_equal_texts(n: usize) -> f64 {
    let ground = Ground::new();
    let run = ground.ns.start_import().unwrap();
    let how = WriteOptions { run: Some(run), ..WriteOptions::default() };
    ground.ns.add_all((0..n).map(equal).collect(), &how).unwrap();
    ms(|| drop(ground.ns.undo(run).unwrap())) / n as f64
}

fn tags_of_holders(n: usize) -> f64 {
    let ground = Ground::new();
    // Tags of one holder each: those of one fill a row.
    let say = |at: usize| Draft {
        tags: Some((0..64).map(|tag| format!("tag-{at:04}-{tag:02}-{}", "x".repeat(100))).collect()),
        ..Draft::new("equal text").key(format!("k{at}"))
    };
    (0..n).for_each(|at| drop(ground.ns.add(say(at))));
    median_ms(11, |at| drop(ground.ns.add(say(n + at))))
}

fn other_tags(n: usize) -> f64 {
    let ground = Ground::new();
    let say = |at: usize, tag: &str| Draft::new("equal").key(format!("k{at}")).tag(tag);
    ground.fill(n, false, |at| say(at, "before"));
    let drafts = (0..n).map(|at| say(at, "after")).collect();
    ms(|| drop(ground.ns.add_all(drafts, &WriteOptions::default()).unwrap())) / n as f64
}

/// A pass has made one row of n.
fn united(n: usize, pass: Pass, text: fn(usize) -> String) -> (Ground, RunId) {
    let ground = Ground::new();
    ground.fill(n, true, |at| Draft::new(text(at)).kind(Kind::Profile).key(format!("k{at}")));
    let run = ground.db.maintain_with(&MaintainOptions::live().passes([pass])).unwrap();
    let run = run.passes[0].run.unwrap();
    (ground, run)
}

fn forget_all(n: usize, ground: &Ground) -> f64 {
    let names: Vec<String> = (0..n).map(|at| format!("k{at}")).collect();
    ms(|| drop(ground.ns.forget(Forget::names(names)).unwrap())) / n as f64
}

fn keys_of_united(n: usize) -> f64 {
    forget_all(n, &united(n, Pass::NearDuplicates, |_| "equal".to_owned()).0)
}

fn texts_of_united(n: usize) -> f64 {
    forget_all(n, &united(n, Pass::Collapse, |at| format!("Gateway status: {at} apps pending")).0)
}

fn undo_of_united(n: usize) -> f64 {
    let (ground, run) = united(n, Pass::NearDuplicates, |_| "equal".to_owned());
    ms(|| drop(ground.ns.undo(run).unwrap())) / n as f64
}
