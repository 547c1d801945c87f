//! `docmill serve`.

use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use docmill_api::{ApiConfig, TokenSigner};
use docmill_connectors::Environment;
use docmill_engine::{Engine, Models, access, now};
use docmill_model::ids::WorkspaceId;
use docmill_store::Store;
use docmill_store::blob::BlobStore;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;

use crate::config::Config;
use crate::{Failure, setup};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Address and port to listen on; port 0 takes a free one.
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) listen: Option<String>,
}

/// Time that open requests get to end after the files under way have ended.
const HTTP_GRACE: Duration = Duration::from_secs(5);

/// Upper bounds of histogram buckets: durations, and numbers of things done together.
const SECONDS: [f64; 12] = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0, 300.0];
const SIZES: [f64; 8] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0];

/// Time between two rounds of sorting observations into their buckets; until then they are kept one by one.
const METRICS_UPKEEP: Duration = Duration::from_secs(5);

/// Descriptors the server asks for: one per connection, and some for files.
const DESCRIPTORS: u64 = 65_536;

pub(crate) fn run(config: &Config) -> Result<ExitCode, Failure> {
    start_logging(config)?;
    match docmill_sandbox::raise_descriptor_limit(DESCRIPTORS) {
        Ok(limit) => tracing::debug!(limit, "open descriptors"),
        Err(error) => tracing::warn!(%error, "cannot raise the limit on open descriptors"),
    }
    let metrics = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".into()), &SECONDS)?
        .set_buckets_for_metric(Matcher::Suffix("_size".into()), &SIZES)?
        .install_recorder()?;
    // Started here and not in the runtime: its threads live as long as the process, and so do the
    // children they start.
    let sandbox = setup::sandbox(config)?;
    let report = sandbox.report().clone();
    tracing::info!(level = %report.level, landlock_abi = report.landlock_abi, seccomp = report.seccomp,
        rlimits = report.rlimits, parent_death = report.parent_death, "isolation of child processes");
    for note in &report.notes {
        tracing::warn!("{note}");
    }
    let runner = setup::runner(config, sandbox)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let _lock = setup::lock(&config.data_dir)?;
        let store = Arc::new(setup::store(config).await?);
        let secret = setup::secret(&config.data_dir, "token.key")?;
        let blobs = BlobStore::local(&config.blob_dir()?)?;
        first_start(store.as_ref(), config).await?;
        let listener = TcpListener::bind(&config.server.listen).await.map_err(|error| {
            format!(
                "cannot listen on {}: {error} (setting `server.listen`)",
                config.server.listen
            )
        })?;
        let environment = config.environment()?;
        warn_of_dangers(config, &environment);
        let vault = setup::vault(config)?;
        let models = config.model_providers(environment.egress.clone())?;
        say_which_models(config, &models);
        say_where_mails_go(config)?;
        let notifications = config.notification_config()?;
        let engine = Engine::new(
            store.clone(),
            blobs,
            runner,
            environment,
            vault,
            config.engine_config(models),
            notifications,
        );
        let api = ApiConfig {
            key_headers: config
                .auth
                .key_headers
                .iter()
                .map(|name| name.to_ascii_lowercase())
                .collect(),
            require_bearer_for_workflows: config.auth.require_bearer_for_workflows,
            token_lifetime: Duration::from_secs(config.auth.token_lifetime_secs),
            limits: config.request_limits(),
            other_limits: config.other_limits(),
            sandbox: report,
            idle_timeout: Duration::from_secs(config.limits.idle_timeout_secs),
            request_timeout: Duration::from_secs(config.limits.request_timeout_secs),
        };
        let idle = api.idle_timeout;
        let upkeep = metrics.clone();
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(METRICS_UPKEEP).await;
                upkeep.run_upkeep();
            }
        });
        let app = docmill_api::app(engine.clone(), api, TokenSigner::new(&secret), metrics);
        engine.start().await?;
        tracing::info!(address = %listener.local_addr()?, data_dir = %config.data_dir.display(),
            slots = engine.slots(), "docmill {} is listening", env!("CARGO_PKG_VERSION"));
        println!("listening on http://{}", listener.local_addr()?);

        let closing = CancellationToken::new();
        let server = tokio::spawn(docmill_api::serve(
            listener,
            app,
            idle,
            closing.clone().cancelled_owned(),
            HTTP_GRACE,
        ));
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("stopping: taking no more requests, ending files under way");
        closing.cancel();
        tokio::select! {
            _ = async { tokio::join!(server, engine.stop()) } => {}
            _ = terminate.recv() => engine.stop_now().await,
            _ = interrupt.recv() => engine.stop_now().await,
        }
        store.close().await;
        tracing::info!("stopped");
        Ok(ExitCode::SUCCESS)
    })
}

