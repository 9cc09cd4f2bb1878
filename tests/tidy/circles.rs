//! Which file imports which, and the files that import each other in a circle.
//!
//! A file imports another one if its code, tests left out, names an item that the other one defines, by a path that begins
//! with `crate`, `super`, `self` or a submodule of its own, in a `use` or in an expression. A path through a re-export is an
//! import of the file that defines the item. The re-export itself and `mod x;` are no imports. A circle is a largest set of
//! files each of which imports every other, directly or through others.

use super::source::{Finding, Source, Token};
use std::collections::{BTreeMap, BTreeSet};

/// A path by its parts.
type Path = Vec<String>;

/// What one file says of names.
#[derive(Default)]
struct Module {
    /// The place of the file in the list.
    file: usize,
    /// Names of the items at the top.
    defined: BTreeSet<String>,
    /// Each name that is re-exported, with the path behind it.
    exported: BTreeMap<String, Path>,
    /// The paths of which everything is re-exported.
    globs: Vec<Path>,
    /// The paths that the code names, with their lines.
    named: Vec<(usize, Path)>,
}

/// The modules of the crates, by their paths; the first part tells the library from the binary.
struct Modules(BTreeMap<Path, Module>);

/// The files that each file imports, by their places in the list, with the line of the first import.
type Imports = BTreeMap<usize, BTreeMap<usize, usize>>;

/// Who imports whom.
pub(crate) fn imports(files: &[Source]) -> Imports {
    let modules = Modules::of(files);
    let mut edges = Imports::new();
    for (from, module) in &modules.0 {
        for (line, path) in &module.named {
            let to = modules.absolute(from, path).and_then(|path| modules.definer(&path, 0));
            let to = to.filter(|to| to != from).and_then(|to| modules.0.get(&to));
            if let Some(to) = to {
                edges.entry(module.file).or_default().entry(to.file).or_insert(*line);
            }
        }
    }
    edges
}

/// Each import that is a part of a circle.
pub(crate) fn circles(files: &[Source], imports: &Imports) -> Vec<Finding> {
    let mut found = Vec::new();
    for (from, to, line) in
        imports.iter().flat_map(|(from, all)| all.iter().map(move |(to, line)| (from, to, line)))
    {
        if reaches(imports, *to, *from) {
            let what =
                format!("imports `{}`, which imports this file, itself or through others", files[*to].path);
            found.push(files[*from].finding(*line, what));
        }
    }
    found
}

fn reaches(imports: &Imports, from: usize, to: usize) -> bool {
    let (mut waiting, mut reached) = (vec![from], BTreeSet::new());
    while let Some(file) = waiting.pop() {
        if reached.insert(file) {
            waiting.extend(imports.get(&file).into_iter().flat_map(BTreeMap::keys));
        }
    }
    reached.contains(&to)
}

impl Modules {
    fn of(files: &[Source]) -> Self {
        let code =
            files.iter().enumerate().filter(|(_, file)| file.path.starts_with("src/") && !file.is_test());
        Modules(code.map(|(at, file)| (module_path(&file.path), Module::read(at, file))).collect())
    }

    /// The path from the root of the crate; none for what another crate defines.
    fn absolute(&self, from: &[String], path: &[String]) -> Option<Path> {
        let (first, rest) = path.split_first()?;
        let (base, rest) = match first.as_str() {
            "crate" => (&from[..1], rest),
            "self" => (from, rest),
            "super" => {
                let ups = path.iter().take_while(|part| *part == "super").count();
                (from.get(..from.len().checked_sub(ups)?)?, &path[ups..])
            }
            _ => {
                let own = [from, std::slice::from_ref(first)].concat();
                let exported = self.0.get(from).and_then(|module| module.exported.get(first));
                let leads_on = exported.is_some_and(|to| to.first() != Some(first));
                (self.0.contains_key(&own) || leads_on).then_some((from, path))?
            }
        };
        Some([base, rest].concat())
    }

    /// The module of the file that defines what an absolute path names.
    fn definer(&self, path: &[String], depth: usize) -> Option<Path> {
        let mut at = 1;
        while at < path.len() && self.0.contains_key(&path[..=at]) {
            at += 1;
        }
        let (here, rest) = path.split_at(at);
        let module = self.0.get(here)?;
        let Some(name) = rest.first().filter(|name| !module.defined.contains(*name) && depth < 16) else {
            return Some(here.to_vec());
        };
        if let Some(to) = module.exported.get(name) {
            return self.definer(&[&self.absolute(here, to)?, &rest[1..]].concat(), depth + 1);
        }
        let behind = module.globs.iter().filter_map(|glob| {
            let path = [self.absolute(here, glob)?, vec![name.clone()]].concat();
            self.definer(&path, depth + 1).filter(|found| self.0[found].defined.contains(name))
        });
        Some(behind.into_iter().next().unwrap_or_else(|| here.to_vec()))
    }
}

