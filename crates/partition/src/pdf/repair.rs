//! Files whose list of pages is lost or broken: cut short, a damaged page tree, a damaged catalog.
//!
//! What is left of the file is searched for pages and parts of the page tree. A new catalog that lists
//! them is appended to the bytes, as an incremental update without a cross-reference table, which makes
//! the reader look for objects itself.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use hayro_interpret::hayro_syntax::Pdf;
use hayro_interpret::hayro_syntax::object::dict::keys::{COUNT, KIDS, PAGES, PARENT, TYPE};
use hayro_interpret::hayro_syntax::object::{Dict, Name, Object, ObjectIdentifier};

/// Entries of a rebuilt list of pages.
const MAX_KIDS: usize = 100_000;
/// Objects that are looked at.
const MAX_OBJECTS: usize = 2_000_000;

/// The number of pages that the root of the page tree states, if it states one.
pub(super) fn stated_pages(pdf: &Pdf) -> Option<usize> {
    let xref = pdf.xref();
    let catalog = xref.get::<Dict<'_>>(xref.root_id())?;
    let count = catalog.get::<Dict<'_>>(PAGES)?.get::<i64>(COUNT)?;
    usize::try_from(count).ok()
}

/// The bytes with a catalog that lists what `pdf`, read from them, has of pages; none when nothing of the
/// kind is found or the file is encrypted, which a new trailer would lose.
pub(super) fn relist(bytes: &[u8], pdf: &Pdf) -> Option<Arc<Vec<u8>>> {
    let offsets = object_offsets(bytes);
    let mut found = Vec::new();
    let mut highest = offsets.keys().copied().max().unwrap_or(0);
    for object in pdf.objects().into_iter().take(MAX_OBJECTS) {
        let Object::Dict(dict) = object else { continue };
        let Some(id) = dict.obj_id() else { continue };
        highest = highest.max(id.obj_number);
        let Some(rank) = rank(&dict) else { continue };
        let offset = offsets.get(&id.obj_number).copied().unwrap_or(usize::MAX);
        found.push((rank, offset, id));
    }
    found.sort_by_key(|&(rank, offset, id)| (rank, offset, id.obj_number));
    found.truncate(MAX_KIDS);
    let mut known = HashSet::new();
    found.retain(|(_, _, id)| known.insert(id.obj_number));
    let kids: Vec<ObjectIdentifier> = found.into_iter().map(|(_, _, id)| id).collect();
    (!kids.is_empty()).then(|| with_catalog(bytes, highest, Some(&kids)))?
}

/// The bytes with a catalog whose page tree lists nothing, so that the objects of a file that lost its
/// own can be read.
pub(super) fn with_stub(bytes: &[u8]) -> Option<Arc<Vec<u8>>> {
    let highest = object_offsets(bytes).keys().copied().max()?;
    with_catalog(bytes, highest, None)
}

/// Appends a catalog, its page tree and a trailer.
fn with_catalog(bytes: &[u8], highest: u32, kids: Option<&[ObjectIdentifier]>) -> Option<Arc<Vec<u8>>> {
    if contains(bytes, b"/Encrypt") {
        return None;
    }
    let (pages, catalog) = (highest.checked_add(1)?, highest.checked_add(2)?);
    let list = kids.map_or(String::new(), |kids| {
        let refs: Vec<String> = kids
            .iter()
            .map(|id| format!("{} {} R", id.obj_number, id.gen_number))
            .collect();
        format!("/Kids [{}] /Count {}", refs.join(" "), refs.len())
    });
    let mut out = Vec::with_capacity(bytes.len() + list.len() + 256);
    out.extend_from_slice(bytes);
    // An offset that leads nowhere: the objects are searched for.
    out.extend_from_slice(
        format!(
            "\nendstream\nendobj\n{pages} 0 obj\n<< /Type /Pages {list} >>\nendobj\n\
             {catalog} 0 obj\n<< /Type /Catalog /Pages {pages} 0 R >>\nendobj\n\
             trailer\n<< /Root {catalog} 0 R >>\nstartxref\n-1\n%%EOF\n"
        )
        .as_bytes(),
    );
    Some(Arc::new(out))
}

/// Order of an object among the kids of a new page tree: roots of trees, parts of trees, pages. A page
/// that was reached through its tree is not listed twice by the reader.
fn rank(dict: &Dict<'_>) -> Option<u8> {
    match dict.get::<Name<'_>>(TYPE).as_deref()? {
        b"Pages" if dict.contains_key(KIDS) => {
            let inner = dict.get::<Dict<'_>>(PARENT).is_some();
            Some(u8::from(inner))
        }
        b"Page" => Some(2),
        _ => None,
    }
}

/// Where objects begin, by number; of several of one number the last counts.
fn object_offsets(bytes: &[u8]) -> HashMap<u32, usize> {
    let mut found = HashMap::new();
    let mut at = 0;
    while let Some(next) = bytes.get(at..).and_then(|rest| find(rest, b" obj")) {
        let end = at + next;
        at = end + 4;
        // Backwards over the generation and the number.
        let Some(head) = bytes.get(end.saturating_sub(24)..end) else {
            continue;
        };
        let generation = head.iter().rev().take_while(|b| b.is_ascii_digit()).count();
        let Some(head) = head.get(..head.len() - generation) else {
            continue;
        };
        let Some(head) = head.strip_suffix(b" ") else { continue };
        let digits = head.iter().rev().take_while(|b| b.is_ascii_digit()).count();
        let number = head
            .get(head.len() - digits..)
            .and_then(|digits| std::str::from_utf8(digits).ok());
        if let Some(number) = number.and_then(|digits| digits.parse::<u32>().ok())
            && generation > 0
        {
            found.insert(number, end - generation - 1 - digits);
            if found.len() >= MAX_OBJECTS {
                break;
            }
        }
    }
    found
}

fn contains(bytes: &[u8], needle: &[u8]) -> bool {
    find(bytes, needle).is_some()
}

fn find(bytes: &[u8], needle: &[u8]) -> Option<usize> {
    bytes.windows(needle.len()).position(|window| window == needle)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_found_by_their_heads() {
        let bytes = b"%PDF-1.4\n12 0 obj\n<<>>\nendobj 7 65535 obj<<>> x obj 3 obj 9999999999 0 obj";
        let found = object_offsets(bytes);
        assert_eq!(found.len(), 2);
        assert_eq!((found[&12], found[&7]), (9, 30));
        assert!(object_offsets(b" obj 0 obj").is_empty());
    }
}
