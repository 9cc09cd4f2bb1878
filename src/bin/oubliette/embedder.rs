//! Which embedder a call works with.

use std::path::Path;

use oubliette::embed::{Embedder, HashEmbedder, StaticMini};
use oubliette::{Database, Error, ErrorKind, Result};

use crate::caller::Caller;

/// Makes an embedder of its argument, for a caller.
type Make = fn(&str, &Caller) -> Result<Box<dyn Embedder>>;

/// The embedders that can be named: the name, the argument after a colon as the help shows it, and the constructor.
const EMBEDDERS: &[(&str, &str, Make)] = &[
    ("static-mini", "", |_, _| Ok(Box::new(StaticMini::new()))),
    ("hash", "", |_, _| Ok(Box::new(HashEmbedder::new()))),
    ("minilm", "FOLDER", |folder, caller| minilm(&caller.folder().join(folder), false)),
    ("minilm-int8", "FOLDER", |folder, caller| minilm(&caller.folder().join(folder), true)),
    ("openai", "MODEL:DIM", openai),
];

/// What a name may be, for the help and for the refusal of another name; `last` stands after the embedders.
fn names(last: Option<&str>) -> String {
    let shown = EMBEDDERS.iter().map(|(name, argument, _)| match *argument {
        "" => (*name).to_owned(),
        argument => format!("{name}:{argument}"),
    });
    let mut names: Vec<String> = shown.chain(last.map(str::to_owned)).collect();
    let last = names.pop().unwrap_or_default();
    format!("{} or {last}", names.join(", "))
}

/// The names for which there is an embedder.
pub(crate) fn named_help() -> String {
    names(None)
}

/// The help of the option that names the embedder of a call.
pub(crate) fn option_help() -> String {
    format!(
        "Embedder of texts: {} [default: $OUBLIETTE_EMBEDDER, then the config file, then the embedder of the vectors in \
         the file, then static-mini]",
        names(Some("none"))
    )
}

/// The name from another folder: that of a model in a folder has the whole path.
///
/// # Errors
/// `Io` where the present folder is gone.
#[cfg(feature = "mcp")]
pub(crate) fn placed(name: &str) -> Result<String> {
    match name.split_once(':') {
        Some((first @ ("minilm" | "minilm-int8"), folder)) => {
            let whole = std::path::absolute(folder).map_err(|source| Error::Io {
                action: "find",
                path: folder.into(),
                source,
            })?;
            Ok(format!("{first}:{}", whole.display()))
        }
        _ => Ok(name.to_owned()),
    }
}

/// The embedder of a name; none for `none`.
pub(crate) fn named(name: &str, caller: &Caller) -> Result<Option<Box<dyn Embedder>>> {
    let (first, given) = name.split_once(':').unwrap_or((name, ""));
    if (first, given) == ("none", "") {
        return Ok(None);
    }
    let row = EMBEDDERS
        .iter()
        .find(|(name, argument, _)| *name == first && argument.is_empty() == given.is_empty());
    let refused = || Error::invalid("embedder", format!("must be {}", names(Some("none"))), name);
    row.ok_or_else(refused).and_then(|(_, _, make)| make(given, caller)).map(Some)
}

#[cfg(feature = "minilm")]
fn minilm(folder: &Path, int8: bool) -> Result<Box<dyn Embedder>> {
    use oubliette::embed::{MiniLm, Precision};
    let precision = if int8 { Precision::Int8 } else { Precision::F32 };
    Ok(Box::new(MiniLm::open(folder, precision)?))
}

#[cfg(not(feature = "minilm"))]
fn minilm(_folder: &Path, _int8: bool) -> Result<Box<dyn Embedder>> {
    Err(Error::invalid("embedder", "must be one that this build has: it was made without minilm", "minilm"))
}

#[cfg(feature = "openai")]
fn openai(model: &str, caller: &Caller) -> Result<Box<dyn Embedder>> {
    use oubliette::embed::{OpenAiEmbedder, OpenAiOptions};
    let (model, dim) = model
        .rsplit_once(':')
        .and_then(|(model, dim)| Some((model, dim.parse().ok()?)))
        .ok_or_else(|| Error::invalid("embedder", "must be openai:MODEL:DIM", model))?;
    let (base_url, api_key) = openai_server(caller);
    let mut options = OpenAiOptions::new(base_url, model, dim);
    options.api_key = api_key;
    Ok(Box::new(OpenAiEmbedder::new(options)?))
}

/// The address and the key of the server that answers like OpenAI's.
#[cfg(feature = "openai")]
pub(crate) fn openai_server(caller: &Caller) -> (String, Option<String>) {
    let from_env = |name: &str| caller.variable(name)?.into_string().ok().filter(|value| !value.is_empty());
    let base_url = from_env("OPENAI_BASE_URL").unwrap_or_else(|| "https://api.openai.com/v1".to_owned());
    (base_url, from_env("OPENAI_API_KEY"))
}

#[cfg(not(feature = "openai"))]
fn openai(_model: &str, _caller: &Caller) -> Result<Box<dyn Embedder>> {
    Err(Error::invalid("embedder", "must be one that this build has: it was made without openai", "openai"))
}

/// Gives a database its embedder: the one that was named, else the one that its vectors are of, else for a database
/// without vectors `static-mini`, which gives way to vectors that a caller brings.
pub(crate) fn attach(database: &Database, name: Option<&str>, caller: &Caller) -> Result<()> {
    if let Some(name) = name {
        database.detach_embedder();
        return named(name, caller)?.map_or(Ok(()), |embedder| database.use_embedder(embedder));
    }
    let space = match database.embedding_space() {
        // Whoever needs a vector is told; texts can be read without.
        Err(why) if why.kind() == ErrorKind::Corrupted => return Ok(()),
        space => space?,
    };
    let Some(space) = space else { return database.suggest_embedder(StaticMini::new()) };
    // The library attaches its own embedder again.
    let hash = HashEmbedder::new();
    if hash.id() == space.name { database.use_embedder(hash) } else { Ok(()) }
}

/// Whether [`attach`] without a name gives a database the embedder of this name.
pub(crate) fn is_attached(database: &Database, name: &str, caller: &Caller) -> Result<bool> {
    let Some(asked) = named(name, caller)? else { return Ok(false) };
    let space = database.embedding_space()?;
    Ok(match &space {
        Some(space) => space.name == asked.id(),
        None => asked.id() == StaticMini::new().id(),
    })
}
