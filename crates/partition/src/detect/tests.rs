use std::io::{Cursor, Write};
use std::sync::Arc;

use super::*;

fn input(bytes: &[u8], name: &str, mime: &str) -> Input {
    Input {
        bytes: Arc::new(bytes.to_vec()),
        filename: (!name.is_empty()).then(|| name.to_owned()),
        content_type: (!mime.is_empty()).then(|| mime.to_owned()),
    }
}

fn found(bytes: &[u8], name: &str, mime: &str) -> FileType {
    detect(&input(bytes, name, mime)).unwrap()
}

fn error(bytes: &[u8], name: &str, mime: &str) -> PartitionError {
    detect(&input(bytes, name, mime)).unwrap_err()
}

fn unsupported(bytes: &[u8], name: &str) -> String {
    match error(bytes, name, "") {
        PartitionError::Unsupported { detected } => detected,
        other => panic!("{other}"),
    }
}

fn zip_of(names: &[&str]) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for name in names {
        writer
            .start_file(*name, zip::write::SimpleFileOptions::default())
            .unwrap();
        writer.write_all(b"<x/>").unwrap();
    }
    writer.finish().unwrap().into_inner()
}

/// A compound file of one directory sector with the given stream names.
fn compound(names: &[&str]) -> Vec<u8> {
    let mut file = vec![0u8; 512 * 2];
    file[..8].copy_from_slice(&ole::SIGNATURE);
    file[30] = 9;
    file[48..52].copy_from_slice(&0u32.to_le_bytes());
    file[76..80].copy_from_slice(&0xffff_ffffu32.to_le_bytes());
    for (i, name) in names.iter().enumerate() {
        let entry = 512 + i * 128;
        for (j, unit) in name.encode_utf16().enumerate() {
            file[entry + j * 2..entry + j * 2 + 2].copy_from_slice(&unit.to_le_bytes());
        }
        file[entry + 64] = (name.len() as u8 + 1) * 2;
    }
    file
}

#[test]
fn empty_files() {
    assert_eq!(found(b"", "a.txt", ""), FileType::Empty);
    assert_eq!(found(b"", "", ""), FileType::Empty);
    assert_eq!(error(b"", "a.pdf", ""), PartitionError::Empty("PDF"));
    assert_eq!(error(b"", "a", FileType::Docx.mime()), PartitionError::Empty("DOCX"));
}

#[test]
fn containers_by_their_members_whatever_the_name() {
    assert_eq!(
        found(&zip_of(&["[Content_Types].xml", "word/document.xml"]), "a.pdf", ""),
        FileType::Docx
    );
    assert_eq!(found(&zip_of(&["xl\\workbook.xml"]), "", "text/plain"), FileType::Xlsx);
    assert_eq!(found(&zip_of(&["ppt/presentation.xml"]), "a.zip", ""), FileType::Pptx);
    assert_eq!(unsupported(&zip_of(&["readme.txt"]), "a.zip"), "ZIP archive");
    assert!(matches!(
        error(&zip_of(&["readme.txt"]), "a.docx", ""),
        PartitionError::Corrupt { format: "DOCX", .. }
    ));
}

#[test]
fn a_cut_archive_is_corrupt_not_unsupported() {
    let archive = zip_of(&["[Content_Types].xml", "word/document.xml"]);
    let cut = &archive[..archive.len() / 2];
    assert!(matches!(
        error(cut, "a.docx", ""),
        PartitionError::Corrupt { format: "DOCX", .. }
    ));
    assert!(matches!(error(cut, "", ""), PartitionError::Corrupt { .. }));
}

#[test]
fn compound_files_are_named() {
    assert_eq!(
        unsupported(&compound(&["Root Entry", "WordDocument"]), "a.docx"),
        "legacy Word (DOC)"
    );
    assert_eq!(
        unsupported(&compound(&["Root Entry", "Workbook"]), ""),
        "legacy Excel (XLS)"
    );
    assert_eq!(
        error(&compound(&["Root Entry", "EncryptedPackage"]), "a.xlsx", ""),
        PartitionError::Encrypted("XLSX")
    );
}

#[test]
fn pdf_headers() {
    assert_eq!(found(b"%PDF-1.7\n...", "a.docx", ""), FileType::Pdf);
    assert_eq!(found(b"junk\n%PDF-1.4\n", "a.pdf", ""), FileType::Pdf);
    assert_eq!(found(b"A header reads %PDF-1.4 and so on.", "a.txt", ""), FileType::Txt);
    assert!(matches!(
        error(b"not one", "a.pdf", ""),
        PartitionError::Corrupt { format: "PDF", .. }
    ));
    assert!(matches!(
        error(b"not one", "", "application/pdf"),
        PartitionError::Corrupt { .. }
    ));
}

