//! The sessions of clients, of which there are only so many.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use hyper::header::HeaderMap;
use parking_lot::Mutex;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::session::{SessionId, SessionManager};

/// Sessions at a time. When one more begins, the one ends that was used the longest ago.
pub(super) const SESSIONS_MAX: usize = 64;
/// The header that names a session.
const NAME: &str = "mcp-session-id";

/// All sessions.
pub(super) struct Sessions {
    manager: Arc<LocalSessionManager>,
    /// Those that may still be there; the one that was used last stands last.
    order: Mutex<VecDeque<SessionId>>,
}

impl Sessions {
    /// Sessions that end when nothing is asked for so long.
    pub(super) fn new(idle: Duration) -> Self {
        let mut manager = LocalSessionManager::default();
        manager.session_config.keep_alive = Some(idle);
        Sessions { manager: Arc::new(manager), order: Mutex::default() }
    }

    pub(super) fn manager(&self) -> Arc<LocalSessionManager> {
        Arc::clone(&self.manager)
    }

    /// Notes that a session was used, if a request names one.
    pub(super) fn note_use(&self, headers: &HeaderMap) {
        let Some(id) = named(headers) else { return };
        let mut order = self.order.lock();
        if let Some(at) = order.iter().position(|one| **one == *id)
            && let Some(used) = order.remove(at)
        {
            order.push_back(used);
        }
    }

    /// Notes that a session has begun, if a response names one.
    pub(super) async fn note_begin(&self, headers: &HeaderMap) {
        let Some(id) = named(headers) else { return };
        let open = self.manager.sessions.read().await;
        let too_many = {
            let mut order = self.order.lock();
            order.retain(|one| open.contains_key(one));
            order.push_back(id.into());
            let count = order.len().saturating_sub(SESSIONS_MAX);
            order.drain(..count).collect::<Vec<_>>()
        };
        drop(open);
        for id in too_many {
            if let Err(why) = self.manager.close_session(&id).await {
                tracing::debug!(%why, "a session has ended already");
            }
        }
    }
}

fn named(headers: &HeaderMap) -> Option<&str> {
    headers.get(NAME)?.to_str().ok()
}
