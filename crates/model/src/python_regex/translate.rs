//! From one syntax to the other, left to right.

use super::class;
use super::{MAX_DEPTH, PatternError};

/// Flags in force.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Flags {
    pub(super) ignore_case: bool,
    pub(super) multi_line: bool,
    pub(super) dot_all: bool,
    pub(super) ascii: bool,
    pub(super) verbose: bool,
}

/// What stands before the place a quantifier could stand at.
#[derive(Clone, Copy, PartialEq)]
enum Before {
    /// Nothing that can be repeated.
    Nothing,
    /// Something that can.
    Atom,
    /// A quantifier.
    Quantifier,
}

pub(super) struct Translator {
    chars: Vec<char>,
    pub(super) at: usize,
    pub(super) flags: Flags,
    out: String,
    /// Flags to return to at the end of each open group.
    open: Vec<Flags>,
    names: Vec<String>,
    before: Before,
}

pub(super) fn translate(pattern: &str) -> Result<String, PatternError> {
    let mut translator = Translator {
        chars: pattern.chars().collect(),
        at: 0,
        flags: Flags::default(),
        out: String::new(),
        open: Vec::new(),
        names: Vec::new(),
        before: Before::Nothing,
    };
    translator.run()?;
    Ok(translator.out)
}

impl Translator {
    pub(super) fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    pub(super) fn peek_at(&self, offset: usize) -> Option<char> {
        self.chars.get(self.at + offset).copied()
    }

