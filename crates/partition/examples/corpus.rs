//! Partitions corpus documents in this process: `corpus OUT DOCS_DIR [SUBSTRING...]` writes
//! `OUT/<name>.json` for every `DOCS_DIR/<name>/source.*` whose name or extension contains a substring.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use docmill_model::limits::ParseLimits;
use docmill_model::settings::PartitionOptions;
use docmill_ocr::Ocr;
use docmill_partition::{Input, Tool, Tools, partition_with};
use docmill_pdfium::Library;

fn main() {
    let mut args = std::env::args().skip(1);
    let out = PathBuf::from(args.next().expect("OUT"));
    let docs = PathBuf::from(args.next().expect("DOCS_DIR"));
    let wanted: Vec<String> = args.collect();
    let ocr = Ocr::open(None);
    // The second engine for what docmill's own can't read, as the setting of the same name.
    let pdfium = std::env::var_os("DOCMILL_PDFIUM__LIBRARY").map(|library| Library::load(library.as_ref()).unwrap());
    let reason = ocr.as_ref().err().map(ToString::to_string).unwrap_or_default();
    let tools = Tools {
        recognition: match &ocr {
            Ok(ocr) => Tool::Ready(ocr),
            Err(_) => Tool::Absent(&reason),
        },
        pdfium: pdfium.as_ref().map(Tool::Ready),
        heif: None,
        threads: std::env::var("THREADS").ok().and_then(|n| n.parse().ok()).unwrap_or(2),
    };
    std::fs::create_dir_all(&out).unwrap();
    let mut names: Vec<_> = std::fs::read_dir(&docs).unwrap().map(|e| e.unwrap().path()).collect();
    names.sort();
    for folder in names {
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        let Some(source) = std::fs::read_dir(&folder)
            .unwrap()
            .map(|e| e.unwrap().path())
            .find(|p| p.file_stem().is_some_and(|s| s == "source"))
        else {
            continue;
        };
        let filename = source.file_name().unwrap().to_string_lossy().into_owned();
        if !wanted.is_empty() && !wanted.iter().any(|w| name.contains(w) || filename.ends_with(w)) {
            continue;
        }
        let input = Input {
            bytes: Arc::new(std::fs::read(&source).unwrap()),
            filename: Some(filename),
            content_type: None,
        };
        let start = Instant::now();
        let result = partition_with(
            &input,
            &PartitionOptions {
                coordinates: true,
                infer_table_structure: true,
                // The corpus holds the text of slides alone.
                include_slide_notes: false,
                languages: std::env::var("LANGS")
                    .map(|l| l.split(',').map(str::to_owned).collect())
                    .unwrap_or_default(),
                ..Default::default()
            },
            &ParseLimits::default(),
            &tools,
            &mut |_| {},
        );
        let ms = start.elapsed().as_secs_f64() * 1e3;
        match result {
            Ok(document) => {
                println!(
                    "{name:<46} {ms:8.1} ms {:5} elements {} warnings",
                    document.elements.len(),
                    document.warnings.len()
                );
                std::fs::write(
                    out.join(format!("{name}.json")),
                    serde_json::to_vec_pretty(&document.elements).unwrap(),
                )
                .unwrap();
            }
            Err(error) => println!("{name:<46} {ms:8.1} ms ERROR {}: {error}", error.code()),
        }
    }
}
