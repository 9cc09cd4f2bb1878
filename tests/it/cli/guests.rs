//! What becomes of guests (MODEL-66) when something happens to the file, to its owner, or to them.

use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use super::sandbox::{NOW, Sandbox};
use super::sharing::{Session, filled, frame, has_whole};

/// Puts a backup in the place of the file.
fn replace(sandbox: &Sandbox) {
    sandbox.document(&["backup", "copy.oub"]);
    std::fs::rename(sandbox.path("copy.oub"), sandbox.path("m.oub")).unwrap();
}

/// A call that writes.
const WRITE: &str = r#"{"type":"tool_call","name":"memory.context_log_write","args":{"context_id":"c",
"memory_ids_with_token_costs":[{"memory_id":"019584a0-0000-7000-8000-000000000002","tokens":1}]}}"#;

#[test]
fn guests_go_to_the_file_that_has_taken_the_name() {
    let sandbox = filled();
    let mut owner = Session::owner(&sandbox);
    let mut lines = Session::begin(&sandbox, &["add", "-"]);
    assert_eq!(lines.ask("one")["decision"], "stored");
    replace(&sandbox);
    // Between two lines the session goes on with the new file, and answers others there. A line that is on its way while the name
    // changes would be refused, so the owner gets the time to look.
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!(lines.ask("two")["decision"], "stored");
    assert_eq!(sandbox.document(&["add", "three"])["decision"], "stored");
    assert_eq!(sandbox.run(&["--no-share", "add", "four"]).error().0, "Locked");
    let refused = owner.ask(&WRITE.replace('\n', "")).to_string();
    assert!(refused.contains("has taken the name"), "{refused}");
    // The socket is not the old owner's any more.
    owner.end();
    assert_eq!(sandbox.document(&["add", "five"])["decision"], "stored");
    assert!(sandbox.path("m.oub.sock").exists());
    lines.end();
    assert!(!sandbox.path("m.oub.sock").exists());
    has_whole(&sandbox, 7);
}

/// A sweeper does not go on with a file that nobody finds by its name.
#[test]
fn maintain_every_ends_where_its_file_is_replaced_or_deleted() {
    for is_deleted in [false, cfg!(target_os = "linux")] {
        let sandbox = filled();
        sandbox.document(&["backup", "copy.oub"]);
        let mut child = sandbox.spawn(&["maintain", "--db", "m.oub", "--every", "1h", "--json"]);
        let mut out = std::io::BufReader::new(child.stdout.take().unwrap());
        std::io::BufRead::read_line(&mut out, &mut String::new()).unwrap();
        match is_deleted {
            true => std::fs::remove_file(sandbox.path("m.oub")).unwrap(),
            false => std::fs::rename(sandbox.path("copy.oub"), sandbox.path("m.oub")).unwrap(),
        }
        let ended = child.wait_with_output().unwrap();
        assert_eq!(ended.status.code(), Some(1), "{ended:?}");
        let told = String::from_utf8(ended.stderr).unwrap();
        assert!(told.contains("was replaced or deleted"), "{told}");
    }
}

#[test]
fn a_command_after_another_file_has_taken_the_name_is_done_there() {
    let sandbox = filled();
    let owner = Session::owner(&sandbox);
    replace(&sandbox);
    assert_eq!(sandbox.document(&["add", "It rains"])["decision"], "stored");
    assert_eq!(sandbox.run(&["compact"]).code, 0);
    owner.end();
    has_whole(&sandbox, 4);
}

