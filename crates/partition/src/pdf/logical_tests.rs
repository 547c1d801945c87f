//! Reading order by the structure tree, in whole files.

use docmill_model::settings::PartitionOptions;

use super::testing::{PdfBuilder, outline, partition, show};

/// Lines of a paragraph whose first has a name of its own.
fn card(name: &str) -> [String; 4] {
    [
        format!("{name} is the first line of its card"),
        "and goes on with the second line here".to_owned(),
        "then comes a third one of such length".to_owned(),
        "and a fourth one that ends the card.".to_owned(),
    ]
}

/// Four cards in two columns: the first two in the left, the others in the right.
const CARDS: [(&str, f32, f32); 4] = [
    ("Alpha", 30.0, 560.0),
    ("Beta", 30.0, 480.0),
    ("Gamma", 210.0, 560.0),
    ("Delta", 210.0, 480.0),
];

/// The order in which the cards of a page come out. `tree` has the content identifiers of each element; every
/// line is a piece of its own, numbered as it is drawn: 0 to 3 those of the first card and so on. Lines from
/// `tagged` on are not marked at all. The tree is found by the parent tree or not.
fn read(tree: &[Vec<usize>], tagged: usize, parent_tree: bool) -> String {
    read_cards(card, tree, tagged, parent_tree)
}

fn read_cards(card: fn(&str) -> [String; 4], tree: &[Vec<usize>], tagged: usize, parent_tree: bool) -> String {
    let mut content = String::new();
    for (index, (name, x, y)) in CARDS.into_iter().enumerate() {
        for (line, text) in card(name).iter().enumerate() {
            let id = 4 * index + line;
            let shown = show('F', 9.0, x, y - 11.0 * line as f32, text);
            content += &match id < tagged {
                true => format!("/P << /MCID {id} >> BDC {shown} EMC\n"),
                false => shown,
            };
        }
    }
    let mut builder = PdfBuilder::new();
    // Objects: 5 the tree, 6 the document, from 7 on the elements, then the parent tree and the page.
    let page = 8 + tree.len() + 1;
    let kids: Vec<String> = (0..tree.len()).map(|index| format!("{} 0 R", 7 + index)).collect();
    let numbers = match parent_tree {
        true => format!("/ParentTree {} 0 R", 7 + tree.len()),
        false => String::new(),
    };
    builder.object(format!("<< /Type /StructTreeRoot /K 6 0 R {numbers} >>"));
    builder.object(format!("<< /S /Document /P 5 0 R /K [{}] >>", kids.join(" ")));
    for ids in tree {
        let ids: Vec<String> = ids.iter().map(usize::to_string).collect();
        builder.object(format!("<< /S /P /P 6 0 R /Pg {page} 0 R /K [{}] >>", ids.join(" ")));
    }
    let owners: Vec<String> = (0..tagged)
        .map(|id| {
            let owner = tree.iter().position(|ids| ids.contains(&id));
            owner.map_or("null".to_owned(), |owner| format!("{} 0 R", 7 + owner))
        })
        .collect();
    builder.object(format!("<< /Nums [0 [{}]] >>", owners.join(" ")));
    let bytes = builder
        .page(&content, "/StructParents 0")
        .catalog("/StructTreeRoot 5 0 R")
        .build();
    let document = partition(&bytes, &PartitionOptions::default()).unwrap();
    let text: String = outline(&document)
        .into_iter()
        .map(|(_, text)| format!("{text} "))
        .collect();
    let names = text
        .split_whitespace()
        .filter(|word| CARDS.iter().any(|card| card.0 == *word));
    names.collect::<Vec<_>>().join(" ")
}

/// The lines of the cards of given numbers.
fn lines(cards: [usize; 4]) -> Vec<Vec<usize>> {
    cards.map(|card| (4 * card..4 * card + 4).collect()).to_vec()
}

const LAID_OUT: &str = "Alpha Beta Gamma Delta";

#[test]
fn the_tree_tells_the_order_of_columns() {
    for parent_tree in [true, false] {
        assert_eq!(read(&lines([0, 1, 2, 3]), 16, parent_tree), LAID_OUT);
        assert_eq!(read(&lines([0, 2, 1, 3]), 16, parent_tree), "Alpha Gamma Beta Delta");
        assert_eq!(read(&lines([2, 3, 0, 1]), 16, parent_tree), "Gamma Delta Alpha Beta");
    }
}

#[test]
fn a_tree_that_jumps_from_line_to_line_is_not_followed() {
    // Every line of the left column is followed by one of the right.
    let rows: Vec<Vec<usize>> = (0..8).map(|line| vec![line, 8 + line]).collect();
    assert_eq!(read(&rows, 16, true), LAID_OUT);
    // Up the page.
    let mut up = lines([2, 3, 0, 1]);
    up.iter_mut().for_each(|lines| lines.reverse());
    assert_eq!(read(&up, 16, true), LAID_OUT);
    assert_eq!(read(&lines([3, 2, 1, 0]), 16, true), LAID_OUT);
}

#[test]
fn a_tree_that_lacks_text_is_not_followed() {
    let tree = lines([2, 3, 0, 1]);
    assert_eq!(read(&tree, 12, true), LAID_OUT);
    let some: Vec<Vec<usize>> = tree.into_iter().map(|lines| lines[..3].to_vec()).collect();
    assert_eq!(read(&some, 16, true), LAID_OUT);
}

#[test]
fn boxes_beside_the_text_stay_where_they_are_seen() {
    // The first half of the last card comes first in the tree: an eighth of the text.
    let tree = [vec![12, 13], (0..12).collect(), vec![14, 15]];
    assert_eq!(read(&tree, 16, true), LAID_OUT);
}

#[test]
fn columns_of_short_lines_are_told_from_a_table() {
    let address = |name: &str| [name, "12 Main Street", "Springfield", "Ohio"].map(str::to_owned);
    // As they are laid out, the lines are rows.
    assert_eq!(read_cards(address, &[], 0, true), "Alpha Gamma Beta Delta");
    assert_eq!(read_cards(address, &lines([0, 1, 2, 3]), 16, true), LAID_OUT);
}
