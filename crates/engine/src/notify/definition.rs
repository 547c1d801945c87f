//! What clients say of channels, checked and put into the store's words.

use std::fmt;

use docmill_egress::Egress;
use docmill_model::chain::Problem;
use docmill_model::channel::{ChannelId, ChannelKind};
use docmill_model::job::EventType;
use docmill_notify::{Mailbox, WebhookSecret};
use docmill_store::{ChannelDefinition, ChannelTarget};
use serde_json::Value;

use super::channels::ChannelRefused;
use super::secrets;
use crate::vault::Vault;

/// Most addresses in copy: nobody asked their owners.
const MOST_COPIES: usize = 10;

/// Longest URL of a webhook, in bytes.
const LONGEST_URL: usize = 2_048;

/// What a client wants of a new channel.
#[derive(Clone, Debug)]
pub struct ChannelRequest {
    /// Free text.
    pub description: Option<String>,
    /// What it is to be told of.
    pub events: Vec<EventType>,
    /// Whether it is to be told at all.
    pub enabled: bool,
    /// Where it leads.
    pub target: TargetRequest,
}

/// Where a new channel is to lead.
#[derive(Clone)]
pub enum TargetRequest {
    /// To a mailbox.
    Email {
        /// The address.
        recipient: String,
        /// Addresses that get copies.
        cc: Vec<String>,
        /// Where answers go.
        reply_to: Option<String>,
    },
    /// To an HTTP endpoint.
    Webhook {
        /// Its URL.
        url: String,
        /// What its requests are signed with; one is made when there is none or it is empty.
        secret: Option<String>,
    },
}

impl fmt::Debug for TargetRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Email { .. } => "Email",
            Self::Webhook { .. } => "Webhook",
        })
    }
}

/// What a client wants changed of a channel; `None` leaves a thing as it is.
#[derive(Clone, Debug, Default)]
pub struct ChannelPatch {
    /// Free text, or none.
    pub description: Option<Option<String>>,
    /// What it is told of.
    pub events: Option<Vec<EventType>>,
    /// Whether it is told at all.
    pub enabled: Option<bool>,
    /// A mail channel's addresses.
    pub email: Option<EmailPatch>,
    /// A webhook's URL.
    pub url: Option<String>,
    /// A webhook's secret.
    pub secret: Option<SecretPatch>,
    /// The kind the client takes it for, which can't be changed.
    pub kind: Option<ChannelKind>,
}

/// What a client wants changed of a mail channel's addresses.
#[derive(Clone, Debug, Default)]
pub struct EmailPatch {
    /// The address; with another the channel must be verified again.
    pub recipient: Option<String>,
    /// Addresses that get copies.
    pub cc: Option<Vec<String>>,
    /// Where answers go, or nowhere but the sender.
    pub reply_to: Option<Option<String>>,
}

/// What is to become of a webhook's secret.
#[derive(Clone)]
pub enum SecretPatch {
    /// Requests are not signed any more.
    Remove,
    /// This one signs from now on, and no other.
    Set(String),
}

impl fmt::Debug for SecretPatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretPatch")
    }
}

/// What checking needs.
#[derive(Clone, Copy)]
pub(super) struct Check<'a> {
    pub(super) egress: &'a Egress,
    pub(super) vault: &'a Vault,
    pub(super) channel: ChannelId,
    /// Where in the request the channel is, for problems.
    pub(super) loc: &'a [Value],
}

