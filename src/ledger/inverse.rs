//! The inverse of each change, if it has one.

use crate::ledger::change::{Change, RestoreTo};
use crate::model::{MemoryId, Op};

/// The change that undoes a change of the journal; none if nothing can. An erased row has left nothing to put back,
/// and a restored row would need a superseder that the journal does not choose.
///
/// | change | inverse |
/// |---|---|
/// | insert, hold, recreate | detach of the holder that came, which forgetting it makes; the row goes with its last |
/// | merge, retire | return of each row from limbo |
/// | supersede | restore, with the exact earlier end of world time |
/// | update | an update with the values that the journal kept as `before`, which the undo of a pass makes |
/// | adjust | an adjust with the values that the journal kept as `before`, which the undo of a pass makes |
/// | reinforce | the count that the journal kept as `before`, which the undo of a pass puts back |
/// | rename | another rename, which a caller makes |
/// | set_goal, drop_goal | another drop, or another set, which a caller makes |
/// | return, restore, remove, detach, part, drop, derive, ignore, fold, purge, refuse, unscored | none |
/// | event | withdrawing it, which takes the numbers of its family back as well: the undo of an import does |
pub(crate) fn inverse(op: Op, subject: MemoryId) -> Option<Change> {
    match op {
        Op::Supersede => Some(Change::Restore { id: subject, to: RestoreTo::Undo }),
        Op::Retire => Some(Change::Return { id: subject }),
        Op::Insert
        | Op::Hold
        | Op::Recreate
        | Op::Update
        | Op::Merge
        | Op::Return
        | Op::Restore
        | Op::Remove
        | Op::Detach
        | Op::Reinforce
        | Op::DropNamespace
        | Op::Derive
        | Op::Ignore
        | Op::Event
        | Op::Withdraw
        | Op::Retell
        | Op::Rename
        | Op::Fold
        | Op::Purge
        | Op::Adjust
        | Op::Refuse
        | Op::Unscored
        | Op::SetGoal
        | Op::DropGoal => None,
    }
}
