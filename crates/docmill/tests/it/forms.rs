//! Forms as no decent client sends them.

use serde_json::json;

use crate::kit::client::{file_ids, text};
use crate::kit::documents::html;
use crate::kit::raw::{self, END, FORM, Raw, create_head, file, part, request_data};
use crate::kit::{File, Server, partition_only};

fn data() -> Vec<u8> {
    request_data(&partition_only().to_string())
}

#[tokio::test]
async fn content_types_that_are_no_form_are_refused() {
    let server = Server::start().await;
    let body = [data(), END.to_vec()].concat();
    for content_type in [
        "application/json",
        "text/plain",
        "multipart/mixed; boundary=frontier",
        "",
        "multipart/form-datax",
    ] {
        raw::create(&server, content_type, &body)
            .await
            .error(415, "unsupported_media_type");
    }
    for content_type in [
        "multipart/form-data",
        "multipart/form-data; boundary=",
        "multipart/form-data; charset=utf-8",
    ] {
        raw::create(&server, content_type, &body)
            .await
            .error(400, "request_malformed");
    }
    let answer = raw::create(&server, "Multipart/Form-Data; BOUNDARY=\"frontier\"; charset=x", &body).await;
    assert_eq!(answer.status, 200, "{answer:?}");
}

#[tokio::test]
async fn broken_forms_are_refused_and_leave_nothing() {
    let server = Server::start().await;
    let page = html("broken", 1);
    let nested = part(
        b"Content-Disposition: form-data; name=\"input_files\"\r\nContent-Type: multipart/mixed; boundary=inner",
        b"--inner\r\nContent-Disposition: file; filename=\"a.txt\"\r\n\r\nx\r\n--inner--",
    );
    let many_headers: String = (0..200).map(|n| format!("\r\nX-{n}: y")).collect();
    let cases: Vec<(&str, Vec<u8>, u16)> = vec![
        ("no end", [data(), file(b"a.html", &page)].concat(), 400),
        (
            "the wrong boundary",
            [&b"--other\r\n"[..], &data(), b"--other--\r\n"].concat(),
            400,
        ),
        ("nothing at all", Vec::new(), 400),
        ("not a form", b"hello".to_vec(), 400),
        ("cut inside a header", b"--frontier\r\nContent-Dispo".to_vec(), 400),
        (
            "a header that is none",
            [part(b"Content-Disposition form-data", b"x"), END.to_vec()].concat(),
            400,
        ),
        (
            "200 headers",
            [part(many_headers.trim().as_bytes(), b"x"), END.to_vec()].concat(),
            400,
        ),
        ("no request_data", [file(b"a.html", &page), END.to_vec()].concat(), 422),
        (
            "a file without a name",
            [
                data(),
                part(b"Content-Disposition: form-data; name=\"input_files\"", b"x"),
                END.to_vec(),
            ]
            .concat(),
            422,
        ),
        ("a nested form", [data(), nested, END.to_vec()].concat(), 422),
        ("request_data twice", [data(), data(), END.to_vec()].concat(), 422),
        (
            "request_data that is not UTF-8",
            [
                part(
                    b"Content-Disposition: form-data; name=\"request_data\"",
                    b"{\"a\": \"\xff\"}",
                ),
                END.to_vec(),
            ]
            .concat(),
            422,
        ),
        (
            "a file before a broken part",
            [
                file(b"a.html", &page),
                b"--frontier\r\n\xff\xff\r\n\r\n".to_vec(),
                END.to_vec(),
            ]
            .concat(),
            400,
        ),
    ];
    for (what, body, status) in cases {
        let answer = raw::create(&server, FORM, &body).await;
        assert_eq!(
            answer.status,
            status,
            "{what}: {}",
            String::from_utf8_lossy(&answer.body)
        );
        assert!(answer.json()["code"].is_string(), "{what}");
    }
    let left = server.files_below("blobs/in");
    assert!(left.is_empty(), "{left:?}");
    assert_eq!(server.client().get("/jobs").await.ok(), json!([]));
}

#[tokio::test]
async fn a_request_cut_off_in_the_middle_leaves_the_server_as_it_was() {
    let server = Server::start().await;
    let client = server.client();
    for _ in 0..20 {
        let mut raw = Raw::connect(&server).await;
        raw.send(create_head(FORM, Some(10_000_000)).as_bytes()).await;
        raw.send(&data()).await;
        raw.send(&file(b"half.html", &vec![b'x'; 100_000])[..90_000]).await;
        drop(raw);
    }
    assert_eq!(client.get("/jobs").await.ok(), json!([]));
    let job = client
        .run(&partition_only(), &[File::new("a.html", html("whole", 1))])
        .await;
    assert_eq!(job["status"], "COMPLETED");
    let left = server.files_below("blobs/in");
    assert_eq!(left.len(), 1, "{left:?}");
}

