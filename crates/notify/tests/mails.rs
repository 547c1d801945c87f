//! Whole mails, as they leave and as others read them.

mod common;

use std::path::Path;

use common::{AT, UNSUBSCRIBE, addressed, ended, report};
use docmill_model::job::JobStatus;
use docmill_notify::{Addressing, DisabledChannel, FailedFile, FileCounts, JobReport, Mail, Mailbox, Sender};
use mail_parser::{HeaderName, MessageParser};
use proptest::prelude::*;

/// Every header a mail of ours can have.
const HEADERS: &[&str] = &[
    "Date",
    "Message-ID",
    "From",
    "To",
    "Cc",
    "Reply-To",
    "Subject",
    "Auto-Submitted",
    "X-Docmill-Event",
    "List-Unsubscribe",
    "List-Unsubscribe-Post",
    "MIME-Version",
    "Content-Type",
];

fn counts(total: u64, succeeded: u64, failed: u64, stopped: u64) -> FileCounts {
    FileCounts {
        total,
        succeeded,
        failed,
        stopped,
    }
}

fn many_failed() -> JobReport {
    JobReport {
        message: Some("no file could be processed".into()),
        failed_files: (1..=25)
            .map(|n| FailedFile {
                name: format!("scan-{n:02}.tiff"),
                reason: "the image is damaged".into(),
            })
            .collect(),
        workflow_name: "Prüfung".into(),
        ..ended(JobStatus::Failed, counts(1_325, 0, 1_325, 0))
    }
}

fn digest() -> Mail {
    let reports = [
        report(),
        ended(JobStatus::InProgress, counts(3, 0, 0, 0)),
        ended(JobStatus::Scheduled, counts(1, 0, 0, 0)),
        JobReport {
            workflow_name: "Contracts".into(),
            link: None,
            ..ended(JobStatus::Stopped, counts(40, 12, 0, 28))
        },
    ];
    Mail::digest(&reports, 6, Some(UNSUBSCRIBE))
}

fn disabled() -> Mail {
    let channel = DisabledChannel {
        description: Some("To the ERP"),
        target: "https://hooks.example.net/in/s3cret?key=s3cret",
        since: AT - 5 * 86_400_000_000,
        failures: Some(64),
        last_error: "the receiver answered 500 Internal Server Error",
    };
    Mail::disabled(&channel, None)
}

/// Compares with the files in `tests/mails`; `UPDATE_MAILS=1` writes them.
#[test]
fn mails_are_as_expected() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mails");
    let unlinked = JobReport { link: None, ..report() };
    for (name, mail) in [
        (
            "verification",
            Mail::verification("042117", 10, Some("https://mill.example.com/base")),
        ),
        ("verification-unknown-host", Mail::verification("042117", 1, None)),
        ("completed-with-errors", Mail::job(&report(), Some(UNSUBSCRIBE))),
        ("without-links", Mail::job(&unlinked, None)),
        ("failed", Mail::job(&many_failed(), Some(UNSUBSCRIBE))),
        (
            "started",
            Mail::job(&ended(JobStatus::InProgress, counts(1, 0, 0, 0)), None),
        ),
        ("digest", digest()),
        ("disabled", disabled()),
        ("test", Mail::test(Some("Ops <b>on call</b>"), Some(UNSUBSCRIBE))),
    ] {
        let message = addressed(&mail);
        let is = format!(
            "Subject: {}\n\n{}\n\n{}\n\n{}",
            mail.subject,
            mail.text,
            mail.html,
            String::from_utf8(message.bytes().to_vec()).unwrap().replace('\r', "")
        );
        let path = folder.join(format!("{name}.txt"));
        if std::env::var_os("UPDATE_MAILS").is_some() {
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(&path, &is).unwrap();
        }
        let expected = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            is == expected,
            "{} differs; UPDATE_MAILS=1 writes it anew:\n{is}",
            path.display()
        );
    }
}

