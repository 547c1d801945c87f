//! What mails say.

mod render;
mod views;

use docmill_model::time::Micros;
use serde::Serialize;
use url::Url;

use crate::JobReport;
use crate::words::{counted, inert, link, minute, one_line};
use render::render;
use views::{DigestView, JobView, subject_of_digest, subject_of_job};

/// Longest subject, in characters.
const LONGEST_SUBJECT: usize = 180;
/// Longest description of a channel that is shown, in characters.
const LONGEST_DESCRIPTION: usize = 255;

/// What a mail says, to nobody in particular yet: [`Mail::address`] makes the message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mail {
    /// One line of plain text.
    pub subject: String,
    /// The plain text part.
    pub text: String,
    /// The HTML part: a whole document without anything to be fetched.
    pub html: String,
    event: &'static str,
    unsubscribe: Option<String>,
}

/// A channel that was disabled because nothing got through to it.
#[derive(Clone, Copy, Debug)]
pub struct DisabledChannel<'a> {
    /// What people wrote about it.
    pub description: Option<&'a str>,
    /// Where it led: a webhook's URL, of which the host alone is shown, or a mail address.
    pub target: &'a str,
    /// Since when every attempt failed.
    pub since: Micros,
    /// How many attempts failed, where that is known.
    pub failures: Option<u64>,
    /// Why the last one did.
    pub last_error: &'a str,
}

/// What every template may use.
#[derive(Serialize)]
struct Frame<'a, T> {
    unsubscribe: Option<&'a str>,
    #[serde(flatten)]
    view: T,
}

impl Mail {
    /// The mail with a channel's verification code, `valid_minutes` long good. `public_url` is the server's
    /// own address, of which the host is shown. Nothing in it was written by whoever made the channel, as
    /// it goes to people who may not have asked for it; and the code is not in the subject, which mail
    /// servers log.
    pub fn verification(code: &str, valid_minutes: u32, public_url: Option<&str>) -> Self {
        #[derive(Serialize)]
        struct View {
            code: String,
            valid: String,
            host: Option<String>,
        }
        let view = View {
            code: one_line(code, 32),
            valid: counted(valid_minutes.into(), "minute", "minutes"),
            host: public_url.and_then(host),
        };
        let subject = "Your code for docmill notifications";
        Self::made("code", "channel.verification", subject, None, view)
    }

    /// The mail about one event of a job. `unsubscribe` is the link that stops this channel's mails
    /// (see [`crate::unsubscribe_token`]); both it and the report's link must be http or https, else they
    /// are left out.
    pub fn job(report: &JobReport, unsubscribe: Option<&str>) -> Self {
        let subject = subject_of_job(report);
        Self::made(
            "job",
            report.event.as_str(),
            &subject,
            unsubscribe,
            JobView::new(report),
        )
    }

    /// One mail for several events, in the order given; the first 50 are listed. `more` events are counted
    /// on top, of which no report is at hand.
    pub fn digest(reports: &[JobReport], more: u64, unsubscribe: Option<&str>) -> Self {
        let subject = subject_of_digest(reports, more);
        Self::made(
            "digest",
            "channel.digest",
            &subject,
            unsubscribe,
            DigestView::new(reports, more),
        )
    }

    /// The mail that tells a workspace's people that a channel was disabled.
    pub fn disabled(channel: &DisabledChannel<'_>, unsubscribe: Option<&str>) -> Self {
        #[derive(Serialize)]
        struct View {
            kind: &'static str,
            description: Option<String>,
            target: String,
            since: String,
            last_error: String,
        }
        let webhook = host(channel.target);
        let (kind, shown) = match &webhook {
            Some(host) => ("webhook", host.as_str()),
            None => ("e-mail", channel.target),
        };
        let subject = format!("Notification channel disabled: {kind} to {}", one_line(shown, 80));
        let mut since = minute(channel.since);
        if let Some(failures) = channel.failures {
            since = format!("{since}, {}", counted(failures, "attempt", "attempts"));
        }
        let view = View {
            kind,
            description: described(channel.description),
            target: inert(shown, 260),
            since,
            last_error: inert(channel.last_error, 500),
        };
        Self::made("disabled", "channel.disabled", &subject, unsubscribe, view)
    }

    /// The mail that somebody asked for to see whether a channel works.
    pub fn test(description: Option<&str>, unsubscribe: Option<&str>) -> Self {
        #[derive(Serialize)]
        struct View {
            description: Option<String>,
        }
        let view = View {
            description: described(description),
        };
        Self::made(
            "test",
            "channel.test",
            "Test of your docmill notifications",
            unsubscribe,
            view,
        )
    }

    fn made(
        template: &str,
        event: &'static str,
        subject: &str,
        unsubscribe: Option<&str>,
        view: impl Serialize,
    ) -> Self {
        let subject = one_line(subject, LONGEST_SUBJECT);
        let unsubscribe = unsubscribe.and_then(link);
        let frame = Frame {
            unsubscribe: unsubscribe.as_deref(),
            view,
        };
        let (text, html) = render(template, &frame);
        Self {
            subject,
            text,
            html,
            event,
            unsubscribe,
        }
    }

    /// The header `X-Docmill-Event`: a job's event, or `channel.` and the kind of mail.
    pub fn event(&self) -> &'static str {
        self.event
    }

    pub(crate) fn unsubscribe(&self) -> Option<&str> {
        self.unsubscribe.as_deref()
    }
}

fn described(description: Option<&str>) -> Option<String> {
    description
        .map(|text| inert(text, LONGEST_DESCRIPTION))
        .filter(|text| !text.is_empty())
}

/// The host of an http or https URL.
fn host(url: &str) -> Option<String> {
    let url = Url::parse(url)
        .ok()
        .filter(|url| matches!(url.scheme(), "http" | "https"))?;
    url.host_str().map(str::to_owned)
}
