//! What notifications say and how they leave: mails, over SMTP or as files, and signed webhooks.
//!
//! The way of an event: a [`JobReport`] becomes a [`Mail`], which [`Mail::address`] turns into a
//! [`Message`] for one channel's people and a [`Mailer`] sends; or it becomes the bytes of [`payload`],
//! which a [`WebhookSender`] signs and posts. [`retry_delay`] says when to try again.
//!
//! Nothing here knows the store, the HTTP server or the time: instants and random bytes are arguments.
//! Text that people chose (names of workflows and files, descriptions, reasons) is made one plain line
//! wherever it appears, so that it can neither break a header nor bring markup or links of its own.

mod address;
mod mail;
mod mailer;
mod message;
mod payload;
mod report;
mod retry;
mod unsubscribe;
mod webhook;
mod words;

pub use address::{AddressError, Mailbox, Sender};
pub use mail::{DisabledChannel, Mail};
pub use mailer::{ConfigError, Mailer, Refusal, SendError, Sent, SmtpOptions, SmtpUrl, Stage};
pub use message::{Addressing, Message, MessageError};
pub use payload::{payload, test_payload};
pub use report::{FailedFile, FileCounts, JobReport};
pub use retry::retry_delay;
pub use unsubscribe::{unsubscribe_token, verify_unsubscribe_token};
pub use webhook::{AttemptReport, Outcome, SecretError, WebhookSecret, WebhookSender, sign, verify};
