//! What a person is shown: which texts a pass unites, how it stands with a memory, what to type next.

use super::sandbox::{NOW, Sandbox};

/// What a person reads on standard output and on standard error, of a command that ends with this code.
#[track_caller]
fn read(sandbox: &Sandbox, code: i32, arguments: &[&str]) -> (String, String) {
    read_at(sandbox, NOW, code, arguments)
}

#[track_caller]
fn read_at(sandbox: &Sandbox, now: &str, code: i32, arguments: &[&str]) -> (String, String) {
    let answer = sandbox.plain(&[&["--db", "m.oub", "--now", now], arguments].concat(), b"");
    assert_eq!(answer.code, code, "{arguments:?}: {answer:?}");
    (answer.out, answer.err)
}

/// The line of a table that has these words.
#[track_caller]
fn line<'t>(table: &'t str, words: &str) -> &'t str {
    table.lines().find(|line| line.contains(words)).unwrap_or_else(|| panic!("no {words}: {table}"))
}

/// Only the texts tell whether two memories with near vectors say the same.
#[test]
fn a_pass_over_near_vectors_shows_the_texts() {
    let sandbox = Sandbox::new();
    let pair = |number: usize| {
        let (a, b) = ((number as f64).cos(), (number as f64).sin());
        let line = |text: &str| format!("{{\"text\":\"{text} {number:0>3}\",\"vector\":[{a},{b}]}}\n");
        line("the cat sat on the mat") + &line("the cat sat on a mat")
    };
    sandbox.write("in.jsonl", (0..23).map(pair).collect::<String>());
    read(&sandbox, 0, &["import", "in.jsonl"]);
    let (dry, _) = read(&sandbox, 0, &["maintain", "vector-duplicates", "--dry-run"]);
    let row = line(&dry, "on a mat 000");
    assert!(row.contains("on the mat 000") || dry.contains("on the mat 000"), "{dry}");
    assert!(dry.contains("and 3 more groups"), "{dry}");
    let (done, _) = read(&sandbox, 0, &["maintain", "vector-duplicates"]);
    assert!(done.contains("on a mat 000") && done.contains("and 3 more groups"), "{done}");
}

/// A new text can't take the place of what has ended, and the refusal speaks of what was typed.
#[test]
fn an_update_of_what_has_ended_says_what_to_type() {
    let sandbox = Sandbox::new();
    let later = "2026-03-01T00:01:00Z";
    let never = sandbox.write("p.toml", "[purge]\nper_write = 0\n");
    let policy = ["--policy", never.as_str()];
    let told = |arguments: &[&str], code| read_at(&sandbox, later, code, &[&policy, arguments].concat());
    read(&sandbox, 0, &["add", "the build is red", "--key", "t", "--ttl", "1s"]);
    let (_, why) = told(&["update", "t", "--text", "the build is green"], 1);
    assert!(why.contains("change t: its life ended at 2026-03-01T00:00:01Z"), "{why}");
    assert!(why.contains("`add --key t`") && why.contains("`touch t --ttl`"), "{why}");
    assert!(!why.contains("supersede"), "{why}");
    told(&["touch", "t", "--ttl", "1h"], 0);
    told(&["update", "t", "--text", "the build is green"], 0);
}

