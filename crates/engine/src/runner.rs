//! Runs files through child processes, a fixed number at a time.
//!
//! Child processes are started from threads that live as long as the runner, because the kernel ties
//! "die with your parent" to the thread that started the child.

use std::io::Cursor;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;

use bytes::Bytes;
use docmill_model::{Code, PageRoute, Warning};
use docmill_sandbox::{CancelFlag, Frame, Killed, Reason, Sandbox, Usage};
use tokio::sync::oneshot;

use crate::protocol::{TaskDone, TaskFailed, TaskRequest};
use crate::running::FileProgress;

/// Bytes a drawn page may have.
const MAX_PICTURE_BYTES: usize = 8 << 20;

/// Pages that a file whose pages nobody could count is given time for, should all need text recognition.
const UNKNOWN_PAGES: u32 = 100;

/// What a file came to.
#[derive(Debug)]
pub struct RunOutput {
    /// One JSON document per node, in chain order; or one PNG per page drawn, empty where it could not be.
    pub outputs: Vec<Bytes>,
    /// What was not done.
    pub warnings: Vec<Warning>,
    /// Elements of the last output.
    pub elements: u64,
    /// Pages.
    pub pages: u64,
    /// How each page was read.
    pub routes: Vec<PageRoute>,
    /// What was found, shown on the pages, as a JSON string or `null`: when that was asked for.
    pub inspection: Option<Bytes>,
    /// MIME type of the file, where pages were drawn.
    pub filetype: Option<String>,
    /// What the child process used.
    pub usage: Usage,
}

/// Why a file came to nothing.
#[derive(Debug)]
pub enum RunFailure {
    /// Stopped on request.
    Cancelled,
    /// It failed.
    Failed {
        /// Stable code.
        code: Code,
        /// Reason, for people.
        message: String,
        /// Whether another attempt may go better.
        retryable: bool,
    },
}

type Progress = Box<dyn Fn(FileProgress) + Send>;

struct Work {
    request: TaskRequest,
    input: Bytes,
    cancel: CancelFlag,
    progress: Progress,
    reply: oneshot::Sender<Result<RunOutput, RunFailure>>,
}

/// A pool of threads that each run one child process at a time.
#[derive(Clone, Debug)]
pub struct Runner {
    queue: mpsc::Sender<Work>,
    slots: usize,
}

impl Runner {
    /// Starts `slots` threads (at least one). They end when the last clone of the runner is dropped.
    pub fn start(sandbox: Arc<Sandbox>, slots: usize) -> std::io::Result<Self> {
        let slots = slots.max(1);
        let (queue, work) = mpsc::channel::<Work>();
        let work = Arc::new(Mutex::new(work));
        for slot in 0..slots {
            let (sandbox, work) = (sandbox.clone(), work.clone());
            thread::Builder::new().name(format!("slot-{slot}")).spawn(move || {
                loop {
                    let next = work.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    let Ok(next) = next else { return };
                    let result = run(&sandbox, &next);
                    // Nobody waiting means the server is going down.
                    let _ = next.reply.send(result);
                }
            })?;
        }
        Ok(Self { queue, slots })
    }

    /// How many files run at once.
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// Runs one file; waits while every slot is busy.
    pub async fn run(
        &self,
        request: TaskRequest,
        input: Bytes,
        cancel: CancelFlag,
        progress: impl Fn(FileProgress) + Send + 'static,
    ) -> Result<RunOutput, RunFailure> {
        let (reply, answer) = oneshot::channel();
        let work = Work {
            request,
            input,
            cancel,
            progress: Box::new(progress),
            reply,
        };
        if self.queue.send(work).is_err() {
            return Err(RunFailure::Cancelled);
        }
        answer.await.unwrap_or(Err(RunFailure::Cancelled))
    }
}

#[cfg(test)]
impl Runner {
    /// A pool that has a function of the test do the work of child processes.
    pub(crate) fn pretending(
        slots: usize,
        act: impl Fn(&TaskRequest, &Bytes, &CancelFlag) -> Result<RunOutput, RunFailure> + Send + Sync + 'static,
    ) -> Self {
        let (queue, work) = mpsc::channel::<Work>();
        let work = Arc::new(Mutex::new(work));
        let act = Arc::new(act);
        for _ in 0..slots {
            let (act, work) = (act.clone(), work.clone());
            thread::spawn(move || {
                loop {
                    let next = work.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    let Ok(next) = next else { return };
                    let _ = next.reply.send(act(&next.request, &next.input, &next.cancel));
                }
            });
        }
        Self { queue, slots }
    }
}

/// Runs a file; a second time, with text recognition and the second PDF engine, when it turns out to need one of them.
/// Only such files wait for the libraries to be loaded, and only their children hold them.
fn run(sandbox: &Sandbox, work: &Work) -> Result<RunOutput, RunFailure> {
    let pages = match run_once(sandbox, work, None)? {
        Run::Done(output) => return Ok(output),
        Run::NeedsTools(pages) => pages,
    };
    let pages = if pages == 0 { UNKNOWN_PAGES } else { pages };
    match run_once(sandbox, work, Some(pages))? {
        Run::Done(output) => Ok(output),
        Run::NeedsTools(_) => Err(invalid("no result")),
    }
}

/// What one run came to.
enum Run {
    Done(RunOutput),
    /// The file needs tools; it has so many pages, or, where 0, nobody could count them.
    NeedsTools(u32),
}

