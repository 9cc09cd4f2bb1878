//! Every public function and method shows an example that is compiled as a test.
//!
//! Public is what `src/lib.rs` hands out: the names of its `pub use` lines, and those of its public modules. A method
//! is found by the `impl` block around it, an example by the fence in the doc comment.

use super::source::{Finding, Source};
use std::collections::BTreeSet;

/// What the crate hands out.
#[derive(Default)]
pub(crate) struct Door {
    /// The room and the name of each type and function.
    names: BTreeSet<(String, String)>,
    /// The files of public modules.
    modules: BTreeSet<String>,
}

impl Door {
    /// Reads `src/lib.rs` and the public modules below it.
    pub(crate) fn of(files: &[Source]) -> Door {
        let mut door = Door::default();
        let mut waiting = vec!["src/lib.rs".to_owned()];
        while let Some(path) = waiting.pop() {
            let Some(file) = files.iter().find(|file| file.path == path) else { continue };
            if !door.modules.insert(path) {
                continue;
            }
            // The seam of the project's own tests comes last in `lib.rs`, and is no part of what users read.
            let end = file.find("pub mod faults").first().copied().unwrap_or(file.tokens.len());
            for at in file.find("pub use").into_iter().filter(|at| *at < end) {
                door.read_use(file, at + 2, &mut waiting);
            }
            for at in file.find("pub mod").into_iter().filter(|at| *at < end && file.token(at + 3) == ";") {
                waiting.extend(paths(file, file.token(at + 2)));
            }
        }
        door
    }

    /// The names of a `pub use` line whose path begins at `at`; a glob hands out a whole module.
    fn read_use(&mut self, file: &Source, at: usize, waiting: &mut Vec<String>) {
        let words: Vec<&str> = (at..).map(|at| file.token(at)).take_while(|word| *word != ";").collect();
        match words[..] {
            ["crate", ":", ":", room, .., "*"] => {
                waiting.extend([format!("src/{room}.rs"), format!("src/{room}/mod.rs")]);
            }
            [module, .., "*"] => waiting.extend(paths(file, module)),
            _ => {}
        }
        // `crate::room::…` names the room, and so does the first part of a path in `lib.rs`.
        let room = match words[..] {
            ["crate", ":", ":", room, ..] => room,
            _ => file.room().unwrap_or(words[0]),
        };
        self.names.extend(words.iter().map(|word| (room.to_owned(), (*word).to_owned())));
    }

    fn hands_out(&self, file: &Source, name: &str) -> bool {
        let room = file.room().unwrap_or_default();
        self.names.contains(&(room.to_owned(), name.to_owned()))
    }
}

/// Where the module `name` of a file may stand.
fn paths(file: &Source, name: &str) -> [String; 2] {
    let own = file.path.trim_end_matches(".rs").trim_end_matches("/mod").trim_end_matches("/lib");
    [format!("{own}/{name}.rs"), format!("{own}/{name}/mod.rs")]
}

/// The public functions of a file without an example. Counts the public functions seen.
pub(crate) fn without_example(file: &Source, door: &Door, seen: &mut usize) -> Vec<Finding> {
    let in_module = door.modules.contains(&file.path);
    let (mut found, mut about, mut around) = (Vec::new(), Vec::new(), None);
    for (line, number) in file.text.lines().zip(1..) {
        let (text, indent) = (line.trim(), line.len() - line.trim_start().len());
        if text == "}" && around.as_ref().is_some_and(|(open, _)| *open == indent) {
            around = None;
        }
        if let Some(of) = implemented(text) {
            // A macro makes methods for what its caller names; the methods are public as they say.
            let is_public = of.is_some_and(|of| of.starts_with('$') || in_module || door.hands_out(file, of));
            around = Some((indent, is_public));
        }
        if let Some(name) = public_function(text) {
            let is_public = match around {
                Some((_, is_public)) => is_public,
                None => in_module || door.hands_out(file, name),
            };
            let has = |what: &str| about.iter().any(|line: &&str| line.contains(what));
            if is_public && !has("feature = \"faults\"") {
                *seen += 1;
                if !["```", "#[doc = $example]", "#[doc = example!("].iter().any(|mark| has(mark)) {
                    found.push(file.finding(number, format!("`{name}` is public and shows no example")));
                }
            }
        }
        match text.starts_with("///") || text.starts_with("#[") {
            true => about.push(text),
            false if text.is_empty() || text.ends_with(['{', '}', ';']) => about.clear(),
            false => {}
        }
    }
    found
}

/// The name of the type whose methods the `impl` block has that begins here; none for an implementation of a trait.
fn implemented(line: &str) -> Option<Option<&str>> {
    let rest = line.strip_prefix("impl").filter(|rest| rest.starts_with([' ', '<']))?;
    if rest.contains(" for ") {
        return Some(None);
    }
    // The parameters of the block stand before the first space outside of angle brackets.
    let mut depth = 0;
    let start = rest.find(|c: char| {
        depth += i32::from(c == '<') - i32::from(c == '>');
        c == ' ' && depth == 0
    })?;
    let of = rest[start + 1..].split(['<', ' ']).next()?;
    Some(of.rsplit("::").next())
}

/// The name of the public function that begins here.
fn public_function(line: &str) -> Option<&str> {
    let mut rest = line.strip_prefix("pub ")?;
    for word in ["const ", "async ", "unsafe "] {
        rest = rest.strip_prefix(word).unwrap_or(rest);
    }
    rest.strip_prefix("fn ")?.split(['(', '<']).next()
}
