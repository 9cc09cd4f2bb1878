//! The sessions of clients, of which there are only so many.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use hyper::header::HeaderMap;
use parking_lot::Mutex;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::session::{SessionId, SessionManager};

/// Sessions at a time. When one more begins, the one ends that was used the longest ago, of those that nothing is answered in.
pub(super) const SESSIONS_MAX: usize = 64;
/// The header that names a session.
const NAME: &str = "mcp-session-id";

/// A session that may still be there.
struct Session {
    id: SessionId,
    /// Messages in it that are being answered.
    answering: usize,
}

/// Sessions; the one that was used last stands last.
#[derive(Clone, Default)]
struct Order(Arc<Mutex<VecDeque<Session>>>);

impl Order {
    /// Moves a session to the end, and changes it. None where it is not known.
    fn use_it(&self, id: &str, change: impl FnOnce(&mut Session)) -> Option<()> {
        let mut order = self.0.lock();
        let at = order.iter().position(|one| *one.id == *id)?;
        let mut used = order.remove(at)?;
        change(&mut used);
        order.push_back(used);
        Some(())
    }
}

/// A message that is being answered. Its session is used until this is dropped.
pub(super) struct InUse {
    id: SessionId,
    order: Order,
}

impl Drop for InUse {
    fn drop(&mut self) {
        // It may have been ended by its client meanwhile.
        let _ = self.order.use_it(&self.id, |session| session.answering -= 1);
    }
}

/// All sessions.
pub(super) struct Sessions {
    manager: Arc<LocalSessionManager>,
    order: Order,
}

impl Sessions {
    /// Sessions that end when nothing is asked for so long.
    pub(super) fn new(idle: Duration) -> Self {
        let mut manager = LocalSessionManager::default();
        manager.session_config.keep_alive = Some(idle);
        Sessions { manager: Arc::new(manager), order: Order::default() }
    }

    pub(super) fn manager(&self) -> Arc<LocalSessionManager> {
        Arc::clone(&self.manager)
    }

    /// Notes that a session is used, if a request names one that is known.
    pub(super) fn note_use(&self, headers: &HeaderMap) -> Option<InUse> {
        let id = named(headers)?;
        self.order.use_it(id, |session| session.answering += 1)?;
        Some(InUse { id: id.into(), order: self.order.clone() })
    }

    /// Notes that a session has begun, if a response names one.
    pub(super) async fn note_begin(&self, headers: &HeaderMap) {
        let Some(id) = named(headers) else { return };
        let open = self.manager.sessions.read().await;
        let too_many = {
            let mut order = self.order.0.lock();
            order.retain(|one| open.contains_key(&one.id));
            let mut count = (order.len() + 1).saturating_sub(SESSIONS_MAX);
            let mut ended = Vec::new();
            order.retain(|one| {
                let ends = count > 0 && one.answering == 0;
                if ends {
                    count -= 1;
                    ended.push(Arc::clone(&one.id));
                }
                !ends
            });
            order.push_back(Session { id: id.into(), answering: 0 });
            ended
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
