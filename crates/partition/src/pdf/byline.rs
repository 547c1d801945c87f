//! Names of persons, as they stand below titles.

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
}
