//! A test that reads the source: who imports whom, sizes, names, and what must be absent.
//!
//! `docs/architecture.md` draws the rooms; the tables here keep the drawing true. Each concern is one test that
//! collects all it finds and prints it as `file:line: what`. Each check is a function of a source text, and is
//! itself tried on a text with the fault in it, at the end of this file.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

#[path = "tidy/circles.rs"]
mod circles;
#[path = "tidy/examples.rs"]
mod examples;
#[path = "tidy/links.rs"]
mod links;
#[path = "tidy/source.rs"]
mod source;

use source::{Finding, Source, project, rust, verdict};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The rooms in building order, each with what it may import besides `error` and `limits`.
const ROOMS: &[(&str, &[&str])] = &[
    ("error", &[]),
    ("limits", &[]),
    ("json", &[]),
    ("model", &["json"]),
    ("policy", &["json", "model"]),
    ("text", &["model", "policy"]),
    ("server", &[]),
    ("summary", &["json", "model", "policy", "text", "server"]),
    ("vector", &[]),
    ("embedder", &["server", "vector"]),
    ("hnsw", &["vector"]),
    ("record", &["model"]),
    ("store", &["model", "record"]),
    ("index", &["model", "policy", "text", "vector", "hnsw", "record", "store"]),
    ("ledger", &["model", "policy", "text", "vector", "store", "index"]),
    ("ingest", &["model", "policy", "text", "vector", "store", "index", "ledger"]),
    ("recall", &["model", "policy", "text", "vector", "store", "index"]),
    (
        "hygiene",
        &[
            "model", "policy", "text", "summary", "vector", "hnsw", "record", "store", "index", "ledger",
            "ingest", "recall",
        ],
    ),
    (
        "engine",
        &[
            "model", "policy", "text", "summary", "vector", "embedder", "hnsw", "store", "index", "ledger",
            "ingest", "recall", "hygiene",
        ],
    ),
    ("exchange", &["json", "model", "hygiene", "engine"]),
    ("tools", &["json", "model", "summary", "recall", "hygiene", "engine", "exchange"]),
    ("mcp", &["json", "model", "tools"]),
    ("tokio", &["model", "summary", "recall", "engine"]),
];

/// Rooms that every room above them may import.
const FREE: &[&str] = &["error", "limits"];

/// Longest file, in lines; the aim is half of it. The length of a function is clippy's.
const FILE_LINES_MAX: usize = 800;

/// Names that say nothing about what is inside.
const EMPTY_NAMES: &[&str] = &["utils", "util", "common", "helpers", "helper", "misc", "base"];

/// Code that stands only in some places of `src/`, or in none, tests left out: the pattern, the places, and why.
const ONLY_IN: &[(&str, &[&str], &str)] = &[
    ("redb", &["src/store"], "only `store` knows the storage engine"),
    ("unsafe", &["src/vector"], "the only unsafe code is the distance kernels"),
    ("unsafe_code", &["src/vector"], "the only unsafe code is the distance kernels"),
    ("SystemTime::now", &["src/engine"], "time is an argument; only `engine` reads a clock"),
    ("Timestamp::now", &[], "time is an argument; only `engine` reads a clock"),
    ("Zoned::now", &[], "time is an argument; only `engine` reads a clock"),
    (
        "Instant::now",
        &["src/engine", "src/bin/oubliette"],
        "only `engine` reads a clock; the binary may for progress",
    ),
    (
        "getrandom",
        &["src/model/id"],
        "chance is an argument; only `random` draws: ids, the secret of a file and the token of a server",
    ),
    ("now_v7", &[], "the id generator is an argument"),
    ("new_v4", &[], "the id generator is an argument"),
];

/// Code that must not stand in a place, tests left out: the place, the patterns, and why.
const NEVER_IN: &[(&str, &[&str], &str)] = &[
    ("src/text", &["std::fs", "SystemTime", "Instant"], "`text` knows no disk and no clock"),
    ("src/summary", &["std::fs", "SystemTime", "Instant"], "`summary` knows no disk and no clock"),
    ("src/vector", &["std::fs", "SystemTime", "Instant"], "`vector` knows no disk and no clock"),
    ("src/hnsw", &["std::fs", "SystemTime", "Instant"], "`hnsw` knows no disk and no clock"),
    ("src/recall", &[".write(", "WriteTx", "begin_write"], "`recall` never writes"),
];

