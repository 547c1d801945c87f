//! The mailer against a real mail server, well-behaved and not.

mod common;

use std::collections::BTreeSet;
use std::time::Duration;

use common::{addressed, report};
use docmill_notify::{Mail, Mailer, Message, SendError, Sent, SmtpOptions, SmtpUrl, Stage};
use docmill_testkit::SmtpServer;

const LOGIN: &str = "mill@example.com:p@ss/w%rd";
const ENCODED: &str = "mill%40example.com:p%40ss%2Fw%25rd@";
const TO: &str = "ana@example.org";
const CC: &str = "team@xn--bcher-kva.example";

fn mailer(server: &SmtpServer, scheme: &str, login: &str, query: &str) -> Mailer {
    let url = format!("{scheme}://{login}127.0.0.1:{}{query}", server.port());
    Mailer::smtp(SmtpOptions {
        url: SmtpUrl::parse(&url).unwrap(),
        ca_file: Some(SmtpServer::ca_file()),
        connections: 4,
    })
    .unwrap()
}

fn message() -> Message {
    addressed(&Mail::job(&report(), None))
}

/// Sends one mail to a server with these manners.
async fn sent_to(manners: &[&str]) -> (SmtpServer, Result<Sent, SendError>) {
    let server = SmtpServer::start(manners);
    let outcome = mailer(&server, "smtp", "", "").send(&message()).await;
    (server, outcome)
}

#[tokio::test]
async fn a_mail_goes_by_starttls_with_login() {
    let server = SmtpServer::start(&["--tls", "starttls", "--login", LOGIN]);
    let mailer = mailer(&server, "smtp", ENCODED, "?tls=required");
    let message = message();
    let sent = mailer.send(&message).await.unwrap();
    assert!(sent.refused.is_empty() && sent.answer.starts_with("250 "), "{sent:?}");
    let [mail] = &server.mails()[..] else { panic!() };
    assert_eq!(
        (mail.from.as_str(), mail.encrypted, mail.user.as_str()),
        ("mill@example.com", true, "mill@example.com")
    );
    assert_eq!(mail.to, [TO, CC]);
    assert_eq!(mail.bytes.trim_ascii_end(), message.bytes().trim_ascii_end());
}

#[tokio::test]
async fn a_mail_goes_by_implicit_tls_with_login() {
    let server = SmtpServer::start(&["--tls", "implicit", "--login", LOGIN]);
    mailer(&server, "smtps", ENCODED, "").send(&message()).await.unwrap();
    let [mail] = &server.mails()[..] else { panic!() };
    assert!(mail.encrypted && mail.user == "mill@example.com");
}

#[tokio::test]
async fn this_machine_is_spoken_to_without_encryption_or_with_as_offered() {
    let (server, outcome) = sent_to(&[]).await;
    outcome.unwrap();
    assert!(!server.mails()[0].encrypted);
    let (server, outcome) = sent_to(&["--tls", "starttls"]).await;
    outcome.unwrap();
    assert!(server.mails()[0].encrypted);
    let server = SmtpServer::start(&["--login", LOGIN]);
    mailer(&server, "smtp", ENCODED, "?tls=none")
        .send(&message())
        .await
        .unwrap();
    assert_eq!(server.mails()[0].user, "mill@example.com");
}

#[tokio::test]
async fn nothing_is_sent_unencrypted_where_encryption_is_required() {
    let server = SmtpServer::start(&[]);
    let error = mailer(&server, "smtp", ENCODED, "?tls=required")
        .send(&message())
        .await
        .unwrap_err();
    assert!(
        !error.permanent && error.stage == Stage::Connect && error.message.contains("STARTTLS"),
        "{error}"
    );
    assert!(server.mails().is_empty());
}

#[tokio::test]
async fn a_server_that_nobody_vouches_for_is_not_trusted() {
    for (scheme, tls, query) in [("smtp", "starttls", "?tls=required"), ("smtps", "implicit", "")] {
        let server = SmtpServer::start(&["--tls", tls]);
        let url = format!("{scheme}://127.0.0.1:{}{query}", server.port());
        let mailer = Mailer::smtp(SmtpOptions {
            url: SmtpUrl::parse(&url).unwrap(),
            ca_file: None,
            connections: 1,
        })
        .unwrap();
        let error = mailer.send(&message()).await.unwrap_err();
        assert!(
            !error.permanent && error.stage == Stage::Connect && error.message.contains("certificate"),
            "{error}"
        );
        assert!(server.mails().is_empty());
    }
}

