//! One call to a provider: logged in, bounded in time, size and number, and tried again where that helps.

mod answer;
mod login;
mod retry;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use docmill_egress::HttpClient;
use docmill_egress::{Egress, EgressError, cause};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Method, Request};
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use url::Url;

pub(crate) use self::answer::Answer;
use self::answer::{Unread, read_body, refused, request_id};
pub(crate) use self::login::{AwsKeys, Login};
use self::retry::{Retry, retry_after};
use crate::{Provider, ProviderError, ProviderErrorKind, Result, Usage};

/// What is asked: a JSON body posted to a URL.
#[derive(Clone)]
pub(crate) struct Call {
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Call {
    pub(crate) fn new(url: Url, body: &Value) -> Self {
        Self {
            url,
            headers: HeaderMap::new(),
            body: body.to_string().into(),
        }
    }
}

/// What a call gave.
pub(crate) struct Outcome<T> {
    pub(crate) value: T,
    pub(crate) request_id: Option<String>,
    /// Without tokens, which only the answer's reader knows.
    pub(crate) usage: Usage,
}

/// Who sends a provider's requests with one key.
pub(crate) struct Caller {
    pub(crate) provider: Provider,
    pub(crate) client: HttpClient,
    pub(crate) egress: Egress,
    pub(crate) login: Login,
    /// Shared by all keys of the provider.
    pub(crate) slots: Arc<Semaphore>,
    pub(crate) retry_base: Duration,
    pub(crate) max_retries: u32,
    pub(crate) most_bytes: usize,
    /// Until when the provider wants to be left alone.
    pub(crate) quiet: Mutex<Option<Instant>>,
}

impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Caller({})", self.provider)
    }
}

/// A failed try.
struct Failure {
    error: ProviderError,
    /// Whether the provider said that trying again is of no use.
    hopeless: bool,
}

impl Caller {
    /// An error of this provider.
    pub(crate) fn error(&self, kind: ProviderErrorKind, message: impl AsRef<str>) -> ProviderError {
        ProviderError::new(self.provider, kind, message)
    }

