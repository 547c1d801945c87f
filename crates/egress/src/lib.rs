//! The only way out: every connection docmill opens on somebody else's behalf (connectors, webhooks,
//! model providers) is made here, so that no address given by a client reaches what the network around
//! the server hides.
//!
//! An address is vetted after the name was resolved and the connection goes to that very address, so a
//! name that changes its answer gains nothing. Redirects are never followed and proxies never used.

mod error;
mod policy;

use std::sync::Arc;
use std::time::Duration;

pub use error::EgressError;
pub use policy::Policy;
use url::Url;

/// The guard. Clones share one state.
#[derive(Clone, Debug)]
pub struct Egress {
    policy: Arc<Policy>,
}

impl Egress {
    /// A guard with a policy.
    pub fn new(policy: Policy) -> Self {
        Self {
            policy: Arc::new(policy),
        }
    }

    /// The policy.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Checks what can be told of a URL without resolving its host: scheme `https` (or `http` where the
    /// policy allows), a host, no user or password, no address that is refused.
    ///
    /// # Errors
    /// [`EgressError::Refused`] with the reason.
    pub fn check_url(&self, url: &str) -> Result<Url, EgressError> {
        let _ = url;
        Err(EgressError::Refused("not built yet".into()))
    }

    /// An HTTP client that connects to vetted addresses only, follows no redirect, uses no proxy, and
    /// gives up after `timeout`. Its requests to a URL that [`Egress::check_url`] refuses fail.
    ///
    /// # Errors
    /// [`EgressError::Setup`] when TLS can't be set up.
    pub fn http_client(&self, timeout: Duration) -> Result<reqwest::Client, EgressError> {
        let _ = timeout;
        Err(EgressError::Setup("not built yet".into()))
    }

    /// A TCP connection to a vetted address of `host`.
    ///
    /// # Errors
    /// [`EgressError::Refused`] when every address is refused, else why none could be reached.
    pub async fn connect(
        &self,
        host: &str,
        port: u16,
        timeout: Duration,
    ) -> Result<tokio::net::TcpStream, EgressError> {
        let _ = (host, port, timeout);
        Err(EgressError::Refused("not built yet".into()))
    }
}
