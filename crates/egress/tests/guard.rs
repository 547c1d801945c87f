//! The guard against real sockets and a resolver that lies.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use docmill_egress::{Egress, EgressError, Policy, Resolver, cause, first_bytes};
use futures_util::future::BoxFuture;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

const PATIENCE: Duration = Duration::from_secs(5);

/// Gives its answers one after the other, then the last one for ever.
#[derive(Debug)]
struct Answers {
    answers: Mutex<Vec<Vec<IpAddr>>>,
    asked: AtomicUsize,
}

impl Answers {
    fn new(answers: &[&[&str]]) -> Arc<Self> {
        let answers = answers
            .iter()
            .map(|answer| answer.iter().map(|ip| ip.parse().unwrap()).collect())
            .rev()
            .collect();
        Arc::new(Self {
            answers: Mutex::new(answers),
            asked: AtomicUsize::new(0),
        })
    }
}

impl Resolver for Answers {
    fn resolve(&self, _: String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let mut answers = self.answers.lock().unwrap();
        let answer = if answers.len() > 1 {
            answers.pop().unwrap()
        } else {
            answers[0].clone()
        };
        Box::pin(async move { Ok(answer) })
    }
}

/// Only 127.0.0.1 is allowed, by plain http.
fn policy() -> Policy {
    Policy {
        allow: vec!["127.0.0.1/32".parse().unwrap()],
        allow_http: true,
        ca_file: None,
    }
}

/// A server that gives every connection the same answer, and counts them.
async fn server(address: &str, answer: &'static str) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind(address).await.unwrap();
    let address = listener.local_addr().unwrap();
    let count = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&count);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            counter.fetch_add(1, Ordering::SeqCst);
            tokio::spawn(async move {
                let mut request = [0; 4096];
                let _ = stream.read(&mut request).await;
                let _ = stream.write_all(answer.as_bytes()).await;
            });
        }
    });
    (address, count)
}

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok";

fn refusal(error: &reqwest::Error) -> String {
    match cause(error) {
        Some(EgressError::Refused(why)) => why.clone(),
        other => panic!("{other:?} in {error:?}"),
    }
}

