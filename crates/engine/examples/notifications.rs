//! Measures notifications: deliveries of 10,000 events to a receiver on this machine, and the time from an
//! event to the mail server's answer on an idle server.
//!
//! `cargo run --release -p docmill-engine --example notifications`

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use docmill_connectors::Environment;
use docmill_egress::{Egress, Policy};
use docmill_engine::{
    ChannelRequest, Engine, EngineConfig, NotificationConfig, Runner, Submission, TargetRequest, Vault, access, now,
};
use docmill_model::channel::ChannelScope;
use docmill_model::job::{EventType, JobType};
use docmill_model::limits::ParseLimits;
use docmill_notify::{Mailer, Sender, SmtpOptions, SmtpUrl};
use docmill_sandbox::{Sandbox, SandboxConfig};
use docmill_store::blob::BlobStore;
use docmill_store::sqlite::{Slots, SqliteStore};
use docmill_store::{CodeTry, Principal, Store};
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

type Failure = Box<dyn std::error::Error + Send + Sync>;

const DELIVERIES: usize = 10_000;
const CHANNELS: usize = 50;
const MAILS: usize = 100;

/// The argument of child processes, which are tried at the start and have nothing to do after.
const CHILD: &str = "child";

fn main() -> Result<(), Failure> {
    if std::env::args().nth(1).is_some_and(|arg| arg == CHILD) {
        docmill_sandbox::child_main(|_, frames| frames.done(b"{}"));
    }
    tokio::runtime::Runtime::new()?.block_on(async {
        webhooks().await?;
        mails().await
    })
}

struct Bench {
    engine: Engine,
    store: Arc<SqliteStore>,
    principal: Principal,
    _home: tempfile::TempDir,
}

impl Bench {
    async fn new(change: impl FnOnce(&mut NotificationConfig)) -> Result<Self, Failure> {
        let home = tempfile::tempdir_in(".")?;
        let slots = Slots {
            local_jobs: 0,
            workflow_jobs: 0,
        };
        let store = Arc::new(SqliteStore::open(&home.path().join("db"), slots).await?);
        let workspace = access::ensure_default_workspace(store.as_ref(), now()).await?;
        let key = access::key_record(workspace, "bench", "dm_bench-key");
        let principal = Principal {
            account: store.accounts().await?[0].id,
            workspace,
            key: store.create_key(key, now()).await?,
        };
        let config = EngineConfig {
            lease: Duration::from_secs(30),
            max_attempts: 1,
            drain: Duration::from_secs(5),
            retention: None,
            create_gap: Duration::ZERO,
            max_file_bytes: 1_000,
            max_files_per_run: None,
            models: docmill_engine::Models::none(),
            parse_limits: ParseLimits::default(),
        };
        let mut notifications =
            NotificationConfig::files(home.path().join("outbox"), Sender::parse("mill@example.com")?);
        change(&mut notifications);
        let egress = Egress::new(Policy {
            allow: vec![IpAddr::from([127, 0, 0, 1]).into()],
            allow_http: true,
            ca_file: None,
        });
        let environment = Environment {
            egress,
            local_roots: None,
            ambient_credentials: false,
        };
        let sandbox = Sandbox::new(SandboxConfig::current_exe([CHILD])?)?;
        let engine = Engine::new(
            store.clone(),
            BlobStore::local(&home.path().join("blobs"))?,
            Runner::start(Arc::new(sandbox), 1)?,
            environment,
            Vault::new(&[1; 32])?,
            config,
            notifications,
        );
        Ok(Self {
            engine,
            store,
            principal,
            _home: home,
        })
    }

    async fn channel(&self, events: &[EventType], target: TargetRequest) -> Result<docmill_store::ChannelRef, Failure> {
        let request = ChannelRequest {
            description: None,
            events: events.to_vec(),
            enabled: true,
            target,
        };
        let workspace = self.principal.workspace;
        let created = self
            .engine
            .create_channel(workspace, ChannelScope::Workspace, request, &[])
            .await?;
        Ok(created.channel.channel)
    }

    /// A job without files: it is scheduled, starts and completes by itself.
    async fn job(&self) -> Result<(), Failure> {
        let nodes = json!([{"name": "partition", "type": "partition", "subtype": "unstructured_api", "settings": {}}]);
        let chain = docmill_model::chain::parse(&nodes, &[]).map_err(|_| "no chain")?.0;
        let submission = Submission {
            chain,
            job_type: JobType::Ephemeral,
            files: Vec::new(),
        };
        self.engine.submit(&self.principal, submission).await?;
        Ok(())
    }
}

