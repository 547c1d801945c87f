//! Pages shown to a vision model: what it is asked, what becomes of its answers, what is told of each page.

use std::sync::atomic::Ordering;
use std::time::Duration;

use docmill_testkit::{Asked, Double};
use serde_json::{Value, json};

use crate::chain::output;
use crate::kit::client::{file_ids, text};
use crate::kit::documents::{drawing, html, line_of, pdf, pdf_of};
use crate::kit::models::{self, MODEL_KEY, chat, completion, node};
use crate::kit::{Client, File, Server, partition_node};

/// A partition node that shows every page to the double.
pub(crate) fn reader(more: Value) -> Value {
    let mut settings =
        json!({"is_dynamic": false, "provider": "openai", "model": "gpt-4o", "unique_element_ids": false});
    for (name, value) in more.as_object().expect("an object") {
        settings[name.as_str()] = value.clone();
    }
    node("partition", "vlm", settings)
}

/// Points by which the width of a page tells its number.
const STEP: u32 = 10;

/// A PDF whose pages differ in width: 410 points, 420 points ...
pub(crate) fn book(pages: u32) -> Vec<u8> {
    let page = |number: u32| {
        (
            400 + STEP * number,
            line_of(&format!("The text layer of page {number}.")),
        )
    };
    pdf_of(&(1..=pages).map(page).collect::<Vec<_>>())
}

/// Width and height of a PNG.
fn size(png: &[u8]) -> (u32, u32) {
    let number = |at: usize| u32::from_be_bytes(png[at..at + 4].try_into().expect("four bytes"));
    (number(16), number(20))
}

/// The number of the page of a [`book`] that a question shows.
pub(crate) fn page_of(asked: &Asked) -> Result<u32, String> {
    let question = chat(asked, MODEL_KEY)?;
    let [png] = question.pictures.as_slice() else {
        return Err(format!("{} pictures", question.pictures.len()));
    };
    let (width, height) = size(png);
    if !(1_780..=1_800).contains(&height) {
        return Err(format!("{width} by {height} pixels"));
    }
    let points = (f64::from(width) * 842.0 / f64::from(height)).round() as u32;
    Ok((points.saturating_sub(400) + STEP / 2) / STEP)
}

/// What a good model says of a page of a [`book`].
pub(crate) fn transcript(page: u32) -> String {
    match page {
        2 => "<h1>Figures</h1><table><tr><th>Year</th><th>Sum</th></tr><tr><td>2024</td><td>7</td></tr></table>".into(),
        page => format!("<h1>Chapter {page}</h1><p>Words of page {page}, seen by the model.</p>"),
    }
}

/// A double that reads pages of a [`book`] well.
pub(crate) async fn good_reader(delay: Duration) -> Double {
    Double::slow(delay, |asked, _| Ok(completion(transcript(page_of(asked)?)))).await
}

#[track_caller]
pub(crate) fn assert_completed(job: &Value) {
    assert_eq!(job["status"], "COMPLETED", "{job}");
}

/// What is told of the pages of a job's only file.
pub(crate) async fn pages(client: &Client, job: &Value) -> Vec<Value> {
    let details = client.details(text(&job["id"])).await;
    details["files"][0]["pages"].as_array().cloned().unwrap_or_default()
}

pub(crate) async fn warnings(client: &Client, job: &Value) -> Vec<Value> {
    let details = client.details(text(&job["id"])).await;
    details["files"][0]["warnings"].as_array().cloned().expect("warnings")
}

