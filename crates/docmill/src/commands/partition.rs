//! `docmill partition`: files to elements, without a server.

use std::collections::VecDeque;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::ValueEnum;
use docmill_engine::protocol::TaskRequest;
use docmill_engine::{RunFailure, RunOutput, Runner};
use docmill_model::Element;
use docmill_model::chain::{NodeChain, parse};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};

use crate::config::Config;
use crate::render::{Format, render};
use crate::{Failure, setup};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Files to partition.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Which engine reads pages.
    #[arg(long, value_enum, default_value_t = StrategyArg::Auto)]
    strategy: StrategyArg,
    /// What to print. Of several files, `json` prints an array of one array per file.
    #[arg(long, value_enum, default_value_t = Format::Json)]
    output: Format,
    /// Group the elements into chunks.
    #[arg(long, value_enum, value_name = "HOW")]
    chunk: Option<ChunkArg>,
    /// Longest chunk, in characters.
    #[arg(long, requires = "chunk", value_name = "N")]
    max_characters: Option<usize>,
    /// Characters repeated at the start of a split text's continuation.
    #[arg(long, requires = "chunk", value_name = "N")]
    overlap: Option<usize>,
    /// Keep the coordinates of elements.
    #[arg(long)]
    coordinates: bool,
    /// Languages of scans and pictures, as ISO 639 codes; found among the installed ones when none is named.
    #[arg(long, value_name = "CODE", value_delimiter = ',')]
    languages: Vec<String>,
    /// Password of encrypted documents.
    #[arg(long, env = "DOCMILL_PASSWORD", hide_env_values = true)]
    password: Option<String>,
    /// Write one file per input into this folder instead of printing.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Write into this folder, for each PDF or picture, a page of HTML that shows what was found: the pages with
    /// the boxes of elements and table cells, types and reading order. Keeps the coordinates.
    #[arg(long, value_name = "DIR")]
    inspect: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
