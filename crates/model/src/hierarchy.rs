//! `parent_id`: which heading or list item an element belongs under.

use crate::element::{Element, ElementType};

/// Sets `parent_id` on every element that has none, from order, type and `category_depth`.
///
/// One stack runs over the elements. The nearest element on it that can hold the current one (same
/// type at a smaller depth, or a type that contains the current type) is its parent; what stands
/// deeper is closed. An element that can neither hold nor be held (a picture, a code listing, a
/// footer) leaves the stack alone, so a heading keeps governing the text after it.
pub fn assign_parents(elements: &mut [Element]) {
    let mut open: Vec<(ElementType, u32, String)> = Vec::new();
    for element in elements {
        if element.metadata.parent_id.is_some() || !takes_part(element.kind) {
            continue;
        }
        let depth = element.metadata.category_depth.unwrap_or(0);
        while let Some((kind, open_depth, id)) = open.last() {
            let holds = if *kind == element.kind {
                *open_depth < depth
            } else {
                contains(*kind, element.kind)
            };
            if holds {
                element.metadata.parent_id = Some(id.clone());
                break;
            }
            open.pop();
        }
        open.push((element.kind, depth, element.element_id.clone()));
    }
}

fn contains(parent: ElementType, child: ElementType) -> bool {
    use ElementType::*;
    match parent {
        Title => matches!(
            child,
            UncategorizedText | NarrativeText | ListItem | Table | FigureCaption | CheckBox
        ),
        Header => matches!(
            child,
            Title | UncategorizedText | NarrativeText | ListItem | Table | FigureCaption | CheckBox
        ),
        _ => false,
    }
}

fn takes_part(kind: ElementType) -> bool {
    use ElementType::*;
    matches!(
        kind,
        Title | Header | UncategorizedText | NarrativeText | ListItem | Table | FigureCaption | CheckBox
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::assign_element_ids;

    fn parents(kinds: &[(ElementType, u32)]) -> Vec<Option<usize>> {
        let mut elements: Vec<_> = kinds
            .iter()
            .enumerate()
            .map(|(i, (kind, depth))| Element::new(*kind, i.to_string()).with_depth(*depth))
            .collect();
        assign_element_ids(&mut elements);
        assign_parents(&mut elements);
        let ids: Vec<_> = elements.iter().map(|e| e.element_id.clone()).collect();
        elements
            .iter()
            .map(|e| {
                e.metadata
                    .parent_id
                    .as_ref()
                    .map(|p| ids.iter().position(|i| i == p).unwrap())
            })
            .collect()
    }

    #[test]
    fn text_stands_under_the_heading_and_headings_under_higher_ones() {
        use ElementType::*;
        assert_eq!(
            parents(&[
                (Title, 0),
                (NarrativeText, 0),
                (Title, 1),
                (Table, 0),
                (Title, 0),
                (NarrativeText, 0)
            ]),
            [None, Some(0), Some(0), Some(2), None, Some(4)]
        );
    }

    #[test]
    fn nested_list_items_stand_under_the_outer_item() {
        use ElementType::*;
        assert_eq!(
            parents(&[
                (Title, 0),
                (ListItem, 1),
                (ListItem, 2),
                (ListItem, 1),
                (NarrativeText, 0)
            ]),
            [None, Some(0), Some(1), Some(0), Some(0)]
        );
    }

    #[test]
    fn code_and_pictures_do_not_end_a_section() {
        use ElementType::*;
        assert_eq!(
            parents(&[(Title, 0), (CodeSnippet, 0), (Image, 0), (NarrativeText, 0)]),
            [None, None, None, Some(0)]
        );
    }
}
