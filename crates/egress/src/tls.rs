//! Whom to trust.

use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

use crate::EgressError;

/// TLS 1.2 and 1.3 with the certificate authorities of the machine (`SSL_CERT_FILE` and `SSL_CERT_DIR`
/// are heeded) and those of `ca_file`.
pub(crate) fn config(ca_file: Option<&Path>) -> Result<Arc<ClientConfig>, EgressError> {
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    let (trusted, unreadable) = roots.add_parsable_certificates(found.certs);
    if let Some(path) = ca_file {
        add_file(&mut roots, path)?;
    }
    tracing::debug!(trusted, unreadable, "certificate authorities of the machine");
    if roots.is_empty() {
        tracing::warn!(
            "this machine has no certificate authorities: no https connection will work; \
             install ca-certificates or name a file of them (setting egress.ca_file)"
        );
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| EgressError::Setup(format!("TLS: {error}")))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}

fn add_file(roots: &mut RootCertStore, path: &Path) -> Result<(), EgressError> {
    let wrong = |why: String| EgressError::Setup(format!("egress.ca_file {}: {why}", path.display()));
    let mut count = 0_usize;
    for certificate in CertificateDer::pem_file_iter(path).map_err(|error| wrong(error.to_string()))? {
        let certificate = certificate.map_err(|error| wrong(error.to_string()))?;
        roots.add(certificate).map_err(|error| wrong(error.to_string()))?;
        count += 1;
    }
    if count == 0 {
        return Err(wrong("holds no certificate in PEM form".into()));
    }
    Ok(())
}
