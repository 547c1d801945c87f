//! Numbers in the formats of lists.

/// `n` in a number format of WordprocessingML (`ST_NumberFormat`); what is not known is decimal.
pub(crate) fn format_number(n: i64, format: &str) -> String {
    match format {
        "none" => String::new(),
        "decimalZero" => format!("{n:02}"),
        "upperRoman" => roman(n).to_uppercase(),
        "lowerRoman" => roman(n),
        "upperLetter" => letters(n, 'A'),
        "lowerLetter" => letters(n, 'a'),
        "ordinal" => ordinal(n),
        "decimalEnclosedCircle" | "decimalEnclosedCircleChinese" if (1..=20).contains(&n) => u32::try_from(n)
            .ok()
            .and_then(|n| char::from_u32(0x245F + n))
            .map(String::from)
            .unwrap_or_default(),
        "chineseCounting"
        | "chineseCountingThousand"
        | "taiwaneseCounting"
        | "taiwaneseCountingThousand"
        | "japaneseCounting"
        | "ideographDigital"
        | "japaneseDigitalTenThousand" => han(n),
        _ => n.to_string(),
    }
}

fn roman(n: i64) -> String {
    const SIGNS: &[(i64, &str)] = &[
        (1000, "m"),
        (900, "cm"),
        (500, "d"),
        (400, "cd"),
        (100, "c"),
        (90, "xc"),
        (50, "l"),
        (40, "xl"),
        (10, "x"),
        (9, "ix"),
        (5, "v"),
        (4, "iv"),
        (1, "i"),
    ];
    if !(1..4000).contains(&n) {
        return n.to_string();
    }
    let mut rest = n;
    let mut out = String::new();
    for (value, sign) in SIGNS {
        while rest >= *value {
            out.push_str(sign);
            rest -= value;
        }
    }
    out
}

/// a, b, ... z, aa, bb, ...: the letter is repeated, as word processors do.
fn letters(n: i64, first: char) -> String {
    if !(1..=26 * 20).contains(&n) {
        return n.to_string();
    }
    let at = u32::try_from((n - 1) % 26).unwrap_or(0);
    let times = usize::try_from((n - 1) / 26 + 1).unwrap_or(1);
    let letter = char::from_u32(u32::from(first) + at).unwrap_or(first);
    std::iter::repeat_n(letter, times).collect()
}

fn ordinal(n: i64) -> String {
    let suffix = match (n % 10, n % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{n}{suffix}")
}

fn han(n: i64) -> String {
    const DIGITS: [char; 10] = ['〇', '一', '二', '三', '四', '五', '六', '七', '八', '九'];
    let digit = |d: i64| {
        usize::try_from(d)
            .ok()
            .and_then(|d| DIGITS.get(d))
            .copied()
            .unwrap_or('〇')
    };
    match n {
        0..=9 => digit(n).to_string(),
        10..=99 => {
            let mut out = String::new();
            if n >= 20 {
                out.push(digit(n / 10));
            }
            out.push('十');
            if n % 10 > 0 {
                out.push(digit(n % 10));
            }
            out
        }
        _ => n.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_formats() {
        assert_eq!(format_number(4, "lowerRoman"), "iv");
        assert_eq!(format_number(28, "lowerLetter"), "bb");
        assert_eq!(format_number(0, "lowerLetter"), "0");
        assert_eq!(format_number(22, "ordinal"), "22nd");
        assert_eq!(format_number(12, "chineseCounting"), "十二");
        assert_eq!(format_number(3, "decimalEnclosedCircle"), "③");
        assert_eq!(format_number(7, "decimalZero"), "07");
    }
}
