//! Pages whose text is recognised, from the request to the job's details.

use serde_json::json;

use crate::kit::client::text;
use crate::kit::documents::{html, pdf};
use crate::kit::models::node;
use crate::kit::{File, Server};

#[tokio::test]
async fn every_page_is_recognised_where_that_is_asked_for() {
    let server = Server::with(&[]).await;
    let client = server.client();
    let settings = json!({"strategy": "ocr_only", "ocr_languages": ["eng"], "coordinates": true});
    let request = json!({"job_nodes": [node("partition", "service_api", settings)]});
    let files = [
        File::new("report.pdf", pdf(&["The yearly report", "The second page"])),
        File::new("page.html", html("Notes", 1)),
    ];
    let job = client.run(&request, &files).await;
    let id = text(&job["id"]);
    let details = client.details(id).await;
    assert_eq!(job["status"], "COMPLETED", "{details}");

    let file = &details["files"][0];
    let pages = file["pages"].as_array().expect("pages");
    assert_eq!(pages.len(), 2, "{file}");
    for (page, number) in pages.iter().zip(1..) {
        assert_eq!(
            (&page["page_number"], &page["route"], &page["reason"]),
            (&json!(number), &json!("ocr_only"), &json!("asked_for"))
        );
        assert!(
            page["confidence"].as_f64().is_some_and(|confidence| confidence > 70.0),
            "{page}"
        );
        assert_eq!(page["languages"], json!(["eng"]));
    }
    assert_eq!(details["files"][1].get("pages"), None, "a web page has none");

    let elements = crate::chain::output(&client, &job, 0).await;
    let elements = elements.as_array().expect("elements");
    let texts: Vec<_> = elements.iter().map(|element| text(&element["text"])).collect();
    assert_eq!(texts, ["The yearly report", "The second page"]);
    let metadata = &elements[1]["metadata"];
    assert_eq!(
        (&metadata["routing"], &metadata["page_number"]),
        (&json!("ocr_only"), &json!(2))
    );
    assert_eq!(metadata["ocr_words"].as_array().map(Vec::len), Some(3), "{metadata}");
    assert!(
        metadata["ocr_confidence"]
            .as_f64()
            .is_some_and(|confidence| confidence > 70.0)
    );
}
