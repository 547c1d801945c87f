//! `docmill run`: one run from a source to a destination, without a server.

use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use docmill_connectors::{
    ConnectorError, ConnectorType, Destination, Document, Environment, Field, FieldKind, Source, TYPES, find,
    known_elsewhere, open_destination, open_source, unavailable, validate,
};
use docmill_egress::{Egress, Policy};
use docmill_engine::protocol::TaskRequest;
use docmill_engine::{LocalChain, RunFailure, Runner, Vault, patiently, record_id_of};
use docmill_model::chain::Problem;
use docmill_model::connector::{ConnectorRole, SourceObject};
use futures_util::StreamExt;
use indicatif::{ProgressBar, ProgressStyle};
use rand::TryRngCore;
use serde_json::{Map, Value, json};

use crate::config::Config;
use crate::{Failure, setup};

/// What the help says beyond its options.
const HELP: &str = "\
WHERE is a folder or URL (./reports, s3://bucket/prefix, az://container, gs://bucket), or the name of a connector
type with its settings as options: --source postgres --source-option host=db.example.org ...

The VALUE env:NAME is read from the environment, @FILE from a file, so that secrets stay out of the command line.

Running again writes the same documents again, never doubles. Files of equal names from two sources need two
destinations where outputs are files.

The exit code is 0 when every file was written, 1 when one failed (standard error says which and why) or nothing
could be done, 2 when the command line can't be understood.";

/// The help with the settings of every connector type.
fn help() -> String {
    let mut help = format!("{HELP}\n\nConnector types and their settings (* required):\n");
    for kind in TYPES {
        for role in [ConnectorRole::Source, ConnectorRole::Destination] {
            let Some(fields) = kind.fields(role) else { continue };
            let names = fields
                .iter()
                .map(|field| format!("{}{}", field.name, if field.required { "*" } else { "" }));
            let names: Vec<_> = names.collect();
            help.push_str(&format!("  {} as {role}: {}\n", kind.name, names.join(", ")));
        }
    }
    help
}

#[derive(Debug, clap::Args)]
#[command(after_help = HELP, after_long_help = help())]
pub(crate) struct Args {
    /// Where files come from: a folder, a URL (s3://bucket/prefix, az://container, gs://bucket), or a
    /// connector type with its settings as options.
    #[arg(long, value_name = "WHERE")]
    source: String,
    /// A setting of the source; may be given again. The value env:NAME is read from the environment, @FILE
    /// from a file; lists are written with commas.
    #[arg(long, value_name = "NAME=VALUE")]
    source_option: Vec<String>,
    /// Where the outputs go, named likewise. Running again replaces documents, never doubles them.
    #[arg(long, value_name = "WHERE")]
    destination: String,
    /// A setting of the destination; likewise.
    #[arg(long, value_name = "NAME=VALUE")]
    destination_option: Vec<String>,
    /// JSON file with the nodes, as in a job's `job_nodes`; `-` reads standard input. Without it files are
    /// partitioned and nothing else.
    #[arg(long, value_name = "FILE")]
    nodes: Option<PathBuf>,
}

pub(crate) fn run(args: &Args, config: &Config) -> Result<ExitCode, Failure> {
    let nodes = nodes(args)?;
    // A person who can start this can reach whatever it reaches without it.
    let environment = Environment {
        egress: Egress::new(Policy {
            ca_file: config.egress.ca_file(),
            ..Policy::unguarded()
        }),
        local_roots: None,
        ambient_credentials: true,
    };
    let (source_kind, source_config) = connector(ConnectorRole::Source, &args.source, &args.source_option)?;
    let (destination_kind, destination_config) =
        connector(ConnectorRole::Destination, &args.destination, &args.destination_option)?;
    if let (Some(from), Some(to)) = (
        folder(source_kind, &source_config),
        folder(destination_kind, &destination_config),
    ) && to.starts_with(&from)
        && (to == from || source_config.get("recursive") != Some(&Value::Bool(false)))
    {
        return Err(format!(
            "the destination {} lies in the source {}, so what is written would be read as further files",
            to.display(),
            from.display()
        )
        .into());
    }
    let chain = chain(args, &nodes, config, environment.egress.clone())?;
    let runner = setup::runner(config, setup::sandbox(config)?)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let transfer = Transfer {
            source: open_source(&environment, source_kind, &source_config)?,
            destination: open_destination(&environment, destination_kind, &destination_config)?,
            origin: origin(source_kind, &source_config),
            chain,
            config: config.clone(),
            runner,
        };
        transfer
            .source
            .check()
            .await
            .map_err(|error| format!("source: {error}"))?;
        transfer
            .destination
            .check()
            .await
            .map_err(|error| format!("destination: {error}"))?;
        let failed = transfer.all().await?;
        Ok(if failed == 0 {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        })
    })
}

