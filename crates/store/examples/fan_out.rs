//! What handing an event to many channels adds to the commit that ends a job, and how fast deliveries are
//! claimed and finished.
//!
//! `cargo run --release -p docmill-store --example fan_out -- [CHANNELS] [JOBS] [DELIVERIES] [DIR]`
//!
//! The same jobs are ended one after the other in a workspace without channels and in one with that many
//! webhooks for `job.completed`; what the second takes longer is the fan-out. That is done once with each
//! job's deliveries sent before the next ends, and once with all of them left waiting. Then a dead receiver's
//! backlog is left in the way of a live one, whose deliveries are claimed and finished.

use std::path::Path;
use std::time::{Duration, Instant};

use docmill_model::channel::{ChannelId, ChannelKind, ChannelScope};
use docmill_model::ids::{AccountId, FileId, JobId, WorkflowId, WorkspaceId};
use docmill_model::job::{EventType, JobType};
use docmill_store::sqlite::{Slots, SqliteStore};
use docmill_store::{
    Attempt, ChannelDefinition, ChannelRef, ChannelTarget, CodeLimits, DeliveryOutcome, DeliveryQuery, FileInput,
    FileOutcome, NewChannel, NewFile, NewJob, Result, Store,
};

const MINUTE: i64 = 60_000_000;

const QUERY: DeliveryQuery = DeliveryQuery {
    lane: ChannelKind::Webhook,
    max: 64,
    max_retries: 8,
    per_receiver: 32,
    lease_until: 9 * MINUTE,
};

#[tokio::main]
async fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: usize| -> std::result::Result<usize, std::num::ParseIntError> {
        arguments.next().map_or(Ok(default), |text| text.parse())
    };
    let (channels, jobs, deliveries) = (number(50)?, number(200)?, number(10_000)?);
    let directory = match arguments.next() {
        Some(parent) => tempfile::tempdir_in(parent)?,
        None => tempfile::tempdir_in(".")?,
    };
    let store = open(directory.path()).await?;
    let account = store.create_account("bench", 1).await?;
    let mut medians = Vec::new();
    for (name, hooks, send) in [
        ("quiet", 0, true),
        ("sent", channels, true),
        ("waiting", channels, false),
    ] {
        let workspace = store.create_workspace(account, name, 1).await?;
        for n in 0..hooks {
            hook(&store, workspace, &format!("{n}.example"), EventType::JobCompleted).await?;
        }
        let times = end_jobs(&store, account, workspace, jobs, send).await?;
        println!("{hooks} channels, {name}: ending a job takes {}", spread(&times));
        medians.extend(times.get(times.len() / 2).copied());
        send_all(&store).await?;
    }
    if let [quiet, sent, waiting] = medians.as_slice() {
        let (sent, waiting) = (sent.saturating_sub(*quiet), waiting.saturating_sub(*quiet));
        println!("the fan-out to {channels} channels adds {sent:.2?} to the median, {waiting:.2?} before a backlog");
    }
    deliver(&store, account, deliveries).await?;
    store.close().await;
    Ok(())
}

async fn open(directory: &Path) -> Result<SqliteStore> {
    let slots = Slots {
        local_jobs: 0,
        workflow_jobs: 0,
    };
    SqliteStore::open(&directory.join("bench.db"), slots).await
}

async fn hook(store: &SqliteStore, workspace: WorkspaceId, host: &str, event: EventType) -> Result<()> {
    let channel = NewChannel {
        channel: ChannelRef {
            workspace,
            scope: ChannelScope::Workspace,
            id: ChannelId::new(),
        },
        definition: ChannelDefinition {
            description: None,
            events: vec![event],
            wanted: true,
            target: ChannelTarget::Webhook {
                url: format!("https://{host}/hook"),
                host: host.to_owned(),
                secrets: None,
            },
        },
        code: None,
    };
    store
        .create_channel(channel, u32::MAX, CodeLimits::default(), 1)
        .await?;
    Ok(())
}

