//! `docmill config`.

use std::process::ExitCode;

use crate::Failure;
use crate::config::{Config, DEFAULTS, Flags};

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Print the settings in effect; secrets are masked.
    Show,
    /// Check the settings and say what is wrong with them.
    Check,
    /// Print every setting with its default and what it means.
    Docs,
}

pub(crate) fn run(command: &Command, flags: &Flags) -> Result<ExitCode, Failure> {
    match command {
        Command::Show => print!("{}", toml::to_string(&Config::load(flags)?)?),
        Command::Check => {
            Config::load(flags)?;
            println!("the settings are valid");
        }
        Command::Docs => print!("{DEFAULTS}"),
    }
    Ok(ExitCode::SUCCESS)
}
