//! The hostile files of the shared corpus, when it is there, through the real server.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use crate::kit::client::{file_ids, text};
use crate::kit::documents::{html, pdf};
use crate::kit::{Client, File, Server, partition_only};

/// What a file of the corpus must come to.
enum Wanted {
    /// Elements that hold these texts.
    Text(&'static [&'static str]),
    /// No elements.
    Nothing,
    /// A failure with one of these codes.
    Failure(&'static [&'static str]),
    /// Elements or a failure, but neither a crash nor a reached limit of the child.
    Either,
}

use Wanted::{Either, Failure, Nothing, Text};

/// The expectations noted beside each file, as code.
const WANTED: [(&str, Wanted); 26] = [
    ("bad_billion_laughs", Either),
    ("bad_csv_ragged_bin", Either),
    ("bad_deep_html", Either),
    (
        "bad_deep_json",
        Failure(&["file_limit_exceeded", "file_corrupt", "file_type_unsupported"]),
    ),
    ("bad_deep_lists", Either),
    ("bad_deep_xml", Either),
    ("bad_docx_missing_document", Failure(&["file_corrupt"])),
    ("bad_docx_truncated", Failure(&["file_corrupt"])),
    ("bad_eml_deep_mime", Either),
    ("bad_empty", Nothing),
    ("bad_empty_pdf", Failure(&["file_empty"])),
    ("bad_encrypted_owner_only", Text(&["Base", "Hello body text."])),
    ("bad_encrypted_user", Failure(&["file_encrypted"])),
    ("bad_html_named_txt", Either),
    ("bad_junk", Failure(&["file_corrupt", "file_type_unsupported"])),
    ("bad_long_line", Either),
    ("bad_pages_cycle", Either),
    ("bad_pdf_named_docx", Either),
    ("bad_png_named_pdf", Either),
    ("bad_truncated_half", Either),
    ("bad_truncated_tail", Text(&["Hello body text."])),
    ("bad_utf8_invalid", Text(&[])),
    ("bad_xlsx_huge_extent", Either),
    ("bad_xxe", Either),
    ("bad_zip_traversal", Text(&[])),
    ("bad_zipbomb_600M", Failure(&["file_limit_exceeded"])),
];

/// Codes that mean that a child process died or a guard outside of the reader had to end it.
const NEVER: [&str; 7] = [
    "task_crashed",
    "task_output_invalid",
    "internal_error",
    "memory_limit",
    "cpu_limit",
    "task_timeout",
    "attempts_exhausted",
];

fn corpus() -> Option<PathBuf> {
    let root = match std::env::var_os("DOCMILL_CORPUS") {
        Some(root) => PathBuf::from(root),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus/docs"),
    };
    root.is_dir().then_some(root)
}

#[tokio::test]
async fn hostile_files_end_as_they_should_and_harm_nothing_beside_them() {
    let Some(corpus) = corpus() else {
        eprintln!("SKIPPED: no corpus at ../shared/corpus/docs (DOCMILL_CORPUS names another place)");
        return;
    };
    let mut names: Vec<String> = fs::read_dir(&corpus)
        .expect("the corpus")
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.starts_with("bad_"))
        .collect();
    names.sort();
    let server = Server::with(&[("ENGINE__WORKERS", "2")]).await;
    let client = server.client();
    let warm_up = vec![File::new("good.html", html("ordinary", 50)); 10];
    client.run(&partition_only(), &warm_up).await;
    let before = server.resident_kib();
    let mut problems = Vec::new();
    // Eight hostile files and two ordinary ones in each job.
    for group in names.chunks(8) {
        let mut files = vec![File::new("good.html", html("ordinary", 3))];
        files.extend(group.iter().map(|name| read(&corpus, name)));
        files.push(File::new("good.pdf", pdf(&["An ordinary page"])));
        let job = client.run(&partition_only(), &files).await;
        problems.extend(check_group(&client, &job, group).await);
    }
    let after = server.resident_kib();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert!(
        after < before + 48 * 1024,
        "the server grew from {before} to {after} KiB"
    );
    assert!(server.children().is_empty());
    assert!(!server.log().contains("panicked"), "{}", server.log());
}

fn read(corpus: &Path, name: &str) -> File {
    let meta: Value =
        serde_json::from_slice(&fs::read(corpus.join(name).join("META.json")).expect("META.json")).expect("JSON");
    let source = text(&meta["source"]);
    let bytes = fs::read(corpus.join(name).join(source)).expect("the source");
    File::new(source.replace("source", name), bytes)
}

async fn check_group(client: &Client, job: &Value, group: &[String]) -> Vec<String> {
    let id = text(&job["id"]);
    let ids = file_ids(job);
    let details = client.details(id).await;
    let mut problems = Vec::new();
    assert_eq!(job["status"], "COMPLETED", "{details}");
    assert!(client.text(id, &ids[0]).await.contains("ordinary"));
    assert!(client.text(id, &ids[ids.len() - 1]).await.contains("An ordinary page"));
    for (name, (file, row)) in group.iter().zip(
        ids[1..]
            .iter()
            .zip(details["files"].as_array().expect("files").iter().skip(1)),
    ) {
        let wanted = WANTED
            .iter()
            .find(|(other, _)| other == name)
            .map_or(&Either, |(_, wanted)| wanted);
        let code = row["error_code"].as_str();
        let took = Duration::from_millis(row["duration_ms"].as_u64().unwrap_or_default());
        eprintln!(
            "{name}: {} in {took:?}, {} attempts",
            code.unwrap_or("read"),
            row["attempts"]
        );
        let verdict = match (wanted, code) {
            (_, Some(code)) if NEVER.contains(&code) => Err(format!("{code}: {}", row["error"])),
            (Failure(codes), Some(code)) if codes.contains(&code) => Ok(()),
            (Failure(codes), other) => Err(format!("{other:?} instead of {codes:?}")),
            (Either, Some(_)) => Ok(()),
            (_, Some(code)) => Err(format!("{code}: {}", row["error"])),
            (wanted, None) => check_text(wanted, client, id, file).await,
        };
        if let Err(problem) = verdict {
            problems.push(format!("{name}: {problem}"));
        }
        if took > Duration::from_secs(60) {
            problems.push(format!("{name} took {took:?}"));
        }
    }
    problems
}

async fn check_text(wanted: &Wanted, client: &Client, job: &str, file: &str) -> Result<(), String> {
    let found = client.text(job, file).await;
    if found.contains("root:x:0:0") {
        return Err("it read /etc/passwd".into());
    }
    match wanted {
        Text(texts) if found.trim().is_empty() => Err(format!("no text, wanted {texts:?}")),
        Text(texts) => match texts.iter().find(|text| !found.contains(**text)) {
            Some(missing) => Err(format!(
                "`{missing}` is not in {:?}",
                found.chars().take(200).collect::<String>()
            )),
            None => Ok(()),
        },
        Nothing if !found.is_empty() => Err(format!("{found:?} instead of nothing")),
        _ => Ok(()),
    }
}
