//! OLE compound files: old Office formats, Outlook messages, encrypted Office Open XML.
//!
//! Only the directory is read, to name the file in an error. Format: MS-CFB.

use crate::error::PartitionError;
use crate::filetype::FileType;

/// First bytes of every compound file.
pub(super) const SIGNATURE: [u8; 8] = [0xd0, 0xcf, 0x11, 0xe0, 0xa1, 0xb1, 0x1a, 0xe1];

/// Directory sectors looked at; streams that name the format stand in the first few.
const MAX_DIRECTORY_SECTORS: usize = 64;

const DIRECTORY_ENTRY: usize = 128;

/// The error that says what a compound file is.
pub(super) fn describe(bytes: &[u8], hint: Option<FileType>) -> PartitionError {
    let names = directory_names(bytes);
    let has = |name: &str| names.iter().any(|n| n == name);
    if has("EncryptedPackage") || has("EncryptionInfo") {
        return PartitionError::Encrypted(match hint {
            Some(FileType::Docx) => "DOCX",
            Some(FileType::Xlsx) => "XLSX",
            Some(FileType::Pptx) => "PPTX",
            _ => "Office",
        });
    }
    let detected = if has("WordDocument") {
        "legacy Word (DOC)"
    } else if has("Workbook") || has("Book") {
        "legacy Excel (XLS)"
    } else if has("PowerPoint Document") {
        "legacy PowerPoint (PPT)"
    } else if names.iter().any(|n| n.starts_with("__properties_version1.0")) {
        "Outlook message (MSG)"
    } else {
        "OLE compound"
    };
    PartitionError::Unsupported {
        detected: detected.into(),
    }
}

/// Names in the directory; empty when the container is broken.
fn directory_names(bytes: &[u8]) -> Vec<String> {
    let mut names = Vec::new();
    let Some(shift) = u16_at(bytes, 30).filter(|shift| (7..=16).contains(shift)) else {
        return names;
    };
    let size = 1usize << shift;
    let Some(mut sector) = u32_at(bytes, 48) else {
        return names;
    };
    for _ in 0..MAX_DIRECTORY_SECTORS {
        let Some(content) = sector_at(bytes, sector, size) else {
            break;
        };
        names.extend(content.chunks_exact(DIRECTORY_ENTRY).filter_map(entry_name));
        match next_sector(bytes, sector, size) {
            Some(next) => sector = next,
            None => break,
        }
    }
    names
}

fn entry_name(entry: &[u8]) -> Option<String> {
    let length = usize::from(u16_at(entry, 64)?);
    let units: Vec<u16> = entry
        .get(..length.saturating_sub(2).min(64))?
        .chunks_exact(2)
        .map(|pair| u16::from_le_bytes([pair[0], pair[1]]))
        .collect();
    (!units.is_empty()).then(|| String::from_utf16_lossy(&units))
}

fn sector_at(bytes: &[u8], sector: u32, size: usize) -> Option<&[u8]> {
    let start = (sector as usize).checked_add(1)?.checked_mul(size)?;
    bytes.get(start..).map(|rest| &rest[..rest.len().min(size)])
}

/// The sector after `sector` in its chain, from the allocation tables the header lists.
fn next_sector(bytes: &[u8], sector: u32, size: usize) -> Option<u32> {
    let per_table = size / 4;
    let table = (sector as usize) / per_table;
    if table >= 109 {
        return None;
    }
    let table_sector = u32_at(bytes, 76 + table * 4)?;
    let entries = sector_at(bytes, table_sector, size)?;
    u32_at(entries, (sector as usize) % per_table * 4).filter(|next| *next < 0xffff_fffa)
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    let part = bytes.get(at..at.checked_add(2)?)?;
    Some(u16::from_le_bytes(part.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let part = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_le_bytes(part.try_into().ok()?))
}
