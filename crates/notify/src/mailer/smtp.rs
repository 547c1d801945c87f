//! The pool of connections to the mail server.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::connection::{Connection, Server};
use super::{ConfigError, SendError, Sent, SmtpOptions};
use crate::Message;

/// How long a connection is kept for the next mail; servers close idle ones after some minutes.
const KEPT: Duration = Duration::from_secs(30);
/// Most mails over one connection, as some servers want no more.
const MOST_MAILS: u32 = 100;

/// Sends over SMTP.
#[derive(Debug)]
pub(super) struct Smtp {
    server: Server,
    idle: Mutex<Vec<Idle>>,
    permits: Semaphore,
}

struct Idle {
    connection: Connection,
    since: Instant,
    mails: u32,
}

impl std::fmt::Debug for Idle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Idle")
    }
}

impl Smtp {
    pub(super) fn new(options: SmtpOptions) -> Result<Self, ConfigError> {
        Ok(Self {
            permits: Semaphore::new(options.connections.clamp(1, 1_000)),
            idle: Mutex::default(),
            server: Server::new(options)?,
        })
    }

    pub(super) async fn send(&self, message: &Message) -> Result<Sent, SendError> {
        // The semaphore is never closed.
        let _permit = self.permits.acquire().await;
        let (mut connection, mails) = match self.reused().await {
            Some(kept) => kept,
            None => (self.server.connect().await?, 0),
        };
        let outcome = connection.deliver(message).await;
        if connection.is_usable() && mails + 1 < MOST_MAILS {
            self.idle().push(Idle {
                connection,
                since: Instant::now(),
                mails: mails + 1,
            });
        } else {
            connection.quit();
        }
        outcome
    }

    /// Whether the server is there and takes the login.
    pub(super) async fn check(&self) -> Result<(), SendError> {
        self.server.connect().await?.quit();
        Ok(())
    }

    /// A kept connection that still answers.
    async fn reused(&self) -> Option<(Connection, u32)> {
        loop {
            let Idle {
                mut connection,
                since,
                mails,
            } = self.idle().pop()?;
            if since.elapsed() > KEPT {
                connection.quit();
            } else if connection.reset().await {
                return Some((connection, mails));
            } else {
                // The others have most likely gone the same way: nobody waits for each of them.
                self.idle().clear();
            }
        }
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Idle>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
