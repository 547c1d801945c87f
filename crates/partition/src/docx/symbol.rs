//! Characters of symbol fonts, which files name by their position in the font.

/// The Unicode character at `code` (hexadecimal, as in `w:sym`) of a font; `None` when not mappable.
pub(super) fn symbol(font: &str, code: &str) -> Option<char> {
    let code = u32::from_str_radix(code, 16).ok()?;
    // Symbol fonts are addressed in a private-use range or directly.
    let position = if (0xF000..=0xF0FF).contains(&code) {
        code - 0xF000
    } else {
        code
    };
    let font = font.to_ascii_lowercase();
    if font.starts_with("wingdings 2") {
        wingdings2(position)
    } else if font.starts_with("wingdings") {
        wingdings(position)
    } else if font == "symbol" {
        symbol_font(position)
    } else {
        char::from_u32(code).filter(|_| !(0xE000..=0xF8FF).contains(&code))
    }
}

fn wingdings(position: u32) -> Option<char> {
    Some(match position {
        0x21 => '✏',
        0x22 => '✂',
        0x28 => '☎',
        0x2A => '✉',
        0x36 => '⌛',
        0x4A => '☺',
        0x4B => '😐',
        0x4C => '☹',
        0x4D => '💣',
        0x4E => '☠',
        0x46 => '☞',
        0x45 => '☜',
        0x52 => '☼',
        0x54 => '❄',
        0x6C => '●',
        0x6D => '❍',
        0x6E => '■',
        0x6F | 0x70 | 0xA8 => '□',
        0x71 => '❑',
        0x72 => '❒',
        0x73 => '⬧',
        0x74 => '⧫',
        0x75 => '◆',
        0x76 => '❖',
        0x77 => '⬥',
        0x9F | 0x9E => '•',
        0xA1 => '○',
        0xA7 => '▪',
        0xAB => '★',
        0xD8 => '➢',
        0xDF => '←',
        0xE0 => '→',
        0xE1 => '↑',
        0xE2 => '↓',
        0xE8 => '➔',
        0xEF => '⇦',
        0xF0 => '⇨',
        0xF1 => '⇧',
        0xF2 => '⇩',
        0xF3 => '⬄',
        0xFB => '✗',
        0xFC => '✓',
        0xFD => '☒',
        0xFE => '☑',
        0x80 => '⓪',
        0x81..=0x8A => return char::from_u32(0x2460 + position - 0x81),
        0x8C..=0x95 => return char::from_u32(0x2776 + position - 0x8C),
        _ => return None,
    })
}

fn wingdings2(position: u32) -> Option<char> {
    Some(match position {
        0x4F => '✗',
        0x50 => '✓',
        0x51 | 0x53 => '☒',
        0x52 => '☑',
        0xA3 => '□',
        0x97 | 0x98 => '●',
        _ => return None,
    })
}

fn symbol_font(position: u32) -> Option<char> {
    /// From position 0x41: capital letters, then small ones from 0x61.
    const UPPER: &str = "ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖ";
    const LOWER: &str = "αβχδεφγηιϕκλμνοπθρστυϖωξψζ";
    /// From position 0xA1.
    const SIGNS: &str = "ϒ′≤⁄∞ƒ♣♦♥♠↔←↑→↓°±″≥×∝∂•÷≠≡≈…⏐⎯↵ℵℑℜ℘⊗⊕∅∩∪⊃⊇⊄⊂⊆∈∉∠∇®©™∏√⋅¬∧∨⇔⇐⇑⇒⇓◊〈®©™∑";
    let at = |text: &str, n: u32| text.chars().nth(n as usize);
    match position {
        0x41..=0x5A => at(UPPER, position - 0x41),
        0x61..=0x7A => at(LOWER, position - 0x61),
        0xA1..=0xE5 => at(SIGNS, position - 0xA1),
        0x22 => Some('∀'),
        0x24 => Some('∃'),
        0x27 => Some('∋'),
        0x2A => Some('∗'),
        0x2D => Some('−'),
        0x40 => Some('≅'),
        0x5C => Some('∴'),
        0x5E => Some('⊥'),
        0x7E => Some('∼'),
        0xF2 => Some('∫'),
        0x20..=0x7D => char::from_u32(position),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_positions() {
        assert_eq!(symbol("Wingdings", "F0FC"), Some('✓'));
        assert_eq!(symbol("Symbol", "F061"), Some('α'));
        assert_eq!(symbol("Symbol", "B3"), Some('≥'));
        assert_eq!(symbol("Symbol", "F0E5"), Some('∑'));
        assert_eq!(symbol("Arial", "2022"), Some('•'));
        assert_eq!(symbol("Arial", "F0FC"), None);
        assert_eq!(symbol("Wingdings", "zz"), None);
    }
}
