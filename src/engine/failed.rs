//! What is told of a pass that failed?

use serde::{Serialize, Serializer};

use crate::error::{Error, ErrorKind};
use crate::hygiene::PassReport;
use crate::model::Pass;

/// A pass that failed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FailedPass {
    /// The pass. None: a sweep could not begin, or its summaries could not.
    pub pass: Option<Pass>,
    /// The kind of its error, for deciding what to do; in JSON its name.
    #[serde(serialize_with = "by_name")]
    pub kind: ErrorKind,
    /// What went wrong.
    pub why: String,
    /// What to do next, as [`Error::hint`] says it.
    pub hint: &'static str,
    /// What the pass had done before, in this namespace and in others, which stands. None: nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub done: Option<PassReport>,
}

impl FailedPass {
    /// Of a pass that has come as far as its report says.
    pub(super) fn new(report: PassReport, why: &Error) -> Self {
        let pass = Some(report.pass);
        FailedPass {
            pass,
            done: Some(report).filter(|report| report.changed > 0),
            ..FailedPass::unbegun(why)
        }
    }

    /// Of what could not begin.
    pub(crate) fn unbegun(why: &Error) -> Self {
        FailedPass { pass: None, kind: why.kind(), why: why.to_string(), hint: why.hint(), done: None }
    }
}

fn by_name<S: Serializer>(kind: &ErrorKind, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(kind)
}
