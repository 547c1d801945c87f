use std::io::Write;

use docmill_model::limits::ParseLimits;
use proptest::prelude::*;

use super::testing::{mutate, rels, zip};
use super::*;

fn limits() -> ParseLimits {
    ParseLimits::default()
}

#[test]
fn parts_are_found_whatever_the_case_and_slashes() {
    let bytes = zip(&[("Word\\Document.xml", "<a/>")]);
    let mut package = Package::open(&bytes, "DOCX", &limits()).unwrap();
    assert!(package.xml("/word/document.xml").unwrap().is_some());
    assert!(package.xml("word/other.xml").unwrap().is_none());
}

#[test]
fn relationship_targets_are_resolved() {
    assert_eq!(resolve("ppt/slides", "../media/a.png"), "ppt/media/a.png");
    assert_eq!(resolve("ppt", "/xl/b.xml"), "xl/b.xml");
    assert_eq!(resolve("a", "../../../c.xml"), "c.xml");
    let rels = rels(&[
        ("r1", "hyperlink", "http://x.org/a?b"),
        ("r2", "slide", "slides/s1.xml"),
    ]);
    let bytes = zip(&[("ppt/_rels/p.xml.rels", &rels)]);
    let mut package = Package::open(&bytes, "PPTX", &limits()).unwrap();
    let rels = package.relationships("ppt/p.xml").unwrap();
    assert!(rels.get("r1").unwrap().external && rels.part("r1").is_none());
    assert_eq!(rels.part("r2"), Some("ppt/slides/s1.xml"));
    assert_eq!(rels.first("slide"), Some("ppt/slides/s1.xml"));
}

#[test]
fn the_main_part_is_found_by_relationship_content_type_or_name() {
    let main = |parts: &[(&str, &str)]| {
        let bytes = zip(parts);
        Package::open(&bytes, "DOCX", &limits())
            .unwrap()
            .main_part("word/document.xml")
    };
    let rels = rels(&[("r", "officeDocument", "word/doc2.xml")]);
    assert_eq!(
        main(&[("_rels/.rels", &rels), ("word/doc2.xml", "<a/>")]).unwrap(),
        "word/doc2.xml"
    );
    let types = r#"<Types><Override PartName="/w/d.xml" ContentType="application/vnd.x.main+xml"/></Types>"#;
    assert_eq!(
        main(&[("[Content_Types].xml", types), ("w/d.xml", "<a/>")]).unwrap(),
        "w/d.xml"
    );
    assert_eq!(main(&[("word/document.xml", "<a/>")]).unwrap(), "word/document.xml");
    let error = main(&[("_rels/.rels", &rels), ("word/styles.xml", "<a/>")]).unwrap_err();
    assert!(matches!(error, PartitionError::Corrupt { .. }), "{error}");
}

