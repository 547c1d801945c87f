//! Sets of characters.

use super::PatternError;
use super::translate::Translator;

/// White space that Python knows in addition to the Unicode property.
const WHITE_SPACE: &str = "\\s\\x1c-\\x1f";

/// What stands within brackets for `\d`, `\w` and `\s` and their opposites; `None` for other letters.
pub(super) fn set(letter: char, ascii: bool) -> Option<String> {
    let set = match (letter.to_ascii_lowercase(), ascii) {
        ('d', false) => "\\p{Nd}",
        ('d', true) => "0-9",
        ('w', false) => "\\p{L}\\p{N}_",
        ('w', true) => "0-9A-Za-z_",
        ('s', false) => WHITE_SPACE,
        ('s', true) => "\\t\\n\\r\\x0b\\x0c ",
        _ => return None,
    };
    Some(match letter.is_ascii_uppercase() {
        true => format!("[^{set}]"),
        false => set.to_owned(),
    })
}

/// One member of a class.
enum Member {
    Char(char),
    Set(String),
}

/// Reads a class whose opening bracket, at `start`, has been read. Nothing in Python's classes nests and no
/// operator is known, so every character but the hyphen stands for itself.
pub(super) fn read(from: &mut Translator, start: usize) -> Result<String, PatternError> {
    let mut out = String::from(if from.take("^") { "[^" } else { "[" });
    let mut first = true;
    loop {
        let at = from.at;
        let low = match from.next() {
            None => return from.invalid("a set of characters that is not closed", start),
            Some(']') if !first => break,
            Some(c) => member(from, c, at)?,
        };
        first = false;
        // A hyphen in front of the closing bracket is a hyphen.
        if from.peek() != Some('-') || from.peek_at(1).is_none_or(|c| c == ']') {
            push(&mut out, &low);
            continue;
        }
        from.at += 1;
        let high_at = from.at;
        let high = match from.next() {
            None => return from.invalid("a set of characters that is not closed", start),
            Some(c) => member(from, c, high_at)?,
        };
        let (Member::Char(low), Member::Char(high)) = (low, high) else {
            return from.invalid("a range with a set at one end", at);
        };
        if low > high {
            return from.invalid("a range that runs backwards", at);
        }
        push(&mut out, &Member::Char(low));
        out.push('-');
        push(&mut out, &Member::Char(high));
    }
    out.push(']');
    Ok(out)
}

fn member(from: &mut Translator, c: char, at: usize) -> Result<Member, PatternError> {
    if c != '\\' {
        return Ok(Member::Char(c));
    }
    let Some(c) = from.next() else {
        return from.invalid("a backslash at the end", at);
    };
    if let Some(set) = set(c, from.flags.ascii) {
        return Ok(Member::Set(set));
    }
    match c {
        'b' => Ok(Member::Char('\u{8}')),
        c => Ok(Member::Char(from.escaped_char(c, at)?)),
    }
}

fn push(out: &mut String, member: &Member) {
    match member {
        Member::Set(set) => out.push_str(set),
        // By its number, as other characters have a meaning here than in Python.
        Member::Char(c) if !c.is_alphanumeric() => out.push_str(&format!("\\x{{{:x}}}", u32::from(*c))),
        Member::Char(c) => out.push(*c),
    }
}
