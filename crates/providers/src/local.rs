//! Sentence models of one's own: a directory with `model.onnx` and `tokenizer.json`, run here by ONNX
//! Runtime, whose library is loaded when the first model is opened.

mod pooling;

use std::fmt;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use async_trait::async_trait;
use ort::environment::Environment;
use ort::session::Session;
use ort::value::Tensor;
use tokenizers::{Encoding, Tokenizer};

use self::pooling::Recipe;
use crate::wire::checked_vectors;
use crate::{EmbedLimits, Embedded, Embedder, Provider, ProviderError, ProviderErrorKind, Purpose, Result, Usage};

/// Tokens a model takes unless its files tell.
const USUAL_TOKENS: usize = 512;
/// Texts that are run at once.
const BATCH: usize = 32;
/// Characters of a batch.
const BATCH_CHARS: usize = 50_000;

/// A sentence model in a directory.
pub(crate) struct LocalEmbedder {
    model: String,
    directory: PathBuf,
    runtime: Option<PathBuf>,
    /// Opened at first use, which takes a moment.
    opened: Arc<Mutex<Option<Opened>>>,
}

impl fmt::Debug for LocalEmbedder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LocalEmbedder({})", self.model)
    }
}

impl LocalEmbedder {
    /// The model of a name below `models`, or `models` itself where that is a model of this name.
    pub(crate) fn find(models: &Path, model: &str, runtime: Option<&Path>) -> Result<Self> {
        let name = Path::new(model);
        if !name.components().all(|part| matches!(part, Component::Normal(_))) {
            return Err(setup(format!("`{model}` is no name of a model below model_dir")));
        }
        let below = models.join(name);
        let itself = models.file_name().is_some_and(|last| name.file_name() == Some(last));
        let directory = if itself && !below.is_dir() {
            models.to_owned()
        } else {
            below
        };
        for file in [onnx_file(&directory), directory.join("tokenizer.json")] {
            if !file.is_file() {
                return Err(setup(format!("local model {model}: {} is missing", file.display())));
            }
        }
        Ok(Self {
            model: model.to_owned(),
            directory,
            runtime: runtime.map(Path::to_owned),
            opened: Arc::default(),
        })
    }
}

#[async_trait]
impl Embedder for LocalEmbedder {
    fn provider(&self) -> Provider {
        Provider::Local
    }

    fn model(&self) -> &str {
        &self.model
    }

    fn limits(&self) -> EmbedLimits {
        EmbedLimits {
            dims: None,
            max_chars: None,
            max_texts: BATCH,
            max_batch_chars: BATCH_CHARS,
        }
    }

    async fn embed(&self, texts: &[String], _: Purpose) -> Result<Embedded> {
        if texts.is_empty() || texts.len() > BATCH {
            return Err(invalid(format!(
                "a batch of {} texts; one to {BATCH} go at once",
                texts.len()
            )));
        }
        let start = Instant::now();
        let (opened, texts) = (Arc::clone(&self.opened), texts.to_vec());
        let (directory, runtime) = (self.directory.clone(), self.runtime.clone());
        let work = tokio::task::spawn_blocking(move || {
            let mut opened = opened.lock().unwrap_or_else(PoisonError::into_inner);
            if opened.is_none() {
                *opened = Some(Opened::open(&directory, runtime.as_deref())?);
            }
            match opened.as_mut() {
                Some(model) => model.embed(&texts),
                None => Err(setup("the model is not open".into())),
            }
        });
        let (vectors, tokens_in) = work.await.map_err(|_| failed("the model stopped in the middle"))??;
        Ok(Embedded {
            vectors,
            model: self.model.clone(),
            request_ids: Vec::new(),
            usage: Usage {
                calls: 1,
                tokens_in,
                millis: u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX),
                ..Usage::default()
            },
        })
    }
}

fn onnx_file(directory: &Path) -> PathBuf {
    let inner = directory.join("onnx").join("model.onnx");
    if inner.is_file() {
        inner
    } else {
        directory.join("model.onnx")
    }
}

/// A model in memory.
struct Opened {
    session: Session,
    tokenizer: Tokenizer,
    /// What stands where a text is shorter than the longest of its batch.
    pad: i64,
    recipe: Recipe,
}

impl Opened {
    fn open(directory: &Path, runtime: Option<&Path>) -> Result<Self> {
        let recipe = Recipe::read(directory).map_err(setup)?;
        let file = directory.join("tokenizer.json");
        let mut tokenizer =
            Tokenizer::from_file(&file).map_err(|error| setup(format!("{}: {error}", file.display())))?;
        let pad = tokenizer.get_padding().map_or(0, |padding| i64::from(padding.pad_id));
        let most = tokenizer.get_truncation().map(|truncation| truncation.max_length);
        let recipe = Recipe {
            max_tokens: recipe.max_tokens.or(most).or(Some(USUAL_TOKENS)),
            ..recipe
        };
        // A text that is too long is an error, never cut; batches are made even here.
        tokenizer.with_padding(None);
        let whole = tokenizer.with_truncation(None).map(|_| ());
        whole.map_err(|error| setup(format!("{}: {error}", file.display())))?;
        let file = onnx_file(directory);
        let wrong = |error: ort::Error| setup(format!("{}: {error}", file.display()));
        let mut builder = Session::builder(environment(runtime)?).map_err(wrong)?;
        let session = builder.commit_from_file(&file).map_err(wrong)?;
        Ok(Self {
            session,
            tokenizer,
            pad,
            recipe,
        })
    }