/// Macros that mark unfinished work.
const UNFINISHED: &[&str] = &["todo!", "dbg!", "unimplemented!"];

/// How the numbers of rules of the specification begin.
const RULES: &[&str] = &["MODEL-", "DEDUP-", "LIFE-", "GC-", "V-"];

/// Where numbers of rules stand as data: the names by which a decision is told, and what a pass did.
const RULE_NAMES: &[&str] = &["src/model/decision", "src/model/pass"];

/// The two commands that the README promises, and nothing else to type.
const COMMANDS: &[&str] = &["cargo run --release --features cli -- demo", "cargo test --all-features"];

/// Code, wherever it is compiled.
const CODE: &[&str] = &["src/", "tests/", "benches/", "fuzz/", "examples/"];

#[test]
fn the_table_of_rooms_is_in_building_order() {
    let mut earlier: Vec<&str> = Vec::new();
    for (room, may_import) in ROOMS {
        for name in *may_import {
            assert!(earlier.contains(name), "{room} imports {name}, which stands below it");
            assert!(!FREE.contains(name), "{name} is free for all");
        }
        assert!(!earlier.contains(room), "{room} stands twice");
        earlier.push(room);
    }
}

#[test]
fn rooms_import_only_what_their_row_allows() {
    let files = rust(&["src/"]);
    let (mut seen, mut findings) = (0, Vec::new());
    for file in files.iter().filter(|file| !file.is_test()) {
        seen += imports(file, &mut findings);
    }
    let rooms: BTreeSet<_> = files.iter().filter_map(Source::room).collect();
    assert!(FREE.iter().all(|free| rooms.contains(free)), "only {rooms:?} found");
    assert!(seen > 0 || rooms.len() == FREE.len(), "{rooms:?} and not one import seen");
    verdict(&findings);
}

#[test]
fn every_allowance_is_used() {
    let files = rust(&["src/"]);
    let code: Vec<&Source> = files.iter().filter(|file| !file.is_test()).collect();
    let unused = unused_imports(&code, ROOMS).into_iter().chain(unused_places(&code, ONLY_IN));
    let rules = RULE_NAMES
        .iter()
        .filter(|place| !code.iter().any(|file| file.inside(place) && names_rule(&file.text)));
    let unused: Vec<String> =
        unused.chain(rules.map(|place| format!("no number of a rule stands in {place}"))).collect();
    assert!(unused.is_empty(), "allowances that nothing uses:\n{}", unused.join("\n"));
}

#[test]
fn no_file_imports_in_a_circle() {
    let files = rust(&["src/"]);
    let imports = circles::imports(&files);
    assert!(imports.len() > files.len() / 2, "only {} files with imports seen", imports.len());
    verdict(&circles::circles(&files, &imports));
}

#[test]
fn every_public_function_shows_an_example() {
    let files = rust(&["src/"]);
    let (door, mut seen) = (examples::Door::of(&files), 0);
    let code = files.iter().filter(|file| file.room().is_some() && !file.is_test());
    let findings: Vec<Finding> =
        code.flat_map(|file| examples::without_example(file, &door, &mut seen)).collect();
    assert!(seen > 200, "only {seen} public functions seen");
    verdict(&findings);
}

#[test]
fn what_users_read_names_no_rule_of_the_specification() {
    verdict(&project().iter().flat_map(rule_numbers).collect::<Vec<_>>());
}

#[test]
fn files_are_short() {
    verdict(&rust(CODE).iter().filter_map(too_long).collect::<Vec<_>>());
}

#[test]
fn names_say_what_is_inside() {
    verdict(&project().iter().flat_map(empty_names).collect::<Vec<_>>());
}

#[test]
fn what_must_be_absent_is_absent() {
    verdict(&rust(&["src/"]).iter().flat_map(absences).collect::<Vec<_>>());
}