/// The nodes the flags name.
fn nodes(args: &Args) -> Result<Value, Failure> {
    Ok(match &args.nodes {
        None => json!([{"name": "Partitioner", "type": "partition", "subtype": "service_api",
                        "settings": {"strategy": "auto", "infer_table_structure": true}}]),
        Some(path) => {
            let mut text = String::new();
            if path.as_os_str() == "-" {
                std::io::stdin().read_to_string(&mut text)?;
            } else {
                text = std::fs::read_to_string(path)
                    .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
            }
            let value: Value =
                serde_json::from_str(&text).map_err(|error| format!("{}: not valid JSON: {error}", path.display()))?;
            // A whole request body is taken too.
            match value.get("job_nodes") {
                Some(nodes) => nodes.clone(),
                None => value,
            }
        }
    })
}

/// The nodes as a chain, whose models are reached as the settings say.
fn chain(args: &Args, nodes: &Value, config: &Config, egress: Egress) -> Result<LocalChain, Failure> {
    let models = config.model_providers(egress)?;
    // For keys in nodes, which are kept no longer than the program runs.
    let mut key = [0u8; 32];
    rand::rngs::OsRng.try_fill_bytes(&mut key)?;
    let chain = LocalChain::new(models, Vault::new(&key)?, nodes).map_err(|problems| {
        let file = args.nodes.as_deref().unwrap_or(Path::new("nodes"));
        format!("{}: {}", file.display(), told(&problems))
    })?;
    Ok(chain)
}

fn told(problems: &[Problem]) -> String {
    let texts: Vec<_> = problems
        .iter()
        .map(|problem| {
            let place: Vec<_> = problem
                .loc
                .iter()
                .map(|part| part.as_str().map_or_else(|| part.to_string(), str::to_owned))
                .collect();
            format!("{}: {}", place.join("."), problem.msg)
        })
        .collect();
    texts.join("; ")
}

/// The connector type and settings that `--source` or `--destination` with its options stand for.
fn connector(
    role: ConnectorRole,
    place: &str,
    options: &[String],
) -> Result<(&'static str, Map<String, Value>), Failure> {
    let (name, location) = match place.split_once("://").map(|(scheme, _)| scheme) {
        Some("s3" | "s3a") => ("s3", Some(("remote_url", place.to_owned()))),
        Some("az" | "abfs" | "abfss") => ("azure", Some(("remote_url", place.to_owned()))),
        Some("gs" | "gcs") => ("gcs", Some(("remote_url", place.to_owned()))),
        Some(_) => return Err(format!("--{role}: `{place}` has a scheme no connector has; there are s3, az, abfs and gs, and the connector types by name").into()),
        None if find(role, place).is_some() => (place, None),
        None if names_a_type(role, place) => {
            let why = unavailable(role, place);
            return Err(format!("--{role}: {why}; a folder of this name is ./{place}").into());
        }
        None => {
            let path = std::path::absolute(place)?;
            ("local", Some(("path", path.to_string_lossy().into_owned())))
        }
    };
    let kind: &'static ConnectorType =
        find(role, name).ok_or_else(|| format!("--{role}: `{name}` is no {role} connector"))?;
    let fields = kind.fields(role).unwrap_or_default();
    let mut given = Map::new();
    if let Some((field, value)) = location {
        given.insert(field.into(), value.into());
    }
    for option in options {
        let (name, text) = option
            .split_once('=')
            .ok_or_else(|| format!("--{role}-option: `{option}` is not NAME=VALUE"))?;
        given.insert(name.into(), value(fields, name, text)?);
    }
    let valid = validate(fields, &Value::Object(given), &[json!(role.as_str())]).map_err(|problems| told(&problems))?;
    Ok((kind.name, valid))
}

/// Whether a word is the name of some type of connector, though of none with this role.
fn names_a_type(role: ConnectorRole, word: &str) -> bool {
    known_elsewhere(role).contains(&word) || TYPES.iter().any(|kind| kind.name == word)
}

/// The folder of a `local` connector, with what is there of it freed from links.
fn folder(kind: &str, config: &Map<String, Value>) -> Option<PathBuf> {
    let path = Path::new(config.get("path").filter(|_| kind == "local")?.as_str()?);
    let there = path
        .ancestors()
        .find_map(|above| Some((above, above.canonicalize().ok()?)));
    Some(match there {
        Some((above, real)) => real.join(path.strip_prefix(above).unwrap_or(Path::new(""))),
        None => path.to_owned(),
    })
}