#[tokio::test]
async fn a_wrong_login_is_the_operators_to_repair_and_is_not_repeated() {
    let server = SmtpServer::start(&["--tls", "starttls", "--login", LOGIN]);
    let mailer = mailer(&server, "smtp", "mill%40example.com:hunter%202hunter@", "?tls=required");
    let error = mailer.send(&message()).await.unwrap_err();
    assert_eq!(
        (error.permanent, error.smtp_code, error.stage),
        (false, Some(535), Stage::Login)
    );
    assert!(
        error.message.contains("***") && !error.message.contains("hunter"),
        "{error}"
    );
    assert!(!format!("{mailer:?} {error:?}").contains("hunter"));
    let server = SmtpServer::start(&["--login", LOGIN]);
    let error = self::mailer(&server, "smtp", "", "")
        .send(&message())
        .await
        .unwrap_err();
    assert_eq!((error.permanent, error.smtp_code), (false, Some(530)), "{error}");
}

#[tokio::test]
async fn refusals_of_the_recipient_or_the_mail_are_final_and_those_of_the_sender_are_not() {
    for (manners, permanent, code, stage) in [
        (
            ["--rcpt", "ana@example.org=550 5.1.1 no such mailbox"],
            true,
            550,
            Stage::Recipient,
        ),
        (
            ["--rcpt", "ana@example.org=451 4.7.1 greylisted"],
            false,
            451,
            Stage::Recipient,
        ),
        (["--data", "554 5.7.1 looks like spam"], true, 554, Stage::Content),
        (["--data", "452 4.3.1 disk is full"], false, 452, Stage::Content),
        (["--mail", "550 5.7.60 not your address"], false, 550, Stage::Sender),
        (["--mail", "421 4.3.2 going down"], false, 421, Stage::Sender),
    ] {
        let (server, outcome) = sent_to(&manners).await;
        let error = outcome.unwrap_err();
        assert_eq!(
            (error.permanent, error.smtp_code, error.stage),
            (permanent, Some(code), stage),
            "{error}"
        );
        let words = manners[1].rsplit_once('.').unwrap().1.split_once(' ').unwrap().1;
        assert!(error.message.contains(words) && !error.outcome_unknown, "{error}");
        assert!(server.mails().is_empty());
    }
}

/// What refuses before the recipient and the mail are known is the operator's to repair, so it is tried again.
#[tokio::test]
async fn refusals_at_the_door_are_tried_again() {
    for (manners, query, stage) in [
        (["--greeting", "554 5.3.2 no service"], "", Stage::Connect),
        (["--greeting", "421 4.3.2 too many connections"], "", Stage::Connect),
        (["--ehlo", "550 5.7.1 who are you"], "", Stage::Connect),
        (["--ehlo", "451 4.7.0 later"], "", Stage::Connect),
        (
            ["--starttls", "454 4.7.0 TLS is broken"],
            "?tls=required",
            Stage::Connect,
        ),
        (
            ["--starttls", "502 5.5.1 no TLS today"],
            "?tls=required",
            Stage::Connect,
        ),
        (["--auth", "454 4.7.0 directory is down"], "?tls=required", Stage::Login),
        (["--auth", "535 5.7.8 no"], "?tls=required", Stage::Login),
    ] {
        let arguments = [&["--tls", "starttls", "--login", LOGIN][..], &manners[..]].concat();
        let server = SmtpServer::start(&arguments);
        let login = if query.is_empty() { "" } else { ENCODED };
        let error = mailer(&server, "smtp", login, query)
            .send(&message())
            .await
            .unwrap_err();
        let code: u16 = manners[1].split_once(' ').unwrap().0.parse().unwrap();
        assert_eq!(
            (error.permanent, error.outcome_unknown, error.stage),
            (false, false, stage),
            "{manners:?}: {error}"
        );
        assert_eq!(error.smtp_code, Some(code), "{manners:?}: {error}");
        assert!(server.mails().is_empty());
    }
}