#[test]
fn pictures_and_other_binary_data_are_named() {
    let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0";
    assert_eq!(found(png, "a.pdf", ""), FileType::Png);
    assert_eq!(
        found(
            b"\xff\xd8\xff\xe0\0\x10JFIF\0\x01\x01\0\0\x01\0\x01\0\0\xff\xdb",
            "",
            ""
        ),
        FileType::Jpeg
    );
    assert_eq!(unsupported(b"8BPS\0\x01\0\0\0\0\0\0\0\x03", ""), "PSD image");
    assert_eq!(
        unsupported(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3e\0\x01\0\0\0", "a.txt"),
        "ELF executable"
    );
    assert_eq!(unsupported(b"{\\rtf1\\ansi text}", "a.txt"), "RTF");
    assert_eq!(
        unsupported(b"\0\0\0\x18ftypavif\0\0\0\0mif1avif\0\0\0\0", "a.jpg"),
        "AVIF image"
    );
    let noise: Vec<u8> = (0u32..4096)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8)
        .collect();
    assert!(matches!(
        error(&noise, "a.pdf", ""),
        PartitionError::Corrupt { format: "PDF", .. }
    ));
    assert!(matches!(error(&noise, "a.bin", ""), PartitionError::Unsupported { .. }));
    assert!(matches!(error(&noise, "a.txt", ""), PartitionError::Unsupported { .. }));
}

#[test]
fn text_by_declared_type_then_extension() {
    assert_eq!(found(b"a,b\n1,2\n", "a.csv", ""), FileType::Csv);
    assert_eq!(
        found(b"a;b\n", "data", "application/x-csv; charset=utf-8"),
        FileType::Csv
    );
    assert_eq!(found(b"# Title\n", "a.txt", "text/x-markdown"), FileType::Md);
    assert_eq!(found(b"# Title\n", "a.md", "text/plain"), FileType::Md);
    assert_eq!(
        found(b"print('hi')\n", "a.py", "application/octet-stream"),
        FileType::Txt
    );
    assert_eq!(found(b"{\"a\": 1}", "a.txt", ""), FileType::Txt);
    assert_eq!(found(b"plain words", "a.pdf", "text/plain"), FileType::Txt);
}

#[test]
fn text_without_hints_by_shape() {
    assert_eq!(found(b"{\"a\": 1}", "", ""), FileType::Json);
    assert_eq!(found(b"{\"a\": 1}\n{\"a\": 2}\n", "", ""), FileType::Ndjson);
    assert_eq!(
        found(b"<?xml version=\"1.0\"?><a/>", "", "application/octet-stream"),
        FileType::Xml
    );
    assert_eq!(found(b"<div><p>Hi</p></div>", "", ""), FileType::Html);
    assert_eq!(
        found(b"From: a@b.c\nTo: d@e.f\nSubject: x\n\nbody", "", ""),
        FileType::Eml
    );
    assert_eq!(found(b"a,b,c\n1,2,3\n4,5,6\n", "", ""), FileType::Csv);
    assert_eq!(
        found(b"Dear all, hello.\nHow are you, friend?\n", "", ""),
        FileType::Txt
    );
    assert_eq!(found(b"just words", "", ""), FileType::Txt);
    assert_eq!(found(&[0xff, 0xfe, b'h', 0, b'i', 0], "", ""), FileType::Txt);
}

#[test]
fn html_wins_over_a_plain_name_but_not_over_code() {
    let page = b"<!DOCTYPE html>\n<html><body><p>Hi</p></body></html>";
    assert_eq!(found(page, "a.txt", ""), FileType::Html);
    assert_eq!(found(page, "a.md", "text/plain"), FileType::Html);
    assert_eq!(found(page, "a.php", ""), FileType::Txt);
    assert_eq!(found(b"<htmlfoo>", "a.txt", ""), FileType::Txt);
}

#[test]
fn heic_is_told_by_its_brands_whatever_it_is_called() {
    for brands in [
        &b"heic\0\0\0\0mif1heic"[..],
        b"mif1\0\0\0\0mif1heic",
        b"msf1\0\0\0\0hevc",
    ] {
        let mut bytes = (brands.len() as u32 + 8).to_be_bytes().to_vec();
        bytes.extend(b"ftyp");
        bytes.extend(brands);
        bytes.extend([0, 0, 0, 8, b'm', b'd', b'a', b't', 0xFF]);
        // Telephones call them JPEG.
        assert_eq!(found(&bytes, "a.jpg", ""), FileType::Heic, "{brands:?}");
    }
}

#[test]
fn json_lines_and_json() {
    assert_eq!(found(b"{\"a\": 1}", "a.ndjson", ""), FileType::Ndjson);
    assert_eq!(found(b"{\"a\": 1}\n{\"b\": 2}", "a.json", ""), FileType::Ndjson);
    assert_eq!(found(b"{\n \"a\": 1\n}", "a.jsonl", ""), FileType::Json);
    assert_eq!(found(b"{\n \"a\": 1\n}", "a.json", ""), FileType::Json);
}