    /// Sends a request until it succeeds or trying again is of no use. `read` takes an answer apart; an
    /// answer it refuses is one failed try. Answers of more than `most` bytes (or the setting, if less) are
    /// not read.
    pub(crate) async fn call<T>(
        &self,
        call: &Call,
        most: usize,
        read: impl Fn(&Answer) -> std::result::Result<T, String>,
    ) -> Result<Outcome<T>> {
        let _slot = self.slots.acquire().await;
        let start = Instant::now();
        let mut usage = Usage {
            calls: 1,
            ..Usage::default()
        };
        let mut retry = Retry::new(self.retry_base, self.max_retries);
        loop {
            self.keep_quiet().await;
            let result = self.once(call, most.min(self.most_bytes), &read).await;
            usage.millis = u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX);
            let mut failure = match result {
                Ok((value, request_id)) => {
                    return Ok(Outcome {
                        value,
                        request_id,
                        usage,
                    });
                }
                Err(failure) => failure,
            };
            let asked = failure.error.retry_after;
            let wait = (!failure.hopeless)
                .then(|| retry.wait(failure.error.kind, asked))
                .flatten();
            let Some(wait) = wait else {
                *failure.error.usage = usage;
                return Err(failure.error);
            };
            tracing::debug!(provider = %self.provider, kind = failure.error.kind.as_str(), ?wait, "trying again");
            if asked.is_some() {
                *self.quiet.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now() + wait);
            }
            tokio::time::sleep(wait).await;
            usage.retries += 1;
        }
    }

    /// Waits while the provider wants to be left alone.
    async fn keep_quiet(&self) {
        let until = *self.quiet.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(until) = until.filter(|until| *until > Instant::now()) {
            tokio::time::sleep_until(until).await;
        }
    }

    async fn once<T>(
        &self,
        call: &Call,
        most: usize,
        read: &impl Fn(&Answer) -> std::result::Result<T, String>,
    ) -> std::result::Result<(T, Option<String>), Failure> {
        let request = self
            .request(call)
            .await
            .map_err(|error| Failure { error, hopeless: false })?;
        let secrets = secrets(&request);
        let outcome = self.exchange(request, most, read).await;
        outcome.map_err(|mut failure| {
            for secret in &secrets {
                failure.error.message = failure.error.message.replace(secret.as_str(), "[key]");
                let id = failure.error.request_id.as_mut();
                if id.is_some_and(|id| id.contains(secret.as_str())) {
                    failure.error.request_id = None;
                }
            }
            failure
        })
    }

    async fn request(&self, call: &Call) -> Result<Request> {
        let mut request = Request::new(Method::POST, call.url.clone());
        *request.headers_mut() = call.headers.clone();
        let json = HeaderValue::from_static("application/json");
        request.headers_mut().insert(CONTENT_TYPE, json.clone());
        request.headers_mut().insert(ACCEPT, json);
        *request.body_mut() = Some(call.body.clone().into());
        self.login
            .apply(&mut request, &self.client, &self.egress)
            .await
            .map_err(|error| ProviderError::identity(self.provider, &error))?;
        Ok(request)
    }

    async fn exchange<T>(
        &self,
        request: Request,
        most: usize,
        read: &impl Fn(&Answer) -> std::result::Result<T, String>,
    ) -> std::result::Result<(T, Option<String>), Failure> {
        let host = request.url().host_str().unwrap_or_default().to_owned();
        let response = self.client.execute(request).await;
        let response = response.map_err(|error| self.broken(&host, &error))?;
        let status = response.status();
        let headers = response.headers().clone();
        let request_id = request_id(&headers);
        let told = |mut error: ProviderError, hopeless| {
            error.status = Some(status.as_u16());
            error.request_id.clone_from(&request_id);
            Failure { error, hopeless }
        };
        if !status.is_success() {
            let refusal = refused(response).await;
            let mut error = self.error(refusal.kind, refusal.message);
            error.retry_after = retry_after(&headers);
            return Err(told(error, refusal.hopeless));
        }
        let body = read_body(response, most).await.map_err(|unread| match unread {
            Unread::Broken(error) => told(self.broken(&host, &error).error, false),
            Unread::TooLarge => {
                let message = format!("its answer has more than {most} bytes");
                told(self.error(ProviderErrorKind::TooLarge, message), true)
            }
        })?;
        let answer = Answer { headers, body };
        match read(&answer) {
            Ok(value) => Ok((value, request_id)),
            Err(why) => {
                let message = format!("its answer makes no sense: {why}");
                Err(told(self.error(ProviderErrorKind::BadAnswer, message), false))
            }
        }
    }

    /// A request that got no whole answer.
    fn broken(&self, host: &str, error: &reqwest::Error) -> Failure {
        let kind = match cause(error) {
            Some(EgressError::Refused(_) | EgressError::Setup(_)) => ProviderErrorKind::Setup,
            Some(_) => ProviderErrorKind::Unreachable,
            None if error.is_timeout() => ProviderErrorKind::Timeout,
            None if error.is_builder() => ProviderErrorKind::Setup,
            None => ProviderErrorKind::Unreachable,
        };
        let message = match cause(error) {
            Some(cause) => cause.to_string(),
            None if error.is_timeout() => format!("{host} gives no whole answer in time"),
            None => format!("no whole answer from {host}: {}", innermost(error)),
        };
        Failure {
            error: self.error(kind, message),
            hopeless: false,
        }
    }
}

/// The innermost cause says it best; the outer ones would repeat the URL.
fn innermost(error: &reqwest::Error) -> String {
    let mut innermost: &dyn std::error::Error = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    if std::ptr::addr_eq(innermost, error) {
        return "the connection broke".into();
    }
    innermost.to_string()
}

/// What the request's headers hold that nobody may see.
fn secrets(request: &Request) -> Vec<String> {
    let values = request.headers().values().filter(|value| value.is_sensitive());
    let texts = values.filter_map(|value| value.to_str().ok());
    let bare = texts.map(|text| text.strip_prefix("Bearer ").unwrap_or(text));
    bare.filter(|text| !text.is_empty()).map(str::to_owned).collect()
}
