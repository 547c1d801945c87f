//! Reads the form of a new job: streams files to the blob store while counting, and collects the rest.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::multipart::{Field, MultipartError};
use axum::extract::{FromRequest, Multipart, Request};
use axum::http::{StatusCode, header};
use docmill_engine::SubmittedFile;
use docmill_model::Code;
use docmill_model::ids::{FileId, WorkspaceId};
use docmill_store::blob::input_key;
use futures_util::{Stream, StreamExt};
use tokio::sync::Mutex;

use crate::App;
use crate::error::{ApiError, ApiResult};
use crate::filename;

/// Bytes of `request_data`.
const MAX_REQUEST_DATA: usize = 1024 * 1024;

/// Parts a form may have besides files.
const MAX_OTHER_PARTS: usize = 32;

/// Bytes and time spent on reading what a refused client still sends, so that it gets to read why.
const DRAIN_BYTES: usize = 64 * 1024 * 1024;
const DRAIN_TIME: Duration = Duration::from_secs(10);

/// A new job's form.
#[derive(Debug, Default)]
pub(crate) struct Form {
    pub(crate) request_data: Option<String>,
    pub(crate) files: Vec<SubmittedFile>,
}

/// Reads the form. On an error every blob already stored is deleted.
pub(crate) async fn read(app: &App, workspace: WorkspaceId, request: Request) -> ApiResult<Form> {
    let (parts, body) = request.into_parts();
    let body = SharedBody {
        stream: Arc::new(Mutex::new(body.into_data_stream().boxed())),
        idle: app.config.idle_timeout,
        timed_out: Arc::default(),
    };
    let content_type = parts
        .headers
        .get(header::CONTENT_TYPE)
        .and_then(|v| v.to_str().ok())
        .unwrap_or_default();
    let content_type = content_type
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    let mut form = Form::default();
    let read = async {
        match content_type.as_str() {
            "multipart/form-data" => {
                let request = Request::from_parts(parts, body.clone().into_body());
                read_multipart(app, workspace, request, &mut form).await
            }
            "application/x-www-form-urlencoded" => read_urlencoded(body.clone(), &mut form).await,
            other => Err(ApiError::new(
                Code::UnsupportedMediaType,
                format!(
                    "the content type is `{}`; it must be multipart/form-data, or application/x-www-form-urlencoded without files",
                    other.chars().take(64).collect::<String>()
                ),
            )),
        }
    };
    let result = match tokio::time::timeout(app.config.request_timeout, read).await {
        Ok(Err(_)) if body.timed_out.load(Ordering::Relaxed) => Err(too_idle(app.config.idle_timeout)),
        Ok(result) => result,
        Err(_) => Err(too_slow(app.config.request_timeout)),
    };
    match result {
        Ok(()) => Ok(form),
        Err(error) => {
            discard(app, &form.files).await;
            if error.code != Code::RequestTimeout {
                body.drain().await;
            }
            Err(error)
        }
    }
}

/// Deletes the blobs of files that will not become a job.
pub(crate) async fn discard(app: &App, files: &[SubmittedFile]) {
    for file in files {
        if let Err(error) = app.engine.blobs().delete(&file.blob_key).await {
            tracing::warn!(%error, blob = file.blob_key, "cannot delete a refused upload; it goes with the garbage");
        }
    }
}

async fn read_multipart(app: &App, workspace: WorkspaceId, request: Request, form: &mut Form) -> ApiResult<()> {
    let mut multipart = Multipart::from_request(request, &())
        .await
        .map_err(|rejection| ApiError::new(Code::RequestMalformed, rejection.body_text()))?;
    let mut other_parts = 0;
    while let Some(field) = multipart.next_field().await.map_err(form_error)? {
        match field.name() {
            Some("input_files" | "input_files[]") => {
                let max = app.config.limits.max_files_per_job;
                if form.files.len() >= max {
                    return Err(ApiError::new(
                        Code::TooManyFiles,
                        format!("more than {max} files in one job (setting `limits.max_files_per_job`)"),
                    ));
                }
                // An empty, nameless part is how forms send a file field nobody filled in.
                if field.file_name().is_none_or(str::is_empty) {
                    let nameless = field.file_name().is_none();
                    let (_, empty) = text_of(field, 0).await?;
                    if empty && !nameless {
                        continue;
                    }
                    return Err(ApiError::field(
                        &["body", "input_files"],
                        "value_error",
                        "a file part needs a file name in its Content-Disposition",
                    ));
                }
                let file = store_file(app, workspace, field).await?;
                form.files.push(file);
            }
            Some("request_data") => {
                if form.request_data.is_some() {
                    return Err(ApiError::field(
                        &["body", "request_data"],
                        "value_error",
                        "the field is given twice",
                    ));
                }
                form.request_data = Some(text_of(field, MAX_REQUEST_DATA).await?.0);
            }
            _ => {
                other_parts += 1;
                if other_parts > MAX_OTHER_PARTS {
                    return Err(ApiError::new(
                        Code::RequestTooLarge,
                        format!(
                            "more than {MAX_OTHER_PARTS} form parts that are neither `request_data` nor `input_files`"
                        ),
                    ));
                }
                text_of(field, MAX_REQUEST_DATA).await?;
            }
        }
    }
    Ok(())
}