    /// The vectors and the tokens read.
    fn embed(&mut self, texts: &[String]) -> Result<(Vec<Vec<f32>>, u64)> {
        let encoded = self.tokenizer.encode_batch_fast(texts.to_vec(), true);
        let encoded = encoded.map_err(|error| invalid(format!("a text can't be cut into tokens: {error}")))?;
        let most = self.recipe.max_tokens.unwrap_or(USUAL_TOKENS);
        for (place, encoding) in encoded.iter().enumerate() {
            if encoding.len() > most {
                let length = encoding.len();
                let message =
                    format!("text {place} has {length} tokens; the model takes at most {most}: use smaller chunks");
                return Err(invalid(message));
            }
        }
        let tokens = encoded.iter().map(Encoding::len).sum::<usize>();
        let vectors = self.run(&encoded)?;
        let vectors = checked_vectors(vectors, texts.len(), None).map_err(failed)?;
        Ok((vectors, u64::try_from(tokens).unwrap_or(u64::MAX)))
    }

    fn run(&mut self, encoded: &[Encoding]) -> Result<Vec<Vec<f32>>> {
        let longest = encoded.iter().map(Encoding::len).max().unwrap_or_default().max(1);
        let even = |fill: i64, take: fn(&Encoding) -> &[u32]| {
            let rows = encoded.iter().flat_map(|encoding| {
                let row = take(encoding).iter().map(|id| i64::from(*id));
                row.chain(std::iter::repeat(fill)).take(longest)
            });
            rows.collect::<Vec<i64>>()
        };
        let mask = even(0, Encoding::get_attention_mask);
        let mut inputs = Vec::new();
        for input in self.session.inputs() {
            let values = match input.name() {
                "input_ids" => even(self.pad, Encoding::get_ids),
                "attention_mask" => mask.clone(),
                "token_type_ids" => even(0, Encoding::get_type_ids),
                other => {
                    return Err(setup(format!(
                        "the model wants the input `{other}`, which sentence models don't"
                    )));
                }
            };
            let tensor = Tensor::from_array(([encoded.len(), longest], values)).map_err(failed)?;
            inputs.push((input.name().to_owned(), tensor));
        }
        let outputs = self.session.run(inputs).map_err(failed)?;
        // Models with pooling inside have a second output.
        let pooled = outputs.get("sentence_embedding");
        let Some(output) = pooled.or_else(|| (outputs.len() > 0).then(|| &outputs[0])) else {
            return Err(failed("the model gives nothing"));
        };
        let (shape, numbers) = output.try_extract_tensor::<f32>().map_err(failed)?;
        self.recipe.vectors(shape, numbers, &mask, longest).map_err(failed)
    }
}

/// Whether the runtime is there.
pub(crate) fn check_runtime(library: Option<&Path>) -> Result<()> {
    environment(library).map(drop)
}

/// The runtime, loaded once for the process.
fn environment(library: Option<&Path>) -> Result<&'static Environment> {
    static ENVIRONMENT: OnceLock<std::result::Result<Environment, String>> = OnceLock::new();
    let made = ENVIRONMENT.get_or_init(|| {
        let usual = || std::env::var_os("ORT_DYLIB_PATH").map_or_else(|| "libonnxruntime.so".into(), PathBuf::from);
        let path = library.map_or_else(usual, Path::to_owned);
        let failed = |why: String| {
            let path = path.display();
            format!("ONNX Runtime can't be loaded from {path} (setting `providers.local.runtime_library`): {why}")
        };
        let builder = ort::init_from(&path).map_err(|error| failed(error.to_string()))?;
        builder
            .with_telemetry(false)
            .build()
            .map_err(|error| failed(error.to_string()))
    });
    made.as_ref().map_err(|why| setup(why.clone()))
}

fn setup(message: String) -> ProviderError {
    ProviderError::new(Provider::Local, ProviderErrorKind::Setup, message)
}

fn invalid(message: String) -> ProviderError {
    ProviderError::new(Provider::Local, ProviderErrorKind::Invalid, message)
}

fn failed(why: impl fmt::Display) -> ProviderError {
    let message = format!("the model fails: {why}");
    ProviderError::new(Provider::Local, ProviderErrorKind::BadAnswer, message)
}
