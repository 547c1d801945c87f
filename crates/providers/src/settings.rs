//! How providers are reached.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::{Provider, Usage};

/// A key. Debug text does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

/// Text, also where a reader of environment variables took it for a number.
#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Text(String),
    Number(u64),
}

impl From<Written> for String {
    fn from(written: Written) -> Self {
        match written {
            Written::Text(text) => text,
            Written::Number(number) => number.to_string(),
        }
    }
}

fn written<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    Ok(Option::<Written>::deserialize(from)?.map(String::from))
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Written::deserialize(from).map(|text| Self::new(String::from(text)))
    }
}

impl Serialize for Secret {
    /// Never the key.
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str("***")
    }
}

impl Secret {
    /// A key; blanks around it are dropped, which files and environments add.
    pub fn new(text: impl AsRef<str>) -> Self {
        Self(text.as_ref().trim().to_owned())
    }

    /// The key itself.
    pub fn expose(&self) -> &str {
        self.0.trim()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// How a provider is reached: the settings `providers.<name>.*`. Those that a provider does not know are
/// ignored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ProviderSettings {
    /// Where it is, where that is not its public address. For `azure_openai` the resource's endpoint, for
    /// `custom` everything before `/chat/completions` and `/embeddings`.
    pub base_url: Option<String>,
    /// The key.
    pub api_key: Option<Secret>,
    /// Longest wait for a whole answer.
    pub timeout_secs: u64,
    /// Most requests under way at once.
    pub concurrency: usize,
    /// How often a request is sent again at most.
    pub max_retries: u32,
    /// First wait before a request is sent again; it doubles from one to the next.
    pub retry_base_millis: u64,
    /// Most bytes of an answer.
    pub max_answer_bytes: usize,
    /// `azure_openai`, `ibm`: version of the interface.
    pub api_version: Option<String>,
    /// `bedrock`: region.
    pub region: Option<String>,
    /// `bedrock`: access key, with `secret_access_key`.
    pub access_key_id: Option<String>,
    /// `bedrock`: secret of the access key.
    pub secret_access_key: Option<Secret>,
    /// `bedrock`: goes with temporary access keys.
    pub session_token: Option<Secret>,
    /// `bedrock`: use the credentials of the machine (web identity, container, instance).
    pub ambient_credentials: bool,
    /// `vertexai`: text of a service account's key file.
    pub service_account_key: Option<Secret>,
    /// `vertexai`: project, where it is not the key file's. `ibm`: project id.
    #[serde(deserialize_with = "written")]
    pub project: Option<String>,
    /// `vertexai`: location; `global` unless set.
    pub location: Option<String>,
    /// `ibm`: deployment space, instead of a project.
    pub space_id: Option<String>,
    /// `local`: directory of models, each in a directory of its name with `model.onnx` (or `onnx/model.onnx`)
    /// and `tokenizer.json`.
    pub model_dir: Option<PathBuf>,
    /// `local`: the library of ONNX Runtime, where it is not `ORT_DYLIB_PATH` or where libraries are.
    pub runtime_library: Option<PathBuf>,
    /// `ibm`: where keys are exchanged for tokens, where that is not the public address.
    pub iam_url: Option<String>,
    /// What models cost, by the model's name.
    pub prices: BTreeMap<String, Price>,
}

/// What a model costs: units of whatever currency prices are in, for a million tokens. A millionth of a unit
/// is then what one token costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Price {
    /// For a million tokens of the input.
    pub input_per_million: f64,
    /// For a million tokens of the output.
    pub output_per_million: f64,
}

impl Price {
    /// What so many tokens cost, in millionths of a unit, rounded up.
    pub fn micros(&self, usage: &Usage) -> i64 {
        let cost = usage.tokens_in as f64 * self.input_per_million + usage.tokens_out as f64 * self.output_per_million;
        cost.ceil().clamp(0.0, 9e15) as i64
    }
}

impl Default for ProviderSettings {
    fn default() -> Self {
        Self {
            base_url: None,
            api_key: None,
            timeout_secs: 120,
            concurrency: 8,
            max_retries: 4,
            retry_base_millis: 500,
            max_answer_bytes: 64 << 20,
            api_version: None,
            region: None,
            access_key_id: None,
            secret_access_key: None,
            session_token: None,
            ambient_credentials: false,
            service_account_key: None,
            project: None,
            location: None,
            space_id: None,
            model_dir: None,
            runtime_library: None,
            iam_url: None,
            prices: BTreeMap::new(),
        }
    }
}