/// A name that nothing has replaced leads to what it replaced itself, and a contradiction to what takes it back.
#[test]
fn a_refused_restore_says_what_can_come_back() {
    let sandbox = Sandbox::new();
    read(&sandbox, 0, &["add", "Ann lives in Ghent", "--key", "home"]);
    let first = sandbox.document(&["get", "home"])["id"].as_str().unwrap().to_owned();
    read(&sandbox, 0, &["supersede", "home", "--with-text", "Ann lives in Bruges"]);
    let (_, why) = read(&sandbox, 1, &["restore", "home"]);
    assert!(why.contains(&format!("`restore {first}`")), "{why}");
    read(&sandbox, 0, &["restore", &first]);
    read(&sandbox, 0, &["add", "the sky is green", "--key", "sky"]);
    let (_, why) = read(&sandbox, 1, &["restore", "sky"]);
    assert!(why.contains("replaced no text that is still there"), "{why}");
    let (_, remark) = read(&sandbox, 0, &["contradict", "sky"]);
    assert!(remark.contains("`update sky --clear valid_to`"), "{remark}");
    let (_, why) = read(&sandbox, 1, &["restore", "sky"]);
    assert!(why.contains("--clear valid_to`"), "{why}");
    let (none, _) = read(&sandbox, 0, &["list", "--state", "any"]);
    assert!(line(&none, "the sky is green").contains("no longer true"), "{none}");
    read(&sandbox, 0, &["update", "sky", "--clear", "valid_to"]);
    let (listed, _) = read(&sandbox, 0, &["list"]);
    line(&listed, "the sky is green");
    // A key with an announced text means that text as soon as the present one is contradicted.
    let sky = sandbox.document(&["get", "sky"])["id"].as_str().unwrap().to_owned();
    read(&sandbox, 0, &["supersede", "sky", "--with-text", "the sky is red", "--at", "2999-01-01"]);
    let (_, remark) = read(&sandbox, 0, &["contradict", "sky"]);
    assert!(remark.contains(&format!("`restore {sky}`, then `update {sky} --clear valid_to`")), "{remark}");
    read(&sandbox, 0, &["restore", &sky]);
    read(&sandbox, 0, &["update", &sky, "--clear", "valid_to"]);
    let (listed, _) = read(&sandbox, 0, &["list"]);
    line(&listed, "the sky is green");
}

/// A key stands for its own write: who supersedes it is told of the others that keep its text.
#[test]
fn a_text_that_others_keep_is_told() {
    let sandbox = Sandbox::new();
    read(&sandbox, 0, &["add", "Ann lives in Ghent", "--key", "home"]);
    read(&sandbox, 0, &["add", "Ann lives in Ghent"]);
    let (_, remark) = read(&sandbox, 0, &["supersede", "home", "home", "--with-text", "Ann lives in Rome"]);
    assert!(remark.starts_with("“Ann lives in Ghent” stays live"), "{remark}");
    let (_, remark) = read(&sandbox, 0, &["supersede", "home", "--with-text", "Ann lives in Bonn"]);
    assert!(!remark.contains("stays live"), "{remark}");
}

/// MODEL-14, MODEL-15: the state is a label, and a person reads what a live read sees.
#[test]
fn a_list_calls_live_what_is_in_force() {
    let sandbox = Sandbox::new();
    read(&sandbox, 0, &["add", "the price is 10", "--key", "price"]);
    read(
        &sandbox,
        0,
        &["supersede", "price", "--with-text", "the price is 12", "--at", "2027-01-01T00:00:00Z"],
    );
    for (words, told) in [("the price is 10", " live "), ("the price is 12", "not true yet")] {
        for arguments in [&["list", "--state", "any"][..], &["history", "price"]] {
            let (out, _) = read(&sandbox, 0, arguments);
            assert!(line(&out, words).contains(told), "{arguments:?}: {out}");
        }
    }
    let (live, _) = read(&sandbox, 0, &["list", "--state", "live"]);
    assert!(live.contains("price is 10") && !live.contains("price is 12"), "{live}");
}