#[tokio::test]
async fn a_refused_starttls_is_not_answered_with_plain_text() {
    // Even where the certificate does not matter: what was offered and then refused is an attack or a defect.
    let server = SmtpServer::start(&["--tls", "starttls", "--starttls", "454 4.7.0 not now"]);
    let error = mailer(&server, "smtp", "", "").send(&message()).await.unwrap_err();
    assert_eq!((error.smtp_code, error.stage), (Some(454), Stage::Connect), "{error}");
}

#[tokio::test]
async fn connections_that_break_before_the_content_are_tried_again() {
    for (place, stage) in [
        ("greeting", Stage::Connect),
        ("ehlo", Stage::Connect),
        ("mail", Stage::Sender),
        ("rcpt", Stage::Recipient),
    ] {
        let (server, outcome) = sent_to(&["--drop", place]).await;
        let error = outcome.unwrap_err();
        assert_eq!(
            (error.permanent, error.outcome_unknown, error.smtp_code),
            (false, false, None),
            "{place}: {error}"
        );
        assert_eq!(error.stage, stage, "{place}: {error}");
        assert!(server.mails().is_empty());
    }
}

/// The content holds lines that a server could take for commands.
#[tokio::test]
async fn the_content_follows_the_invitation_alone() {
    for (answer, permanent, code) in [
        ("250 2.0.0 fine", false, None),
        ("451 4.3.0 not now", false, Some(451)),
        ("554 5.5.1 no valid recipients", true, Some(554)),
    ] {
        let (server, outcome) = sent_to(&["--data-command", answer]).await;
        let error = outcome.unwrap_err();
        assert_eq!(
            (error.permanent, error.outcome_unknown, error.smtp_code),
            (permanent, false, code),
            "{error}"
        );
        assert_eq!(error.stage, Stage::Content);
        assert!(server.mails().is_empty());
    }
    // Nor is an invitation taken for a confirmation.
    let (_server, outcome) = sent_to(&["--data", "354 go on"]).await;
    assert!(outcome.unwrap_err().outcome_unknown);
}

#[tokio::test]
async fn copies_that_are_refused_do_not_keep_the_mail_from_the_others() {
    let rule = format!("{CC}=550 5.1.1 no such mailbox");
    let (server, outcome) = sent_to(&["--rcpt", &rule]).await;
    let sent = outcome.unwrap();
    assert_eq!((sent.refused[0].address.as_str(), sent.refused[0].smtp_code), (CC, 550));
    assert_eq!(server.mails()[0].to, [TO]);
}

#[tokio::test]
async fn a_mail_whose_outcome_is_open_comes_again_with_the_same_message_id() {
    let server = SmtpServer::start(&["--drop-first-after-data"]);
    let mailer = mailer(&server, "smtp", "", "");
    let message = message();
    let error = mailer.send(&message).await.unwrap_err();
    assert!(
        error.outcome_unknown && !error.permanent && error.stage == Stage::Content,
        "{error:?}"
    );
    assert_eq!(error.smtp_code, None);
    mailer.send(&message).await.unwrap();
    let mails = server.mails();
    let ids: Vec<_> = mails.iter().map(|mail| message_id(&mail.bytes)).collect();
    assert_eq!(ids, ["01979764-2b70-7c3e-8a1f-0000000000aa@example.com"; 2]);
    assert_eq!(mails[0].bytes, mails[1].bytes);
}

fn message_id(mail: &[u8]) -> String {
    let mail = mail_parser::MessageParser::default().parse(mail).unwrap();
    mail.message_id().unwrap().to_owned()
}

#[tokio::test]
async fn nobody_listening_is_a_passing_trouble() {
    let mut server = SmtpServer::start(&[]);
    let mailer = mailer(&server, "smtp", "", "");
    server.stop();
    let error = mailer.send(&message()).await.unwrap_err();
    assert!(
        !error.permanent && error.stage == Stage::Connect && !error.outcome_unknown,
        "{error:?}"
    );
}

#[tokio::test]
async fn connections_are_kept_and_a_dead_one_is_replaced() {
    let mut server = SmtpServer::start(&["--tls", "starttls", "--login", LOGIN]);
    let mailer = mailer(&server, "smtp", ENCODED, "?tls=required");
    for _ in 0..20 {
        mailer.send(&message()).await.unwrap();
    }
    let connections: Vec<u64> = server.mails().iter().map(|mail| mail.connection).collect();
    assert_eq!(connections, [connections[0]; 20]);
    // The same mailer, whose connection the server has closed.
    server.restart(&["--tls", "starttls", "--login", LOGIN]);
    mailer.send(&message()).await.unwrap();
    assert_eq!(server.mails().len(), 1);
}

