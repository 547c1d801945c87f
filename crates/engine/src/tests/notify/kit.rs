//! What these tests share: a receiver of webhooks, and words for channels and mails.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use docmill_model::channel::{ChannelId, ChannelScope};
use docmill_model::ids::{FileId, JobId};
use docmill_model::job::{EventType, JobType};
use docmill_notify::{Mailer, SmtpOptions, SmtpUrl};
use docmill_store::{Channel, ChannelRef, Delivery, DeliveryFilter, Store};
use docmill_testkit::{ReceivedMail, SmtpServer};
use mail_parser::MessageParser;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::tests::world::{World, config};
use crate::{ChannelRequest, Engine, NotificationConfig, Submission, SubmittedFile, TargetRequest};

/// A request to a webhook.
#[derive(Clone, Debug)]
pub(super) struct Received {
    pub(super) headers: BTreeMap<String, String>,
    pub(super) body: Vec<u8>,
}

impl Received {
    pub(super) fn id(&self) -> &str {
        &self.headers["webhook-id"]
    }

    pub(super) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub(super) fn event(&self) -> String {
        self.json()["type"].as_str().unwrap().to_owned()
    }
}

/// A receiver of webhooks on a free port, which answers as it is told to.
pub(super) struct Receiver {
    pub(super) port: u16,
    received: Arc<Mutex<Vec<Received>>>,
    status: Arc<Mutex<u16>>,
}

/// The status of a receiver that takes requests and never answers.
pub(super) const SILENT: u16 = 0;

impl Receiver {
    pub(super) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let receiver = Self {
            port: listener.local_addr().unwrap().port(),
            received: Arc::default(),
            status: Arc::new(Mutex::new(200)),
        };
        let (received, status) = (receiver.received.clone(), receiver.status.clone());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (received, status) = (received.clone(), status.clone());
                tokio::spawn(async move { serve(stream, &received, &status).await });
            }
        });
        receiver
    }

    pub(super) fn answer(&self, status: u16) {
        *self.status.lock().unwrap() = status;
    }

    pub(super) fn received(&self) -> Vec<Received> {
        self.received.lock().unwrap().clone()
    }

    pub(super) fn events(&self) -> Vec<String> {
        self.received().iter().map(Received::event).collect()
    }

    pub(super) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/hook?token=hush", self.port)
    }
}

async fn serve(mut stream: TcpStream, received: &Mutex<Vec<Received>>, status: &Mutex<u16>) -> Option<()> {
    let mut bytes = Vec::new();
    loop {
        let end = loop {
            if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
                break at + 4;
            }
            if stream.read_buf(&mut bytes).await.ok()? == 0 {
                return None;
            }
        };
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
        let headers: BTreeMap<String, String> = head
            .lines()
            .skip(1)
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        let length: usize = headers["content-length"].parse().unwrap();
        while bytes.len() < end + length {
            if stream.read_buf(&mut bytes).await.ok()? == 0 {
                return None;
            }
        }
        let body = bytes[end..end + length].to_vec();
        bytes.drain(..end + length);
        received.lock().unwrap().push(Received { headers, body });
        let status = *status.lock().unwrap();
        if status == SILENT {
            std::future::pending::<()>().await;
        }
        let answer = format!("HTTP/1.1 {status} x\r\ncontent-length: 4\r\n\r\nsaid");
        stream.write_all(answer.as_bytes()).await.ok()?;
    }
}

/// Has mails go to a server.
pub(super) fn through(server: &SmtpServer) -> impl FnOnce(&mut NotificationConfig) {
    let url = SmtpUrl::parse(&format!("smtp://127.0.0.1:{}", server.port())).unwrap();
    |config| {
        let options = SmtpOptions {
            url,
            ca_file: None,
            connections: 4,
        };
        config.mailer = Arc::new(Mailer::smtp(options).unwrap());
        config.mails_are_files = false;
        config.public_url = Some("https://mill.example.com".into());
    }
}

/// A world whose mails go to a server, with an engine that works.
pub(super) async fn mailing(server: &SmtpServer, change: impl FnOnce(&mut NotificationConfig)) -> World {
    World::telling(config(), |config| {
        through(server)(config);
        change(config);
    })
    .await
}

/// The mails to an address that the server took, read.
pub(super) fn mails_to(server: &SmtpServer, address: &str) -> Vec<Mailed> {
    let to = |mail: &ReceivedMail| mail.to.iter().any(|to| to == address);
    server.mails().into_iter().filter(to).map(Mailed::read).collect()
}