/// A part's text, and whether it was empty. With `max` 0 nothing is kept and anything is taken.
async fn text_of(mut field: Field<'_>, max: usize) -> ApiResult<(String, bool)> {
    let name = field.name().unwrap_or_default().chars().take(64).collect::<String>();
    let mut bytes = Vec::new();
    let mut empty = true;
    while let Some(piece) = field.chunk().await.map_err(form_error)? {
        empty &= piece.is_empty();
        if max == 0 {
            continue;
        }
        if bytes.len() + piece.len() > max {
            return Err(ApiError::new(
                Code::RequestTooLarge,
                format!("form field `{name}` is larger than {max} bytes"),
            ));
        }
        bytes.extend_from_slice(&piece);
    }
    match String::from_utf8(bytes) {
        Ok(text) => Ok((text, empty)),
        Err(_) => Err(ApiError::field(
            &["body", &name],
            "string_unicode",
            "the field is not UTF-8",
        )),
    }
}

async fn store_file(app: &App, workspace: WorkspaceId, mut field: Field<'_>) -> ApiResult<SubmittedFile> {
    let id = FileId::new();
    let max = app.config.limits.max_file_bytes;
    let name = filename::clean(field.file_name().unwrap_or_default());
    let content_type = field.content_type().map(|text| text.chars().take(255).collect());
    let blob_key = input_key(workspace, id);
    let mut upload = app.engine.blobs().upload(&blob_key);
    let mut size = 0u64;
    let result = async {
        while let Some(piece) = field.chunk().await.map_err(form_error)? {
            size += piece.len() as u64;
            if size > max {
                return Err(ApiError::new(
                    Code::FileTooLarge,
                    format!("file `{name}` is larger than {max} bytes (setting `limits.max_file_bytes`)"),
                ));
            }
            upload.write(&piece).await?;
        }
        Ok(())
    }
    .await;
    match result {
        Ok(()) => upload.finish().await?,
        Err(error) => {
            upload.abort().await;
            return Err(error);
        }
    }
    Ok(SubmittedFile {
        id,
        name,
        content_type,
        size,
        blob_key,
    })
}

async fn read_urlencoded(mut body: SharedBody, form: &mut Form) -> ApiResult<()> {
    let mut bytes = Vec::new();
    while let Some(piece) = body.next().await {
        let piece = piece.map_err(|error| body_error(&error.to_string()))?;
        if bytes.len() + piece.len() > MAX_REQUEST_DATA * 3 {
            return Err(ApiError::new(
                Code::RequestTooLarge,
                format!("the form is larger than {} bytes", MAX_REQUEST_DATA * 3),
            ));
        }
        bytes.extend_from_slice(&piece);
    }
    for (name, value) in form_urlencoded::parse(&bytes) {
        if name == "request_data" {
            form.request_data = Some(value.into_owned());
        }
    }
    Ok(())
}

fn form_error(error: MultipartError) -> ApiError {
    match error.status() {
        StatusCode::PAYLOAD_TOO_LARGE => ApiError::new(Code::RequestTooLarge, error.body_text()),
        _ => body_error(&error.body_text()),
    }
}

fn body_error(text: &str) -> ApiError {
    ApiError::new(Code::RequestMalformed, format!("the form can't be read: {text}"))
}

fn too_idle(limit: Duration) -> ApiError {
    ApiError::new(
        Code::RequestTimeout,
        format!(
            "no data came for {} s (setting `limits.idle_timeout_secs`)",
            limit.as_secs()
        ),
    )
}

fn too_slow(limit: Duration) -> ApiError {
    ApiError::new(
        Code::RequestTimeout,
        format!(
            "the request took longer than {} s (setting `limits.request_timeout_secs`)",
            limit.as_secs()
        ),
    )
}

type Pieces = Pin<Box<dyn Stream<Item = Result<Bytes, axum::Error>> + Send>>;

/// A body that can still be read after its reader gave up, with a bound on the time between pieces.
#[derive(Clone)]
struct SharedBody {
    stream: Arc<Mutex<Pieces>>,
    idle: Duration,
    timed_out: Arc<AtomicBool>,
}

impl SharedBody {
    async fn next(&mut self) -> Option<Result<Bytes, axum::Error>> {
        let mut stream = self.stream.lock().await;
        match tokio::time::timeout(self.idle, stream.next()).await {
            Ok(piece) => piece,
            Err(_) => {
                self.timed_out.store(true, Ordering::Relaxed);
                Some(Err(axum::Error::new("timed out")))
            }
        }
    }

    fn into_body(self) -> Body {
        Body::from_stream(futures_util::stream::unfold(self, |mut body| async move {
            body.next().await.map(|piece| (piece, body))
        }))
    }

    /// Reads and forgets what is left, within bounds: a client that is still sending would otherwise see
    /// its connection break instead of the answer.
    async fn drain(mut self) {
        let rest = async {
            let mut bytes = 0;
            while let Some(Ok(piece)) = self.next().await {
                bytes += piece.len();
                if bytes > DRAIN_BYTES {
                    return;
                }
            }
        };
        let _ = tokio::time::timeout(DRAIN_TIME, rest).await;
    }
}
