//! What notifications arrive at: a real mail server and a real receiver of webhooks.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use docmill_testkit::{SmtpServer, python};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use super::client::text;
use super::{Client, Server, until};

/// What the mail server asks for.
pub(crate) const LOGIN: &str = "mill:canary-smtp-pass-91c4";
/// The server's address in links of mails.
pub(crate) const PUBLIC: &str = "https://mill.example.com";

/// A mail server with STARTTLS and a login, and what it took before it was last started.
pub(crate) struct Post {
    smtp: SmtpServer,
    earlier: Vec<Mail>,
}

/// A mail as Python's parser reads it.
#[derive(Clone, Debug)]
pub(crate) struct Mail {
    pub(crate) to: Vec<String>,
    pub(crate) raw: String,
}

impl Mail {
    /// A header by the letter, unfolded; all of that name.
    pub(crate) fn headers(&self, name: &str) -> Vec<String> {
        let head = self.raw.split("\r\n\r\n").next().unwrap_or_default();
        let unfolded = head.replace("\r\n ", " ").replace("\r\n\t", " ");
        let lines = unfolded.split("\r\n").filter_map(|line| line.split_once(':'));
        let found = lines.filter(|(found, _)| found.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.trim().to_owned()).collect()
    }

    /// A header that must be there once.
    #[track_caller]
    pub(crate) fn header(&self, name: &str) -> String {
        match self.headers(name).as_slice() {
            [value] => value.clone(),
            other => panic!("{name}: {other:?} in {}", self.raw),
        }
    }

    pub(crate) fn event(&self) -> String {
        self.header("x-docmill-event")
    }

    /// What the public parser of another language finds.
    pub(crate) fn parsed(&self) -> Value {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("mail.eml");
        std::fs::write(&path, &self.raw).expect("a file");
        let out = python("read_mail.py").arg(&path).output().expect("python runs");
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        let parsed: Value = serde_json::from_slice(&out.stdout).expect("JSON");
        assert_eq!(parsed["defects"], json!([]), "{}", self.raw);
        assert_eq!(parsed["parts"], json!(["text/plain", "text/html"]));
        parsed
    }

    pub(crate) fn text(&self) -> String {
        text(&self.parsed()["text"]).to_owned()
    }

    /// The code of a verification mail.
    #[track_caller]
    pub(crate) fn code(&self) -> String {
        let text = self.text();
        let codes: Vec<&str> = text
            .split(|c: char| !c.is_ascii_alphanumeric())
            .filter(|word| word.len() == 6 && word.bytes().all(|byte| byte.is_ascii_digit()))
            .collect();
        assert_eq!(codes.len(), 1, "{text}");
        codes[0].to_owned()
    }
}

impl Post {
    pub(crate) fn start() -> Self {
        Self {
            smtp: SmtpServer::start(&["--tls", "starttls", "--login", LOGIN]),
            earlier: Vec::new(),
        }
    }

    /// Settings of a server that sends here and may call [`Receiver`]s.
    pub(crate) fn settings(&self) -> Vec<(&'static str, String)> {
        let ca_file = SmtpServer::ca_file().to_string_lossy().into_owned();
        vec![
            (
                "MAIL__SMTP_URL",
                format!("smtp+starttls://{LOGIN}@localhost:{}", self.smtp.port()),
            ),
            ("MAIL__FROM", "docmill <mill@example.com>".into()),
            ("MAIL__CA_FILE", ca_file.clone()),
            ("MAIL__MAX_PER_MINUTE", "1000".into()),
            ("SERVER__PUBLIC_URL", PUBLIC.into()),
            ("CHANNELS__CODE_COOL_DOWN_SECS", "0".into()),
            ("EGRESS__CA_FILE", ca_file),
            ("EGRESS__DANGER_ALLOW_CIDRS", "127.0.0.1/32".into()),
        ]
    }

    /// A server with these settings and more, which win.
    pub(crate) async fn server(&self, more: &[(&str, &str)]) -> Server {
        let settings = self.settings();
        let mut all: Vec<(&str, &str)> = settings.iter().map(|(name, value)| (*name, value.as_str())).collect();
        all.retain(|(name, _)| !more.iter().any(|(other, _)| other == name));
        all.extend_from_slice(more);
        Server::with(&all).await
    }

    /// The mail server is gone; its mails are kept.
    pub(crate) fn stop(&mut self) {
        self.earlier = self.mails();
        self.smtp.stop();
    }

    pub(crate) fn start_again(&mut self) {
        self.smtp.restart(&["--tls", "starttls", "--login", LOGIN]);
    }

    pub(crate) fn mails(&self) -> Vec<Mail> {
        let now = self.smtp.mails().into_iter().map(|mail| {
            assert!(mail.encrypted && mail.user.contains("mill"), "{mail:?}");
            Mail {
                to: mail.to,
                raw: String::from_utf8(mail.bytes).expect("ASCII or UTF-8"),
            }
        });
        self.earlier.iter().cloned().chain(now).collect()
    }

    pub(crate) fn mails_to(&self, address: &str) -> Vec<Mail> {
        let all = self.mails().into_iter();
        all.filter(|mail| mail.to.iter().any(|to| to == address)).collect()
    }

    /// The `number`th mail to an address, from 1; waits for it.
    pub(crate) async fn mail(&self, address: &str, number: usize) -> Mail {
        until(&format!("mail {number} to {address}"), async || {
            self.mails_to(address).into_iter().nth(number - 1)
        })
        .await
    }

