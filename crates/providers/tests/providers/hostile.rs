//! Answers nobody should give.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use docmill_providers::{
    Chat, Provider, ProviderError, ProviderErrorKind, ProviderSettings, Purpose, Result, embed_all,
};
use futures_util::future::join_all;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::double::{Double, KEY, Reply, providers, settings, simple, texts, vector};

const NAME: Provider = Provider::Custom;

fn chat(settings: ProviderSettings) -> Arc<dyn Chat> {
    providers(NAME, settings).chat(NAME, "m", None).unwrap()
}

fn good() -> Reply {
    Reply::json(json!({"choices": [{"message": {"content": "ok"}, "finish_reason": "stop"}]}))
}

async fn fails(settings: ProviderSettings) -> ProviderError {
    let chat = chat(settings);
    let error = chat.complete(&simple("x")).await.unwrap_err();
    assert!(!format!("{error} {error:?} {chat:?}").contains(KEY), "{error:?}");
    assert!(error.message.len() < 2_000 && !error.message.contains('\n'), "{error}");
    error
}

#[tokio::test]
async fn retry_after_is_waited_for_and_then_it_works() {
    let double = Double::start(|_, number| match number {
        0 => Ok(Reply::status(429, "").with("retry-after", "1")),
        1 => Ok(Reply::status(503, "<html>busy").with("retry-after-ms", "300")),
        2 => Ok(Reply::status(500, "{")),
        3 => Ok(Reply::status(529, "")),
        _ => Ok(good()),
    })
    .await;
    let start = Instant::now();
    let answer = chat(settings(&double.url)).complete(&simple("x")).await.unwrap();
    let took = start.elapsed();
    assert!(
        took >= Duration::from_millis(1_300) && took < Duration::from_secs(4),
        "{took:?}"
    );
    assert_eq!(
        (answer.text.as_str(), answer.usage.calls, answer.usage.retries),
        ("ok", 1, 4)
    );
    assert!(answer.usage.millis >= 1_300);
}

#[tokio::test]
async fn others_wait_too_while_the_provider_wants_to_be_left_alone() {
    let double = Double::start(|_, number| match number {
        0 => Ok(Reply::status(429, "").with("retry-after", "1")),
        _ => Ok(good()),
    })
    .await;
    let chat = chat(settings(&double.url));
    let request = simple("x");
    let second = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        let start = Instant::now();
        chat.complete(&request).await.unwrap();
        start.elapsed()
    };
    let (first, second) = tokio::join!(chat.complete(&request), second);
    assert_eq!(first.unwrap().usage.retries, 1);
    assert!(second >= Duration::from_millis(600), "{second:?}");
}

#[tokio::test]
async fn whoever_wants_an_hour_gets_an_error_at_once() {
    let double = Double::start(|_, _| {
        let body = r#"{"error":{"message":"Rate limit reached","type":"tokens","code":"rate_limit_exceeded"}}"#;
        Ok(Reply::status(429, body)
            .with("retry-after", "3600")
            .with("x-request-id", "req_9"))
    })
    .await;
    let error = fails(settings(&double.url)).await;
    assert_eq!(
        (error.kind, error.retry_after),
        (ProviderErrorKind::RateLimit, Some(Duration::from_secs(3_600)))
    );
    assert_eq!(double.count(), 1);
    assert_eq!(
        error.to_string(),
        "custom: too many requests or tokens: rate_limit_exceeded: Rate limit reached (status 429, request id req_9)"
    );
    assert!(error.retryable());
}

#[tokio::test]
async fn retries_end() {
    let double = Double::start(|_, _| Ok(Reply::status(500, "").with("x-request-id", "r"))).await;
    let limited = ProviderSettings {
        max_retries: 2,
        ..settings(&double.url)
    };
    let error = fails(limited).await;
    assert_eq!(
        (error.kind, error.status, double.count()),
        (ProviderErrorKind::Server, Some(500), 3)
    );
    assert_eq!((error.usage.calls, error.usage.retries), (1, 2));
}

