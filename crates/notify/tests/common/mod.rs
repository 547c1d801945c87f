//! What several tests need; each uses a part of it.
#![allow(dead_code)]

pub(crate) mod receiver;

use docmill_model::ids::{JobId, WorkflowId, WorkspaceId};
use docmill_model::job::{EventType, JobStatus};
use docmill_notify::{Addressing, FailedFile, FileCounts, JobReport, Mail, Mailbox, Message, Sender};

/// 2026-06-22 11:37:21.648 UTC.
pub(crate) const AT: i64 = 1_782_128_241_648_000;

pub(crate) const UNSUBSCRIBE: &str =
    "https://mill.example.com/unsubscribe/ep_0a1B2c3D4e5F6g7H8i9J0k1L2m3N.c2lnbmF0dXJl";

fn id<T: std::str::FromStr>(last: u8) -> T
where
    T::Err: std::fmt::Debug,
{
    format!("01979764-2b70-7c3e-8a1f-0000000000{last:02x}").parse().unwrap()
}

/// A job of which 8 of 10 files were processed.
pub(crate) fn report() -> JobReport {
    JobReport {
        event: EventType::JobCompleted,
        at: AT,
        sequence: 3,
        job_id: id::<JobId>(1),
        workspace_id: id::<WorkspaceId>(2),
        workflow_id: Some(id::<WorkflowId>(3)),
        workflow_name: "Invoices every hour".into(),
        status: JobStatus::Completed,
        files: FileCounts {
            total: 10,
            succeeded: 8,
            failed: 2,
            stopped: 0,
        },
        created_at: AT - 200_000_000,
        duration: Some(195_300_000),
        message: None,
        failed_files: vec![
            FailedFile {
                name: "invoice-4711.pdf".into(),
                reason: "the document is encrypted and no password was given".into(),
            },
            FailedFile {
                name: "Größenübersicht <final>.docx".into(),
                reason: "the file ends in the middle of its directory".into(),
            },
        ],
        link: Some("https://mill.example.com/jobs/01979764-2b70-7c3e-8a1f-000000000001".into()),
    }
}

pub(crate) fn ended(status: JobStatus, files: FileCounts) -> JobReport {
    JobReport {
        event: status.event(),
        status,
        files,
        failed_files: Vec::new(),
        duration: status.is_terminal().then_some(4_200_000),
        ..report()
    }
}

/// The mail to Ana, with a copy and an address for answers.
pub(crate) fn addressed(mail: &Mail) -> Message {
    addressed_to(mail, "ana@example.org")
}

pub(crate) fn addressed_to(mail: &Mail, to: &str) -> Message {
    let from = Sender::parse("docmill <mill@example.com>").unwrap();
    let to = Mailbox::parse(to).unwrap();
    let cc = [Mailbox::parse("team@bücher.example").unwrap()];
    mail.address(&Addressing {
        delivery_id: "01979764-2b70-7c3e-8a1f-0000000000aa",
        date: AT,
        from: &from,
        to: &to,
        cc: &cc,
        reply_to: Some(&Mailbox::parse("help@example.org").unwrap()),
    })
    .unwrap()
}
