//! Development tasks. `cargo xtask bench` measures a release build and prints figures and ratios.

mod bench;
mod server;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Development tasks of docmill.
#[derive(Debug, Parser)]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Measure speed and memory of a release build.
    Bench {
        /// What to measure; everything when none is named.
        #[arg(value_enum)]
        what: Vec<bench::What>,
    },
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn main() -> ExitCode {
    let Task::Bench { what } = Cli::parse().task;
    match bench::run(&what) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
