//! Settings: compiled-in defaults, then a file, then the environment, then flags.

mod list;
mod models;
mod notify;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use docmill_api::RequestLimits;
use docmill_connectors::Environment;
use docmill_egress::Policy;
use docmill_engine::{EngineConfig, Models};
use docmill_model::limits::ParseLimits;
use docmill_model::provider::Provider;
use docmill_providers::ProviderSettings;
use docmill_sandbox::{ChildLimits, Level};
use docmill_store::sqlite::Slots;
use figment::Figment;
use figment::providers::{Env, Format, Toml};
use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use self::list::list;

/// The documented defaults.
pub(crate) const DEFAULTS: &str = include_str!("../docmill.default.toml");

/// Every setting. The documentation of each is in [`DEFAULTS`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "documented where the defaults are, which users read too")]
pub(crate) struct Config {
    pub(crate) data_dir: PathBuf,
    pub(crate) bootstrap_api_key: Secret,
    pub(crate) server: Server,
    pub(crate) store: Location,
    pub(crate) blobs: Location,
    pub(crate) auth: Auth,
    pub(crate) engine: Engine,
    pub(crate) sandbox: Sandbox,
    pub(crate) pdfium: Library,
    pub(crate) heif: Library,
    pub(crate) secrets: Secrets,
    pub(crate) connectors: Connectors,
    pub(crate) egress: Egress,
    #[serde(default)]
    pub(crate) providers: BTreeMap<Provider, ProviderSettings>,
    pub(crate) models: models::ModelChoice,
    pub(crate) cache: models::Cache,
    pub(crate) budget: models::Budget,
    pub(crate) mail: notify::Mail,
    pub(crate) channels: notify::Channels,
    pub(crate) limits: Limits,
    pub(crate) log: Log,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "see DEFAULTS")]
pub(crate) struct Server {
    pub(crate) listen: String,
    pub(crate) public_url: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "see DEFAULTS")]
pub(crate) struct Location {
    pub(crate) url: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "see DEFAULTS")]
pub(crate) struct Auth {
    #[serde(deserialize_with = "list")]
    pub(crate) key_headers: Vec<String>,
    pub(crate) require_bearer_for_workflows: bool,
    pub(crate) token_lifetime_secs: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "see DEFAULTS")]
pub(crate) struct Engine {
    pub(crate) workers: usize,
    pub(crate) lease_secs: u64,
    pub(crate) max_attempts: u32,
    pub(crate) drain_secs: u64,
    pub(crate) retention_days: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "see DEFAULTS")]
pub(crate) struct Sandbox {
    pub(crate) require: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "see DEFAULTS")]
pub(crate) struct Library {
    pub(crate) library: PathBuf,
}

impl Library {
    /// Where the library is, if it is to be used.
    pub(crate) fn path(&self) -> Option<PathBuf> {
        Some(self.library.clone()).filter(|library| !library.as_os_str().is_empty())
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "see DEFAULTS")]
pub(crate) struct Secrets {
    pub(crate) key: Secret,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "see DEFAULTS")]
pub(crate) struct Connectors {
    #[serde(deserialize_with = "list")]
    pub(crate) local_roots: Vec<PathBuf>,
    pub(crate) allow_ambient_credentials: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "see DEFAULTS")]
pub(crate) struct Egress {
    #[serde(deserialize_with = "list")]
    pub(crate) danger_allow_cidrs: Vec<String>,
    pub(crate) allow_http: bool,
    pub(crate) ca_file: PathBuf,
}

impl Egress {
    /// The file of certificate authorities, if there is one.
    pub(crate) fn ca_file(&self) -> Option<PathBuf> {
        Some(self.ca_file.clone()).filter(|file| !file.as_os_str().is_empty())
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "see DEFAULTS")]
pub(crate) struct Log {
    pub(crate) level: String,
    pub(crate) format: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "see DEFAULTS")]
