//! The Shared Key scheme of Azure Storage, version 2009-09-19 and later.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use reqwest::Request;
use reqwest::header::AUTHORIZATION;
use ring::hmac;

use super::super::http::secret_header;
use super::super::text::decode;
use crate::Result;

/// Headers that are signed by their place in the text.
const PLACES: [&str; 11] = [
    "content-encoding",
    "content-language",
    "content-length",
    "content-md5",
    "content-type",
    "date",
    "if-modified-since",
    "if-match",
    "if-none-match",
    "if-unmodified-since",
    "range",
];

/// Signs a request whose `x-ms-date` and `x-ms-version` are set.
pub(super) fn sign(request: &mut Request, account: &str, key: &[u8]) -> Result<()> {
    let text = text(request, account);
    let key = hmac::Key::new(hmac::HMAC_SHA256, key);
    let signature = STANDARD.encode(hmac::sign(&key, text.as_bytes()));
    let value = secret_header(&format!("SharedKey {account}:{signature}"))?;
    request.headers_mut().insert(AUTHORIZATION, value);
    Ok(())
}

fn text(request: &Request, account: &str) -> String {
    let header = |name: &str| match name {
        "content-length" => match request.body().and_then(reqwest::Body::as_bytes).map_or(0, <[u8]>::len) {
            0 => String::new(),
            length => length.to_string(),
        },
        name => {
            let value = request.headers().get(name);
            value.map_or_else(String::new, |value| {
                String::from_utf8_lossy(value.as_bytes()).into_owned()
            })
        }
    };
    let mut lines = vec![request.method().to_string()];
    lines.extend(PLACES.map(header));
    let mut own: Vec<_> = request
        .headers()
        .keys()
        .map(|name| name.as_str())
        .filter(|name| name.starts_with("x-ms-"))
        .map(|name| format!("{name}:{}", header(name).trim()))
        .collect();
    own.sort();
    lines.extend(own);
    lines.push(format!("/{account}{}", request.url().path()));
    let mut query: Vec<_> = request
        .url()
        .query()
        .unwrap_or_default()
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .map(|(name, value)| {
            format!(
                "{}:{}",
                name.to_ascii_lowercase(),
                decode(value, false).unwrap_or_default()
            )
        })
        .collect();
    query.sort();
    lines.extend(query);
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use reqwest::Method;

    use super::*;

    #[test]
    fn the_text_is_built_as_the_reference_says() {
        let url = "https://acc.blob.core.windows.net/box?restype=container&comp=list&prefix=a%20b";
        let mut request = Request::new(Method::GET, url.parse().unwrap());
        for (name, value) in [
            ("x-ms-version", "2021-12-02"),
            ("x-ms-date", "Fri, 26 Jun 2015 23:39:12 GMT"),
        ] {
            request.headers_mut().insert(name, value.parse().unwrap());
        }
        assert_eq!(
            text(&request, "acc"),
            "GET\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:Fri, 26 Jun 2015 23:39:12 GMT\nx-ms-version:2021-12-02\n\
             /acc/box\ncomp:list\nprefix:a b\nrestype:container"
        );
    }
}
