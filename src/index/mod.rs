//! Which vectors does a partition hold, and which of them are nearest?
pub(crate) mod slots;