#[tokio::test]
async fn what_trying_again_cannot_mend_is_not_tried_again() {
    let echo = format!(r#"{{"error":{{"message":"Incorrect API key provided: {KEY}","code":"invalid_api_key"}}}}"#);
    let quota = r#"{"error":{"message":"You exceeded your current quota","code":"insufficient_quota"}}"#;
    for (status, body, kind) in [
        (401, echo.as_str(), ProviderErrorKind::Auth),
        (403, echo.as_str(), ProviderErrorKind::Auth),
        (400, echo.as_str(), ProviderErrorKind::Invalid),
        (404, "", ProviderErrorKind::Invalid),
        (302, "", ProviderErrorKind::Invalid),
        (422, "[[[[", ProviderErrorKind::Invalid),
        (413, "", ProviderErrorKind::TooLarge),
        (429, quota, ProviderErrorKind::RateLimit),
        (402, "", ProviderErrorKind::RateLimit),
    ] {
        let body = body.to_owned();
        let reply = move || Reply::status(status, body.clone()).with("location", "http://127.0.0.1:1/");
        let double = Double::start(move |_, _| Ok(reply())).await;
        let error = fails(settings(&double.url)).await;
        assert_eq!(
            (error.kind, error.status, double.count()),
            (kind, Some(status), 1),
            "{error}"
        );
    }
}

#[tokio::test]
async fn nonsense_is_tried_once_more_and_then_told() {
    let deep = "[".repeat(100_000);
    let many = format!(r#"{{"choices":[{}]}}"#, vec!["{}"; 10_000].join(","));
    let half = r#"{"choices":[{"message":{"content":"hal"#;
    for body in [
        "",
        "null",
        "true",
        "\"x\"",
        "[]",
        "{}",
        "<html>",
        "\u{feff}{}",
        half,
        &deep,
        &many,
        r#"{"choices":[]}"#,
        r#"{"choices":{}}"#,
        r#"{"choices":[{"message":{"content":1}}]}"#,
        r#"{"choices":[{"message":{}}]}"#,
        r#"{"choices":[{"message":{"content":"a"}}],"usage":{"prompt_tokens":-1}}"#,
        r#"{"choices":[{"message":{"content":"a"}}],"usage":{"prompt_tokens":1e300}}"#,
    ] {
        let reply = body.to_owned();
        let double = Double::start(move |_, _| Ok(Reply::status(200, reply.clone()).with("x-request-id", "r"))).await;
        let error = fails(settings(&double.url)).await;
        let shown: String = body.chars().take(40).collect();
        assert_eq!(
            (error.kind, error.status),
            (ProviderErrorKind::BadAnswer, Some(200)),
            "{shown}"
        );
        assert_eq!((error.request_id.as_deref(), double.count()), (Some("r"), 2), "{shown}");
    }
}

#[tokio::test]
async fn a_key_in_a_request_id_or_a_message_is_not_told() {
    let double = Double::start(|_, _| {
        let body = json!({"error": {"message": format!("a\u{1b}[31m {KEY} \r\nsecond line"), "type": KEY}});
        Ok(Reply::status(400, body.to_string()).with("x-request-id", format!("id-{KEY}")))
    })
    .await;
    let error = fails(settings(&double.url)).await;
    assert_eq!(
        (error.message.as_str(), error.request_id),
        ("it answers 400: [key]: a[31m [key] ", None)
    );
}

/// A server that reads a request whole and then writes `pieces` with a pause after each.
async fn raw(pieces: Vec<Vec<u8>>, pause: Duration) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let count = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&count);
    let pieces = Arc::new(pieces);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            counter.fetch_add(1, Ordering::SeqCst);
            let pieces = Arc::clone(&pieces);
            tokio::spawn(async move {
                read_request(&mut stream).await;
                for piece in pieces.iter() {
                    if stream.write_all(piece).await.is_err() {
                        return;
                    }
                    tokio::time::sleep(pause).await;
                }
            });
        }
    });
    (url, count)
}

async fn read_request(stream: &mut TcpStream) {
    let (mut bytes, mut piece) = (Vec::new(), [0; 4_096]);
    loop {
        let length = stream.read(&mut piece).await.unwrap_or(0);
        bytes.extend_from_slice(&piece[..length]);
        let text = String::from_utf8_lossy(&bytes);
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let wanted = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        if length == 0 || body.len() >= wanted.map_or(0, |wanted| wanted.parse().unwrap()) {
            return;
        }
    }
}

