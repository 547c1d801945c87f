//! Runs of workflows: many small files from directory to directory, and a source of a million objects.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

use crate::Failure;
use crate::server::Server;

const MIB: f64 = (1u64 << 20) as f64;

/// Files of the directory.
const FILES: usize = 10_000;

/// Objects of the bucket, and of one page of its list.
const OBJECTS: usize = 1_000_000;
const PAGE: usize = 1_000;

/// 10,000 small texts from one directory to another, a process for each.
pub(crate) async fn directory(binary: &Path) -> Result<(), Failure> {
    let folder = tempfile::tempdir()?;
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    for number in 0..FILES {
        let folder = from.join(format!("{:02}", number % 100));
        std::fs::create_dir_all(&folder)?;
        std::fs::write(
            folder.join(format!("note-{number:05}.txt")),
            crate::bench::small_text(number),
        )?;
    }
    std::fs::create_dir_all(&to)?;
    let server = Server::start(binary, folder.path())?;
    let source = json!({"type": "local", "config": {"path": from}});
    let destination = json!({"type": "local", "config": {"path": to}});
    let workflow = workflow(&server, source, destination).await?;
    let start = Instant::now();
    let job = server.post(&format!("/workflows/{workflow}/run"), None).await?;
    let job = job["id"].as_str().ok_or("no id")?.to_owned();
    let (mut early, mut late) = (0, 0);
    loop {
        let details = server.get(&format!("/jobs/{job}/details?limit=1")).await?;
        let done = details["summary"]["total_docs_succeeded"].as_u64().unwrap_or(0);
        if early == 0 && done >= 1_000 {
            early = server.resident()?;
        }
        late = late.max(server.resident()?);
        match details["processing_status"].as_str() {
            Some("SUCCESS") => break,
            Some("SCHEDULED" | "IN_PROGRESS") => tokio::time::sleep(Duration::from_millis(100)).await,
            _ => return Err(format!("the run ended badly: {details}").into()),
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "directory   {FILES} texts of 2 KB, local to local, a process per file: {:.0} files/s; memory {:.1} MiB after \
         1,000, at most {:.1} MiB",
        FILES as f64 / seconds,
        early as f64 / MIB,
        late as f64 / MIB
    );
    Ok(())
}

/// How soon the first file of a bucket with a million objects is done, and what listing on costs.
pub(crate) async fn bucket(binary: &Path) -> Result<(), Failure> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let endpoint = format!("http://{}", listener.local_addr()?);
    tokio::spawn(serve_bucket(listener));
    let folder = tempfile::tempdir()?;
    let to = folder.path().join("to");
    std::fs::create_dir_all(&to)?;
    let server = Server::start(binary, folder.path())?;
    let source = json!({"type": "s3", "config": {
        "remote_url": "s3://bucket/", "endpoint_url": endpoint, "key": "k", "secret": "s"}});
    let workflow = workflow(&server, source, json!({"type": "local", "config": {"path": to}})).await?;
    let start = Instant::now();
    let job = server.post(&format!("/workflows/{workflow}/run"), None).await?;
    let job = job["id"].as_str().ok_or("no id")?.to_owned();
    let mut first = None;
    let mut early = 0;
    while start.elapsed() < Duration::from_secs(30) {
        let details = server.get(&format!("/jobs/{job}/details?limit=1")).await?;
        let done = details["summary"]["total_docs_succeeded"].as_u64().unwrap_or(0);
        if first.is_none() && done > 0 {
            first = Some(start.elapsed());
        }
        if early == 0 && done >= 1_000 {
            early = server.resident()?;
        }
        if first.is_none() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        } else {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
    let details = server.get(&format!("/jobs/{job}/details?limit=1")).await?;
    server.post(&format!("/jobs/{job}/cancel"), None).await?;
    println!(
        "bucket      {OBJECTS} objects listed by a double: first file done after {:.0} ms; {} done in 30 s, memory \
         {:.1} MiB after 1,000, {:.1} MiB then",
        first.ok_or("no file was done in time")?.as_secs_f64() * 1e3,
        details["summary"]["total_docs_succeeded"],
        early as f64 / MIB,
        server.resident()? as f64 / MIB
    );
    Ok(())
}

async fn workflow(server: &Server, source: Value, destination: Value) -> Result<String, Failure> {
    let mut ids = Vec::new();
    for (path, mut connector) in [("/sources", source), ("/destinations", destination)] {
        connector["name"] = "bench".into();
        let created = server.post(path, Some(&connector)).await?;
        ids.push(created["id"].as_str().ok_or("no id")?.to_owned());
    }
    let body = json!({
        "name": "bench", "workflow_type": "custom", "source_id": ids[0], "destination_id": ids[1],
        "workflow_nodes": crate::bench::chain(),
    });
    let workflow = server.post("/workflows", Some(&body)).await?;
    Ok(workflow["id"].as_str().ok_or("no id")?.to_owned())
}

/// As much of the S3 protocol as a listing source needs: `ListObjectsV2` with `start-after` and continuation
/// tokens (the last key), and `GetObject`.
async fn serve_bucket(listener: TcpListener) {
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(async move {
            // A client that went away ends its connection, and that is all.
            let _ = serve_connection(stream).await;
        });
    }
}

async fn serve_connection(stream: TcpStream) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let mut request = String::new();
        if stream.read_line(&mut request).await? == 0 {
            return Ok(());
        }
        let mut length = 0u64;
        loop {
            let mut line = String::new();
            stream.read_line(&mut line).await?;
            let line = line.trim().to_ascii_lowercase();
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap_or(0);
            }
            if line.is_empty() {
                break;
            }
        }
        tokio::io::copy(&mut (&mut stream).take(length), &mut tokio::io::sink()).await?;
        let target = request.split(' ').nth(1).unwrap_or_default();
        let (kind, body) = answer(target);
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\netag: \"1\"\r\nlast-modified: Sat, 21 Nov 2026 00:00:00 GMT\r\n\
             content-length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).await?;
        stream.write_all(&body).await?;
    }
}

fn answer(target: &str) -> (&'static str, Vec<u8>) {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    if !query.contains("list-type=2") {
        let number = path
            .bytes()
            .filter(u8::is_ascii_digit)
            .fold(0, |n, d| (n * 10 + usize::from(d - b'0')) % OBJECTS);
        return ("text/plain", crate::bench::small_text(number));
    }
    // Both name the last key seen, whose number is where to go on.
    let after = query
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .filter(|(name, _)| matches!(*name, "continuation-token" | "start-after"))
        .filter_map(|(_, value)| {
            value
                .bytes()
                .filter(u8::is_ascii_digit)
                .map(char::from)
                .collect::<String>()
                .parse()
                .ok()
        })
        .max();
    let first: usize = after.map_or(0, |last: usize| last + 1);
    let end = (first + PAGE).min(OBJECTS);
    let mut xml = format!(
        "<?xml version=\"1.0\"?><ListBucketResult><Name>bucket</Name><IsTruncated>{}</IsTruncated>",
        end < OBJECTS
    );
    for number in first..end {
        xml.push_str(&format!(
            "<Contents><Key>note-{number:07}.txt</Key><LastModified>2026-11-21T00:00:00.000Z</LastModified>\
             <ETag>\"{number}\"</ETag><Size>2000</Size></Contents>"
        ));
    }
    if end < OBJECTS {
        xml.push_str(&format!(
            "<NextContinuationToken>note-{:07}</NextContinuationToken>",
            end - 1
        ));
    }
    xml.push_str("</ListBucketResult>");
    ("application/xml", xml.into_bytes())
}
