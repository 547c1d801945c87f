//! What the templates of job events show, made of reports.

use docmill_model::job::JobStatus;
use serde::Serialize;

use crate::payload::MOST_FAILED;
use crate::words::{counted, grouped, inert, link, minute, one_line, span};
use crate::{FileCounts, JobReport};

/// Longest name of a workflow in a subject, in characters: the rest must stay visible.
const SUBJECT_NAME: usize = 80;
/// Longest name of a workflow or file in a mail, in characters.
const LONGEST_NAME: usize = 200;
/// Longest reason, in characters.
const LONGEST_REASON: usize = 400;
/// Most events listed in one digest.
const MOST_ROWS: usize = 50;

/// How an event is put in words, the gravest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Word {
    Failed,
    WithErrors,
    Completed,
    Stopped,
    Progress,
    Started,
    Scheduled,
}

impl Word {
    fn of(report: &JobReport) -> Self {
        match report.status {
            JobStatus::Failed => Self::Failed,
            JobStatus::Completed if report.files.failed > 0 => Self::WithErrors,
            JobStatus::Completed => Self::Completed,
            JobStatus::Stopped => Self::Stopped,
            JobStatus::InProgress if report.event.as_str() == "job.progress" => Self::Progress,
            JobStatus::InProgress => Self::Started,
            JobStatus::Scheduled => Self::Scheduled,
        }
    }

    fn label(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::WithErrors => "completed with errors",
            Self::Completed => "completed",
            Self::Stopped => "stopped",
            Self::Progress => "in progress",
            Self::Started => "started",
            Self::Scheduled => "scheduled",
        }
    }

    /// Background of white letters, readable in light and dark.
    fn color(self) -> &'static str {
        match self {
            Self::Failed => "#c0362c",
            Self::WithErrors => "#9a6100",
            Self::Completed => "#1a7f4b",
            Self::Stopped | Self::Progress | Self::Started | Self::Scheduled => "#4a6078",
        }
    }

    /// Whether its job has ended, so that counts of processed files mean something.
    fn counts(self) -> bool {
        !matches!(self, Self::Started | Self::Scheduled)
    }
}

/// `8 files processed`, `8 of 10 files processed, 2 failed`, `10 files`.
fn tally(word: Word, files: &FileCounts) -> String {
    if !word.counts() {
        return counted(files.total, "file", "files");
    }
    if files.total == 0 {
        return "no files".into();
    }
    let mut text = if files.succeeded == files.total {
        format!("{} processed", counted(files.total, "file", "files"))
    } else {
        let all = counted(files.total, "file", "files");
        format!("{} of {all} processed", grouped(files.succeeded))
    };
    if files.failed > 0 {
        text.push_str(&format!(", {} failed", grouped(files.failed)));
    }
    text
}

fn name(report: &JobReport, most: usize) -> String {
    match one_line(&report.workflow_name, most) {
        empty if empty.is_empty() => "Job".into(),
        name => name,
    }
}

pub(super) fn subject_of_job(report: &JobReport) -> String {
    let word = Word::of(report);
    let name = name(report, SUBJECT_NAME);
    format!("{name}: {}, {}", word.label(), tally(word, &report.files))
}

pub(super) fn subject_of_digest(reports: &[JobReport], more: u64) -> String {
    let mut words: Vec<Word> = reports.iter().map(Word::of).collect();
    words.sort_unstable();
    let parts: Vec<String> = words
        .chunk_by(|a, b| a == b)
        .filter_map(|same| Some(format!("{} {}", grouped(same.len() as u64), same.first()?.label())))
        .collect();
    let all = counted(
        more.saturating_add(reports.len() as u64),
        "notification",
        "notifications",
    );
    let same_workflow = reports.windows(2).all(|pair| match pair {
        [a, b] => a.workflow_name == b.workflow_name,
        _ => true,
    });
    let whose = match reports.first() {
        Some(report) if same_workflow && more == 0 => format!("{}: ", name(report, SUBJECT_NAME)),
        _ => String::new(),
    };
    match parts.is_empty() {
        true => all,
        false => format!("{whose}{all} ({})", parts.join(", ")),
    }
}

/// One job event, in full.
#[derive(Serialize)]
pub(super) struct JobView {
    name: String,
    status: &'static str,
    color: &'static str,
    tally: String,
    message: Option<String>,
    facts: Vec<Fact>,
    failed: Vec<Failed>,
    more_failed: Option<String>,
    link: Option<String>,
}

#[derive(Serialize)]
struct Fact {
    label: &'static str,
    value: String,
}

#[derive(Serialize)]
struct Failed {
    name: String,
    reason: String,
}

impl JobView {
    pub(super) fn new(report: &JobReport) -> Self {
        let word = Word::of(report);
        let failed: Vec<Failed> = report
            .failed_files
            .iter()
            .take(MOST_FAILED)
            .map(|file| Failed {
                name: inert(&file.name, LONGEST_NAME),
                reason: inert(&file.reason, LONGEST_REASON),
            })
            .collect();
        let more = report.files.failed.saturating_sub(failed.len() as u64);
        Self {
            name: inert(&name(report, LONGEST_NAME), LONGEST_NAME),
            status: word.label(),
            color: word.color(),
            tally: tally(word, &report.files),
            message: report
                .message
                .as_deref()
                .map(|message| inert(message, LONGEST_REASON))
                .filter(|message| !message.is_empty()),
            facts: facts(report, word),
            more_failed: (more > 0 && !failed.is_empty()).then(|| format!("and {} more", grouped(more))),
            failed,
            link: report.link.as_deref().and_then(link),
        }
    }
}

fn facts(report: &JobReport, word: Word) -> Vec<Fact> {
    let mut facts = Vec::new();
    let mut fact = |label, value| facts.push(Fact { label, value });
    let files = &report.files;
    fact("Files", grouped(files.total));
    if word.counts() {
        fact("Processed", grouped(files.succeeded));
        fact("Failed", grouped(files.failed));
        if files.stopped > 0 {
            fact("Stopped", grouped(files.stopped));
        }
    }
    if let Some(duration) = report.duration {
        fact("Duration", span(duration));
    }
    let when = match report.status {
        JobStatus::Completed | JobStatus::Failed | JobStatus::Stopped => "Ended",
        JobStatus::InProgress if word == Word::Started => "Started",
        JobStatus::InProgress => "As of",
        JobStatus::Scheduled => "Scheduled",
    };
    fact(when, minute(report.at));
    fact("Job", report.job_id.to_string());
    facts
}

/// Several events.
#[derive(Serialize)]
pub(super) struct DigestView {
    rows: Vec<Row>,
    count: String,
    more: Option<String>,
}

#[derive(Serialize)]
struct Row {
    name: String,
    status: &'static str,
    color: &'static str,
    tally: String,
    when: String,
    link: Option<String>,
}

impl DigestView {
    pub(super) fn new(reports: &[JobReport], more: u64) -> Self {
        let rows: Vec<Row> = reports
            .iter()
            .take(MOST_ROWS)
            .map(|report| {
                let word = Word::of(report);
                Row {
                    name: inert(&name(report, LONGEST_NAME), LONGEST_NAME),
                    status: word.label(),
                    color: word.color(),
                    tally: tally(word, &report.files),
                    when: minute(report.at),
                    link: report.link.as_deref().and_then(link),
                }
            })
            .collect();
        let all = more.saturating_add(reports.len() as u64);
        let left = all.saturating_sub(rows.len() as u64);
        Self {
            count: counted(all, "notification", "notifications"),
            more: (left > 0).then(|| format!("and {} more", grouped(left))),
            rows,
        }
    }
}
