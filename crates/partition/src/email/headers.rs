//! Header fields of a message to metadata.

use docmill_model::Metadata;
use mail_parser::{Address, DateTime, Message};

/// The fields all elements of a message's body carry.
pub(super) fn metadata(message: &Message) -> Metadata {
    Metadata {
        subject: message.subject().map(str::to_owned).filter(|s| !s.is_empty()),
        sent_from: addresses(message.from()),
        sent_to: addresses(message.to()),
        cc_recipient: addresses(message.cc()),
        bcc_recipient: addresses(message.bcc()),
        email_message_id: message.message_id().map(str::to_owned),
        last_modified: message.date().and_then(utc),
        ..Metadata::default()
    }
}

/// Copies the fields of `from` that are set.
pub(super) fn apply(from: &Metadata, to: &mut Metadata) {
    to.subject.clone_from(&from.subject);
    to.sent_from.clone_from(&from.sent_from);
    to.sent_to.clone_from(&from.sent_to);
    to.cc_recipient.clone_from(&from.cc_recipient);
    to.bcc_recipient.clone_from(&from.bcc_recipient);
    to.email_message_id.clone_from(&from.email_message_id);
    to.last_modified.clone_from(&from.last_modified);
}

/// Mailboxes as `Name <address>`, or the address alone.
fn addresses(list: Option<&Address>) -> Vec<String> {
    let Some(list) = list else { return Vec::new() };
    list.iter()
        .filter_map(|mailbox| match (mailbox.name.as_deref(), mailbox.address.as_deref()) {
            (Some(name), Some(address)) if !name.is_empty() => Some(format!("{name} <{address}>")),
            (_, Some(address)) => Some(address.to_owned()),
            (Some(name), None) => Some(name.to_owned()),
            (None, None) => None,
        })
        .collect()
}

/// A date in UTC as `YYYY-MM-DDTHH:MM:SS`; `None` when it is no date.
fn utc(date: &DateTime) -> Option<String> {
    if !date.is_valid() {
        return None;
    }
    let utc = DateTime::from_timestamp(date.to_timestamp());
    Some(format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}",
        utc.year, utc.month, utc.day, utc.hour, utc.minute, utc.second
    ))
}
