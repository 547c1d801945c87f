//! Notification channels: what can be asked about them, and the deliverer that sends what the store's
//! outbox holds.

mod channels;
mod codes;
mod definition;
mod deliver;
mod outbox;
mod secrets;
mod unsubscribe;

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use docmill_egress::{Egress, EgressError};
use docmill_model::channel::ChannelKind;
use docmill_notify::{Mailer, Sender, WebhookSender};
use docmill_store::CodeLimits;
use tokio::sync::Notify;

pub use channels::{ChannelCreated, ChannelRefused};
pub use definition::{ChannelPatch, ChannelRequest, EmailPatch, SecretPatch, TargetRequest};
pub(crate) use deliver::{Underway, delivery_lease_loop, lane_loop};
pub use outbox::TestSend;
pub use unsubscribe::UNSUBSCRIBE_PATH;

/// How channels are kept and served.
#[derive(Clone, Debug)]
pub struct NotificationConfig {
    /// What mails leave by.
    pub mailer: Arc<Mailer>,
    /// Whether that writes them as files because no server is set.
    pub mails_are_files: bool,
    /// Whom mails are from.
    pub from: Sender,
    /// The server's own address as people reach it, without a slash at its end: for links in mails.
    pub public_url: Option<String>,
    /// Mails of events a mailbox gets in a minute; what is more comes together as one.
    pub mails_a_minute: u32,
    /// Channels of a workspace, and of each workflow.
    pub max_per_scope: u32,
    /// Bounds on codes and tries.
    pub codes: CodeLimits,
    /// Mails under way at once.
    pub mails_at_once: u32,
    /// Requests to webhooks under way at once.
    pub webhooks_at_once: u32,
    /// Of them, to one host.
    pub webhooks_per_host: u32,
    /// How long a webhook's secret signs beside the one that replaced it.
    pub rotation_overlap: Duration,
    /// How long nothing but failures may come of a webhook before it is disabled.
    pub disable_after: Duration,
    /// How long a claimed delivery may go without a sign of life of its server.
    pub lease: Duration,
}

impl NotificationConfig {
    /// The defaults with a way for mails to leave.
    pub fn new(mailer: Mailer, from: Sender) -> Self {
        Self {
            mailer: Arc::new(mailer),
            mails_are_files: false,
            from,
            public_url: None,
            mails_a_minute: 10,
            max_per_scope: 50,
            codes: CodeLimits::default(),
            mails_at_once: 8,
            webhooks_at_once: 256,
            webhooks_per_host: 16,
            rotation_overlap: Duration::from_secs(24 * 3_600),
            disable_after: Duration::from_secs(5 * 24 * 3_600),
            lease: Duration::from_secs(60),
        }
    }

    /// The defaults, with mails written as files into a folder.
    pub fn files(folder: impl Into<PathBuf>, from: Sender) -> Self {
        Self {
            mails_are_files: true,
            ..Self::new(Mailer::files(folder), from)
        }
    }
}

/// The state of notifications in this process.
pub(crate) struct Notifications {
    pub(crate) config: NotificationConfig,
    egress: Egress,
    /// Made at first use, as it needs the machine's certificates.
    webhooks: OnceLock<WebhookSender>,
    /// There may be a mail to send.
    mail_wake: Notify,
    /// There may be a webhook to call.
    webhook_wake: Notify,
    pub(crate) underway: Underway,
}

impl Notifications {
    pub(crate) fn new(config: NotificationConfig, egress: Egress) -> Self {
        Self {
            config,
            egress,
            webhooks: OnceLock::new(),
            mail_wake: Notify::new(),
            webhook_wake: Notify::new(),
            underway: Underway::default(),
        }
    }

    /// Has the deliverer look for something to send: to be called when the store may have recorded an event.
    pub(crate) fn wake(&self) {
        self.mail_wake.notify_one();
        self.webhook_wake.notify_one();
    }

    fn lane_wake(&self, lane: ChannelKind) -> &Notify {
        match lane {
            ChannelKind::Email => &self.mail_wake,
            ChannelKind::Webhook => &self.webhook_wake,
        }
    }

    fn webhook_sender(&self) -> Result<WebhookSender, EgressError> {
        if let Some(sender) = self.webhooks.get() {
            return Ok(sender.clone());
        }
        let made = WebhookSender::new(&self.egress)?;
        Ok(self.webhooks.get_or_init(|| made).clone())
    }
}
