//! Links of pages: each leads to a file and a heading that are there, also in the documentation of the crate.

use super::source::{Finding, Source};

/// A link of a page to another page or file, or the definition of one.
struct Link<'a> {
    line: usize,
    target: &'a str,
    is_definition: bool,
}

/// The links of a page that lead to no other machine; what stands in a block of code is none.
fn links(page: &Source) -> Vec<Link<'_>> {
    let (mut found, mut in_code) = (Vec::new(), false);
    for (text, line) in page.text.lines().zip(1..) {
        in_code ^= text.starts_with("```");
        if in_code {
            continue;
        }
        if let Some((_, target)) = definition(text) {
            found.push(Link { line, target, is_definition: true });
        }
        let inline = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        found.extend(inline.map(|target| Link { line, target, is_definition: false }));
    }
    found.retain(|link| !link.target.contains("://"));
    found
}

/// The label and the target of a line that defines a link.
fn definition(text: &str) -> Option<(&str, &str)> {
    text.strip_prefix('[')?.split_once("]: ")
}

/// Links to files or headings that are not there.
pub(crate) fn dead_links(page: &Source, files: &[Source], exists: impl Fn(&str) -> bool) -> Vec<Finding> {
    let mut found = Vec::new();
    for Link { line, target, .. } in links(page) {
        let (path, heading) = target.split_once('#').unwrap_or((target, ""));
        let path = if path.is_empty() { page.path.clone() } else { joined(&page.path, path) };
        if !exists(&path) {
            found.push(page.finding(line, format!("there is no `{path}`")));
        } else if !heading.is_empty() && !files.iter().any(|file| file.path == path && has(file, heading)) {
            found.push(page.finding(line, format!("`{path}` has no heading `{heading}`")));
        }
    }
    found
}

/// The path of `target`, which stands in the file `from`.
fn joined(from: &str, target: &str) -> String {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

fn has(page: &Source, heading: &str) -> bool {
    let headings =
        page.text.lines().filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#'));
    headings.map(anchor).any(|one| one == heading)
}

/// The name by which a link finds a heading.
fn anchor(heading: &str) -> String {
    let letters = heading.trim().to_lowercase();
    letters
        .chars()
        .filter(|one| one.is_alphanumeric() || " -_".contains(*one))
        .map(|one| if one == ' ' { '-' } else { one })
        .collect()
}

/// Links of a page of the crate's documentation that lead nowhere there: a link within the repository stands in a definition
/// of the page, and `crate_root` has one of the same label before it.
pub(crate) fn lost_links(page: &Source, crate_root: &Source) -> Vec<Finding> {
    let mut found = Vec::new();
    let own = links(page).into_iter().filter(|link| !link.target.starts_with('#'));
    for Link { line, target, is_definition } in own {
        if !is_definition {
            found.push(page.finding(line, format!("define the link to `{target}` at the end of the page")));
        } else if !crate_root.text.contains(&format!("[{target}]: ")) {
            found.push(page.finding(line, format!("src/lib.rs does not say where `{target}` is")));
        }
    }
    found
}
