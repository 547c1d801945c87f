//! The setting `mail.smtp_url`.

use std::fmt;
use std::net::IpAddr;

use percent_encoding::percent_decode_str;
use url::{Host, Url};

use super::ConfigError;

/// How the connection is encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encryption {
    /// From the first byte.
    Implicit,
    /// By STARTTLS, or nothing is sent.
    Required,
    /// By STARTTLS where the server offers it; its certificate is not checked.
    Opportunistic,
    /// Not at all.
    None,
}

/// Where and how mails are handed over.
///
/// `smtp://[USER:PASSWORD@]HOST[:PORT]` encrypts by STARTTLS and sends nothing where that fails; the port
/// is 587 unless given. `smtps://` encrypts from the first byte, port 465. User and password are
/// percent-encoded. `?tls=opportunistic` encrypts where the server offers it without checking whom it
/// speaks to, which is what happens by itself when the host is this machine (`localhost`, 127.0.0.1, ::1);
/// `?tls=none` never encrypts; `?tls=required` insists, on this machine too. `smtp+starttls://` is
/// `smtp://` with `?tls=required`. `Debug` and `Display` hide user and password.
#[derive(Clone, PartialEq, Eq)]
pub struct SmtpUrl {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) encryption: Encryption,
    pub(super) login: Option<(String, String)>,
}

impl SmtpUrl {
    /// Reads the setting.
    ///
    /// # Errors
    /// [`ConfigError`] says what is wrong, without user and password.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        let wrong = |why: &str| ConfigError(format!("mail.smtp_url: {why}"));
        let url = Url::parse(text.trim()).map_err(|error| {
            wrong(&format!("this is no URL ({error}); write smtp://user:password@mail.example.com:587, with @ : / # ? and % in user and password percent-encoded"))
        })?;
        let (standard_port, scheme) = match url.scheme() {
            "smtp" => (587, None),
            "smtp+starttls" => (587, Some(Encryption::Required)),
            "smtps" => (465, Some(Encryption::Implicit)),
            other => return Err(wrong(&format!("it begins with smtp:// or smtps://, not {other}:"))),
        };
        let host = host(&url).ok_or_else(|| wrong("it names no host, or one that can't be"))?;
        if !matches!(url.path(), "" | "/") || url.fragment().is_some() {
            return Err(wrong(
                "nothing but ?tls=... may follow host and port (percent-encode / ? and # in a password)",
            ));
        }
        let asked = asked(&url).map_err(|why| wrong(&why))?;
        let encryption = match (scheme, asked) {
            (Some(fixed), None) => fixed,
            (Some(fixed), Some(asked)) if fixed == asked => fixed,
            (Some(_), Some(_)) => return Err(wrong("the scheme already says how to encrypt: leave ?tls= away")),
            (None, Some(asked)) => asked,
            (None, None) if is_loopback(&host) => Encryption::Opportunistic,
            (None, None) => Encryption::Required,
        };
        if url.port() == Some(0) {
            return Err(wrong("port 0 is none"));
        }
        Ok(Self {
            host: host.to_string().trim_matches(['[', ']']).to_owned(),
            port: url.port().unwrap_or(standard_port),
            encryption,
            login: login(&url).map_err(wrong)?,
        })
    }

    /// Whether user and password could go over a network that others listen to, so that the server may
    /// warn at its start.
    pub fn exposes_login(&self) -> bool {
        let weak = matches!(self.encryption, Encryption::None | Encryption::Opportunistic);
        let local = Host::parse(&self.host).is_ok_and(|host| is_loopback(&host)) || self.host == "::1";
        self.login.is_some() && weak && !local
    }
}

fn host(url: &Url) -> Option<Host> {
    // Hosts of schemes that are not special come as they were written.
    let text = url.host_str()?;
    let decoded = percent_decode_str(text).decode_utf8().ok()?;
    Host::parse(&decoded).ok()
}

fn asked(url: &Url) -> Result<Option<Encryption>, String> {
    let mut asked = None;
    for (key, value) in url.query_pairs() {
        if key != "tls" {
            return Err(format!("`{key}` is not known; only ?tls= may follow"));
        }
        asked = Some(match value.as_ref() {
            "required" => Encryption::Required,
            "opportunistic" => Encryption::Opportunistic,
            "none" => Encryption::None,
            _ => return Err("tls is required, opportunistic or none".into()),
        });
    }
    Ok(asked)
}

fn login(url: &Url) -> Result<Option<(String, String)>, &'static str> {
    let decoded = |text: &str| {
        percent_decode_str(text)
            .decode_utf8()
            .map(|text| text.into_owned())
            .ok()
    };
    match (url.username(), url.password()) {
        ("", None) => Ok(None),
        ("", Some(_)) => Err("it has a password but no user"),
        (_, None) => Err("it has a user but no password"),
        (user, Some(password)) => {
            let pair = decoded(user).zip(decoded(password));
            let (user, password) = pair.ok_or("user or password is not UTF-8 when percent-decoded")?;
            // SASL PLAIN separates by NUL; nothing of this is typed by people.
            if user.chars().chain(password.chars()).any(char::is_control) {
                return Err("user and password hold no control characters");
            }
            Ok(Some((user, password)))
        }
    }
}

