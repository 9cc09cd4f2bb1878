//! Which file implements which pass?

use crate::hygiene::pass::MaintenancePass;
use crate::model::{Pass, passes};

macro_rules! implemented {
    ($(
        #[doc = $help:literal] $name:ident = $code:literal, $text:literal,
        rule $rule:ident $id:literal, $(stage $stage:ident,)? in $file:ident;
    )+) => {
        /// What implements a pass.
        pub(crate) fn implementation(pass: Pass) -> &'static dyn MaintenancePass {
            match pass { $(Pass::$name => &crate::hygiene::$file::$name,)+ }
        }
    };
}

passes!(implemented);