#[value(rename_all = "snake_case")]
enum StrategyArg {
    Auto,
    Fast,
    HiRes,
    OcrOnly,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
#[value(rename_all = "snake_case")]
#[allow(clippy::enum_variant_names, reason = "the names of the chunkers")]
enum ChunkArg {
    ByTitle,
    ByCharacter,
    ByPage,
}

pub(crate) fn run(args: Args, config: &Config) -> Result<ExitCode, Failure> {
    let chain = chain(&args)?;
    let runner = setup::runner(config, setup::sandbox(config)?)?;
    for folder in args.out.iter().chain(&args.inspect) {
        std::fs::create_dir_all(folder).map_err(|error| format!("cannot create {}: {error}", folder.display()))?;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let failed = runtime.block_on(partition_all(&args, config, &chain, &runner))?;
    Ok(if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// The chain the flags stand for, through the same checks as a client's.
fn chain(args: &Args) -> Result<NodeChain, Failure> {
    let word = |value: &dyn ToWord| value.word();
    let mut nodes = vec![json!({
        "name": "partition", "type": "partition", "subtype": "unstructured_api",
        "settings": {"strategy": word(&args.strategy), "infer_table_structure": true,
                     "coordinates": args.coordinates || args.inspect.is_some(), "password": args.password,
                     "languages": args.languages}
    })];
    if let Some(chunk) = &args.chunk {
        nodes.push(json!({
            "name": "chunk", "type": "chunk", "subtype": format!("chunk_{}", word(chunk)),
            "settings": {"max_characters": args.max_characters, "overlap": args.overlap}
        }));
    }
    match parse(&Value::Array(nodes), &[]) {
        Ok((chain, _)) => Ok(chain),
        Err(problems) => {
            let texts: Vec<_> = problems
                .iter()
                .map(|problem| {
                    format!(
                        "{}: {}",
                        problem.loc.last().and_then(Value::as_str).unwrap_or("chain"),
                        problem.msg
                    )
                })
                .collect();
            Err(texts.join("; ").into())
        }
    }
}

/// The word of a flag's value.
trait ToWord {
    fn word(&self) -> String;
}

impl<T: ValueEnum> ToWord for T {
    fn word(&self) -> String {
        self.to_possible_value()
            .map(|value| value.get_name().to_owned())
            .unwrap_or_default()
    }
}

/// Runs every file, as many at once as there are slots, and prints in the order given. How many failed.
async fn partition_all(args: &Args, config: &Config, chain: &NodeChain, runner: &Runner) -> Result<usize, Failure> {
    let bar = progress_bar(args.files.len());
    let mut waiting = VecDeque::new();
    let mut next = args.files.iter();
    let mut printer = Printer::new(args);
    let mut failed = 0;
    loop {
        while waiting.len() < runner.slots() * 2
            && let Some(path) = next.next()
        {
            let (path, chain, config, runner) = (path.clone(), chain.clone(), config.clone(), runner.clone());
            let inspect = args.inspect.is_some();
            waiting.push_back((
                path.clone(),
                tokio::spawn(async move { partition_one(&path, chain, inspect, &config, &runner).await }),
            ));
        }
        let Some((path, task)) = waiting.pop_front() else { break };
        match task.await? {
            Ok(output) => {
                for warning in &output.warnings {
                    bar.suspend(|| eprintln!("warning: {}: {}", path.display(), warning.message));
                }
                bar.suspend(|| printer.print(&path, &output))?;
                if let Some(folder) = &args.inspect {
                    bar.suspend(|| printer.show(folder, &path, &output))?;
                }
            }
            Err(reason) => {
                failed += 1;
                bar.suspend(|| eprintln!("error: {}: {reason}", path.display()));
            }
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    printer.finish()?;
    Ok(failed)
}

async fn partition_one(
    path: &Path,
    chain: NodeChain,
    inspect: bool,
    config: &Config,
    runner: &Runner,
) -> Result<RunOutput, String> {
    let bytes = tokio::fs::read(path).await.map_err(|error| error.to_string())?;
    let modified = std::fs::metadata(path).and_then(|metadata| metadata.modified()).ok();
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let request = TaskRequest {
        filename: path.file_name().map(|name| name.to_string_lossy().into_owned()),
        content_type: None,
        chain,
        limits: config.parse_limits(),
        scope: path.to_string_lossy().into_owned(),
        last_modified: modified.map(|at| {
            chrono::DateTime::<chrono::Local>::from(at)
                .format("%Y-%m-%dT%H:%M:%S")
                .to_string()
        }),
        file_directory: folder.map(|folder| folder.to_string_lossy().into_owned()),
        data_source: None,
        inspect,
        draw: None,
    };
    match runner.run(request, bytes.into(), Default::default(), |_| {}).await {
        Ok(output) => Ok(output),
        Err(RunFailure::Failed { code, message, .. }) => Err(format!("{message} [{code}]")),
        Err(RunFailure::Cancelled) => Err("cancelled".into()),
    }
}

fn progress_bar(files: usize) -> ProgressBar {
    if files < 2 || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(files as u64);
    if let Ok(style) = ProgressStyle::with_template("{bar:40} {pos}/{len} files, {eta} left") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// Where the outputs go.
struct Printer<'a> {
    args: &'a Args,
    many: bool,
    printed: usize,
    names: std::collections::HashSet<PathBuf>,
}

impl<'a> Printer<'a> {
    fn new(args: &'a Args) -> Self {
        Self {
            args,
            many: args.files.len() > 1,
            printed: 0,
            names: Default::default(),
        }
    }

    fn print(&mut self, path: &Path, output: &RunOutput) -> Result<(), Failure> {
        let Some(last) = output.outputs.last() else {
            return Ok(());
        };
        let elements: Vec<Element> = serde_json::from_slice(last)?;
        let text = render(&elements, self.args.output)?;
        if let Some(folder) = &self.args.out {
            let target = self.free_name(folder, path, self.args.output.extension());
            return std::fs::write(&target, text)
                .map_err(|error| format!("cannot write {}: {error}", target.display()).into());
        }
        let mut out = std::io::stdout().lock();
        if self.many && self.args.output == Format::Json {
            writeln!(out, "{}", if self.printed == 0 { "[" } else { "," })?;
        }
        write!(out, "{text}")?;
        self.printed += 1;
        Ok(())
    }

    /// Writes the page that shows what was found.
    fn show(&mut self, folder: &Path, path: &Path, output: &RunOutput) -> Result<(), Failure> {
        let html: Option<String> = match &output.inspection {
            Some(inspection) => serde_json::from_slice(inspection)?,
            None => None,
        };
        let Some(html) = html else {
            eprintln!("warning: {}: its format has no pages to show", path.display());
            return Ok(());
        };
        let target = self.free_name(folder, path, "html");
        std::fs::write(&target, html).map_err(|error| format!("cannot write {}: {error}", target.display()).into())
    }

    fn finish(self) -> Result<(), Failure> {
        if self.many && self.args.output == Format::Json && self.args.out.is_none() {
            println!("{}", if self.printed == 0 { "[]" } else { "]" });
        }
        Ok(())
    }

    /// `name.ext.json`; a second file of the same name gets a number, so that none is overwritten.
    fn free_name(&mut self, folder: &Path, path: &Path, extension: &str) -> PathBuf {
        let name = path
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default();
        let mut target = folder.join(format!("{name}.{extension}"));
        let mut number = 2;
        while !self.names.insert(target.clone()) {
            target = folder.join(format!("{name}.{number}.{extension}"));
            number += 1;
        }
        target
    }
}