#[tokio::test]
async fn every_page_is_shown_and_joined_in_order() {
    let double = good_reader(Duration::from_millis(60)).await;
    let priced = [
        ("PROVIDERS__OPENAI__CONCURRENCY", "4"),
        ("PROVIDERS__OPENAI__PRICES__GPT-4O__INPUT_PER_MILLION", "10"),
        ("PROVIDERS__OPENAI__PRICES__GPT-4O__OUTPUT_PER_MILLION", "100"),
    ];
    let server = models::server(&double, &priced).await;
    let client = server.client();
    let chunker = node("chunk", "chunk_by_page", json!({}));
    let request = json!({"job_nodes": [reader(json!({})), chunker]});
    let job = client.run(&request, &[File::new("book.pdf", book(19))]).await;
    assert_completed(&job);
    assert_eq!(double.count(), 19);
    let most = double.seen.most_under_way.load(Ordering::SeqCst);
    assert!((2..=4).contains(&most), "{most} at once");

    let elements = output(&client, &job, 0).await;
    let elements = elements.as_array().expect("a list");
    assert_eq!(elements.len(), 38);
    for (index, pair) in elements.chunks(2).enumerate() {
        let number = index as u32 + 1;
        let (title, body) = (&pair[0], &pair[1]);
        assert_eq!(title["type"], "Title");
        for element in [title, body] {
            let metadata = &element["metadata"];
            assert_eq!(metadata["page_number"], number, "{element}");
            assert_eq!(metadata["partitioner_type"], "vlm_partition");
            assert_eq!(metadata["routing"], "vlm");
            assert_eq!(metadata["filename"], "book.pdf");
            assert_eq!(metadata["filetype"], "application/pdf");
            assert_eq!(metadata["languages"], json!(["eng"]));
            assert!(metadata.get("coordinates").is_none());
        }
        assert_eq!(body["metadata"]["parent_id"], title["element_id"]);
        if number == 2 {
            assert_eq!(body["type"], "Table");
            assert_eq!(body["text"], "Year Sum 2024 7");
            assert_eq!(body["metadata"]["table_extraction_method"], "vlm");
            assert!(
                text(&body["metadata"]["text_as_html"]).contains("<td>2024</td>"),
                "{body}"
            );
        } else {
            assert_eq!(
                text(&body["text"]),
                format!("Words of page {number}, seen by the model.")
            );
        }
    }
    let chunks = output(&client, &job, 1).await;
    assert!(chunks[0]["text"].to_string().contains("Words of page 1"), "{chunks}");

    let details = client.details(text(&job["id"])).await;
    let file = &details["files"][0];
    assert_eq!((&file["pages_done"], &file["pages_total"]), (&json!(19), &json!(19)));
    let pages = file["pages"].as_array().expect("pages");
    assert_eq!(pages.len(), 19);
    for (page, number) in pages.iter().zip(1..) {
        let told = |name: &str| page[name].clone();
        assert_eq!(
            json!([
                told("page_number"),
                told("route"),
                told("reason"),
                told("model"),
                told("calls")
            ]),
            json!([number, "vlm", "asked_for", "openai/gpt-4o", 1])
        );
        assert_eq!(
            json!([told("tokens_in"), told("tokens_out"), told("price")]),
            json!([100, 10, 0.002])
        );
        assert!(page["ms"].as_f64().is_some_and(|ms| ms >= 60.0), "{page}");
    }
    let cost = &details["node_stats"][0]["cost"];
    assert_eq!(
        json!([cost["calls"], cost["tokens_in"], cost["price"]]),
        json!([19, 1_900, 0.038])
    );

    // The same file again costs nothing.
    let again = client.run(&request, &[File::new("book.pdf", book(19))]).await;
    assert_completed(&again);
    assert_eq!(double.count(), 19);
    assert_eq!(output(&client, &again, 0).await, output(&client, &job, 0).await);
    assert_eq!(client.details(text(&again["id"])).await["cost"]["cached"], 19);
}

/// A TIFF file of grey pages without compression.
fn tiff(pages: &[(u32, u32)]) -> Vec<u8> {
    let mut file = b"II\x2a\0\0\0\0\0".to_vec();
    let mut link = 4;
    for (width, height) in pages {
        let pixels = file.len() as u32;
        file.extend((0..width * height).map(|n| if n % 7 == 0 { 0 } else { 255u8 }));
        file.resize(file.len().next_multiple_of(2), 0);
        let directory = file.len() as u32;
        file[link..link + 4].copy_from_slice(&directory.to_le_bytes());
        let entries = [
            (256, *width),
            (257, *height),
            (258, 8),
            (259, 1),
            (262, 1),
            (273, pixels),
            (277, 1),
            (278, *height),
            (279, width * height),
        ];
        file.extend((entries.len() as u16).to_le_bytes());
        for (tag, value) in entries {
            file.extend((tag as u16).to_le_bytes());
            file.extend(4u16.to_le_bytes());
            file.extend(1u32.to_le_bytes());
            file.extend(value.to_le_bytes());
        }
        link = file.len();
        file.extend([0; 4]);
    }
    file
}

