//! An import is undone where callers have announced what follows (MODEL-33, LIFE-6): whatever is true from hour to hour is what would be
//! true if nobody had imported.
//!
//! `PROPTEST_CASES=5000 cargo test --test it plans_undone::` for longer.

use std::collections::{BTreeMap, BTreeSet};

use crate::world::{World, random, text};
use oubliette::memory::{Got, SupersedeMode};
use oubliette::{Draft, Span, Time};
use proptest::prelude::*;

const KEYS: [&str; 3] = ["a", "b", "c"];

/// So many hours from now.
type Hours = i64;

/// A text under a key, which can supersede what keys say, and can begin later.
#[derive(Clone, Debug)]
struct Say {
    key: usize,
    names: Vec<usize>,
    from: Option<Hours>,
}

#[derive(Clone, Debug)]
enum Op {
    Say(Say),
    /// A text in the place of what a key says.
    Replace(usize, Option<Hours>),
    /// What one key says takes the place of what the other one says.
    Supersede(usize, usize, Option<Hours>),
    Weigh(usize),
}

fn ahead(share: f64) -> impl Strategy<Value = Option<Hours>> {
    proptest::option::weighted(share, (1..5_i64).prop_map(|tens| tens * 10))
}

fn say(names: f64, from: f64) -> impl Strategy<Value = Say> {
    let named = prop_oneof![
        ((1.0 - names) * 100.0) as u32 => Just(Vec::new()),
        (names * 100.0) as u32 => proptest::collection::vec(0..KEYS.len(), 1..3),
    ];
    (0..KEYS.len(), named, ahead(from)).prop_map(|(key, names, from)| Say { key, names, from })
}

fn op() -> impl Strategy<Value = Op> {
    let key = || 0..KEYS.len();
    prop_oneof![
        3 => say(0.5, 0.6).prop_map(Op::Say),
        3 => (key(), ahead(0.8)).prop_map(|(key, at)| Op::Replace(key, at)),
        1 => (key(), key(), ahead(0.8)).prop_map(|(old, new, at)| Op::Supersede(old, new, at)),
        1 => key().prop_map(Op::Weigh),
    ]
}

fn at(start: Time, hours: Option<Hours>) -> Option<Time> {
    hours.map(|hours| start.plus(Span::from_millis(hours * 3_600_000)))
}

fn draft(say: &Say, words: String, start: Time) -> Draft {
    let draft = Draft {
        supersedes: say.names.iter().map(|name| KEYS[*name].to_owned()).collect(),
        ..text(&words).key(KEYS[say.key])
    };
    match at(start, say.from) {
        Some(from) => draft.valid_from(from),
        None => draft,
    }
}

fn step(world: &World, op: &Op, words: &str, start: Time) {
    let replaced = SupersedeMode::Replaced;
    // What a store refuses is no step of the story.
    match op {
        Op::Say(say) => drop(world.ns.add(draft(say, words.to_owned(), start))),
        Op::Replace(key, from) => {
            drop(world.ns.replace([KEYS[*key]], text(words), replaced, at(start, *from)))
        }
        Op::Supersede(old, new, from) => {
            drop(world.ns.supersede_all([KEYS[*old]], KEYS[*new], replaced, at(start, *from)))
        }
        Op::Weigh(key) => drop(world.ns.update(KEYS[*key], oubliette::Patch::new().importance(0.8))),
    }
    world.advance("1m");
    world.check();
}

