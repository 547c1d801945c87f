//! The only way out: every connection docmill opens on somebody else's behalf (connectors, webhooks,
//! model providers) is made here, so that no address given by a client reaches what the network around
//! the server hides.
//!
//! An address is vetted after the name was resolved and the connection goes to that very address, so a
//! name that changes its answer gains nothing. Redirects are never followed and proxies never used.

mod client;
mod error;
mod http;
pub mod identity;
mod policy;
mod resolve;
mod tls;

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

pub use client::HttpClient;
pub use error::EgressError;
pub use http::{cause, first_bytes};
pub use policy::Policy;
pub use resolve::Resolver;
use tokio::net::TcpStream;
use tokio::time::Instant;
use url::Url;

/// The guard. Clones share one state.
#[derive(Clone, Debug)]
pub struct Egress {
    policy: Arc<Policy>,
    resolver: Arc<dyn Resolver>,
    /// Made at first use: reading the machine's certificates takes a while.
    tls: Arc<OnceLock<Arc<rustls::ClientConfig>>>,
}

impl Egress {
    /// A guard with a policy, which asks the machine's own resolver.
    pub fn new(policy: Policy) -> Self {
        Self::with_resolver(policy, Arc::new(resolve::System))
    }

    /// A guard that asks another resolver. Whatever it answers is vetted all the same.
    pub fn with_resolver(policy: Policy, resolver: Arc<dyn Resolver>) -> Self {
        Self {
            policy: Arc::new(policy),
            resolver,
            tls: Arc::default(),
        }
    }

    /// The policy.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Checks what can be told of a URL without resolving its host: scheme `https` (or `http` where the
    /// policy allows), a host, no user or password, no address, name or port that is refused.
    ///
    /// # Errors
    /// [`EgressError::Refused`] with the reason.
    pub fn check_url(&self, url: &str) -> Result<Url, EgressError> {
        let url = Url::parse(url).map_err(|error| EgressError::Refused(format!("this is no URL: {error}")))?;
        self.policy.check_url(&url)?;
        Ok(url)
    }

    /// An HTTP client that connects to vetted addresses only, follows no redirect, uses no proxy, and
    /// gives up after `timeout`. Its requests to a URL that [`Egress::check_url`] refuses fail, with the
    /// refusal to be found by [`cause`].
    ///
    /// # Errors
    /// [`EgressError::Setup`] when TLS can't be set up.
    pub fn http_client(&self, timeout: Duration) -> Result<HttpClient, EgressError> {
        self.client(http::Patience {
            idle: timeout,
            total: Some(timeout),
        })
    }

    /// Like [`Egress::http_client`], for exchanges that may take long as a whole: gives up when nothing
    /// arrives for `idle`.
    ///
    /// # Errors
    /// [`EgressError::Setup`] when TLS can't be set up.
    pub fn streaming_client(&self, idle: Duration) -> Result<HttpClient, EgressError> {
        self.client(http::Patience { idle, total: None })
    }

    fn client(&self, patience: http::Patience) -> Result<HttpClient, EgressError> {
        let tls = self.tls_config()?;
        let client = http::client(&self.policy, &self.resolver, &tls, patience)?;
        Ok(HttpClient::new(client, Arc::clone(&self.policy)))
    }

    /// How TLS is spoken to services other than HTTP: versions, cryptography and trusted authorities.
    ///
    /// # Errors
    /// [`EgressError::Setup`] when the file of the setting `egress.ca_file` can't be used.
    pub fn tls_config(&self) -> Result<Arc<rustls::ClientConfig>, EgressError> {
        if let Some(config) = self.tls.get() {
            return Ok(Arc::clone(config));
        }
        let made = tls::config(self.policy.ca_file.as_deref())?;
        Ok(Arc::clone(self.tls.get_or_init(|| made)))
    }

    /// The addresses of `host` (a name, or an address in any form URLs know) that may be connected to.
    /// Whoever connects itself must connect to one of these and must not resolve the name again.
    ///
    /// # Errors
    /// [`EgressError::Refused`] when every address is refused, [`EgressError::Unresolved`] when there is
    /// none.
    pub async fn addresses(&self, host: &str, port: u16) -> Result<Vec<SocketAddr>, EgressError> {
        let found = resolve::vetted(&self.policy, self.resolver.as_ref(), host).await?;
        Ok(found.into_iter().map(|ip| SocketAddr::new(ip, port)).collect())
    }

    /// A TCP connection to a vetted address of `host`, tried in the resolver's order.
    ///
    /// # Errors
    /// [`EgressError::Refused`] when every address is refused, else why none could be reached.
    pub async fn connect(&self, host: &str, port: u16, timeout: Duration) -> Result<TcpStream, EgressError> {
        let end = Instant::now() + timeout;
        let addresses = self.addresses(host, port).await?;
        let mut reason = String::from("no address was tried");
        let mut left = u32::try_from(addresses.len()).unwrap_or(u32::MAX);
        for address in addresses {
            // Each address gets its share, so that a dead one leaves time for the next.
            let share = end.saturating_duration_since(Instant::now()) / left.max(1);
            left = left.saturating_sub(1);
            match tokio::time::timeout(share, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => {
                    let _ = stream.set_nodelay(true);
                    return Ok(stream);
                }
                Ok(Err(error)) => reason = format!("{address}: {error}"),
                Err(_) => reason = format!("{address}: no answer in time"),
            }
        }
        Err(EgressError::Unreachable {
            host: host.to_owned(),
            reason,
        })
    }
}