#[tokio::test]
async fn pages_of_a_tiff_file_are_shown_as_they_are_and_answered_in_json() {
    let double = Double::start(|asked, number| {
        let question = chat(asked, MODEL_KEY)?;
        if question.schema != "page" {
            return Err(format!("schema `{}`", question.schema));
        }
        let repeated = question.prompt.contains("could not be used");
        // The first answer can't be read, and is asked for again.
        if repeated != (number == 1) {
            return Err("a repetition out of turn".into());
        }
        if number == 0 {
            return Ok(completion("I see a page."));
        }
        let (width, height) = size(&question.pictures[0]);
        let title = json!({"type": "Title", "text": format!("{width} by {height}"), "html": null, "level": 1});
        Ok(completion(json!({"elements": [title]}).to_string()))
    })
    .await;
    let server = models::server(&double, &[("PROVIDERS__OPENAI__CONCURRENCY", "1")]).await;
    let client = server.client();
    let request = json!({"job_nodes": [reader(json!({"output_format": "application/json"}))]});
    let file = File::new("fax.tiff", tiff(&[(300, 200), (64, 90), (120, 40)]));
    let job = client.run(&request, &[file]).await;
    assert_completed(&job);
    let elements = output(&client, &job, 0).await;
    let texts: Vec<_> = elements
        .as_array()
        .expect("a list")
        .iter()
        .map(|e| text(&e["text"]))
        .collect();
    assert_eq!(texts, ["300 by 200", "64 by 90", "120 by 40"]);
    assert_eq!(elements[2]["metadata"]["page_number"], 3);
    assert_eq!(elements[0]["metadata"]["filetype"], "image/tiff");
    let pages = pages(&client, &job).await;
    assert_eq!(
        pages.iter().map(|page| page["calls"].clone()).collect::<Vec<_>>(),
        [2, 1, 1]
    );
    assert_eq!(pages[0]["tokens_in"], 200);
}

#[tokio::test]
async fn what_has_no_pages_is_read_by_the_local_engine() {
    let double = good_reader(Duration::ZERO).await;
    let server = models::server(&double, &[]).await;
    let client = server.client();
    let request = json!({"job_nodes": [reader(json!({"unique_element_ids": true, "exclude_elements": ["Title"]}))]});
    let job = client
        .run(&request, &[File::new("page.html", html("Weather", 3))])
        .await;
    assert_completed(&job);
    assert_eq!(double.count(), 0);
    let elements = output(&client, &job, 0).await;
    assert_eq!(elements.as_array().map(Vec::len), Some(3));
    assert_eq!(text(&elements[0]["element_id"]).len(), 36);
    let warnings = warnings(&client, &job).await;
    assert_eq!(warnings[0]["code"], "page_read_locally", "{warnings:?}");
    assert!(text(&warnings[0]["message"]).contains("text/html"));
    assert!(pages(&client, &job).await.is_empty());
}

/// The second of three pages is drawn and has no text.
fn half_drawn() -> Vec<u8> {
    let text = |number: u32| line_of(&format!("Page {number} of the report says this in plain words."));
    pdf_of(&[(595, text(1)), (420, drawing()), (595, text(3))])
}