/// What is true at an instant, and what each key says then.
type Told = BTreeMap<Hours, (BTreeSet<String>, BTreeMap<&'static str, String>)>;

fn told(world: &World, start: Time) -> Told {
    let now = world.now();
    let mut told = Told::new();
    for hour in [1, 15, 25, 35, 45] {
        world.clock.set(at(start, Some(hour)).unwrap());
        let live = world.live().into_iter().map(|id| world.row(id).text).collect();
        let means = KEYS.into_iter().filter_map(|key| Some((key, world.get(key).ok()?)));
        let means = means.filter_map(|(key, got)| match got {
            Got::Memory(row) => Some((key, row.text)),
            _ => None,
        });
        told.insert(hour, (live, means.collect()));
        world.clock.set(now);
    }
    told
}

/// Tells a story with an import that is undone, and without it.
fn tell(before: &[Op], lines: &[Say], after: &[Op]) {
    let worlds = [World::new(), World::new()];
    let start = worlds[0].now();
    for world in &worlds {
        for key in KEYS {
            world.add(text(&format!("first of {key}")).key(key));
            world.advance("1m");
        }
        for (number, op) in before.iter().enumerate() {
            step(world, op, &format!("text {number}"), start);
        }
    }
    let [world, without] = worlds;
    let run = world.start_import();
    let options = oubliette::WriteOptions { run: Some(run), ..oubliette::WriteOptions::default() };
    for (number, line) in lines.iter().enumerate() {
        // A line that is refused is none.
        drop(world.ns.add_all(vec![draft(line, format!("line {number}"), start)], &options));
    }
    world.advance("1m");
    without.advance("1m");
    for world in [&world, &without] {
        for (number, op) in after.iter().enumerate() {
            step(world, op, &format!("late {number}"), start);
        }
    }
    if std::env::var("OPS").is_ok() {
        eprintln!("after the import");
        show(&world);
        tell_told("import", &told(&world, start));
    }
    let undone = world.ns.undo(run).unwrap();
    if std::env::var("OPS").is_ok() {
        eprintln!("after the undo");
        show(&world);
        eprintln!("without");
        show(&without);
        tell_told("undone", &told(&world, start));
        tell_told("without", &told(&without, start));
    }
    world.check();
    if undone.lost.is_empty() {
        assert_eq!(told(&world, start), told(&without, start));
    }
}

proptest! {
    #![proptest_config(random(64, 3_000))]

    #[test]
    fn what_was_announced_is_what_it_was(
        before in proptest::collection::vec(op(), 1..=5),
        lines in proptest::collection::vec(say(0.8, 0.8), 1..=2),
    ) {
        tell(&before, &lines, &[]);
    }
}


fn names_of(say: &Say) -> String {
    let names: Vec<&str> = say.names.iter().map(|n| KEYS[*n]).collect();
    if names.is_empty() { "-".to_owned() } else { names.join(",") }
}
fn hours_of(h: Option<Hours>) -> String { h.map_or("-".to_owned(), |h| h.to_string()) }
fn words_of(op: &Op) -> String {
    match op {
        Op::Say(s) => format!("say {} {} {}", KEYS[s.key], names_of(s), hours_of(s.from)),
        Op::Replace(k, h) => format!("rep {} {}", KEYS[*k], hours_of(*h)),
        Op::Supersede(a, b, h) => format!("sup {} {} {}", KEYS[*a], KEYS[*b], hours_of(*h)),
        Op::Weigh(k) => format!("weigh {}", KEYS[*k]),
    }
}
/// Drops steps as long as it fails.
fn shrink(b: Vec<Op>, l: Vec<Say>, a: Vec<Op>) -> (Vec<Op>, Vec<Say>, Vec<Op>) {
    let fails = |b: &[Op], l: &[Say], a: &[Op]| std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| tell(b, l, a))).is_err();
    let (mut b, mut l, mut a) = (b, l, a);
    loop {
        let mut smaller = false;
        for i in 0..b.len() { let mut n = b.clone(); n.remove(i); if fails(&n, &l, &a) { b = n; smaller = true; break; } }
        if smaller { continue; }
        for i in 0..l.len() { let mut n = l.clone(); n.remove(i); if !n.is_empty() && fails(&b, &n, &a) { l = n; smaller = true; break; } }
        if smaller { continue; }
        for i in 0..a.len() { let mut n = a.clone(); n.remove(i); if fails(&b, &l, &n) { a = n; smaller = true; break; } }
        if smaller { continue; }
        for i in 0..b.len() { if let Op::Say(s) = &b[i] { for j in 0..s.names.len() { let mut n = b.clone(); if let Op::Say(s) = &mut n[i] { s.names.remove(j); } if fails(&n, &l, &a) { b = n; smaller = true; break; } } } if smaller { break; } }
        if smaller { continue; }
        for i in 0..l.len() { for j in 0..l[i].names.len() { let mut n = l.clone(); n[i].names.remove(j); if fails(&b, &n, &a) { l = n; smaller = true; break; } } if smaller { break; } }
        if !smaller { return (b, l, a); }
    }
}
#[test]
fn many() {
    let Ok(n) = std::env::var("MANY") else { return };
    let n: usize = n.parse().unwrap();
    let seed: u64 = std::env::var("SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(1);
    let late: usize = std::env::var("LATE").ok().and_then(|s| s.parse().ok()).unwrap_or(0);
    std::panic::set_hook(Box::new(|_| {}));
    use proptest::strategy::ValueTree;
    let mut bytes = [0u8; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = proptest::test_runner::TestRng::from_seed(proptest::test_runner::RngAlgorithm::ChaCha, &bytes);
    let mut runner = proptest::test_runner::TestRunner::new_with_rng(proptest::test_runner::Config::default(), rng);
    let strategy = (proptest::collection::vec(op(), 1..=5), proptest::collection::vec(say(0.8, 0.8), 1..=2), proptest::collection::vec(op(), 0..=late));
    let (mut bad, mut told) = (0, 0);
    for _ in 0..n {
        let (b, l, a) = strategy.new_tree(&mut runner).unwrap().current();
        if std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| tell(&b, &l, &a))).is_err() {
            bad += 1;
            if told < std::env::var("TELL").ok().and_then(|s| s.parse().ok()).unwrap_or(12) {
                told += 1;
                let (b, l, a) = shrink(b, l, a);
                let mut words: Vec<String> = b.iter().map(words_of).collect();
                words.extend(l.iter().map(|s| words_of(&Op::Say(s.clone())).replacen("say", "line", 1)));
                words.extend(a.iter().map(|o| format!("then {}", words_of(o))));
                println!("STORY {}", words.join("; "));
            }
        }
    }
    println!("BAD {bad} of {n}");
}