#[tokio::test]
async fn what_was_refused_does_not_stick_to_the_next_mail() {
    let server = SmtpServer::start(&["--rcpt", "bob@example.org=550 5.1.1 no such mailbox"]);
    let mailer = mailer(&server, "smtp", "", "");
    let to_bob = common::addressed_to(&Mail::job(&report(), None), "bob@example.org");
    for _ in 0..3 {
        assert_eq!(mailer.send(&to_bob).await.unwrap_err().smtp_code, Some(550));
        mailer.send(&message()).await.unwrap();
    }
    let mails = server.mails();
    assert_eq!(mails.len(), 3);
    assert!(
        mails
            .iter()
            .all(|mail| mail.to == [TO, CC] && mail.connection == mails[0].connection)
    );
}

#[tokio::test]
async fn many_mails_go_at_a_time() {
    let server = SmtpServer::start(&[]);
    let mailer = std::sync::Arc::new(mailer(&server, "smtp", "", ""));
    let tasks: Vec<_> = (0..60)
        .map(|_| {
            let mailer = std::sync::Arc::clone(&mailer);
            tokio::spawn(async move { mailer.send(&message()).await })
        })
        .collect();
    for task in tasks {
        task.await.unwrap().unwrap();
    }
    let mails = server.mails();
    assert_eq!(mails.len(), 60);
    // As many connections as were allowed, and no more.
    let connections: BTreeSet<u64> = mails.iter().map(|mail| mail.connection).collect();
    assert!((2..=4).contains(&connections.len()), "{connections:?}");
}

/// The wait for a silent server ends at any stage; the clock is turned forward.
#[tokio::test]
async fn silent_servers_are_given_up() {
    for (stall, patience) in [
        ("greeting", 41),
        ("ehlo", 41),
        ("mail", 31),
        ("rcpt", 31),
        ("data", 121),
    ] {
        let server = SmtpServer::start(&["--stall", stall]);
        let mailer = mailer(&server, "smtp", "", "");
        let mail = message();
        let sending = mailer.send(&mail);
        tokio::pin!(sending);
        // Real time for the conversation to come to its silence, then none for the wait.
        let early = tokio::time::timeout(Duration::from_secs(2), &mut sending).await;
        assert!(early.is_err(), "{stall}: {early:?}");
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs(patience)).await;
        let error = sending.await.unwrap_err();
        tokio::time::resume();
        assert!(
            !error.permanent && error.message.contains("no answer"),
            "{stall}: {error}"
        );
        assert_eq!(error.outcome_unknown, stall == "data", "{stall}");
    }
}

#[tokio::test]
async fn without_a_server_mails_become_files() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let outbox = folder.path().join("data/outbox");
    let mailer = Mailer::files(&outbox);
    let message = message();
    mailer.send(&message).await.unwrap();
    mailer.send(&message).await.unwrap();
    let files: Vec<_> = std::fs::read_dir(&outbox).unwrap().map(|file| file.unwrap()).collect();
    assert_eq!(files.len(), 1);
    assert_eq!(
        files[0].file_name(),
        "20260622T113721.648Z-01979764-2b70-7c3e-8a1f-0000000000aa.eml"
    );
    assert_eq!(files[0].metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(std::fs::metadata(&outbox).unwrap().permissions().mode() & 0o777, 0o700);
    assert_eq!(std::fs::read(files[0].path()).unwrap(), message.bytes());
    let blocked = Mailer::files(files[0].path());
    let error = blocked.send(&message).await.unwrap_err();
    assert!(!error.permanent && error.stage == Stage::File, "{error:?}");
}

#[test]
fn a_file_of_authorities_that_is_none_is_refused() {
    let url = SmtpUrl::parse("smtps://mail.example.com").unwrap();
    let make = |path: &str| {
        Mailer::smtp(SmtpOptions {
            url: url.clone(),
            ca_file: Some(path.into()),
            connections: 1,
        })
    };
    assert!(
        make("/nowhere/ca.pem")
            .unwrap_err()
            .to_string()
            .contains("/nowhere/ca.pem")
    );
    assert!(make(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")).is_err());
}