#[tokio::test]
async fn only_hard_pages_are_shown_when_routing_is_dynamic() {
    let double = good_reader(Duration::ZERO).await;
    let server = models::server(&double, &[]).await;
    let client = server.client();
    let request = json!({"job_nodes": [reader(json!({"is_dynamic": true, "allow_fast": true}))]});
    let job = client.run(&request, &[File::new("mixed.pdf", half_drawn())]).await;
    assert_completed(&job);
    assert_eq!(double.count(), 1, "the page without text alone");
    let elements = output(&client, &job, 0).await;
    let elements = elements.as_array().expect("a list");
    let told: Vec<_> = elements
        .iter()
        .map(|e| {
            (
                e["metadata"]["page_number"].clone(),
                text(&e["metadata"]["routing"]),
                text(&e["text"]),
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            (json!(1), "fast", "Page 1 of the report says this in plain words."),
            (json!(2), "vlm", "Figures"),
            (json!(2), "vlm", "Year Sum 2024 7"),
            (json!(3), "fast", "Page 3 of the report says this in plain words."),
        ]
    );
    assert_eq!(elements[2]["metadata"]["parent_id"], elements[1]["element_id"]);
    let ids: std::collections::BTreeSet<_> = elements.iter().map(|e| text(&e["element_id"])).collect();
    assert_eq!(ids.len(), 4);
    let pages = pages(&client, &job).await;
    assert_eq!(
        pages.iter().map(|page| text(&page["route"])).collect::<Vec<_>>(),
        ["fast", "vlm", "fast"]
    );
    assert_eq!(
        (&pages[0]["reason"], pages[0].get("model")),
        (&json!("text_layer"), None)
    );
    // Whether there is recognition here or not.
    let reasons = ["no_text_found", "low_confidence", "recognition_missing"];
    assert!(reasons.contains(&text(&pages[1]["reason"])), "{}", pages[1]);
    assert_eq!(pages[1]["tokens_in"], 100);
    assert!(
        warnings(&client, &job).await.is_empty(),
        "what the local engine said of the page is void"
    );

    // Local pages are what they are without a model.
    let local = client
        .run(
            &json!({"job_nodes": [partition_node()]}),
            &[File::new("mixed.pdf", half_drawn())],
        )
        .await;
    let local = client.elements(text(&local["id"]), &file_ids(&local)[0]).await;
    assert_eq!(local[0], elements[0]);

    let easy = client
        .run(&request, &[File::new("easy.pdf", pdf(&["A page.", "Another page."]))])
        .await;
    assert_completed(&easy);
    assert_eq!(double.count(), 1);
    assert_eq!(client.details(text(&easy["id"])).await.get("cost"), None);
}

#[tokio::test]
async fn without_a_provider_dynamic_routing_stays_local_and_the_rest_is_refused() {
    let server = Server::start().await;
    let client = server.client();
    let file = [File::new("a.pdf", pdf(&["The first page.", "The second page."]))];
    let dynamic = json!({"job_nodes": [node("partition", "vlm", json!({"is_dynamic": true, "allow_fast": true}))]});
    let job = client.run(&dynamic, &file).await;
    assert_completed(&job);
    let pages = pages(&client, &job).await;
    assert_eq!(
        pages
            .iter()
            .map(|page| (text(&page["route"]), text(&page["reason"])))
            .collect::<Vec<_>>(),
        [("fast", "text_layer"); 2]
    );
    assert!(pages.iter().all(|page| page["ms"].is_number()), "{pages:?}");
    let refuse = async |settings: Value, part: &str| {
        let request = json!({"job_nodes": [node("partition", "vlm", settings)]});
        let refused = client.create(&request, &file).await.error(422, "chain_invalid");
        assert!(refused.to_string().contains(part), "{refused}");
    };
    refuse(json!({"is_dynamic": false}), "providers.anthropic.api_key").await;
    refuse(
        json!({"is_dynamic": false, "provider": "openai"}),
        "providers.openai.api_key",
    )
    .await;
    refuse(json!({"is_dynamic": true, "allow_fast": false}), "allow_fast").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_without_a_server_shows_pages_too() {
    let double = good_reader(Duration::ZERO).await;
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("in")).expect("a folder");
    std::fs::write(folder.path().join("in/book.pdf"), book(3)).expect("a file");
    let nodes = json!([reader(json!({})), node("chunk", "chunk_by_title", json!({}))]);
    std::fs::write(folder.path().join("nodes.json"), nodes.to_string()).expect("a file");
    let done = crate::chain_nodes::run(folder.path(), Some(&double));
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let bytes = std::fs::read(folder.path().join("out/book.pdf.json")).expect("a document");
    let chunks: Value = serde_json::from_slice(&bytes).expect("JSON");
    assert!(
        chunks.to_string().contains("Words of page 3, seen by the model."),
        "{chunks}"
    );
    assert_eq!(double.count(), 3);
    // Nothing but pages was asked.
    for asked in double.seen.asked.lock().expect("the requests").iter() {
        page_of(asked).expect("a page");
    }
}
