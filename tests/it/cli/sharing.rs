//! One file, many clients (MODEL-66): the process that has the file open answers the others.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use super::sandbox::{NOW, Sandbox};
use serde_json::{Value, json};

/// A process that is spoken to in lines.
pub(super) struct Session {
    child: Child,
    input: Option<ChildStdin>,
    out: BufReader<ChildStdout>,
}

impl Session {
    /// Starts a command on `m.oub`, at the fixed instant.
    pub(super) fn begin(sandbox: &Sandbox, arguments: &[&str]) -> Self {
        let mut all = vec!["--db", "m.oub", "--json", "--now", NOW];
        all.extend(arguments);
        let mut child = sandbox.spawn(&all);
        let input = child.stdin.take();
        let out = BufReader::new(child.stdout.take().unwrap());
        Session { child, input, out }
    }

    /// A process that has the file open, and answers calls of tools.
    pub(super) fn owner(sandbox: &Sandbox) -> Self {
        let mut owner = Session::begin(sandbox, &["tool"]);
        owner.ask(r#"{"type":"tool_call","name":"memory.gc_report","args":{}}"#);
        assert!(sandbox.path("m.oub.sock").exists());
        owner
    }

    /// Sends a line.
    pub(super) fn send(&mut self, line: &str) {
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
    }

    /// Sends the same bytes again and again, and says how often they were taken.
    #[cfg(target_os = "linux")]
    pub(super) fn flood(&mut self, bytes: &[u8], most: usize) -> usize {
        let input = self.input.as_mut().unwrap();
        (0..most).take_while(|_| input.write_all(bytes).is_ok()).count()
    }

    /// Sends a line, and gives the line that answers it.
    #[track_caller]
    pub(super) fn ask(&mut self, line: &str) -> Value {
        self.send(line);
        self.hear()
    }

    #[track_caller]
    pub(super) fn hear(&mut self) -> Value {
        let mut answer = String::new();
        self.out.read_line(&mut answer).unwrap();
        serde_json::from_str(&answer).unwrap_or_else(|why| panic!("{why}: {answer:?}, {}", self.complaint()))
    }

    /// Reads no more answers.
    pub(super) fn turn_away(self) -> (Child, ChildStdin) {
        let Session { child, input, out } = self;
        drop(out);
        (child, input.unwrap())
    }

    fn complaint(&mut self) -> String {
        let mut told = String::new();
        self.input = None;
        self.child.stderr.take().unwrap().read_to_string(&mut told).unwrap();
        told
    }

    /// The most memory that it has had, in bytes.
    #[cfg(target_os = "linux")]
    pub(super) fn peak(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() << 10
    }

    /// Ends its input.
    pub(super) fn hang_up(&mut self) {
        self.input = None;
    }

    /// Hangs up and waits for the end.
    #[track_caller]
    pub(super) fn end(mut self) {
        self.input = None;
        assert!(self.child.wait().unwrap().success());
    }

    /// SIGKILL.
    pub(super) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// The file is whole, and has this many memories.
#[track_caller]
pub(super) fn has_whole(sandbox: &Sandbox, live: u64) {
    assert_eq!(sandbox.document(&["check", "--deep"])["ok"], true);
    assert_eq!(sandbox.document(&["stats"])["memories"]["live"], live);
}

/// A store with three memories, of which one carries bytes.
pub(super) fn filled() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.fill();
    sandbox.write("payload.bin", b"\x00\xff");
    let with = ["update", "a", "--payload", "payload.bin"];
    assert_eq!(sandbox.run(&with).code, 0);
    sandbox
}

/// A memory that is there already.
const AGAIN: &str = "{\"key\":\"b\",\"text\":\"Bob prefers coffee\",\"tags\":[\"drink\"],\"vector\":[0,1]}\n";

/// Commands: words, and standard input. None of them changes what another shows.
const COMMANDS: &[(&[&str], &str)] = &[
    (&[], ""),
    (&["list"], ""),
    (&["list", "--limit", "1"], ""),
    (&["--json", "list"], ""),
    (&["get", "a"], ""),
    (&["--json", "get", "a", "--payload"], ""),
    (&["get", "nobody"], ""),
    (&["--json", "get", "nobody"], ""),
    (&["search", "tea"], ""),
    (&["search", "tea", "--read-only"], ""),
    (&["search"], ""),
    (&["search", "tea", "--filter", "{"], ""),
    (&["briefing"], ""),
    (&["history", "a"], ""),
    (&["explain", "a"], ""),
    (&["--json", "changes"], ""),
    (&["events"], ""),
    (&["distinct", "kind"], ""),
    (&["runs"], ""),
    (&["memory-stats"], ""),
    (&["namespace", "list"], ""),
    (&["index", "list"], ""),
    (&["policy", "show"], ""),
    (&["check"], ""),
    (&["init"], ""),
    (&["init", "--dim", "3"], ""),
    (&["add", "Bob prefers coffee", "--key", "b", "--tag", "drink", "--vector", "[0,1]"], ""),
    (&["--json", "add", "-"], AGAIN),
    (&["add", "-", "--jsonl"], "no object\n"),
    (&["import", "nothing.jsonl"], ""),
    (&["import", "-", "--quiet", "--read-only"], AGAIN),
    (&["forget", "--keys", "keys.txt", "--dry-run"], ""),
    (&["forget", "--keys", "-", "--dry-run"], "a\nnobody\n"),
    (&["undo", "01a21092-3ed0-73b3-9fc0-21548394d1cb"], ""),
    (&["maintain", "expire", "--dry-run"], ""),
    (&["gc", "plan", "--dry-run"], ""),
    (&["export", "-"], ""),
    (&["export", "out.jsonl", "--no-vectors"], ""),
    (&["import", "nowhere/in.jsonl"], ""),
    (&["policy", "set", "nothing.toml"], ""),
    (&["maintain", "prune", "--dry-run", "--compare", "policy.toml"], ""),
    (&["tool"], "{\"type\":\"tool_call\",\"name\":\"get_memory_stats\",\"args\":{}}\nno envelope\n"),
    (&["completions", "bash"], ""),
    (&["nonsense"], ""),
];

#[test]
fn a_command_answers_through_another_process_as_it_does_directly() {
    let sandbox = filled();
    std::fs::create_dir(sandbox.path("below")).unwrap();
    sandbox.write("below/policy.toml", "gc.age_min = \"40d\"\n");
    sandbox.write("below/keys.txt", "nobody\n");
    let run = |words: &[&str], input: &str| {
        let mut all = vec!["--db", "../m.oub", "--now", NOW];
        all.extend(words);
        let mut command = sandbox.command(&all);
        command.current_dir(sandbox.path("below")).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        let output = child.wait_with_output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    };
    // What a command leaves once, such as a first export, is there before both.
    let direct: Vec<_> =
        [(), ()].map(|()| COMMANDS.iter().map(|(words, input)| run(words, input)).collect()).into();
    let direct: &Vec<_> = &direct[1];
    let owner = Session::owner(&sandbox);
    let mut others = Vec::new();
    for ((words, input), direct) in COMMANDS.iter().zip(direct) {
        let through = run(words, input);
        if through != *direct {
            others.push(format!("{words:?}: {through:?} and not {direct:?}"));
        }
    }
    assert!(others.is_empty(), "{others:#?}");
    let exported = std::fs::read_to_string(sandbox.path("below/out.jsonl")).unwrap();
    assert_eq!(exported.lines().count(), 3);
    owner.end();
    assert!(!sandbox.path("m.oub.sock").exists());
    has_whole(&sandbox, 3);
}

#[test]
fn the_socket_is_for_this_user_and_goes_with_the_owner() {
    let sandbox = filled();
    let owner = Session::owner(&sandbox);
    let found = std::fs::metadata(sandbox.path("m.oub.sock")).unwrap();
    assert!(found.file_type().is_socket());
    assert_eq!(found.permissions().mode() & 0o777, 0o600);
    owner.end();
    let left: BTreeSet<_> =
        std::fs::read_dir(sandbox.path("")).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left, ["fill.jsonl", "m.oub", "payload.bin"].map(Into::into).into());
}