/// An owner that ends, and a guest whose input comes slowly: the input is not cut off, and others are answered meanwhile.
#[test]
fn a_long_command_of_a_guest_keeps_nobody_from_the_file() {
    let sandbox = filled();
    let mut owner = Session::owner(&sandbox);
    let mut lines = Session::begin(&sandbox, &["add", "-"]);
    assert_eq!(lines.ask("one")["decision"], "stored");
    let mut import = Session::begin(&sandbox, &["import", "-"]);
    import.send(r#"{"text":"The import begins"}"#);
    std::thread::sleep(Duration::from_millis(500));
    owner.hang_up();
    std::thread::sleep(Duration::from_secs(7));
    for at in 0..5 {
        let added = sandbox.document(&["--wait", "3s", "add", &format!("said {at} beside the import")]);
        assert_eq!(added["decision"], "stored");
    }
    assert_eq!(lines.ask("two")["decision"], "stored");
    import.send(r#"{"text":"The import goes on"}"#);
    import.end();
    owner.end();
    // The session has the file now.
    assert_eq!(lines.ask("three")["decision"], "stored");
    lines.end();
    has_whole(&sandbox, 3 + 3 + 5 + 2);
}

/// Sessions that say nothing give up their places to those who say something.
#[test]
fn more_sessions_than_places_are_answered() {
    let sandbox = filled();
    let owner = Session::owner(&sandbox);
    let mut sessions: Vec<_> = (0..70).map(|_| Session::begin(&sandbox, &["add", "-"])).collect();
    for at in [0, 1] {
        for session in &mut sessions {
            let added = session.ask(&format!("said {at}"));
            assert!(added["decision"].is_string(), "{added}");
        }
        assert!(sandbox.document(&["add", "It rains"])["decision"].is_string());
    }
    sessions.into_iter().for_each(Session::end);
    owner.end();
    assert_eq!(sandbox.document(&["check", "--deep"])["ok"], true);
}

#[test]
#[cfg(target_os = "linux")]
fn the_open_files_of_a_guest_are_its_own_by_every_name() {
    let sandbox = filled();
    let owner = Session::owner(&sandbox);
    std::os::unix::fs::symlink("/dev/stdin", sandbox.path("in")).unwrap();
    let names = ["/dev/stdin", "/dev/fd/0", "/proc/self/fd/0", "in"];
    for (at, name) in names.into_iter().enumerate() {
        let line = format!("{{\"text\":\"line {at} of {name}\"}}\n");
        assert_eq!(sandbox.run_with(&["import", name], line.as_bytes()).document()["stored"], 1, "{name}");
    }
    let exported = sandbox.plain(&["--db", "m.oub", "--now", NOW, "export", "/dev/stdout"], b"");
    assert!(exported.code == 0 && exported.out.contains("Ann prefers tea"), "{exported:?}");
    let script = format!(
        "exec {} --db m.oub --json --now {NOW} import <(echo '{{\"text\":\"a line of a shell\"}}')",
        env!("CARGO_BIN_EXE_oubliette")
    );
    let mut shell = Command::new("bash");
    let done =
        shell.args(["-c", &script]).current_dir(sandbox.path(".")).stdin(Stdio::null()).output().unwrap();
    assert!(done.status.success(), "{done:?}");
    owner.end();
    has_whole(&sandbox, 3 + 4 + 1);
}

#[test]
fn a_socket_that_this_user_may_not_use_is_told() {
    let sandbox = filled();
    let owner = Session::owner(&sandbox);
    let mode = |name: &str, mode| {
        std::fs::set_permissions(sandbox.path(name), std::fs::Permissions::from_mode(mode)).unwrap();
    };
    // The file is for everybody, and its socket is not.
    [("", 0o755), ("m.oub", 0o666), ("m.oub.sock", 0o600)].iter().for_each(|(name, bits)| mode(name, *bits));
    let mut command = sandbox.command(&["--db", "m.oub", "--now", NOW, "--wait", "0s", "list"]);
    command.stdin(Stdio::null());
    let is_root = std::os::unix::fs::chown(sandbox.path("m.oub.sock"), Some(0), None).is_ok();
    if is_root {
        command.uid(65_534);
    } else {
        mode("m.oub.sock", 0);
    }
    let told = command.output().unwrap();
    let told = String::from_utf8(told.stderr).unwrap();
    assert!(told.contains("is open in another process") && told.contains("is not for this user"), "{told}");
    owner.end();
}

/// A line that could not be sent any more is done elsewhere.
#[test]
fn a_session_goes_on_when_its_owner_is_killed_between_two_lines() {
    let sandbox = filled();
    let owner = Session::owner(&sandbox);
    let mut guest = Session::begin(&sandbox, &["add", "-"]);
    assert_eq!(guest.ask("one")["decision"], "stored");
    // The owner asks for the next line.
    std::thread::sleep(Duration::from_millis(500));
    owner.kill();
    assert_eq!(guest.ask("two")["decision"], "stored");
    guest.end();
    has_whole(&sandbox, 5);
}

/// Ctrl-C ends a command of a guest as it does one that has the file open itself.
#[test]
fn a_command_ends_with_its_guest() {
    const LINES: u64 = 40_000;
    let sandbox = filled();
    let lines: String = (0..LINES).map(|at| format!("{{\"text\":\"number {at} of {LINES}\"}}\n")).collect();
    sandbox.write("long.jsonl", lines);
    let owner = Session::owner(&sandbox);
    let import = Session::begin(&sandbox, &["import", "long.jsonl", "--no-dedup", "--batch", "100"]);
    let live = || sandbox.document(&["stats"])["memories"]["live"].as_u64().unwrap();
    while live() < 100 {
        std::thread::sleep(Duration::from_millis(10));
    }
    import.kill();
    std::thread::sleep(Duration::from_millis(500));
    let left = live();
    assert!(left < LINES, "the import had ended before its guest");
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(live(), left);
    owner.end();
    has_whole(&sandbox, left);
}

/// Whoever sends on and on is hung up on, and what was sent is not kept.
#[test]
#[cfg(target_os = "linux")]
fn a_gigabyte_is_refused_before_it_is_kept() {
    let sandbox = filled();
    let mut owner = Session::owner(&sandbox);
    let before = owner.peak();
    let greeting = format!("{{\"protocol\":4,\"program\":\"{}\"}}", env!("CARGO_PKG_VERSION"));
    let whole = vec![b'x'; 4 << 20];
    // Greetings, orders and input, each as long as a frame may be; and bytes of a frame that never ends.
    for sort in [1, 2, 3, 255] {
        let mut stream = UnixStream::connect(sandbox.path("m.oub.sock")).unwrap();
        stream.set_write_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.write_all(&frame(1, greeting.as_bytes())).unwrap();
        let bytes = frame(sort, &whole);
        let sent = (0..256).take_while(|_| stream.write_all(&bytes).is_ok()).count();
        assert!(sent < 4, "{sent} frames of the sort {sort} were taken");
    }
    // A line that never ends, of a guest that was let in.
    let mut lines = Session::begin(&sandbox, &["add", "-"]);
    assert_eq!(lines.ask("one")["decision"], "stored");
    lines.flood(&whole, 256);
    owner.ask(r#"{"type":"tool_call","name":"get_memory_stats","args":{}}"#);
    let grown = owner.peak() - before;
    assert!(grown < 256 << 20, "{} MiB", grown >> 20);
    let sender = lines.peak();
    assert!(sender < 256 << 20, "{} MiB of the guest", sender >> 20);
    // The owner would wait for the end of the line.
    lines.kill();
    owner.end();
    has_whole(&sandbox, 4);
}

#[test]
fn dates_are_told_in_the_zone_of_the_guest() {
    let sandbox = filled();
    let told = |zone: &str| {
        let mut command = sandbox.command(&["--db", "m.oub", "--now", NOW, "list", "-v"]);
        command.env("TZ", zone).stdin(Stdio::null());
        let zoned = command.output().unwrap();
        let mut command = sandbox.command(&["--db", "m.oub", "--now", NOW, "explain", "a"]);
        let explained = command.env("TZ", zone).stdin(Stdio::null()).output().unwrap();
        String::from_utf8([zoned.stdout, explained.stdout].concat()).unwrap()
    };
    let zones = ["UTC", "Asia/Tokyo", "XYZ-5:30", "nowhere"];
    let direct = zones.map(told);
    assert!(direct[1].contains("2026-03-01 09:00") && direct[2].contains("2026-03-01 05:30"), "{direct:?}");
    let owner = Session::owner(&sandbox);
    assert_eq!(zones.map(told), direct);
    owner.end();
}

#[test]
fn a_file_with_two_names_is_told_of() {
    let sandbox = filled();
    std::fs::hard_link(sandbox.path("m.oub"), sandbox.path("other.oub")).unwrap();
    let owner = Session::owner(&sandbox);
    let told = sandbox.plain(&["--db", "other.oub", "--now", NOW, "--wait", "0s", "list"], b"");
    assert!(
        told.err.contains("is open in another process") && told.err.contains("several names"),
        "{told:?}"
    );
    assert_eq!(sandbox.document(&["add", "It rains"])["decision"], "stored");
    owner.end();
    has_whole(&sandbox, 4);
}

/// How a command ends whose answers nobody reads any more, and what it says last.
fn unread(mut child: Child) -> (Option<i32>, Value) {
    let mut told = String::new();
    child.stderr.take().unwrap().read_to_string(&mut told).unwrap();
    let last = told.lines().last().map_or(Value::Null, |line| serde_json::from_str(line).unwrap());
    (child.wait().unwrap().code(), last)
}

/// The lines whose answers nobody reads any more are not written, and the exit code says so, whoever works on them.
#[test]
fn lines_that_were_left_because_nobody_reads_are_an_error() {
    for has_owner in [false, true] {
        let sandbox = Sandbox::new();
        sandbox.document(&["init"]);
        let owner = has_owner.then(|| Session::owner(&sandbox));
        let live = || sandbox.document(&["stats"])["memories"]["live"].as_u64();
        let begin = |first: &str| {
            let mut adding = Session::begin(&sandbox, &["add", "-"]);
            adding.ask(first);
            adding.turn_away()
        };
        let (child, mut input) = begin("the first");
        // It may have ended before the last line is sent.
        let _ = (0..300).try_for_each(|at| writeln!(input, "note {at}"));
        drop(input);
        let (code, told) = unread(child);
        let written = told["error"]["written"].as_u64();
        assert_eq!((code, live()), (Some(1), written), "{has_owner}: {told}");
        assert!(told["error"]["hint"].as_str().unwrap().contains("give the rest"), "{told}");
        // Blank lines say nothing, so none is left.
        let (child, mut input) = begin("one more");
        input.write_all(b"the last\n \n\n").unwrap();
        drop(input);
        assert_eq!(unread(child), (Some(0), Value::Null), "{has_owner}");
        assert_eq!(live(), written.map(|written| written + 2), "{has_owner}");
        // Nobody waits for a line that may never come.
        let (child, mut input) = begin("again the first");
        writeln!(input, "one whose answer is not read").unwrap();
        let (code, told) = unread(child);
        assert_eq!((code, &told["error"]["written"]), (Some(1), &json!(2)), "{has_owner}: {told}");
        drop(input);
        if let Some(owner) = owner {
            owner.end();
        }
    }
}

/// A reader of standard output that has enough is no error, whatever name the export has for it.
#[test]
#[cfg(target_os = "linux")]
fn an_export_to_standard_output_by_another_name_may_be_read_in_part() {
    let sandbox = filled();
    let lines: String = (0..3_000).map(|at| format!("{{\"text\":\"number {at} of many\"}}\n")).collect();
    sandbox.write("many.jsonl", lines);
    sandbox.document(&["import", "many.jsonl", "--no-dedup"]);
    for has_owner in [false, true] {
        let owner = has_owner.then(|| Session::owner(&sandbox));
        for file in ["-", "/dev/stdout", "/dev/fd/1"] {
            let script = format!(
                "{} --db m.oub --now {NOW} export {file} | head -c 10 > part; exit ${{PIPESTATUS[0]}}",
                env!("CARGO_BIN_EXE_oubliette")
            );
            let mut shell = Command::new("bash");
            let done = shell.args(["-c", &script]).current_dir(sandbox.path(".")).stdin(Stdio::null());
            let done = done.output().unwrap();
            assert_eq!((done.status.code(), done.stderr.len()), (Some(0), 0), "{file}: {done:?}");
            assert_eq!(std::fs::read(sandbox.path("part")).unwrap().len(), 10);
        }
        if let Some(owner) = owner {
            owner.end();
        }
    }
}
