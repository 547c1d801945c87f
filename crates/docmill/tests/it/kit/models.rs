//! A double of a model provider that speaks OpenAI's language, and refuses what its reference does not have.

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use docmill_testkit::{Asked, Double, Fields, Reply};
use serde_json::{Value, json};

use super::{Server, documents};

/// The server's key for the double.
pub(crate) const MODEL_KEY: &str = "sk-test-0123456789abcdefghij";

/// What the double is asked: the name of the answer's schema (empty without one), the prompt, whether pictures
/// came with it.
pub(crate) struct Chat {
    pub(crate) schema: String,
    pub(crate) prompt: String,
    pub(crate) pictures: Vec<Vec<u8>>,
}

/// Reads a request for a chat completion; what is wrong with it, otherwise.
pub(crate) fn chat(asked: &Asked, key: &str) -> Result<Chat, String> {
    asked.is(
        "/v1/chat/completions",
        "",
        &[("authorization", &format!("Bearer {key}"))],
    )?;
    let mut body = asked.json()?;
    body.equals("model", json!("gpt-4o"))?;
    body.equals("temperature", json!(0.0))?;
    let tokens = body.take("max_completion_tokens")?;
    if !(1..=16_384).contains(&tokens.as_u64().unwrap_or(0)) {
        return Err(format!("{tokens} tokens"));
    }
    let messages = body.take("messages")?;
    let [system, user] = messages.as_array().map(Vec::as_slice).unwrap_or_default() else {
        return Err(format!("not two messages: {messages}"));
    };
    if system["role"] != "system" || !system["content"].is_string() || user["role"] != "user" {
        return Err(format!("who says what? {messages}"));
    }
    let (mut prompt, mut pictures) = (String::new(), Vec::new());
    let single = [json!({"type": "text", "text": user["content"]})];
    for part in user["content"].as_array().map_or(&single[..], Vec::as_slice) {
        match part["type"].as_str() {
            Some("text") => prompt.push_str(part["text"].as_str().ok_or("a text without text")?),
            Some("image_url") => {
                let url = part["image_url"]["url"].as_str().unwrap_or_default();
                let base64 = ["data:image/png;base64,", "data:image/jpeg;base64,"]
                    .iter()
                    .find_map(|start| url.strip_prefix(start));
                let picture = base64.and_then(|base64| STANDARD.decode(base64).ok());
                let picture = picture.filter(|bytes| {
                    let start: &[u8] = if url.contains("png") {
                        b"\x89PNG\r\n\x1a\n"
                    } else {
                        b"\xff\xd8\xff"
                    };
                    bytes.starts_with(start)
                });
                pictures.push(picture.ok_or_else(|| format!("no picture: {url}"))?);
            }
            _ => return Err(format!("an unknown part: {part}")),
        }
    }
    let mut schema = String::new();
    if let Ok(format) = body.take("response_format") {
        let mut format = Fields::of(format)?;
        format.equals("type", json!("json_schema"))?;
        let mut named = Fields::of(format.take("json_schema")?)?;
        format.done()?;
        named.equals("strict", json!(true))?;
        check_strict(&named.take("schema")?)?;
        schema = named.take("name")?.as_str().unwrap_or_default().to_owned();
        named.done()?;
    }
    body.done()?;
    Ok(Chat {
        schema,
        prompt,
        pictures,
    })
}

/// Strict schemas name every property as required and allow no other, all the way down.
fn check_strict(schema: &Value) -> Result<(), String> {
    if let Some(properties) = schema["properties"].as_object() {
        let required = schema["required"].as_array().map_or(0, Vec::len);
        if required != properties.len() || schema["additionalProperties"] != false {
            return Err(format!("not strict: {schema}"));
        }
        properties.values().try_for_each(check_strict)?;
    }
    match schema.get("items") {
        Some(items) => check_strict(items),
        None => Ok(()),
    }
}

