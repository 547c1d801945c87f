//! Development tasks. `cargo xtask bench` measures a release build and prints figures and ratios.

mod bench;
mod models;
mod ocr;
mod pdf;
mod runs;
mod server;

use std::path::PathBuf;
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
        /// Folder searched for the PDFs, scans and pictures to measure with; the examples by default.
        #[arg(long, value_name = "DIR")]
        pdfs: Option<PathBuf>,
        /// A Python that has the peer `pypdfium2`.
        #[arg(long, default_value = ".venv/bin/python", value_name = "FILE")]
        python: PathBuf,
    },
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn main() -> ExitCode {
    let Task::Bench { what, pdfs, python } = Cli::parse().task;
    match bench::run(&what, pdfs.as_deref(), &python) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
