//! How deep the items of lists stand, by their indents.

use docmill_model::ElementType;

use super::block::Block;
use super::roles::Role;

/// Indents this close, in font sizes, are one level: numbers of one and of two digits begin apart.
const SAME_INDENT: f32 = 0.8;
/// Levels that are told apart.
const MAX_LEVELS: usize = 9;

/// Sets the depths of list items, from 0. Items follow each other as long as nothing but text set in as
/// theirs stands between them; `pages` has the page of each block.
pub(super) fn set_depths(blocks: &[&Block], pages: &[usize], roles: &mut [Role]) {
    // The indents of the open levels.
    let mut levels: Vec<f32> = Vec::new();
    let mut last: Option<(usize, [f32; 4])> = None;
    for ((block, &page), role) in blocks.iter().zip(pages).zip(roles) {
        let slack = SAME_INDENT * block.size;
        let x = block.bbox[0];
        // In the next column or on the next page a list goes on only at an indent it had before.
        let moved = last.is_some_and(|(before, bbox)| before != page || block.bbox[1] < bbox[1]);
        last = Some((page, block.bbox));
        if role.kind != ElementType::ListItem {
            let hangs = levels.first().is_some_and(|first| x > first + slack) && role.kind != ElementType::Title;
            if !hangs || moved {
                levels.clear();
            }
            continue;
        }
        if moved && !levels.iter().any(|level| (level - x).abs() <= slack) {
            levels.clear();
        }
        while levels.last().is_some_and(|level| *level > x + slack) {
            levels.pop();
        }
        let deeper = levels.last().is_none_or(|level| x > level + slack);
        if deeper && levels.len() < MAX_LEVELS {
            levels.push(x);
        }
        role.depth = u32::try_from(levels.len().saturating_sub(1)).ok();
    }
}

#[cfg(test)]
mod tests {
    use docmill_model::settings::PartitionOptions;

    use super::super::testing::{PdfBuilder, partition, show};

    fn depths(lines: &[(f32, &str)]) -> Vec<Option<u32>> {
        let mut content = String::new();
        for (index, (x, text)) in lines.iter().enumerate() {
            content += &show('F', 10.0, *x, 560.0 - 13.0 * index as f32, text);
        }
        let bytes = PdfBuilder::new().page(&content, "").build();
        let document = partition(&bytes, &PartitionOptions::default()).unwrap();
        let items = document
            .elements
            .iter()
            .filter(|element| element.kind.as_str() == "ListItem");
        items.map(|element| element.metadata.category_depth).collect()
    }

    #[test]
    fn indents_tell_depths() {
        let list = [
            (40.0, "\\225 fruit"),
            (60.0, "\\225 apples"),
            (60.0, "\\225 pears"),
            (80.0, "\\225 of the garden"),
            (40.0, "\\225 bread"),
        ];
        assert_eq!(depths(&list), [0, 1, 1, 2, 0].map(Some));
    }

    #[test]
    fn numbers_of_two_digits_are_no_level_of_their_own() {
        let list = [(45.0, "9. wood"), (40.0, "10. stone"), (40.0, "11. sand")];
        assert_eq!(depths(&list), [Some(0); 3]);
    }

    #[test]
    fn a_list_ends_with_other_text() {
        let list = [
            (40.0, "\\225 fruit"),
            (60.0, "\\225 apples"),
            (40.0, "Other things are bought here, as everybody knows."),
            (60.0, "\\225 salt"),
        ];
        assert_eq!(depths(&list), [0, 1, 0].map(Some));
    }
}
