//! The folder of a model: its files, their largest sizes, and what they say besides the weights.

use super::precision::Precision;
use crate::embedder::wordpiece::WordPiece;
use crate::error::{Error, Result};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

/// The largest file of weights: eleven times that of the model.
const WEIGHTS_BYTES_MAX: u64 = 1 << 30;
/// The largest other file.
const TEXT_BYTES_MAX: u64 = 64 << 20;

pub(super) const WEIGHTS: &str = "model.safetensors";
const VOCABULARY: &str = "vocab.txt";
const TOKENIZER: &str = "tokenizer.json";
pub(super) const CONFIG: &str = "config.json";

/// What `config.json` says and the shapes of tensors do not. Without the file, the values are those of
/// all-MiniLM-L6-v2.
#[derive(Debug, Deserialize)]
pub(super) struct Config {
    pub(super) num_hidden_layers: Option<usize>,
    #[serde(default = "heads")]
    pub(super) num_attention_heads: usize,
    #[serde(default = "layer_norm_eps")]
    pub(super) layer_norm_eps: f32,
    #[serde(default = "hidden_act")]
    hidden_act: String,
    #[serde(default = "position_embedding_type")]
    position_embedding_type: String,
}

fn heads() -> usize {
    12
}

fn layer_norm_eps() -> f32 {
    1e-12
}

fn hidden_act() -> String {
    "gelu".to_owned()
}

fn position_embedding_type() -> String {
    "absolute".to_owned()
}

/// The parts of `tokenizer.json` that must fit the tokenizer of this model.
#[derive(Deserialize)]
struct Tokenizer {
    normalizer: Normalizer,
    model: TokenModel,
}

#[derive(Deserialize)]
struct Normalizer {
    r#type: String,
    lowercase: bool,
}

#[derive(Deserialize)]
struct TokenModel {
    /// Old versions of the library leave this member out.
    r#type: Option<String>,
    vocab: BTreeMap<String, u32>,
}

pub(super) struct Folder<'a>(pub(super) &'a Path);

impl Folder<'_> {
    pub(super) fn weights(&self) -> Result<Vec<u8>> {
        self.read(WEIGHTS, WEIGHTS_BYTES_MAX)?.ok_or_else(|| self.missing(WEIGHTS))
    }

    pub(super) fn config(&self) -> Result<Config> {
        let bytes = self.read(CONFIG, TEXT_BYTES_MAX)?;
        let config: Config = parse(CONFIG, bytes.as_deref().unwrap_or(b"{}"))?;
        let (act, places) = (&config.hidden_act, &config.position_embedding_type);
        if act != "gelu" {
            return Err(Error::invalid(CONFIG, "`hidden_act` must be gelu", act));
        }
        if places != "absolute" {
            return Err(Error::invalid(CONFIG, "`position_embedding_type` must be absolute", places));
        }
        Ok(config)
    }

    pub(super) fn pieces(&self) -> Result<WordPiece> {
        if let Some(bytes) = self.read(VOCABULARY, TEXT_BYTES_MAX)? {
            let text = std::str::from_utf8(&bytes)
                .map_err(|error| Error::invalid(VOCABULARY, "must be UTF-8", error))?;
            return WordPiece::from_vocabulary(text);
        }
        let bytes = self.read(TOKENIZER, TEXT_BYTES_MAX)?.ok_or_else(|| self.missing(VOCABULARY))?;
        let Tokenizer { normalizer, model } = parse(TOKENIZER, &bytes)?;
        if !normalizer.lowercase || normalizer.r#type != "BertNormalizer" {
            return Err(Error::invalid(TOKENIZER, "must be uncased: BertNormalizer", normalizer.r#type));
        }
        match model.r#type.as_deref() {
            None | Some("WordPiece") => {
                let room = model.vocab.keys().map(String::len).sum();
                WordPiece::from_tokens(model.vocab.iter().map(|(token, id)| (token.as_str(), *id)), room)
            }
            Some(other) => Err(Error::invalid(TOKENIZER, "must be of type WordPiece", other)),
        }
    }

    /// Reads a file of at most `bytes_max`; `None` if there is no file of that name.
    fn read(&self, name: &'static str, bytes_max: u64) -> Result<Option<Vec<u8>>> {
        let path = self.0.join(name);
        let mut bytes = Vec::new();
        let read = File::open(&path).and_then(|file| file.take(bytes_max + 1).read_to_end(&mut bytes));
        match read {
            Ok(_) if bytes.len() as u64 > bytes_max => {
                Err(Error::invalid(name, format!("must have at most {bytes_max} bytes"), "more"))
            }
            Ok(_) => Ok(Some(bytes)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(source) => Err(Error::io("read", path, source)),
        }
    }

    fn missing(&self, name: &str) -> Error {
        Error::io("read", self.0.join(name), ErrorKind::NotFound.into())
    }
}

fn parse<'a, T: Deserialize<'a>>(name: &str, bytes: &'a [u8]) -> Result<T> {
    serde_json::from_slice(bytes).map_err(|error| Error::invalid(name, error.to_string(), "this file"))
}

/// The id of the embedding space.
pub(super) fn id(weights: &[u8], precision: Precision) -> String {
    let hash = Sha256::digest(weights);
    let hex: String = hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    let suffix = match precision {
        Precision::F32 => "",
        Precision::Int8 => "-i8",
    };
    format!("all-MiniLM-L6-v2@{hex}{suffix}")
}