#[test]
fn subjects_name_workflow_status_and_counts() {
    let subject = |report: &JobReport| Mail::job(report, None).subject;
    assert_eq!(
        subject(&report()),
        "Invoices every hour: completed with errors, 8 of 10 files processed, 2 failed"
    );
    let all = ended(JobStatus::Completed, counts(1, 1, 0, 0));
    assert_eq!(subject(&all), "Invoices every hour: completed, 1 file processed");
    let none = ended(JobStatus::Completed, counts(0, 0, 0, 0));
    assert_eq!(subject(&none), "Invoices every hour: completed, no files");
    assert_eq!(
        subject(&many_failed()),
        "Prüfung: failed, 0 of 1,325 files processed, 1,325 failed"
    );
    let stopped = ended(JobStatus::Stopped, counts(40, 12, 0, 28));
    assert_eq!(
        subject(&stopped),
        "Invoices every hour: stopped, 12 of 40 files processed"
    );
    let scheduled = ended(JobStatus::Scheduled, counts(2, 0, 0, 0));
    assert_eq!(subject(&scheduled), "Invoices every hour: scheduled, 2 files");
    let long = JobReport {
        workflow_name: "x".repeat(10_000),
        ..report()
    };
    let long = subject(&long);
    assert!(long.chars().count() <= 180 && long.ends_with("2 failed"), "{long}");
    assert_eq!(
        digest().subject,
        "10 notifications (1 completed with errors, 1 stopped, 1 started, 1 scheduled)"
    );
    assert_eq!(
        Mail::digest(&[report(), report()], 0, None).subject,
        "Invoices every hour: 2 notifications (2 completed with errors)"
    );
}

#[test]
fn a_webhooks_url_and_a_code_are_not_told_where_they_are_logged() {
    let mail = disabled();
    assert!(mail.html.contains("hooks.\u{2060}example.\u{2060}net") && mail.subject.contains("hooks.example.net"));
    for text in [&mail.subject, &mail.text, &mail.html] {
        assert!(!text.contains("s3cret"));
    }
    assert!(!Mail::verification("042117", 10, None).subject.contains("042117"));
}

#[test]
fn failed_files_are_told_up_to_twenty() {
    let mail = Mail::job(&many_failed(), None);
    for part in [&mail.text, &mail.html] {
        assert_eq!(part.matches("scan-").count(), 20);
        assert!(part.contains("and 1,305 more"));
    }
}

#[test]
fn links_that_are_none_are_left_out() {
    for wrong in [
        "javascript:alert(1)",
        "mailto:a@b.c",
        "",
        "https://",
        "no\r\nBcc: x@y.z",
    ] {
        let bad = JobReport {
            link: Some(wrong.into()),
            ..report()
        };
        let mail = Mail::job(&bad, Some(wrong));
        assert!(
            !mail.html.contains("href") && !mail.text.contains("Open the job"),
            "{wrong}"
        );
        let bytes = addressed(&mail);
        assert!(!String::from_utf8_lossy(bytes.bytes()).contains("List-Unsubscribe"));
    }
}

#[test]
fn delivery_ids_are_plain() {
    let from = Sender::parse("mill@example.com").unwrap();
    let to = Mailbox::parse("ana@example.org").unwrap();
    for id in [
        "",
        "a b",
        "a>b",
        "a\r\nb",
        "ä",
        ".a",
        "a..b",
        "../../x",
        "a/b",
        &"x".repeat(65),
    ] {
        let addressing = Addressing {
            delivery_id: id,
            date: AT,
            from: &from,
            to: &to,
            cc: &[],
            reply_to: None,
        };
        assert!(Mail::test(None, None).address(&addressing).is_err(), "{id:?}");
    }
}

/// Reads a mail with a parser that knows nothing of this crate, and checks what must hold for every mail.
fn check(mail: &Mail) {
    let message = addressed(mail);
    let bytes = message.bytes();
    assert!(bytes.is_ascii());
    let text = std::str::from_utf8(bytes).unwrap();
    for line in text.split("\r\n") {
        assert!(line.len() <= 998 && !line.contains(['\r', '\n', '\0']), "{line:?}");
    }
    let (head, _) = text.split_once("\r\n\r\n").unwrap();
    for line in head.split("\r\n").filter(|line| !line.starts_with([' ', '\t'])) {
        let name = line.split(':').next().unwrap();
        assert!(HEADERS.contains(&name), "{line:?}");
    }
    let parsed = MessageParser::default().parse(bytes).unwrap();
    let names: Vec<String> = parsed.headers().iter().map(|header| header.name().to_owned()).collect();
    for name in &names {
        assert!(HEADERS.contains(&name.as_str()), "{name}");
        assert_eq!(names.iter().filter(|other| *other == name).count(), 1, "{name}");
    }
    assert!(parsed.header(HeaderName::Bcc).is_none());
    let list = |addresses: Option<&mail_parser::Address>| -> Vec<String> {
        addresses
            .into_iter()
            .flat_map(|addresses| addresses.iter())
            .map(|address| address.address().unwrap_or_default().to_owned())
            .collect()
    };
    assert_eq!(list(parsed.to()), ["ana@example.org"]);
    assert_eq!(list(parsed.cc()), ["team@xn--bcher-kva.example"]);
    assert_eq!(list(parsed.from()), ["mill@example.com"]);
    assert_eq!(list(parsed.reply_to()), ["help@example.org"]);
    assert_eq!(
        parsed.message_id(),
        Some("01979764-2b70-7c3e-8a1f-0000000000aa@example.com")
    );
    assert_eq!(parsed.subject().map(str::trim), Some(mail.subject.trim()));
    assert_eq!(parsed.parts.len(), 3);
    let plain = |text: &str| text.replace('\r', "").trim_end().to_owned();
    assert_eq!(plain(&parsed.body_text(0).unwrap()), plain(&mail.text));
    assert_eq!(plain(&parsed.body_html(0).unwrap()), plain(&mail.html));
    // The markup is the templates' alone.
    for tag in mail.html.split('<').skip(1) {
        let name: String = tag.chars().take_while(|c| c.is_ascii_alphanumeric()).collect();
        assert!(
            tag.starts_with('/') || tag.starts_with("!doctype") || TAGS.contains(&name.as_str()),
            "<{tag}"
        );
    }
    for link in mail.html.split("href=\"").skip(1) {
        assert!(link.starts_with("https://mill.example.com/"), "{link}");
    }
}