impl Check<'_> {
    /// A new channel's definition, and its secret if one was made.
    pub(super) fn request(
        self,
        request: ChannelRequest,
    ) -> Result<(ChannelDefinition, Option<String>), ChannelRefused> {
        let mut made = None;
        let target = match request.target {
            TargetRequest::Email {
                recipient,
                cc,
                reply_to,
            } => self.email(&recipient, &cc, reply_to.as_deref())?,
            TargetRequest::Webhook { url, secret } => {
                let secret = match secret.filter(|secret| !secret.is_empty()) {
                    Some(text) => self.secret(&text)?,
                    None => {
                        let secret = secrets::generate()?;
                        made = Some(secret.reveal().to_owned());
                        secret
                    }
                };
                let (url, host) = self.url(&url)?;
                let secrets = Some(secrets::seal(self.vault, self.channel, &secret)?);
                ChannelTarget::Webhook { url, host, secrets }
            }
        };
        let definition = ChannelDefinition {
            description: request.description,
            events: distinct(request.events),
            wanted: request.enabled,
            target,
        };
        Ok((definition, made))
    }

    /// A channel's definition with what is to be changed.
    pub(super) fn patch(
        self,
        current: ChannelDefinition,
        patch: &ChannelPatch,
    ) -> Result<ChannelDefinition, ChannelRefused> {
        let kind = current.target.kind();
        if patch.kind.is_some_and(|wanted| wanted != kind) {
            return Err(self.problem(
                &["channel_type"],
                "the type of a channel can't be changed; create another",
            ));
        }
        let target = match current.target {
            ChannelTarget::Email {
                recipient,
                mailbox,
                cc,
                reply_to,
            } => {
                for (given, field) in [(patch.url.is_some(), "url"), (patch.secret.is_some(), "secret")] {
                    if given {
                        return Err(self.problem(&[field], "a channel of type email has no such setting"));
                    }
                }
                match &patch.email {
                    Some(email) => self.email(
                        email.recipient.as_ref().unwrap_or(&recipient),
                        email.cc.as_ref().unwrap_or(&cc),
                        email.reply_to.as_ref().unwrap_or(&reply_to).as_deref(),
                    )?,
                    None => ChannelTarget::Email {
                        recipient,
                        mailbox,
                        cc,
                        reply_to,
                    },
                }
            }
            ChannelTarget::Webhook { url, host, secrets } => {
                if patch.email.is_some() {
                    return Err(self.problem(&["email_config"], "a channel of type webhook has no such setting"));
                }
                let (url, host) = match &patch.url {
                    Some(url) => self.url(url)?,
                    None => (url, host),
                };
                let secrets = match &patch.secret {
                    None => secrets,
                    Some(SecretPatch::Remove) => None,
                    Some(SecretPatch::Set(text)) => Some(secrets::seal(self.vault, self.channel, &self.secret(text)?)?),
                };
                ChannelTarget::Webhook { url, host, secrets }
            }
        };
        Ok(ChannelDefinition {
            description: patch.description.clone().unwrap_or(current.description),
            events: patch.events.clone().map_or(current.events, distinct),
            wanted: patch.enabled.unwrap_or(current.wanted),
            target,
        })
    }

    /// A secret that a client chose.
    pub(super) fn secret(self, text: &str) -> Result<WebhookSecret, ChannelRefused> {
        WebhookSecret::parse(text).map_err(|error| self.problem(&["secret"], &error.to_string()))
    }

    fn email(self, recipient: &str, cc: &[String], reply_to: Option<&str>) -> Result<ChannelTarget, ChannelRefused> {
        let mut problems = Vec::new();
        let mut read = |text: &str, place: Vec<Value>| match Mailbox::parse(text) {
            Ok(address) => Some(address),
            Err(error) => {
                let mut loc = self.loc.to_vec();
                loc.push("email_config".into());
                loc.extend(place);
                problems.push(Problem::new(&loc, "value_error", error.to_string()));
                None
            }
        };
        let to = read(recipient, vec!["recipient_email".into()]);
        let mut copies: Vec<String> = Vec::new();
        for (at, text) in cc.iter().take(MOST_COPIES + 1).enumerate() {
            if let Some(copy) = read(text, vec!["cc".into(), at.into()])
                && !copies.iter().any(|seen| seen == copy.as_str())
            {
                copies.push(copy.as_str().to_owned());
            }
        }
        let answers = reply_to.map(|text| read(text, vec!["reply_to".into()]));
        if cc.len() > MOST_COPIES {
            return Err(self.problem(
                &["email_config", "cc"],
                &format!("at most {MOST_COPIES} addresses get a copy"),
            ));
        }
        match to {
            Some(to) if problems.is_empty() => Ok(ChannelTarget::Email {
                mailbox: behind(&to),
                recipient: to.as_str().to_owned(),
                cc: copies,
                reply_to: answers.flatten().map(|answers| answers.as_str().to_owned()),
            }),
            _ => Err(ChannelRefused::Invalid(problems)),
        }
    }

    /// A webhook's URL, and its host and port.
    fn url(self, text: &str) -> Result<(String, String), ChannelRefused> {
        if text.len() > LONGEST_URL {
            return Err(self.problem(&["url"], &format!("the URL is longer than {LONGEST_URL} bytes")));
        }
        let url = self
            .egress
            .check_url(text)
            .map_err(|error| self.problem(&["url"], &error.to_string()))?;
        let host = match (url.host_str(), url.port_or_known_default()) {
            (Some(host), Some(port)) => format!("{host}:{port}"),
            _ => return Err(self.problem(&["url"], "the URL names no host")),
        };
        Ok((url.into(), host))
    }

    fn problem(self, place: &[&str], message: &str) -> ChannelRefused {
        let mut loc = self.loc.to_vec();
        loc.extend(place.iter().map(|part| Value::from(*part)));
        ChannelRefused::Invalid(vec![Problem::new(&loc, "value_error", message)])
    }
}

/// The mailbox behind an address: letter case and what follows a `+` make no other one for most servers.
fn behind(address: &Mailbox) -> String {
    let local = address.as_str().split('@').next().unwrap_or_default();
    let base = local.split('+').next().filter(|base| !base.is_empty()).unwrap_or(local);
    format!(
        "{}@{}",
        base.to_ascii_lowercase(),
        address.domain().to_ascii_lowercase()
    )
}

fn distinct(events: Vec<EventType>) -> Vec<EventType> {
    let mut kept = Vec::with_capacity(EventType::ALL.len());
    for event in events {
        if !kept.contains(&event) {
            kept.push(event);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_mailbox_count_as_one() {
        for text in [
            "ana@example.org",
            "Ana@EXAMPLE.org",
            "ana+x@example.org",
            "ANA+y+z@Example.Org",
        ] {
            assert_eq!(behind(&Mailbox::parse(text).unwrap()), "ana@example.org", "{text}");
        }
        assert_eq!(behind(&Mailbox::parse("+x@example.org").unwrap()), "+x@example.org");
    }
}