#[tokio::test]
async fn a_connection_that_breaks_in_the_answer_is_tried_again_and_told() {
    let head = b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\nx-request-id: r\r\n\r\n{\"choices\":[".to_vec();
    let chunked = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{\"cho\r\n".to_vec();
    for (pieces, status) in [
        (vec![head], Some(200)),
        (vec![chunked], Some(200)),
        (vec![], None),
        (vec![b"SSH-2.0-x\r\n".to_vec()], None),
        (vec![b"HTTP/1.1 2".to_vec()], None),
    ] {
        let (url, count) = raw(pieces, Duration::ZERO).await;
        let error = fails(settings(&url)).await;
        assert_eq!(
            (error.kind, error.status),
            (ProviderErrorKind::Unreachable, status),
            "{error}"
        );
        assert!(count.load(Ordering::SeqCst) >= 5, "{error}");
        assert_eq!(error.usage.retries, 4);
    }
}

#[tokio::test]
async fn nobody_there_is_told() {
    let port = TcpListener::bind(("127.0.0.1", 0))
        .await
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let error = fails(settings(&format!("http://127.0.0.1:{port}"))).await;
    assert_eq!(
        (error.kind, error.status, error.usage.retries),
        (ProviderErrorKind::Unreachable, None, 4)
    );
}

#[tokio::test]
async fn silence_ends_in_time_and_is_tried_once_more() {
    let dribble = |count| vec![b"HTTP/1.1 200 OK\r\ncontent-length: 99999\r\n\r\n ".to_vec(); count];
    for (pieces, pause) in [
        (vec![Vec::new()], Duration::from_secs(600)),
        // A byte now and then keeps nobody waiting for ever.
        (dribble(1_000), Duration::from_millis(100)),
    ] {
        let (url, count) = raw(pieces, pause).await;
        let impatient = ProviderSettings {
            timeout_secs: 1,
            ..settings(&url)
        };
        let start = Instant::now();
        let error = fails(impatient).await;
        assert_eq!(
            (error.kind, count.load(Ordering::SeqCst)),
            (ProviderErrorKind::Timeout, 2),
            "{error}"
        );
        assert!(start.elapsed() < Duration::from_secs(4));
    }
}

#[tokio::test]
async fn a_hundred_megabytes_are_not_read() {
    let told = b"HTTP/1.1 200 OK\r\ncontent-length: 104857600\r\n\r\n".to_vec();
    let untold = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
    let mut chunk = b"100000\r\n".to_vec();
    chunk.resize(chunk.len() + (1 << 20), b' ');
    chunk.extend_from_slice(b"\r\n");
    let chunks = |head: Vec<u8>| {
        std::iter::once(head)
            .chain(vec![chunk.clone(); 100])
            .collect::<Vec<_>>()
    };
    for pieces in [vec![told], chunks(untold)] {
        let (url, count) = raw(pieces, Duration::ZERO).await;
        let error = fails(settings(&url)).await;
        assert_eq!(
            (error.kind, error.status),
            (ProviderErrorKind::TooLarge, Some(200)),
            "{error}"
        );
        assert_eq!(count.load(Ordering::SeqCst), 1);
    }
    // A refusal is read in part only.
    let refusal = b"HTTP/1.1 400 Bad\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
    let (url, _) = raw(chunks(refusal), Duration::ZERO).await;
    assert_eq!(fails(settings(&url)).await.kind, ProviderErrorKind::Invalid);
}

#[tokio::test]
async fn no_more_are_under_way_than_set() {
    let double = Double::slow(Duration::from_millis(30), |_, number| match number % 5 {
        0 => Ok(Reply::status(500, "")),
        _ => Ok(good()),
    })
    .await;
    let bounded = ProviderSettings {
        concurrency: 3,
        max_retries: 9,
        ..settings(&double.url)
    };
    let providers = providers(NAME, bounded);
    // Two keys share the places.
    let other = docmill_providers::Secret::new("another");
    let chats = [
        providers.chat(NAME, "m", None).unwrap(),
        providers.chat(NAME, "n", Some(&other)).unwrap(),
    ];
    let request = simple("x");
    let calls = (0..40).map(|number| chats[number % 2].complete(&request));
    for answer in join_all(calls).await {
        assert_eq!(answer.unwrap().text, "ok");
    }
    assert_eq!(double.seen.most_under_way.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn a_call_that_is_dropped_gives_its_place_back() {
    let (url, _) = raw(vec![Vec::new()], Duration::from_secs(600)).await;
    let single = ProviderSettings {
        concurrency: 1,
        ..settings(&url)
    };
    let chat = chat(single);
    let request = simple("x");
    for _ in 0..3 {
        let call = tokio::time::timeout(Duration::from_millis(100), chat.complete(&request));
        assert!(call.await.is_err());
    }
}

/// Embeds three texts by a server that answers with `data`.
async fn embedded(data: serde_json::Value) -> Result<Vec<Vec<f32>>> {
    let double = Double::start(move |_, _| Ok(Reply::json(json!({"data": data})))).await;
    let providers = providers(NAME, settings(&double.url));
    let embedder = providers.embedder(NAME, "m", None).unwrap();
    Ok(embed_all(embedder.as_ref(), &texts(3), Purpose::Document)
        .await?
        .vectors)
}

#[tokio::test]
async fn vectors_that_do_not_fit_the_texts_are_refused() {
    let item = |index: i64, vector: &[f64]| json!({"index": index, "embedding": vector});
    let plain = json!([{"embedding": [1]}, {"embedding": [2]}, {"embedding": [3]}]);
    assert_eq!(embedded(plain).await.unwrap(), [[1.0], [2.0], [3.0]]);
    for data in [
        json!([]),
        json!([item(0, &[1.0]), item(1, &[1.0])]),
        json!([item(0, &[1.0]), item(1, &[1.0]), item(1, &[1.0])]),
        json!([item(0, &[1.0]), item(1, &[1.0]), item(3, &[1.0])]),
        json!([item(0, &[1.0]), item(1, &[1.0]), item(-1, &[1.0])]),
        json!([item(0, &[1.0]), item(1, &[1.0, 2.0]), item(2, &[1.0])]),
        json!([item(0, &[]), item(1, &[]), item(2, &[])]),
        json!([item(0, &[1e300]), item(1, &[1.0]), item(2, &[1.0])]),
        json!([{"embedding": "AAAA"}, {"embedding": null}, {"embedding": {}}]),
        json!(null),
    ] {
        let error = embedded(data.clone()).await.unwrap_err();
        assert_eq!(error.kind, ProviderErrorKind::BadAnswer, "{data}");
    }
}

#[tokio::test]
async fn a_batch_that_fails_tells_the_cost_of_the_others() {
    let double = Double::start(|asked, _| {
        let mut body = asked.json()?;
        let input = body.take("input")?;
        let input = input.as_array().ok_or("input")?;
        if input.contains(&json!("text 70")) {
            return Ok(Reply::status(400, r#"{"error":"the model is out of sorts"}"#));
        }
        let data: Vec<_> = input.iter().map(|text| json!({"embedding": vector(text, 4)})).collect();
        Ok(Reply::json(json!({"data": data, "usage": {"total_tokens": 5}})))
    })
    .await;
    let providers = providers(NAME, settings(&double.url));
    let embedder = providers.embedder(NAME, "m", None).unwrap();
    let error = embed_all(embedder.as_ref(), &texts(96), Purpose::Document)
        .await
        .unwrap_err();
    assert!(error.message.ends_with("the model is out of sorts"), "{error}");
    assert_eq!((error.usage.calls, error.usage.tokens_in), (3, 10));
}

/// A thousand chunks at 50 ms a request are to take less than a second.
#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_chunks_are_embedded_within_a_second() {
    let double = Double::slow(Duration::from_millis(50), |asked, _| {
        let mut body = asked.json()?;
        let input = body.take("input")?;
        let input = input.as_array().ok_or("input")?;
        let data: Vec<_> = input
            .iter()
            .map(|text| json!({"embedding": vector(text, 16)}))
            .collect();
        Ok(Reply::json(json!({"data": data})))
    })
    .await;
    let providers = providers(NAME, settings(&double.url));
    let embedder = providers.embedder(NAME, "m", None).unwrap();
    let start = Instant::now();
    let embedded = embed_all(embedder.as_ref(), &texts(1_000), Purpose::Document)
        .await
        .unwrap();
    assert_eq!(embedded.vectors.len(), 1_000);
    assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
}
