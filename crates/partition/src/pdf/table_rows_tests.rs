//! Headings, sections, labels and halves of tables, each on a small page drawn here.

use super::table_kinds_tests::{found, line};

#[test]
fn a_heading_between_two_levels_of_the_others_is_one_of_both() {
    let mut texts = vec![
        (50.0, 514.5, "Method"),
        (158.0, 520.0, "Small set"),
        (268.0, 520.0, "Large set"),
    ];
    texts.extend(
        [130.0, 180.0, 210.0, 240.0, 290.0, 320.0]
            .iter()
            .zip(["50", "1k", "None"].repeat(2))
            .map(|(x, text)| (*x, 508.0, text)),
    );
    for row in 0..5 {
        let y = 494.0 - 12.0 * row as f32;
        texts.push((50.0, y, ["Plain", "Deep", "Wide", "Both", "Ours"][row]));
        texts.extend([130.0, 180.0, 210.0, 240.0, 290.0, 320.0].map(|x| (x, y, "91.2")));
    }
    let mut drawn = [530.0, 504.0, 440.0].map(|y| line(40.0, y, 350.0, y)).concat();
    drawn += &line(120.0, 517.0, 350.0, 517.0);
    for x in [40.0, 120.0, 233.0, 350.0] {
        drawn += &line(x, 530.0, x, 440.0);
    }
    let found = found(&texts, &drawn);
    assert!(
        found[0].starts_with(
            "Method^2 | Small set<3> | Large set<3>\n50 | 1k | None | 50 | 1k | None\nPlain | 91.2 | 91.2 | 91.2 | 91.2"
        ),
        "{found:?}"
    );
}

#[test]
fn sections_of_rows_span_the_table() {
    let mut texts = vec![
        (40.0, 500.0, "Item"),
        (160.0, 500.0, "2023"),
        (240.0, 500.0, "2024"),
        (310.0, 500.0, "2025"),
    ];
    let mut y = 484.0;
    for (section, rows) in [
        ("Receipts of the club in each of these years", ["Fees", "Gifts"]),
        ("Expenses of the club in each of these years", ["Rent", "Prints"]),
    ] {
        texts.push((100.0, y, section));
        for label in rows {
            y -= 14.0;
            texts.push((40.0, y, label));
            texts.extend([160.0, 240.0, 310.0].map(|x| (x, y, "120")));
        }
        y -= 14.0;
    }
    let drawn = [512.0, 495.0, 410.0].map(|y| line(36.0, y, 350.0, y)).concat();
    assert_eq!(
        found(&texts, &drawn),
        [
            "Item | 2023 | 2024 | 2025\nReceipts of the club in each of these years<4>\nFees | 120 | 120 | 120\n\
          Gifts | 120 | 120 | 120\nExpenses of the club in each of these years<4>\nRent | 120 | 120 | 120\n\
          Prints | 120 | 120 | 120"
        ]
    );
}

#[test]
fn tables_side_by_side_are_two() {
    let mut texts = vec![
        (40.0, 500.0, "Coin"),
        (120.0, 500.0, "Value"),
        (220.0, 500.0, "Note"),
        (300.0, 500.0, "Value"),
    ];
    for (row, (coin, note)) in [("Red", "Green"), ("White", "Brown"), ("Black", "Grey")]
        .iter()
        .enumerate()
    {
        let y = 482.0 - 14.0 * row as f32;
        texts.extend([(40.0, y, *coin), (124.0, y, "5"), (220.0, y, *note), (304.0, y, "50")]);
    }
    let drawn: String = [(36.0, 160.0), (216.0, 340.0)]
        .iter()
        .flat_map(|(from, to)| [512.0, 494.0, 448.0].map(|y| line(*from, y, *to, y)))
        .collect();
    assert_eq!(
        found(&texts, &drawn),
        [
            "Coin | Value\nRed | 5\nWhite | 5\nBlack | 5",
            "Note | Value\nGreen | 50\nBrown | 50\nGrey | 50"
        ]
    );
}

