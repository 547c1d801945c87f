//! Mail addresses: one bare address at a time, nothing of the rest of RFC 5322's grammar.

use std::fmt;

use lettre::Address;

use crate::words::one_line;

/// Longest part before the `@`, in bytes (RFC 5321, 4.5.3.1.1).
const LONGEST_LOCAL: usize = 64;
/// Longest address, in bytes (RFC 5321, 4.5.3.1.3: a path of 256 holds it and its angle brackets).
const LONGEST: usize = 254;
/// Characters of an unquoted local part besides letters, digits and dots (RFC 5322, 3.2.3).
const ATOM: &str = "!#$%&'*+-/=?^_`{|}~";
/// Longest name of a sender, in characters.
const LONGEST_NAME: usize = 64;

/// Why a text is not taken as an address. The text says what is wrong; it never repeats the address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct AddressError(String);

/// One address that a mail can be sent to: `local@domain`, ASCII, the domain in its IDNA form.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Mailbox(Address);

impl Mailbox {
    /// Reads one bare address.
    ///
    /// Refused: names and angle brackets, lists and groups, comments, quoted local parts, addresses by IP,
    /// domains without a dot, more than 64 bytes before the `@` or 254 in all, control characters, and
    /// letters outside ASCII before the `@` (they need an extension, SMTPUTF8, that many servers lack).
    /// A domain outside ASCII is turned into its IDNA form.
    ///
    /// # Errors
    /// [`AddressError`] says what is wrong.
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        let wrong = |why: &str| Err(AddressError(why.to_owned()));
        if text.is_empty() {
            return wrong("an e-mail address is missing");
        }
        // An international domain may be longer before it is encoded; nothing sensible is this long.
        if text.len() > 4 * LONGEST {
            return wrong("the e-mail address is longer than 254 bytes");
        }
        check_characters(text)?;
        let Some((local, domain)) = text.split_once('@') else {
            return wrong("an e-mail address has an @");
        };
        if domain.contains('@') {
            return wrong("an e-mail address has one @ only");
        }
        check_local(local)?;
        let domain = ascii_domain(domain)?;
        if local.len() + 1 + domain.len() > LONGEST {
            return wrong("the e-mail address is longer than 254 bytes");
        }
        match Address::new(local, &domain) {
            Ok(address) => Ok(Self(address)),
            Err(_) => wrong("this is not an e-mail address"),
        }
    }

    /// The address.
    pub fn as_str(&self) -> &str {
        self.0.as_ref()
    }

    /// What stands after the `@`.
    pub fn domain(&self) -> &str {
        self.0.domain()
    }

    pub(crate) fn to_address(&self) -> Address {
        self.0.clone()
    }
}

impl fmt::Display for Mailbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Whom mails come from: an address, and a name if there is one (setting `mail.from`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sender {
    name: Option<String>,
    mailbox: Mailbox,
}

impl Sender {
    /// Reads `no-reply@example.com` or `Some name <no-reply@example.com>`.
    ///
    /// # Errors
    /// [`AddressError`] says what is wrong.
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        let text = text.trim();
        let Some((name, rest)) = text.split_once('<') else {
            return Ok(Self {
                name: None,
                mailbox: Mailbox::parse(text)?,
            });
        };
        let Some(bare) = rest.strip_suffix('>') else {
            return Err(AddressError(
                "after < comes one address, then > and nothing more".into(),
            ));
        };
        let name = name.trim();
        let name = name.strip_prefix('"').and_then(|n| n.strip_suffix('"')).unwrap_or(name);
        if name.chars().count() > LONGEST_NAME
            || name.contains("=?")
            || name.chars().any(|c| c.is_control() || "\"\\<>".contains(c))
        {
            return Err(AddressError(format!(
                "the name before < has at most {LONGEST_NAME} characters and no quotes, backslashes, line breaks or =?"
            )));
        }
        Ok(Self {
            name: Some(one_line(name, LONGEST_NAME)).filter(|name| !name.is_empty()),
            mailbox: Mailbox::parse(bare)?,
        })
    }

    /// The address.
    pub fn mailbox(&self) -> &Mailbox {
        &self.mailbox
    }

    /// The name.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }
}

