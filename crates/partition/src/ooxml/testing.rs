//! Packages built in tests.

use std::io::{Cursor, Write};

use docmill_model::limits::ParseLimits;
use docmill_model::settings::PartitionOptions;
use docmill_model::{Document, Element, ElementType};
use zip::write::SimpleFileOptions;

use crate::context::Context;
use crate::error::PartitionError;

pub(crate) const W: &str = r#"xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships" xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math" xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006" xmlns:wps="http://schemas.microsoft.com/office/word/2010/wordprocessingShape" xmlns:v="urn:schemas-microsoft-com:vml""#;
pub(crate) const P: &str = r#"xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main" xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships" xmlns:c="http://schemas.openxmlformats.org/drawingml/2006/chart" xmlns:dgm="http://schemas.openxmlformats.org/drawingml/2006/diagram""#;
pub(crate) const S: &str = r#"xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships""#;

/// A ZIP container with these members.
pub(crate) fn zip(parts: &[(&str, &str)]) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in parts {
        writer.start_file(*name, SimpleFileOptions::default()).unwrap();
        writer.write_all(content.as_bytes()).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

/// The relationships part with (id, kind, target); targets with `://` are external.
pub(crate) fn rels(items: &[(&str, &str, &str)]) -> String {
    let items: String = items
        .iter()
        .map(|(id, kind, target)| {
            let mode = if target.contains("://") {
                r#" TargetMode="External""#
            } else {
                ""
            };
            format!(r#"<Relationship Id="{id}" Type="http://x/relationships/{kind}" Target="{target}"{mode}/>"#)
        })
        .collect();
    format!(
        r#"<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{items}</Relationships>"#
    )
}

type Reader = fn(&[u8], &mut Context) -> Result<(), PartitionError>;

/// What a reader makes of a file.
pub(crate) fn run(reader: Reader, bytes: &[u8], limits: &ParseLimits) -> Result<Document, PartitionError> {
    let options = PartitionOptions::default();
    let mut progress = |_| {};
    let mut cx = Context::new(None, &options, limits, &mut progress);
    reader(bytes, &mut cx)?;
    Ok(cx.into_document())
}

/// Kinds and texts of elements.
pub(crate) fn brief(elements: &[Element]) -> Vec<(ElementType, &str)> {
    elements.iter().map(|e| (e.kind, e.text.as_str())).collect()
}

/// Flips, cuts and removes bytes of a file as `edits` say.
pub(crate) fn mutate(bytes: &[u8], edits: &[(usize, u8, u8)]) -> Vec<u8> {
    let mut out = bytes.to_vec();
    for (at, value, what) in edits {
        if out.is_empty() {
            break;
        }
        let at = at % out.len();
        match what % 3 {
            0 => out[at] = *value,
            1 => {
                out.remove(at);
            }
            _ => out.insert(at, *value),
        }
    }
    out
}
