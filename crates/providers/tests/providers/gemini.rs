//! Vertex AI and the Gemini API.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use docmill_providers::{Finish, Provider, ProviderErrorKind, ProviderSettings, Secret};
use ring::signature::{KeyPair, RSA_PKCS1_2048_8192_SHA256, RsaKeyPair, UnparsedPublicKey};
use serde_json::{Value, json};

use crate::double::{Asked, Double, KEY, PNG, Reply, full, providers, settings, simple};

const NAME: Provider = Provider::VertexAi;

/// The body of [`full`] as the reference of `generateContent` has it.
fn body(asked: &Asked) -> Result<Reply, String> {
    let mut body = asked.json()?;
    body.equals("systemInstruction", json!({"parts": [{"text": "Be brief."}]}))?;
    body.equals(
        "contents",
        json!([
            {"role": "user", "parts": [{"text": "Hello"}]},
            {"role": "model", "parts": [{"text": "Hi"}]},
            {"role": "user", "parts": [
                {"text": "What is \"this\"?\n"},
                {"inlineData": {"mimeType": "image/png", "data": PNG}},
            ]},
        ]),
    )?;
    let schema = json!({
        "type": "OBJECT", "properties": {"type": {"type": "STRING"}},
        "propertyOrdering": ["type"], "required": ["type"],
    });
    body.equals(
        "generationConfig",
        json!({
            "maxOutputTokens": 77, "temperature": 0.1,
            "responseMimeType": "application/json", "responseSchema": schema,
        }),
    )?;
    body.done()?;
    Ok(Reply::json(json!({
        "candidates": [{
            "content": {"role": "model", "parts": [
                {"text": "Let me see", "thought": true},
                {"text": "{\"type\":"}, {"text": "\"graph\"}"},
            ]},
            "finishReason": "STOP", "avgLogprobs": -0.1, "safetyRatings": [],
        }],
        "usageMetadata": {
            "promptTokenCount": 50, "candidatesTokenCount": 7, "thoughtsTokenCount": 3, "totalTokenCount": 60,
        },
        "modelVersion": "gemini-2.0-flash-001", "responseId": "resp_1",
    })))
}

async fn asks_for_graph(settings: ProviderSettings) {
    let chat = providers(NAME, settings)
        .chat(NAME, "gemini-2.0-flash-001", None)
        .unwrap();
    let answer = chat.complete(&full()).await.unwrap();
    assert_eq!(answer.json(), Some(json!({"type": "graph"})));
    assert_eq!(
        (answer.finish, answer.request_id.as_deref()),
        (Finish::Complete, Some("resp_1"))
    );
    assert_eq!((answer.usage.tokens_in, answer.usage.tokens_out), (50, 10));
}

#[tokio::test]
async fn keys_go_to_vertex_or_to_the_gemini_api() {
    let double = Double::start(|asked, _| {
        let path = match asked.path.starts_with("/v1beta") {
            true => "/v1beta/models/gemini-2.0-flash-001:generateContent",
            false => "/v1/publishers/google/models/gemini-2.0-flash-001:generateContent",
        };
        asked.is(path, "", &[("x-goog-api-key", KEY)])?;
        body(asked)
    })
    .await;
    for base in ["", "/v1", "/v1beta", "/v1beta/"] {
        asks_for_graph(settings(&format!("{}{base}", double.url))).await;
    }
    let asked = double.seen.asked.lock().unwrap();
    let gemini = asked.iter().filter(|asked| asked.path.starts_with("/v1beta/"));
    assert_eq!((gemini.count(), asked.len()), (2, 4));
}

/// A service account of the tests alone.
const PRIVATE_KEY: &str = include_str!("../../../connectors/tests/connectors/object/service_account.pem");

fn key_pair() -> RsaKeyPair {
    let lines: String = PRIVATE_KEY.lines().filter(|line| !line.starts_with('-')).collect();
    RsaKeyPair::from_pkcs8(&STANDARD.decode(lines).unwrap()).unwrap()
}