fn is_loopback(host: &Host) -> bool {
    match host {
        Host::Domain(name) => name == "localhost" || name.ends_with(".localhost"),
        Host::Ipv4(ip) => ip.is_loopback(),
        Host::Ipv6(ip) => IpAddr::V6(*ip).to_canonical().is_loopback(),
    }
}

impl fmt::Display for SmtpUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.encryption == Encryption::Implicit {
            "smtps"
        } else {
            "smtp"
        };
        let login = if self.login.is_some() { "***@" } else { "" };
        let (open, close) = if self.host.contains(':') { ("[", "]") } else { ("", "") };
        write!(f, "{scheme}://{login}{open}{}{close}:{}", self.host, self.port)
    }
}

impl fmt::Debug for SmtpUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SmtpUrl({self}, {:?})", self.encryption)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_say_where_and_how() {
        for (text, host, port, encryption) in [
            ("smtp://mail.example.com", "mail.example.com", 587, Encryption::Required),
            (
                "smtp+starttls://mail.example.com/",
                "mail.example.com",
                587,
                Encryption::Required,
            ),
            ("smtp+starttls://127.0.0.1:25", "127.0.0.1", 25, Encryption::Required),
            (
                "smtps://mail.example.com",
                "mail.example.com",
                465,
                Encryption::Implicit,
            ),
            (
                "smtp://mail.example.com:2525?tls=none",
                "mail.example.com",
                2525,
                Encryption::None,
            ),
            ("smtp://localhost:1025", "localhost", 1025, Encryption::Opportunistic),
            (
                "smtp://LOCALHOST:1025?tls=required",
                "localhost",
                1025,
                Encryption::Required,
            ),
            ("smtp://[::1]:1025", "::1", 1025, Encryption::Opportunistic),
            ("smtp://[2001:db8::1]", "2001:db8::1", 587, Encryption::Required),
            (
                "smtp://b%C3%BCcher.example",
                "xn--bcher-kva.example",
                587,
                Encryption::Required,
            ),
            (
                " smtp://mail:25?tls=opportunistic\n",
                "mail",
                25,
                Encryption::Opportunistic,
            ),
        ] {
            let url = SmtpUrl::parse(text).unwrap();
            assert_eq!(
                (url.host.as_str(), url.port, url.encryption),
                (host, port, encryption),
                "{text}"
            );
        }
    }

    #[test]
    fn logins_are_decoded_and_hidden() {
        let url = SmtpUrl::parse("smtp://mill%40example.com:p%40ss%3Aw%2F%C3%B6rd@mail.example.com").unwrap();
        assert_eq!(url.login, Some(("mill@example.com".into(), "p@ss:w/örd".into())));
        assert_eq!(format!("{url:?}"), "SmtpUrl(smtp://***@mail.example.com:587, Required)");
        assert!(!url.exposes_login());
        assert!(
            SmtpUrl::parse("smtp://u:p@mail.example.com?tls=none")
                .unwrap()
                .exposes_login()
        );
        assert!(!SmtpUrl::parse("smtp://u:p@[::1]?tls=none").unwrap().exposes_login());
        assert!(!SmtpUrl::parse("smtp://u:p@localhost").unwrap().exposes_login());
    }

    #[test]
    fn what_is_wrong_is_said_without_the_password() {
        for (text, why) in [
            ("mail.example.com:25", "begins with smtp"),
            ("", "no URL"),
            ("http://u:hunter2@mail.example.com", "begins with smtp"),
            ("smtp://", "no host"),
            ("smtp:mail.example.com", "no host"),
            ("smtp://u:hunter2@", "no URL"),
            ("smtp://:hunter2@mail.example.com", "no user"),
            ("smtp://u@mail.example.com", "no password"),
            ("smtp://u:hunter2/x@mail.example.com", "no URL|follow"),
            ("smtp://u:hunter2@mail.example.com:99999", "no URL"),
            ("smtp://u:hunter2@mail.example.com:0", "port 0"),
            ("smtp://u:hunter2@mail.example.com/path", "follow"),
            ("smtp://u:hunter2@mail.example.com#x", "follow"),
            ("smtp://u:hunter2@mail.example.com?tls=maybe", "opportunistic or none"),
            ("smtp://u:hunter2@mail.example.com?ssl=1", "not known"),
            ("smtps://u:hunter2@mail.example.com?tls=none", "scheme"),
            ("smtp://u:hunter2%00@mail.example.com", "control"),
            ("smtp://u:hunter2%ff@mail.example.com", "UTF-8"),
            ("smtp://u:hunter2@ma il.example.com", "no URL|no host"),
        ] {
            let error = SmtpUrl::parse(text).unwrap_err().to_string();
            assert!(why.split('|').any(|why| error.contains(why)), "{text}: {error}");
            assert!(!error.contains("hunter2"), "{error}");
        }
    }
}