#[test]
fn inflated_bytes_are_counted_over_all_parts() {
    let part = format!("<a>{}</a>", "x".repeat(600));
    let bytes = zip(&[("a.xml", &part), ("b.xml", &part)]);
    let limits = ParseLimits {
        max_expanded_bytes: 1000,
        ..limits()
    };
    let mut package = Package::open(&bytes, "DOCX", &limits).unwrap();
    assert!(package.text("a.xml").unwrap().is_some());
    let error = package.text("b.xml").unwrap_err();
    assert!(
        matches!(
            error,
            PartitionError::Limit {
                setting: "max_expanded_bytes",
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn a_header_that_understates_the_size_does_not_help() {
    let mut bytes = zip(&[("a.xml", &"x".repeat(100_000))]);
    // Local header at 22, central header: the uncompressed size stands 24 bytes after its signature.
    let central = bytes.windows(4).rposition(|w| w == b"PK\x01\x02").unwrap();
    bytes[22..26].copy_from_slice(&10u32.to_le_bytes());
    bytes[central + 24..central + 28].copy_from_slice(&10u32.to_le_bytes());
    let limits = ParseLimits {
        max_expanded_bytes: 1000,
        ..limits()
    };
    let result = Package::open(&bytes, "DOCX", &limits).and_then(|mut p| p.text("a.xml"));
    assert!(result.is_err(), "{result:?}");
}

#[test]
fn too_many_members_are_refused_before_they_are_indexed() {
    let names: Vec<String> = (0..30).map(|i| format!("p{i}")).collect();
    let parts: Vec<(&str, &str)> = names.iter().map(|n| (n.as_str(), "")).collect();
    let bytes = zip(&parts);
    assert_eq!(declared_entries(&bytes), 30);
    let limits = ParseLimits {
        max_archive_entries: 29,
        ..limits()
    };
    let error = Package::open(&bytes, "DOCX", &limits).err().unwrap();
    assert!(matches!(
        error,
        PartitionError::Limit {
            setting: "max_archive_entries",
            ..
        }
    ));
}

#[test]
fn containers_that_are_no_zip_are_told_apart() {
    let open = |bytes: &[u8]| Package::open(bytes, "DOCX", &limits()).err().unwrap();
    let mut ole = OLE_MAGIC.to_vec();
    ole.extend([0; 100]);
    assert!(matches!(open(&ole), PartitionError::Corrupt { .. }));
    ole.extend("EncryptedPackage".encode_utf16().flat_map(u16::to_le_bytes));
    assert_eq!(open(&ole), PartitionError::Encrypted("DOCX"));
    assert_eq!(open(b""), PartitionError::Empty("DOCX"));
    assert!(matches!(open(b"PK\x03\x04 cut"), PartitionError::Corrupt { .. }));
}

#[test]
fn xml_is_bounded_and_has_no_entities_or_dtd() {
    let parse = |text: &str, depth| xml::parse(text, "DOCX", "x.xml", depth);
    let deep = "<a>".repeat(20) + &"</a>".repeat(20);
    assert!(parse(&deep, 20).is_ok());
    assert!(matches!(
        parse(&deep, 19),
        Err(PartitionError::Limit {
            setting: "max_depth",
            ..
        })
    ));
    assert!(parse("<!DOCTYPE a [<!ENTITY e \"x\">]><a>&e;</a>", 9).is_err());
    assert!(parse("<a>&e;</a>", 9).is_err());
    assert!(parse("<a><b></a>", 9).is_err());
    assert!(parse("<a>", 9).is_err());
    assert!(parse("", 9).is_err());
    let root = parse("<a k='1&lt;2'>x &amp; &#x41;<![CDATA[<]]></a>", 9).unwrap();
    assert_eq!((root.text().as_str(), root.attr("k")), ("x & A<", Some("1<2")));
}

#[test]
fn the_deepest_tree_allowed_fits_a_small_stack() {
    let depth = 512;
    let deep = format!("<w:document {}>", testing::W)
        + &"<w:x>".repeat(depth - 1)
        + &"</w:x>".repeat(depth - 1)
        + "</w:document>";
    std::thread::Builder::new()
        .stack_size(1 << 20)
        .spawn(move || assert!(xml::parse(&deep, "DOCX", "x", 10_000).is_ok()))
        .unwrap()
        .join()
        .unwrap();
}

#[test]
fn of_alternatives_one_is_read() {
    let text = format!(
        "<w:p {}><mc:AlternateContent><mc:Choice><w:t>new</w:t></mc:Choice><mc:Fallback><w:t>old</w:t></mc:Fallback></mc:AlternateContent>\
         <mc:AlternateContent><mc:Choice/><mc:Fallback><w:t>kept</w:t></mc:Fallback></mc:AlternateContent></w:p>",
        testing::W
    );
    let root = xml::parse(&text, "DOCX", "x", 100).unwrap();
    let mut texts = Vec::new();
    root.walk(&mut |n| {
        if n.is(Ns::W, "t") {
            texts.push(n.text());
        }
        true
    });
    assert_eq!(texts, ["new", "kept"]);
}

#[test]
fn parts_in_other_encodings_are_decoded() {
    let utf16: Vec<u8> = "\u{feff}<a>é</a>".encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert_eq!(decode(utf16), "<a>é</a>");
    let latin = b"<?xml version='1.0' encoding='iso-8859-1'?><a>\xe9</a>".to_vec();
    assert!(decode(latin).ends_with("<a>é</a>"));
    assert_eq!(decode(b"\xef\xbb\xbf<a/>".to_vec()), "<a/>");
}

#[test]
fn members_encrypted_by_zip_are_named_so() {
    let mut bytes = zip(&[("a.xml", "<a/>")]);
    let central = bytes.windows(4).rposition(|w| w == b"PK\x01\x02").unwrap();
    bytes[6] |= 1;
    bytes[central + 8] |= 1;
    let mut package = Package::open(&bytes, "XLSX", &limits()).unwrap();
    assert_eq!(package.text("a.xml"), Err(PartitionError::Encrypted("XLSX")));
}

proptest! {
    #[test]
    fn no_bytes_make_the_container_panic(mut bytes: Vec<u8>, head in 0..3u8) {
        if head > 0 {
            let magic: &[u8] = if head == 1 { b"PK\x05\x06" } else { OLE_MAGIC };
            bytes.splice(0..0, magic.iter().copied());
        }
        let _ = Package::open(&bytes, "DOCX", &limits());
    }

    #[test]
    fn no_change_of_an_archive_makes_reading_panic(edits in prop::collection::vec((any::<usize>(), any::<u8>(), any::<u8>()), 1..8)) {
        let bytes = mutate(&zip(&[("a.xml", "<a b='c'>text</a>"), ("_rels/.rels", &rels(&[("1", "officeDocument", "a.xml")]))]), &edits);
        if let Ok(mut package) = Package::open(&bytes, "DOCX", &limits()) {
            let _ = package.main_part("a.xml").and_then(|main| package.xml(&main));
        }
    }

    #[test]
    fn no_text_makes_the_xml_reader_panic(text in "[<>/&;a-c\"'=!\\[\\] :-]{0,60}") {
        let _ = xml::parse(&text, "DOCX", "x", 50);
    }
}

/// A ratio of compression far beyond any document's is no reason to refuse what fits the limit.
#[test]
fn a_high_ratio_alone_is_no_alarm() {
    let mut writer = ::zip::ZipWriter::new(Cursor::new(Vec::new()));
    writer
        .start_file("a.xml", ::zip::write::SimpleFileOptions::default())
        .unwrap();
    writer
        .write_all(format!("<a>{}</a>", " ".repeat(1 << 20)).as_bytes())
        .unwrap();
    let bytes = writer.finish().unwrap().into_inner();
    assert!(bytes.len() < 5000);
    assert!(
        Package::open(&bytes, "DOCX", &limits())
            .unwrap()
            .xml("a.xml")
            .unwrap()
            .is_some()
    );
}
