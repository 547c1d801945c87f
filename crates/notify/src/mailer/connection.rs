//! One conversation with a mail server.

use std::fmt::Display;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use lettre::transport::smtp::authentication::{Credentials, Mechanism};
use lettre::transport::smtp::client::{AsyncSmtpConnection, Certificate, TlsParameters};
use lettre::transport::smtp::commands::{Data, Mail, Rcpt, Rset};
use lettre::transport::smtp::extension::ClientId;
use lettre::transport::smtp::response::Response;
use tokio::time::{Instant, timeout};

use super::url::Encryption;
use super::{ConfigError, Refusal, SendError, Sent, SmtpOptions, SmtpUrl, Stage};
use crate::Message;
use crate::words::one_line;

/// Longest time until a TCP connection stands.
const CONNECT: Duration = Duration::from_secs(10);
/// Longest time for a command and its answer.
const COMMAND: Duration = Duration::from_secs(30);
/// Longest time for the commands before a mail's content, all together: recipients may be many.
const CONVERSATION: Duration = Duration::from_secs(120);
/// Longest time for a kept connection to show that it is alive; a new one is made otherwise.
const REUSE: Duration = Duration::from_secs(5);
/// Longest time until a mail's content is confirmed. Servers look for spam and viruses meanwhile, and a mail
/// that is given up too early comes twice.
const CONFIRMATION: Duration = Duration::from_secs(120);
/// Longest part of a server's words that is kept, in characters.
const LONGEST_ANSWER: usize = 500;
/// Codes by which servers ask for what the operator must set up (login, encryption), at whatever stage.
const SETUP: [u16; 5] = [530, 534, 535, 538, 454];

/// The server and how to reach it.
pub(super) struct Server {
    url: SmtpUrl,
    tls: TlsParameters,
    hello: ClientId,
}

/// An open connection, logged in.
pub(super) struct Connection {
    inner: AsyncSmtpConnection,
    secrets: Vec<String>,
    /// When the commands before a mail's content must be through.
    end: Instant,
    broken: bool,
}

/// What went wrong with one command.
struct Trouble {
    code: Option<u16>,
    text: String,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.url)
    }
}

impl Server {
    pub(super) fn new(options: SmtpOptions) -> Result<Self, ConfigError> {
        let mut builder = TlsParameters::builder(options.url.host.clone());
        if let Some(path) = &options.ca_file {
            let wrong = |why: String| ConfigError(format!("mail.ca_file {}: {why}", path.display()));
            let pem = std::fs::read(path).map_err(|error| wrong(error.to_string()))?;
            let mut none = true;
            for pem in certificates(&pem) {
                let certificate = Certificate::from_pem(pem.as_bytes()).map_err(|error| wrong(error.to_string()))?;
                builder = builder.add_root_certificate(certificate);
                none = false;
            }
            if none {
                return Err(wrong("holds no certificate in PEM form".into()));
            }
        }
        if options.url.encryption == Encryption::Opportunistic {
            builder = builder.dangerous_accept_invalid_certs(true);
        }
        let tls = builder
            .build()
            .map_err(|error| ConfigError(format!("mail.smtp_url: TLS can't be set up: {error}")))?;
        Ok(Self {
            url: options.url,
            tls,
            hello: ClientId::default(),
        })
    }

