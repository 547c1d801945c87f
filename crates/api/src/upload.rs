//! Reads the form of a new job: streams files to the blob store while counting, and collects the rest.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use axum::body::{Body, BodyDataStream, Bytes};
use axum::extract::multipart::{Field, MultipartError};
use axum::extract::{FromRequest, Multipart, Request};
use axum::http::{StatusCode, header};
use docmill_engine::SubmittedFile;
use docmill_model::Code;
use docmill_model::ids::{FileId, WorkspaceId};
use docmill_store::blob::input_key;
use futures_util::StreamExt;

use crate::App;
use crate::error::{ApiError, ApiResult};
use crate::filename::{self, Disposition};

/// Bytes of `request_data`.
const MAX_REQUEST_DATA: usize = 1024 * 1024;

/// Parts a form may have besides files.
const MAX_OTHER_PARTS: usize = 32;

/// Bytes the form's reader may ask for without finding anything: a part's headers, or what comes before
/// the first part. It keeps them all, and looks through them again with each piece. More than two of
/// the largest pieces the HTTP server hands out, as the reader may take two before it looks.
const MAX_UNPARSED: usize = 1024 * 1024;

/// A new job's form.
#[derive(Debug, Default)]
pub(crate) struct Form {
    pub(crate) request_data: Option<String>,
    pub(crate) files: Vec<SubmittedFile>,
}

/// Reads the form of a new job. On an error every blob already stored is deleted.
pub(crate) async fn read(app: &App, workspace: WorkspaceId, request: Request) -> ApiResult<Form> {
    read_form(app, workspace, request, true).await
}

/// Reads the files of a run, which may come without any body. Where none are wanted, the first is refused
/// before it is read.
pub(crate) async fn read_files(
    app: &App,
    workspace: WorkspaceId,
    request: Request,
    wanted: bool,
) -> ApiResult<Vec<SubmittedFile>> {
    let headers = request.headers();
    let nothing = match headers.get(header::CONTENT_LENGTH) {
        Some(length) => length == "0",
        None => !headers.contains_key(header::TRANSFER_ENCODING) && !headers.contains_key(header::CONTENT_TYPE),
    };
    if nothing {
        return Ok(Vec::new());
    }
    Ok(read_form(app, workspace, request, wanted).await?.files)
}

/// The error about files nobody wants.
pub(crate) fn takes_no_files() -> ApiError {
    ApiError::field(
        &["body", "input_files"],
        "value_error",
        "the workflow reads from its source and takes no files",
    )
}

async fn read_form(app: &App, workspace: WorkspaceId, request: Request, files_wanted: bool) -> ApiResult<Form> {
    let (parts, body) = request.into_parts();
    let watch = Arc::new(Watch::default());
    let pieces = Pieces {
        stream: body.into_data_stream(),
        idle: app.config.idle_timeout,
        watch: watch.clone(),
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
                let request = Request::from_parts(parts, pieces.into_body());
                read_multipart(app, workspace, request, &watch, files_wanted, &mut form).await
            }
            "application/x-www-form-urlencoded" => read_urlencoded(pieces, &mut form).await,
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
        Ok(Err(_)) if watch.timed_out.load(Ordering::Relaxed) => Err(too_idle(app.config.idle_timeout)),
        Ok(Err(_)) if watch.too_long.load(Ordering::Relaxed) => Err(ApiError::new(
            Code::RequestTooLarge,
            format!("a part's headers, or what comes before the first part, are longer than {MAX_UNPARSED} bytes"),
        )),
        Ok(result) => result,
        Err(_) => Err(too_slow(app.config.request_timeout)),
    };
    if let Err(error) = result {
        discard(app, &form.files).await;
        return Err(error);
    }
    Ok(form)
}

/// Deletes the blobs of files that will not become a job.
pub(crate) async fn discard(app: &App, files: &[SubmittedFile]) {
    for file in files {
        if let Err(error) = app.engine.blobs().delete(&file.blob_key).await {
            tracing::warn!(%error, blob = file.blob_key, "cannot delete a refused upload; it goes with the garbage");
        }
    }
}

async fn read_multipart(
    app: &App,
    workspace: WorkspaceId,
    request: Request,
    watch: &Watch,
    files_wanted: bool,
    form: &mut Form,
) -> ApiResult<()> {
    let mut multipart = Multipart::from_request(request, &())
        .await
        .map_err(|rejection| ApiError::new(Code::RequestMalformed, rejection.body_text()))?;
    let mut other_parts = 0;
    while let Some(field) = multipart.next_field().await.map_err(form_error)? {
        watch.progressed();
        let mut field = Part::new(field, watch);
        match field.disposition.name.as_str() {
            "input_files" | "input_files[]" => {
                let max = app.config.limits.max_files_per_job;
                if form.files.len() >= max {
                    return Err(ApiError::new(
                        Code::TooManyFiles,
                        format!("more than {max} files in one job (setting `limits.max_files_per_job`)"),
                    ));
                }
                let filename = field.disposition.filename.as_deref();
                let (named, present) = (filename.is_some_and(|name| !name.is_empty()), filename.is_some());
                if named && !files_wanted {
                    return Err(takes_no_files());
                } else if named {
                    form.files.push(store_file(app, workspace, field).await?);
                } else if present && field.is_empty().await? {
                    // How web forms send a file field nobody filled in.
                    count_other(&mut other_parts)?;
                } else {
                    return Err(ApiError::field(
                        &["body", "input_files"],
                        "value_error",
                        "a file part needs a file name in its Content-Disposition",
                    ));
                }
            }
            "request_data" => {
                if form.request_data.is_some() {
                    return Err(ApiError::field(
                        &["body", "request_data"],
                        "value_error",
                        "the field is given twice",
                    ));
                }
                form.request_data = Some(field.text().await?);
            }
            _ => {
                count_other(&mut other_parts)?;
                field.text().await?;
            }
        }
    }
    Ok(())
}

