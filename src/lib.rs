#![doc = "An embedded memory database for AI agents."]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod error;
pub mod limits;
pub mod vector;

pub use error::{Error, ErrorKind, Result};