/// An option's text as the value its setting holds.
fn value(fields: &[Field], name: &str, text: &str) -> Result<Value, Failure> {
    let text = if let Some(variable) = text.strip_prefix("env:") {
        std::env::var(variable).map_err(|_| format!("{name}: the environment has no `{variable}`"))?
    } else if let Some(path) = text.strip_prefix('@') {
        std::fs::read_to_string(path).map_err(|error| format!("{name}: cannot read {path}: {error}"))?
    } else {
        text.to_owned()
    };
    let kind = fields.iter().find(|field| field.name == name).map(|field| field.kind);
    Ok(match kind {
        Some(FieldKind::Bool(_)) => text.parse::<bool>().map_or_else(|_| text.into(), Value::from),
        Some(FieldKind::Integer(..)) => text.parse::<i64>().map_or_else(|_| text.into(), Value::from),
        Some(FieldKind::TextList) => text.split(',').map(str::trim).map(str::to_owned).collect(),
        _ => text.into(),
    })
}

/// What names the source in record ids: its settings without secrets and without those that say how, not
/// where.
fn origin(kind: &str, config: &Map<String, Value>) -> String {
    const WHERE: [&str; 8] = [
        "path",
        "remote_url",
        "endpoint_url",
        "host",
        "port",
        "database",
        "table_name",
        "id_column",
    ];
    let mut origin = kind.to_owned();
    for name in WHERE {
        if let Some(value) = config.get(name) {
            origin.push_str(&format!("\0{name}={value}"));
        }
    }
    origin
}

struct Transfer {
    source: Arc<dyn Source>,
    destination: Arc<dyn Destination>,
    origin: String,
    chain: LocalChain,
    config: Config,
    runner: Runner,
}

/// What became of one file.
struct Ended {
    name: String,
    result: Result<(u64, Vec<String>), String>,
}

impl Transfer {
    /// Runs every file, a few at once; how many failed.
    async fn all(&self) -> Result<u64, Failure> {
        let bar = progress_bar();
        let started = Instant::now();
        let at_once = self.runner.slots() * 3;
        let (mut done, mut failed, mut elements) = (0u64, 0u64, 0u64);
        let mut broken = None;
        let mut ended = self
            .source
            .list(None)
            .map(async |object| match object {
                Ok(object) => Ok(self.one(object).await),
                Err(error) => Err(error),
            })
            .buffer_unordered(at_once);
        while let Some(next) = ended.next().await {
            match next {
                Ok(Ended {
                    name,
                    result: Ok((count, warnings)),
                }) => {
                    done += 1;
                    elements += count;
                    for warning in warnings {
                        bar.suspend(|| eprintln!("warning: {name}: {warning}"));
                    }
                }
                Ok(Ended {
                    name,
                    result: Err(reason),
                }) => {
                    failed += 1;
                    bar.suspend(|| eprintln!("error: {name}: {reason}"));
                }
                Err(error) => broken = Some(error),
            }
            bar.inc(1);
            bar.set_message(format!("{failed} failed"));
        }
        bar.finish_and_clear();
        for (node, cost) in self.chain.costs() {
            let name = self
                .chain
                .chain()
                .nodes()
                .get(node as usize)
                .map_or("", |node| node.name.as_str());
            let price = cost
                .price
                .map(|price| format!(", price {:.6}", price as f64 / 1e6))
                .unwrap_or_default();
            eprintln!(
                "{name}: {} calls of {} ({} answers kept), {} tokens in, {} out{price}",
                cost.calls, cost.model, cost.cached, cost.tokens_in, cost.tokens_out
            );
        }
        let seconds = started.elapsed().as_secs_f64();
        eprintln!(
            "{done} files, {elements} elements in {seconds:.1} s ({:.0} files/s); {failed} failed",
            (done + failed) as f64 / seconds.max(0.001)
        );
        match broken {
            Some(error) => Err(format!("the source could not be listed to its end: {error}").into()),
            None => Ok(failed),
        }
    }

    async fn one(&self, object: SourceObject) -> Ended {
        let name = object.name.clone();
        let result = self.transfer(object).await;
        Ended { name, result }
    }

    async fn transfer(&self, object: SourceObject) -> Result<(u64, Vec<String>), String> {
        let told = |error: ConnectorError| format!("{error} [{}]", error.code());
        let record_id = record_id_of(&["run", &self.origin, &object.locator]);
        let input = patiently(|| self.source.fetch(&object, self.config.limits.max_file_bytes))
            .await
            .map_err(told)?;
        let request = TaskRequest::of_object(
            &object,
            &record_id,
            self.chain.chain().clone(),
            self.config.parse_limits(),
        );
        let output = match self.chain.run(&self.runner, request, input).await {
            Ok(output) => output,
            Err(RunFailure::Failed { code, message, .. }) => return Err(format!("{message} [{code}]")),
            Err(RunFailure::Cancelled) => return Err("cancelled".into()),
        };
        let document = Document {
            record_id,
            name: object.name.clone(),
            elements: output.outputs.last().cloned().unwrap_or_default(),
        };
        patiently(|| self.destination.put(&document)).await.map_err(told)?;
        let warnings = output.warnings.into_iter().map(|warning| warning.message).collect();
        Ok((output.elements, warnings))
    }
}

fn progress_bar() -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("{spinner} {pos} files, {per_sec}, {msg} ({elapsed})") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}