/// A completion with this text.
pub(crate) fn completion(text: impl Into<String>) -> Reply {
    let text: String = text.into();
    Reply::json(json!({
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1_700_000_000, "model": "gpt-4o-2024-08-06",
        "choices": [{"index": 0, "logprobs": null, "finish_reason": "stop",
            "message": {"role": "assistant", "content": text, "refusal": null}}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
    }))
    .with("x-request-id", "req_42")
}

/// What a good model would say to each question.
pub(crate) fn good_answer(chat: &Chat) -> Reply {
    if chat.schema == "image_description" && chat.pictures.len() != 1 {
        return Reply::status(400, "one picture was to be described");
    }
    completion(match chat.schema.as_str() {
        "image_description" => json!({"type": "graph", "description": {
            "texts": ["Revenue"], "tables": [], "description": "Bars that rise from 2023 to 2024."}})
        .to_string(),
        "table_description" => json!({"description": "Revenue rose from 1 to 2 million."}).to_string(),
        "named_entities" => json!({
            "items": [{"entity": "Ada", "type": "PERSON"}, {"entity": "ACME", "type": "ORGANIZATION"}],
            "relationships": [{"from": "Ada", "relationship": "works_for", "to": "ACME"}],
        })
        .to_string(),
        "extracted_data" => json!({"company": "ACME", "years": [2023, 2024]}).to_string(),
        "table_merging" => json!({"merge": true, "confidence": "high"}).to_string(),
        _ if chat.prompt.contains("<table") => {
            "```html\n<table><tr><th>Year</th><th>Revenue</th></tr><tr><td>2023</td><td>1</td></tr>\
             <tr><td>2024</td><td>2</td></tr></table>\n```"
                .to_owned()
        }
        _ => "From the yearly report of ACME.".to_owned(),
    })
}

/// Reads a request for embeddings and answers it: vectors of 1,536 numbers that depend on their text.
pub(crate) fn embeddings(asked: &Asked, key: &str) -> Result<Reply, String> {
    asked.is("/v1/embeddings", "", &[("authorization", &format!("Bearer {key}"))])?;
    let mut body = asked.json()?;
    body.equals("model", json!("text-embedding-3-small"))?;
    body.equals("encoding_format", json!("float"))?;
    let input = body.take("input")?;
    body.done()?;
    let texts = input
        .as_array()
        .filter(|texts| (1..=2_048).contains(&texts.len()))
        .ok_or("no texts")?;
    let data = texts.iter().enumerate().map(|(index, text)| {
        let mut vector = vec![0.25; 1_536];
        vector[0] = text.as_str().unwrap_or_default().chars().count() as f64;
        json!({"object": "embedding", "index": index, "embedding": vector})
    });
    let data: Vec<_> = data.collect();
    let tokens = texts.len() * 10;
    Ok(Reply::json(json!({
        "object": "list", "data": data, "model": "text-embedding-3-small",
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
    })))
}

/// A double that answers everything well.
pub(crate) async fn good_model() -> Double {
    good_model_after(Duration::ZERO).await
}

/// The same, taking its time.
pub(crate) async fn good_model_after(delay: Duration) -> Double {
    Double::slow(delay, |asked, _| match asked.path.as_str() {
        "/v1/embeddings" => embeddings(asked, MODEL_KEY),
        _ => Ok(good_answer(&chat(asked, MODEL_KEY)?)),
    })
    .await
}

/// How often each request came, by its body.
pub(crate) fn asked(double: &Double) -> BTreeMap<Vec<u8>, usize> {
    let mut times = BTreeMap::new();
    for asked in double.seen.asked.lock().expect("the requests").iter() {
        *times.entry(asked.body.clone()).or_default() += 1;
    }
    times
}

/// The settings of a server whose `openai` is a double.
pub(crate) fn settings(double: &Double) -> Vec<(String, String)> {
    [
        ("PROVIDERS__OPENAI__BASE_URL", format!("{}/v1", double.url)),
        ("PROVIDERS__OPENAI__API_KEY", MODEL_KEY.to_owned()),
        ("PROVIDERS__OPENAI__RETRY_BASE_MILLIS", "1".to_owned()),
        ("EGRESS__DANGER_ALLOW_CIDRS", "127.0.0.0/8".to_owned()),
        ("EGRESS__ALLOW_HTTP", "true".to_owned()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}

/// A server whose `openai` is a double, with more settings.
pub(crate) async fn server(double: &Double, more: &[(&str, &str)]) -> Server {
    let mut all = settings(double);
    all.extend(
        more.iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned())),
    );
    let all: Vec<_> = all
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    Server::with(&all).await
}

/// A node.
pub(crate) fn node(kind: &str, subtype: &str, settings: Value) -> Value {
    json!({"name": subtype, "type": kind, "subtype": subtype, "settings": settings})
}

/// An enrichment by the double.
pub(crate) fn prompter(task: &str) -> Value {
    node("prompter", &format!("openai_{task}"), json!({"model": "gpt-4o"}))
}

/// Embedding by the double.
pub(crate) fn embedder() -> Value {
    node("embed", "openai", json!({"model_name": "text-embedding-3-small"}))
}

/// A partition node that asks for pictures.
pub(crate) fn hi_res() -> Value {
    node(
        "partition",
        "unstructured_api",
        json!({"strategy": "hi_res", "extract_image_block_types": ["image", "table"], "infer_table_structure": true}),
    )
}

/// A report as elements: a heading, prose, a picture, a table.
pub(crate) fn report() -> Vec<u8> {
    json!([
        {"type": "Title", "element_id": "1", "text": "Report of the year", "metadata": {"page_number": 1}},
        {"type": "NarrativeText", "element_id": "2", "text": "Ada works for ACME in Paris.",
         "metadata": {"page_number": 1, "parent_id": "1"}},
        {"type": "Image", "element_id": "3", "text": "Revenue", "metadata": {
            "page_number": 1, "image_base64": "iVBORw0KGgo=", "image_mime_type": "image/png"}},
        {"type": "Table", "element_id": "4", "text": "Year Revenue 2023 1 2024 2", "metadata": {
            "page_number": 2, "image_base64": "iVBORw0KGgoA", "image_mime_type": "image/png",
            "text_as_html": "<table><tr><td>Year Revenue</td></tr><tr><td>2023 1 2024 2</td></tr></table>"}},
    ])
    .to_string()
    .into_bytes()
}

/// The same report as a PDF, whose table is ruled.
pub(crate) fn report_pdf() -> Vec<u8> {
    let mut page = String::from(
        "BT /F2 22 Tf 72 760 Td (Report of the year) Tj ET BT /F1 11 Tf 72 730 Td (Ada works for ACME in Paris.) Tj ET \
         q 200 0 0 200 72 500 cm /Chart Do Q\n",
    );
    for (row, cells) in [["Year", "Revenue"], ["2023", "1"], ["2024", "2"]].iter().enumerate() {
        let y = 440 - 20 * row;
        for (cell, x) in cells.iter().zip([76, 176]) {
            page.push_str(&format!("BT /F1 11 Tf {x} {y} Td ({cell}) Tj ET\n"));
        }
    }
    for y in [454, 434, 414, 394] {
        page.push_str(&format!("72 {y} m 272 {y} l S\n"));
    }
    for x in [72, 172, 272] {
        page.push_str(&format!("{x} 394 m {x} 454 l S\n"));
    }
    documents::pdf_of(&[(595, page)])
}

/// A page of so many paragraphs, all different.
pub(crate) fn paragraphs(count: usize) -> Vec<u8> {
    let mut page = String::from("<html><body>");
    for number in 0..count {
        page.push_str(&format!(
            "<p>Ada wrote letter number {number} to the people of ACME in Paris.</p>"
        ));
    }
    page.push_str("</body></html>");
    page.into_bytes()
}
