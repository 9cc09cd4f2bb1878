//! Each check, tried on a small text with the fault in it and on one without.

use super::source::{Source, tokens, verdict};
use super::*;

fn said(findings: &[Finding]) -> Vec<String> {
    findings.iter().map(Finding::to_string).collect()
}

fn import_findings(path: &str, text: &str) -> Vec<String> {
    let mut findings = Vec::new();
    imports(&Source::new(path, text), &mut findings);
    said(&findings)
}

#[test]
fn tokens_leave_comments_out_and_keep_literals_whole() {
    let text = "a /* b /* c */ d */ \"e \\\" f\" // g\n'\\'' '\"' r#\"h \" i\"# b\"j\" &'k l";
    let seen: Vec<(usize, String)> = tokens(text).into_iter().map(|token| (token.line, token.text)).collect();
    let wanted = [
        (1, "a"),
        (1, "\"e \\\" f\""),
        (2, "'\\''"),
        (2, "'\"'"),
        (2, "r#\"h \" i\"#"),
        (2, "b\"j\""),
        (2, "&"),
        (2, "'"),
        (2, "k"),
        (2, "l"),
    ];
    assert_eq!(seen, wanted.map(|(line, text)| (line, text.to_owned())));
}

#[test]
#[should_panic(expected = "1 finding(s)\nsrc/a.rs:7: why")]
fn a_verdict_prints_what_it_found() {
    verdict(&[Source::new("src/a.rs", "x").finding(7, "why")]);
}

#[test]
fn an_import_upwards_is_found() {
    let found =
        import_findings("src/model/memory.rs", "use crate::error::Error;\n\nuse crate::store::Snapshot;");
    assert_eq!(found, ["src/model/memory.rs:3: `model` may not import `store`"]);
    assert!(
        import_findings("src/store/mod.rs", "use crate::record::encode; use crate::store::keys;").is_empty()
    );
    let split = import_findings("src/text.rs", "fn f() {\n    crate::\n        hnsw::walk()\n}");
    assert_eq!(split, ["src/text.rs:2: `text` may not import `hnsw`"]);
    let error = import_findings("src/error.rs", "use crate::limits::K_MAX;");
    assert_eq!(error, ["src/error.rs:1: `error` may not import `limits`"]);
    assert!(import_findings("src/limits.rs", "use crate::error::Error;").is_empty());
}

#[test]
fn an_import_that_hides_its_room_is_found() {
    assert_eq!(import_findings("src/recall/mod.rs", "use crate::*;").len(), 1);
    assert_eq!(import_findings("src/recall/mod.rs", "use crate::{model::Hit, index::Plan};").len(), 1);
    assert_eq!(import_findings("src/recall/mod.rs", "use crate::Error;").len(), 1);
    assert_eq!(import_findings("src/recall/mod.rs", "use super::engine::Database;").len(), 1);
    assert_eq!(import_findings("src/recall/fuse.rs", "use super::super::engine::Database;").len(), 1);
    assert!(import_findings("src/recall/fuse.rs", "use super::Plan; // crate::engine").is_empty());
}

#[test]
fn a_room_outside_the_table_is_found() {
    assert_eq!(
        import_findings("src/cellar/mod.rs", ""),
        ["src/cellar/mod.rs:1: `cellar` is not in the table of rooms"]
    );
    assert!(import_findings("src/bin/oubliette/main.rs", "use crate::demo::run;").is_empty());
    assert!(import_findings("src/lib.rs", "mod error;").is_empty());
}

#[test]
fn an_allowance_that_nothing_uses_is_found() {
    let (store, index) = (
        Source::new("src/store.rs", "use redb::Database;"),
        Source::new("src/index/mod.rs", "use crate::store::keys;"),
    );
    let files = [&store, &index];
    let rooms: &[(&str, &[&str])] = &[("model", &[]), ("store", &["model"]), ("index", &["model", "store"])];
    assert_eq!(
        unused_imports(&files, rooms),
        ["`store` does not import `model`", "`index` does not import `model`"]
    );
    let only_in: &[(&str, &[&str], &str)] = &[("redb", &["src/store", "src/index"], "why")];
    assert_eq!(unused_places(&files, only_in), ["`redb` does not stand in src/index"]);
}