/// Says which model providers nodes can call, and what they may cost.
fn say_which_models(config: &Config, models: &Models) {
    let usable: Vec<_> = models.usable().into_iter().map(|provider| provider.as_str()).collect();
    if usable.is_empty() {
        tracing::info!("no model provider has credentials: nodes that call one are refused (settings `providers`)");
        return;
    }
    tracing::info!(providers = usable.join(", "), "nodes can call these model providers");
    if models.config().budget.is_some() {
        tracing::info!(
            per_workspace_per_month = config.budget.per_workspace_per_month,
            "what a workspace may spend on them is bounded"
        );
    }
}

/// Says what becomes of mails.
fn say_where_mails_go(config: &Config) -> Result<(), Failure> {
    match config.smtp()? {
        None => tracing::warn!(folder = %config.outbox().display(),
            "mails are written as .eml files and not sent, as no mail server is set (setting `mail.smtp_url`)"),
        Some(url) => {
            tracing::info!(server = %url, "mails are handed to a mail server");
            if url.exposes_login() {
                tracing::warn!("user and password for the mail server may go over the network unencrypted");
            }
        }
    }
    if config.public_url()?.is_none() {
        tracing::info!(
            "mails hold no links, as the server does not know its own address (setting `server.public_url`)"
        );
    }
    Ok(())
}

/// Says what connectors and webhooks may reach that they usually may not.
fn warn_of_dangers(config: &Config, environment: &Environment) {
    let policy = environment.egress.policy();
    if !policy.allow.is_empty() {
        tracing::warn!(networks = ?config.egress.danger_allow_cidrs,
            "whoever may create connectors or channels can reach these networks (setting `egress.danger_allow_cidrs`)");
    }
    if policy.allow_http {
        tracing::warn!("connectors and webhooks may use plain http (setting `egress.allow_http`)");
    }
    if environment.ambient_credentials {
        tracing::warn!(
            "whoever may create connectors can use this machine's cloud credentials \
             (setting `connectors.allow_ambient_credentials`)"
        );
    }
}

/// Makes the default account, workspace and key.
async fn first_start(store: &dyn Store, config: &Config) -> Result<(), Failure> {
    let workspace = access::ensure_default_workspace(store, now()).await?;
    if let Some(key) = config.bootstrap_api_key.expose() {
        return bootstrap(store, workspace, key).await;
    }
    if store.keys(None).await?.is_empty() {
        let key = access::generate_key()?;
        store
            .create_key(access::key_record(workspace, "first", &key), now())
            .await?;
        println!("API key (shown only now): {key}");
    }
    Ok(())
}

async fn bootstrap(store: &dyn Store, workspace: WorkspaceId, key: &str) -> Result<(), Failure> {
    const LEAST: usize = 8;
    if key.len() < LEAST {
        return Err(format!("setting `bootstrap_api_key`: a key needs at least {LEAST} characters").into());
    }
    if store.principal_by_hash(&access::hash_key(key)).await?.is_some() {
        return Ok(());
    }
    match store
        .create_key(access::key_record(workspace, "bootstrap", key), now())
        .await
    {
        Ok(_) => Ok(()),
        Err(docmill_store::StoreError::NameTaken(_)) => {
            tracing::warn!("the key in `bootstrap_api_key` was revoked and stays so");
            Ok(())
        }
        Err(error) => Err(error.into()),
    }
}

fn start_logging(config: &Config) -> Result<(), Failure> {
    let filter = EnvFilter::try_new(&config.log.level).map_err(|error| format!("setting `log.level`: {error}"))?;
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr);
    if config.log.format == "json" {
        builder.json().init();
    } else {
        builder.init();
    }
    Ok(())
}
