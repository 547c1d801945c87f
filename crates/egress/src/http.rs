//! The HTTP client.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use reqwest::{Client, Proxy, Response, redirect};
use rustls::ClientConfig;
use url::{Host, Url};

use crate::resolve::{Resolver, Vetting};
use crate::{EgressError, Policy};

/// Longest time a connection may take to be made.
const CONNECT: Duration = Duration::from_secs(15);

/// Ending of the names that stand for a refusal (`.invalid` never exists, RFC 6761).
const BARRED: &str = ".refused-by-egress-policy.invalid";

/// How long a client waits.
#[derive(Clone, Copy)]
pub(crate) struct Patience {
    /// Between two pieces of an answer.
    pub(crate) idle: Duration,
    /// For a whole exchange.
    pub(crate) total: Option<Duration>,
}

/// A client that can't be made to leave the policy: names go through [`Vetting`], and URLs whose host is
/// an address, which reqwest connects to without asking a resolver, through [`detour`].
pub(crate) fn client(
    policy: &Arc<Policy>,
    resolver: &Arc<dyn Resolver>,
    tls: &ClientConfig,
    patience: Patience,
) -> Result<Client, EgressError> {
    let mut tls = tls.clone();
    tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let detouring = Arc::clone(policy);
    let mut builder = Client::builder()
        .tls_backend_preconfigured(tls)
        .dns_resolver(Arc::new(Vetting {
            policy: Arc::clone(policy),
            resolver: Arc::clone(resolver),
        }))
        .redirect(redirect::Policy::none())
        .referer(false)
        .no_proxy()
        .proxy(Proxy::custom(move |url| detour(&detouring, url)))
        .connect_timeout(CONNECT.min(patience.idle))
        .read_timeout(patience.idle)
        .pool_idle_timeout(Duration::from_secs(60))
        .user_agent(concat!("docmill/", env!("CARGO_PKG_VERSION")));
    if let Some(total) = patience.total {
        builder = builder.timeout(total);
    }
    builder
        .build()
        .map_err(|error| EgressError::Setup(format!("HTTP client: {error}")))
}

/// Reqwest asks this of every URL before it connects. A refused URL is given a proxy whose name tells
/// the reason and that [`Vetting`] never resolves, so that nothing is sent anywhere; all others get none.
fn detour(policy: &Policy, url: &Url) -> Option<Url> {
    policy.check_url(url).err()?;
    let label = match url.host() {
        // The resolver is asked, and refuses it with the better reason.
        Some(Host::Domain(name)) if policy.check_name(name).is_err() => return None,
        Some(Host::Ipv4(ip)) if policy.check_ip(ip.into()).is_err() => format!("a{:x}", u32::from(ip)),
        Some(Host::Ipv6(ip)) if policy.check_ip(ip.into()).is_err() => format!("b{:x}", u128::from(ip)),
        _ if url.scheme() == "http" && !policy.allow_http => "http".into(),
        _ => "url".into(),
    };
    Some(barred_url("http", &label, url))
}

/// What stands for a refused URL: one whose name tells the reason and leads nowhere.
pub(crate) fn barred_url(scheme: &str, label: &str, refused: &Url) -> Url {
    Url::parse(&format!("{scheme}://{label}{BARRED}/")).unwrap_or_else(|_| refused.clone())
}

/// The refusal that a name made by [`barred_url`] stands for.
pub(crate) fn barred(name: &str) -> Option<EgressError> {
    let label = name.strip_suffix(BARRED)?;
    let v4 = |hex| {
        u32::from_str_radix(hex, 16)
            .ok()
            .map(|bits| std::net::IpAddr::from(bits.to_be_bytes()))
    };
    let v6 = |hex| {
        u128::from_str_radix(hex, 16)
            .ok()
            .map(|bits| std::net::IpAddr::from(bits.to_be_bytes()))
    };
    let address = match label.split_at_checked(1) {
        Some(("a", hex)) => v4(hex),
        Some(("b", hex)) => v6(hex),
        _ => None,
    };
    let reason = match (address, label) {
        (Some(ip), _) => match Policy::default().check_ip(ip) {
            Err(refusal) => return Some(refusal),
            Ok(()) => format!("{ip} is not connected to"),
        },
        (None, "http") => "plain http is not allowed, use https (setting egress.allow_http)".into(),
        (None, "user") => "the URL holds a user name or password; give credentials by the settings for them".into(),
        (None, _) => "this server does not connect to such a URL".into(),
    };
    Some(EgressError::Refused(reason))
}

/// The guard's refusal (or what else it met) somewhere among the causes of an error of reqwest or of what
/// is built on it.
pub fn cause<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e EgressError> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<EgressError>() {
            return Some(found);
        }
        next = error.source();
    }
    None
}

/// At most `cap` bytes from the beginning of an answer's body, for messages of errors and small answers
/// of strangers; the rest is not read.
///
/// # Errors
/// What reqwest met while reading.
pub async fn first_bytes(response: Response, cap: usize) -> Result<Bytes, reqwest::Error> {
    let mut kept = BytesMut::new();
    let mut body = response.bytes_stream();
    while let Some(piece) = body.next().await {
        let piece = piece?;
        let room = cap.saturating_sub(kept.len());
        kept.extend_from_slice(piece.get(..room.min(piece.len())).unwrap_or_default());
        if kept.len() >= cap {
            break;
        }
    }
    Ok(kept.freeze())
}
