//! The measurements. Figures depend on the machine; the ratios are what to quote.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use serde_json::{Value, json};

use crate::Failure;
use crate::server::{Server, binary};

/// A measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum What {
    /// Creation to COMPLETED of a one-page PDF on an idle server.
    Latency,
    /// Small text files per second, end to end.
    Throughput,
    /// Resident memory, idle and after many files.
    Memory,
    /// 10,000 small files from directory to directory by a workflow.
    Directory,
    /// The first file of a bucket of 1,000,000 objects.
    Bucket,
    /// 1,000 chunks embedded by a double that takes 50 ms, and what a paid node costs beside its calls.
    Models,
    /// PDF text with positions against the plain text of pypdfium2, page by page on one thread.
    Pdf,
    /// Scans and pictures against the recogniser's own command line, `tesseract`.
    Ocr,
}

/// Runs the measurements named, or all.
pub(crate) fn run(what: &[What], pdfs: Option<&Path>, python: &Path) -> Result<(), Failure> {
    let named: Vec<What> = What::value_variants()
        .iter()
        .copied()
        .filter(|measurement| what.is_empty() || what.contains(measurement))
        .collect();
    // The library alone needs no server to be built.
    if named == [What::Pdf] {
        return crate::pdf::compare(pdfs, python);
    }
    let binary = binary()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    for measurement in named {
        match measurement {
            What::Latency => runtime.block_on(latency(&binary))?,
            What::Throughput => runtime.block_on(throughput(&binary))?,
            What::Memory => runtime.block_on(memory(&binary))?,
            What::Directory => runtime.block_on(crate::runs::directory(&binary))?,
            What::Bucket => runtime.block_on(crate::runs::bucket(&binary))?,
            What::Models => runtime.block_on(crate::models::embedding(&binary))?,
            What::Pdf => crate::pdf::compare(pdfs, python)?,
            What::Ocr => crate::ocr::compare(&binary, pdfs)?,
        }
    }
    Ok(())
}

pub(crate) fn chain() -> Value {
    json!([
        {"name": "P", "type": "partition", "subtype": "service_api", "settings": {"strategy": "fast"}},
        {"name": "C", "type": "chunk", "subtype": "chunk_by_title"}
    ])
}

async fn latency(binary: &Path) -> Result<(), Failure> {
    const RUNS: usize = 300;
    let server = Server::start(binary, Path::new("/nonexistent"))?;
    let page = std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/letter.pdf"))?;
    let files = [("letter.pdf".to_owned(), page)];
    let mut times = Vec::new();
    for run in 0..RUNS + 10 {
        let start = Instant::now();
        let job = server.create(&files, &chain()).await?;
        server.wait(&job, Duration::from_millis(1)).await?;
        // The first runs warm caches.
        if run >= 10 {
            times.push(start.elapsed());
        }
    }
    times.sort();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e3;
    println!(
        "latency     one-page PDF, create to COMPLETED over HTTP: p50 {:.1} ms, p99 {:.1} ms ({RUNS} runs)",
        at(0.5),
        at(0.99)
    );
    let spawn = spawn_time(binary)?;
    println!(
        "            p50 is {:.1} x the time this machine takes to start and end the bare binary ({spawn:.1} ms)",
        at(0.5) / spawn
    );
    Ok(())
}

/// Median time of starting a process that does nothing, in ms: the machine's own yardstick.
fn spawn_time(binary: &Path) -> Result<f64, Failure> {
    let mut times = Vec::new();
    for _ in 0..21 {
        let start = Instant::now();
        Command::new(binary).arg("--version").output()?;
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    Ok(times[times.len() / 2])
}

/// A text of about 2 KB in paragraphs.
pub(crate) fn small_text(number: usize) -> Vec<u8> {
    let mut text = format!("Report {number}\n\n");
    while text.len() < 2_000 {
        text.push_str("The keeper wrote down the weather, the ships he saw and the oil he used.\n\nNothing else happened on that day.\n\n");
    }
    text.into_bytes()
}

/// Runs `files` small texts in jobs of ten from several clients; files per second.
async fn run_texts(server: &Arc<Server>, files: usize) -> Result<f64, Failure> {
    const PER_JOB: usize = 10;
    const CLIENTS: usize = 4;
    let start = Instant::now();
    let mut clients = Vec::new();
    for client in 0..CLIENTS {
        let server = server.clone();
        let jobs = files / PER_JOB / CLIENTS;
        clients.push(tokio::spawn(async move {
            let mut ids = Vec::new();
            for job in 0..jobs {
                let files: Vec<_> = (0..PER_JOB)
                    .map(|file| (format!("note-{client}-{job}-{file}.txt"), small_text(file)))
                    .collect();
                ids.push(server.create(&files, &chain()).await?);
            }
            for id in ids {
                server.wait(&id, Duration::from_millis(20)).await?;
            }
            Ok::<_, Failure>(())
        }));
    }
    for client in clients {
        client.await??;
    }
    Ok(files as f64 / start.elapsed().as_secs_f64())
}

async fn throughput(binary: &Path) -> Result<(), Failure> {
    let server = Arc::new(Server::start(binary, Path::new("/nonexistent"))?);
    run_texts(&server, 200).await?;
    let rate = run_texts(&server, 1_000).await?;
    println!("throughput  1,000 texts of 2 KB in jobs of 10, a process per file: {rate:.0} files/s");
    Ok(())
}

async fn memory(binary: &Path) -> Result<(), Failure> {
    let server = Arc::new(Server::start(binary, Path::new("/nonexistent"))?);
    tokio::time::sleep(Duration::from_secs(1)).await;
    let mib = |bytes: u64| bytes as f64 / (1 << 20) as f64;
    let idle = server.resident()?;
    run_texts(&server, 1_000).await?;
    let early = server.resident()?;
    for round in 1..=9 {
        run_texts(&server, 1_000).await?;
        println!(
            "memory      after {:>6} files: {:.1} MiB",
            (round + 1) * 1_000,
            mib(server.resident()?)
        );
    }
    let late = server.resident()?;
    println!(
        "memory      idle {:.1} MiB, after 1,000 files {:.1} MiB, after 10,000 files {:.1} MiB ({:+.1} %)",
        mib(idle),
        mib(early),
        mib(late),
        (late as f64 / early as f64 - 1.0) * 100.0
    );
    Ok(())
}