/// Names what is wrong with characters that no bare address has.
fn check_characters(text: &str) -> Result<(), AddressError> {
    let why = |c: char| match c {
        ',' | ';' => "give one e-mail address, not a list",
        ':' => "give an e-mail address, not a group or URL",
        '<' | '>' => "give the bare e-mail address, without a name and < >",
        '"' | '\\' => "e-mail addresses with quotes or backslashes are not supported",
        '(' | ')' => "e-mail addresses with comments in ( ) are not supported",
        '[' | ']' => "an e-mail address ends with a domain name, not with an IP address",
        _ if c.is_control() => "the e-mail address holds a control character or line break",
        _ => "the e-mail address holds a space",
    };
    // The telling character first: names and lists hold spaces too.
    let special = |c: &char| c.is_control() || ",;:<>\"\\()[]".contains(*c);
    let found = text
        .chars()
        .find(special)
        .or_else(|| text.chars().find(|c| c.is_whitespace()));
    found.map_or(Ok(()), |c| Err(AddressError(why(c).to_owned())))
}

fn check_local(local: &str) -> Result<(), AddressError> {
    let wrong = |why: &str| Err(AddressError(why.to_owned()));
    if local.is_empty() {
        return wrong("nothing stands before the @");
    }
    if !local.is_ascii() {
        return wrong("letters outside ASCII before the @ are not supported: many mail servers refuse them");
    }
    if local.len() > LONGEST_LOCAL {
        return wrong("more than 64 characters stand before the @");
    }
    if local.split('.').any(str::is_empty) {
        return wrong("before the @ no dot stands first, last or next to another");
    }
    match local
        .chars()
        .find(|c| !c.is_ascii_alphanumeric() && *c != '.' && !ATOM.contains(*c))
    {
        Some(_) => wrong("a character before the @ is not allowed there"),
        None => Ok(()),
    }
}

/// The domain as it is looked up: IDNA, lower case, labels of at most 63 bytes.
fn ascii_domain(domain: &str) -> Result<String, AddressError> {
    let wrong = |why: &str| Err(AddressError(why.to_owned()));
    if domain.is_empty() {
        return wrong("nothing stands after the @");
    }
    let Ok(ascii) = idna::domain_to_ascii_strict(domain) else {
        return wrong("what stands after the @ is not a domain name");
    };
    let Some((_, last)) = ascii.rsplit_once('.') else {
        return wrong("the domain after the @ has no dot");
    };
    if last.bytes().all(|b| b.is_ascii_digit()) {
        return wrong("an e-mail address ends with a domain name, not with an IP address");
    }
    Ok(ascii)
}

#[cfg(test)]
mod tests {
    use proptest::strategy::Strategy;

    use super::*;

    #[test]
    fn bare_addresses_are_taken() {
        for (text, address) in [
            ("ana@example.com", "ana@example.com"),
            ("Ana.Lopez+docs@Mail.Example.COM", "Ana.Lopez+docs@mail.example.com"),
            ("o'brien@example.co.uk", "o'brien@example.co.uk"),
            ("!#$%&'*+-/=?^_`{|}~@example.org", "!#$%&'*+-/=?^_`{|}~@example.org"),
            ("info@bücher.example", "info@xn--bcher-kva.example"),
            ("info@例え.テスト", "info@xn--r8jz45g.xn--zckzah"),
            ("a@b.co", "a@b.co"),
        ] {
            assert_eq!(Mailbox::parse(text).unwrap().as_str(), address);
        }
        let local = "l".repeat(64);
        let domain = format!("{}.{}.{}.example", "a".repeat(63), "b".repeat(63), "c".repeat(53));
        assert_eq!(
            Mailbox::parse(&format!("{local}@{domain}")).unwrap().as_str().len(),
            254
        );
        assert!(Mailbox::parse(&format!("{local}@x{domain}")).is_err());
        assert!(Mailbox::parse(&format!("l{local}@example.com")).is_err());
    }