/// A mistyped namespace answers like one that knows nothing, so every command that reads says on standard error that it is not
/// there.
#[test]
fn every_command_that_reads_says_that_the_namespace_is_not_there() {
    let sandbox = Sandbox::new();
    read(&sandbox, 0, &["add", "Ann prefers tea", "--key", "tea", "--namespace", "team"]);
    sandbox.write("q.jsonl", "{\"query\":\"tea\"}\n");
    let told = "There is no namespace tem; the file has team";
    for (code, command) in [
        (0, &["search", "tea"][..]),
        (0, &["search", "--queries", "q.jsonl"]),
        (0, &["list"]),
        (0, &["list", "--state", "tombstoned"]),
        (0, &["briefing"]),
        (0, &["distinct", "x"]),
        (0, &["export", "-"]),
        (0, &["changes"]),
        (0, &["stats"]),
        (0, &["goal", "list"]),
        (0, &["index", "list"]),
        (0, &["eval", "--text", "--queries", "q.jsonl"]),
        (1, &["get", "tea"]),
        (1, &["history", "tea"]),
        (1, &["explain", "tea"]),
        (1, &["expand", "tea"]),
    ] {
        let asked = [&["--namespace", "tem"], command].concat();
        let (out, err) = read(&sandbox, code, &asked);
        assert!(err.contains(told) && !out.contains("There is no namespace"), "{command:?}: {out}{err}");
        let (out, err) = read(&sandbox, code, &[&["--json"], asked.as_slice()].concat());
        let remark = serde_json::json!({ "remark": told }).to_string();
        assert!(err.lines().any(|line| line == remark), "{command:?}: {err}");
        assert!(!out.contains("no namespace"), "{command:?}: {out}");
        let (_, err) = read(&sandbox, code, &[&["--quiet"], asked.as_slice()].concat());
        assert!(!err.contains("There is no namespace"), "{command:?}: {err}");
    }
}

/// Help stands below its option where the option leaves no room beside.
#[test]
fn help_fits_a_narrow_terminal() {
    let sandbox = Sandbox::new();
    for command in ["maintain", "gc", "search", "add"] {
        let lines = |columns: &str| {
            let told = sandbox.command(&["help", command]).env("COLUMNS", columns).output().unwrap();
            String::from_utf8(told.stdout).unwrap().lines().count()
        };
        assert!(lines("40") < lines("60") * 2, "{command}: {} and {}", lines("40"), lines("60"));
    }
}

