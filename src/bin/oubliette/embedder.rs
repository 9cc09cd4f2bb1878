//! Which embedder a call works with.

use oubliette::embed::{Embedder, HashEmbedder, StaticMini};
use oubliette::{Database, Error, Result};

/// The embedders that can be named, as the help shows them.
pub(crate) const NAMES: &str =
    "static-mini, hash, minilm:FOLDER, minilm-int8:FOLDER, openai:MODEL:DIM or none";

/// The embedder of a name; none for `none`.
pub(crate) fn named(name: &str) -> Result<Option<Box<dyn Embedder>>> {
    Ok(match name.split_once(':').unwrap_or((name, "")) {
        ("none", "") => None,
        ("static-mini", "") => Some(Box::new(StaticMini::new())),
        ("hash", "") => Some(Box::new(HashEmbedder::new())),
        ("minilm", folder) if !folder.is_empty() => Some(minilm(folder, false)?),
        ("minilm-int8", folder) if !folder.is_empty() => Some(minilm(folder, true)?),
        ("openai", model) if !model.is_empty() => Some(openai(model)?),
        _ => return Err(Error::invalid("embedder", format!("must be {NAMES}"), name)),
    })
}

#[cfg(feature = "minilm")]
fn minilm(folder: &str, int8: bool) -> Result<Box<dyn Embedder>> {
    use oubliette::embed::{MiniLm, Precision};
    let precision = if int8 { Precision::Int8 } else { Precision::F32 };
    Ok(Box::new(MiniLm::open(folder, precision)?))
}

#[cfg(not(feature = "minilm"))]
fn minilm(_folder: &str, _int8: bool) -> Result<Box<dyn Embedder>> {
    Err(Error::invalid("embedder", "must be one that this build has: it was made without minilm", "minilm"))
}

#[cfg(feature = "openai")]
fn openai(model: &str) -> Result<Box<dyn Embedder>> {
    use oubliette::embed::{OpenAiEmbedder, OpenAiOptions};
    let (model, dim) = model
        .rsplit_once(':')
        .and_then(|(model, dim)| Some((model, dim.parse().ok()?)))
        .ok_or_else(|| Error::invalid("embedder", "must be openai:MODEL:DIM", model))?;
    let from_env = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let base = from_env("OPENAI_BASE_URL").unwrap_or_else(|| "https://api.openai.com/v1".to_owned());
    let mut options = OpenAiOptions::new(base, model, dim);
    options.api_key = from_env("OPENAI_API_KEY");
    Ok(Box::new(OpenAiEmbedder::new(options)?))
}

#[cfg(not(feature = "openai"))]
fn openai(_model: &str) -> Result<Box<dyn Embedder>> {
    Err(Error::invalid("embedder", "must be one that this build has: it was made without openai", "openai"))
}

/// Gives a database its embedder: the one that was named, else the one that its vectors are of, else for a database
/// without vectors `static-mini`, which gives way to vectors that a caller brings.
pub(crate) fn attach(database: &Database, name: Option<&str>) -> Result<()> {
    if let Some(name) = name {
        database.detach_embedder();
        return named(name)?.map_or(Ok(()), |embedder| database.use_embedder(embedder));
    }
    let Some(space) = database.embedding_space()? else {
        return database.suggest_embedder(StaticMini::new());
    };
    // The library attaches its own embedder again.
    let hash = HashEmbedder::new();
    if hash.id() == space.name { database.use_embedder(hash) } else { Ok(()) }
}