    #[test]
    fn tricks_of_the_syntax_are_refused_with_the_reason() {
        for (text, why) in [
            ("", "missing"),
            ("ana", "has an @"),
            ("@example.com", "before the @"),
            ("ana@", "after the @"),
            ("ana@example.com, bob@example.com", "not a list"),
            ("ana@example.com;bob@example.com", "not a list"),
            ("friends:ana@example.com", "group"),
            ("mailto:ana@example.com", "group or URL"),
            ("Ana <ana@example.com>", "bare"),
            ("\"ana smith\"@example.com", "quotes"),
            ("ana\\@example.com", "backslashes"),
            ("ana(work)@example.com", "comments"),
            ("ana@[127.0.0.1]", "IP address"),
            ("ana@127.0.0.1", "IP address"),
            ("ana@localhost", "no dot"),
            ("ana@bob@example.com", "one @ only"),
            ("ana @example.com", "space"),
            (" ana@example.com", "space"),
            ("ana\u{a0}@example.com", "space"),
            ("ana@example.com\r\nBcc: bob@example.com", "list|group|control"),
            ("ana@example.com\n", "control"),
            ("ana\0@example.com", "control"),
            ("ana@exam\u{85}ple.com", "control"),
            (".ana@example.com", "dot"),
            ("ana.@example.com", "dot"),
            ("a..na@example.com", "dot"),
            ("änä@example.com", "ASCII"),
            ("ana@-example.com", "domain name"),
            ("ana@exa_mple.com", "domain name"),
            ("ana@example..com", "domain name"),
            ("ana@example.com.", "domain name"),
            ("ana@xn--.example", "domain name"),
            ("ana@ex\u{200b}ample.com\u{202e}", "domain name"),
        ] {
            let error = Mailbox::parse(text).unwrap_err().to_string();
            assert!(why.split('|').any(|why| error.contains(why)), "{text:?}: {error}");
        }
        let long = format!("{}@example.com", "a".repeat(300));
        assert!(Mailbox::parse(&long).is_err());
        assert!(Mailbox::parse(&"a@b.".repeat(1_000_000)).is_err());
    }

    #[test]
    fn senders_have_a_name_or_not() {
        let plain = Sender::parse("mill@example.com").unwrap();
        assert_eq!((plain.name(), plain.mailbox().as_str()), (None, "mill@example.com"));
        let named = Sender::parse(" \"Die Mühle\" <mill@example.com> ").unwrap();
        assert_eq!(named.name(), Some("Die Mühle"));
        for wrong in [
            "Mill <mill@example.com",
            "Mill <mill@example.com> x",
            "Mi\r\nll <mill@example.com>",
            "<>",
            "Mill",
            "A\"B <mill@example.com>",
            "=?utf-8?b?DQpCY2M6IGE=?= <mill@example.com>",
        ] {
            assert!(Sender::parse(wrong).is_err(), "{wrong:?}");
        }
    }

    /// Characters that addresses have and those that the syntax gives a meaning, so that some texts are taken.
    fn address_like() -> impl Strategy<Value = String> {
        "[a-z]{1,66}(\\.[a-z!+]{1,5})?[\"\\\\(,;:<> \r\n\0.]?@[a-zü]{1,66}[\\[\r\n\0 .]?(-[a-z]{1,9})?\\.[a-zé]{2,8}"
    }

    #[test]
    fn many_of_the_strange_texts_are_taken() {
        use proptest::strategy::ValueTree;
        let mut runner = proptest::test_runner::TestRunner::deterministic();
        let taken = (0..500)
            .filter(|_| Mailbox::parse(&address_like().new_tree(&mut runner).unwrap().current()).is_ok())
            .count();
        assert!((10..490).contains(&taken), "{taken}");
    }

    proptest::proptest! {
        #[test]
        fn what_is_taken_stays_what_it_is(text in address_like()) {
            if let Ok(mailbox) = Mailbox::parse(&text) {
                proptest::prop_assert!(mailbox.as_str().len() <= 254);
                proptest::prop_assert!(mailbox.as_str().bytes().all(|b| b.is_ascii_graphic()));
                proptest::prop_assert_eq!(&Mailbox::parse(mailbox.as_str()).unwrap(), &mailbox);
                let (local, _) = text.split_once('@').unwrap();
                let beginning = format!("{local}@");
                proptest::prop_assert!(mailbox.as_str().starts_with(&beginning));
            }
        }

        #[test]
        fn what_is_taken_is_one_printable_ascii_word(text in "\\PC{0,20}@?[\\PC\r\n\0]{0,20}\\.com") {
            if let Ok(mailbox) = Mailbox::parse(&text) {
                proptest::prop_assert!(mailbox.as_str().bytes().all(|b| b.is_ascii_graphic()));
                proptest::prop_assert_eq!(mailbox.as_str().matches('@').count(), 1);
                proptest::prop_assert!(!mailbox.as_str().contains([',', ';', '<', '>', '"', ':', '(', ')']));
            }
        }
    }
}