const TAGS: &[&str] = &[
    "html", "head", "meta", "title", "style", "body", "div", "p", "h1", "h2", "span", "a", "table", "tr", "td",
];

/// The bytes of a mail, unless it can't be addressed so.
fn with(mail: &Mail, delivery_id: &str, from: &Sender, to: &Mailbox) -> Option<Vec<u8>> {
    let addressing = Addressing {
        delivery_id,
        date: AT,
        from,
        to,
        cc: &[],
        reply_to: None,
    };
    Some(mail.address(&addressing).ok()?.bytes().to_vec())
}

/// Text that tries to be more than text.
fn hostile() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "\\PC{0,12}",
        any::<String>(),
        prop::sample::select(vec![
            "\r\nBcc: evil@example.net",
            "\n\n--docmill",
            "\r\n\r\n<script>",
            "=?utf-8?q?x?=",
            "=?utf-8?b?DQpCY2M6IGE=?=",
            "</style><img src=x>",
            "\" onclick=\"x",
            "{{ 7*7 }}{% raw %}",
            "https://evil.example/x",
            "\u{2028}X: y",
            "\u{85}X: y",
            "\0",
            "\u{202e}",
            ".\r\n.\r\n",
            "=0D=0ABcc: x",
            "<a href=\"https://evil.example\">",
        ])
        .prop_map(str::to_owned),
    ];
    prop::collection::vec(piece, 0..6).prop_map(|pieces| pieces.concat())
}

