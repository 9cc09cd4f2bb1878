//! What a session should know before anything is asked.

use crate::error::Result;
use crate::hygiene::score::Worth;
use crate::limits::TOKEN_BYTES;
use crate::model::{Memory, MemoryId, PageRequest, Scope, Time};
use crate::policy::Policy;
use crate::recall::Reader;

/// Rows that are read at a time. Each may have a text of a megabyte.
const PAGE_ROWS: usize = 100;
/// Memories of a briefing beside the pinned ones, at most.
const MEMORIES_MAX: usize = 1_000;

/// A memory of a briefing.
#[derive(Clone, Debug, PartialEq)]
pub struct Briefed {
    /// The memory.
    pub memory: Memory,
    /// Its RetentionScore.
    pub score: f64,
}

/// What a session should know.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Briefing {
    /// The memories in their order.
    pub items: Vec<Briefed>,
    /// Memories that were left out because they can't be read.
    pub damaged: Vec<MemoryId>,
}

/// The tokens of a text, by its bytes.
pub(crate) fn tokens_of(text: &str) -> usize {
    text.len().div_ceil(TOKEN_BYTES)
}

/// Every visible pinned memory of a scope, the most important first, then those with the highest RetentionScore, as far as
/// `tokens` go. The budget never cuts pinned ones.
pub(crate) fn briefing(
    reader: &Reader<'_>,
    scope: &Scope,
    tokens: usize,
    now: Time,
    policy: &Policy,
) -> Result<Briefing> {
    let (mut pinned, mut others, mut damaged) = (Vec::new(), Vec::new(), Vec::new());
    let mut request = PageRequest { scope: scope.clone(), limit: PAGE_ROWS, ..PageRequest::default() };
    loop {
        let page = reader.list(&request)?;
        damaged.extend(page.damaged);
        for memory in page.items {
            let score = Worth::of_shown(&memory, now).score(policy);
            if memory.pinned {
                pinned.push(Briefed { memory, score });
            } else {
                others.push(Other { id: memory.id, score, tokens: tokens_of(&memory.row_text) });
            }
        }
        // Only the best of those that are not pinned can be in it.
        if others.len() > 2 * MEMORIES_MAX || page.next.is_none() {
            others.sort_unstable_by(|a, b| b.score.total_cmp(&a.score).then(a.id.cmp(&b.id)));
            others.truncate(MEMORIES_MAX);
        }
        match page.next {
            Some(next) => request.cursor = Some(next),
            None => break,
        }
    }
    pinned.sort_unstable_by(|a, b| {
        let (first, second) = (&a.memory, &b.memory);
        second.importance.total_cmp(&first.importance).then(first.id.cmp(&second.id))
    });
    let mut left = tokens;
    for briefed in &pinned {
        left = left.saturating_sub(tokens_of(&briefed.memory.row_text));
    }
    for Other { id, score, tokens } in others {
        // A shorter one may still fit where a longer one does not.
        if tokens <= left {
            left -= tokens;
            let memory = reader.get(&id.to_string(), false)?.into_memory();
            pinned.extend(memory.map(|memory| Briefed { memory, score }));
        }
    }
    Ok(Briefing { items: pinned, damaged })
}

/// A memory that is not pinned, without what it says: most are not shown.
struct Other {
    id: MemoryId,
    score: f64,
    tokens: usize,
}
