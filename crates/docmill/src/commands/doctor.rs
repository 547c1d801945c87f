//! `docmill doctor`.

use std::process::ExitCode;

use docmill_engine::access;
use docmill_ocr::Ocr;
use docmill_sandbox::Level;

use crate::config::{Config, Flags};
use crate::{Failure, setup};

pub(crate) fn run(flags: &Flags) -> Result<ExitCode, Failure> {
    let mut healthy = true;
    let mut say = |good: bool, what: &str, text: String| {
        healthy &= good;
        println!("{} {what:<12}{text}", if good { "ok     " } else { "PROBLEM" });
    };
    let config = match Config::load(flags) {
        Ok(config) => {
            say(true, "settings", "valid".into());
            config
        }
        Err(error) => {
            say(false, "settings", error.to_string());
            return Ok(ExitCode::FAILURE);
        }
    };
    match setup::sandbox(&config) {
        Ok(sandbox) => {
            let report = sandbox.report();
            say(true, "sandbox", format!("level {}", report.level));
            for note in &report.notes {
                println!("        {:<12}{note}", "");
            }
            if report.level < Level::Full {
                println!(
                    "        {:<12}a hostile file that takes a parser over meets fewer walls",
                    ""
                );
            }
        }
        Err(error) => say(false, "sandbox", format!("{error}; files can't be processed")),
    }
    match check_data_dir(&config) {
        Ok(text) => say(true, "data", text),
        Err(error) => say(false, "data", error.to_string()),
    }
    say_ocr();
    match config
        .pdfium
        .path()
        .map(|path| (docmill_pdfium::Library::load(&path), path))
    {
        None => println!(
            "note    {:<12}no second engine is set (`pdfium.library`): a PDF that docmill's own can't read fails",
            "pdfium"
        ),
        Some((Ok(_), path)) => say(true, "pdfium", format!("{} can be used", path.display())),
        Some((Err(error), path)) => say(false, "pdfium", format!("{}: {error}", path.display())),
    }
    match config
        .heif
        .path()
        .map(|path| (docmill_heif::Library::load(&path), path))
    {
        None => println!(
            "note    {:<12}no decoder of HEIC is set (`heif.library`): such pictures are refused",
            "heif"
        ),
        Some((Ok(heif), path)) => say(true, "heif", format!("{}, version {}", path.display(), heif.version())),
        Some((Err(error), path)) => say(false, "heif", format!("{}: {error}", path.display())),
    }
    match mail_server(&config) {
        Ok(None) => println!(
            "note    {:<12}no mail server is set (`mail.smtp_url`): mails are written to {} and reach nobody",
            "mail",
            config.outbox().display()
        ),
        Ok(Some(text)) => say(true, "mail", text),
        Err(error) => say(
            false,
            "mail",
            format!("{error}; notifications by mail wait until it can be reached"),
        ),
    }
    match models(&config) {
        Ok(Ok(text)) => say(true, "models", text),
        Ok(Err(text)) => println!("note    {:<12}{text}", "models"),
        Err(error) => say(false, "models", error.to_string()),
    }
    Ok(if healthy { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Whether text in pictures can be recognised. Its lack is no fault: only scans need it.
fn say_ocr() {
    match Ocr::open(setup::tessdata().as_deref()) {
        Ok(ocr) => {
            println!(
                "ok      {:<12}Tesseract {}; languages: {}",
                "ocr",
                ocr.version(),
                ocr.languages().join(", ")
            );
            if !ocr.has_orientation() {
                println!(
                    "        {:<12}the model `osd` is missing: scans that lie on their side or head are not turned",
                    ""
                );
            }
        }
        Err(error) => {
            println!("note    {:<12}{error}", "ocr");
            println!(
                "        {:<12}scanned pages and pictures yield a warning and no text; on Debian: \
                 apt-get install tesseract-ocr tesseract-ocr-deu ...",
                ""
            );
        }
    }
}

/// Asks the mail server whether it is there and takes the login; `None` when none is set. Sends nothing.
fn mail_server(config: &Config) -> Result<Option<String>, Failure> {
    let Some(url) = config.smtp()? else { return Ok(None) };
    let mailer = config.notification_config()?.mailer;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(mailer.check())?;
    let from = config.mail_from()?;
    Ok(Some(format!("{url} takes mails; they are from {}", from.mailbox())))
}

/// Which model providers have what they need; what the lack of all costs, otherwise. Asks nobody.
fn models(config: &Config) -> Result<Result<String, String>, Failure> {
    let models = config.model_providers(config.environment()?.egress)?;
    if let Some(problem) = models.local_problem() {
        return Err(format!("models below `providers.local.model_dir` can't be used: {problem}").into());
    }
    let usable: Vec<_> = models.usable().into_iter().map(|provider| provider.as_str()).collect();
    if usable.is_empty() {
        return Ok(Err(
            "no model provider has credentials (`providers`): nodes that call one are refused".into(),
        ));
    }
    Ok(Ok(format!("nodes can call {}", usable.join(", "))))
}

fn check_data_dir(config: &Config) -> Result<String, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        use docmill_store::Store;
        let store = setup::store(config).await?;
        store.check_writable().await?;
        let keys = store.keys(None).await?;
        store.close().await;
        let live = keys.iter().filter(|key| key.revoked_at.is_none()).count();
        Ok(format!(
            "{} can be written; {live} live API key(s), default workspace `{}`",
            config.data_dir.display(),
            access::DEFAULT_NAME
        ))
    })
}