#[test]
fn the_socket_of_another_user_is_told_nothing() {
    let sandbox = filled();
    let owner = Session::owner(&sandbox);
    match std::os::unix::fs::chown(sandbox.path("m.oub.sock"), Some(65_534), None) {
        Err(why) if why.kind() == std::io::ErrorKind::PermissionDenied => {
            eprintln!("skips: only root can give a socket away");
        }
        given => {
            given.unwrap();
            let told = sandbox.plain(&["--db", "m.oub", "--now", NOW, "--wait", "0s", "list"], b"");
            assert!(told.err.contains("is open in another process"), "{told:?}");
            assert!(told.err.contains("its socket belongs to another user"), "{told:?}");
        }
    }
    owner.end();
}

#[test]
fn a_socket_that_was_left_behind_is_no_obstacle() {
    let sandbox = filled();
    Session::owner(&sandbox).kill();
    assert!(sandbox.path("m.oub.sock").exists());
    // It reads beside it, and writes, which replaces it and takes it away.
    assert_eq!(sandbox.document(&["list"])["items"].as_array().unwrap().len(), 3);
    assert_eq!(sandbox.document(&["add", "It rains"])["decision"], "stored");
    assert!(!sandbox.path("m.oub.sock").exists());
    has_whole(&sandbox, 4);
}

