//! What the file takes on the disk.

use super::group;
use crate::policy::bounds::share;

group! {
    /// The file.
    Storage {
        /// Share of the file that may be free when it is closed, 0 to 1; above it the file becomes shorter. 1 is off.
        shrink: f64 = 0.3, share;
    }
}
