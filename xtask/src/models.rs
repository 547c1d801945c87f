//! What chains that call models cost in time: against a provider's double of 50 ms.

use std::path::Path;
use std::time::{Duration, Instant};

use docmill_testkit::{Asked, Double, Reply};
use serde_json::{Value, json};

use crate::Failure;
use crate::server::Server;

/// How long the double takes for an answer.
const LATENCY: Duration = Duration::from_millis(50);

const CHUNKS: usize = 1_000;

const DIMENSIONS: usize = 1_536;

pub(crate) async fn embedding(binary: &Path) -> Result<(), Failure> {
    let double = Double::slow(LATENCY, |asked, _| vectors(asked)).await;
    let base_url = format!("{}/v1", double.url);
    let settings = [
        ("DOCMILL_PROVIDERS__OPENAI__BASE_URL", base_url.as_str()),
        ("DOCMILL_PROVIDERS__OPENAI__API_KEY", "sk-bench"),
    ];
    let server = Server::start_with(binary, Path::new("/nonexistent"), &settings)?;
    let (plain, embedded) = (chain(false), chain(true));
    // The first files warm caches, and each is another text.
    let mut number = 0;
    let mut next = |chunks| {
        number += 1;
        [("text.txt".to_owned(), text(number, chunks))]
    };
    timed(&server, &next(10), &embedded).await?;
    let without = best(&server, &plain, [next(CHUNKS), next(CHUNKS), next(CHUNKS)]).await?;
    let before = double.count();
    let files = [next(CHUNKS), next(CHUNKS), next(CHUNKS)];
    let with = best(&server, &embedded, files.clone()).await?;
    let batches = (double.count() - before) / 3;
    let again = best(&server, &embedded, files).await?;
    println!(
        "models      {CHUNKS} chunks embedded by {batches} calls of {} ms: {:.0} ms from create to COMPLETED, of which \
         {:.0} ms without the embedder; again, from kept answers: {:.0} ms",
        LATENCY.as_millis(),
        ms(with),
        ms(without),
        ms(again)
    );
    let (mut bare, mut paid) = (Vec::new(), Vec::new());
    for _ in 0..60 {
        let file = next(1);
        bare.push(timed(&server, &file, &plain).await?);
        paid.push(timed(&server, &file, &embedded).await?);
    }
    bare.sort();
    paid.sort();
    println!(
        "            a file of one chunk: p50 {:.1} ms without the embedder, {:.1} ms with it, so {:.1} ms beside the call",
        ms(bare[30]),
        ms(paid[30]),
        ms(paid[30]) - ms(bare[30]) - ms(LATENCY)
    );
    Ok(())
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

async fn best(server: &Server, nodes: &Value, files: [[(String, Vec<u8>); 1]; 3]) -> Result<Duration, Failure> {
    let mut best = Duration::MAX;
    for file in files {
        best = best.min(timed(server, &file, nodes).await?);
    }
    Ok(best)
}

async fn timed(server: &Server, files: &[(String, Vec<u8>)], nodes: &Value) -> Result<Duration, Failure> {
    let start = Instant::now();
    let job = server.create(files, nodes).await?;
    server.wait(&job, Duration::from_millis(1)).await?;
    Ok(start.elapsed())
}

fn chain(embed: bool) -> Value {
    let mut nodes = vec![
        json!({"name": "P", "type": "partition", "subtype": "service_api", "settings": {"strategy": "fast"}}),
        json!({"name": "C", "type": "chunk", "subtype": "chunk_by_character", "settings": {"max_characters": 120}}),
    ];
    if embed {
        let settings = json!({"model_name": "text-embedding-3-small"});
        nodes.push(json!({"name": "E", "type": "embed", "subtype": "openai", "settings": settings}));
    }
    nodes.into()
}

/// Paragraphs that each make a chunk.
fn text(number: usize, chunks: usize) -> Vec<u8> {
    let mut text = String::new();
    for chunk in 0..chunks {
        text.push_str(&format!(
            "In note {chunk} of book {number} the keeper wrote down the weather and the ships that he saw that day.\n\n"
        ));
    }
    text.into_bytes()
}

fn vectors(asked: &Asked) -> Result<Reply, String> {
    let body: Value = serde_json::from_slice(&asked.body).map_err(|error| error.to_string())?;
    let texts = body["input"].as_array().ok_or("no input")?;
    let vector: Vec<f32> = (0..DIMENSIONS).map(|n| (n as f32).sin() / 40.0).collect();
    let data = (0..texts.len()).map(|index| json!({"object": "embedding", "index": index, "embedding": vector}));
    let data: Vec<_> = data.collect();
    Ok(Reply::json(json!({
        "object": "list", "data": data, "model": body["model"],
        "usage": {"prompt_tokens": texts.len() * 20, "total_tokens": texts.len() * 20},
    })))
}
