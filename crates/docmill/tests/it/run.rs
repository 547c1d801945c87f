//! `docmill run`: from a source to a destination without a server.

use std::path::Path;
use std::process::{Command, Output};

use docmill_testkit::{Moto, Postgres};
use serde_json::Value;

use crate::kit::client::text;

fn run(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_docmill"))
        .arg("run")
        .args(args)
        .current_dir(folder)
        .env("SECRET_OF_TEST", "test")
        .output()
        .expect("the program starts")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn elements(path: &Path) -> Vec<Value> {
    serde_json::from_slice(&std::fs::read(path).expect("an output")).expect("JSON")
}

/// A folder with some files to run.
fn files() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir_all(folder.path().join("in/deep")).expect("a folder");
    for (name, bytes) in [
        (
            "in/a.html",
            "<h1>First</h1><p>A paragraph that is long enough to be one.</p>",
        ),
        (
            "in/deep/b.md",
            "# Second\n\nAnother paragraph that is long enough to be one.\n",
        ),
    ] {
        std::fs::write(folder.path().join(name), bytes).expect("a file");
    }
    folder
}

#[test]
fn a_folder_to_a_folder_and_again() {
    let folder = files();
    let first = run(folder.path(), &["--source", "in", "--destination", "out"]);
    assert!(first.status.success(), "{}", stderr(&first));
    assert!(stderr(&first).contains("2 files, 4 elements"), "{}", stderr(&first));
    let path = folder.path().join("out/deep/b.md.json");
    let before = elements(&path);
    assert_eq!(text(&before[0]["text"]), "Second");
    assert_eq!(text(&before[0]["metadata"]["filename"]), "b.md");
    assert!(
        before[0]["metadata"]["data_source"]["version"].is_string(),
        "{before:?}"
    );
    let second = run(folder.path(), &["--source", "in", "--destination", "out"]);
    assert!(second.status.success(), "{}", stderr(&second));
    let ids = |elements: &[Value]| elements.iter().map(|e| e["element_id"].clone()).collect::<Vec<_>>();
    assert_eq!(ids(&before), ids(&elements(&path)));
}

#[test]
fn a_bad_file_is_told_and_the_others_go_on() {
    let folder = files();
    std::fs::write(folder.path().join("in/broken.docx"), b"PK\x03\x04 no archive").expect("a file");
    std::fs::write(
        folder.path().join("chain.json"),
        r#"[{"name": "P", "type": "partition", "subtype": "service_api", "settings": {"strategy": "fast"}},
            {"name": "C", "type": "chunk", "subtype": "chunk_by_title", "settings": {}}]"#,
    )
    .expect("a file");
    let output = run(
        folder.path(),
        &["--source", "in", "--destination", "out", "--nodes", "chain.json"],
    );
    assert_eq!(output.status.code(), Some(1));
    let told = stderr(&output);
    assert!(
        told.contains("error: broken.docx: ") && told.contains("1 failed"),
        "{told}"
    );
    let chunks = elements(&folder.path().join("out/a.html.json"));
    assert_eq!(text(&chunks[0]["type"]), "CompositeElement");
}

#[test]
fn what_can_not_work_is_said_before_anything_is_done() {
    let folder = files();
    std::fs::write(
        folder.path().join("chain.json"),
        r#"[{"name": "P", "type": "partition"}]"#,
    )
    .expect("a file");
    for (args, said) in [
        (&["--source", "ftp://x/y", "--destination", "out"][..], "ftp://x/y"),
        (&["--source", "missing", "--destination", "out"], "missing"),
        (&["--source", "in", "--destination", "postgres"], "host"),
        // Known names that are not there must not become folders.
        (
            &["--source", "in", "--destination", "pinecone"],
            "`pinecone` is not available as a destination",
        ),
        (
            &["--source", "mongodb", "--destination", "out"],
            "`mongodb` is not available as a source",
        ),
        (
            &["--source", "qdrant-cloud", "--destination", "out"],
            "available are local",
        ),
        // What is written must not be read as further files.
        (&["--source", "in", "--destination", "in"], "lies in the source"),
        (
            &["--source", "in", "--destination", "./in/deep/out"],
            "lies in the source",
        ),
        (
            &["--source", "in", "--destination", "out", "--nodes", "chain.json"],
            "chain.json: 0.subtype: ",
        ),
        (
            &[
                "--source",
                "in",
                "--destination",
                "out",
                "--source-option",
                "recursive=perhaps",
            ],
            "recursive",
        ),
        (
            &["--source", "in", "--destination", "out", "--source-option", "depth=1"],
            "depth",
        ),
        (
            &["--source", "in", "--destination", "out", "--nodes", "none.json"],
            "none.json",
        ),
        (
            &[
                "--source",
                "s3://b",
                "--destination",
                "out",
                "--source-option",
                "key=env:NOT_THERE",
            ],
            "NOT_THERE",
        ),
    ] {
        let output = run(folder.path(), args);
        assert!(!output.status.success(), "{args:?}");
        assert!(stderr(&output).contains(said), "{args:?}: {}", stderr(&output));
    }
    let left: Vec<_> = std::fs::read_dir(folder.path())
        .expect("the folder")
        .flatten()
        .collect();
    assert_eq!(left.len(), 2, "{left:?}");
    assert!(!folder.path().join("in/a.html.json").exists());
}

