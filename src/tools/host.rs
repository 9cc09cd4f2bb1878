//! What the host of a language model binds before a tool is called: the namespace, and who writes summaries.

use std::sync::Arc;

use crate::engine::Namespace;
use crate::summary::Summarizer;

/// Where the tools work.
#[derive(Clone)]
pub(super) struct Host {
    /// The one namespace that a call can reach.
    pub(super) namespace: Namespace,
    /// Who writes summaries; none where the caller does.
    pub(super) summarizer: Option<Arc<dyn Summarizer>>,
}

/// Who waits for the answer of a call.
///
/// ```
/// use oubliette::tools::Caller;
///
/// /// Leaves after the first part.
/// struct Hasty;
///
/// impl Caller for Hasty {
///     fn progress(&self, _done: u64, _of: Option<u64>) {}
///     fn is_gone(&self) -> bool {
///         true
///     }
/// }
/// ```
pub trait Caller {
    /// So much of a long call is done, of so much where that is known.
    fn progress(&self, done: u64, of: Option<u64>);

    /// Whether nobody waits any more. A long call then ends with the part that it works on; what is done stays.
    fn is_gone(&self) -> bool;
}

/// A caller that waits to the end.
pub(super) struct Patient;

impl Caller for Patient {
    fn progress(&self, _done: u64, _of: Option<u64>) {}

    fn is_gone(&self) -> bool {
        false
    }
}
