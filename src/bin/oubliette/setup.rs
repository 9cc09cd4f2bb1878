//! `setup`: the lines that make a client of the Model Context Protocol use the server. Nothing is written.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use oubliette::{Error, Result};
use serde_json::json;

use crate::arguments::{Global, McpClient, SetupOptions};
use crate::embedder;
use crate::output::{self, Done, Output};
use crate::place::Place;

/// Name of the server in the files of clients.
const NAME: &str = "oubliette";

/// `setup`.
pub(crate) fn run(options: &SetupOptions, global: &Global, place: &Place, output: Output<'_>) -> Done {
    let io = |source| Error::Io { action: "find", path: "the program or the database".into(), source };
    let program = program().map_err(io)?;
    let file = std::path::absolute(place.path()?).map_err(io)?;
    let namespace = place.namespace()?;
    let (program, file) = (text(&program)?, text(&file)?);
    let asked = asked(global)?;
    let mut args = vec!["--db", file, "--namespace", namespace.as_str()];
    args.extend(asked.iter().map(String::as_str));
    args.extend(["serve", "--mcp"]);
    let (lines, place) = match options.client {
        McpClient::Claude => (of_shell(program, &args), "a terminal"),
        McpClient::Cursor => (of_json(program, &args), "~/.cursor/mcp.json"),
        McpClient::Codex => (of_toml(program, &args), "~/.codex/config.toml"),
    };
    if output.json {
        return output.document(&json!({ "for": place, "lines": lines }));
    }
    output.remark(&format!("For {place}:"));
    output.line(&output::printable(&lines))
}

/// The program by the name that was typed, where that leads to it: an upgrade may put a new program behind the same link.
fn program() -> std::io::Result<PathBuf> {
    let running = std::env::current_exe()?;
    let Some(typed) = std::env::args_os().next().map(PathBuf::from) else { return Ok(running) };
    let folders = match typed.components().count() {
        1 => std::env::var_os("PATH").unwrap_or_default(),
        _ => OsString::from("."),
    };
    let mut named = std::env::split_paths(&folders).map(|folder| folder.join(&typed));
    let found = named.find(|path| path.canonicalize().is_ok_and(|path| path == running));
    found.map_or(Ok(running), std::path::absolute)
}

/// What else was asked of the database, for the server to be asked the same. A client starts the server in a folder of its own.
fn asked(global: &Global) -> Result<Vec<String>> {
    let mut all = Vec::new();
    for (option, file) in [("--policy", &global.policy), ("--instructions", &global.instructions)] {
        if let Some(file) = file {
            let io = |source| Error::Io { action: "find", path: file.clone(), source };
            all.extend([option.to_owned(), text(&std::path::absolute(file).map_err(io)?)?.to_owned()]);
        }
    }
    let embedder = global.embedder.as_deref().map(embedder::placed).transpose()?;
    let durability = global.durability.map(|durability| durability.as_str().to_owned());
    for (option, value) in
        [("--embedder", &embedder), ("--durability", &durability), ("--wait", &global.wait)]
    {
        all.extend(value.iter().flat_map(|value| [option.to_owned(), value.clone()]));
    }
    let flags =
        [("--read-only", global.read_only), ("--shared", global.shared), ("--no-share", global.no_share)];
    all.extend(flags.iter().filter(|(_, is_given)| *is_given).map(|(flag, _)| (*flag).to_owned()));
    Ok(all)
}

fn text(path: &Path) -> Result<&str> {
    path.to_str().ok_or_else(|| Error::invalid("path", "must be UTF-8", path.display()))
}

/// A command of a POSIX shell.
fn of_shell(program: &str, args: &[&str]) -> String {
    let quoted = |word: &str| format!("'{}'", word.replace('\'', "'\\''"));
    let words: Vec<String> = std::iter::once(&program).chain(args).map(|word| quoted(word)).collect();
    format!("claude mcp add {NAME} -- {}", words.join(" "))
}

fn of_json(program: &str, args: &[&str]) -> String {
    format!("{:#}", json!({ "mcpServers": { NAME: { "command": program, "args": args } } }))
}

/// A basic string of TOML is written as one of JSON.
fn of_toml(program: &str, args: &[&str]) -> String {
    format!("[mcp_servers.{NAME}]\ncommand = {}\nargs = {}", json!(program), json!(args))
}

#[cfg(test)]
mod tests {
    use super::{of_json, of_shell, of_toml};

    #[test]
    fn each_client_reads_the_words_as_they_were() {
        let (program, args) = ("/bin/it's \"here\"", ["--db", "a b.oub", "serve", "--mcp"]);
        let read: serde_json::Value = serde_json::from_str(&of_json(program, &args)).unwrap();
        assert_eq!(read["mcpServers"]["oubliette"]["command"], program);
        let read: toml::Table = of_toml(program, &args).parse().unwrap();
        let server = &read["mcp_servers"]["oubliette"];
        assert_eq!(
            (server["command"].as_str(), server["args"][1].as_str()),
            (Some(program), Some("a b.oub"))
        );
        let shell = of_shell("it's", &args);
        assert_eq!(shell, r"claude mcp add oubliette -- 'it'\''s' '--db' 'a b.oub' 'serve' '--mcp'");
    }
}
