//! `docmill partition`: the same engine without a server.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::kit::documents::{html, pdf, spoilt_pdf};

fn partition(folder: &Path, args: &[&str], env: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_docmill"));
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("DOCMILL_")) {
        command.env_remove(name);
    }
    command
        .current_dir(folder)
        .arg("partition")
        .args(args)
        .envs(env.iter().copied())
        .output()
        .expect("the program starts")
}

fn parsed(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
}

#[test]
fn one_file_is_an_array_of_elements_and_several_are_arrays_in_order() {
    let folder = tempfile::tempdir().expect("a directory");
    std::fs::write(folder.path().join("a.html"), html("alpha", 2)).expect("written");
    std::fs::write(folder.path().join("b.pdf"), pdf(&["beta"])).expect("written");
    let one = partition(folder.path(), &["a.html"], &[]);
    assert!(one.status.success(), "{one:?}");
    assert_eq!(parsed(&one)[0]["text"], "alpha");
    let both = partition(folder.path(), &["a.html", "b.pdf"], &[]);
    assert_eq!(parsed(&both)[0][0]["text"], "alpha");
    assert_eq!(parsed(&both)[1][0]["text"], "beta");
    // The documented variable for passwords is no unknown setting.
    let password = partition(folder.path(), &["b.pdf"], &[("DOCMILL_PASSWORD", "secret")]);
    assert!(password.status.success(), "{password:?}");
    let unknown = partition(folder.path(), &["b.pdf"], &[("DOCMILL_LIMITS__MAX_PAGEZ", "1")]);
    assert!(
        !unknown.status.success() && String::from_utf8_lossy(&unknown.stderr).contains("max_pagez"),
        "{unknown:?}"
    );
}

#[test]
fn a_file_that_fails_is_named_and_the_others_are_written() {
    let folder = tempfile::tempdir().expect("a directory");
    std::fs::write(folder.path().join("good.html"), html("good", 1)).expect("written");
    std::fs::write(folder.path().join("bad.pdf"), "%PDF-1.7 nothing").expect("written");
    let output = partition(
        folder.path(),
        &["good.html", "bad.pdf", "missing.html", "--out", "out"],
        &[],
    );
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("bad.pdf") && said.contains("missing.html") && !said.contains("good.html"),
        "{said}"
    );
    let written = std::fs::read_dir(folder.path().join("out"))
        .expect("the folder")
        .count();
    assert_eq!(written, 1);
    let good = std::fs::read(folder.path().join("out/good.html.json")).expect("the output");
    assert!(String::from_utf8_lossy(&good).contains("\"good\""));
}

#[test]
fn chunks_know_where_they_came_from_without_coordinates_being_asked_for() {
    let folder = tempfile::tempdir().expect("a directory");
    std::fs::write(folder.path().join("a.pdf"), pdf(&["first page", "second page"])).expect("written");
    let elements = parsed(&partition(folder.path(), &["a.pdf"], &[]));
    assert!(elements[0]["metadata"].get("coordinates").is_none(), "{elements}");
    let chunks = parsed(&partition(folder.path(), &["a.pdf", "--chunk", "by_character"], &[]));
    let metadata = &chunks[0]["metadata"];
    let spans = metadata["page_spans"].as_array().expect("spans");
    assert_eq!(
        spans.iter().map(|span| span["page_number"].clone()).collect::<Vec<_>>(),
        [1, 2],
        "{chunks}"
    );
    for span in spans {
        let bbox: Vec<f64> = span["bbox"]
            .as_array()
            .expect("a box")
            .iter()
            .filter_map(Value::as_f64)
            .collect();
        assert!(bbox.len() == 4 && bbox[0] < bbox[2] && bbox[1] < bbox[3], "{chunks}");
    }
    let ids: Vec<&Value> = elements
        .as_array()
        .expect("elements")
        .iter()
        .map(|e| &e["element_id"])
        .collect();
    assert_eq!(
        metadata["source_element_ids"]
            .as_array()
            .expect("ids")
            .iter()
            .collect::<Vec<_>>(),
        ids
    );
}

#[test]
fn what_was_found_can_be_looked_at() {
    let folder = tempfile::tempdir().expect("a directory");
    std::fs::write(folder.path().join("b.pdf"), pdf(&["beta & gamma", "delta"])).expect("written");
    std::fs::write(folder.path().join("a.html"), html("alpha", 1)).expect("written");
    let output = partition(folder.path(), &["b.pdf", "a.html", "--inspect", "shown"], &[]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(parsed(&output)[0][1]["text"], "delta");
    let shown = std::fs::read_to_string(folder.path().join("shown/b.pdf.html")).expect("written");
    assert_eq!(shown.matches("<img ").count(), 2, "a picture of each page");
    assert!(shown.contains("beta &amp; gamma</li>") && shown.contains("<svg viewBox="));
    assert!(!folder.path().join("shown/a.html.html").exists());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("a.html: its format has no pages"), "{said}");
}

#[test]
fn the_second_engine_reads_what_the_first_cannot_when_it_is_set() {
    let folder = tempfile::tempdir().expect("a directory");
    std::fs::write(folder.path().join("a.pdf"), spoilt_pdf("Half of it is lost")).expect("written");
    let without = partition(folder.path(), &["a.pdf"], &[]);
    assert_eq!(parsed(&without), serde_json::json!([]));
    assert!(
        String::from_utf8_lossy(&without.stderr).contains("page 1 was skipped"),
        "{without:?}"
    );

    let library = docmill_testkit::pdfium();
    let set = [("DOCMILL_PDFIUM__LIBRARY", library.to_str().expect("a path"))];
    let with = partition(folder.path(), &["a.pdf"], &set);
    assert_eq!(parsed(&with)[0]["text"], "Half of it is lost", "{with:?}");
    assert!(with.stderr.is_empty(), "{with:?}");

    // One that can't be loaded changes nothing but what is said of it.
    let wrong = partition(folder.path(), &["a.pdf"], &[("DOCMILL_PDFIUM__LIBRARY", "/nowhere.so")]);
    assert_eq!(parsed(&wrong), serde_json::json!([]));
    std::fs::write(folder.path().join("bad.pdf"), "%PDF-1.7 nothing").expect("written");
    let refused = partition(
        folder.path(),
        &["bad.pdf"],
        &[("DOCMILL_PDFIUM__LIBRARY", "/nowhere.so")],
    );
    assert!(
        String::from_utf8_lossy(&refused.stderr).contains("PDFium could not be asked: the library can't be loaded"),
        "{refused:?}"
    );
}

#[test]
fn pictures_of_telephones_are_read_when_their_decoder_is_set() {
    let folder = tempfile::tempdir().expect("a directory");
    let picture = include_bytes!("../../../heif/fixtures/two_pages.heic");
    std::fs::write(folder.path().join("IMG_0001.HEIC"), picture).expect("written");
    let without = partition(folder.path(), &["IMG_0001.HEIC"], &[]);
    let said = String::from_utf8_lossy(&without.stderr).into_owned();
    assert!(
        said.contains("no setting `heif.library` names it") && said.contains("file_type_unsupported"),
        "{said}"
    );

    let library = docmill_testkit::heif();
    let set = [("DOCMILL_HEIF__LIBRARY", library.to_str().expect("a path"))];
    let with = partition(folder.path(), &["IMG_0001.HEIC"], &set);
    let elements = parsed(&with);
    let texts: Vec<_> = elements
        .as_array()
        .into_iter()
        .flatten()
        .map(|e| e["text"].clone())
        .collect();
    assert!(
        texts.iter().any(|text| text == "The second picture of the file"),
        "{with:?}"
    );
}
