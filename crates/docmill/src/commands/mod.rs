//! One module per command.

pub(crate) mod access;
pub(crate) mod doctor;
pub(crate) mod partition;
pub(crate) mod run;
pub(crate) mod serve;
pub(crate) mod settings;