#[test]
fn a_circle_of_files_is_found() {
    let found = |files: &[(&str, &str)]| {
        let mut all = vec![
            Source::new("src/lib.rs", "mod a;"),
            Source::new(
                "src/a/mod.rs",
                "mod b;\nmod c;\npub use b::B;\npub(crate) use self::{c::*, b::{C as D}};",
            ),
        ];
        all.extend(files.iter().map(|(path, text)| Source::new(path, text)));
        said(&circles::circles(&all, &circles::imports(&all)))
    };
    let circle = |one: &str, other: &str| {
        let b = format!("pub struct B;\npub struct C;\n{one}");
        let c = format!("pub fn c() {{}}\nstruct Z<T>(T);\n{other}");
        found(&[("src/a/b.rs", &b), ("src/a/c.rs", &c)])
    };
    let both = [
        "src/a/b.rs:3: imports `src/a/c.rs`, which imports this file, itself or through others",
        "src/a/c.rs:3: imports `src/a/b.rs`, which imports this file, itself or through others",
    ];
    assert_eq!(circle("use super::c::c;", "use crate::a::b::B;"), both);
    // Through the re-exports of the parent, in an expression, and by a glob.
    assert_eq!(circle("use crate::a::c;", "fn d() { super::B; }"), both);
    assert_eq!(circle("fn x() { super::c() }", "fn d(b: crate::a::D) {}"), both);
    // One way alone, in a test, in a comment, and a method are no circle.
    assert!(circle("use super::c::c;", "").is_empty());
    assert!(circle("use super::c::c;", "#[cfg(test)]\nmod tests { use super::super::B; }").is_empty());
    assert!(circle("use super::c::c;", "// super::B\nfn d() { x.super::B }").is_empty());
    // A parent that uses what its child defines, and the other way round, through a third file.
    let through = found(&[
        ("src/a/b.rs", "use super::c::c;\npub struct B; pub struct C;"),
        ("src/a/c.rs", "mod d;\npub fn c() { d::d() }"),
        ("src/a/c/d.rs", "use super::super::{B};\npub fn d() {}"),
    ]);
    assert_eq!(through.len(), 3, "{through:?}");
}

#[test]
fn the_number_of_a_rule_is_found() {
    let lines = |path: &str, text: &str| said(&rule_numbers(&Source::new(path, text))).len();
    assert_eq!(lines("src/a.rs", "/// Kept (MODEL-9).\nfn f() {} // LIFE-2"), 1);
    assert_eq!(lines("src/a.rs", "//! DEDUP-4\nconst A: &str = \"as V-7 says\";"), 2);
    assert_eq!(
        lines("src/a.rs", "/// FNV-1a and GC-free\n#[cfg(test)]\nmod tests { const A: &str = \"V-7\"; }"),
        0
    );
    assert_eq!(lines("src/model/decision.rs", "const A: &str = \"LIFE-6\";"), 0);
    assert_eq!(lines("docs/policy.md", "| `a` | GC-2 |"), 1);
    assert_eq!(lines("src/store/tests.rs", "/// V-2\nconst A: &str = \"V-7\"; // V-8"), 1);
    assert_eq!(lines("docs/spec/gc.md", "GC-2"), 0);
}

#[test]
fn a_long_file_is_found() {
    assert!(too_long(&Source::new("src/a.rs", &"x\n".repeat(FILE_LINES_MAX))).is_none());
    assert!(too_long(&Source::new("src/a.rs", &"x\n".repeat(FILE_LINES_MAX + 1))).is_some());
}

#[test]
fn a_name_that_says_nothing_is_found() {
    assert_eq!(empty_names(&Source::new("src/utils.rs", "")).len(), 1);
    assert_eq!(empty_names(&Source::new("src/store/common/mod.rs", "")).len(), 1);
    assert_eq!(
        said(&empty_names(&Source::new("src/a.rs", "\nmod helpers;"))),
        ["src/a.rs:2: the name `helpers` says nothing"]
    );
    assert!(empty_names(&Source::new("src/store/database.rs", "mod keys;")).is_empty());
}

