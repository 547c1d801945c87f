//! `docmill`: turns documents into structured JSON. Command line, settings and wiring.

mod child;
mod commands;
mod config;
mod render;
mod setup;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use config::{Config, Flags};

/// Turns documents into structured, AI-ready JSON.
#[derive(Debug, Parser)]
#[command(version, propagate_version = true)]
struct Cli {
    /// File of settings (TOML); `docmill config docs` shows what it can hold.
    #[arg(long, global = true, env = "DOCMILL_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    /// Where docmill keeps its data.
    #[arg(long, global = true, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the server: API and workers.
    Serve(commands::serve::Args),
    /// Partition files without a server and print the elements.
    Partition(commands::partition::Args),
    /// Run every file of a source to a destination, without a server.
    Run(commands::run::Args),
    /// Create and list accounts.
    #[command(subcommand)]
    Accounts(commands::access::Accounts),
    /// Create and list workspaces.
    #[command(subcommand)]
    Workspaces(commands::access::Workspaces),
    /// Create, list and revoke API keys.
    #[command(subcommand)]
    Keys(commands::access::Keys),
    /// Show, check and explain the settings.
    #[command(subcommand)]
    Config(commands::settings::Command),
    /// Print the OpenAPI document.
    Openapi,
    /// Say what this machine lacks, and what each lack costs.
    Doctor,
}

fn main() -> ExitCode {
    // Before anything else: a child process has no arguments to parse and no settings to read.
    if std::env::args_os().nth(1).is_some_and(|arg| arg == setup::CHILD_ARG) {
        child::main(&child::Libraries::from_args(std::env::args_os().skip(2)));
    }
    let cli = Cli::parse();
    match run(cli) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error}");
            let mut source = error.source();
            while let Some(cause) = source {
                eprintln!("  caused by: {cause}");
                source = cause.source();
            }
            ExitCode::FAILURE
        }
    }
}

/// An error to print.
type Failure = Box<dyn std::error::Error>;

fn run(cli: Cli) -> Result<ExitCode, Failure> {
    let mut flags = Flags {
        file: cli.config,
        data_dir: cli.data_dir,
        listen: None,
    };
    match cli.command {
        Command::Openapi => {
            println!("{}", docmill_api::openapi().to_pretty_json()?);
            Ok(ExitCode::SUCCESS)
        }
        Command::Config(command) => commands::settings::run(&command, &flags),
        Command::Serve(args) => {
            flags.listen = args.listen;
            commands::serve::run(&Config::load(&flags)?)
        }
        Command::Run(args) => commands::run::run(&args, &Config::load(&flags)?),
        Command::Partition(args) => commands::partition::run(args, &Config::load(&flags)?),
        Command::Accounts(command) => commands::access::accounts(command, &Config::load(&flags)?),
        Command::Workspaces(command) => commands::access::workspaces(command, &Config::load(&flags)?),
        Command::Keys(command) => commands::access::keys(command, &Config::load(&flags)?),
        Command::Doctor => commands::doctor::run(&flags),
    }
}
