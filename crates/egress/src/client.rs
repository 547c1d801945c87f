//! The HTTP client others hold.

use std::sync::Arc;

use reqwest::{IntoUrl, Method, Request, RequestBuilder, Response, Url};

use crate::Policy;
use crate::http::barred_url;

/// An HTTP client that connects to vetted addresses only. Clones share their connections.
#[derive(Clone, Debug)]
pub struct HttpClient {
    inner: reqwest::Client,
    policy: Arc<Policy>,
}

impl HttpClient {
    pub(crate) fn new(inner: reqwest::Client, policy: Arc<Policy>) -> Self {
        Self { inner, policy }
    }

    /// A request; one to a URL that the guard refuses fails when it is sent.
    pub fn request(&self, method: Method, url: impl IntoUrl) -> RequestBuilder {
        // Reqwest takes user and password out of the URL, so that nothing after this sees them.
        match url.as_str().parse::<Url>().ok().and_then(|url| self.instead(&url)) {
            Some(barred) => self.inner.request(method, barred),
            None => self.inner.request(method, url),
        }
    }

    /// A GET request, as [`HttpClient::request`].
    pub fn get(&self, url: impl IntoUrl) -> RequestBuilder {
        self.request(Method::GET, url)
    }

    /// A POST request, as [`HttpClient::request`].
    pub fn post(&self, url: impl IntoUrl) -> RequestBuilder {
        self.request(Method::POST, url)
    }

    /// Sends a request that was made elsewhere.
    ///
    /// # Errors
    /// What the guard refuses, and what reqwest meets.
    pub async fn execute(&self, mut request: Request) -> Result<Response, reqwest::Error> {
        if let Some(barred) = self.instead(request.url()) {
            *request.url_mut() = barred;
        }
        self.inner.execute(request).await
    }

    /// What stands for a URL with a user or password: a name nobody resolves.
    fn instead(&self, url: &Url) -> Option<Url> {
        let holds_user = !url.username().is_empty() || url.password().is_some();
        (holds_user && self.policy.check_url(url).is_err()).then(|| barred_url("https", "user", url))
    }
}
