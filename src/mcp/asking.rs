//! How a question is put to the desk for a client.

use std::sync::Arc;

use rmcp::RoleServer;
use rmcp::model::{
    ErrorCode, ErrorData, Implementation, PaginatedRequestParams, ProgressNotificationParam, Tool,
};
use rmcp::service::RequestContext;
use serde_json::Value;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use crate::error::Error;
use crate::mcp::desk::{Desk, Question};
use crate::mcp::turn::Turn;
use crate::tools::{Caller, ToolError};

/// Who waits for the answer of a call.
struct Waiting<F> {
    progress: UnboundedSender<(u64, Option<u64>)>,
    is_gone: F,
}

impl<F: Fn() -> bool> Caller for Waiting<F> {
    fn progress(&self, done: u64, of: Option<u64>) {
        // Nobody hears it where nobody asked.
        let _ = self.progress.send((done, of));
    }

    fn is_gone(&self) -> bool {
        (self.is_gone)()
    }
}

/// Asks on a thread that may block, and tells the client how far a long answer is. What is cancelled before the thread is at work is not
/// asked.
pub(super) async fn ask(
    desk: &Arc<dyn Desk>,
    question: Question,
    context: &RequestContext<RoleServer>,
) -> Result<Result<Value, ToolError>, ErrorData> {
    let (progress, mut told) = unbounded_channel();
    // A client that hangs up cancels what it waits for.
    let cancelled = context.ct.clone();
    let caller = Waiting { progress, is_gone: move || cancelled.is_cancelled() };
    let desk = Arc::clone(desk);
    let turn = context.extensions.get::<Arc<Turn>>().cloned();
    let mut call = tokio::task::spawn_blocking(move || {
        // The answer of a write that is cancelled does not go out, so its turn lasts as long as the work.
        let _turn = turn;
        match caller.is_gone() {
            true => {
                Err(ToolError::of_error(&Error::Unavailable { why: "the call was cancelled".to_owned() }))
            }
            false => desk.respond(question, &caller),
        }
    });
    let token = context.meta.get_progress_token();
    loop {
        tokio::select! {
            biased;
            Some((done, of)) = told.recv() => {
                let Some(token) = token.clone() else { continue };
                let mut note = ProgressNotificationParam::new(token, done as f64);
                note.total = of.map(|of| of as f64);
                // A client that has hung up is noticed where the answer is sent.
                let _ = context.peer.notify_progress(note).await;
            }
            answer = &mut call => {
                return answer.map_err(|why| ErrorData::internal_error(format!("the tool failed: {why}"), None));
            }
        }
    }
}

/// The answer to a question that can't be wrong.
pub(super) async fn read(
    desk: &Arc<dyn Desk>,
    question: Question,
    context: &RequestContext<RoleServer>,
) -> Result<Value, ErrorData> {
    let answer = ask(desk, question, context).await?;
    answer.map_err(|why| ErrorData::internal_error(why.message, None))
}

/// The tools of the desk, by their schemas.
pub(super) async fn tools(
    desk: &Arc<dyn Desk>,
    context: &RequestContext<RoleServer>,
) -> Result<Vec<Tool>, ErrorData> {
    let tools = serde_json::from_value(read(desk, Question::Tools, context).await?);
    tools.map_err(|why| ErrorData::internal_error(format!("a schema is none: {why}"), None))
}

/// What the server calls itself.
pub(super) fn own_name() -> Implementation {
    Implementation::new("oubliette", env!("CARGO_PKG_VERSION"))
}

/// Refuses a page that no answer has named: each list is one page.
///
/// # Errors
/// Invalid parameters, for any cursor.
pub(super) fn check_page(request: Option<PaginatedRequestParams>) -> Result<(), ErrorData> {
    match request.and_then(|request| request.cursor) {
        None => Ok(()),
        Some(_) => Err(ErrorData::invalid_params(
            "cursor: must be that of an earlier answer; this list is one page",
            None,
        )),
    }
}

/// The error for a request of a sort that is known, with parameters of another form, or of one that is not.
pub(super) fn unknown(method: &str) -> ErrorData {
    if ["tools/call", "resources/read", "prompts/get"].contains(&method) {
        return ErrorData::invalid_params(format!("{method} has parameters of another form"), None);
    }
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, format!("there is no method {method}"), None)
}