    /// Connects, encrypts and logs in.
    pub(super) async fn connect(&self) -> Result<Connection, SendError> {
        let secrets = self.secrets();
        let (host, port) = (self.url.host.as_str(), self.url.port);
        let fail = |stage, trouble: Trouble| failure(stage, trouble, &secrets, &format!("{host}:{port}: "));
        let implicit = (self.url.encryption == Encryption::Implicit).then(|| self.tls.clone());
        let opening = AsyncSmtpConnection::connect_tokio1((host, port), Some(CONNECT), &self.hello, implicit, None);
        let mut inner = within(CONNECT + COMMAND, opening)
            .await
            .map_err(|trouble| fail(Stage::Connect, trouble))?;
        let wants = match self.url.encryption {
            Encryption::Required => true,
            Encryption::Opportunistic => inner.can_starttls(),
            Encryption::Implicit | Encryption::None => false,
        };
        if wants {
            if !inner.can_starttls() {
                let text = "the server does not offer STARTTLS, and nothing is sent unencrypted (?tls=none in \
                            mail.smtp_url allows it)";
                return Err(fail(Stage::Connect, Trouble::new(text)));
            }
            within(COMMAND, inner.starttls(self.tls.clone(), &self.hello))
                .await
                .map_err(|trouble| fail(Stage::Connect, trouble))?;
        }
        if let Some((user, password)) = &self.url.login {
            let mechanisms = [Mechanism::Plain, Mechanism::Login];
            if inner.server_info().get_auth_mechanism(&mechanisms).is_none() {
                let text = "the server offers no login by PLAIN or LOGIN (it may want encryption first: ?tls=required)";
                return Err(fail(Stage::Login, Trouble::new(text)));
            }
            let credentials = Credentials::new(user.clone(), password.clone());
            within(COMMAND, inner.auth(&mechanisms, &credentials))
                .await
                .map_err(|trouble| fail(Stage::Login, trouble))?;
        }
        Ok(Connection {
            inner,
            secrets,
            end: Instant::now() + CONVERSATION,
            broken: false,
        })
    }

    /// What must not be repeated, should the server send it back.
    fn secrets(&self) -> Vec<String> {
        let Some((user, password)) = &self.url.login else {
            return Vec::new();
        };
        let plain = STANDARD.encode(format!("\0{user}\0{password}"));
        vec![plain, STANDARD.encode(password), password.clone()]
    }
}

impl Connection {
    /// Hands over a mail: to all recipients or, when some in copy are refused, to the others.
    pub(super) async fn deliver(&mut self, message: &Message) -> Result<Sent, SendError> {
        self.end = Instant::now() + CONVERSATION;
        let from = message.sender().to_address();
        self.command(Stage::Sender, Mail::new(Some(from), Vec::new())).await?;
        let refused = self.name_recipients(message).await?;
        let ready = self.command(Stage::Content, Data).await?;
        // After any other answer the server would read the content as commands.
        if !ready.has_code(354) {
            return Err(self.out_of_step(&ready));
        }
        match within(CONFIRMATION, self.inner.message(message.bytes())).await {
            Ok(response) if response.has_code(354) => Err(SendError {
                outcome_unknown: true,
                ..self.out_of_step(&response)
            }),
            Ok(response) => Ok(Sent {
                answer: self.cleaned(&response),
                refused,
            }),
            Err(trouble) => {
                let outcome_unknown = trouble.code.is_none();
                Err(SendError {
                    outcome_unknown,
                    ..self.failed(Stage::Content, trouble)
                })
            }
        }
    }

    /// Says whom the mail is to; the answer is who in copy was refused.
    async fn name_recipients(&mut self, message: &Message) -> Result<Vec<Refusal>, SendError> {
        let (to, cc) = message.recipients();
        self.command(Stage::Recipient, Rcpt::new(to.to_address(), Vec::new()))
            .await?;
        let mut refused = Vec::new();
        for copy in cc {
            let rcpt = Rcpt::new(copy.to_address(), Vec::new());
            match self.command(Stage::Recipient, rcpt).await {
                Ok(_) => {}
                Err(error) if self.is_usable() => refused.push(Refusal {
                    address: copy.to_string(),
                    smtp_code: error.smtp_code.unwrap_or_default(),
                    message: error.message,
                }),
                Err(error) => return Err(error),
            }
        }
        Ok(refused)
    }

    /// The error for an answer that belongs to some other command; nothing more is said over this connection.
    fn out_of_step(&mut self, response: &Response) -> SendError {
        let text = format!("unexpected answer {}", self.cleaned(response));
        self.failed(Stage::Content, Trouble::new(&text))
    }

    /// Whether the next mail can go over this connection.
    pub(super) fn is_usable(&self) -> bool {
        !self.broken && !self.inner.has_broken()
    }

