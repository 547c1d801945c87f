//! All providers, as the settings say.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use docmill_egress::identity::aws::{Key, domain, is_region};
use docmill_egress::identity::{GoogleAccount, IdentityError, Kept};
use docmill_egress::{Egress, HttpClient};
use tokio::sync::Semaphore;

use crate::caller::{AwsKeys, Caller, Login};
#[cfg(feature = "local-models")]
use crate::local::LocalEmbedder;
use crate::wire::anthropic::{self, AnthropicChat};
use crate::wire::bedrock::{BedrockChat, BedrockEmbedder, Family};
use crate::wire::gemini::{self, GeminiChat, Place};
use crate::wire::openai::{OpenAiChat, OpenAiEmbedder, Shape};
use crate::wire::voyage::{self, VoyageEmbedder};
use crate::wire::watsonx::{self, WatsonxEmbedder};
use crate::wire::{checked_model, url};
use crate::{Chat, Embedder, Provider, ProviderError, ProviderErrorKind, ProviderSettings, Result, Secret};

#[cfg(not(feature = "local-models"))]
const NOT_BUILT: &str = "this program was built without local models: build it with `cargo build --release -p docmill \
                         --features local-models`";

/// Most texts of a batch for a server of one's own: text-embeddings-inference takes no more unless told.
const CUSTOM_BATCH: usize = 32;

/// Most texts of a batch for Together AI.
const TOGETHER_BATCH: usize = 64;

/// A setting that a provider can't do without.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// Which provider.
    pub provider: Provider,
    /// The setting's name below `providers.<name>`.
    pub setting: &'static str,
    /// For people: what to set, and how.
    pub message: String,
}

/// All providers, as the settings say. Made once; clones share one state.
#[derive(Clone)]
pub struct Providers {
    inner: Arc<Inner>,
}

struct Inner {
    egress: Egress,
    settings: BTreeMap<Provider, ProviderSettings>,
    /// Places for requests under way.
    slots: BTreeMap<Provider, Arc<Semaphore>>,
    /// Made at first use.
    clients: Mutex<BTreeMap<Provider, HttpClient>>,
    /// Those with the keys of the settings, made at first use.
    callers: Mutex<BTreeMap<Provider, Arc<Caller>>>,
    /// Models run here, by name.
    #[cfg(feature = "local-models")]
    local: Mutex<BTreeMap<String, Arc<LocalEmbedder>>>,
}

impl fmt::Debug for Providers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Providers")
    }
}

impl Providers {
    /// Providers reached by `egress`; those that `settings` doesn't name have the defaults.
    pub fn new(egress: Egress, mut settings: BTreeMap<Provider, ProviderSettings>) -> Self {
        for &name in Provider::ALL {
            settings.entry(name).or_default();
        }
        let places = |settings: &ProviderSettings| settings.concurrency.clamp(1, Semaphore::MAX_PERMITS);
        let slots = settings
            .iter()
            .map(|(name, settings)| (*name, Arc::new(Semaphore::new(places(settings)))));
        Self {
            inner: Arc::new(Inner {
                egress,
                slots: slots.collect(),
                settings,
                clients: Mutex::default(),
                callers: Mutex::default(),
                #[cfg(feature = "local-models")]
                local: Mutex::default(),
            }),
        }
    }

    /// The settings of a provider.
    pub fn settings(&self, name: Provider) -> ProviderSettings {
        self.inner.settings.get(&name).cloned().unwrap_or_default()
    }