/// A mail as its reader sees it.
#[derive(Clone, Debug)]
pub(super) struct Mailed {
    pub(super) recipients: Vec<String>,
    pub(super) subject: String,
    pub(super) text: String,
    pub(super) message_id: String,
    pub(super) event: String,
    pub(super) unsubscribe: Option<String>,
}

impl Mailed {
    fn read(mail: ReceivedMail) -> Self {
        let message = MessageParser::default().parse(&mail.bytes).unwrap();
        let raw = |name: &str| message.header_raw(name).map(|text| text.trim().to_owned());
        Self {
            recipients: mail.to,
            subject: message.subject().unwrap().to_owned(),
            text: message.body_text(0).unwrap().into_owned(),
            message_id: message.message_id().unwrap().to_owned(),
            event: raw("X-Docmill-Event").unwrap(),
            unsubscribe: raw("List-Unsubscribe").map(|link| link.trim_matches(['<', '>']).to_owned()),
        }
    }

    /// The six digits.
    pub(super) fn code(&self) -> String {
        let mut words = self.text.split_whitespace();
        let code = words.find(|word| word.len() == 6 && word.bytes().all(|b| b.is_ascii_digit()));
        code.expect("a code").to_owned()
    }
}

pub(super) fn mail_request(recipient: &str, events: &[EventType]) -> ChannelRequest {
    ChannelRequest {
        description: Some("Ana's".into()),
        events: events.to_vec(),
        enabled: true,
        target: TargetRequest::Email {
            recipient: recipient.into(),
            cc: Vec::new(),
            reply_to: None,
        },
    }
}

pub(super) fn webhook_request(url: &str, events: &[EventType], secret: Option<&str>) -> ChannelRequest {
    ChannelRequest {
        description: None,
        events: events.to_vec(),
        enabled: true,
        target: TargetRequest::Webhook {
            url: url.into(),
            secret: secret.map(str::to_owned),
        },
    }
}

impl World {
    pub(super) async fn channel(&self, scope: ChannelScope, request: ChannelRequest) -> Channel {
        let created = self
            .engine
            .create_channel(self.principal.workspace, scope, request, &["body".into()])
            .await;
        created.unwrap().channel
    }

    /// A verified mail channel: the code comes from its mail.
    pub(super) async fn verified(&self, server: &SmtpServer, recipient: &str, events: &[EventType]) -> ChannelRef {
        let channel = self
            .channel(ChannelScope::Workspace, mail_request(recipient, events))
            .await
            .channel;
        let mail = crate::tests::world::until("the code", async || {
            mails_to(server, recipient)
                .into_iter()
                .find(|mail| mail.event == "channel.verification")
        })
        .await;
        let verified = self.engine.verify_channel(channel, &mail.code()).await.unwrap();
        assert_eq!(verified, Some(docmill_store::CodeTry::Verified));
        channel
    }

    pub(super) async fn record(&self, channel: ChannelRef) -> Channel {
        self.store.channel(channel).await.unwrap().unwrap()
    }

    pub(super) async fn deliveries(&self, channel: ChannelRef) -> Vec<Delivery> {
        let filter = DeliveryFilter {
            limit: 1_000,
            ..DeliveryFilter::default()
        };
        self.store.deliveries(channel, filter).await.unwrap().unwrap()
    }

    /// Submits a job of one file, which is scheduled and waits for an engine that works.
    pub(super) async fn submitted(&self, engine: &Engine) -> JobId {
        let id = FileId::new();
        let key = format!("in/{id}");
        engine
            .blobs()
            .put(&key, bytes::Bytes::from_static(b"text"))
            .await
            .unwrap();
        let nodes = json!([{"name": "partition", "type": "partition", "subtype": "unstructured_api", "settings": {}}]);
        let submission = Submission {
            chain: docmill_model::chain::parse(&nodes, &[]).unwrap().0,
            job_type: JobType::Ephemeral,
            files: vec![SubmittedFile {
                id,
                name: "a.txt".into(),
                content_type: None,
                size: 4,
                blob_key: key,
            }],
        };
        engine.submit(&self.principal, submission).await.unwrap().id
    }
}

/// A reference to a channel that there is not.
pub(super) fn nothing(channel: ChannelRef) -> ChannelRef {
    ChannelRef {
        id: ChannelId::new(),
        ..channel
    }
}

/// Time in which what must not come would have come.
pub(super) async fn a_while() {
    tokio::time::sleep(Duration::from_millis(900)).await;
}