#[test]
fn every_key_of_the_policy_has_a_reader() {
    let files = project();
    let docs = files.iter().find(|file| file.path == "docs/policy.md").unwrap();
    let reads = |file: &&Source| file.room().is_some_and(|room| room != "policy") && !file.is_test();
    let rooms: Vec<&Source> = files.iter().filter(reads).collect();
    assert!(keys_of(docs).len() > 60, "docs/policy.md was misread");
    verdict(&unread_keys(docs, &rooms));
}

#[test]
fn tests_can_fail_and_run() {
    let files = rust(CODE);
    verdict(&files.iter().flat_map(idle_tests).collect::<Vec<_>>());
}

#[test]
fn nothing_is_left_unfinished() {
    verdict(&rust(CODE).iter().flat_map(unfinished).collect::<Vec<_>>());
}

#[test]
fn every_file_is_compiled() {
    verdict(&dead_files(&rust(&["src/"])));
}

#[test]
fn every_feature_exists() {
    let files = project();
    let manifest = files.iter().find(|file| file.path == "Cargo.toml").unwrap();
    let features = declared_features(&manifest.text);
    assert!(features.contains("cli"), "the manifest was misread: {features:?}");
    let ours = files
        .iter()
        .filter(|file| !file.path.starts_with("fuzz/") && !file.path.starts_with("benches/peers/"));
    verdict(&ours.flat_map(|file| unknown_features(file, &features)).collect::<Vec<_>>());
}

#[test]
fn nothing_belongs_to_one_machine() {
    verdict(&project().iter().flat_map(one_machine).collect::<Vec<_>>());
}

#[test]
fn the_readme_promises_two_commands_and_ci_runs_them() {
    let files = project();
    let readme = files.iter().find(|file| file.path == "README.md").unwrap();
    let promised: Vec<&str> =
        readme.text.lines().map(str::trim).filter(|line| line.starts_with("cargo ")).collect();
    assert_eq!(promised, COMMANDS, "the commands in README.md");
    // A packaged crate has no CI script; in the repository its absence would be seen by whoever runs it.
    for script in files.iter().filter(|file| file.path == ".ci/run") {
        for command in COMMANDS {
            assert!(
                script.text.lines().any(|line| line.ends_with(command)),
                ".ci/run does not run `{command}`"
            );
        }
    }
}

#[test]
fn documents_name_files_that_exist() {
    let files = project();
    let pages: Vec<&Source> = files.iter().filter(|file| file.path.ends_with(".md")).collect();
    assert!(pages.iter().any(|page| !named_files(page).is_empty()), "no page names a file");
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let missing = |page: &&Source| {
        let named = named_files(page).into_iter().filter(|(_, path)| !root.join(path).exists());
        named.map(|(line, path)| page.finding(line, format!("there is no `{path}`"))).collect::<Vec<_>>()
    };
    verdict(&pages.iter().flat_map(missing).collect::<Vec<_>>());
}

#[test]
fn links_lead_somewhere() {
    let files = project();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let dead = |page| links::dead_links(page, &files, |path| root.join(path).exists());
    verdict(&files.iter().filter(|file| file.path.ends_with(".md")).flat_map(dead).collect::<Vec<_>>());
}

#[test]
fn the_documentation_of_the_crate_leads_on_from_page_to_page() {
    let files = project();
    let root = files.iter().find(|file| file.path == "src/lib.rs").unwrap();
    let shown = |page: &&Source| {
        let path = format!("(\"../{}\")", page.path);
        root.text.contains(&format!("page!{path}")) || page.path == "README.md"
    };
    let pages: Vec<&Source> = files.iter().filter(shown).collect();
    assert!(pages.len() > 5, "only {} pages seen", pages.len());
    verdict(&pages.into_iter().flat_map(|page| links::lost_links(page, root)).collect::<Vec<_>>());
}

/// The tests, benches and pages that a page names as code, with their lines.
fn named_files(page: &Source) -> Vec<(usize, &str)> {
    let lines = page.text.lines().enumerate().map(|(at, line)| (at + 1, line));
    let all = lines.flat_map(|(at, line)| line.split('`').skip(1).step_by(2).map(move |word| (at, word)));
    all.filter(|(_, word)| ["tests/", "benches/", "docs/"].iter().any(|place| word.starts_with(place)))
        .filter_map(|(at, word)| Some((at, word.split_whitespace().next()?)))
        .filter(|(_, path)| !path.starts_with("benches/peers"))
        .collect()
}