#[test]
fn a_heading_that_is_there_again_begins_a_new_table() {
    let mut texts = Vec::new();
    let mut drawn = String::new();
    for (top, year) in [(520.0, "2023"), (420.0, "2024")] {
        texts.extend([
            (235.0, top, year),
            (40.0, top - 16.0, "Fund"),
            (150.0, top - 16.0, "Open"),
            (230.0, top - 16.0, "Change"),
            (310.0, top - 16.0, "Close"),
        ]);
        for (row, label) in ["Reserve", "Building", "Travel"].iter().enumerate() {
            let y = top - 34.0 - 14.0 * row as f32;
            texts.push((40.0, y, *label));
            texts.extend([150.0, 230.0, 310.0].map(|x| (x, y, "1,210")));
        }
        drawn += &line(140.0, top - 5.0, 350.0, top - 5.0);
        for y in [top - 21.0, top - 66.0] {
            drawn += &line(36.0, y, 350.0, y);
        }
    }
    let found = found(&texts, &drawn);
    let rows = |year: &str| {
        format!(
            "Fund^2 | {year}<3>\nOpen | Change | Close\nReserve | 1,210 | 1,210 | 1,210\n\
             Building | 1,210 | 1,210 | 1,210\nTravel | 1,210 | 1,210 | 1,210"
        )
    };
    assert_eq!(found, [rows("2023"), rows("2024")]);
}

#[test]
fn labels_alone_head_the_rows_below_and_wrapped_ones_go_on() {
    let texts = [
        (200.0, 500.0, "2024"),
        (270.0, 500.0, "2025"),
        (40.0, 482.0, "Assets that can be sold soon"),
        (50.0, 471.0, "Cash and deposits at"),
        (50.0, 460.0, "other banks of the group"),
        (200.0, 465.5, "1,200"),
        (270.0, 465.5, "1,310"),
        (50.0, 442.0, "Shares"),
        (200.0, 442.0, "400"),
        (270.0, 442.0, "390"),
        (40.0, 424.0, "Other assets"),
        (50.0, 413.0, "Buildings"),
        (200.0, 413.0, "2,700"),
        (270.0, 413.0, "2,650"),
    ];
    let drawn = [511.0, 493.0, 453.0, 435.0, 405.0]
        .map(|y| line(36.0, y, 310.0, y))
        .concat();
    assert_eq!(
        found(&texts, &drawn),
        [" | 2024 | 2025\nAssets that can be sold soon |  | \n\
          Cash and deposits at other banks of the group | 1,200 | 1,310\nShares | 400 | 390\nOther assets |  | \n\
          Buildings | 2,700 | 2,650"]
    );
}

#[test]
fn prices_in_two_halves_of_a_page_keep_their_goods() {
    let left = [
        ("Soup of the day", "4.50"),
        ("Salad with nuts", "6.20"),
        ("Bread and oil", "3.10"),
        ("Olives", "2.90"),
    ];
    let right = [
        ("Apple tart", "5.00"),
        ("Ice cream", "4.20"),
        ("Cheese plate", "8.90"),
        ("Coffee", "2.40"),
    ];
    let mut texts = Vec::new();
    for (row, ((a, b), (c, d))) in left.iter().zip(right).enumerate() {
        let y = 500.0 - 15.0 * row as f32;
        texts.extend([(40.0, y, *a), (150.0, y, *b), (220.0, y, c), (330.0, y, d)]);
    }
    assert_eq!(
        found(&texts, ""),
        [
            "Soup of the day | 4.50 | Apple tart | 5.00\nSalad with nuts | 6.20 | Ice cream | 4.20\n\
          Bread and oil | 3.10 | Cheese plate | 8.90\nOlives | 2.90 | Coffee | 2.40"
        ]
    );
}