    /// Whether a provider can be used, with `key` (a node's own) or the settings' credentials. Asks nobody.
    ///
    /// # Errors
    /// The first setting that is missing.
    pub fn check(&self, name: Provider, key: Option<&Secret>) -> std::result::Result<(), Missing> {
        let settings = self.settings(name);
        let keyed = key.is_some() || settings.api_key.is_some();
        let lacks = |setting: &'static str, what: &str| {
            let variable = format!(
                "DOCMILL_PROVIDERS__{}__{}",
                name.as_str().to_ascii_uppercase(),
                setting.to_ascii_uppercase()
            );
            Err(Missing {
                provider: name,
                setting,
                message: format!("provider {name} has no {what}: set providers.{name}.{setting} ({variable})"),
            })
        };
        match name {
            // A server of one's own may want no key.
            Provider::OpenAi if settings.base_url.is_some() => Ok(()),
            Provider::Custom if settings.base_url.is_none() => lacks("base_url", "address"),
            Provider::Custom => Ok(()),
            Provider::Local if settings.model_dir.is_none() => lacks("model_dir", "directory of models"),
            Provider::Local => Ok(()),
            Provider::AzureOpenAi if settings.base_url.is_none() => lacks("base_url", "address"),
            Provider::Bedrock if settings.region.is_none() => lacks("region", "region"),
            Provider::Bedrock if keyed || settings.ambient_credentials => Ok(()),
            Provider::Bedrock if settings.access_key_id.is_none() => lacks("access_key_id", "credentials"),
            Provider::Bedrock if settings.secret_access_key.is_none() => {
                lacks("secret_access_key", "secret for its access key")
            }
            Provider::Bedrock => Ok(()),
            Provider::VertexAi if keyed || settings.service_account_key.is_some() => Ok(()),
            Provider::Ibm if settings.project.is_none() && settings.space_id.is_none() => {
                lacks("project", "project or deployment space")
            }
            _ if keyed => Ok(()),
            _ => lacks("api_key", "credentials"),
        }
    }

    /// A model to chat with. `key`: a node's own key instead of that of the settings.
    ///
    /// # Errors
    /// [`ProviderErrorKind::Setup`] when settings are missing or can't work.
    pub fn chat(&self, name: Provider, model: &str, key: Option<&Secret>) -> Result<Arc<dyn Chat>> {
        if !name.chats() {
            return Err(setup(name, "it has no models to chat with"));
        }
        let (caller, settings) = (self.caller(name, key)?, self.settings(name));
        let model = checked_model(&caller, model)?;
        Ok(match name {
            Provider::Anthropic => {
                let base = self.base(name, &settings, anthropic::BASE)?;
                let url = url(&caller, base.trim_end_matches("/v1"), "/v1/messages")?;
                Arc::new(AnthropicChat { caller, model, url })
            }
            Provider::Bedrock => {
                let base = self.amazon_base(&settings)?;
                Arc::new(BedrockChat { caller, model, base })
            }
            Provider::VertexAi => {
                let base = settings.base_url.as_ref();
                let base = base.map(|_| self.base(name, &settings, "")).transpose()?;
                let url = google_place(&caller, &settings, base.as_deref())?.url(&caller, &model)?;
                Arc::new(GeminiChat { caller, model, url })
            }
            _ => {
                let shape = self.shape(&caller, &settings, &model)?;
                Arc::new(OpenAiChat { caller, model, shape })
            }
        })
    }

    /// A model that embeds. `key`: a node's own key instead of that of the settings.
    ///
    /// # Errors
    /// [`ProviderErrorKind::Setup`] when settings are missing or can't work, or the model does not embed.
    pub fn embedder(&self, name: Provider, model: &str, key: Option<&Secret>) -> Result<Arc<dyn Embedder>> {
        if !name.embeds() {
            return Err(setup(name, "its models that embed are not supported"));
        }
        if name == Provider::Local {
            return self.local(model);
        }
        let (caller, settings) = (self.caller(name, key)?, self.settings(name));
        let model = checked_model(&caller, model)?;
        Ok(match name {
            Provider::VoyageAi => {
                let base = self.base(name, &settings, voyage::BASE)?;
                Arc::new(VoyageEmbedder { caller, model, base })
            }
            Provider::Bedrock => {
                let base = self.amazon_base(&settings)?;
                let family = Family::of(&model).ok_or_else(|| {
                    let known = "supported are Amazon Titan Embeddings and Cohere Embed 3";
                    setup(name, &format!("{model} is no known model that embeds; {known}"))
                })?;
                Arc::new(BedrockEmbedder {
                    caller,
                    model,
                    base,
                    family,
                })
            }
            Provider::Ibm => {
                let shape = self.shape(&caller, &settings, &model)?;
                Arc::new(WatsonxEmbedder { caller, model, shape })
            }
            _ => {
                let shape = self.shape(&caller, &settings, &model)?;
                Arc::new(OpenAiEmbedder { caller, model, shape })
            }
        })
    }

    /// What keeps models of one's own from being run here though there is a directory of them; `None` where they can
    /// be run, or where there is none.
    pub fn local_problem(&self) -> Option<String> {
        let settings = self.settings(Provider::Local);
        settings.model_dir?;
        #[cfg(feature = "local-models")]
        return crate::local::check_runtime(settings.runtime_library.as_deref())
            .err()
            .map(|error| error.message);
        #[cfg(not(feature = "local-models"))]
        Some(NOT_BUILT.into())
    }

    /// A model run here; opened ones are kept.
    #[cfg(feature = "local-models")]
    fn local(&self, model: &str) -> Result<Arc<dyn Embedder>> {
        let name = Provider::Local;
        self.check(name, None)
            .map_err(|missing| setup(name, &missing.message))?;
        let mut kept = self.inner.local.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(embedder) = kept.get(model) {
            return Ok(Arc::clone(embedder) as Arc<dyn Embedder>);
        }
        let settings = self.settings(name);
        crate::local::check_runtime(settings.runtime_library.as_deref())?;
        let models = settings.model_dir.unwrap_or_default();
        let embedder = Arc::new(LocalEmbedder::find(
            &models,
            model,
            settings.runtime_library.as_deref(),
        )?);
        kept.insert(model.to_owned(), Arc::clone(&embedder));
        Ok(embedder)
    }

    #[cfg(not(feature = "local-models"))]
    fn local(&self, _: &str) -> Result<Arc<dyn Embedder>> {
        self.check(Provider::Local, None)
            .map_err(|missing| setup(Provider::Local, &missing.message))?;
        Err(setup(Provider::Local, NOT_BUILT))
    }

    /// Where and how a server that speaks OpenAI's language is asked.
    fn shape(&self, caller: &Caller, settings: &ProviderSettings, model: &str) -> Result<Shape> {
        let name = caller.provider;
        let base = |usual: &str| self.base(name, settings, usual);
        match name {
            Provider::AzureOpenAi => Shape::azure(caller, settings, &base("")?, model),
            Provider::Ibm => Shape::watsonx(caller, settings, &base(watsonx::BASE)?, model),
            Provider::TogetherAi => {
                let base = base("https://api.together.xyz/v1")?;
                Shape::plain(caller, &base, model, "max_tokens", TOGETHER_BATCH)
            }
            Provider::Custom => Shape::plain(caller, &base("")?, model, "max_tokens", CUSTOM_BATCH),
            _ => {
                let base = base("https://api.openai.com/v1")?;
                Shape::plain(caller, &base, model, "max_completion_tokens", 128)
            }
        }
    }

    /// The base URL without a slash at its end; checked.
    fn base(&self, name: Provider, settings: &ProviderSettings, usual: &str) -> Result<String> {
        let base = settings.base_url.as_deref().unwrap_or(usual).trim();
        let wrong = |why: String| setup(name, &format!("base_url can't be used: {why}"));
        let url = self
            .inner
            .egress
            .check_url(base)
            .map_err(|error| wrong(error.to_string()))?;
        if url.query().is_some() || url.fragment().is_some() {
            return Err(wrong("it must have no query and no fragment".into()));
        }
        Ok(url.as_str().trim_end_matches('/').to_owned())
    }

    fn amazon_base(&self, settings: &ProviderSettings) -> Result<String> {
        let region = amazon_region(settings)?;
        let usual = format!("https://bedrock-runtime.{region}.{}", domain(&region));
        self.base(Provider::Bedrock, settings, &usual)
    }

    /// Who sends requests with a key.
    fn caller(&self, name: Provider, key: Option<&Secret>) -> Result<Arc<Caller>> {
        self.check(name, key).map_err(|missing| setup(name, &missing.message))?;
        if key.is_some() {
            return Ok(Arc::new(self.new_caller(name, key)?));
        }
        let mut callers = self.inner.callers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(caller) = callers.get(&name) {
            return Ok(Arc::clone(caller));
        }
        let caller = Arc::new(self.new_caller(name, None)?);
        callers.insert(name, Arc::clone(&caller));
        Ok(caller)
    }

    fn new_caller(&self, name: Provider, key: Option<&Secret>) -> Result<Caller> {
        let settings = self.settings(name);
        let slots = self.inner.slots.get(&name).map(Arc::clone);
        Ok(Caller {
            provider: name,
            client: self.client(name, &settings)?,
            egress: self.inner.egress.clone(),
            login: self.login(name, key, &settings)?,
            slots: slots.unwrap_or_else(|| Arc::new(Semaphore::new(1))),
            retry_base: Duration::from_millis(settings.retry_base_millis),
            max_retries: settings.max_retries,
            most_bytes: settings.max_answer_bytes,
            quiet: Mutex::default(),
        })
    }

    fn client(&self, name: Provider, settings: &ProviderSettings) -> Result<HttpClient> {
        let mut clients = self.inner.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(&name) {
            return Ok(client.clone());
        }
        let timeout = Duration::from_secs(settings.timeout_secs.max(1));
        let client = self.inner.egress.http_client(timeout);
        let client = client.map_err(|error| setup(name, &error.to_string()))?;
        clients.insert(name, client.clone());
        Ok(client)
    }

    fn login(&self, name: Provider, key: Option<&Secret>, settings: &ProviderSettings) -> Result<Login> {
        let wrong = |error: IdentityError| setup(name, &error.message);
        let key = key.or(settings.api_key.as_ref());
        match (name, key) {
            (Provider::VertexAi, key) => self.google_login(key, settings),
            (Provider::Bedrock, None) => amazon_login(settings),
            (_, None) => Ok(Login::Nobody),
            (Provider::AzureOpenAi, Some(key)) => Login::header("api-key", key).map_err(wrong),
            (Provider::Anthropic, Some(key)) => Login::header("x-api-key", key).map_err(wrong),
            (Provider::Ibm, Some(key)) => {
                let uri = settings.iam_url.as_deref().unwrap_or(watsonx::IAM);
                let checked = self.inner.egress.check_url(uri);
                checked.map_err(|error| setup(name, &format!("iam_url can't be used: {error}")))?;
                Ok(Login::Ibm {
                    key: key.clone(),
                    uri: uri.to_owned(),
                    kept: Kept::default(),
                })
            }
            (_, Some(key)) => Login::bearer(key).map_err(wrong),
        }
    }

    /// A key, or the text of a key file where the key looks like one or none is given.
    fn google_login(&self, key: Option<&Secret>, settings: &ProviderSettings) -> Result<Login> {
        let name = Provider::VertexAi;
        let wrong = |error: IdentityError| setup(name, &error.message);
        let (file, setting) = match (key, &settings.service_account_key) {
            (Some(key), _) if key.expose().starts_with('{') => (key, "api_key"),
            (Some(key), _) => return Login::header("x-goog-api-key", key).map_err(wrong),
            (None, Some(file)) => (file, "service_account_key"),
            (None, None) => return Ok(Login::Nobody),
        };
        let account = GoogleAccount::read(&self.inner.egress, file.expose(), setting, gemini::SCOPE);
        Ok(Login::Google {
            account: Box::new(account.map_err(wrong)?),
            kept: Kept::default(),
        })
    }
}