async fn webhooks() -> Result<(), Failure> {
    let bench = Bench::new(|_| ()).await?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/hook", listener.local_addr()?);
    let received = Arc::new(AtomicUsize::new(0));
    let count = received.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(receive(stream, count.clone()));
        }
    });
    for _ in 0..CHANNELS {
        let target = TargetRequest::Webhook {
            url: url.clone(),
            secret: None,
        };
        bench.channel(&[EventType::JobScheduled], target).await?;
    }
    let started = Instant::now();
    for _ in 0..DELIVERIES / CHANNELS {
        bench.job().await?;
    }
    println!(
        "{} jobs recorded with {CHANNELS} deliveries each: {:.1} ms a job",
        DELIVERIES / CHANNELS,
        started.elapsed().as_secs_f64() * 1e3 / (DELIVERIES / CHANNELS) as f64
    );
    let started = Instant::now();
    bench.engine.start().await?;
    while received.load(Ordering::SeqCst) < DELIVERIES {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let arrived = started.elapsed();
    bench.engine.stop().await;
    let ended = started.elapsed();
    println!(
        "{DELIVERIES} webhook deliveries: {:.0} a second ({:.2} s; all recorded after {:.2} s); {} requests",
        DELIVERIES as f64 / arrived.as_secs_f64(),
        arrived.as_secs_f64(),
        ended.as_secs_f64(),
        received.load(Ordering::SeqCst)
    );
    bench.store.close().await;
    Ok(())
}

/// Takes requests over one connection.
async fn receive(stream: TcpStream, count: Arc<AtomicUsize>) -> Option<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if stream.read_line(&mut line).await.ok()? == 0 {
                return None;
            }
            if line == "\r\n" {
                break;
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().ok()?;
            }
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).await.ok()?;
        count.fetch_add(1, Ordering::SeqCst);
        stream.write_all(b"HTTP/1.1 204 x\r\n\r\n").await.ok()?;
    }
}

async fn mails() -> Result<(), Failure> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("smtp://{}?tls=none", listener.local_addr()?);
    let (took, mut taken) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(take(stream, took.clone()));
        }
    });
    let mailer = Mailer::smtp(SmtpOptions {
        url: SmtpUrl::parse(&url)?,
        ca_file: None,
        connections: 8,
    })?;
    let bench = Bench::new(|config| {
        config.mailer = Arc::new(mailer);
        config.mails_a_minute = 100_000;
    })
    .await?;
    bench.engine.start().await?;
    let target = TargetRequest::Email {
        recipient: "ana@example.org".into(),
        cc: Vec::new(),
        reply_to: None,
    };
    let channel = bench.channel(&[EventType::JobScheduled], target).await?;
    let (_, mail) = taken.recv().await.ok_or("no code")?;
    let code = mail
        .split_ascii_whitespace()
        .find(|word| word.len() == 6 && word.bytes().all(|b| b.is_ascii_digit()))
        .ok_or("no code in the mail")?;
    if bench.engine.verify_channel(channel, code).await? != Some(CodeTry::Verified) {
        return Err("the code was wrong".into());
    }
    let mut times = Vec::new();
    for round in 0..MAILS {
        tokio::time::sleep(Duration::from_millis(100 + (round as u64 * 37) % 100)).await;
        let started = Instant::now();
        bench.job().await?;
        let (at, _) = taken.recv().await.ok_or("no mail")?;
        times.push(at.duration_since(started));
    }
    times.sort();
    println!(
        "{MAILS} events on an idle server, submission to the mail server's answer: p50 {:.1} ms, p95 {:.1} ms, max {:.1} ms",
        times[MAILS / 2].as_secs_f64() * 1e3,
        times[MAILS * 95 / 100].as_secs_f64() * 1e3,
        times[MAILS - 1].as_secs_f64() * 1e3
    );
    bench.engine.stop().await;
    bench.store.close().await;
    Ok(())
}

/// Takes mails over one connection.
async fn take(stream: TcpStream, took: mpsc::UnboundedSender<(Instant, String)>) -> Option<()> {
    let mut stream = BufReader::new(stream);
    stream.write_all(b"220 mail.test\r\n").await.ok()?;
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await.ok()? == 0 {
            return None;
        }
        let answer: &[u8] = match line.get(..4).unwrap_or_default() {
            "DATA" => {
                stream.write_all(b"354 go on\r\n").await.ok()?;
                let mut mail = String::new();
                while !mail.ends_with("\r\n.\r\n") {
                    if stream.read_line(&mut mail).await.ok()? == 0 {
                        return None;
                    }
                }
                took.send((Instant::now(), mail)).ok()?;
                b"250 taken\r\n"
            }
            "QUIT" => return stream.write_all(b"221 bye\r\n").await.ok(),
            _ => b"250 fine\r\n",
        };
        stream.write_all(answer).await.ok()?;
    }
}
