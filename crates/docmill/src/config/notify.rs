//! Settings of mails and notification channels.

use std::path::PathBuf;
use std::time::Duration;

use docmill_engine::NotificationConfig;
use docmill_model::time::{Micros, SECOND};
use docmill_notify::{Mailer, Sender, SmtpOptions, SmtpUrl};
use docmill_store::CodeLimits;
use serde::{Deserialize, Serialize};
use url::Url;

use super::{Config, ConfigError, Secret};

/// Sender of mails that are written as files only.
const FILES_FROM: &str = "docmill <docmill@localhost.invalid>";

/// Folder of mails that are written as files, in the data directory.
const OUTBOX: &str = "outbox";

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "see DEFAULTS")]
pub(crate) struct Mail {
    pub(crate) smtp_url: Secret,
    pub(crate) from: String,
    pub(crate) ca_file: PathBuf,
    pub(crate) max_per_minute: u32,
    pub(crate) connections: u32,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "see DEFAULTS")]
pub(crate) struct Channels {
    pub(crate) max_per_scope: u32,
    pub(crate) code_lifetime_secs: u32,
    pub(crate) code_tries: u32,
    pub(crate) code_cool_down_secs: u32,
    pub(crate) codes_per_day: u32,
    pub(crate) workspace_codes_per_day: u32,
    pub(crate) wrong_codes_per_day: u32,
    pub(crate) webhooks_at_once: u32,
    pub(crate) webhooks_per_host: u32,
    pub(crate) secret_overlap_hours: u32,
    pub(crate) disable_after_days: u32,
}

impl Config {
    /// Where mails are handed over; `None` when they are written as files.
    pub(crate) fn smtp(&self) -> Result<Option<SmtpUrl>, ConfigError> {
        let Some(text) = self.mail.smtp_url.expose() else {
            return Ok(None);
        };
        SmtpUrl::parse(text).map(Some).map_err(|error| ConfigError::Invalid {
            name: "mail.smtp_url",
            problem: error.to_string().replace("mail.smtp_url: ", ""),
        })
    }

    /// Folder that mails are written to when there is no server for them.
    pub(crate) fn outbox(&self) -> PathBuf {
        self.data_dir.join(OUTBOX)
    }

    /// Whom mails are from.
    pub(crate) fn mail_from(&self) -> Result<Sender, ConfigError> {
        let invalid = |problem: String| ConfigError::Invalid {
            name: "mail.from",
            problem,
        };
        let from = match self.mail.from.trim() {
            "" if self.mail.smtp_url.expose().is_some() => {
                return Err(invalid(
                    "with `mail.smtp_url` set it must name an address the server may send from, such as \
                     `docmill <no-reply@example.com>`"
                        .into(),
                ));
            }
            "" => FILES_FROM,
            from => from,
        };
        Sender::parse(from).map_err(|error| invalid(error.to_string()))
    }

    /// The server's address as people reach it, without a slash at its end.
    pub(crate) fn public_url(&self) -> Result<Option<String>, ConfigError> {
        let invalid = |problem: String| ConfigError::Invalid {
            name: "server.public_url",
            problem,
        };
        let text = self.server.public_url.trim();
        if text.is_empty() {
            return Ok(None);
        }
        let url = Url::parse(text).map_err(|error| invalid(format!("`{text}` is no URL: {error}")))?;
        let web = matches!(url.scheme(), "http" | "https") && url.host_str().is_some();
        let bare = url.query().is_none() && url.fragment().is_none();
        if !web || !bare || !url.username().is_empty() || url.password().is_some() {
            return Err(invalid(
                "it must be like `https://docmill.example.com`, without user, password, `?` and `#`".into(),
            ));
        }
        Ok(Some(url.as_str().trim_end_matches('/').to_owned()))
    }

    pub(super) fn check_notifications(&self) -> Result<(), ConfigError> {
        for (name, value) in [
            ("mail.max_per_minute", self.mail.max_per_minute),
            ("mail.connections", self.mail.connections),
            ("channels.code_lifetime_secs", self.channels.code_lifetime_secs),
            ("channels.code_tries", self.channels.code_tries),
            ("channels.codes_per_day", self.channels.codes_per_day),
            (
                "channels.workspace_codes_per_day",
                self.channels.workspace_codes_per_day,
            ),
            ("channels.wrong_codes_per_day", self.channels.wrong_codes_per_day),
            ("channels.webhooks_at_once", self.channels.webhooks_at_once),
            ("channels.webhooks_per_host", self.channels.webhooks_per_host),
            ("channels.disable_after_days", self.channels.disable_after_days),
        ] {
            if value == 0 {
                return Err(ConfigError::Invalid {
                    name,
                    problem: "0 is less than 1".into(),
                });
            }
        }
        self.smtp()?;
        self.mail_from()?;
        self.public_url()?;
        Ok(())
    }

    fn code_limits(&self) -> CodeLimits {
        let channels = &self.channels;
        CodeLimits {
            lifetime: Micros::from(channels.code_lifetime_secs) * SECOND,
            tries: channels.code_tries,
            cool_down: Micros::from(channels.code_cool_down_secs) * SECOND,
            codes_a_day: channels.codes_per_day,
            workspace_codes_a_day: channels.workspace_codes_per_day,
            wrong_a_day: channels.wrong_codes_per_day,
        }
    }

    /// How notification channels are kept and served.
    pub(crate) fn notification_config(&self) -> Result<NotificationConfig, ConfigError> {
        let from = self.mail_from()?;
        let base = match self.smtp()? {
            Some(url) => {
                let options = SmtpOptions {
                    url,
                    ca_file: Some(self.mail.ca_file.clone()).filter(|file| !file.as_os_str().is_empty()),
                    connections: self.mail.connections as usize,
                };
                let mailer = Mailer::smtp(options).map_err(|error| ConfigError::Invalid {
                    name: "mail.ca_file",
                    problem: error.to_string(),
                })?;
                NotificationConfig::new(mailer, from)
            }
            None => NotificationConfig::files(self.outbox(), from),
        };
        let channels = &self.channels;
        let hours = |hours: u32| Duration::from_secs(u64::from(hours) * 3_600);
        Ok(NotificationConfig {
            public_url: self.public_url()?,
            mails_a_minute: self.mail.max_per_minute,
            max_per_scope: channels.max_per_scope,
            codes: self.code_limits(),
            mails_at_once: self.mail.connections,
            webhooks_at_once: channels.webhooks_at_once,
            webhooks_per_host: channels.webhooks_per_host,
            rotation_overlap: hours(channels.secret_overlap_hours),
            disable_after: hours(channels.disable_after_days.saturating_mul(24)),
            ..base
        })
    }
}
