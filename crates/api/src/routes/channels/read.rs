//! What clients say of channels, read field by field. Whether addresses, URLs and secrets are good is the
//! engine's to say.

use docmill_engine::{ChannelPatch, ChannelRequest, EmailPatch, SecretPatch, TargetRequest};
use docmill_model::chain::Problem;
use docmill_model::channel::ChannelKind;
use docmill_model::job::EventType;
use serde_json::{Map, Value};

use super::at;
use crate::body::{Fields, listed};
use crate::error::ApiResult;

/// Characters of a description.
const LONGEST_DESCRIPTION: usize = 255;

/// Items of a list of event types: each may be named twice and more.
const MOST_EVENTS: usize = 100;

/// Items of a list of addresses that are read at all; how many may be is the engine's to say.
const MOST_COPIES: usize = 100;

const COMMON: [&str; 4] = ["channel_type", "description", "event_types", "enabled"];

/// A channel to create.
pub(super) fn request(body: &Map<String, Value>) -> ApiResult<ChannelRequest> {
    let mut fields = Fields::new(body);
    if fields.value("channel_type").is_none() {
        fields.problem("channel_type", "missing", "field required");
    }
    let Some(kind) = fields.word("channel_type", ChannelKind::ALL) else {
        // Which fields there may be depends on it.
        fields.finish()?;
        return Ok(nothing());
    };
    let own: &[&str] = match kind {
        ChannelKind::Email => &["email_config"],
        ChannelKind::Webhook => &["url", "secret"],
    };
    fields.only(&[&COMMON, own].concat());
    let description = description(&mut fields);
    let events = events(&mut fields);
    if fields.value("event_types").is_none() {
        fields.problem("event_types", "missing", "field required");
    }
    let enabled = fields.boolean("enabled").unwrap_or(true);
    let target = match kind {
        ChannelKind::Email => email_target(&mut fields),
        ChannelKind::Webhook => TargetRequest::Webhook {
            url: fields.required_text("url").unwrap_or_default().to_owned(),
            secret: fields.text("secret").map(str::to_owned),
        },
    };
    fields.finish()?;
    Ok(ChannelRequest {
        description,
        events: events.unwrap_or_default(),
        enabled,
        target,
    })
}

/// Never used: the problem that led here is told.
fn nothing() -> ChannelRequest {
    ChannelRequest {
        description: None,
        events: Vec::new(),
        enabled: false,
        target: TargetRequest::Webhook {
            url: String::new(),
            secret: None,
        },
    }
}

fn email_target(fields: &mut Fields<'_>) -> TargetRequest {
    let email = email(fields).unwrap_or_default();
    if email.recipient.is_none() && fields.problems.is_empty() {
        let place: &[&str] = match fields.value("email_config") {
            Some(_) => &["email_config", "recipient_email"],
            None => &["email_config"],
        };
        fields
            .problems
            .push(Problem::new(&at(place), "missing", "field required"));
    }
    TargetRequest::Email {
        recipient: email.recipient.unwrap_or_default(),
        cc: email.cc.unwrap_or_default(),
        reply_to: email.reply_to.flatten(),
    }
}

/// What is to change of a channel.
pub(super) fn patch(body: &Map<String, Value>) -> ApiResult<ChannelPatch> {
    let mut fields = Fields::new(body);
    fields.only(&[&COMMON[..], &["email_config", "url", "secret"]].concat());
    let patch = ChannelPatch {
        kind: fields.word("channel_type", ChannelKind::ALL),
        description: fields.is_there("description").then(|| description(&mut fields)),
        events: events(&mut fields),
        enabled: fields.boolean("enabled"),
        email: email(&mut fields),
        url: fields.text("url").map(str::to_owned),
        secret: fields.text("secret").map(|text| match text {
            "" => SecretPatch::Remove,
            text => SecretPatch::Set(text.to_owned()),
        }),
    };
    fields.finish()?;
    Ok(patch)
}