/// `src/a/b.rs` and `src/a/b/mod.rs` are the module `a::b` of the library.
fn module_path(path: &str) -> Path {
    let path = path.trim_start_matches("src/").trim_end_matches(".rs");
    let (root, path) = match path.strip_prefix("bin/oubliette/") {
        Some(path) => ("bin", path),
        None => ("lib", path),
    };
    let parts = path.split('/').filter(|part| !["mod", "lib", "main"].contains(part));
    std::iter::once(root).chain(parts).map(str::to_owned).collect()
}

impl Module {
    fn read(file: usize, source: &Source) -> Self {
        let mut module = Module { file, ..Module::default() };
        let tokens = without_tests(&source.tokens);
        let text = |at: usize| tokens.get(at).map_or("", |token| token.text.as_str());
        let is_path = |at: usize| text(at) == ":" && text(at + 1) == ":";
        let (mut at, mut depth) = (0, 0_usize);
        while at < tokens.len() {
            match text(at) {
                "{" => depth += 1,
                "}" => depth = depth.saturating_sub(1),
                "use" if text(at + 1) != "<" => {
                    let public = at > 0 && ["pub", ")"].contains(&text(at - 1));
                    at = module.read_use(&tokens, at + 1, &[], public);
                    continue;
                }
                "fn" | "struct" | "enum" | "trait" | "type" | "const" | "static" | "union" if depth == 0 => {
                    module.defined.insert(text(at + 1).to_owned());
                }
                "macro_rules" if depth == 0 => drop(module.defined.insert(text(at + 2).to_owned())),
                word if is_name(word) && is_path(at + 1) => {
                    let is_method = at > 0 && text(at - 1) == "." && (at < 2 || text(at - 2) != ".");
                    let (line, mut path) = (tokens[at].line, vec![word.to_owned()]);
                    while is_path(at + 1) && is_name(text(at + 3)) {
                        at += 3;
                        path.push(text(at).to_owned());
                    }
                    if !is_method {
                        module.named.push((line, path));
                    }
                }
                _ => {}
            }
            at += 1;
        }
        module
    }

    /// Reads one branch of the tree of a `use`, and returns the place of the token behind it.
    fn read_use(&mut self, tokens: &[&Token], mut at: usize, prefix: &[String], public: bool) -> usize {
        let text = |at: usize| tokens.get(at).map_or(";", |token| token.text.as_str());
        let (line, mut path) = (tokens.get(at).map_or(0, |token| token.line), prefix.to_vec());
        let mut name = String::new();
        loop {
            match text(at) {
                "{" => {
                    while text(at) != "}" && text(at) != ";" {
                        at += 1;
                        if text(at) != "}" {
                            at = self.read_use(tokens, at, &path, public);
                        }
                    }
                    return at + 1;
                }
                "," | "}" | ";" => break,
                "*" if public => {
                    self.globs.push(path);
                    return at + 1;
                }
                "as" => name = text(at + 1).to_owned(),
                "self" if !path.is_empty() => {}
                word if is_name(word) && text(at - 1) != "as" => path.push(word.to_owned()),
                _ => {}
            }
            at += 1;
        }
        let Some(last) = path.last() else { return at };
        if public {
            self.exported.insert(if name.is_empty() { last.clone() } else { name }, path);
        } else {
            self.named.push((line, path));
        }
        at
    }
}

fn is_name(word: &str) -> bool {
    word.starts_with(|c: char| c.is_alphabetic() || c == '_') && !word.contains(['"', '\''])
}

/// The tokens without the items under `#[cfg(test)]`.
fn without_tests(tokens: &[Token]) -> Vec<&Token> {
    const MARK: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];
    let (mut kept, mut at) = (Vec::new(), 0);
    while at < tokens.len() {
        if !tokens[at..].iter().map(|token| token.text.as_str()).take(MARK.len()).eq(MARK) {
            kept.push(&tokens[at]);
            at += 1;
            continue;
        }
        at += MARK.len();
        // The item ends with a semicolon or the brace of its body, outside of all brackets.
        let (mut depth, mut is_use) = (0_i32, false);
        while at < tokens.len() {
            let text = tokens[at].text.as_str();
            is_use |= text == "use" && depth == 0;
            depth += i32::from(["(", "[", "{"].contains(&text)) - i32::from([")", "]", "}"].contains(&text));
            if depth < 0 {
                break;
            }
            at += 1;
            if depth == 0 && (text == ";" || (text == "}" && !is_use)) {
                break;
            }
        }
    }
    kept
}
