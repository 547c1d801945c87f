//! Names of persons and where they are, as they stand below titles.

/// Most words of one name.
const MAX_WORDS: usize = 5;
/// Words within names that are written small.
const PARTICLES: [&str; 18] = [
    "de", "da", "do", "dos", "das", "del", "della", "di", "du", "la", "le", "van", "von", "der", "den", "ter", "bin",
    "al",
];

/// How a line names persons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Names {
    /// With initials: `K Lindqvist`, `Morten, B.K.; Aalbers, P.-J.`.
    Initials,
    /// Several in full: `Ann Miller, Joe Smith and Li Wei`.
    Several,
    /// What may be one name: `Ann Miller`.
    One,
}

/// The persons that a text names if it does nothing else.
pub(super) fn names(text: &str) -> Option<Names> {
    let text = text.strip_prefix("by ").or(text.strip_prefix("By ")).unwrap_or(text);
    let mut groups: Vec<Vec<&str>> = vec![Vec::new()];
    for word in text.split_whitespace() {
        if matches!(word, "and" | "und" | "et" | "y" | "e" | "&" | "·" | "|") {
            groups.push(Vec::new());
            continue;
        }
        let bare = word.trim_matches(|ch: char| !ch.is_alphabetic() && ch != '.');
        if let Some(group) = groups.last_mut().filter(|_| !bare.is_empty()) {
            group.push(bare);
        }
        if word.ends_with([',', ';']) {
            groups.push(Vec::new());
        }
    }
    groups.retain(|group| !group.is_empty());
    // A letter alone at the start may be an article, at the end a number.
    let sure = |place: usize, word: &str| word.contains('.') || (place == 0 && !matches!(word, "A" | "E" | "I" | "O"));
    let (mut initials, mut full) = (false, 0);
    for group in &groups {
        let whole = group.iter().filter(|word| is_whole(word)).count();
        let known = |word: &&str| is_whole(word) || is_initials(word) || PARTICLES.contains(word);
        if group.len() > MAX_WORDS || !group.iter().all(known) {
            return None;
        }
        let mut words = group.iter().enumerate();
        initials |=
            words.any(|(place, word)| is_initials(word) && (sure(place, word) || place + 1 < group.len() && place > 0));
        full += usize::from(whole >= 2);
    }
    let whole = groups.iter().flatten().any(|word| is_whole(word));
    match groups.len() {
        _ if !whole => None,
        _ if initials => Some(Names::Initials),
        1 => (full == 1).then_some(Names::One),
        count => (full == count).then_some(Names::Several),
    }
}

/// `Department of Physics, University of Ghent`.
pub(super) fn is_affiliation(text: &str) -> bool {
    let lower = text.to_lowercase();
    let places = [
        "universi",
        "institut",
        "department",
        "laborator",
        "college",
        "hospital",
        "school of",
        "faculty",
    ];
    places.iter().any(|place| lower.contains(place))
}

/// A street with its number before it and a postal code: `140 Canal Street, Northport 069123`.
pub(super) fn is_address(text: &str) -> bool {
    let mut words = text.split_whitespace();
    let number = words
        .next()
        .is_some_and(|word| (1..=5).contains(&word.len()) && word.bytes().all(|b| b.is_ascii_digit()));
    // Years with a dash are none.
    let is_code = |word: &str| {
        let word = word.trim_matches([',', '.']);
        let digits = word.bytes().filter(u8::is_ascii_digit).count();
        let plain = word.bytes().all(|b| b.is_ascii_digit() || b == b'-');
        plain && (5..=6).contains(&digits) && !word.starts_with('-')
    };
    number && text.split_whitespace().count() >= 4 && words.any(is_code)
}

/// `Miller`, `O'Neill`, `Jean-Luc`.
fn is_whole(word: &str) -> bool {
    word.starts_with(char::is_uppercase) && word.chars().any(char::is_lowercase) && !word.contains('.')
}

/// `N`, `A.H.`, `E.-J.`.
fn is_initials(word: &str) -> bool {
    let letters = word.chars().filter(|ch| ch.is_alphabetic()).count();
    let plain = word.chars().all(|ch| ch.is_uppercase() || matches!(ch, '.' | '-'));
    plain && (letters == 1 || (letters <= 4 && word.chars().filter(|&ch| ch == '.').count() == letters))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn persons_are_told_from_other_titles() {
        for (text, expected) in [
            ("K Lindqvist", Some(Names::Initials)),
            ("Morten, B.K.; Aalbers, P.-J.; Ter Velde, G.", Some(Names::Initials)),
            ("John F Kennedy", Some(Names::Initials)),
            ("Ann Miller1, Joe van Dyck2 and Li Wei*", Some(Names::Several)),
            ("Ann Miller", Some(Names::One)),
            ("A Summary", None),
            ("Vitamin C", None),
            ("U.S.A.", None),
            ("Results of the year", None),
            ("Safety, Health and Environment", None),
            ("12 RULES Part 7", None),
            ("", None),
        ] {
            assert_eq!(names(text), expected, "{text}");
        }
    }

    #[test]
    fn addresses_are_told_from_numbered_headings() {
        for text in [
            "66 Harbour Road, Northport 110-123 Norland",
            "140 Canal Street Mill Building 069123",
        ] {
            assert!(is_address(text), "{text}");
        }
        for text in [
            "1 Results of 2019-2020 and after",
            "12 RULES Part 7",
            "2.1 Form 12345 and others",
        ] {
            assert!(!is_address(text), "{text}");
        }
    }
}