#[test]
fn a_file_in_the_place_of_the_socket_stays_and_is_told() {
    let sandbox = filled();
    sandbox.write("m.oub.sock", "mine");
    let told = sandbox.plain(&["--db", "m.oub", "-v", "add", "It rains"], b"");
    assert_eq!(told.code, 0, "{told:?}");
    assert!(told.err.contains("other processes cannot use the file meanwhile"), "{told:?}");
    let mut owner = Session::begin(&sandbox, &["add", "-"]);
    owner.ask("held");
    assert_eq!(sandbox.run(&["--wait", "0s", "add", "me too"]).error().0, "Locked");
    owner.end();
    assert_eq!(std::fs::read(sandbox.path("m.oub.sock")).unwrap(), b"mine");
    has_whole(&sandbox, 5);
}

#[test]
fn nobody_shares_who_was_told_not_to() {
    let sandbox = filled();
    let owner = Session::owner(&sandbox);
    assert_eq!(sandbox.run(&["--no-share", "list"]).error().0, "Locked");
    owner.end();
    sandbox.write("oubliette.toml", "share = false\n");
    let mut owner = Session::begin(&sandbox, &["add", "-"]);
    owner.ask("held");
    assert!(!sandbox.path("m.oub.sock").exists());
    assert_eq!(sandbox.run(&["add", "me too"]).error().0, "Locked");
    owner.end();
}

#[test]
fn eight_clients_at_once_make_one_file() {
    let sandbox = Sandbox::new();
    let sandbox = &sandbox;
    std::thread::scope(|scope| {
        for client in 0..8 {
            scope.spawn(move || {
                for at in 0..6 {
                    let text = format!("client {client} says {at}");
                    let stored = sandbox.document(&["add", &text, "--key", &format!("{client}:{at}")]);
                    assert_eq!(stored["decision"], "stored");
                }
            });
        }
    });
    has_whole(sandbox, 48);
    assert!(!sandbox.path("m.oub.sock").exists());
}

#[test]
fn what_was_acknowledged_is_there_once_when_owners_are_killed() {
    // V-313, in small; `tests/sharing-campaign` adds more.
    let adds = std::env::var("OUBLIETTE_SHARING").map_or(25, |adds| adds.parse().unwrap());
    let sandbox = filled();
    let sandbox = &sandbox;
    let until = &std::sync::atomic::AtomicBool::new(false);
    let said: Vec<BTreeSet<String>> = std::thread::scope(|scope| {
        let killer = scope.spawn(|| {
            let mut kills = 0;
            while !until.load(std::sync::atomic::Ordering::SeqCst) {
                let owner = Session::begin(sandbox, &["tool"]);
                // However busy the machine is: somebody has the file before it is counted on that something gets done.
                for _ in 0..1_000 {
                    if sandbox.path("m.oub.sock").exists() {
                        break;
                    }
                    std::thread::sleep(Duration::from_millis(5));
                }
                std::thread::sleep(Duration::from_millis(150 + 37 * (kills % 5)));
                owner.kill();
                kills += 1;
            }
            kills
        });
        let add = |client: usize| {
            let mut said = BTreeSet::new();
            for at in 0..adds {
                let key = format!("{client}:{at}");
                let text = format!("client {client} says {at}");
                let answer = sandbox.run(&["--wait", "30s", "add", &text, "--key", &key]);
                match answer.code {
                    0 => assert_eq!(answer.document()["decision"], "stored", "{key}"),
                    // It may have been done, and nobody said so; or there was no room in all that time.
                    // An owner that is killed between its answer and its end has told the answer as well.
                    _ => {
                        let told = answer.err.lines().last().unwrap_or_default();
                        let told: serde_json::Value = serde_json::from_str(told).unwrap();
                        let kind = told["error"]["kind"].as_str();
                        assert!(matches!(kind, Some("Unavailable" | "Locked")), "{answer:?}");
                        continue;
                    }
                }
                said.insert(key);
            }
            said
        };
        let clients = [0, 1].map(|client| scope.spawn(move || add(client)));
        let said = clients.map(|client| client.join());
        // Whatever became of them: the killer must not go on for ever.
        until.store(true, std::sync::atomic::Ordering::SeqCst);
        assert!(killer.join().unwrap() > 1);
        said.map(Result::unwrap).into()
    });
    let all = sandbox.document(&["list", "--limit", "10000"]);
    let keys: Vec<&str> =
        all["items"].as_array().unwrap().iter().map(|item| item["key"].as_str().unwrap()).collect();
    for key in said.iter().flatten() {
        assert_eq!(keys.iter().filter(|found| *found == key).count(), 1, "{key}");
    }
    assert!(said.iter().all(|said| said.len() > adds / 2), "{said:?}");
    has_whole(sandbox, keys.len() as u64);
}