impl ProviderSettings {
    /// Fills what is not set from the variables that the provider's own tools read.
    #[must_use]
    pub fn with_usual_variables(mut self, name: Provider, env: &dyn Fn(&str) -> Option<String>) -> Self {
        let first = |names: &[&str]| {
            let mut found = names.iter().filter_map(|name| env(name));
            found.find(|value| !value.trim().is_empty())
        };
        let secret = |names: &[&str]| first(names).map(Secret::new);
        match name {
            Provider::OpenAi => {
                self.api_key = self.api_key.or_else(|| secret(&["OPENAI_API_KEY"]));
                self.base_url = self.base_url.or_else(|| first(&["OPENAI_BASE_URL"]));
            }
            Provider::AzureOpenAi => {
                self.api_key = self.api_key.or_else(|| secret(&["AZURE_OPENAI_API_KEY"]));
                self.base_url = self.base_url.or_else(|| first(&["AZURE_OPENAI_ENDPOINT"]));
                let version = || first(&["AZURE_OPENAI_API_VERSION", "OPENAI_API_VERSION"]);
                self.api_version = self.api_version.or_else(version);
            }
            Provider::Anthropic => {
                self.api_key = self.api_key.or_else(|| secret(&["ANTHROPIC_API_KEY"]));
                self.base_url = self.base_url.or_else(|| first(&["ANTHROPIC_BASE_URL"]));
            }
            Provider::Bedrock => self = self.amazon(&first),
            Provider::VertexAi => self = self.google(&first),
            Provider::VoyageAi => {
                self.api_key = self.api_key.or_else(|| secret(&["VOYAGE_API_KEY", "VOYAGEAI_API_KEY"]));
            }
            Provider::TogetherAi => {
                self.api_key = self
                    .api_key
                    .or_else(|| secret(&["TOGETHER_API_KEY", "TOGETHERAI_API_KEY"]));
            }
            Provider::Ibm => {
                self.api_key = self.api_key.or_else(|| secret(&["WATSONX_API_KEY", "WATSONX_APIKEY"]));
                self.base_url = self.base_url.or_else(|| first(&["WATSONX_URL"]));
                self.project = self.project.or_else(|| first(&["WATSONX_PROJECT_ID"]));
                self.space_id = self.space_id.or_else(|| first(&["WATSONX_SPACE_ID"]));
            }
            Provider::Custom | Provider::Local => {}
        }
        self
    }

    fn amazon(mut self, first: &dyn Fn(&[&str]) -> Option<String>) -> Self {
        self.region = self.region.or_else(|| first(&["AWS_REGION", "AWS_DEFAULT_REGION"]));
        if self.api_key.is_none() && self.access_key_id.is_none() && !self.ambient_credentials {
            self.api_key = first(&["AWS_BEARER_TOKEN_BEDROCK"]).map(Secret::new);
            let pair = (first(&["AWS_ACCESS_KEY_ID"]), first(&["AWS_SECRET_ACCESS_KEY"]));
            if let (None, (Some(id), Some(key))) = (&self.api_key, pair) {
                self.access_key_id = Some(id);
                self.secret_access_key = Some(Secret::new(key));
                self.session_token = first(&["AWS_SESSION_TOKEN"]).map(Secret::new);
            }
        }
        self
    }

    fn google(mut self, first: &dyn Fn(&[&str]) -> Option<String>) -> Self {
        self.project = self.project.or_else(|| first(&["GOOGLE_CLOUD_PROJECT"]));
        self.location = self.location.or_else(|| first(&["GOOGLE_CLOUD_LOCATION"]));
        if self.api_key.is_none() && self.service_account_key.is_none() {
            let gemini = first(&["GEMINI_API_KEY", "GOOGLE_API_KEY"]);
            if gemini.is_some() {
                // Keys in these variables are those of the Gemini API, not of Vertex AI.
                let there = || crate::wire::gemini::GEMINI_API.to_owned();
                self.base_url = self.base_url.or_else(|| Some(there()));
            }
            self.api_key = gemini.map(Secret::new);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_before_the_usual_variables() {
        let env = |name: &str| match name {
            "OPENAI_API_KEY" | "GEMINI_API_KEY" | "AWS_ACCESS_KEY_ID" | "AWS_SECRET_ACCESS_KEY" => {
                Some(format!(" {name}\n"))
            }
            "WATSONX_URL" => Some("  ".into()),
            _ => None,
        };
        let read = |name, settings: ProviderSettings| settings.with_usual_variables(name, &env);
        let key = |settings: &ProviderSettings| settings.api_key.as_ref().map(|key| key.expose().to_owned());
        let open = read(Provider::OpenAi, ProviderSettings::default());
        assert_eq!(key(&open).as_deref(), Some("OPENAI_API_KEY"));
        assert!(!format!("{open:?}").contains("OPENAI_API_KEY"));
        let mine = ProviderSettings {
            api_key: Some(Secret::new("mine")),
            ..ProviderSettings::default()
        };
        assert_eq!(key(&read(Provider::OpenAi, mine.clone())).as_deref(), Some("mine"));
        let gemini = read(Provider::VertexAi, ProviderSettings::default());
        assert_eq!(gemini.base_url.as_deref(), Some(crate::wire::gemini::GEMINI_API));
        assert_eq!(read(Provider::VertexAi, mine.clone()).base_url, None);
        let bedrock = read(Provider::Bedrock, ProviderSettings::default());
        assert!(bedrock.access_key_id.is_some() && bedrock.secret_access_key.is_some());
        assert_eq!(read(Provider::Bedrock, mine).access_key_id, None);
        assert_eq!(read(Provider::Ibm, ProviderSettings::default()).base_url, None);
    }
}
