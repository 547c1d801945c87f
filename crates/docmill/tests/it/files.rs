//! Files that need too much, and the other files beside them.

use serde_json::json;

use crate::kit::client::{file_ids, text};
use crate::kit::documents::{csv, html, pdf, slow_html};
use crate::kit::{File, Server, partition_only};

/// A file that uses too much fails by name, and what stands beside it succeeds.
async fn only_the_greedy_file_fails(settings: &[(&str, &str)], greedy: File, code: &str) {
    let server = Server::with(settings).await;
    let client = server.client();
    let good = File::new("good.html", html("good", 3));
    let job = client
        .run(&partition_only(), &[good.clone(), greedy.clone(), good.clone()])
        .await;
    let id = text(&job["id"]);
    assert_eq!(job["status"], "COMPLETED", "{}", client.details(id).await);
    let failed = client.failed_files(id).await;
    let rows = failed["failed_files"].as_array().expect("rows");
    assert_eq!(rows.len(), 1, "{failed}");
    assert_eq!(
        (&rows[0]["document"], &rows[0]["code"]),
        (&json!(greedy.name), &json!(code)),
        "{failed}"
    );
    for index in [0, 2] {
        assert!(client.text(id, &file_ids(&job)[index]).await.contains("good"));
    }
    assert!(server.children().is_empty());
    // The worker is free for the next job.
    let next = client.run(&partition_only(), &[good]).await;
    assert_eq!(next["status"], "COMPLETED");
}

#[tokio::test]
async fn time_ends_a_file() {
    let settings = [("LIMITS__TASK_TIMEOUT_SECS", "1"), ("ENGINE__WORKERS", "1")];
    only_the_greedy_file_fails(&settings, File::new("slow.html", slow_html()), "task_timeout").await;
}

#[tokio::test]
async fn processor_time_ends_a_file() {
    let settings = [("LIMITS__TASK_CPU_SECS", "1"), ("ENGINE__WORKERS", "1")];
    only_the_greedy_file_fails(&settings, File::new("slow.html", slow_html()), "cpu_limit").await;
}

#[tokio::test]
async fn memory_ends_a_file() {
    let settings = [("LIMITS__TASK_MEMORY_BYTES", "100000000"), ("ENGINE__WORKERS", "1")];
    only_the_greedy_file_fails(&settings, File::new("greedy.html", slow_html()), "memory_limit").await;
}

#[tokio::test]
async fn output_ends_a_file() {
    let settings = [("LIMITS__MAX_OUTPUT_BYTES", "100000")];
    only_the_greedy_file_fails(
        &settings,
        File::new("wordy.html", html("words", 5_000)),
        "output_too_large",
    )
    .await;
}

#[tokio::test]
async fn elements_pages_cells_and_depth_end_a_file() {
    let elements = [("LIMITS__MAX_ELEMENTS", "100")];
    only_the_greedy_file_fails(
        &elements,
        File::new("many.html", html("many", 200)),
        "file_limit_exceeded",
    )
    .await;
    let pages = [("LIMITS__MAX_PAGES", "3")];
    only_the_greedy_file_fails(&pages, File::new("pages.pdf", pdf(&["page"; 4])), "file_limit_exceeded").await;
    let cells = [("LIMITS__MAX_TABLE_CELLS", "1000")];
    only_the_greedy_file_fails(&cells, File::new("cells.csv", csv(1_000)), "file_limit_exceeded").await;
}

#[tokio::test]
async fn empty_and_unreadable_files_fail_with_their_reason() {
    let server = Server::start().await;
    let client = server.client();
    let files = [
        File::new("empty.pdf", Vec::new()),
        File::new("zeroes.bin", vec![0u8; 1_000]),
        File::new("elf.pdf", [&b"\x7fELF\x02\x01\x01"[..], &[0; 500]].concat()),
        File::new("good.html", html("good", 1)),
        File::new("page.docx", pdf(&["A PDF that calls itself a document"])),
    ];
    let job = client.run(&partition_only(), &files).await;
    let id = text(&job["id"]);
    let ids = file_ids(&job);
    let details = client.details(id).await;
    let code = |index: usize| {
        details["files"][index]["error_code"]
            .as_str()
            .unwrap_or("none")
            .to_owned()
    };
    assert_eq!(code(0), "file_empty");
    assert_eq!(code(1), "file_type_unsupported");
    assert_eq!(code(2), "file_type_unsupported");
    assert!(client.text(id, &ids[3]).await.contains("good"));
    assert!(
        client.text(id, &ids[4]).await.contains("calls itself"),
        "the content decides, not the name"
    );
    for row in client.failed_files(id).await["failed_files"].as_array().expect("rows") {
        assert!(text(&row["error"]).len() > 15, "{row}");
    }
}

/// Many jobs, one after the other and side by side: the server stays as large as it was.
#[tokio::test]
async fn memory_does_not_grow_with_the_number_of_jobs() {
    let server = Server::with(&[("LIMITS__MAX_RUNNING_LOCAL_JOBS", "0")]).await;
    let client = server.client();
    let files = vec![File::new("a.html", html("again", 300)); 10];
    let round = async || {
        let mut jobs = Vec::new();
        for _ in 0..4 {
            jobs.push(client.created(&partition_only(), &files).await);
        }
        for job in &jobs {
            let job = client.ended(text(&job["id"])).await;
            assert_eq!(job["status"], "COMPLETED");
        }
    };
    round().await;
    round().await;
    let before = server.resident_kib();
    for _ in 0..3 {
        round().await;
    }
    let after = server.resident_kib();
    assert!(after < before + 24 * 1024, "from {before} to {after} KiB");
    assert!(server.children().is_empty());
}
