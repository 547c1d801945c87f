//! Names to vetted addresses.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use url::Host;

use crate::{EgressError, Policy};

/// Longest wait for the name service.
const PATIENCE: Duration = Duration::from_secs(10);

/// Most addresses of a name that are looked at.
const MOST_ADDRESSES: usize = 64;

/// Who is asked for the addresses of a name.
pub trait Resolver: Send + Sync + std::fmt::Debug {
    /// Every address of `host`, which is a name and no address.
    fn resolve(&self, host: String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>>;
}

/// The machine's own resolver: hosts file, then DNS as it is set up there.
#[derive(Debug)]
pub(crate) struct System;

impl Resolver for System {
    fn resolve(&self, host: String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            let found = tokio::net::lookup_host((host.as_str(), 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}

/// The addresses of a host that may be reached; those are the ones to connect to.
pub(crate) async fn vetted(policy: &Policy, resolver: &dyn Resolver, host: &str) -> Result<Vec<IpAddr>, EgressError> {
    let name = match parse(host)? {
        Host::Ipv4(ip) => return policy.check_ip(ip.into()).map(|()| vec![ip.into()]),
        Host::Ipv6(ip) => return policy.check_ip(ip.into()).map(|()| vec![ip.into()]),
        Host::Domain(name) => name,
    };
    policy.check_name(&name)?;
    let unresolved = |reason: String| EgressError::Unresolved {
        host: name.clone(),
        reason,
    };
    let found = match tokio::time::timeout(PATIENCE, resolver.resolve(name.clone())).await {
        Ok(Ok(found)) => found,
        Ok(Err(error)) => return Err(unresolved(error.to_string())),
        Err(_) => return Err(unresolved("the name service does not answer".into())),
    };
    let mut refusal = None;
    let mut allowed = Vec::new();
    for ip in found.into_iter().take(MOST_ADDRESSES) {
        match policy.check_ip(ip) {
            Ok(()) => allowed.push(ip.to_canonical()),
            Err(EgressError::Refused(why)) => refusal = Some(EgressError::Refused(format!("{name}: {why}"))),
            Err(error) => refusal = Some(error),
        }
    }
    match (allowed.is_empty(), refusal) {
        (false, _) => Ok(allowed),
        (true, Some(refusal)) => Err(refusal),
        (true, None) => Err(unresolved("it has no address".into())),
    }
}

/// A host as URLs are read, so that every way to write an address is one.
fn parse(host: &str) -> Result<Host, EgressError> {
    if let Ok(ip) = host.parse::<IpAddr>() {
        return Ok(match ip {
            IpAddr::V4(ip) => Host::Ipv4(ip),
            IpAddr::V6(ip) => Host::Ipv6(ip),
        });
    }
    let shown: String = host.chars().take(100).collect();
    Host::parse(host).map_err(|error| EgressError::Refused(format!("`{shown}` is no host name: {error}")))
}

/// Reqwest's way to ask.
pub(crate) struct Vetting {
    pub(crate) policy: Arc<Policy>,
    pub(crate) resolver: Arc<dyn Resolver>,
}

impl reqwest::dns::Resolve for Vetting {
    fn resolve(&self, name: reqwest::dns::Name) -> reqwest::dns::Resolving {
        let (policy, resolver) = (Arc::clone(&self.policy), Arc::clone(&self.resolver));
        Box::pin(async move {
            let name = name.as_str();
            if let Some(error) = crate::http::barred(name) {
                return Err(error.into());
            }
            let found = vetted(&policy, resolver.as_ref(), name).await?;
            let addresses: reqwest::dns::Addrs = Box::new(found.into_iter().map(|ip| SocketAddr::new(ip, 0)));
            Ok(addresses)
        })
    }
}