#[test]
fn what_must_be_absent_is_found() {
    let count = |path: &str, text: &str| absences(&Source::new(path, text)).len();
    assert_eq!(count("src/engine/mod.rs", "use redb::Database;"), 1);
    assert_eq!(count("src/bin/oubliette/main.rs", "use redb::Database;"), 1);
    assert_eq!(count("src/store/mod.rs", "use redb::Database;"), 0);
    assert_eq!(count("src/hnsw/walk.rs", "unsafe { f() }"), 1);
    assert_eq!(count("src/vector/avx2.rs", "unsafe { f() }"), 0);
    assert_eq!(count("src/vector/mod.rs", "use std::fs::File; use std::time::Instant;"), 2);
    assert_eq!(count("src/ledger/mod.rs", "let now = std::time::SystemTime::now();"), 1);
    assert_eq!(count("src/engine/clock.rs", "let now = std::time::SystemTime::now();"), 0);
    assert_eq!(count("src/bin/oubliette/import.rs", "let begun = Instant::now();"), 0);
    assert_eq!(count("src/recall/mod.rs", "let tx = store.write()?; fn f(tx: &mut WriteTx) {}"), 2);
    assert_eq!(count("src/recall/tests.rs", "let tx = store.write()?;"), 0);
    assert_eq!(count("src/recall/mod.rs", "// WriteTx\nlet why = \"no WriteTx\";"), 0);
}

#[test]
fn a_test_that_cannot_fail_is_found() {
    let count = |text: &str| idle_tests(&Source::new("tests/it/api.rs", text)).len();
    assert_eq!(count("fn f() { g();\n    matches!(e, Error::Closed);\n}"), 1);
    assert_eq!(count("fn f() { assert!(\n    matches!(e, Error::Closed)\n); }"), 0);
    assert_eq!(count("fn f() -> bool {\n    matches!(e, Error::Closed)\n}"), 0);
    assert_eq!(count(concat!("#[test]\n#[ig", "nore]\nfn f() {}")), 1);
    assert_eq!(count(concat!("#[test]\n#[ig", "nore = \"an hour\"]\nfn f() {}")), 0);
}

#[test]
fn unfinished_work_is_found() {
    let count = |text: &str| unfinished(&Source::new("src/a.rs", text)).len();
    assert_eq!(count(concat!("fn f() { to", "do!() }")), 1);
    assert_eq!(count(concat!("fn f() { db", "g!(1); unimple", "mented!(); }")), 2);
    assert_eq!(count("fn f() { unreachable!() }"), 0);
}

#[test]
fn a_dead_file_is_found() {
    let files = [
        Source::new("src/lib.rs", "mod error;\nmod model;"),
        Source::new("src/error.rs", "#[cfg(test)]\nmod tests;"),
        Source::new("src/error/tests.rs", ""),
        Source::new("src/model/mod.rs", "mod id;"),
        Source::new("src/model/id.rs", ""),
        Source::new("src/model/old.rs", ""),
        Source::new("src/bin/oubliette/main.rs", "mod demo;"),
        Source::new("src/bin/oubliette/demo/mod.rs", ""),
    ];
    assert_eq!(said(&dead_files(&files)), ["src/model/old.rs:1: no `mod` line reaches this file"]);
}

#[test]
fn an_unknown_feature_is_found() {
    let features = declared_features(
        "[package]\nname = \"a\"\n[features]\n# why\ncli = [\"dep:clap\"]\n\n[dependencies]\nb = \"1\"",
    );
    assert_eq!(features, BTreeSet::from(["cli".to_owned()]));
    let count = |text: &str| unknown_features(&Source::new("src/a.rs", text), &features).len();
    assert_eq!(count("#[cfg(feature = \"cli\")] mod a;"), 0);
    assert_eq!(count("#[cfg(any(test, feature = \"clu\"))] mod a;"), 1);
    assert_eq!(count("#[cfg(target_feature = \"avx2\")] mod a;"), 0);
}

#[test]
fn a_path_of_one_machine_is_found() {
    let count = |text: &str| one_machine(&Source::new("docs/a.md", text)).len();
    assert_eq!(count(concat!("see /ho", "me/ann/notes")), 1);
    assert_eq!(count(concat!("see `/wo", "rk/x` and fa", "rm-status")), 2);
    assert_eq!(count(concat!("see src/wo", "rk/x and the pharma", "fa", "rm-x")), 0);
}

#[test]
fn a_policy_key_without_a_reader_is_found() {
    let docs = Source::new(
        "docs/policy.md",
        "| key | default |\n| `ttl.working` | `3d` |\n| `recall.day` | `0.2` |\n| `prune.mode` | `both` |\n",
    );
    let named = Source::new("src/ingest/a.rs", "fn a(p: &Policy) { p.ttl\n.working }");
    let by_type = Source::new("src/recall/b.rs", "use crate::policy::Recall; fn b(r: &Recall) { r.day }");
    let other = Source::new("src/recall/c.rs", "// prune.mode\nfn c(q: &Query) { q.mode }");
    let said = said(&unread_keys(&docs, &[&named, &by_type, &other]));
    assert_eq!(said, ["docs/policy.md:4: nothing reads the policy key `prune.mode`"]);
}