#[tokio::test]
async fn a_name_that_changes_its_answer_gains_nothing() {
    let (good, good_count) = server("127.0.0.1:0", OK).await;
    let (_, inner_count) = server(&format!("127.0.0.2:{}", good.port()), OK).await;
    let resolver = Answers::new(&[&["127.0.0.1"], &["127.0.0.2"]]);
    let egress = Egress::with_resolver(policy(), Arc::clone(&resolver) as Arc<dyn Resolver>);
    let client = egress.http_client(PATIENCE).unwrap();
    let url = format!("http://rebinding.test:{}/", good.port());
    assert_eq!(client.get(&url).send().await.unwrap().text().await.unwrap(), "ok");
    // Asked once for the one connection: what was vetted is what was dialled.
    assert_eq!(resolver.asked.load(Ordering::SeqCst), 1);
    let error = client.get(&url).send().await.unwrap_err();
    assert!(
        refusal(&error).contains("rebinding.test: 127.0.0.2 is a loopback address"),
        "{error:?}"
    );
    assert_eq!(resolver.asked.load(Ordering::SeqCst), 2);
    assert_eq!(good_count.load(Ordering::SeqCst), 1);
    assert_eq!(inner_count.load(Ordering::SeqCst), 0);
    let error = egress
        .connect("rebinding.test", good.port(), PATIENCE)
        .await
        .unwrap_err();
    assert!(matches!(error, EgressError::Refused(_)), "{error}");
    assert_eq!(inner_count.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn of_several_addresses_only_permitted_ones_are_dialled() {
    let (good, count) = server("127.0.0.1:0", OK).await;
    let (_, inner) = server(&format!("127.0.0.3:{}", good.port()), OK).await;
    let mixed = Answers::new(&[&[
        "127.0.0.3",
        "10.0.0.1",
        "::1",
        "::ffff:127.0.0.3",
        "127.0.0.1",
        "fe80::1",
    ]]);
    let egress = Egress::with_resolver(policy(), mixed);
    let found = egress.addresses("mixed.test", 1).await.unwrap();
    assert_eq!(found, ["127.0.0.1:1".parse().unwrap()]);
    let client = egress.http_client(PATIENCE).unwrap();
    let url = format!("http://mixed.test:{}/", good.port());
    assert_eq!(client.get(&url).send().await.unwrap().status(), 200);
    let mut stream = egress.connect("mixed.test", good.port(), PATIENCE).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    assert!(stream.read(&mut [0; 64]).await.unwrap() > 0);
    assert_eq!(count.load(Ordering::SeqCst), 2);
    assert_eq!(inner.load(Ordering::SeqCst), 0);
    let none = Egress::with_resolver(policy(), Answers::new(&[&[]]));
    let error = none.addresses("none.test", 1).await.unwrap_err();
    assert_eq!(error.to_string(), "cannot resolve none.test: it has no address");
}

#[tokio::test]
async fn the_bare_client_refuses_what_needs_no_resolver() {
    let (inner, count) = server("127.0.0.2:0", OK).await;
    let egress = Egress::new(policy());
    let client = egress.http_client(PATIENCE).unwrap();
    for (host, why) in [
        ("127.0.0.2", "127.0.0.2 is a loopback address"),
        ("2130706434", "127.0.0.2 is a loopback address"),
        ("0x7f.2", "127.0.0.2 is a loopback address"),
        ("0177.0.0.2", "127.0.0.2 is a loopback address"),
        ("127.0.0.2.", "127.0.0.2 is a loopback address"),
        ("[::ffff:127.0.0.2]", "127.0.0.2 is a loopback address"),
        ("[::1]", "::1 is a loopback address"),
        ("[fd00:ec2::254]", "is a private address"),
        ("[64:ff9b::a9fe:a9fe]", "is a NAT64 address"),
        ("169.254.169.254", "is a link-local address"),
        ("metadata.google.internal", "metadata service"),
        ("metadata.google.internal.", "metadata service"),
    ] {
        let error = client
            .get(format!("http://{host}:{}/", inner.port()))
            .send()
            .await
            .unwrap_err();
        assert!(refusal(&error).contains(why), "{host}: {}", refusal(&error));
        let error = client
            .get(format!("https://{host}:{}/", inner.port()))
            .send()
            .await
            .unwrap_err();
        assert!(refusal(&error).contains(why), "{host}: {}", refusal(&error));
        let host = host.trim_matches(['[', ']']);
        assert!(egress.connect(host, inner.port(), PATIENCE).await.is_err(), "{host}");
    }
    let error = client.get("http://127.0.0.1:25/").send().await.unwrap_err();
    assert!(refusal(&error).contains("does not connect to such a URL"));
    assert_eq!(count.load(Ordering::SeqCst), 0);
    let strict = Egress::new(Policy {
        allow_http: false,
        ..policy()
    });
    let url = format!("http://127.0.0.1:{}/", inner.port());
    let error = strict
        .http_client(PATIENCE)
        .unwrap()
        .get(&url)
        .send()
        .await
        .unwrap_err();
    assert!(refusal(&error).contains("plain http is not allowed"));
    assert!(strict.check_url(&url).is_err());
}

#[tokio::test]
async fn e01_no_client_sends_user_and_password_of_a_url_anywhere() {
    let (address, count) = server("127.0.0.1:0", OK).await;
    let egress = Egress::new(policy());
    for client in [
        egress.http_client(PATIENCE).unwrap(),
        egress.streaming_client(PATIENCE).unwrap(),
    ] {
        for user in [
            "user:password@",
            "user@",
            ":password@",
            "%75ser:@",
            "127.0.0.1%2f@",
            "a:b@c:d@",
        ] {
            let url = format!("http://{user}{address}/");
            let made = reqwest::Request::new(reqwest::Method::GET, url.parse().unwrap());
            for error in [
                client.get(&url).send().await.unwrap_err(),
                client.post(url.as_str()).send().await.unwrap_err(),
                client.execute(made).await.unwrap_err(),
            ] {
                assert!(
                    refusal(&error).contains("user name or password"),
                    "{url}: {}",
                    refusal(&error)
                );
                assert!(!format!("{error:?} {error}").contains("password@"), "{error:?}");
            }
            assert!(egress.check_url(&url).is_err(), "{url}");
        }
        assert_eq!(count.load(Ordering::SeqCst), 0);
    }
    // An empty user is none.
    let url = format!("http://@{address}/");
    let client = egress.http_client(PATIENCE).unwrap();
    assert_eq!(client.get(&url).send().await.unwrap().status(), 200);
}

#[tokio::test]
async fn redirects_are_answers() {
    let (target, inner) = server("127.0.0.1:0", OK).await;
    let answer =
        format!("HTTP/1.1 302 Found\r\nlocation: http://{target}/\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    let (address, count) = server("127.0.0.1:0", answer.leak()).await;
    let client = Egress::new(policy()).http_client(PATIENCE).unwrap();
    let response = client.get(format!("http://{address}/")).send().await.unwrap();
    assert_eq!(response.status(), 302);
    assert_eq!(count.load(Ordering::SeqCst), 1);
    assert_eq!(inner.load(Ordering::SeqCst), 0);
}

/// The variables have to be there before the process starts, so the test starts itself once more.
#[tokio::test]
async fn proxies_of_the_environment_are_ignored() {
    const CHILD: &str = "DOCMILL_TEST_PROXY_CHILD";
    if let Ok(url) = std::env::var(CHILD) {
        for client in [
            Egress::new(policy()).http_client(PATIENCE).unwrap(),
            Egress::new(policy()).streaming_client(PATIENCE).unwrap(),
        ] {
            assert_eq!(client.get(&url).send().await.unwrap().text().await.unwrap(), "ok");
        }
        return;
    }
    let (target, direct) = server("127.0.0.1:0", OK).await;
    let (proxy, proxied) = server("127.0.0.1:0", OK).await;
    let mut child = tokio::process::Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "proxies_of_the_environment_are_ignored"]);
    child.env(CHILD, format!("http://{target}/"));
    for name in [
        "HTTP_PROXY",
        "http_proxy",
        "HTTPS_PROXY",
        "https_proxy",
        "ALL_PROXY",
        "all_proxy",
    ] {
        child.env(name, format!("http://{proxy}"));
    }
    child
        .env_remove("NO_PROXY")
        .env_remove("no_proxy")
        .env_remove("REQUEST_METHOD");
    assert!(child.status().await.unwrap().success());
    assert_eq!(direct.load(Ordering::SeqCst), 2);
    assert_eq!(proxied.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn waits_end() {
    let (address, _) = server("127.0.0.1:0", "").await;
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let egress = Egress::new(policy());
    let short = Duration::from_millis(200);
    let started = Instant::now();
    for client in [
        egress.http_client(short).unwrap(),
        egress.streaming_client(short).unwrap(),
    ] {
        let url = format!("http://{}/", silent.local_addr().unwrap());
        let error = client.get(url).send().await.unwrap_err();
        assert!(error.is_timeout(), "{error:?}");
    }
    assert!(started.elapsed() < Duration::from_secs(3));
    let free = address.port();
    // Nothing listens on port 1: the next address is tried.
    let egress = Egress::with_resolver(
        Policy {
            allow: vec!["127.0.0.0/8".parse().unwrap()],
            ..policy()
        },
        Answers::new(&[&["127.0.0.9", "127.0.0.1"]]),
    );
    egress.connect("two.test", free, PATIENCE).await.unwrap();
    let error = egress.connect("two.test", 1, PATIENCE).await.unwrap_err();
    assert!(
        error.to_string().starts_with("cannot connect to two.test: 127.0.0.1:1"),
        "{error}"
    );
}

#[tokio::test]
async fn an_endless_answer_is_cut() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let _ = stream.read(&mut [0; 4096]).await;
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await;
        while stream.write_all(&[b'x'; 8192]).await.is_ok() {}
    });
    let client = Egress::new(policy()).http_client(PATIENCE).unwrap();
    let response = client.get(format!("http://{address}/")).send().await.unwrap();
    assert_eq!(first_bytes(response, 10_000).await.unwrap().len(), 10_000);
}

