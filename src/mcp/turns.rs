//! In which order a client's calls are begun.
//!
//! Each call runs on a thread of its own, so calls that a client sends without waiting could overtake each other. A client that
//! sends a fact and then its correction means the correction, and what it searches for may be what it has just written. So
//! no request is begun before the answer to each write that came before it. Passes of maintenance can take long and are not
//! waited for.

use std::collections::VecDeque;

use rmcp::RoleServer;
use rmcp::model::{ClientNotification, ClientRequest, JsonRpcMessage, RequestId};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};

use crate::mcp::handler::tool;
use crate::tools::{can_take_long, only_reads, only_reads_graph};

/// Requests that wait for their turn at most.
const WAITING: usize = 256;

/// The requests of one client.
#[derive(Default)]
pub(super) struct Turns {
    /// The write that has begun and is not answered.
    writing: Option<RequestId>,
    /// What came after it, in the order in which it came.
    waiting: VecDeque<RxJsonRpcMessage<RoleServer>>,
}

impl Turns {
    /// The next message that has its turn, among those that wait.
    pub(super) fn next(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        let message = if self.writing.is_none() { self.waiting.pop_front() } else { None };
        self.begun(message)
    }

    /// A message that came; none if it has to wait.
    pub(super) fn arrived(
        &mut self,
        message: RxJsonRpcMessage<RoleServer>,
    ) -> Option<RxJsonRpcMessage<RoleServer>> {
        match &message {
            JsonRpcMessage::Request(_) if self.writing.is_some() || !self.waiting.is_empty() => {
                self.waiting.push_back(message);
                None
            }
            JsonRpcMessage::Notification(note) => {
                if let ClientNotification::CancelledNotification(note) = &note.notification
                    && let Some(id) = &note.params.request_id
                {
                    self.cancelled(id);
                }
                Some(message)
            }
            _ => self.begun(Some(message)),
        }
    }

    /// An answer goes out.
    pub(super) fn answered(&mut self, answer: &TxJsonRpcMessage<RoleServer>) {
        let id = match answer {
            JsonRpcMessage::Response(answer) => Some(&answer.id),
            JsonRpcMessage::Error(answer) => answer.id.as_ref(),
            _ => None,
        };
        if self.writing.as_ref().is_some_and(|writing| Some(writing) == id) {
            self.writing = None;
        }
    }

    /// Whether nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Whether no more can wait.
    pub(super) fn is_full(&self) -> bool {
        self.waiting.len() >= WAITING
    }

    /// What is cancelled gets no answer, so that none is waited for.
    fn cancelled(&mut self, id: &RequestId) {
        self.waiting.retain(|one| !matches!(one, JsonRpcMessage::Request(request) if request.id == *id));
        self.writing = self.writing.take().filter(|writing| writing != id);
    }

    fn begun(
        &mut self,
        message: Option<RxJsonRpcMessage<RoleServer>>,
    ) -> Option<RxJsonRpcMessage<RoleServer>> {
        if let Some(JsonRpcMessage::Request(request)) = &message
            && let ClientRequest::CallToolRequest(call) = &request.request
            && writes(&call.params.name)
        {
            self.writing = Some(request.id.clone());
        }
        message
    }
}

/// Whether a call of this tool writes, and what comes after it waits.
fn writes(name: &str) -> bool {
    // The tools of a knowledge graph are not known here; their names have no dots.
    let name = tool(name).unwrap_or(name);
    !only_reads(name) && !only_reads_graph(name) && !can_take_long(name)
}

#[cfg(test)]
mod tests {
    use rmcp::model::JsonRpcMessage;
    use rmcp::service::RxJsonRpcMessage;
    use rmcp::{RoleServer, model::RequestId};
    use serde_json::{Value, json};

    use super::{Turns, tool};

    fn message(value: Value) -> RxJsonRpcMessage<RoleServer> {
        serde_json::from_value(value).unwrap()
    }

    fn call(id: i64, tool: &str) -> RxJsonRpcMessage<RoleServer> {
        let call = json!({ "name": tool, "arguments": {} });
        message(json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": call }))
    }

    fn id(message: Option<RxJsonRpcMessage<RoleServer>>) -> Option<RequestId> {
        match message {
            Some(JsonRpcMessage::Request(request)) => Some(request.id),
            _ => None,
        }
    }

    fn number(id: i64) -> Option<RequestId> {
        Some(RequestId::Number(id))
    }

    fn answer(id: i64) -> super::TxJsonRpcMessage<RoleServer> {
        JsonRpcMessage::error(rmcp::ErrorData::internal_error("no", None), number(id))
    }

    #[test]
    fn what_comes_after_a_write_waits_for_its_answer() {
        let mut turns = Turns::default();
        assert_eq!(id(turns.arrived(call(1, "search_memories"))), number(1));
        for long in ["run_maintenance", "memory_hygiene", "memory_undo", "memory_summarize_and_compact"] {
            assert!(tool(long).is_some(), "{long}");
            assert_eq!(id(turns.arrived(call(2, long))), number(2));
        }
        assert_eq!(id(turns.arrived(call(3, "add_memory"))), number(3));
        for (at, tool) in
            [(4, "search_memories"), (5, "get_memory"), (6, "create_entities"), (7, "add_memory")]
        {
            assert!(turns.arrived(call(at, tool)).is_none());
        }
        turns.answered(&answer(1));
        assert!(turns.next().is_none(), "that was another one");
        turns.answered(&answer(3));
        assert_eq!([id(turns.next()), id(turns.next()), id(turns.next())], [number(4), number(5), number(6)]);
        assert!(turns.next().is_none() && !turns.is_empty());
        turns.answered(&answer(6));
        assert_eq!(id(turns.next()), number(7));
        turns.answered(&answer(7));
        assert!(turns.next().is_none() && turns.is_empty());
    }

    #[test]
    fn what_is_cancelled_keeps_nobody_waiting() {
        let cancel = |id: i64| {
            let about = json!({ "requestId": id, "reason": "enough" });
            message(json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": about }))
        };
        let mut turns = Turns::default();
        assert!(turns.arrived(call(1, "add_memory")).is_some());
        assert!(turns.arrived(call(2, "add_memory")).is_none() && turns.arrived(call(3, "ping")).is_none());
        assert!(turns.arrived(cancel(2)).is_some() && turns.next().is_none());
        assert!(turns.arrived(cancel(1)).is_some());
        assert_eq!((id(turns.next()), turns.is_empty()), (number(3), true));
    }
}
