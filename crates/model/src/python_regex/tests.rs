use super::*;

fn found<'t>(pattern: &str, text: &'t str) -> Vec<&'t str> {
    let regex = compile(&translate(pattern).unwrap_or_else(|error| panic!("{pattern}: {error}"))).unwrap();
    regex.find_iter(text).map(|found| found.as_str()).collect()
}

#[test]
fn everyday_patterns_find_what_they_find_in_python() {
    assert_eq!(
        found(r"\b\d{4}-\d{2}-\d{2}\b", "on 2024-01-31, x2024-01-31"),
        ["2024-01-31"]
    );
    assert_eq!(
        found(r"[\w.+-]+@[\w-]+\.[\w.]+", "a.b+c@ex-ample.org, ä@b.de"),
        ["a.b+c@ex-ample.org", "ä@b.de"]
    );
    assert_eq!(
        found(r"(?i)invoice\s*(?:no|#)[.:]?\s*[A-Z0-9-]+", "Invoice No: ab-12"),
        ["Invoice No: ab-12"]
    );
    assert_eq!(
        found(r"(?P<value>\$[\d,]+(?:\.\d\d)?)", "$1,200.50 and $3"),
        ["$1,200.50", "$3"]
    );
    assert_eq!(found(r"a{,2}b", "aaab"), ["aab"]);
    assert_eq!(found(r"^x$", "x"), ["x"]);
    assert_eq!(found(r"(?m)^b.$", "a1\nb2\nb3"), ["b2", "b3"]);
    assert_eq!(found(r"(?s)a.b", "a\nb"), ["a\nb"]);
    assert_eq!(found(r"a.b", "a\nb a\rb"), ["a\rb"]);
}

#[test]
fn characters_stand_for_what_they_stand_for_in_python() {
    assert_eq!(found(r"[a&&b]+", "a&b"), ["a&b"]);
    assert_eq!(found(r"[]x[-]+", "]x[-"), ["]x[-"]);
    assert_eq!(found(r"[^\W\d]+", "ab12_c"), ["ab", "_c"]);
    assert_eq!(found(r"a{x}{", "a{x}{"), ["a{x}{"]);
    assert_eq!(found(r"\x41\u00e4\101\0?", "AäA"), ["AäA"]);
    assert_eq!(found(r"[\b\n]", "a\u{8}"), ["\u{8}"]);
    assert_eq!(found(r"(?x) a [ ] b # comment", "a b"), ["a b"]);
    assert_eq!(found(r"(?a)\w+", "aä"), ["a"]);
    assert_eq!(found(r"(?i:A)b", "abAB"), ["ab"]);
    assert_eq!(found(r"a(?#note)b", "ab"), ["ab"]);
    assert_eq!(found(r"\s", "\u{1c}\u{a0}").len(), 2);
    assert_eq!(found(r"end\Z", "end end"), ["end"]);
}

#[test]
fn what_has_no_translation_is_refused_by_name() {
    for (pattern, name) in [
        (r"a(?=b)", "look-ahead"),
        (r"a(?!b)", "look-ahead"),
        (r"(?<=a)b", "look-behind"),
        (r"(?<!a)b", "look-behind"),
        (r"(a)\1", "back-reference"),
        (r"(?P<x>a)(?P=x)", "back-reference"),
        (r"(?>a)b", "atomic"),
        (r"a++", "possessive"),
        (r"(a)?(?(1)b|c)", "conditional"),
        (r"(?L)a", "locale"),
        (r"\N{DASH}", "name"),
        (r"(?a)\B", "`a`"),
    ] {
        let error = translate(pattern).unwrap_err();
        assert!(
            matches!(error, PatternError::Unsupported { .. }),
            "{pattern}: {error:?}"
        );
        assert!(error.to_string().contains(name), "{pattern}: {error}");
    }
}

#[test]
fn what_python_refuses_is_refused() {
    for pattern in [
        "a**",
        "*a",
        "(",
        ")",
        "[a",
        "(?P<1>a)",
        r"\q",
        "a(?i)b",
        "[z-a]",
        r"[\w-a]",
        "a{3,2}",
        "\\",
        "(?P<a>.)(?P<a>.)",
        "(?z)",
        "(?#",
    ] {
        assert!(
            matches!(translate(pattern), Err(PatternError::Invalid { .. })),
            "{pattern}: {:?}",
            translate(pattern)
        );
    }
    assert_eq!(translate(r"(?:\w{1000}){1000}"), Err(PatternError::TooLarge));
    assert_eq!(translate("a{99999999999}"), Err(PatternError::TooLarge));
    assert_eq!(
        translate(&"a".repeat(MAX_PATTERN_CHARS + 1)),
        Err(PatternError::TooLong)
    );
    assert!(translate(&"(".repeat(1_000)).is_err());
}

#[test]
fn no_text_makes_it_panic_and_what_is_translated_compiles() {
    // A small fixed generator: each text is one of many mixtures of the characters that mean something.
    let alphabet: Vec<char> = r"()[]{}?*+|^$.\\-,:=!<>#PiamsxudwbBZN01a ä&~".chars().collect();
    let mut state = 7u64;
    for _ in 0..20_000 {
        let mut text = String::new();
        for _ in 0..(state >> 60) + 1 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            text.extend(alphabet.get((state >> 33) as usize % alphabet.len()));
        }
        let translated = translate(&text);
        assert!(
            !matches!(translated, Err(PatternError::Refused(_))),
            "{text}: {translated:?}"
        );
    }
}
