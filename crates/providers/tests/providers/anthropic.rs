//! Anthropic.

use docmill_providers::{Finish, Provider};
use serde_json::json;

use crate::double::{Double, KEY, PNG, Reply, full, providers, schema_value, settings, simple};

const HEADERS: [(&str, &str); 2] = [("x-api-key", KEY), ("anthropic-version", "2023-06-01")];

#[tokio::test]
async fn messages_hold_what_the_reference_defines() {
    let double = Double::start(|asked, _| {
        asked.is("/v1/messages", "", &HEADERS)?;
        let mut body = asked.json()?;
        body.equals("model", json!("claude-sonnet-4-20250514"))?;
        body.equals("max_tokens", json!(77))?;
        body.equals("temperature", json!(0.1))?;
        body.equals("system", json!("Be brief."))?;
        let image = json!({"type": "base64", "media_type": "image/png", "data": PNG});
        body.equals(
            "messages",
            json!([
                {"role": "user", "content": [{"type": "text", "text": "Hello"}]},
                {"role": "assistant", "content": [{"type": "text", "text": "Hi"}]},
                {"role": "user", "content": [
                    {"type": "text", "text": "What is \"this\"?\n"},
                    {"type": "image", "source": image},
                ]},
            ]),
        )?;
        let tool = json!({"name": "description", "description": "Gives the answer.", "input_schema": schema_value()});
        body.equals("tools", json!([tool]))?;
        body.equals("tool_choice", json!({"type": "tool", "name": "description"}))?;
        body.done()?;
        let reply = json!({
            "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-20250514",
            "content": [
                {"type": "text", "text": "Here it is."},
                {"type": "tool_use", "id": "toolu_1", "name": "description", "input": {"type": "graph"}},
            ],
            "stop_reason": "tool_use", "stop_sequence": null,
            "usage": {
                "input_tokens": 100, "output_tokens": 9,
                "cache_creation_input_tokens": 10, "cache_read_input_tokens": 5,
            },
        });
        Ok(Reply::json(reply).with("request-id", "req_011"))
    })
    .await;
    for base in ["", "/v1"] {
        let settings = settings(&format!("{}{base}", double.url));
        let providers = providers(Provider::Anthropic, settings);
        let chat = providers
            .chat(Provider::Anthropic, "claude-sonnet-4-20250514", None)
            .unwrap();
        let answer = chat.complete(&full()).await.unwrap();
        assert_eq!(
            (answer.finish, answer.json()),
            (Finish::Complete, Some(json!({"type": "graph"})))
        );
        assert_eq!(answer.request_id.as_deref(), Some("req_011"));
        assert_eq!((answer.usage.tokens_in, answer.usage.tokens_out), (115, 9));
    }
}

#[tokio::test]
async fn text_alone_asks_for_nothing_more() {
    let double = Double::start(|asked, number| {
        asked.is("/v1/messages", "", &HEADERS)?;
        let mut body = asked.json()?;
        body.equals("model", json!("claude"))?;
        body.equals("max_tokens", json!(10))?;
        let content = json!([{"type": "text", "text": "x"}]);
        body.equals("messages", json!([{"role": "user", "content": content}]))?;
        body.done()?;
        let reason = ["end_turn", "max_tokens", "refusal", "pause_turn"][number];
        Ok(Reply::json(json!({
            "id": "msg_1", "type": "message", "role": "assistant", "model": "claude",
            "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
            "stop_reason": reason, "usage": {"input_tokens": 1, "output_tokens": 2},
        })))
    })
    .await;
    let providers = providers(Provider::Anthropic, settings(&double.url));
    let chat = providers.chat(Provider::Anthropic, "claude", None).unwrap();
    for finish in [Finish::Complete, Finish::Length, Finish::Refused, Finish::Other] {
        let answer = chat.complete(&simple("x")).await.unwrap();
        assert_eq!((answer.text.as_str(), answer.finish), ("ab", finish));
        assert_eq!(answer.request_id.as_deref(), Some("msg_1"));
    }
}
