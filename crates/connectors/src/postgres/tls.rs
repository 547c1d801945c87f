//! TLS for PostgreSQL connections.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use docmill_egress::Egress;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{WebPkiSupportedAlgorithms, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_postgres::config::SslMode;
use tokio_postgres::tls::{ChannelBinding, TlsConnect, TlsStream};
use tokio_rustls::TlsConnector;

use crate::{ConnectorError, ErrorKind, Result};

/// How connections are encrypted.
#[derive(Clone)]
pub(super) struct Tls {
    pub(super) mode: SslMode,
    connector: TlsConnector,
    name: ServerName<'static>,
}

impl Tls {
    /// From the settings `sslmode` and `ssl_root_cert`.
    pub(super) fn new(egress: &Egress, mode: &str, root_cert: Option<&str>, host: &str) -> Result<Self> {
        let invalid = |message: String| ConnectorError::new(ErrorKind::Invalid, message);
        let unusable = |reason: String| invalid(format!("TLS can't be set up: {reason}"));
        let (mode, verify) = match mode {
            "disable" => (SslMode::Disable, false),
            "prefer" => (SslMode::Prefer, false),
            "require" => (SslMode::Require, false),
            "verify-full" => (SslMode::Require, true),
            other => {
                let message = format!("sslmode must be disable, prefer, require or verify-full, not `{other}`");
                return Err(invalid(message));
            }
        };
        let config = match (verify, root_cert) {
            (true, None) => egress.tls_config()?,
            (true, Some(pem)) => trusting(pem).map_err(unusable)?,
            (false, _) => unverified().map_err(unusable)?,
        };
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| invalid(format!("host `{host}` is neither a name nor an address")))?;
        Ok(Self {
            mode,
            connector: TlsConnector::from(config),
            name,
        })
    }
}

type Configured = std::result::Result<Arc<ClientConfig>, String>;

fn builder() -> std::result::Result<rustls::ConfigBuilder<ClientConfig, rustls::WantsVerifier>, String> {
    ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())
}

/// Trusts the given authorities alone.
fn trusting(pem: &str) -> Configured {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
        let certificate = certificate.map_err(|error| format!("ssl_root_cert: {error}"))?;
        roots
            .add(certificate)
            .map_err(|error| format!("ssl_root_cert: {error}"))?;
    }
    if roots.is_empty() {
        return Err("ssl_root_cert holds no certificate".into());
    }
    let config = builder()?.with_root_certificates(roots).with_no_client_auth();
    Ok(Arc::new(config))
}

/// Encrypts without looking at who is on the other side, which is what `prefer` and `require` mean
/// everywhere PostgreSQL is used.
fn unverified() -> Configured {
    let verifier = AnyCertificate(ring::default_provider().signature_verification_algorithms);
    let builder = builder()?.dangerous();
    let config = builder
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    Ok(Arc::new(config))
}

#[derive(Debug)]
struct AnyCertificate(WebPkiSupportedAlgorithms);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> std::result::Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &self.0)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.0)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_schemes()
    }
}

impl TlsConnect<TcpStream> for Tls {
    type Stream = Encrypted;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Encrypted>> + Send>>;

    fn connect(self, stream: TcpStream) -> Self::Future {
        Box::pin(async move { self.connector.connect(self.name, stream).await.map(Encrypted) })
    }
}

/// An encrypted connection.
pub(super) struct Encrypted(tokio_rustls::client::TlsStream<TcpStream>);

impl TlsStream for Encrypted {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl AsyncRead for Encrypted {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl AsyncWrite for Encrypted {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