#[test]
fn the_files_that_a_page_names_are_found() {
    let page = Source::new(
        "docs/a.md",
        "see `tests/a.rs`,\n`docs/b.md` and `src/main.rs`; `cargo test`\n`tests/c 9`",
    );
    assert_eq!(named_files(&page), [(1, "tests/a.rs"), (2, "docs/b.md"), (3, "tests/c")]);
}

#[test]
fn a_public_function_without_an_example_is_found() {
    let files = [
        Source::new(
            "src/lib.rs",
            "pub use engine::Desk; pub use crate::ink::*; pub mod post; pub mod faults { pub use crate::engine::Seam; }",
        ),
        Source::new("src/ink/mod.rs", "pub use blot::Blot;"),
        Source::new("src/ink/blot.rs", "impl Blot {\n    pub fn dry() {}\n}"),
        Source::new("src/post/mod.rs", "mod stamps; pub use stamps::*; pub use crate::model::Letter;"),
        Source::new("src/post/stamps.rs", "pub fn lick() {}\n\nimpl Stamp {\n    pub fn stick() {}\n}"),
        Source::new(
            "src/engine.rs",
            "impl Desk {\n    /// ```\n    #[must_use]\n    pub fn shown() {}\n\n    /// Without.\n    pub const fn bare() {}\n\
             \n    pub(crate) fn own() {}\n}\n\nimpl<T> Seam<T> {\n    pub fn seam() {}\n}\n\nimpl Door for Desk {}",
        ),
        Source::new(
            "src/model.rs",
            "impl<A: Of<B>> Letter<A> {\n    pub fn read() {}\n}\n\npub fn inner() {}",
        ),
        Source::new(
            "src/hnsw.rs",
            "impl Desk {\n    pub fn other_room() {}\n}\nimpl $name {\n    pub fn made() {}\n}",
        ),
    ];
    let (door, mut seen) = (examples::Door::of(&files), 0);
    let found: Vec<Finding> =
        files.iter().flat_map(|file| examples::without_example(file, &door, &mut seen)).collect();
    let wanted = [
        "src/ink/blot.rs:2: `dry` is public and shows no example",
        "src/post/stamps.rs:1: `lick` is public and shows no example",
        "src/post/stamps.rs:4: `stick` is public and shows no example",
        "src/engine.rs:7: `bare` is public and shows no example",
        "src/model.rs:2: `read` is public and shows no example",
        "src/hnsw.rs:5: `made` is public and shows no example",
    ];
    assert_eq!((said(&found), seen), (wanted.map(str::to_owned).to_vec(), 7));
}

#[test]
fn a_link_that_leads_nowhere_is_found() {
    let text = "# On\n\n[a](b.md) [c][b.md#more-of-it], [d](#on)\n```\n[x](y)\n```\n\n[b.md#more-of-it]: b.md#more-of-it\n";
    let page = Source::new("docs/a.md", text);
    let other = |heading: &str| [Source::new("docs/a.md", text), Source::new("docs/b.md", heading)];
    assert!(links::dead_links(&page, &other("## More of it"), |_| true).is_empty());
    let found = said(&links::dead_links(&page, &other("## More"), |_| true));
    assert_eq!(found, ["docs/a.md:8: `docs/b.md` has no heading `more-of-it`"]);
    let found = said(&links::dead_links(&page, &other("## More of it"), |path| path != "docs/b.md"));
    assert_eq!(found, ["docs/a.md:3: there is no `docs/b.md`", "docs/a.md:8: there is no `docs/b.md`"]);
}

#[test]
fn a_link_that_the_documentation_of_the_crate_loses_is_found() {
    let page = Source::new(
        "README.md",
        "[a](docs/b.md), [c] [d](https://example.org)\n\n[c]: docs/c.md\n[docs/d.md]: docs/d.md\n",
    );
    let root = Source::new("src/lib.rs", "//! [docs/d.md]: documentation::d\n");
    let wanted = [
        "README.md:1: define the link to `docs/b.md` at the end of the page",
        "README.md:3: src/lib.rs does not say where `docs/c.md` is",
    ];
    assert_eq!(said(&links::lost_links(&page, &root)), wanted);
}