/// Refuses references out of a room's row. Counts the references seen.
fn imports(file: &Source, findings: &mut Vec<Finding>) -> usize {
    let Some(room) = file.room() else { return 0 };
    let Some((_, row)) = ROOMS.iter().find(|(name, _)| *name == room) else {
        findings.push(file.finding(1, format!("`{room}` is not in the table of rooms")));
        return 0;
    };
    let references = file.find("crate::");
    for &at in &references {
        let (line, name) = (file.tokens[at].line, file.token(at + 3));
        let known = ROOMS.iter().any(|(known, _)| *known == name);
        // What is free stands above everything else, and `error` above `limits`.
        let free = FREE.contains(&name) && (room != "error") && (room != "limits" || name == "error");
        let why = match name {
            "*" | "{" => format!("`crate::{name}` hides who needs what; one room per `use`"),
            _ if !known => format!("`crate::{name}` names no room; name the room that has it"),
            _ if name == room || free || row.contains(&name) => continue,
            _ => format!("`{room}` may not import `{name}`"),
        };
        findings.push(file.finding(line, why));
    }
    let parts = file.path.trim_start_matches("src/").trim_end_matches(".rs").trim_end_matches("/mod");
    let climb = "super::".repeat(parts.split('/').count());
    for at in file.find(&climb) {
        findings.push(
            file.finding(file.tokens[at].line, format!("`{climb}` leaves the room; write `crate::<room>`")),
        );
    }
    references.len()
}

/// Rooms in a row that no file of the row's room imports.
fn unused_imports(files: &[&Source], rooms: &[(&str, &[&str])]) -> Vec<String> {
    let pairs = rooms.iter().flat_map(|(room, row)| row.iter().map(move |may| (room, may)));
    let uses = |room: &str, may: &str| {
        let path = format!("crate::{may}");
        files.iter().any(|file| file.room() == Some(room) && !file.find(&path).is_empty())
    };
    pairs
        .filter(|(room, may)| !uses(room, may))
        .map(|(room, may)| format!("`{room}` does not import `{may}`"))
        .collect()
}

/// Places that may have a pattern and do not have it.
fn unused_places(files: &[&Source], only_in: &[(&str, &[&str], &str)]) -> Vec<String> {
    let pairs =
        only_in.iter().flat_map(|(pattern, places, _)| places.iter().map(move |place| (pattern, place)));
    pairs
        .filter(|(pattern, place)| {
            !files.iter().any(|file| file.inside(place) && !file.find(pattern).is_empty())
        })
        .map(|(pattern, place)| format!("`{pattern}` does not stand in {place}"))
        .collect()
}

fn too_long(file: &Source) -> Option<Finding> {
    let lines = file.text.lines().count();
    (lines > FILE_LINES_MAX).then(|| file.finding(lines, format!("{lines} lines; at most {FILE_LINES_MAX}")))
}

/// Files, folders and modules whose name says nothing.
fn empty_names(file: &Source) -> Vec<Finding> {
    let stem = |part: &str| part.split('.').next().unwrap_or_default().to_owned();
    let mut names: Vec<(usize, String)> = file.path.split('/').map(|part| (1, stem(part))).collect();
    let modules = file.find("mod").into_iter();
    names.extend(modules.map(|at| (file.tokens[at].line, file.token(at + 1).to_owned())));
    names.retain(|(_, name)| EMPTY_NAMES.contains(&name.as_str()));
    names.iter().map(|(line, name)| file.finding(*line, format!("the name `{name}` says nothing"))).collect()
}