    pub(super) fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += 1;
        Some(c)
    }

    pub(super) fn take(&mut self, text: &str) -> bool {
        let found = text
            .chars()
            .enumerate()
            .all(|(offset, c)| self.peek_at(offset) == Some(c));
        if found {
            self.at += text.chars().count();
        }
        found
    }

    pub(super) fn invalid<T>(&self, problem: &'static str, at: usize) -> Result<T, PatternError> {
        Err(PatternError::Invalid { problem, at })
    }

    pub(super) fn unsupported<T>(&self, construct: &'static str, at: usize) -> Result<T, PatternError> {
        Err(PatternError::Unsupported { construct, at })
    }

    fn run(&mut self) -> Result<(), PatternError> {
        while let Some(c) = self.next() {
            let at = self.at - 1;
            match c {
                '(' => self.open_group(at)?,
                ')' => match self.open.pop() {
                    Some(flags) => {
                        self.flags = flags;
                        self.atom(")");
                    }
                    None => return self.invalid("a closing parenthesis without an opening one", at),
                },
                '|' => {
                    self.out.push('|');
                    self.before = Before::Nothing;
                }
                '[' => {
                    let class = class::read(self, at)?;
                    self.atom_string(&class);
                }
                '*' | '+' | '?' => self.quantifier(c.to_string(), at)?,
                '{' => match self.counts()? {
                    Some(counts) => self.quantifier(counts, at)?,
                    None => self.atom("\\{"),
                },
                '^' => self.assertion(if self.flags.multi_line { "(?m:^)" } else { "\\A" }),
                '$' => self.assertion(if self.flags.multi_line { "(?m:$)" } else { "\\z" }),
                '.' => self.atom(if self.flags.dot_all { "(?s:.)" } else { "[^\\n]" }),
                '\\' => self.escape(at)?,
                '#' if self.flags.verbose => while self.next().is_some_and(|c| c != '\n') {},
                c if self.flags.verbose && (c.is_ascii_whitespace() || c == '\u{b}') => {}
                c => self.literal(c),
            }
        }
        match self.open.is_empty() {
            true => Ok(()),
            false => self.invalid("a group that is not closed", self.chars.len()),
        }
    }

    fn atom(&mut self, text: &str) {
        self.out.push_str(text);
        self.before = Before::Atom;
    }

    fn atom_string(&mut self, text: &str) {
        let text = if self.flags.ignore_case {
            format!("(?i:{text})")
        } else {
            text.to_owned()
        };
        self.atom(&text);
    }

    /// Places can't be repeated in a useful way, yet both syntaxes let it be.
    fn assertion(&mut self, text: &str) {
        self.out.push_str(text);
        self.before = Before::Atom;
    }

    fn literal(&mut self, c: char) {
        let literal = regex::escape(c.encode_utf8(&mut [0; 4]));
        self.atom_string(&literal);
    }

    fn quantifier(&mut self, quantifier: String, at: usize) -> Result<(), PatternError> {
        match self.before {
            Before::Nothing => return self.invalid("a quantifier with nothing to repeat", at),
            Before::Quantifier => return self.invalid("a quantifier of a quantifier", at),
            Before::Atom => {}
        }
        self.out.push_str(&quantifier);
        if self.take("?") {
            self.out.push('?');
        } else if self.peek() == Some('+') {
            return self.unsupported("a possessive quantifier", at);
        }
        self.before = Before::Quantifier;
        Ok(())
    }

    /// Reads the rest of `{m}`, `{m,}`, `{,n}` or `{m,n}`; anything else in braces is text.
    fn counts(&mut self) -> Result<Option<String>, PatternError> {
        let start = self.at;
        let low = self.digits();
        let comma = self.take(",");
        let high = if comma { self.digits() } else { String::new() };
        if !self.take("}") || (!comma && low.is_empty()) {
            self.at = start;
            return Ok(None);
        }
        let number = |digits: &str| digits.parse::<u32>().map_err(|_| PatternError::TooLarge);
        let least = if low.is_empty() { 0 } else { number(&low)? };
        if !comma {
            return Ok(Some(format!("{{{least}}}")));
        }
        if high.is_empty() {
            return Ok(Some(format!("{{{least},}}")));
        }
        let most = number(&high)?;
        if most < least {
            return self.invalid("a repetition whose minimum is above its maximum", start);
        }
        Ok(Some(format!("{{{least},{most}}}")))
    }

    fn digits(&mut self) -> String {
        let mut digits = String::new();
        while let Some(c) = self.peek().filter(char::is_ascii_digit) {
            digits.push(c);
            self.at += 1;
        }
        digits
    }

    fn open_group(&mut self, at: usize) -> Result<(), PatternError> {
        if self.open.len() >= MAX_DEPTH {
            return self.invalid("groups within groups too deep", at);
        }
        let outside = self.flags;
        if !self.take("?") {
            self.out.push('(');
        } else if self.take("P<") {
            let name = self.name('>', at)?;
            if self.names.contains(&name) {
                return self.invalid("a second group of the same name", at);
            }
            self.out.push_str(&format!("(?P<{name}>"));
            self.names.push(name);
        } else if self.take("P=") {
            return self.unsupported("a back-reference", at);
        } else if self.take("#") {
            while let Some(c) = self.next() {
                if c == ')' {
                    return Ok(());
                }
            }
            return self.invalid("a comment that is not closed", at);
        } else if self.take(":") {
            self.out.push_str("(?:");
        } else if self.take("=") || self.take("!") {
            return self.unsupported("look-ahead", at);
        } else if self.take("<=") || self.take("<!") {
            return self.unsupported("look-behind", at);
        } else if self.take(">") {
            return self.unsupported("an atomic group", at);
        } else if self.take("(") {
            return self.unsupported("a conditional group", at);
        } else if !self.flag_group(at)? {
            return Ok(());
        }
        self.open.push(outside);
        self.before = Before::Nothing;
        Ok(())
    }

    fn name(&mut self, end: char, at: usize) -> Result<String, PatternError> {
        let mut name = String::new();
        while let Some(c) = self.next() {
            if c == end {
                break;
            }
            name.push(c);
        }
        let starts = |c: char| c.is_ascii_alphabetic() || c == '_';
        let good = name.starts_with(starts) && name.chars().all(|c| starts(c) || c.is_ascii_digit());
        match good {
            true => Ok(name),
            false => self.invalid("a group name that is no ASCII identifier", at),
        }
    }

    /// Reads `(?flags)` or `(?flags-flags:`; says whether a group was opened.
    fn flag_group(&mut self, at: usize) -> Result<bool, PatternError> {
        let mut flags = self.flags;
        let mut on = true;
        while let Some(c) = self.next() {
            match c {
                'i' => flags.ignore_case = on,
                'm' => flags.multi_line = on,
                's' => flags.dot_all = on,
                'x' => flags.verbose = on,
                'a' if on => flags.ascii = true,
                'u' if on => flags.ascii = false,
                'L' => return self.unsupported("the locale flag `L`", at),
                '-' if on => on = false,
                ':' => {
                    self.flags = flags;
                    self.out.push_str("(?:");
                    return Ok(true);
                }
                // For the whole pattern, so Python wants it at the start.
                ')' if on && self.out.is_empty() && self.open.is_empty() => {
                    self.flags = flags;
                    return Ok(false);
                }
                ')' => return self.invalid("flags for the whole pattern that do not stand at its start", at),
                _ => break,
            }
        }
        self.invalid("an unknown kind of group", at)
    }

    fn escape(&mut self, at: usize) -> Result<(), PatternError> {
        let Some(c) = self.next() else {
            return self.invalid("a backslash at the end", at);
        };
        if let Some(set) = class::set(c, self.flags.ascii) {
            self.atom(&format!("[{set}]"));
            return Ok(());
        }
        match c {
            'A' => self.assertion("\\A"),
            'Z' | 'z' => self.assertion("\\z"),
            'b' => self.assertion(if self.flags.ascii { "(?-u:\\b)" } else { "\\b" }),
            // The matcher has it for bytes alone, where it could stand within a character.
            'B' if self.flags.ascii => return self.unsupported("`\\B` with the flag `a`", at),
            'B' => self.assertion("\\B"),
            '1'..='9' if !self.is_octal() => return self.unsupported("a back-reference", at),
            _ => {
                let literal = self.escaped_char(c, at)?;
                self.literal(literal);
            }
        }
        Ok(())
    }

    /// Whether the digit just read begins an octal number of three digits.
    fn is_octal(&self) -> bool {
        let octal = |c: Option<char>| c.is_some_and(|c| c.is_digit(8));
        octal(self.chars.get(self.at.wrapping_sub(1)).copied()) && octal(self.peek()) && octal(self.peek_at(1))
    }

    /// The character that a backslash and `c`, which has been read, stand for.
    pub(super) fn escaped_char(&mut self, c: char, at: usize) -> Result<char, PatternError> {
        Ok(match c {
            'a' => '\u{7}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\u{b}',
            'x' => self.code(16, 2, at)?,
            'u' => self.code(16, 4, at)?,
            'U' => self.code(16, 8, at)?,
            'N' => return self.unsupported("a character by its name", at),
            '0'..='7' => {
                let mut value = u32::from(c) - u32::from('0');
                let mut count = 1;
                while let Some(digit) = self.peek().and_then(|c| c.to_digit(8)).filter(|_| count < 3) {
                    value = value * 8 + digit;
                    self.at += 1;
                    count += 1;
                }
                char::from_u32(value)
                    .filter(|_| value <= 0o377)
                    .map_or_else(|| self.invalid("an octal number above 0o377", at), Ok)?
            }
            c if c.is_ascii_alphanumeric() => return self.invalid("an unknown escape", at),
            c => c,
        })
    }

    fn code(&mut self, radix: u32, digits: usize, at: usize) -> Result<char, PatternError> {
        let mut value = 0u32;
        for _ in 0..digits {
            match self.next().and_then(|c| c.to_digit(radix)) {
                Some(digit) => value = value.wrapping_mul(radix).wrapping_add(digit),
                None => return self.invalid("an incomplete character code", at),
            }
        }
        char::from_u32(value).map_or_else(|| self.invalid("a code that is no character", at), Ok)
    }
}