/// Python's parser is as strict as they come: it lists what it finds wrong.
#[test]
fn python_reads_what_was_written() {
    let nasty = "Bcc: x@evil.example\r\nX: y \u{202e}=?utf-8?q?=0D=0ABcc:_x?= <b>Größe</b> 😀\0";
    let hostile = JobReport {
        workflow_name: format!("{nasty}{}", "ü".repeat(300)),
        message: Some(nasty.into()),
        failed_files: vec![FailedFile {
            name: nasty.into(),
            reason: nasty.repeat(20),
        }],
        ..report()
    };
    let channel = DisabledChannel {
        description: Some(nasty),
        target: nasty,
        since: AT,
        failures: Some(1),
        last_error: nasty,
    };
    let mails = [
        Mail::verification("042117", 10, Some("https://mill.example.com")),
        Mail::job(&report(), Some(UNSUBSCRIBE)),
        Mail::job(&many_failed(), None),
        Mail::job(&hostile, Some(UNSUBSCRIBE)),
        digest(),
        Mail::digest(&[hostile.clone(), hostile], 3, None),
        disabled(),
        Mail::disabled(&channel, None),
        Mail::test(Some(nasty), Some(UNSUBSCRIBE)),
    ];
    let folder = tempfile::tempdir().unwrap();
    let mut command = docmill_testkit::python("read_mail.py");
    for (index, mail) in mails.iter().enumerate() {
        let path = folder.path().join(format!("{index}.eml"));
        std::fs::write(&path, addressed(mail).bytes()).unwrap();
        command.arg(path);
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout).unwrap();
    assert_eq!(lines.lines().count(), mails.len());
    for (mail, line) in mails.iter().zip(lines.lines()) {
        let found: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(found["defects"], serde_json::json!([]), "{}", mail.subject);
        assert_eq!(found["to"], serde_json::json!(["ana@example.org"]));
        assert_eq!(found["type"], "multipart/alternative");
        assert_eq!(found["parts"], serde_json::json!(["text/plain", "text/html"]));
        assert_eq!(found["text"].as_str().unwrap().trim_end(), mail.text.trim_end());
        assert_eq!(found["html"].as_str().unwrap().trim_end(), mail.html.trim_end());
        let headers: Vec<(String, String)> = serde_json::from_value(found["headers"].clone()).unwrap();
        for (name, value) in &headers {
            assert!(HEADERS.contains(&name.as_str()), "{name}: {value}");
        }
        let header = |name: &str| {
            let found: Vec<&str> = headers
                .iter()
                .filter(|(n, _)| n == name)
                .map(|(_, value)| value.as_str())
                .collect();
            assert!(found.len() <= 1, "{name}");
            found.first().map(|value| (*value).to_owned())
        };
        assert_eq!(header("Subject").as_deref(), Some(mail.subject.as_str()));
        assert_eq!(header("Auto-Submitted").as_deref(), Some("auto-generated"));
        assert_eq!(header("X-Docmill-Event").as_deref(), Some(mail.event()));
        assert_eq!(header("Date").as_deref(), Some("Mon, 22 Jun 2026 11:37:21 +0000"));
        let links = [header("List-Unsubscribe"), header("List-Unsubscribe-Post")];
        if mail.text.contains("Stop these mails") {
            let expected = [format!("<{UNSUBSCRIBE}>"), "List-Unsubscribe=One-Click".into()];
            assert_eq!(links, expected.map(Some));
        } else {
            assert_eq!(links, [None, None]);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn no_text_becomes_a_header_a_part_or_markup(
        name in hostile(), file in hostile(), reason in hostile(), message in hostile(), total in 0..u64::MAX,
    ) {
        let report = JobReport {
            workflow_name: name.clone(),
            message: Some(message),
            failed_files: vec![FailedFile { name: file.clone(), reason: reason.clone() }],
            files: counts(total, total / 2, total / 3, 0),
            ..report()
        };
        check(&Mail::job(&report, Some(UNSUBSCRIBE)));
        check(&Mail::digest(&[report], 1, Some(UNSUBSCRIBE)));
        check(&Mail::test(Some(&name), None));
        check(&Mail::verification(&file, 10, Some(&reason)));
        let channel = DisabledChannel {
            description: Some(&name), target: &file, since: AT, failures: Some(total), last_error: &reason,
        };
        check(&Mail::disabled(&channel, None));
    }

    /// The addresses and ids that reach headers: what is not refused stands there as it was given, alone.
    #[test]
    fn no_address_or_id_becomes_a_header(to in hostile(), from in hostile(), id in hostile(), part in "[ -~]{0,20}") {
        let ana = Mailbox::parse("ana@example.org").unwrap();
        let mill = Sender::parse("mill@example.com").unwrap();
        let mail = Mail::test(None, None);
        for to in [to.clone(), format!("{part}@example.net"), format!("ana@{part}.example"), format!("ana@example.org{to}")] {
            let Ok(to) = Mailbox::parse(&to) else { continue };
            prop_assert_eq!(to.as_str().matches('@').count(), 1);
            let bytes = with(&mail, "id", &mill, &to).unwrap();
            let parsed = MessageParser::default().parse(&bytes).unwrap();
            let read: Vec<_> = parsed.to().unwrap().iter().filter_map(|address| address.address()).collect();
            prop_assert_eq!(read, [to.as_str()]);
            prop_assert!(parsed.headers().iter().all(|header| HEADERS.contains(&header.name())));
        }
        for name in [from, part] {
            let Ok(sender) = Sender::parse(&format!("{name} <mill@example.com>")) else { continue };
            let bytes = with(&mail, "id", &sender, &ana).unwrap();
            let parsed = MessageParser::default().parse(&bytes).unwrap();
            let from = parsed.from().unwrap();
            prop_assert_eq!(from.iter().count(), 1);
            prop_assert_eq!(from.first().unwrap().address(), Some("mill@example.com"));
            prop_assert_eq!(from.first().unwrap().name().unwrap_or_default(), sender.name().unwrap_or_default());
            prop_assert!(parsed.headers().iter().all(|header| HEADERS.contains(&header.name())));
        }
        if let Some(bytes) = with(&mail, &id, &mill, &ana) {
            let parsed = MessageParser::default().parse(&bytes).unwrap();
            let expected = format!("{id}@example.com");
            prop_assert_eq!(parsed.message_id(), Some(expected.as_str()));
        }
    }

    #[test]
    fn no_name_becomes_a_link(name in hostile()) {
        let report = JobReport { workflow_name: name, ..report() };
        let mail = Mail::job(&report, None);
        for part in [&mail.html, &mail.text] {
            prop_assert!(!part.contains("evil.example"), "{}", part);
        }
    }
}