/// A hit shows where its words are, as wide as the terminal or `COLUMNS` is, and no less with more columns beside it.
#[test]
fn a_hit_is_as_wide_as_the_lines_and_shows_its_words() {
    let sandbox = Sandbox::new();
    let filler = "we talked of this and that for a while ".repeat(4);
    read(&sandbox, 0, &["add", &format!("{filler}and then of the support group {filler}")]);
    let shown = |columns: &str, arguments: &[&str]| {
        let all = [&["--db", "m.oub", "--now", NOW, "search", "support group"], arguments].concat();
        let output = sandbox.command(&all).env("COLUMNS", columns).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let width = |columns: &str, arguments: &[&str]| {
        let shown = shown(columns, arguments);
        assert!(shown.contains("support group"), "{shown}");
        let text: String = shown.lines().skip_while(|line| !line.contains('…')).collect();
        let widest = shown.lines().map(|line| line.chars().count()).max().unwrap();
        (text.chars().filter(|c| c.is_alphabetic()).count(), widest)
    };
    let narrow = width("100", &[]);
    let wide = width("160", &[]);
    assert!(wide.0 > narrow.0 && wide.1 <= 160 && narrow.1 <= 100, "{wide:?} {narrow:?}");
    assert!(width("100", &["-v"]).0 >= narrow.0, "{}", shown("100", &["-v"]));
}

/// LIFE-3, LIFE-56: the end that a caller sets is a promise, and a pin does not stop it.
#[test]
fn a_pin_beside_an_end_says_that_the_end_holds() {
    let sandbox = Sandbox::new();
    let told = "The end that is set holds for a pinned memory too";
    for (ends, end) in [
        (true, &["--ttl", "1s"][..]),
        (true, &["--expires-at", "2027-01-01"]),
        (false, &["--expires-at", "never"]),
    ] {
        let (_, add) = read(&sandbox, 0, &[&["add", "a note", "--key", "n", "--pinned"], end].concat());
        let (_, update) = read(&sandbox, 0, &[&["update", "n", "--pinned"], end].concat());
        assert_eq!((add.contains(told), update.contains(told)), (ends, ends), "{add}{update}");
    }
    let (_, plain) = read(&sandbox, 0, &["add", "another note", "--ttl", "1s"]);
    assert!(!plain.contains(told), "{plain}");
}

/// A day that no calendar has is another slip than a date in another form.
#[test]
fn a_day_that_does_not_exist_is_told_as_one() {
    let sandbox = Sandbox::new();
    let why = |at: &str| read(&sandbox, 2, &["add", "a note", "--valid-to", at]).1;
    for at in ["2027-02-30", "2026-13-01", "2026-13-01T10:00:00Z", "2026-02-29 10:00", "2026-01-01T25:00:00Z"]
    {
        assert!(why(at).contains("the calendar has no such day or hour"), "{at}: {}", why(at));
    }
    for at in ["yesterday", "01.02.2027", "2027-2-3", "2026-01-03X"] {
        assert!(why(at).contains("must be RFC 3339"), "{at}: {}", why(at));
    }
}

/// What others call a thing leads to the thing, and not to what is spelled most like it.
#[test]
fn a_word_of_others_leads_to_what_does_it_here() {
    let sandbox = Sandbox::new();
    for (arguments, told, not) in [
        (&["maintain", "merge"][..], "near-duplicates", "'expire'"),
        (&["vacuum"], "'compact'", "'maintain'"),
        (&["log"], "'history'", "'goal'"),
        (&["tags"], "memory-stats", "'stats'"),
        (&["version"], "--version", "'versions'"),
        (&["list", "--ns", "x"], "--namespace", "--no-share"),
        (&["search", "tea", "--all"], "-k", "--allow-partial"),
    ] {
        let (_, why) = read(&sandbox, 2, arguments);
        assert!(why.contains(told) && !why.contains(not), "{arguments:?}: {why}");
    }
}

/// Who only reads has written nothing in any case. Who writes is told so, whether or not the file is there by now.
#[test]
fn only_a_refused_write_says_that_no_memory_was_written() {
    let sandbox = Sandbox::new();
    let told = "no memory was written";
    let (_, why) = read(&sandbox, 2, &["add", ""]);
    assert!(why.contains(told) && !why.contains("nothing was written"), "{why}");
    for command in
        [&["search", "tea", "-k", "0"][..], &["list", "--limit", "0"], &["list", "--as-of", "yesterday"]]
    {
        let (_, why) = read(&sandbox, 2, command);
        assert!(why.contains("call again") && !why.contains("was written"), "{command:?}: {why}");
    }
}

/// A list and a table of other programs are the first files that somebody brings.
#[test]
fn a_file_of_another_form_is_told_how_lines_are_made() {
    let sandbox = Sandbox::new();
    for text in [
        "[{\"text\":\"Ann prefers tea\"}]\n",
        "[\n  {\"text\":\"Ann prefers tea\"}\n]\n",
        "key,text\na,Ann prefers tea\n",
    ] {
        sandbox.write("file", text);
        let (_, why) = read(&sandbox, 1, &["import", "file"]);
        let hint = line(&why, "hint: ");
        assert!(hint.contains("jq -c '.[]'") && hint.contains("CSV"), "{why}");
    }
}

/// The namespace is the border between tenants: what does not keep to the one that was named says so.
#[test]
fn what_goes_beyond_the_named_namespace_says_so() {
    let sandbox = Sandbox::new();
    let lines = ["{\"text\":\"the cat\"}", "{\"text\":\"a dog\",\"namespace\":\"other\"}"];
    sandbox.write("in.jsonl", lines.join("\n"));
    let import = |more: &[&str]| read(&sandbox, 0, &[&["import", "in.jsonl"], more].concat()).1;
    let told = import(&["--namespace", "team"]);
    assert!(told.contains("went there and not to team: other") && told.contains("--into team"), "{told}");
    for quiet in [import(&[]), import(&["--into", "team"])] {
        assert!(!quiet.contains("went there"), "{quiet}");
    }
    let (_, told) = read(&sandbox, 0, &["backup", "copy.oub", "--namespace", "team"]);
    assert!(told.contains("every namespace, not team alone"), "{told}");
}