#[test]
fn a_session_goes_on_when_its_owner_ends() {
    let sandbox = filled();
    let mut first = Session::owner(&sandbox);
    let mut second = Session::begin(&sandbox, &["add", "-"]);
    assert_eq!(second.ask("one")["decision"], "stored");
    // The first still answers, and ends although the second is in the middle of its lines.
    first.ask(r#"{"type":"tool_call","name":"get_memory_stats","args":{}}"#);
    first.end();
    assert_eq!(second.ask("two")["decision"], "stored");
    // It has the file now, and answers others.
    assert_eq!(sandbox.document(&["add", "three"])["decision"], "stored");
    assert_eq!(sandbox.run(&["--no-share", "add", "four"]).error().0, "Locked");
    second.end();
    has_whole(&sandbox, 6);
}

/// Lines that belong together are one unit. Where they pause, they keep no process from its end: another begins with the first of them.
#[test]
fn a_group_of_lines_is_taken_over_as_a_whole() {
    let sandbox = Sandbox::new();
    sandbox.document(&["init"]);
    let owner = Session::owner(&sandbox);
    let again = Sandbox::new();
    let message = |_: usize| {
        let text = "Deploy of the build is done";
        json!({ "text": text, "kind": "message", "author_kind": "bot", "channel": "ops" }).to_string()
    };
    again.write("m.jsonl", (0..3).map(message).collect::<Vec<_>>().join("\n"));
    assert_eq!(again.run(&["import", "m.jsonl"]).code, 0);
    let all = again.run(&["export", "-", "--all-states"]).out;
    let lines: Vec<&str> = all.lines().collect();
    let head = lines.iter().position(|line| line.contains(r#""aggregate":{"#)).expect("messages of a family");
    let mut guest = Session::begin(&sandbox, &["add", "-"]);
    lines[..=head].iter().for_each(|line| guest.send(line));
    std::thread::sleep(Duration::from_millis(300));
    owner.end();
    lines[head + 1..].iter().for_each(|line| guest.send(line));
    guest.hang_up();
    for line in &lines {
        let answer = guest.hear();
        assert!(answer.is_object(), "{line}: {answer}");
    }
    guest.end();
    assert_eq!(sandbox.document(&["check", "--deep"])["ok"], true);
}

#[test]
fn a_guest_that_is_killed_in_the_middle_harms_nobody() {
    let sandbox = filled();
    let mut owner = Session::owner(&sandbox);
    for _ in 0..3 {
        let mut guest = Session::begin(&sandbox, &["add", "-"]);
        guest.ask("said before the end");
        guest.kill();
    }
    let mut import = Session::begin(&sandbox, &["import", "-"]);
    import.send("{\"text\":\"half an import\"}");
    import.kill();
    owner.ask(r#"{"type":"tool_call","name":"get_memory_stats","args":{}}"#);
    assert_eq!(sandbox.document(&["add", "It rains"])["decision"], "stored");
    owner.end();
    assert_eq!(sandbox.document(&["check", "--deep"])["ok"], true);
}

/// Tools and editors run commands in folders that are gone, such as work trees that were taken away.
#[test]
fn a_guest_in_a_folder_that_was_removed_is_answered() {
    let sandbox = filled();
    let script = format!(
        "mkdir gone && cd gone && rmdir ../gone && exec {} --db {} --now {NOW} list",
        env!("CARGO_BIN_EXE_oubliette"),
        sandbox.path("m.oub").display()
    );
    let listed = || {
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", &script]).current_dir(sandbox.path(".")).stdin(std::process::Stdio::null());
        let done = shell.output().unwrap();
        (done.status.code(), [done.stdout, done.stderr].map(|told| String::from_utf8(told).unwrap()))
    };
    let directly = listed();
    assert_eq!(directly.0, Some(0), "{directly:?}");
    let owner = Session::owner(&sandbox);
    assert_eq!(listed(), directly);
    owner.end();
}

#[test]
fn a_sweeper_goes_on_when_its_owner_ends() {
    let sandbox = filled();
    let owner = Session::owner(&sandbox);
    let mut sweeper = Session::begin(&sandbox, &["maintain", "expire", "--every", "1h"]);
    sweeper.hear();
    owner.end();
    // It sweeps at once where it goes on, and answers others there.
    sweeper.hear();
    assert_eq!(sandbox.document(&["add", "It rains"])["decision"], "stored");
    assert_eq!(sandbox.run(&["--no-share", "list"]).error().0, "Locked");
    sweeper.kill();
    has_whole(&sandbox, 4);
}

/// Sends bytes to the owner, and gives what comes back until it hangs up.
fn whisper(sandbox: &Sandbox, bytes: &[u8]) -> Vec<u8> {
    let mut stream = UnixStream::connect(sandbox.path("m.oub.sock")).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    // It may hang up before it has read all.
    let _ = stream.write_all(bytes);
    let mut heard = Vec::new();
    match stream.read_to_end(&mut heard) {
        Err(why) if why.kind() != std::io::ErrorKind::ConnectionReset => panic!("{why}: {heard:?}"),
        _ => heard,
    }
}

/// A frame as it is sent.
pub(super) fn frame(sort: u8, bytes: &[u8]) -> Vec<u8> {
    let mut frame = vec![sort];
    frame.extend(u32::try_from(bytes.len()).unwrap().to_le_bytes());
    frame.extend(bytes);
    frame
}

#[test]
fn garbage_is_refused_and_harms_nobody() {
    let sandbox = filled();
    let mut owner = Session::owner(&sandbox);
    let greeting = json!({ "protocol": 4, "program": env!("CARGO_PKG_VERSION") }).to_string();
    let greeting = frame(1, greeting.as_bytes());
    // No frames, a frame of 4 GiB, a frame that another sort is due for, and an order that is none.
    assert_eq!(whisper(&sandbox, b"GET / HTTP/1.1\r\n\r\n"), b"");
    assert_eq!(whisper(&sandbox, &[1, 255, 255, 255, 255]), b"");
    assert_eq!(whisper(&sandbox, &frame(3, b"tea")), b"");
    for order in [&b""[..], b"\xff\xff\xff\xff\xff\xff\xff\xff\x7f", &[7; 100_000]] {
        let heard = whisper(&sandbox, &[greeting.clone(), frame(2, order)].concat());
        assert_eq!(heard, greeting, "it greets, and hangs up");
    }
    let flood = vec![2; 8 << 20];
    assert_eq!(whisper(&sandbox, &[greeting.clone(), flood].concat()), greeting);
    // Another version is told which it met.
    let other = json!({ "protocol": 4, "program": "9.9.9" }).to_string();
    let heard = String::from_utf8_lossy(&whisper(&sandbox, &frame(1, other.as_bytes()))).into_owned();
    assert!(heard.contains("9.9.9") && heard.contains(env!("CARGO_PKG_VERSION")), "{heard}");
    // Somebody who says nothing is not waited for when the owner ends.
    let silent: Vec<_> = (0..70).map(|_| UnixStream::connect(sandbox.path("m.oub.sock")).unwrap()).collect();
    owner.ask(r#"{"type":"tool_call","name":"get_memory_stats","args":{}}"#);
    let begun = Instant::now();
    owner.end();
    assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
    drop(silent);
    has_whole(&sandbox, 3);
}

#[test]
fn a_guest_of_another_version_is_told_and_finds_the_file_locked() {
    let sandbox = filled();
    let mut owner = Session::begin(&sandbox, &["--no-share", "add", "-"]);
    owner.ask("held");
    let listener = std::os::unix::net::UnixListener::bind(sandbox.path("m.oub.sock")).unwrap();
    let other = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let theirs = json!({ "protocol": 9, "program": "9.9.9" }).to_string();
        stream.write_all(&frame(1, theirs.as_bytes())).unwrap();
        // A stream that is closed with words of the other in it takes its own words away.
        std::io::copy(&mut stream, &mut std::io::sink()).unwrap();
    });
    let told = sandbox.plain(&["--db", "m.oub", "--now", NOW, "--wait", "0s", "add", "me too"], b"");
    assert_eq!(told.code, 1, "{told:?}");
    assert!(told.err.contains("is open in another process"), "{told:?}");
    assert!(told.err.contains("it is oubliette 9.9.9 (protocol 9)"), "{told:?}");
    other.join().unwrap();
    owner.end();
}

#[test]
fn a_guest_that_reads_nothing_costs_the_owner_nothing() {
    let sandbox = filled();
    let text = "tea ".repeat(20_000);
    for at in 0..40 {
        sandbox.document(&["add", &text, "--key", &format!("long {at}"), "--no-dedup"]);
    }
    let mut owner = Session::owner(&sandbox);
    // Three megabytes, of which nobody reads a byte.
    let unread = Session::begin(&sandbox, &["export", "-"]);
    std::thread::sleep(Duration::from_millis(300));
    let begun = Instant::now();
    owner.ask(r#"{"type":"tool_call","name":"get_memory_stats","args":{}}"#);
    assert_eq!(sandbox.document(&["add", "It rains"])["decision"], "stored");
    owner.end();
    assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
    unread.kill();
}

#[test]
fn an_option_of_the_opening_that_differs_is_refused() {
    let sandbox = filled();
    sandbox.write("policy.toml", "gc.age_min = \"40d\"\n");
    let owner = Session::owner(&sandbox);
    let refused: &[(&[&str], &str)] = &[
        (&["--policy", "policy.toml", "list"], "--policy"),
        (&["--instructions", "policy.toml", "list"], "--instructions"),
        (&["--durability", "batch", "list"], "--durability"),
        (&["--embedder", "hash", "list"], "--embedder"),
    ];
    for (words, option) in refused {
        let (kind, message) = sandbox.run(words).error();
        assert_eq!(kind, "Invalid", "{message}");
        assert!(message.starts_with(&format!("{option}: must be")), "{message}");
    }
    let now = sandbox.plain(&["--db", "m.oub", "--json", "add", "x"], b"").error();
    assert!(now.1.starts_with("--now: must be as in the process that has the database open"), "{now:?}");
    // What is as it is there may be said.
    assert_eq!(sandbox.document(&["--durability", "safe", "add", "It rains"])["decision"], "stored");
    assert_eq!(sandbox.run(&["--read-only", "add", "no"]).error().0, "ReadOnly");
    owner.end();
    has_whole(&sandbox, 4);
    let fresh = Sandbox::new();
    assert_eq!(fresh.document(&["add", "Ann prefers tea"])["decision"], "stored");
    let owner = Session::owner(&fresh);
    assert_eq!(fresh.run(&["--embedder", "static-mini", "list"]).code, 0);
    assert_eq!(fresh.run(&["--embedder", "hash", "list"]).error().0, "Invalid");
    owner.end();
}

#[test]
fn the_journal_knows_who_wrote_through_whom() {
    let sandbox = filled();
    let owner = Session::owner(&sandbox);
    let by_hand = sandbox.document(&["add", "It rains", "--key", "rain"]);
    assert_eq!(by_hand["decision"], "stored");
    let events = sandbox.document(&["history", "rain"])["events"].clone();
    assert_eq!(events[0]["actor"], "caller", "{events}");
    owner.end();
}

#[cfg(feature = "mcp")]
mod mcp {
    use super::*;

    fn call(id: u64, name: &str, arguments: Value) -> String {
        let params = json!({ "name": name, "arguments": arguments });
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }).to_string()
    }

    /// A server that has shaken hands.
    fn serve(sandbox: &Sandbox) -> Session {
        serve_with(sandbox, &[])
    }

    fn serve_with(sandbox: &Sandbox, words: &[&str]) -> Session {
        let mut server = Session::begin(sandbox, &[&["serve", "--mcp"], words].concat());
        let client = json!({ "name": "test", "version": "1" });
        let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
        let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
        let answer = server.ask(&hello.to_string());
        assert!(answer["result"]["serverInfo"].is_object(), "{answer}");
        server.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        server
    }

    #[track_caller]
    fn done(answer: &Value) -> &Value {
        assert_eq!(answer["result"]["isError"], false, "{answer}");
        &answer["result"]["structuredContent"]
    }

    #[test]
    fn two_servers_share_a_file_and_the_second_takes_over() {
        let sandbox = filled();
        let mut first = serve(&sandbox);
        let mut second = serve(&sandbox);
        let tea = first.ask(&call(1, "add_memory", json!({ "text": "Ann moved to Ghent" })));
        let tea = done(&tea)["id"].clone();
        let tools = second.ask(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#);
        assert_eq!(tools["result"]["tools"].as_array().unwrap().len(), 20, "{tools}");
        let found = second.ask(&call(2, "search_memories", json!({ "query": "Where does Ann live? Ghent" })));
        assert!(done(&found).to_string().contains("Ann moved to Ghent"), "{found}");
        let refused = second.ask(&call(3, "add_memory", json!({ "texts": 1 })));
        assert_eq!(refused["result"]["isError"], true, "{refused}");
        let rain = second.ask(&call(4, "add_memory", json!({ "text": "It rains in Ghent" })));
        let rain = done(&rain)["id"].as_str().unwrap().to_owned();
        let events = sandbox.document(&["history", &rain])["events"].clone();
        assert_eq!(events[0]["actor"], "tool", "{events}");
        // The owner dies; the second goes on with the next call, and answers the command line.
        first.kill();
        let got = second.ask(&call(5, "get_memory", json!({ "id": tea })));
        assert!(done(&got).to_string().contains("Ann moved to Ghent"), "{got}");
        assert_eq!(sandbox.document(&["add", "It is over"])["decision"], "stored");
        assert_eq!(sandbox.run(&["--no-share", "list"]).error().0, "Locked");
        // A third finds the second; the second hangs up, and the third goes on.
        let mut third = serve(&sandbox);
        second.end();
        done(&third.ask(&call(1, "add_memory", json!({ "text": "The third has it" }))));
        third.end();
        has_whole(&sandbox, 7);
    }

    /// The face of the reference memory server, with its words, at the owner and at another process.
    #[test]
    fn a_knowledge_graph_is_answered_by_the_owner_too() {
        let sandbox = filled();
        let first = serve(&sandbox);
        let mut second = serve_with(&sandbox, &["--compat", "server-memory"]);
        let tools = second.ask(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#);
        assert_eq!(tools["result"]["tools"].as_array().unwrap().len(), 9, "{tools}");
        let ann = json!({ "name": "Ann", "entityType": "person", "observations": ["lives in Ghent"] });
        let made = second.ask(&call(2, "create_entities", json!({ "entities": [ann] })));
        let text = made["result"]["content"][0]["text"].as_str().unwrap();
        assert!(text.starts_with("[\n  {\n    \"name\": \"Ann\","), "{made}");
        assert_eq!(made["result"]["isError"], Value::Null, "{made}");
        let found = sandbox.document(&["search", "Ghent"]);
        assert_eq!(found["hits"][0]["text"], "Ann: lives in Ghent", "{found}");
        // The owner dies, and the graph is answered here.
        first.kill();
        let read = second.ask(&call(3, "read_graph", json!({})));
        assert_eq!(read["result"]["structuredContent"], json!({ "entities": [ann], "relations": [] }));
        let nobody = json!({ "observations": [{ "entityName": "Bob", "contents": ["walks"] }] });
        let refused = second.ask(&call(4, "add_observations", nobody));
        let told = json!({ "content": [{ "type": "text", "text": "Entity with name Bob not found" }], "isError": true });
        assert_eq!(refused["result"], told);
        let unknown = second.ask(&call(5, "add_memory", json!({ "text": "x" })));
        let text = &unknown["result"]["content"][0]["text"];
        assert_eq!(text, "MCP error -32602: Tool add_memory not found");
        let wrong = second.ask(&call(6, "open_nodes", json!({ "names": "Ann" })));
        let text = wrong["result"]["content"][0]["text"].as_str().unwrap();
        assert!(
            text.starts_with(
                "MCP error -32602: Input validation error: Invalid arguments for tool open_nodes: names"
            ),
            "{text}"
        );
        let page = second.ask(r#"{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{"cursor":"x"}}"#);
        assert_eq!(page["error"]["code"], -32_602, "{page}");
        second.end();
        has_whole(&sandbox, 5);
    }

    /// A question that could not be sent any more was not begun, so it is put again: nobody has to look whether it was done.
    #[test]
    fn a_write_after_the_death_of_an_idle_owner_is_done() {
        let sandbox = filled();
        let first = serve(&sandbox);
        let mut others = [serve(&sandbox), serve(&sandbox)];
        for (at, other) in (0..).zip(&mut others) {
            done(&other.ask(&call(1, "add_memory", json!({ "text": format!("before, by {at}") }))));
        }
        first.kill();
        for (at, other) in (0..).zip(&mut others) {
            done(&other.ask(&call(2, "add_memory", json!({ "text": format!("after, by {at}") }))));
        }
        others.into_iter().for_each(Session::end);
        has_whole(&sandbox, 7);
    }

    /// A client that takes a read back hears nothing more of it, and the owner is not asked for it again and again.
    #[test]
    fn a_read_that_is_cancelled_is_asked_for_once() {
        let sandbox = filled();
        let first = serve(&sandbox);
        let mut second = serve_with(&sandbox, &["--summarizer", "echo run >> runs; sleep 1; false"]);
        let id = sandbox.document(&["get", "a"])["id"].clone();
        second.send(&call(1, "memory_summarize", json!({ "source_ids": [id] })));
        while !sandbox.path("runs").exists() {
            std::thread::sleep(Duration::from_millis(10));
        }
        second.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#);
        std::thread::sleep(Duration::from_millis(600));
        assert_eq!(std::fs::read_to_string(sandbox.path("runs")).unwrap(), "run\n");
        assert_eq!(second.ask(&call(2, "memory_stats", json!({})))["id"], 2);
        second.end();
        first.end();
        has_whole(&sandbox, 3);
    }

    /// The owner goes on with a write that is cancelled, so the server that asked for it waits for its end before the next.
    #[test]
    fn a_cancelled_write_at_another_process_is_not_overtaken() {
        let sandbox = Sandbox::new();
        sandbox.document(&["init"]);
        let first = serve(&sandbox);
        let mut second = serve(&sandbox);
        let long = (0..80_000).map(|at| format!("word{at} ")).collect::<String>();
        for id in [1, 3, 5] {
            second.send(&call(id, "add_memory", json!({ "key": "k", "text": format!("old {id} {long}") })));
            std::thread::sleep(Duration::from_millis(5));
            let cancelled = json!({ "requestId": id });
            let cancel =
                json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled });
            second.send(&cancel.to_string());
            done(&second.ask(&call(
                id + 1,
                "add_memory",
                json!({ "key": "k", "text": format!("new {id}") }),
            )));
            std::thread::sleep(Duration::from_millis(300));
            assert_eq!(sandbox.document(&["get", "k"])["text"], format!("new {id}"));
        }
        second.end();
        first.end();
    }

    #[test]
    fn a_server_beside_a_command_does_not_take_the_file_from_it() {
        let sandbox = filled();
        let mut owner = Session::owner(&sandbox);
        let mut server = serve(&sandbox);
        for at in 0..20 {
            done(&server.ask(&call(at, "add_memory", json!({ "text": format!("server says {at}") }))));
            owner.ask(r#"{"type":"tool_call","name":"get_memory_stats","args":{}}"#);
        }
        let other = ["--policy", "m.toml", "serve", "--mcp"];
        sandbox.write("m.toml", "gc.age_min = \"40d\"\n");
        let (kind, message) = sandbox.run(&other).error();
        assert_eq!(kind, "Conflict");
        assert!(message.contains("--policy: must be as in the process"), "{message}");
        server.end();
        owner.end();
        has_whole(&sandbox, 23);
    }
}
