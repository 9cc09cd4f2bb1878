//! Accesses of memories: retrievals, and inclusions in contexts.

use super::group;
use crate::policy::bounds::count;

group! {
    /// Accesses that wait for a commit.
    Access {
        /// Number of memories whose accesses a handle keeps in mind between two commits, at least 1.
        buffer: u32 = 65_536, count(1, 10_000_000);
    }
}
