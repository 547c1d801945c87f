use docmill_model::ElementType::{self, *};

use super::*;

fn kind(text: &str) -> ElementType {
    classify(text).0
}

#[test]
fn bullets_are_taken_off() {
    assert_eq!(classify("• first point"), (ListItem, "first point".into()));
    assert_eq!(classify("- first point"), (ListItem, "first point".into()));
    assert_eq!(classify("* first point"), (ListItem, "first point".into()));
    assert_eq!(classify("\u{f0b7} first point"), (ListItem, "first point".into()));
    assert_ne!(kind("-item"), ListItem);
    assert_eq!(classify("*first point"), (ListItem, "first point".into()));
    assert_ne!(kind("**bold** words"), ListItem);
    assert_ne!(kind("*so* it goes"), ListItem);
}

#[test]
fn numbers_stay_on_list_items() {
    assert_eq!(classify("1. Introduction"), (ListItem, "1. Introduction".into()));
    assert_eq!(kind("12) twelve"), ListItem);
    assert_ne!(kind("1.1 Scope"), ListItem);
    assert_ne!(kind("1999. A year"), ListItem);
}

#[test]
fn addresses() {
    assert_eq!(kind("jane.doe+news@example.co.uk"), EmailAddress);
    assert_ne!(kind("write to jane@example.org today"), EmailAddress);
    assert_eq!(kind("Doylestown, PA 18901"), Address);
    assert_eq!(kind("12 Main Street, Springfield, IL 62704-1234"), Address);
    assert_ne!(kind("Order 66, ZZ 12345"), Address);
}

#[test]
fn prose_in_english() {
    for text in [
        "The cat sat on the mat",
        "This is a test.",
        "Nothing was said about it, and Mr. Smith left.",
        "First sentence stands here. Second sentence stands there.",
    ] {
        assert_eq!(kind(text), NarrativeText, "{text}");
    }
}

#[test]
fn prose_in_other_languages() {
    for text in [
        "Alle Menschen sind frei und gleich an Würde und Rechten geboren.",
        "Все люди рождаются свободными и равными в своём достоинстве и правах.",
        "人人生而自由，在尊严和权利上一律平等。",
        "すべての人間は、生れながらにして自由である。",
        "모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다.",
        "सभी मनुष्यों को गौरव और अधिकारों के मामले में जन्मजात स्वतन्त्रता प्राप्त है।",
        "يولد جميع الناس أحرارا متساوين في الكرامة والحقوق.",
    ] {
        assert_eq!(kind(text), NarrativeText, "{text}");
    }
}

#[test]
fn headings() {
    for text in [
        "ITEM 1A. RISK FACTORS",
        "1.1 Scope",
        "Figure 3: results of run",
        "Table 2",
        "Kapitel 4",
        "第一章 总则",
        "Обзор рынка",
    ] {
        assert_eq!(kind(text), Title, "{text}");
    }
}

#[test]
fn the_rest_has_no_category() {
    for text in [
        "To My Dearest Friends,",
        "123",
        "WARNING!",
        "Revenue 1,234 5,678",
        "",
        "  ",
        "====",
        "1/2/2024",
    ] {
        assert_eq!(kind(text), UncategorizedText, "{text}");
    }
}

#[test]
fn a_text_of_megabytes_is_judged_by_its_start() {
    let text = "word ".repeat(400_000);
    let start = std::time::Instant::now();
    assert_eq!(kind(&text), NarrativeText);
    assert!(start.elapsed().as_secs() < 4);
}