/// One run in one child, which has the tools for a file of so many pages when it is told them.
fn run_once(sandbox: &Sandbox, work: &Work, tools: Option<u32>) -> Result<Run, RunFailure> {
    if work.cancel.is_cancelled() {
        return Err(RunFailure::Cancelled);
    }
    let request = serde_json::to_vec(&work.request).map_err(|error| failed(Code::Internal, error))?;
    let pictures = work.request.draw.as_ref().map(Vec::len);
    let inspect = work.request.inspect && pictures.is_none();
    let nodes = work.request.chain.nodes().len();
    let most = pictures.unwrap_or(nodes + usize::from(inspect));
    let is_valid = if pictures.is_some() { is_picture } else { is_json };
    let mut outputs: Vec<Bytes> = Vec::new();
    let mut verdict: Option<Result<TaskDone, RunFailure>> = None;
    let mut needs_tools = false;
    let mut seen = FileProgress::default();
    let mut input = Cursor::new(&work.input);
    let mut on_frame = |frame| match frame {
        Frame::Progress {
            pages_done,
            pages_total,
            elements,
        } => {
            seen = FileProgress {
                pages_done,
                pages_total,
                elements: elements.into(),
                nodes_done: seen.nodes_done,
            };
            (work.progress)(seen);
        }
        Frame::Output { index, bytes } => {
            if index as usize == outputs.len() && outputs.len() < most && is_valid(&bytes) {
                outputs.push(bytes.into());
                seen.nodes_done = (seen.nodes_done + 1).min(nodes as u32);
                (work.progress)(seen);
            } else {
                verdict = Some(Err(invalid("an output out of turn or of another kind")));
            }
        }
        Frame::Done(bytes) => {
            let done = serde_json::from_slice(&bytes).map_err(|_| invalid("an unreadable report"));
            verdict.get_or_insert(done);
        }
        Frame::Failed(bytes) => {
            let failure = match serde_json::from_slice::<TaskFailed>(&bytes) {
                Ok(failed) => {
                    needs_tools = failed.needs_tools && tools.is_none();
                    RunFailure::Failed {
                        code: failed.code,
                        message: failed.message,
                        retryable: false,
                    }
                }
                Err(_) => invalid("an unreadable failure"),
            };
            verdict.get_or_insert(Err(failure));
        }
    };
    let len = work.input.len() as u64;
    let usage = if let Some(pages) = tools {
        sandbox.run_prepared(pages, &request, &mut input, len, &work.cancel, &mut on_frame)
    } else {
        sandbox.run(&request, &mut input, len, &work.cancel, &mut on_frame)
    };
    let usage = usage.map_err(from_killed)?;
    if needs_tools {
        return Ok(Run::NeedsTools(seen.pages_total));
    }
    match verdict {
        Some(Ok(done)) if outputs.len() == most || pictures.is_some() => Ok(Run::Done(RunOutput {
            inspection: if inspect { outputs.pop() } else { None },
            outputs,
            warnings: done.warnings,
            elements: done.elements,
            pages: done.pages,
            routes: done.routes,
            filetype: done.filetype,
            usage,
        })),
        Some(Err(failure)) => Err(failure),
        _ => Err(invalid("no result")),
    }
}

/// The child is not trusted: what it calls JSON is checked before it is stored and served as JSON.
fn is_json(bytes: &[u8]) -> bool {
    serde_json::from_slice::<serde::de::IgnoredAny>(bytes).is_ok()
}

/// Pictures go to a provider, so no more is checked than that they are some and not too large; an empty one
/// stands for a page that can't be drawn.
fn is_picture(bytes: &[u8]) -> bool {
    bytes.is_empty() || (bytes.starts_with(b"\x89PNG\r\n\x1a\n") && bytes.len() <= MAX_PICTURE_BYTES)
}

fn invalid(what: &str) -> RunFailure {
    failed(Code::TaskOutputInvalid, format!("the child process sent {what}"))
}

fn failed(code: Code, reason: impl ToString) -> RunFailure {
    RunFailure::Failed {
        code,
        message: reason.to_string(),
        retryable: false,
    }
}

fn from_killed(killed: Killed) -> RunFailure {
    let message = killed.to_string();
    metrics::counter!("docmill_child_kills_total", "reason" => killed.reason.kind()).increment(1);
    let code = match &killed.reason {
        Reason::Cancelled => return RunFailure::Cancelled,
        Reason::MemoryLimit(_) => Code::MemoryLimit,
        Reason::CpuLimit(_) => Code::CpuLimit,
        Reason::WallTimeout(_) | Reason::Stalled(_) => Code::TaskTimeout,
        Reason::OutputTooLarge(_) => Code::OutputTooLarge,
        Reason::ProtocolError(_) => Code::TaskOutputInvalid,
        Reason::ForbiddenCall { stderr } | Reason::Crashed { stderr, .. } => {
            tracing::warn!(reason = killed.reason.kind(), %message, stderr = %stderr.trim_end(), "a child process crashed");
            return RunFailure::Failed {
                code: Code::TaskCrashed,
                message,
                retryable: true,
            };
        }
        _ => {
            tracing::error!(reason = killed.reason.kind(), %message, "a child process could not do its work");
            return RunFailure::Failed {
                code: Code::Internal,
                message,
                retryable: true,
            };
        }
    };
    let code_hint = code.hint();
    failed(code, format!("{message}: {code_hint}"))
}