pub(crate) struct Limits {
    pub(crate) max_files_per_job: usize,
    pub(crate) max_files_per_run: u64,
    pub(crate) max_file_bytes: u64,
    pub(crate) create_gap_ms: u64,
    pub(crate) max_running_local_jobs: u32,
    pub(crate) max_running_workflow_jobs: u32,
    pub(crate) request_timeout_secs: u64,
    pub(crate) idle_timeout_secs: u64,
    pub(crate) task_memory_bytes: u64,
    pub(crate) task_cpu_secs: u64,
    pub(crate) task_timeout_secs: u64,
    pub(crate) task_stall_secs: u64,
    pub(crate) ocr_page_secs: u64,
    pub(crate) ocr_max_secs: u64,
    pub(crate) max_output_bytes: u64,
    pub(crate) max_expanded_bytes: u64,
    pub(crate) max_archive_entries: u64,
    pub(crate) max_depth: u32,
    pub(crate) max_elements: u64,
    pub(crate) max_pages: u32,
    pub(crate) max_table_cells: u64,
    pub(crate) max_image_pixels: u64,
}

/// A text that is never shown or logged.
#[derive(Clone, Default, Deserialize)]
#[serde(transparent)]
pub(crate) struct Secret(String);

impl Secret {
    /// The text; `None` when it is empty.
    pub(crate) fn expose(&self) -> Option<&str> {
        Some(self.0.as_str()).filter(|text| !text.is_empty())
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.is_empty() { "\"\"" } else { "\"***\"" })
    }
}

impl Serialize for Secret {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(if self.0.is_empty() { "" } else { "***" })
    }
}

/// Why the settings can't be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    /// Unreadable, or a value of the wrong type, or an unknown name.
    #[error("{0}")]
    Read(Box<figment::Error>),
    /// A value that makes no sense.
    #[error("setting `{name}`: {problem}")]
    Invalid {
        /// Name of the setting.
        name: &'static str,
        /// What is wrong with it.
        problem: String,
    },
}

/// Settings given as flags.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flags {
    /// A file of settings.
    pub(crate) file: Option<PathBuf>,
    /// Overrides `data_dir`.
    pub(crate) data_dir: Option<PathBuf>,
    /// Overrides `server.listen`.
    pub(crate) listen: Option<String>,
}

impl Config {
    /// Reads and checks the settings.
    pub(crate) fn load(flags: &Flags) -> Result<Self, ConfigError> {
        let mut figment = Figment::from(Toml::string(DEFAULTS));
        if let Some(file) = &flags.file {
            figment = figment.merge(Toml::file_exact(file));
        }
        figment = figment.merge(Env::prefixed("DOCMILL_").ignore(&["config", "password"]).split("__"));
        if let Some(data_dir) = &flags.data_dir {
            figment = figment.merge(("data_dir", data_dir));
        }
        if let Some(listen) = &flags.listen {
            figment = figment.merge(("server.listen", listen));
        }
        let config: Self = figment.extract().map_err(|error| ConfigError::Read(Box::new(error)))?;
        config.check()?;
        Ok(config)
    }

