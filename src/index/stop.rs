//! When a search ends with the results so far.

/// Says whether the time of a search is over.
#[derive(Clone, Copy)]
pub(crate) struct Stop<'q>(pub(crate) &'q dyn Fn() -> bool);

impl Stop<'_> {
    /// Time without end.
    pub(crate) const NEVER: Stop<'static> = Stop(&|| false);

    /// Whether the time is over.
    #[inline]
    pub(crate) fn is_over(self) -> bool {
        (self.0)()
    }
}

impl std::fmt::Debug for Stop<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Stop")
    }
}