/// What stands outside its only place, or inside a place where it must not.
fn absences(file: &Source) -> Vec<Finding> {
    let mut found = Vec::new();
    if file.is_test() {
        return found;
    }
    let mut refuse = |pattern: &str, why: &str| {
        let lines = file.find(pattern).into_iter().map(|at| file.tokens[at].line);
        found.extend(lines.map(|line| file.finding(line, format!("`{pattern}`: {why}"))));
    };
    for (pattern, places, why) in ONLY_IN {
        if !places.iter().any(|place| file.inside(place)) {
            refuse(pattern, why);
        }
    }
    for (place, patterns, why) in NEVER_IN {
        if file.inside(place) {
            patterns.iter().for_each(|pattern| refuse(pattern, why));
        }
    }
    found
}

/// Numbers of rules in documents, doc comments and texts: users do not have the specification.
fn rule_numbers(file: &Source) -> Vec<Finding> {
    let mut lines: BTreeSet<usize> = BTreeSet::new();
    if file.path.ends_with(".md") && !file.inside("docs/spec") {
        lines.extend(file.text.lines().zip(1..).filter(|(text, _)| names_rule(text)).map(|(_, line)| line));
    } else if file.path.starts_with("src/") {
        let is_doc = |text: &str| ["///", "//!"].iter().any(|mark| text.trim_start().starts_with(mark));
        let docs = file.text.lines().zip(1..).filter(|(text, _)| is_doc(text) && names_rule(text));
        lines.extend(docs.map(|(_, line)| line));
        let tests = file.find("mod tests {").first().map_or(usize::MAX, |&at| file.tokens[at].line);
        // The texts of tests are read by nobody else.
        let tests = if file.is_test() { 0 } else { tests };
        let texts = file.tokens.iter().filter(|token| token.line < tests && token.text.contains('"'));
        let named = texts
            .filter(|token| !RULE_NAMES.iter().any(|place| file.inside(place)) && names_rule(&token.text));
        lines.extend(named.map(|token| token.line));
    }
    lines
        .into_iter()
        .map(|line| file.finding(line, "the number of a rule, which users do not know"))
        .collect()
}

fn names_rule(text: &str) -> bool {
    RULES.iter().flat_map(|rule| text.match_indices(rule)).any(|(at, rule)| {
        let before = text[..at].chars().next_back();
        let after = text[at + rule.len()..].chars().next();
        !before.is_some_and(char::is_alphanumeric) && after.is_some_and(|next| next.is_ascii_digit())
    })
}

/// The keys that the table of `docs/policy.md` lists, with their lines.
fn keys_of(docs: &Source) -> Vec<(usize, &str)> {
    let rows =
        docs.text.lines().enumerate().filter_map(|(at, line)| Some((at + 1, line.strip_prefix("| `")?)));
    rows.filter_map(|(line, row)| Some((line, row.split_once("` |")?.0))).collect()
}

/// Keys of the policy that no room reads: neither as `group.key`, nor as `.key` in a file that names the type of the group.
fn unread_keys(docs: &Source, rooms: &[&Source]) -> Vec<Finding> {
    let is_read = |key: &str| {
        let (group, name) = key.rsplit_once('.').unwrap_or_default();
        let mut letters = group.chars();
        let of_type: String =
            letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect();
        rooms.iter().any(|file| {
            let by_type = || {
                !file.find(&of_type).is_empty()
                    && !file.find("crate::policy").is_empty()
                    && !file.find(&format!(".{name}")).is_empty()
            };
            !file.find(key).is_empty() || by_type()
        })
    };
    let unread = keys_of(docs).into_iter().filter(|(_, key)| !is_read(key));
    unread.map(|(line, key)| docs.finding(line, format!("nothing reads the policy key `{key}`"))).collect()
}

/// Checks that check nothing, and ignored tests that do not say why.
fn idle_tests(file: &Source) -> Vec<Finding> {
    let mut found = Vec::new();
    let statement = |at: usize| at == 0 || ["{", "}", ";"].contains(&file.token(at - 1));
    for at in file.find("matches!(").into_iter().filter(|&at| statement(at)) {
        if file.token(closing(file, at + 2) + 1) == ";" {
            found.push(file.finding(file.tokens[at].line, "a bare `matches!(…);` cannot fail; assert it"));
        }
    }
    // Written in two, as in the trials: the name whole is the mark of a test that is left out.
    for at in file.find(concat!("#[ig", "nore")).into_iter().filter(|at| file.token(at + 3) != "=") {
        found.push(file.finding(file.tokens[at].line, "a test that is left out says why in its attribute"));
    }
    found
}

