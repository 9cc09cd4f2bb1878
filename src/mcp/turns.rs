//! In which order a client's calls are begun.
//!
//! Each call runs on a thread of its own, so calls that a client sends without waiting could overtake each other. A client that
//! sends a fact and then its correction means the correction, and what it searches for may be what it has just written. So
//! nothing that asks for memories is begun before the answer to each write that came before it. A write that is cancelled gets
//! no answer, and its end is waited for instead. Passes of maintenance can take long and are not waited for.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use rmcp::RoleServer;
use rmcp::model::{ClientNotification, ClientRequest, JsonRpcMessage, RequestId};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use tokio::sync::Notify;

use crate::mcp::handler::tool;
use crate::mcp::turn::Turn;
use crate::tools::{can_take_long, only_reads, only_reads_graph};

/// Requests that wait for their turn at most.
const WAITING: usize = 256;

/// A write that has begun and is not answered.
struct Writing {
    id: RequestId,
    /// The turn, which travels with the request.
    turn: Weak<Turn>,
    is_cancelled: bool,
}

/// The requests of one client.
#[derive(Default)]
pub(super) struct Turns {
    writing: Option<Writing>,
    /// What came after it, in the order in which it came.
    waiting: VecDeque<RxJsonRpcMessage<RoleServer>>,
    /// Told when a turn is over.
    over: Arc<Notify>,
}

impl Turns {
    /// The next message that has its turn, among those that wait.
    pub(super) fn next(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        // The last holder of a turn has carried the write out, or has found it cancelled and left it.
        let is_over = |writing: &mut Writing| writing.is_cancelled && writing.turn.strong_count() == 0;
        self.writing.take_if(is_over);
        let message = if self.writing.is_none() { self.waiting.pop_front() } else { None };
        self.begun(message)
    }

    /// A message that came; none if it has to wait.
    pub(super) fn arrived(
        &mut self,
        message: RxJsonRpcMessage<RoleServer>,
    ) -> Option<RxJsonRpcMessage<RoleServer>> {
        match &message {
            JsonRpcMessage::Request(request)
                if asks_for_memories(&request.request)
                    && (self.writing.is_some() || !self.waiting.is_empty()) =>
            {
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
        self.writing.take_if(|writing| Some(&writing.id) == id);
    }

    /// Who is told when a turn is over, which may let the next message have its own.
    pub(super) fn over(&self) -> Arc<Notify> {
        Arc::clone(&self.over)
    }

    /// Whether nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Whether no more can wait.
    pub(super) fn is_full(&self) -> bool {
        self.waiting.len() >= WAITING
    }

    /// What waits and is cancelled is not begun. What has begun goes on to its end.
    fn cancelled(&mut self, id: &RequestId) {
        self.waiting.retain(|one| !matches!(one, JsonRpcMessage::Request(request) if request.id == *id));
        if let Some(writing) = self.writing.as_mut().filter(|writing| writing.id == *id) {
            writing.is_cancelled = true;
        }
    }

    fn begun(
        &mut self,
        mut message: Option<RxJsonRpcMessage<RoleServer>>,
    ) -> Option<RxJsonRpcMessage<RoleServer>> {
        if let Some(JsonRpcMessage::Request(request)) = &mut message
            && let ClientRequest::CallToolRequest(call) = &mut request.request
            && writes(&call.params.name)
        {
            let turn = Arc::new(Turn::new(self.over()));
            self.writing =
                Some(Writing { id: request.id.clone(), turn: Arc::downgrade(&turn), is_cancelled: false });
            call.extensions.insert(turn);
        }
        message
    }
}

/// Whether the answer to a request may depend on a write that came before it. Whoever asks whether the server is there does not wait.
fn asks_for_memories(request: &ClientRequest) -> bool {
    matches!(
        request,
        ClientRequest::CallToolRequest(_)
            | ClientRequest::ReadResourceRequest(_)
            | ClientRequest::GetPromptRequest(_)
    )
}

/// Whether a call of this tool writes, and what comes after it waits.
fn writes(name: &str) -> bool {
    // The tools of a knowledge graph are not known here; their names have no dots.
    let name = tool(name).unwrap_or(name);
    !only_reads(name) && !only_reads_graph(name) && !can_take_long(name)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rmcp::model::{GetExtensions, JsonRpcMessage};
    use rmcp::service::RxJsonRpcMessage;
    use rmcp::{RoleServer, model::RequestId};
    use serde_json::{Value, json};

    use super::{Turn, Turns, tool};

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
    fn a_write_that_is_cancelled_is_waited_for_to_its_end() {
        let cancel = |id: i64| {
            let about = json!({ "requestId": id, "reason": "enough" });
            message(json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": about }))
        };
        let mut turns = Turns::default();
        let Some(JsonRpcMessage::Request(write)) = turns.arrived(call(1, "add_memory")) else {
            panic!("nothing came before it")
        };
        let turn = write.request.extensions().get::<Arc<Turn>>().cloned();
        assert!(turns.arrived(call(2, "add_memory")).is_none() && turns.arrived(call(3, "ping")).is_none());
        assert!(turns.arrived(cancel(2)).is_some() && turns.next().is_none());
        assert!(turns.arrived(cancel(1)).is_some());
        drop(write);
        assert!(turns.next().is_none(), "who carries it out is at work");
        drop(turn);
        assert_eq!((id(turns.next()), turns.is_empty()), (number(3), true));
    }

    #[test]
    fn who_asks_whether_the_server_is_there_waits_for_no_write() {
        let mut turns = Turns::default();
        assert!(turns.arrived(call(1, "add_memory")).is_some());
        for (at, method) in [(2, "ping"), (3, "tools/list")] {
            let request = message(json!({ "jsonrpc": "2.0", "id": at, "method": method }));
            assert_eq!(id(turns.arrived(request)), number(at), "{method}");
        }
        let read = json!({ "uri": "memory://briefing" });
        let read = json!({ "jsonrpc": "2.0", "id": 4, "method": "resources/read", "params": read });
        assert!(turns.arrived(message(read)).is_none());
    }
}