fn amazon_region(settings: &ProviderSettings) -> Result<String> {
    let region = settings.region.as_deref().unwrap_or_default().trim();
    if !is_region(region) {
        return Err(setup(Provider::Bedrock, "region must be a name like eu-central-1"));
    }
    Ok(region.to_owned())
}

fn amazon_login(settings: &ProviderSettings) -> Result<Login> {
    let keys = match (&settings.access_key_id, &settings.secret_access_key) {
        (Some(id), Some(secret)) => AwsKeys::Fixed(Key {
            id: id.trim().to_owned(),
            secret: secret.expose().to_owned(),
            token: settings.session_token.as_ref().map(|token| token.expose().to_owned()),
        }),
        _ => AwsKeys::Machine(Kept::default()),
    };
    Ok(Login::Aws {
        keys,
        region: amazon_region(settings)?,
    })
}

fn google_place<'a>(caller: &'a Caller, settings: &'a ProviderSettings, base: Option<&'a str>) -> Result<Place<'a>> {
    let Login::Google { account, .. } = &caller.login else {
        let host = "https://generativelanguage.googleapis.com";
        return Ok(match base {
            Some(base) if base == host => Place::Gemini(gemini::GEMINI_API),
            Some(base) if base.ends_with("/v1beta") => Place::Gemini(base),
            base => Place::Express(base.map(|base| base.trim_end_matches("/v1"))),
        });
    };
    let project = settings.project.as_deref().or_else(|| account.project());
    let project = project.ok_or_else(|| {
        setup(
            caller.provider,
            "neither the settings nor the key file name a project: set providers.vertexai.project",
        )
    })?;
    let location = settings.location.as_deref().unwrap_or("global").trim();
    if !is_region(location) {
        return Err(setup(
            caller.provider,
            "location must be `global` or a name like europe-west4",
        ));
    }
    Ok(Place::Project {
        base: base.map(|base| base.trim_end_matches("/v1")),
        project,
        location,
    })
}

fn setup(name: Provider, message: &str) -> ProviderError {
    ProviderError::new(name, ProviderErrorKind::Setup, message)
}