/// Serves one https answer per connection with the certificate for `service.test` in `tests/tls`.
async fn tls_server() -> SocketAddr {
    let chain = CertificateDer::pem_slice_iter(include_bytes!("tls/server.pem"))
        .collect::<Result<_, _>>()
        .unwrap();
    let key = PrivateKeyDer::from_pem_slice(include_bytes!("tls/server.key")).unwrap();
    let config = rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            if let Ok(mut stream) = acceptor.accept(stream).await {
                let mut request = [0; 4096];
                let _ = stream.read(&mut request).await;
                let _ = stream.write_all(OK.as_bytes()).await;
                let _ = stream.shutdown().await;
            }
        }
    });
    address
}

#[tokio::test]
async fn certificates_are_checked_and_the_extra_authority_is_trusted() {
    let address = tls_server().await;
    let resolver = || Answers::new(&[&["127.0.0.1"]]);
    let ca_file = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/tls/ca.pem"));
    let trusting = Policy {
        ca_file: Some(ca_file.clone()),
        ..policy()
    };
    let client = Egress::with_resolver(trusting, resolver())
        .http_client(PATIENCE)
        .unwrap();
    let url = format!("https://service.test:{}/", address.port());
    assert_eq!(client.get(&url).send().await.unwrap().text().await.unwrap(), "ok");
    // Another name than the certificate's.
    let other = format!("https://other.test:{}/", address.port());
    assert!(client.get(other).send().await.unwrap_err().is_connect());
    let client = Egress::with_resolver(policy(), resolver())
        .http_client(PATIENCE)
        .unwrap();
    let error = client.get(&url).send().await.unwrap_err();
    assert!(format!("{error:?}").contains("UnknownIssuer"), "{error:?}");

    for wrong in [ca_file.with_file_name("server.key"), ca_file.with_file_name("missing")] {
        let egress = Egress::new(Policy {
            ca_file: Some(wrong),
            ..policy()
        });
        let error = egress.http_client(PATIENCE).unwrap_err();
        assert!(error.to_string().starts_with("egress.ca_file"), "{error}");
        assert!(matches!(egress.tls_config(), Err(EgressError::Setup(_))));
    }
}