#[tokio::test]
async fn ten_thousand_parts_are_too_many_of_any_kind() {
    let server = Server::start().await;
    let other = part(b"Content-Disposition: form-data; name=\"x\"", b"1").repeat(10_000);
    let nameless = part(b"X: y", b"1").repeat(10_000);
    let files = file(b"a.txt", b"x").repeat(10_000);
    let empty = part(
        b"Content-Disposition: form-data; name=\"input_files\"; filename=\"\"",
        b"",
    )
    .repeat(10_000);
    for (what, parts, code) in [
        ("unknown fields", other, "request_too_large"),
        ("fields without a name", nameless, "request_too_large"),
        ("files", files, "too_many_files"),
        ("empty file fields", empty, "request_too_large"),
    ] {
        let answer = raw::create(&server, FORM, &[data(), parts, END.to_vec()].concat()).await;
        assert_eq!(answer.json()["code"], code, "{what}");
    }
    assert!(server.files_below("blobs/in").is_empty());
}

/// A part's head, what comes before the first part, a field of text: none of them may fill the memory.
#[tokio::test]
async fn endless_heads_and_fields_are_cut_and_cost_no_memory() {
    let server = Server::start().await;
    server
        .client()
        .run(&partition_only(), &[File::new("warm-up.html", html("w", 1))])
        .await;
    let head = b"--frontier\r\nContent-Disposition: form-data; name=\"input_files\"; filename=\"".to_vec();
    let field = b"--frontier\r\nContent-Disposition: form-data; name=\"request_data\"\r\n\r\n".to_vec();
    let nameless = b"--frontier\r\nContent-Disposition: form-data; name=\"input_files\"\r\n\r\n".to_vec();
    for (what, start) in [
        ("a part's head", head),
        ("a preamble", b"x".to_vec()),
        ("request_data", field),
        ("a nameless file", nameless),
    ] {
        let before = server.resident_kib();
        let mut raw = Raw::connect(&server).await;
        raw.send(create_head(FORM, Some(usize::MAX / 4)).as_bytes()).await;
        raw.send(&start).await;
        let piece = vec![b'y'; 1 << 18];
        let (mut sent, mut peak) = (0u64, 0);
        while raw.send(&piece).await {
            sent += 1;
            peak = peak.max(server.resident_kib());
            assert!(sent < 4_096, "{what}: the server takes everything");
        }
        assert!(peak < before + 40 * 1024, "{what}: from {before} to {peak} KiB");
    }
    let small = [
        data(),
        b"--frontier\r\nContent-Disposition: form-data; name=\"input_files\"; filename=\"".to_vec(),
        vec![b'y'; 5 << 20],
        b"\"\r\n\r\nx\r\n".to_vec(),
        END.to_vec(),
    ]
    .concat();
    raw::create(&server, FORM, &small).await.error(413, "request_too_large");
    let field = request_data(&format!("\"{}\"", "y".repeat(2 << 20)));
    raw::create(&server, FORM, &[field, END.to_vec()].concat())
        .await
        .error(413, "request_too_large");
}

#[tokio::test]
async fn what_surrounds_the_parts_is_ignored() {
    let server = Server::start().await;
    let client = server.client();
    let page = html("between", 1);
    let body = [
        b"This is a message with several parts.\r\n".to_vec(),
        part(b"Content-Disposition: form-data; name=\"comment\"", b"hello"),
        file(b"a.html", &page),
        data(),
        END.to_vec(),
        b"and an epilogue".to_vec(),
    ]
    .concat();
    let answer = raw::create(&server, FORM, &body).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let job = client.ended(text(&answer.json()["id"])).await;
    assert!(
        client
            .text(text(&job["id"]), &file_ids(&job)[0])
            .await
            .contains("between")
    );
}

/// Bytes that look like a boundary inside a file stay the file's.
#[tokio::test]
async fn a_file_comes_out_as_it_went_in() {
    let server = Server::start().await;
    let client = server.client();
    let mut tricky = Vec::new();
    for n in 0..3_000u32 {
        tricky.extend_from_slice(b"line\r\n--frontie\r\n--\r\r\n\n--frontie");
        tricky.extend_from_slice(&n.to_le_bytes());
    }
    let body = [data(), file(b"tricky.txt", &tricky), END.to_vec()].concat();
    // In pieces of awkward sizes, so that boundaries fall everywhere.
    for size in [1_023, 4_099, 65_537] {
        let mut raw = Raw::connect(&server).await;
        raw.send(create_head(FORM, Some(body.len())).as_bytes()).await;
        for piece in body.chunks(size) {
            raw.send(piece).await;
        }
        let answer = raw.answer().await.expect("an answer");
        let id = file_ids(&answer.json()).remove(0);
        let stored = server
            .files_below("blobs/in")
            .into_iter()
            .find(|path| path.ends_with(&id))
            .expect("the upload");
        assert_eq!(std::fs::read(stored).expect("readable"), tricky);
        client.ended(text(&answer.json()["id"])).await;
    }
}