#[test]
fn the_help_says_what_may_be_written() {
    let output = run(Path::new("."), &["--help"]);
    assert!(output.status.success());
    let help = String::from_utf8_lossy(&output.stdout).into_owned();
    for said in [
        "s3://bucket/prefix",
        "env:NAME",
        "exit code",
        "postgres as destination: host*",
        "qdrant-cloud as destination: url*",
    ] {
        assert!(help.contains(said), "{said}: {help}");
    }
    assert_eq!(run(Path::new("."), &["--source", "in"]).status.code(), Some(2));
}

#[test]
fn a_folder_beside_or_above_the_source_may_take_the_outputs() {
    let folder = files();
    for (source, destination, more) in [
        ("in/deep", "in", None),
        ("in", "in-out", None),
        ("in", "in/out", Some("recursive=false")),
        ("in/deep", "./pinecone", None),
    ] {
        let mut args = vec!["--source", source, "--destination", destination];
        args.extend(more.iter().flat_map(|option| ["--source-option", option]));
        let output = run(folder.path(), &args);
        assert!(output.status.success(), "{args:?}: {}", stderr(&output));
    }
    assert!(folder.path().join("pinecone/b.md.json").exists());
}

#[test]
fn a_bucket_to_a_table() {
    let (moto, postgres) = (Moto::start(), Postgres::start());
    let folder = files();
    let endpoint = format!("endpoint_url={}", moto.endpoint());
    let bucket = [
        "--source-option",
        "key=test",
        "--source-option",
        "secret=env:SECRET_OF_TEST",
    ];
    // Filled by the program itself: any source, any destination.
    let made = Command::new("python3")
        .args([
            "-c",
            "import sys, urllib.request as u; u.urlopen(u.Request(sys.argv[1], method='PUT'))",
        ])
        .arg(format!("{}/shelf", moto.endpoint()))
        .status()
        .expect("python3 runs");
    assert!(made.success());
    let fill = run(
        folder.path(),
        &[
            "--source",
            "in",
            "--destination",
            "s3://shelf/out",
            "--destination-option",
            &endpoint,
            "--destination-option",
            "key=test",
            "--destination-option",
            "secret=env:SECRET_OF_TEST",
        ],
    );
    assert!(fill.status.success(), "{}", stderr(&fill));
    let port = format!("port={}", postgres.port());
    let password = format!("password={}", Postgres::PASSWORD);
    let mut args = vec!["--source", "s3://shelf/out", "--source-option", &endpoint];
    args.extend(bucket);
    args.extend(["--destination", "postgres"]);
    for option in [
        "host=127.0.0.1",
        &port,
        "database=postgres",
        "username=postgres",
        &password,
        "table_name=elements",
        "batch_size=10",
        "create_table=true",
    ] {
        args.extend(["--destination-option", option]);
    }
    for _ in 0..2 {
        let output = run(folder.path(), &args);
        assert!(output.status.success(), "{}", stderr(&output));
    }
    // What came out of the first run are JSON documents of elements, which are read as such.
    assert_eq!(
        postgres.sql("SELECT count(*), count(DISTINCT record_id) FROM elements WHERE text <> ''"),
        "4|2"
    );
}
