//! How many files a second the store can hand out and record as ended, every change durable.
//!
//! `cargo run --release -p docmill-store --example finishes -- [FILES] [WORKERS] [FILES_PER_JOB] [DIR]`
//!
//! Each worker claims a file, finishes it with one output and goes on, so a file costs two operations that
//! must reach the disk. Beside the rate the program prints what one flush to this disk costs: a store that
//! did not group its commits could not be faster than half of the flushes a second.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use docmill_model::ids::{AccountId, FileId, JobId, WorkflowId, WorkspaceId};
use docmill_model::job::JobType;
use docmill_model::time::Micros;
use docmill_store::sqlite::{Slots, SqliteStore};
use docmill_store::{FileInput, FileOutcome, NewFile, NewJob, Result, Store};

const SECOND: Micros = 1_000_000;

#[tokio::main]
async fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: usize| -> std::result::Result<usize, std::num::ParseIntError> {
        arguments.next().map_or(Ok(default), |text| text.parse())
    };
    let (files, workers, per_job) = (number(20_000)?, number(64)?, number(10)?.max(1));
    let directory = match arguments.next() {
        Some(parent) => tempfile::tempdir_in(parent)?,
        None => tempfile::tempdir_in(".")?,
    };
    let flush = flush_time(directory.path())?;

    // No bound on running jobs, so that everything may be claimed.
    let store = Arc::new(
        SqliteStore::open(
            &directory.path().join("bench.db"),
            Slots {
                local_jobs: 0,
                workflow_jobs: 0,
            },
        )
        .await?,
    );
    let account = store.create_account("bench", 1).await?;
    let workspace = store.create_workspace(account, "bench", 1).await?;
    let start = Instant::now();
    submit(&store, account, workspace, files, per_job).await?;
    println!(
        "{} jobs of {per_job} files created in {:.1?}: {:.0} jobs/s",
        files / per_job,
        start.elapsed(),
        (files / per_job) as f64 / start.elapsed().as_secs_f64()
    );

    let start = Instant::now();
    let finished = drain(&store, workers).await?;
    let rate = finished as f64 / start.elapsed().as_secs_f64();
    println!(
        "{finished} files claimed and finished by {workers} workers in {:.1?}: {rate:.0} finishes/s",
        start.elapsed()
    );
    let bound = 1.0 / flush.as_secs_f64();
    println!(
        "one flush to this disk takes {:.2} ms: at one commit an operation, at most {:.0} finishes/s",
        flush.as_secs_f64() * 1e3,
        bound / 2.0
    );
    store.close().await;
    Ok(())
}

async fn submit(
    store: &Arc<SqliteStore>,
    account: AccountId,
    workspace: WorkspaceId,
    files: usize,
    per_job: usize,
) -> Result<()> {
    let chain = docmill_model::template::find("hi_res_partition").map(|template| template.nodes());
    let chain = chain.and_then(|nodes| docmill_model::chain::parse(&nodes, &[]).ok());
    let Some((chain, _)) = chain else { return Ok(()) };
    let mut creations = tokio::task::JoinSet::new();
    for first in (0..files).step_by(per_job) {
        let job = NewJob {
            id: JobId::new(),
            account,
            workspace,
            workflow: WorkflowId::new(),
            workflow_name: "bench".into(),
            job_type: JobType::Ephemeral,
            chain: chain.clone(),
            retry_of: None,
            run: None,
            files: (first..files.min(first + per_job))
                .map(|n| NewFile {
                    id: FileId::new(),
                    name: format!("{n}.txt"),
                    content_type: None,
                    size: 1,
                    input: FileInput::Blob(format!("in/{n}")),
                    resumes: None,
                })
                .collect(),
        };
        let store = store.clone();
        creations.spawn(async move { store.create_job(job, SECOND).await });
    }
    for result in creations.join_all().await {
        result?;
    }
    Ok(())
}

/// Has `workers` claim and finish until there is nothing left; how many files that were.
async fn drain(store: &Arc<SqliteStore>, workers: usize) -> Result<usize> {
    let finished = Arc::new(AtomicUsize::new(0));
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..workers {
        let (store, finished) = (store.clone(), finished.clone());
        tasks.spawn(async move {
            while let Some(claim) = store.claim(1, 60 * SECOND, 2 * SECOND).await?.pop() {
                let outcome = FileOutcome::Succeeded {
                    outputs: claim
                        .chain
                        .nodes()
                        .iter()
                        .map(|node| (node.id, 0, format!("out/{}", claim.lease.file()), 1))
                        .collect(),
                    warnings: Vec::new(),
                    elements: 1,
                    pages: 1,
                    routes: Vec::new(),
                    content_hash: None,
                };
                store.finish(claim.lease, outcome, 3 * SECOND).await?;
                finished.fetch_add(1, Ordering::Relaxed);
            }
            Result::Ok(())
        });
    }
    for result in tasks.join_all().await {
        result?;
    }
    Ok(finished.load(Ordering::Relaxed))
}

/// What writing a page at the end of a file and flushing it takes, in the middle of many tries.
fn flush_time(directory: &Path) -> std::io::Result<Duration> {
    let mut file = std::fs::File::create(directory.join("flush"))?;
    let mut times = Vec::new();
    for _ in 0..100 {
        let start = Instant::now();
        file.write_all(&[0; 4096])?;
        file.sync_data()?;
        times.push(start.elapsed());
    }
    times.sort();
    Ok(times.get(times.len() / 2).copied().unwrap_or_default())
}