    fn check(&self) -> Result<(), ConfigError> {
        let at_least = |name: &'static str, value: u64, least: u64| {
            if value >= least {
                Ok(())
            } else {
                Err(ConfigError::Invalid {
                    name,
                    problem: format!("{value} is less than {least}"),
                })
            }
        };
        at_least("engine.lease_secs", self.engine.lease_secs, 3)?;
        at_least("engine.max_attempts", self.engine.max_attempts.into(), 1)?;
        at_least("limits.max_files_per_job", self.limits.max_files_per_job as u64, 1)?;
        at_least("limits.max_file_bytes", self.limits.max_file_bytes, 1)?;
        at_least("limits.task_memory_bytes", self.limits.task_memory_bytes, 64 << 20)?;
        at_least("limits.task_cpu_secs", self.limits.task_cpu_secs, 1)?;
        at_least("limits.task_timeout_secs", self.limits.task_timeout_secs, 1)?;
        at_least("limits.task_stall_secs", self.limits.task_stall_secs, 1)?;
        at_least("limits.max_depth", self.limits.max_depth.into(), 16)?;
        at_least("auth.token_lifetime_secs", self.auth.token_lifetime_secs, 1)?;
        if self.auth.key_headers.is_empty() {
            return Err(ConfigError::Invalid {
                name: "auth.key_headers",
                problem: "the list is empty".into(),
            });
        }
        if !matches!(self.log.format.as_str(), "text" | "json") {
            return Err(ConfigError::Invalid {
                name: "log.format",
                problem: "it must be `text` or `json`".into(),
            });
        }
        self.required_level()?;
        self.vault_key()?;
        self.environment()?;
        self.check_models()?;
        self.check_notifications()?;
        self.database()?;
        self.blob_dir()?;
        Ok(())
    }

    /// Path of the SQLite database.
    pub(crate) fn database(&self) -> Result<PathBuf, ConfigError> {
        location(
            "store.url",
            &self.store.url,
            "sqlite:",
            &self.data_dir.join("docmill.db"),
        )
    }

    /// Folder of the blobs.
    pub(crate) fn blob_dir(&self) -> Result<PathBuf, ConfigError> {
        location("blobs.url", &self.blobs.url, "file:", &self.data_dir.join("blobs"))
    }

    /// The weakest isolation accepted.
    pub(crate) fn required_level(&self) -> Result<Level, ConfigError> {
        match self.sandbox.require.as_str() {
            "" if cfg!(target_os = "linux") => Ok(Level::BestEffort),
            "" => Ok(Level::ProcessOnly),
            text => text.parse().map_err(|problem| ConfigError::Invalid {
                name: "sandbox.require",
                problem,
            }),
        }
    }

    /// Limits of each child process.
    pub(crate) fn child_limits(&self) -> ChildLimits {
        ChildLimits {
            memory_bytes: self.limits.task_memory_bytes,
            cpu_secs: self.limits.task_cpu_secs,
            wall: Duration::from_secs(self.limits.task_timeout_secs),
            stall: Duration::from_secs(self.limits.task_stall_secs),
            page_secs: self.limits.ocr_page_secs,
            max_page_secs: self.limits.ocr_max_secs,
            max_output_bytes: self.limits.max_output_bytes,
            ..ChildLimits::default()
        }
    }

    /// Limits of the parsers.
    pub(crate) fn parse_limits(&self) -> ParseLimits {
        ParseLimits {
            max_expanded_bytes: self.limits.max_expanded_bytes,
            max_archive_entries: self.limits.max_archive_entries,
            max_depth: self.limits.max_depth,
            max_elements: self.limits.max_elements,
            max_pages: self.limits.max_pages,
            max_table_cells: self.limits.max_table_cells,
            max_image_pixels: self.limits.max_image_pixels,
        }
    }

    /// Files processed at once.
    pub(crate) fn workers(&self) -> usize {
        match self.engine.workers {
            0 => std::thread::available_parallelism().map_or(2, usize::from),
            workers => workers,
        }
    }

    /// How the engine runs.
    pub(crate) fn engine_config(&self, models: Models) -> EngineConfig {
        let day = 86_400;
        EngineConfig {
            models,
            lease: Duration::from_secs(self.engine.lease_secs),
            max_attempts: self.engine.max_attempts,
            drain: Duration::from_secs(self.engine.drain_secs),
            retention: (self.engine.retention_days > 0).then(|| Duration::from_secs(self.engine.retention_days * day)),
            create_gap: Duration::from_millis(self.limits.create_gap_ms),
            max_file_bytes: self.limits.max_file_bytes,
            max_files_per_run: Some(self.limits.max_files_per_run).filter(|most| *most > 0),
            parse_limits: self.parse_limits(),
        }
    }

    /// How many jobs of one account run at once.
    pub(crate) fn slots(&self) -> Slots {
        Slots {
            local_jobs: self.limits.max_running_local_jobs,
            workflow_jobs: match self.limits.max_running_workflow_jobs {
                0 => u32::try_from(self.workers()).unwrap_or(u32::MAX).max(1),
                runs => runs,
            },
        }
    }

    /// The key of connectors' secrets; `None` when it is kept in the data directory.
    pub(crate) fn vault_key(&self) -> Result<Option<[u8; 32]>, ConfigError> {
        let Some(text) = self.secrets.key.expose() else {
            return Ok(None);
        };
        let text = text.trim();
        let bytes = hex::decode(text).ok().or_else(|| STANDARD.decode(text).ok());
        match bytes.and_then(|bytes| bytes.try_into().ok()) {
            Some(key) => Ok(Some(key)),
            // Not shown: it may be the secret with a slip in it.
            None => Err(ConfigError::Invalid {
                name: "secrets.key",
                problem: "it must be 32 bytes, as base64 or as 64 hexadecimal digits; \
                          `openssl rand -base64 32` makes one"
                    .into(),
            }),
        }
    }

    /// What connectors may use.
    pub(crate) fn environment(&self) -> Result<Environment, ConfigError> {
        let allow = self
            .egress
            .danger_allow_cidrs
            .iter()
            .map(|text| cidr(text))
            .collect::<Result<_, _>>()?;
        for root in &self.connectors.local_roots {
            if !root.is_absolute() {
                return Err(ConfigError::Invalid {
                    name: "connectors.local_roots",
                    problem: format!("`{}` is not an absolute path", root.display()),
                });
            }
        }
        Ok(Environment {
            egress: docmill_egress::Egress::new(Policy {
                allow,
                allow_http: self.egress.allow_http,
                ca_file: self.egress.ca_file(),
            }),
            local_roots: Some(self.connectors.local_roots.clone()),
            ambient_credentials: self.connectors.allow_ambient_credentials,
        })
    }

    /// Limits of requests.
    pub(crate) fn request_limits(&self) -> RequestLimits {
        RequestLimits {
            max_files_per_job: self.limits.max_files_per_job,
            max_file_bytes: self.limits.max_file_bytes,
            create_gap_ms: self.limits.create_gap_ms,
            max_running_local_jobs: self.limits.max_running_local_jobs,
        }
    }

    /// Limits that parts other than the HTTP edge enforce, for `GET /limits`.
    pub(crate) fn other_limits(&self) -> Vec<(&'static str, u64)> {
        let limits = &self.limits;
        vec![
            ("max_files_per_run", limits.max_files_per_run),
            ("max_running_workflow_jobs", self.slots().workflow_jobs.into()),
            ("max_channels_per_scope", self.channels.max_per_scope.into()),
            ("channel_code_lifetime_secs", self.channels.code_lifetime_secs.into()),
            ("channel_code_tries", self.channels.code_tries.into()),
            ("channel_code_cool_down_secs", self.channels.code_cool_down_secs.into()),
            ("channel_codes_per_day", self.channels.codes_per_day.into()),
            ("channel_wrong_codes_per_day", self.channels.wrong_codes_per_day.into()),
            ("max_mails_per_minute", self.mail.max_per_minute.into()),
            ("request_timeout_secs", limits.request_timeout_secs),
            ("idle_timeout_secs", limits.idle_timeout_secs),
            ("task_memory_bytes", limits.task_memory_bytes),
            ("task_cpu_secs", limits.task_cpu_secs),
            ("task_timeout_secs", limits.task_timeout_secs),
            ("task_stall_secs", limits.task_stall_secs),
            ("ocr_page_secs", limits.ocr_page_secs),
            ("ocr_max_secs", limits.ocr_max_secs),
            ("max_output_bytes", limits.max_output_bytes),
            ("max_expanded_bytes", limits.max_expanded_bytes),
            ("max_archive_entries", limits.max_archive_entries),
            ("max_depth", limits.max_depth.into()),
            ("max_elements", limits.max_elements),
            ("max_pages", limits.max_pages.into()),
            ("max_table_cells", limits.max_table_cells),
            ("max_image_pixels", limits.max_image_pixels),
        ]
    }
}

/// A network; a single address stands for itself.
fn cidr(text: &str) -> Result<IpNet, ConfigError> {
    let net = text.parse::<IpNet>().ok();
    net.or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from))
        .ok_or_else(|| ConfigError::Invalid {
            name: "egress.danger_allow_cidrs",
            problem: format!("`{text}` is no network such as `10.1.0.0/16`"),
        })
}

fn location(name: &'static str, url: &str, scheme: &str, default: &Path) -> Result<PathBuf, ConfigError> {
    if url.is_empty() {
        return Ok(default.to_owned());
    }
    match url.strip_prefix(scheme) {
        Some(path) => Ok(PathBuf::from(path.strip_prefix("//").unwrap_or(path))),
        None => Err(ConfigError::Invalid {
            name,
            problem: format!("`{url}` is not available in this version; it must start with `{scheme}`"),
        }),
    }
}

#[cfg(test)]
mod tests;