/// The code to verify a channel with, by either name. What can't be a code does not cost a try.
pub(super) fn code(body: &Map<String, Value>) -> ApiResult<&str> {
    let mut fields = Fields::new(body);
    fields.only(&["code", "verification_code"]);
    let (one, other) = (fields.text("code"), fields.text("verification_code"));
    let code = one.or(other);
    if let Some(code) = code {
        if code.len() != 6 || !code.bytes().all(|byte| byte.is_ascii_digit()) {
            fields.problem("code", "string_pattern_mismatch", "input should be six digits");
        }
        if other.is_some_and(|other| other != code) {
            fields.problem(
                "verification_code",
                "value_error",
                "differs from `code`, which is the same field",
            );
        }
    } else if fields.problems.is_empty() {
        fields.problem("code", "missing", "field required");
    }
    fields.finish()?;
    Ok(code.unwrap_or_default())
}

fn description(fields: &mut Fields<'_>) -> Option<String> {
    let text = fields.text("description")?;
    if text.chars().count() > LONGEST_DESCRIPTION {
        fields.problem("description", "string_too_long", "must have at most 255 characters");
        return None;
    }
    Some(text.to_owned())
}

fn events(fields: &mut Fields<'_>) -> Option<Vec<EventType>> {
    let msg = format!("input should be one of {}", listed(EventType::ALL));
    let events = fields.list("event_types", MOST_EVENTS, "enum", &msg, |item| {
        item.as_str().and_then(EventType::parse)
    })?;
    if events.is_empty()
        && fields
            .value("event_types")
            .and_then(Value::as_array)
            .is_some_and(Vec::is_empty)
    {
        fields.problem("event_types", "too_short", "must have at least one item");
    }
    Some(events)
}

/// The addresses, as far as they are there.
fn email(fields: &mut Fields<'_>) -> Option<EmailPatch> {
    let Value::Object(config) = fields.value("email_config")? else {
        fields.problem("email_config", "dict_type", "input should be a JSON object");
        return None;
    };
    let mut inner = Fields::new(config);
    // `provider` is read-only: a channel may be sent back as it was read.
    inner.only(&["recipient_email", "cc", "reply_to", "provider"]);
    let text = |item: &Value| item.as_str().map(str::to_owned);
    let cc = inner.list("cc", MOST_COPIES, "string_type", "input should be a string", text);
    let patch = EmailPatch {
        recipient: inner.text("recipient_email").map(str::to_owned),
        cc: cc.or_else(|| inner.is_there("cc").then(Vec::new)),
        reply_to: inner
            .is_there("reply_to")
            .then(|| inner.text("reply_to").map(str::to_owned)),
    };
    for mut problem in inner.problems {
        problem.loc.insert(1, "email_config".into());
        fields.problems.push(problem);
    }
    Some(patch)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn map(value: Value) -> Map<String, Value> {
        match value {
            Value::Object(map) => map,
            other => panic!("{other}"),
        }
    }

    #[test]
    fn a_code_goes_by_either_name() {
        for body in [
            json!({"code": "042117"}),
            json!({"verification_code": "042117"}),
            json!({"code": "042117", "verification_code": "042117"}),
            json!({"code": "042117", "verification_code": null}),
        ] {
            assert_eq!(code(&map(body)).unwrap(), "042117");
        }
        for body in [
            json!({}),
            json!({"code": null}),
            json!({"code": 42117}),
            json!({"code": "42117"}),
            json!({"code": "0421170"}),
            json!({"code": " 04211"}),
            json!({"code": "٠٤٢"}),
            json!({"code": "042117", "verification_code": "042118"}),
            json!({"code": "042117", "other": 1}),
        ] {
            assert!(code(&map(body.clone())).is_err(), "{body}");
        }
    }

    #[test]
    fn what_is_absent_stays_and_what_is_null_goes() {
        let read = patch(&map(
            json!({"description": null, "email_config": {"cc": null, "reply_to": null}}),
        ))
        .unwrap();
        assert_eq!(read.description, Some(None));
        let email = read.email.unwrap();
        assert_eq!(
            (email.recipient, email.cc, email.reply_to),
            (None, Some(Vec::new()), Some(None))
        );
        let read = patch(&map(json!({"enabled": null, "email_config": {}, "secret": ""}))).unwrap();
        assert!(read.description.is_none() && read.enabled.is_none());
        assert!(matches!(read.secret, Some(SecretPatch::Remove)));
        let email = read.email.unwrap();
        assert_eq!((email.recipient, email.cc, email.reply_to), (None, None, None));
    }
}
