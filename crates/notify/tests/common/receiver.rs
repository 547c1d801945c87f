//! A receiver of webhooks that speaks https with a certificate of the tests' own authority.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use docmill_egress::{Egress, Policy};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// What it does once it has read a request.
#[derive(Clone, Debug)]
pub(crate) enum Manners {
    /// Writes these bytes and hangs up.
    Says(Vec<u8>),
    /// Writes nothing and keeps the connection.
    Silent,
    /// Writes the first, then the second for ever, as fast as they are taken.
    Endless(&'static str, &'static str),
    /// The same with a pause before each piece.
    Slow(&'static str, &'static str),
}

/// A request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    head: String,
    pub(crate) body: Vec<u8>,
}

impl Request {
    /// Method and target.
    pub(crate) fn line(&self) -> &str {
        self.head.lines().next().unwrap()
    }

    /// A header that must be there exactly once.
    pub(crate) fn header(&self, name: &str) -> &str {
        let found: Vec<&str> = self
            .head
            .lines()
            .filter_map(|line| line.split_once(": "))
            .filter(|(found, _)| found.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
            .collect();
        let [value] = found[..] else {
            panic!("{name} in {}", self.head)
        };
        value
    }
}

#[derive(Debug, Default)]
struct Seen {
    connections: AtomicUsize,
    written: AtomicUsize,
    requests: Mutex<Vec<Request>>,
}

#[derive(Debug)]
pub(crate) struct Receiver {
    port: u16,
    seen: Arc<Seen>,
}

impl Receiver {
    pub(crate) async fn start(manners: Manners) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (seen, acceptor) = (Arc::new(Seen::default()), acceptor());
        let shared = Arc::clone(&seen);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                shared.connections.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(serve(acceptor.clone(), stream, manners.clone(), Arc::clone(&shared)));
            }
        });
        Self { port, seen }
    }

    /// Answers with this status, these headers and no body.
    pub(crate) async fn answering(status: &str, headers: &str) -> Self {
        let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n{headers}\r\n");
        Self::start(Manners::Says(answer.into_bytes())).await
    }

    /// A URL whose path and query nobody may learn.
    pub(crate) fn url(&self) -> String {
        format!("https://127.0.0.1:{}/in/s3cret?key=s3cret", self.port)
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// How many connected, with TLS or without.
    pub(crate) fn connections(&self) -> usize {
        self.seen.connections.load(Ordering::SeqCst)
    }

    /// How many bytes of answers were taken off its hands.
    pub(crate) fn written(&self) -> usize {
        self.seen.written.load(Ordering::SeqCst)
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.seen.requests.lock().unwrap().clone()
    }
}

/// A guard that lets the tests reach this machine and trusts their authority.
pub(crate) fn egress() -> Egress {
    Egress::new(Policy {
        allow: vec!["127.0.0.1/32".parse().unwrap()],
        allow_http: false,
        ca_file: Some(tls_file("ca.pem")),
    })
}

fn tls_file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../egress/tests/tls")
        .join(name)
}

fn acceptor() -> TlsAcceptor {
    let chain = CertificateDer::pem_file_iter(tls_file("server.pem")).unwrap();
    let chain = chain.collect::<Result<Vec<_>, _>>().unwrap();
    let key = PrivateKeyDer::from_pem_file(tls_file("server.key")).unwrap();
    let config = rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    TlsAcceptor::from(Arc::new(config))
}

/// One connection; whatever breaks it ends it.
async fn serve(acceptor: TlsAcceptor, stream: TcpStream, manners: Manners, seen: Arc<Seen>) -> io::Result<()> {
    let mut stream = acceptor.accept(stream).await?;
    let request = read(&mut stream).await?;
    seen.requests.lock().unwrap().push(request);
    let (first, next, pause) = match manners {
        Manners::Says(answer) => {
            stream.write_all(&answer).await?;
            return stream.shutdown().await;
        }
        Manners::Silent => return std::future::pending().await,
        Manners::Endless(first, next) => (first, next, Duration::ZERO),
        Manners::Slow(first, next) => (first, next, Duration::from_millis(50)),
    };
    stream.write_all(first.as_bytes()).await?;
    loop {
        if !pause.is_zero() {
            sleep(pause).await;
        }
        stream.write_all(next.as_bytes()).await?;
        stream.flush().await?;
        seen.written.fetch_add(next.len(), Ordering::SeqCst);
    }
}

async fn read(stream: &mut TlsStream<TcpStream>) -> io::Result<Request> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break end;
        }
        if stream.read_buf(&mut bytes).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    };
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    let mut request = Request {
        head,
        body: bytes.split_off(end + 4),
    };
    let length: usize = request.header("content-length").parse().unwrap();
    while request.body.len() < length {
        if stream.read_buf(&mut request.body).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(request)
}