#[test]
fn one() {
    let Ok(ops) = std::env::var("OPS") else { return };
    let key = |s: &str| KEYS.iter().position(|k| *k == s).unwrap();
    let hours = |s: &str| s.parse::<i64>().ok();
    let say = |w: &[&str]| Say {
        key: key(w[0]),
        names: if w[1] == "-" { vec![] } else { w[1].split(',').map(key).collect() },
        from: hours(w[2]),
    };
    let mut all = [Vec::new(), Vec::new()];
    let mut lines = Vec::new();
    for op in ops.split("; ") {
        let mut w: Vec<&str> = op.split_whitespace().collect();
        let late = w[0] == "then";
        if late { w.remove(0); }
        let before = &mut all[usize::from(late)];
        match w[0] {
            "say" => before.push(Op::Say(say(&w[1..]))),
            "rep" => before.push(Op::Replace(key(w[1]), hours(w[2]))),
            "sup" => before.push(Op::Supersede(key(w[1]), key(w[2]), hours(w[3]))),
            "weigh" => before.push(Op::Weigh(key(w[1]))),
            _ => lines.push(say(&w[1..])),
        }
    }
    let [before, after] = all;
    tell(&before, &lines, &after);
}

fn show(world: &World) {
    use oubliette::{Scope, State};
    for state in [State::Live, State::Superseded] {
        for row in world.list_in(Scope::Any, state) {
            let short = |id: oubliette::MemoryId| {
                let s = id.to_string();
                s[9..13].to_owned() + &s[s.len() - 4..]
            };
            let holders: Vec<String> = row
                .holders
                .iter()
                .map(|h| {
                    format!(
                        "{}{}{}{}",
                        h.key.as_deref().unwrap_or("-"),
                        if h.follows { "(led)" } else { "" },
                        h.from.map(|f| format!(" from {}", short(f))).unwrap_or_default(),
                        if h.run.is_some() { " run" } else { "" }
                    )
                })
                .collect();
            eprintln!(
                "     {:?} {} {:?} [{}] {:?}..{:?} by {:?}",
                state,
                short(row.id),
                row.text,
                holders.join(", "),
                row.valid_from.map(|t| t.to_string()[8..13].to_owned()),
                row.valid_to.map(|t| t.to_string()[8..13].to_owned()),
                row.superseded.map(|s| (short(s.by), s.mode))
            );
            if std::env::var("JOURNAL").is_ok() {
                for e in world.ns.history(row.id).unwrap().events {
                    eprintln!(
                        "          {} {:?} {:?} run {:?} subj {:?} h {:?} members {:?} {:?}",
                        e.seq,
                        e.op,
                        e.rule,
                        e.run.is_some(),
                        e.subject.map(short),
                        e.holder,
                        e.evidence.members.iter().map(|m| short(*m)).collect::<Vec<_>>(),
                        e.deltas
                            .iter()
                            .map(|d| format!("{} {}->{}", d.field, d.before, d.after))
                            .collect::<Vec<_>>()
                    );
                }
            }
        }
    }
}

fn tell_told(what: &str, told: &Told) {
    eprintln!("  {what}");
    for (hour, (live, means)) in told {
        eprintln!("    {hour}: {live:?} {means:?}");
    }
}