    /// Creates a mail channel below `scope` and verifies it with the code that arrives; its record.
    pub(crate) async fn verified(&self, client: &Client, scope: &str, address: &str, events: &[&str]) -> Value {
        let before = self.mails_to(address).len();
        let channel = created(client, scope, &email(address, events)).await;
        let code = self.mail(address, before + 1).await.code();
        let path = format!("{scope}/{}/verify", text(&channel["id"]));
        let answer = client.post_json(&path, &json!({"code": code})).await;
        assert_eq!((answer.status, answer.bytes.len()), (204, 0), "{answer}");
        channel
    }
}

/// The body that creates a mail channel.
pub(crate) fn email(address: &str, events: &[&str]) -> Value {
    json!({"channel_type": "email", "description": "a channel", "event_types": events,
        "email_config": {"recipient_email": address}})
}

/// Creates a channel that must be accepted; its record.
pub(crate) async fn created(client: &Client, scope: &str, body: &Value) -> Value {
    let answer = client.post_json(scope, body).await;
    assert_eq!(answer.status, 201, "{answer}");
    answer.json()
}

/// A request that a receiver got.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Call {
    pub(crate) fn header(&self, name: &str) -> &str {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        let found = lines.find(|(found, _)| found.eq_ignore_ascii_case(name));
        found.unwrap_or_else(|| panic!("no {name} in {}", self.head)).1
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).expect("JSON")
    }

    /// Whether the public library takes it for signed with this secret.
    pub(crate) fn verifies(&self, secret: &str) -> bool {
        use std::io::Write as _;
        let names = ["webhook-id", "webhook-timestamp", "webhook-signature"];
        let headers: serde_json::Map<_, _> = names
            .iter()
            .map(|name| ((*name).to_owned(), json!(self.header(name))))
            .collect();
        let input = json!({"secret": secret, "raw": false, "headers": headers, "body": self.body});
        let mut child = python("verify_webhook.py")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python runs");
        let mut stdin = child.stdin.take().expect("stdin");
        stdin.write_all(input.to_string().as_bytes()).expect("written");
        drop(stdin);
        let out = child.wait_with_output().expect("its end");
        String::from_utf8_lossy(&out.stdout).trim() == "good"
    }
}

/// A receiver of webhooks that speaks https with a certificate of the tests' authority.
pub(crate) struct Receiver {
    port: u16,
    calls: Arc<Mutex<Vec<Call>>>,
    answer: Arc<Mutex<String>>,
}

impl Receiver {
    pub(crate) async fn start() -> Self {
        super::install_cryptography();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let calls: Arc<Mutex<Vec<Call>>> = Arc::default();
        let answer = Arc::new(Mutex::new(String::new()));
        let receiver = Self {
            port,
            calls: calls.clone(),
            answer: answer.clone(),
        };
        receiver.answers("204 No Content", "");
        let acceptor = acceptor();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, calls, answer) = (acceptor.clone(), calls.clone(), answer.clone());
                tokio::spawn(async move { serve(acceptor, stream, &calls, &answer).await });
            }
        });
        receiver
    }

    /// What it says from now on.
    pub(crate) fn answers(&self, status: &str, headers: &str) {
        *self.answer.lock().expect("no panic") =
            format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n{headers}\r\n");
    }

    pub(crate) fn url(&self) -> String {
        format!("https://127.0.0.1:{}/hook", self.port)
    }

    pub(crate) fn calls(&self) -> Vec<Call> {
        self.calls.lock().expect("no panic").clone()
    }

    /// Waits for so many requests.
    pub(crate) async fn wait(&self, count: usize) -> Vec<Call> {
        until(&format!("{count} calls"), async || {
            Some(self.calls()).filter(|calls| calls.len() >= count)
        })
        .await
    }
}

fn tls_file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../egress/tests/tls")
        .join(name)
}

fn acceptor() -> TlsAcceptor {
    let chain = CertificateDer::pem_file_iter(tls_file("server.pem")).expect("a certificate");
    let chain = chain.collect::<Result<Vec<_>, _>>().expect("certificates");
    let key = PrivateKeyDer::from_pem_file(tls_file("server.key")).expect("a key");
    let config = rustls::ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .expect("a configuration");
    TlsAcceptor::from(Arc::new(config))
}

/// One request; whatever breaks the connection ends it.
async fn serve(
    acceptor: TlsAcceptor,
    stream: TcpStream,
    calls: &Mutex<Vec<Call>>,
    answer: &Mutex<String>,
) -> std::io::Result<()> {
    let mut stream = acceptor.accept(stream).await?;
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break end;
        }
        if stream.read_buf(&mut bytes).await? == 0 {
            return Ok(());
        }
    };
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let mut call = Call {
        head,
        body: String::new(),
    };
    let length: usize = call.header("content-length").parse().unwrap_or(0);
    while bytes.len() < end + 4 + length {
        if stream.read_buf(&mut bytes).await? == 0 {
            return Ok(());
        }
    }
    call.body = String::from_utf8_lossy(&bytes[end + 4..]).into_owned();
    let said = answer.lock().expect("no panic").clone();
    calls.lock().expect("no panic").push(call);
    stream.write_all(said.as_bytes()).await?;
    stream.shutdown().await
}
