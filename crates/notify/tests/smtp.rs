//! The mailer against a real mail server, well-behaved and not.

mod common;

use std::time::{Duration, Instant};

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

#[tokio::test]
async fn copies_that_are_refused_do_not_keep_the_mail_from_the_others() {
    let rule = format!("{CC}=550 5.1.1 no such mailbox");
    let (server, outcome) = sent_to(&["--rcpt", &rule]).await;
    let sent = outcome.unwrap();
    assert_eq!((sent.refused[0].address.as_str(), sent.refused[0].smtp_code), (CC, 550));
    assert_eq!(server.mails()[0].to, [TO]);
}

#[tokio::test]
async fn a_connection_lost_after_the_mail_leaves_the_outcome_open() {
    let (server, outcome) = sent_to(&["--drop-after-data"]).await;
    let error = outcome.unwrap_err();
    assert!(
        error.outcome_unknown && !error.permanent && error.stage == Stage::Content,
        "{error:?}"
    );
    assert_eq!(server.mails().len(), 1);
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
    let mut server = SmtpServer::start(&["--tls", "starttls"]);
    let mailer = mailer(&server, "smtp", "", "?tls=required");
    let start = Instant::now();
    for _ in 0..20 {
        mailer.send(&message()).await.unwrap();
    }
    println!("20 mails over one connection: {:?}", start.elapsed());
    assert_eq!(server.mails().len(), 20);
    // A refusal leaves the connection usable, and what was refused does not stick to the next mail.
    server.restart(&["--rcpt", "ana@example.org=550 no"]);
    let mailer = self::mailer(&server, "smtp", "", "");
    mailer.send(&message()).await.unwrap_err();
    mailer.send(&message()).await.unwrap_err();
    server.restart(&[]);
    mailer.send(&message()).await.unwrap();
    assert_eq!(server.mails().len(), 1);
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
    assert_eq!(server.mails().len(), 60);
}

/// The wait for a silent server ends after 30 seconds at any stage; the clock is turned forward.
#[tokio::test]
async fn silent_servers_are_given_up() {
    for stall in ["greeting", "rcpt", "data"] {
        let server = SmtpServer::start(&["--stall", stall]);
        let mailer = mailer(&server, "smtp", "", "");
        let mail = message();
        let sending = mailer.send(&mail);
        tokio::pin!(sending);
        // Real time for the conversation to come to its silence, then none for the wait.
        assert!(
            tokio::time::timeout(Duration::from_secs(2), &mut sending)
                .await
                .is_err()
        );
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs(41)).await;
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
