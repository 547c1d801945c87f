//! One module per command.

pub mod access;
pub mod doctor;
pub mod partition;
pub mod serve;
pub mod settings;
