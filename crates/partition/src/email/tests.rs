use std::sync::Arc;

use docmill_model::{Document, ElementType, WarningCode};

use crate::{Input, PartitionError, partition};

fn read(mail: &str) -> Result<Document, PartitionError> {
    let input = Input {
        bytes: Arc::new(mail.replace('\n', "\r\n").into_bytes()),
        filename: Some("mail.eml".into()),
        content_type: None,
    };
    partition(&input, &Default::default(), &Default::default(), &mut |_| {})
}

fn texts(document: &Document) -> Vec<&str> {
    document.elements.iter().map(|e| e.text.as_str()).collect()
}

const HEAD: &str = "From: Ada Byron <ada@example.org>\nTo: team@example.org, Grace <grace@example.com>\n\
    Cc: c@example.org\nSubject: =?utf-8?q?R=C3=A9sum=C3=A9?=\nDate: Tue, 04 Mar 2025 09:15:00 +0100\n\
    Message-ID: <1@example.org>\nMIME-Version: 1.0\n";

#[test]
fn header_fields_become_metadata() {
    let document = read(&format!("{HEAD}\nThe plain body is here.\n")).unwrap();
    assert_eq!(texts(&document), ["The plain body is here."]);
    let metadata = &document.elements[0].metadata;
    assert_eq!(metadata.subject.as_deref(), Some("Résumé"));
    assert_eq!(metadata.sent_from, ["Ada Byron <ada@example.org>"]);
    assert_eq!(metadata.sent_to, ["team@example.org", "Grace <grace@example.com>"]);
    assert_eq!(metadata.cc_recipient, ["c@example.org"]);
    assert_eq!(metadata.email_message_id.as_deref(), Some("1@example.org"));
    assert_eq!(metadata.last_modified.as_deref(), Some("2025-03-04T08:15:00"));
    assert_eq!(metadata.filetype.as_deref(), Some("message/rfc822"));
}

#[test]
fn html_is_preferred_to_plain() {
    let document = read(&format!(
        "{HEAD}Content-Type: multipart/alternative; boundary=b\n\n--b\nContent-Type: text/plain\n\nplain\n\
         --b\nContent-Type: text/html\n\n<h1>Title</h1><p>The rich body is here.</p>\n--b--\n"
    ))
    .unwrap();
    assert_eq!(texts(&document), ["Title", "The rich body is here."]);
    assert_eq!(document.elements[0].kind, ElementType::Title);
}

#[test]
fn attachments_are_read_or_named() {
    let document = read(&format!(
        "{HEAD}Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/plain\n\nThe body is here.\n\
         --b\nContent-Type: text/csv; name=t.csv\nContent-Disposition: attachment; filename=\"dir/t.csv\"\n\na,b\n1,2\n\
         --b\nContent-Type: application/pdf\nContent-Disposition: attachment; filename=bad.pdf\n\
         Content-Transfer-Encoding: base64\n\nbm90IGEgUERG\n\
         --b\nContent-Type: image/png\nContent-Disposition: attachment; filename=p.png\n\
         Content-Transfer-Encoding: base64\n\niVBORw0KGgoAAAANSUhEUgAAAAEAAAAB\n--b--\n"
    ))
    .unwrap();
    assert_eq!(texts(&document), ["The body is here.", "a b 1 2"]);
    let table = &document.elements[1];
    assert_eq!(table.metadata.filename.as_deref(), Some("t.csv"));
    assert_eq!(table.metadata.filetype.as_deref(), Some("text/csv"));
    assert_eq!(table.metadata.attached_to_filename.as_deref(), Some("mail.eml"));
    assert_eq!(table.metadata.subject, None);
    let skipped: Vec<&str> = document.warnings.iter().map(|w| w.message.as_str()).collect();
    assert_eq!(skipped.len(), 2, "{skipped:?}");
    assert!(skipped[0].contains("bad.pdf") && skipped[0].contains("PDF"));
    assert!(skipped[1].contains("p.png"));
    assert!(
        document
            .warnings
            .iter()
            .all(|w| w.code == WarningCode::AttachmentSkipped)
    );
}

#[test]
fn a_mail_in_a_mail_keeps_its_own_fields() {
    let document = read(&format!(
        "{HEAD}Content-Type: multipart/mixed; boundary=b\n\n--b\n\nThe outer text is here.\n--b\n\
         Content-Type: message/rfc822\n\nFrom: x@example.org\nSubject: inner\n\nThe inner text is here.\n--b--\n"
    ))
    .unwrap();
    assert_eq!(texts(&document), ["The outer text is here.", "The inner text is here."]);
    let inner = &document.elements[1].metadata;
    assert_eq!(inner.subject.as_deref(), Some("inner"));
    assert_eq!(inner.sent_from, ["x@example.org"]);
    assert_eq!(inner.attached_to_filename.as_deref(), Some("mail.eml"));
}

#[test]
fn encrypted_mail_says_so() {
    let document = read(&format!(
        "{HEAD}Content-Type: multipart/encrypted; protocol=\"application/pgp-encrypted\"; boundary=b\n\n--b\n\
         Content-Type: application/pgp-encrypted\n\nVersion: 1\n--b\nContent-Type: application/octet-stream\n\n\
         -----BEGIN PGP MESSAGE-----\n--b--\n"
    ))
    .unwrap();
    assert!(document.elements.is_empty());
    assert_eq!(document.warnings[0].code, WarningCode::PartUnreadable);
}

#[test]
fn legacy_charsets_of_bodies() {
    let mut mail = format!("{HEAD}Content-Type: text/plain; charset=shift_jis\n\n")
        .replace('\n', "\r\n")
        .into_bytes();
    let (body, _, _) = encoding_rs::SHIFT_JIS.encode("すべての人間は自由である。");
    mail.extend_from_slice(&body);
    let input = Input {
        bytes: Arc::new(mail),
        filename: Some("mail.eml".into()),
        content_type: None,
    };
    let document = partition(&input, &Default::default(), &Default::default(), &mut |_| {}).unwrap();
    assert_eq!(texts(&document), ["すべての人間は自由である。"]);
}

#[test]
fn eight_bit_text_without_charset_is_guessed() {
    let mut mail = format!("{HEAD}\n").replace('\n', "\r\n").into_bytes();
    mail.extend_from_slice(b"Die Hasen und die Fr\xf6sche klagten \xfcber ihre Lage.\r\n");
    let input = Input {
        bytes: Arc::new(mail),
        filename: None,
        content_type: Some("message/rfc822".into()),
    };
    let document = partition(&input, &Default::default(), &Default::default(), &mut |_| {}).unwrap();
    assert_eq!(texts(&document), ["Die Hasen und die Frösche klagten über ihre Lage."]);
}

#[test]
fn deep_nesting_ends() {
    let multipart: String = (0..3000)
        .map(|i| format!("Content-Type: multipart/mixed; boundary=b{i}\n\n--b{i}\n"))
        .collect();
    let start = std::time::Instant::now();
    let _ = read(&format!("{HEAD}{multipart}\n\nThe text is here.\n"));
    assert!(start.elapsed().as_secs() < 5);
    let messages = "Content-Type: message/rfc822\n\n".repeat(400);
    let document = read(&format!("{HEAD}{messages}\nThe text is here.\n")).unwrap();
    assert_eq!(document.warnings[0].code, WarningCode::AttachmentSkipped);
    let messages = "Content-Type: message/rfc822\n\n".repeat(20_000);
    assert!(matches!(
        read(&format!("{HEAD}{messages}\nThe text is here.\n")),
        Err(PartitionError::Limit {
            setting: "max_depth",
            ..
        })
    ));
}