fn count_other(parts: &mut usize) -> ApiResult<()> {
    *parts += 1;
    if *parts <= MAX_OTHER_PARTS {
        return Ok(());
    }
    Err(ApiError::new(
        Code::RequestTooLarge,
        format!("more than {MAX_OTHER_PARTS} form parts that are neither `request_data` nor files"),
    ))
}

/// One part of the form.
struct Part<'a> {
    field: Field<'a>,
    disposition: Disposition,
    watch: &'a Watch,
}

impl<'a> Part<'a> {
    fn new(field: Field<'a>, watch: &'a Watch) -> Self {
        let value = field.headers().get(header::CONTENT_DISPOSITION);
        let disposition = Disposition::parse(value.map_or(&[], |value| value.as_bytes()));
        Self {
            field,
            disposition,
            watch,
        }
    }

    async fn chunk(&mut self) -> ApiResult<Option<Bytes>> {
        let piece = self.field.chunk().await.map_err(form_error)?;
        self.watch.progressed();
        Ok(piece)
    }

    async fn is_empty(&mut self) -> ApiResult<bool> {
        while let Some(piece) = self.chunk().await? {
            if !piece.is_empty() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    async fn text(mut self) -> ApiResult<String> {
        let name: String = self.disposition.name.chars().take(64).collect();
        let mut bytes = Vec::new();
        while let Some(piece) = self.chunk().await? {
            if bytes.len() + piece.len() > MAX_REQUEST_DATA {
                return Err(ApiError::new(
                    Code::RequestTooLarge,
                    format!("form field `{name}` is larger than {MAX_REQUEST_DATA} bytes"),
                ));
            }
            bytes.extend_from_slice(&piece);
        }
        String::from_utf8(bytes)
            .map_err(|_| ApiError::field(&["body", &name], "string_unicode", "the field is not UTF-8"))
    }
}

async fn store_file(app: &App, workspace: WorkspaceId, mut part: Part<'_>) -> ApiResult<SubmittedFile> {
    let id = FileId::new();
    let max = app.config.limits.max_file_bytes;
    let name = filename::clean(part.disposition.filename.as_deref().unwrap_or_default());
    let content_type = part.field.content_type().map(|text| text.chars().take(255).collect());
    let blob_key = input_key(workspace, id);
    let mut upload = app.engine.blobs().upload(&blob_key);
    let mut size = 0u64;
    let result = async {
        while let Some(piece) = part.chunk().await? {
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

async fn read_urlencoded(mut body: Pieces, form: &mut Form) -> ApiResult<()> {
    let mut bytes = Vec::new();
    while let Some(piece) = body.next().await {
        let piece = piece.map_err(|error| body_error(&error.to_string()))?;
        if bytes.len() + piece.len() > MAX_REQUEST_DATA * 3 {
            return Err(ApiError::new(
                Code::RequestTooLarge,
                format!("the form is larger than {} bytes", MAX_REQUEST_DATA * 3),
            ));
        }
        body.watch.progressed();
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

/// What the pieces of a body tell whoever reads the form made of them.
#[derive(Debug, Default)]
struct Watch {
    /// Bytes handed out since the form's reader last found something in them.
    unparsed: AtomicUsize,
    too_long: AtomicBool,
    timed_out: AtomicBool,
}

impl Watch {
    fn progressed(&self) {
        self.unparsed.store(0, Ordering::Relaxed);
    }
}

/// A body in pieces, with a bound on the time between two of them and on what is handed out in vain.
struct Pieces {
    stream: BodyDataStream,
    idle: Duration,
    watch: Arc<Watch>,
}

impl Pieces {
    async fn next(&mut self) -> Option<Result<Bytes, axum::Error>> {
        // The form's reader takes and keeps all pieces there are before it looks at them. It gets one at
        // a time, so that a quick client can't have a whole file kept in memory.
        tokio::task::yield_now().await;
        if self.watch.unparsed.load(Ordering::Relaxed) > MAX_UNPARSED {
            self.watch.too_long.store(true, Ordering::Relaxed);
            return Some(Err(axum::Error::new("too long")));
        }
        match tokio::time::timeout(self.idle, self.stream.next()).await {
            Ok(piece) => {
                if let Some(Ok(bytes)) = &piece {
                    self.watch.unparsed.fetch_add(bytes.len(), Ordering::Relaxed);
                }
                piece
            }
            Err(_) => {
                self.watch.timed_out.store(true, Ordering::Relaxed);
                Some(Err(axum::Error::new("timed out")))
            }
        }
    }

    fn into_body(self) -> Body {
        Body::from_stream(futures_util::stream::unfold(self, |mut body| async move {
            body.next().await.map(|piece| (piece, body))
        }))
    }
}