/// The index of the parenthesis that closes the one at `open`.
fn closing(file: &Source, open: usize) -> usize {
    let mut depth = 0;
    for at in open..file.tokens.len() {
        match file.token(at) {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at;
        }
    }
    file.tokens.len()
}

fn unfinished(file: &Source) -> Vec<Finding> {
    let places = UNFINISHED.iter().flat_map(|what| file.find(what).into_iter().map(move |at| (at, what)));
    places
        .map(|(at, what)| file.finding(file.tokens[at].line, format!("`{what}` is not for a commit")))
        .collect()
}

/// Files that no `mod` line reaches.
fn dead_files(files: &[Source]) -> Vec<Finding> {
    let by_path: BTreeMap<&str, &Source> = files.iter().map(|file| (file.path.as_str(), file)).collect();
    let mut waiting: Vec<&Source> = files.iter().filter(|file| is_crate_root(&file.path)).collect();
    let mut reached: BTreeSet<&str> = BTreeSet::new();
    while let Some(file) = waiting.pop() {
        if !reached.insert(&file.path) {
            continue;
        }
        let (folder, name) = file.path.rsplit_once('/').unwrap();
        let own = if is_crate_root(&file.path) || name == "mod.rs" {
            folder.to_owned()
        } else {
            format!("{folder}/{}", name.trim_end_matches(".rs"))
        };
        for at in file.find("mod").into_iter().filter(|at| file.token(at + 2) == ";") {
            let module = file.token(at + 1);
            let paths = [format!("{own}/{module}.rs"), format!("{own}/{module}/mod.rs")];
            waiting.extend(paths.iter().filter_map(|path| by_path.get(path.as_str())));
        }
    }
    assert!(!reached.is_empty(), "no crate root found");
    let dead = files.iter().filter(|file| !reached.contains(file.path.as_str()));
    dead.map(|file| file.finding(1, "no `mod` line reaches this file")).collect()
}

fn is_crate_root(path: &str) -> bool {
    let in_bin = path.strip_prefix("src/bin/");
    path == "src/lib.rs" || in_bin.is_some_and(|rest| rest.ends_with("/main.rs") || !rest.contains('/'))
}

/// The names to the left of `=` below `[features]`.
fn declared_features(manifest: &str) -> BTreeSet<String> {
    let section = manifest.lines().skip_while(|line| line.trim() != "[features]").skip(1);
    let section = section.take_while(|line| !line.starts_with('['));
    let names = section.filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once('='));
    names.map(|(name, _)| name.trim().to_owned()).collect()
}

/// `feature = "…"` in code, for a feature that the manifest does not have.
fn unknown_features(file: &Source, features: &BTreeSet<String>) -> Vec<Finding> {
    let named = file.find("feature =").into_iter().map(|at| (at, file.token(at + 2).trim_matches('"')));
    let unknown = named.filter(|(_, name)| !features.contains(*name));
    unknown
        .map(|(at, name)| file.finding(file.tokens[at].line, format!("Cargo.toml has no feature `{name}`")))
        .collect()
}

/// Absolute paths of somebody's machine, and the tools that exist only there.
fn one_machine(file: &Source) -> Vec<Finding> {
    // In halves, so that this file passes its own check.
    let folders =
        [concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/"), concat!("/Us", "ers/")];
    let words = [concat!("fa", "rm-"), concat!("issues", " show"), concat!("BRIEF", ".md")];
    let mut found = Vec::new();
    for (number, line) in file.text.lines().enumerate() {
        for word in folders.iter().chain(&words) {
            // A part of a longer path or word is something else: `src/work/`, `~/work/`.
            let starts =
                |at: usize| !line[..at].ends_with(|c: char| c.is_alphanumeric() || "_-.~/".contains(c));
            if line.match_indices(word).any(|(at, _)| starts(at)) {
                found.push(file.finding(number + 1, format!("`{word}` means something on one machine only")));
            }
        }
    }
    found
}

#[path = "tidy/faults.rs"]
mod faults;