    /// Makes ready for the next mail; false when the connection is gone.
    pub(super) async fn reset(&mut self) -> bool {
        self.end = Instant::now() + REUSE;
        self.command(Stage::Connect, Rset).await.is_ok()
    }

    /// Takes leave without making anybody wait for it.
    pub(super) fn quit(mut self) {
        if self.is_usable() {
            tokio::spawn(async move { timeout(Duration::from_secs(2), self.inner.quit()).await.is_ok() });
        }
    }

    async fn command(&mut self, stage: Stage, command: impl Display) -> Result<Response, SendError> {
        let limit = COMMAND.min(self.end.saturating_duration_since(Instant::now()));
        match within(limit, self.inner.command(command)).await {
            Ok(response) => Ok(response),
            Err(trouble) => Err(self.failed(stage, trouble)),
        }
    }

    fn failed(&mut self, stage: Stage, trouble: Trouble) -> SendError {
        // 421: the server is closing the connection.
        self.broken |= trouble.code.is_none_or(|code| code == 421);
        failure(stage, trouble, &self.secrets, "")
    }

    fn cleaned(&self, response: &Response) -> String {
        let text: Vec<&str> = response.message().collect();
        redacted(&format!("{} {}", response.code(), text.join(" ")), &self.secrets)
    }
}

impl Trouble {
    fn new(text: &str) -> Self {
        Self {
            code: None,
            text: text.to_owned(),
        }
    }
}

/// Waits for one step of the conversation.
async fn within<T>(
    limit: Duration,
    step: impl Future<Output = Result<T, lettre::transport::smtp::Error>>,
) -> Result<T, Trouble> {
    match timeout(limit, step).await {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(error)) => {
            let code = error.status().map(u16::from);
            let source = std::error::Error::source(&error).map(ToString::to_string);
            let text = match (code, source) {
                (Some(code), Some(words)) => format!("{code} {words}"),
                (Some(code), None) => code.to_string(),
                (None, Some(words)) if words == "incomplete response" => "the server closed the connection".into(),
                (None, _) => error.to_string(),
            };
            Err(Trouble { code, text })
        }
        Err(_) => Err(Trouble::new(&format!(
            "no answer within {} seconds",
            limit.as_secs().max(1)
        ))),
    }
}

fn failure(stage: Stage, trouble: Trouble, secrets: &[String], place: &str) -> SendError {
    let what = match stage {
        Stage::Connect => "no connection to the mail server",
        Stage::Login => "the mail server refused the login",
        Stage::Sender => "the mail server refused the sender",
        Stage::Recipient => "the mail server refused the recipient",
        Stage::Content if trouble.code.is_some() => "the mail server refused the mail",
        Stage::Content => "the mail server did not confirm the mail",
        Stage::File => "not written",
    };
    let what = match stage {
        Stage::Sender | Stage::Recipient if trouble.code.is_none() => "the connection to the mail server broke",
        _ => what,
    };
    let about = matches!(stage, Stage::Recipient | Stage::Content);
    let code = trouble.code;
    SendError {
        permanent: about && code.is_some_and(|code| code >= 500 && !SETUP.contains(&code)),
        smtp_code: code,
        stage,
        outcome_unknown: false,
        message: format!("{what}: {place}{}", redacted(&trouble.text, secrets)),
    }
}

fn redacted(text: &str, secrets: &[String]) -> String {
    let mut text = text.to_owned();
    for secret in secrets.iter().filter(|secret| !secret.is_empty()) {
        text = text.replace(secret.as_str(), "***");
    }
    one_line(&text, LONGEST_ANSWER)
}

/// The certificates of a PEM file, one by one.
fn certificates(pem: &[u8]) -> Vec<String> {
    const END: &str = "-----END CERTIFICATE-----";
    let text = String::from_utf8_lossy(pem);
    text.split("-----BEGIN CERTIFICATE-----")
        .skip(1)
        .filter_map(|rest| rest.find(END).and_then(|end| rest.get(..end)))
        .map(|body| format!("-----BEGIN CERTIFICATE-----{body}{END}\n"))
        .collect()
}
