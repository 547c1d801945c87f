//! How mails leave: over SMTP, or as files where no server is set.

mod connection;
mod folder;
mod smtp;
mod url;

use std::path::PathBuf;

pub use url::SmtpUrl;

use crate::Message;

/// How to send over SMTP.
#[derive(Clone, Debug)]
pub struct SmtpOptions {
    /// Server, encryption and login.
    pub url: SmtpUrl,
    /// A PEM file of certificate authorities that are trusted besides the machine's.
    pub ca_file: Option<PathBuf>,
    /// Most connections at a time.
    pub connections: usize,
}

/// Why a setting can't be used. Holds no secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConfigError(pub(crate) String);

/// Sends mails.
#[derive(Debug)]
pub struct Mailer(Way);

#[derive(Debug)]
enum Way {
    Smtp(smtp::Smtp),
    Folder(folder::Folder),
}

/// A mail that was taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// What the server answered, or the file that was written.
    pub answer: String,
    /// Recipients in copy that the server refused while it took the others. The one the mail is to is
    /// never among them: when that one is refused, nothing is sent.
    pub refused: Vec<Refusal>,
}

/// A recipient in copy that was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The address.
    pub address: String,
    /// The server's code, 400 to 599.
    pub smtp_code: u16,
    /// What the server said.
    pub message: String,
}

/// Where a mail failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Connection, greeting or encryption.
    Connect,
    /// Login.
    Login,
    /// The server would not take mail from this sender.
    Sender,
    /// The recipient was refused.
    Recipient,
    /// The mail itself was refused, or the connection broke while it was handed over.
    Content,
    /// The file could not be written.
    File,
}

/// A mail that was not taken, as far as one knows. Holds no secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SendError {
    /// The server refused this recipient or this mail for good (5xx): trying again is of no use. What
    /// the operator can repair (login, sender, encryption) is never permanent, whatever its code.
    pub permanent: bool,
    /// The server's code, if it gave one.
    pub smtp_code: Option<u16>,
    /// Where it failed.
    pub stage: Stage,
    /// The connection broke after the mail was handed over and before the server confirmed it: it may or
    /// may not have been taken. Trying again with the same Message-ID lets receivers drop the second.
    pub outcome_unknown: bool,
    /// What happened, with the server's words.
    pub message: String,
}

impl Mailer {
    /// A mailer that speaks SMTP. Connects at the first mail; connections are kept for some seconds.
    ///
    /// # Errors
    /// [`ConfigError`] when the file of authorities can't be used.
    pub fn smtp(options: SmtpOptions) -> Result<Self, ConfigError> {
        Ok(Self(Way::Smtp(smtp::Smtp::new(options)?)))
    }

    /// A mailer that writes each mail as an `.eml` file into a directory, which is made when missing.
    pub fn files(directory: impl Into<PathBuf>) -> Self {
        Self(Way::Folder(folder::Folder::new(directory.into())))
    }

    /// Connects to the mail server, encrypts and logs in as for a mail, and sends nothing. With files there is
    /// nothing to check.
    ///
    /// # Errors
    /// [`SendError`] when the server can't be reached or refuses the login.
    pub async fn check(&self) -> Result<(), SendError> {
        match &self.0 {
            Way::Smtp(smtp) => smtp.check().await,
            Way::Folder(_) => Ok(()),
        }
    }

    /// Sends a mail to its recipients. Waits for a free connection, then takes six minutes at most: every step of
    /// the conversation has a limit of its own, the longest two minutes for the server's confirmation.
    ///
    /// # Errors
    /// [`SendError`] when it was refused, or may not have arrived.
    pub async fn send(&self, message: &Message) -> Result<Sent, SendError> {
        match &self.0 {
            Way::Smtp(smtp) => smtp.send(message).await,
            Way::Folder(folder) => folder.write(message).await,
        }
    }
}
