//! Headings, sections, labels and halves of tables, each on a small page drawn here.

use super::table_kinds_tests::{found, line, read_pages};
use super::testing::show;

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

#[test]
fn entries_of_several_lines_without_space_between_rows_are_rows() {
    let mut texts = vec![
        (40.0, 500.0, "Date"),
        (90.0, 500.0, "Description"),
        (220.0, 500.0, "Debit"),
        (280.0, 500.0, "Credit"),
        (335.0, 500.0, "Balance"),
    ];
    let entries: [(&str, &[&str], &str, &str, &str); 4] = [
        (
            "02.01.",
            &["Card payment", "Grocer 4411 Main St"],
            "45.20",
            "",
            "1,204.80",
        ),
        ("03.01.", &["Transfer from A. Moss"], "", "300.00", "1,504.80"),
        (
            "07.01.",
            &["Direct debit", "Power and Light Ltd", "Ref 88-1204"],
            "71.15",
            "",
            "1,433.65",
        ),
        ("11.01.", &["Interest"], "", "0.42", "1,434.07"),
    ];
    let mut y = 489.0;
    for (date, lines, debit, credit, balance) in entries {
        let figures = [
            (40.0, y, date),
            (222.0, y, debit),
            (282.0, y, credit),
            (337.0, y, balance),
        ];
        texts.extend(figures.into_iter().filter(|figure| !figure.2.is_empty()));
        for text in lines {
            texts.push((90.0, y, text));
            y -= 11.0;
        }
    }
    assert_eq!(
        found(&texts, ""),
        ["Date | Description | Debit | Credit | Balance\n\
          02.01. | Card payment Grocer 4411 Main St | 45.20 |  | 1,204.80\n\
          03.01. | Transfer from A. Moss |  | 300.00 | 1,504.80\n\
          07.01. | Direct debit Power and Light Ltd Ref 88-1204 | 71.15 |  | 1,433.65\n\
          11.01. | Interest |  | 0.42 | 1,434.07"]
    );
}

#[test]
fn a_table_without_rules_goes_on_below_its_heading_on_the_next_page() {
    let page = |from: usize, to: usize, more: &str| {
        let mut content = more.to_owned();
        for (x, heading) in [(40.0, "Code"), (120.0, "Name of the part"), (260.0, "Stock")] {
            content += &show('B', 9.0, x, 560.0, heading);
        }
        for (index, number) in (from..to).enumerate() {
            let y = 544.0 - 14.0 * index as f32;
            content += &show('F', 9.0, 40.0, y, &format!("A-{number}"));
            content += &show('F', 9.0, 120.0, y, ["Bolt", "Washer", "Nut", "Spring"][number % 4]);
            content += &show('F', 9.0, 265.0, y, &format!("{}", number * 7 + 3));
        }
        content
    };
    let all = read_pages(&[&page(1, 37, ""), &page(37, 40, "")]);
    assert_eq!(all[1..], ["PageBreak: "], "{all:?}");
    assert!(
        all[0].starts_with("Code | Name of the part | Stock\nA-1 | Washer | 10\n"),
        "{all:?}"
    );
    assert!(
        all[0].ends_with("\nA-36 | Bolt | 255\nA-37 | Washer | 262\nA-38 | Nut | 269\nA-39 | Spring | 276"),
        "{all:?}"
    );
    assert_eq!(all[0].matches("Code").count(), 1);
    // Text between them parts tables.
    let apart = read_pages(&[
        &page(1, 20, ""),
        &page(
            37,
            40,
            &show('F', 9.0, 40.0, 585.0, "What was bought in the second half of the year:"),
        ),
    ]);
    assert_eq!(
        apart.iter().filter(|element| element.contains("Code")).count(),
        2,
        "{apart:?}"
    );
}

#[test]
fn values_of_several_lines_belong_to_their_names() {
    let texts = [
        (40.0, 500.0, "Processor"),
        (150.0, 500.0, "Eight cores at 3.2 GHz, with a boost"),
        (150.0, 489.0, "of up to 4.4 GHz"),
        (40.0, 472.0, "Memory"),
        (150.0, 472.0, "32 GB, two slots"),
        (40.0, 455.0, "Storage"),
        (150.0, 455.0, "1 TB solid state drive; a second"),
        (150.0, 444.0, "one can be put in"),
        (40.0, 427.0, "Weight"),
        (150.0, 427.0, "1.9 kg"),
    ];
    assert_eq!(
        found(&texts, ""),
        [
            "Processor | Eight cores at 3.2 GHz, with a boost of up to 4.4 GHz\nMemory | 32 GB, two slots\n\
          Storage | 1 TB solid state drive; a second one can be put in\nWeight | 1.9 kg"
        ]
    );
}

#[test]
fn a_heading_above_the_rules_and_rows_in_a_frame_are_of_the_table() {
    let mut texts = vec![
        (44.0, 503.0, "*Country"),
        (150.0, 503.0, "*Capital"),
        (252.0, 503.0, "*People"),
    ];
    let rows = [
        ("Albania", "Tirana", "557"),
        ("Angola", "Luanda", "2571"),
        ("Austria", "Vienna", "1962"),
    ];
    for (row, (country, capital, people)) in rows.iter().enumerate() {
        let y = 489.0 - 15.0 * row as f32;
        texts.extend([(44.0, y, *country), (150.0, y, *capital), (252.0, y, *people)]);
    }
    let mut drawn: String = [500.0, 485.0, 470.0, 455.0].map(|y| line(40.0, y, 300.0, y)).concat();
    drawn += &[40.0, 146.0, 248.0, 300.0].map(|x| line(x, 500.0, x, 455.0)).concat();
    assert_eq!(
        found(&texts, &drawn),
        ["Country | Capital | People\nAlbania | Tirana | 557\nAngola | Luanda | 2571\nAustria | Vienna | 1962"]
    );

    let mut texts = vec![
        (44.0, 503.0, "*Name"),
        (150.0, 503.0, "*Number"),
        (230.0, 503.0, "*Date"),
        (320.0, 503.0, "*Amount"),
    ];
    for (row, name) in ["MENA", "MOLLE", "PERAZZO", "PICARDI", "PISONI", "REMON"]
        .iter()
        .enumerate()
    {
        let y = 488.0 - 15.0 * row as f32;
        texts.extend([
            (44.0, y, *name),
            (150.0, y, "27.083.460"),
            (230.0, y, "09/10/2013"),
            (318.0, y, "$ 10.000,00"),
        ]);
    }
    let frame = [515.0, 405.0].map(|y| line(40.0, y, 380.0, y)).concat()
        + &[40.0, 380.0].map(|x| line(x, 515.0, x, 405.0)).concat();
    let found = found(&texts, &frame);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].starts_with("Name | Number | Date | Amount\nMENA | 27.083.460 | 09/10/2013 | $ 10.000,00\n"),
        "{found:?}"
    );
}
