//! Bounds on what one file may cost a parser.

use serde::{Deserialize, Serialize};

/// Limits of one file's partitioning. What exceeds one fails with an error that names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ParseLimits {
    /// Bytes all members of an archive (DOCX, PPTX, XLSX) may expand to.
    pub max_expanded_bytes: u64,
    /// Members an archive may have.
    pub max_archive_entries: u64,
    /// Nesting depth of markup, JSON values or mail parts.
    pub max_depth: u32,
    /// Elements a document may yield.
    pub max_elements: u64,
    /// Pages a document may have.
    pub max_pages: u32,
    /// Cells a table may have.
    pub max_table_cells: u64,
    /// Pixels a picture may have, as its header says.
    pub max_image_pixels: u64,
}

impl Default for ParseLimits {
    fn default() -> Self {
        Self {
            max_expanded_bytes: 256 * 1024 * 1024,
            max_archive_entries: 20_000,
            max_depth: 512,
            max_elements: 1_000_000,
            max_pages: 20_000,
            max_table_cells: 2_000_000,
            max_image_pixels: 100_000_000,
        }
    }
}