fn job(account: AccountId, workspace: WorkspaceId, files: usize) -> Option<NewJob> {
    let nodes = docmill_model::template::find("hi_res_partition")?.nodes();
    Some(NewJob {
        id: JobId::new(),
        account,
        workspace,
        workflow: WorkflowId::new(),
        workflow_name: "bench".into(),
        job_type: JobType::Ephemeral,
        chain: docmill_model::chain::parse(&nodes, &[]).ok()?.0,
        retry_of: None,
        run: None,
        files: (0..files)
            .map(|n| NewFile {
                id: FileId::new(),
                name: format!("{n}.txt"),
                content_type: None,
                size: 1,
                input: FileInput::Blob(format!("in/{n}")),
                resumes: None,
            })
            .collect(),
    })
}

/// How long ending each job took, sorted.
async fn end_jobs(
    store: &SqliteStore,
    account: AccountId,
    workspace: WorkspaceId,
    jobs: usize,
    send: bool,
) -> Result<Vec<Duration>> {
    let mut times = Vec::with_capacity(jobs);
    for _ in 0..jobs {
        let Some(job) = job(account, workspace, 1) else { break };
        store.create_job(job, MINUTE).await?;
        for claim in store.claim(1, 9 * MINUTE, MINUTE).await? {
            let outcome = FileOutcome::Succeeded {
                outputs: Vec::new(),
                warnings: Vec::new(),
                elements: 1,
                pages: 1,
                routes: Vec::new(),
                content_hash: None,
            };
            let start = Instant::now();
            store.finish(claim.lease, outcome, 2 * MINUTE).await?;
            times.push(start.elapsed());
            if send {
                send_all(store).await?;
            }
        }
    }
    times.sort();
    Ok(times)
}

/// Claims and finishes whatever is due.
async fn send_all(store: &SqliteStore) -> Result<()> {
    loop {
        let claimed = store.claim_deliveries(QUERY, 3 * MINUTE).await?;
        let leases: Vec<_> = claimed.iter().map(|claim| claim.lease).collect();
        if leases.is_empty() {
            return Ok(());
        }
        store
            .finish_deliveries(&leases, accepted(), DeliveryOutcome::Delivered, None, 3 * MINUTE)
            .await?;
    }
}

fn accepted() -> Attempt {
    Attempt {
        started_at: 3 * MINUTE,
        duration: 1_000,
        status: Some(204),
        response: None,
        error: None,
    }
}

fn spread(times: &[Duration]) -> String {
    let at = |share: usize| times.get(times.len() * share / 100).copied().unwrap_or_default();
    let [low, middle, high, last] = [10, 50, 95, 99].map(at);
    format!("{low:.2?} (p10), {middle:.2?} (median), {high:.2?} (p95), {last:.2?} (p99)")
}

/// Claims and finishes deliveries to a live receiver past a dead one's backlog of as many.
async fn deliver(store: &SqliteStore, account: AccountId, deliveries: usize) -> Result<()> {
    let workspace = store.create_workspace(account, "outbox", 1).await?;
    hook(store, workspace, "dead.example", EventType::JobScheduled).await?;
    hook(store, workspace, "live.example", EventType::JobInProgress).await?;
    for _ in 0..deliveries {
        let Some(job) = job(account, workspace, 0) else { break };
        store.create_job(job, MINUTE).await?;
    }
    let (start, mut finished, mut claiming, mut claims) = (Instant::now(), 0, Duration::ZERO, 0);
    loop {
        let before = Instant::now();
        let claimed = store.claim_deliveries(QUERY, 3 * MINUTE).await?;
        claiming += before.elapsed();
        claims += 1;
        let live = claimed
            .iter()
            .filter(|claim| claim.channel.definition.target.receiver() == "live.example");
        let leases: Vec<_> = live.map(|claim| claim.lease).collect();
        if leases.is_empty() {
            // Others' deliveries of the first part may come in between.
            if claimed.is_empty() || finished >= deliveries {
                break;
            }
            continue;
        }
        let ends = leases.iter().map(async |lease| {
            let lease = [*lease];
            let done = store.finish_deliveries(&lease, accepted(), DeliveryOutcome::Delivered, None, 3 * MINUTE);
            done.await
        });
        for end in futures_util::future::join_all(ends).await {
            finished += usize::try_from(end?.finished).unwrap_or_default();
        }
    }
    println!(
        "{finished} deliveries claimed and finished past {deliveries} to a dead receiver: {:.0}/s; a claim takes {:.2?}",
        finished as f64 / start.elapsed().as_secs_f64(),
        claiming / claims
    );
    Ok(())
}