/// Answers as Google's token service does.
fn token(asked: &Asked) -> Result<Reply, String> {
    if asked.header("content-type") != "application/x-www-form-urlencoded" {
        return Err("no form".into());
    }
    let form: Vec<_> = url::form_urlencoded::parse(&asked.body).into_owned().collect();
    let [(grant, kind), (name, assertion)] = form.as_slice() else {
        return Err("two fields".into());
    };
    let kind_is = "urn:ietf:params:oauth:grant-type:jwt-bearer";
    if (grant.as_str(), kind.as_str(), name.as_str()) != ("grant_type", kind_is, "assertion") {
        return Err("grant".into());
    }
    let (signed, signature) = assertion.rsplit_once('.').ok_or("no token")?;
    let signature = URL_SAFE_NO_PAD.decode(signature).map_err(|error| error.to_string())?;
    let pair = key_pair();
    let public = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, pair.public_key().as_ref());
    public.verify(signed.as_bytes(), &signature).map_err(|_| "signature")?;
    let parts: Vec<Value> = signed
        .split('.')
        .map(|part| serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap())
        .collect();
    if parts[0] != json!({"alg": "RS256", "typ": "JWT", "kid": "k1"}) {
        return Err(format!("head {}", parts[0]));
    }
    let claims = &parts[1];
    let scope = "https://www.googleapis.com/auth/cloud-platform";
    if claims["iss"] != "me@p.iam.gserviceaccount.com" || claims["scope"] != scope {
        return Err(format!("claims {claims}"));
    }
    Ok(Reply::json(
        json!({"access_token": "ya29.secret-token", "expires_in": 3_599, "token_type": "Bearer"}),
    ))
}

fn key_file(double: &Double) -> String {
    json!({
        "type": "service_account", "project_id": "my-project", "private_key_id": "k1", "private_key": PRIVATE_KEY,
        "client_email": "me@p.iam.gserviceaccount.com", "token_uri": format!("{}/token", double.url),
    })
    .to_string()
}

#[tokio::test]
async fn a_service_account_signs_for_one_token_that_is_kept() {
    let double = Double::start(|asked, _| {
        if asked.path == "/token" {
            return token(asked);
        }
        let (project, location) = match asked.path.contains("other") {
            true => ("other", "europe-west4"),
            false => ("my-project", "global"),
        };
        let path = format!(
            "/v1/projects/{project}/locations/{location}/publishers/google/models/gemini-2.0-flash-001:generateContent"
        );
        asked.is(&path, "", &[("authorization", "Bearer ya29.secret-token")])?;
        body(asked)
    })
    .await;
    let settings = ProviderSettings {
        api_key: None,
        service_account_key: Some(Secret::new(key_file(&double))),
        ..settings(&double.url)
    };
    let other = ProviderSettings {
        project: Some("other".into()),
        location: Some("europe-west4".into()),
        // The key of a node may be the text of a key file.
        api_key: settings.service_account_key.clone(),
        service_account_key: None,
        ..settings.clone()
    };
    asks_for_graph(other).await;
    let providers = providers(NAME, settings);
    for _ in 0..3 {
        let chat = providers.chat(NAME, "gemini-2.0-flash-001", None).unwrap();
        chat.complete(&full()).await.unwrap();
    }
    let asked = double.seen.asked.lock().unwrap();
    let tokens = asked.iter().filter(|asked| asked.path == "/token").count();
    assert_eq!((tokens, asked.len()), (2, 6));
}

#[tokio::test]
async fn a_blocked_prompt_is_a_refusal_and_a_wrong_key_is_told() {
    let double = Double::start(|_, number| match number {
        0 => Ok(Reply::json(json!({"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 4}}))),
        1 => Ok(Reply::json(json!({"candidates": [{"finishReason": "SAFETY"}]}))),
        2 => Ok(Reply::json(json!({"candidates": [{"content": {"parts": [{"text": "a"}]}, "finishReason": "MAX_TOKENS"}]}))),
        _ => {
            let details = json!([{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}]);
            let error = json!({"code": 400, "message": format!("{KEY} is not valid"), "status": "INVALID_ARGUMENT", "details": details});
            Ok(Reply::status(400, json!({"error": error}).to_string()))
        }
    })
    .await;
    let chat = providers(NAME, settings(&double.url))
        .chat(NAME, "gemini", None)
        .unwrap();
    let answer = chat.complete(&simple("x")).await.unwrap();
    assert_eq!(
        (answer.finish, answer.text.as_str(), answer.usage.tokens_in),
        (Finish::Refused, "SAFETY", 4)
    );
    assert_eq!(chat.complete(&simple("x")).await.unwrap().finish, Finish::Refused);
    assert_eq!(chat.complete(&simple("x")).await.unwrap().finish, Finish::Length);
    let error = chat.complete(&simple("x")).await.unwrap_err();
    assert_eq!((error.kind, double.count()), (ProviderErrorKind::Auth, 4));
    assert!(!format!("{error} {error:?}").contains(KEY));
}
