//! The parent's side: start a child, feed it, listen to it without trusting it, and end it.

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::config::{ChildLimits, Level, Report, SandboxConfig};
use crate::outcome::{Killed, Reason, Usage, classify};
use crate::process::{self, Process, Spawned, Tail};
use crate::sys::{self, Ready};
use crate::wire::{Frame, FrameError, FrameParser, Header, Mode};

/// How often a waiting parent looks at the cancel flag and at the state of the child.
const TICK: Duration = Duration::from_millis(50);
/// How long a child that has closed its channel may take to end by itself.
const GRACE: Duration = Duration::from_millis(500);
/// How long the probe at the start may take; a busy machine is given time.
const PROBE_WALL: Duration = Duration::from_secs(20);

/// Tells a run to stop. Clones share one flag; once raised it stays raised.
#[derive(Debug, Clone, Default)]
pub struct CancelFlag(Arc<AtomicBool>);

impl CancelFlag {
    /// A flag that is not raised.
    pub fn new() -> CancelFlag {
        CancelFlag::default()
    }

    /// Asks every run with this flag to stop. The child is killed within a tenth of a second.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// `true` once [`cancel`](Self::cancel) was called.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// Why a sandbox cannot be set up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SandboxError {
    /// A child could not be started or did not answer.
    #[error("the sandbox does not work here: {0}")]
    Probe(#[source] Killed),
    /// The child's answer to the probe made no sense.
    #[error("the sandbox probe gave no report: {0}")]
    Answer(String),
    /// The kernel enforces less than the configuration demands.
    #[error("sandbox level {} is required but only {} is possible here: {}", .required, .found.level, .found.notes.join("; "))]
    BelowRequired {
        /// What the configuration demands.
        required: Level,
        /// What is there.
        found: Report,
    },
}

/// Starts children and watches over them. Shareable between threads; every run is independent.
#[derive(Debug)]
pub struct Sandbox {
    config: SandboxConfig,
    report: Report,
}

impl Sandbox {
    /// Locks down a throw-away child to see what this kernel enforces, and refuses when it is less than
    /// [`SandboxConfig::require`].
    ///
    /// # Errors
    /// No child can be started, it does not answer as it should, or the level is too low.
    pub fn new(config: SandboxConfig) -> Result<Sandbox, SandboxError> {
        let report = probe(&config)?;
        if report.level < config.require {
            return Err(SandboxError::BelowRequired {
                required: config.require,
                found: report,
            });
        }
        tracing::info!(
            level = %report.level,
            landlock_abi = report.landlock_abi,
            seccomp = report.seccomp,
            parent_death = report.parent_death,
            notes = report.notes.join("; "),
            "sandbox ready"
        );
        Ok(Sandbox { config, report })
    }

    /// What the kernel enforces on every child.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// The limits of every child.
    pub fn limits(&self) -> &ChildLimits {
        &self.config.limits
    }

    /// Runs one child on `request` and the first `input_len` bytes of `input`, and hands its frames to `on_frame` as
    /// they come. Blocks until the child is gone, whatever the outcome; `on_frame` runs on the calling thread.
    ///
    /// `Ok` means that the last frame was [`Frame::Done`] or [`Frame::Failed`]. After an error, frames that came before
    /// belong to a failed run: discard them. The child also dies when the calling thread or process does. `input` should
    /// be a local file or memory: while a read of it blocks, neither deadline nor cancellation is looked at.
    ///
    /// # Errors
    /// [`Killed`] with the reason: a limit was reached, the run was cancelled, the child crashed or broke the protocol.
    pub fn run(
        &self,
        request: &[u8],
        input: &mut dyn Read,
        input_len: u64,
        cancel: &CancelFlag,
        on_frame: &mut dyn FnMut(Frame),
    ) -> Result<Usage, Killed> {
        self.run_with(&self.config.limits, request, input, input_len, cancel, on_frame)
    }

    /// As [`run`](Self::run), in a child that has taken what its program prepares, see
    /// [`child_main_prepared`](crate::child_main_prepared), for a file of so many pages that each take long.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn run_prepared(
        &self,
        pages: u32,
        request: &[u8],
        input: &mut dyn Read,
        input_len: u64,
        cancel: &CancelFlag,
        on_frame: &mut dyn FnMut(Frame),
    ) -> Result<Usage, Killed> {
        let limits = &self.config.limits.for_pages(pages);
        let mut header = Header::new(Mode::Run, self.report.level, limits, request.len() as u64, input_len);
        header.prepare = true;
        let mut start = header.encode();
        start.extend_from_slice(request);
        converse(
            &self.config,
            limits,
            Outbox::new(start, input, input_len),
            cancel,
            on_frame,
        )
    }

    /// As [`run`](Self::run), with limits for this run alone.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn run_with(
        &self,
        limits: &ChildLimits,
        request: &[u8],
        input: &mut dyn Read,
        input_len: u64,
        cancel: &CancelFlag,
        on_frame: &mut dyn FnMut(Frame),
    ) -> Result<Usage, Killed> {
        let header = Header::new(Mode::Run, self.report.level, limits, request.len() as u64, input_len);
        let mut start = header.encode();
        start.extend_from_slice(request);
        converse(
            &self.config,
            limits,
            Outbox::new(start, input, input_len),
            cancel,
            on_frame,
        )
    }
}

fn probe(config: &SandboxConfig) -> Result<Report, SandboxError> {
    let limits = ChildLimits {
        wall: PROBE_WALL,
        stall: PROBE_WALL,
        max_output_bytes: 64 * 1024,
        ..config.limits.clone()
    };
    let header = Header::new(Mode::Probe, Level::ProcessOnly, &limits, 0, 0);
    let mut nothing = io::empty();
    let outbox = Outbox::new(header.encode(), &mut nothing, 0);
    let mut answer = Vec::new();
    let mut on_frame = |frame| {
        if let Frame::Done(bytes) = frame {
            answer = bytes;
        }
    };
    converse(config, &limits, outbox, &CancelFlag::new(), &mut on_frame).map_err(SandboxError::Probe)?;
    serde_json::from_slice(&answer).map_err(|error| SandboxError::Answer(error.to_string()))
}

/// One child from start to end.
fn converse(
    config: &SandboxConfig,
    limits: &ChildLimits,
    outbox: Outbox<'_>,
    cancel: &CancelFlag,
    on_frame: &mut dyn FnMut(Frame),
) -> Result<Usage, Killed> {
    let started = Instant::now();
    if cancel.is_cancelled() {
        return Err(Killed {
            reason: Reason::Cancelled,
            usage: Usage::default(),
        });
    }
    let spawned = process::spawn(config).map_err(|error| Killed {
        reason: Reason::SpawnFailed(error),
        usage: Usage::default(),
    })?;
    let Spawned {
        mut process,
        channel,
        stderr,
    } = spawned;
    let mut session = Session {
        limits,
        outbox,
        channel,
        stderr,
        tail: Tail::default(),
        parser: FrameParser::new(limits.max_output_bytes),
        watch: Watch {
            started,
            last_progress: Instant::now(),
            best: (0, 0),
        },
    };
    let verdict = session.listen(&mut process, cancel, on_frame);
    let by_itself = matches!(verdict, Verdict::Ended) && process.wait_for_end(GRACE);
    let ended = process.end();
    let usage = Usage {
        wall: started.elapsed(),
        cpu: ended.cpu,
        max_rss: ended.max_rss,
    };
    session.tail.take(&mut session.stderr);
    let reason = match verdict {
        Verdict::Answered => return Ok(usage),
        Verdict::Kill(reason) => reason,
        Verdict::Ended if by_itself => classify(&ended, session.tail.into_text(), limits),
        Verdict::Ended => Reason::ProtocolError("closed its channel without a result".to_owned()),
    };
    tracing::debug!(kind = reason.kind(), pid = process.id(), %reason, "child without a result");
    Err(Killed { reason, usage })
}

/// How listening ended.
enum Verdict {
    /// A terminal frame came.
    Answered,
    /// The child is to be killed for this.
    Kill(Reason),
    /// The child closed its channel or is gone.
    Ended,
}

struct Session<'l, 'i> {
    limits: &'l ChildLimits,
    outbox: Outbox<'i>,
    channel: UnixStream,
    stderr: UnixStream,
    tail: Tail,
    parser: FrameParser,
    watch: Watch,
}

impl Session<'_, '_> {
    /// Writes and reads until there is a verdict.
    fn listen(&mut self, process: &mut Process, cancel: &CancelFlag, on_frame: &mut dyn FnMut(Frame)) -> Verdict {
        let mut buffer = vec![0u8; 64 * 1024];
        loop {
            if cancel.is_cancelled() {
                return Verdict::Kill(Reason::Cancelled);
            }
            let patience = match self.watch.patience(self.limits) {
                Ok(patience) => patience.min(TICK),
                Err(reason) => return Verdict::Kill(reason),
            };
            let channel = Ready {
                read: true,
                write: !self.outbox.finished(),
            };
            let stderr = (!self.tail.closed()).then(|| {
                (
                    self.stderr.as_fd(),
                    Ready {
                        read: true,
                        write: false,
                    },
                )
            });
            let ready = match sys::poll([Some((self.channel.as_fd(), channel)), stderr], patience) {
                Ok(ready) => ready,
                Err(error) => return Verdict::Kill(Reason::SpawnFailed(error)),
            };
            let [channel, stderr] = ready;
            if stderr.read {
                self.tail.take(&mut self.stderr);
            }
            if channel.write && !self.outbox.finished() {
                match self.outbox.push(&mut self.channel) {
                    Ok(0) => {}
                    Ok(_) => self.watch.moved(),
                    Err(error) => return Verdict::Kill(Reason::Input(error)),
                }
            }
            // A descendant that the child should not have could hold the channel open: look at the child itself too.
            let gone = !channel.read && process.has_ended();
            if channel.read || gone {
                if let Some(verdict) = self.receive(&mut buffer, on_frame) {
                    return verdict;
                }
                if gone {
                    return Verdict::Ended;
                }
            } else if !channel.write && !stderr.read {
                // A whole tick without news: time to look.
                process.note_memory();
            }
        }
    }

    /// Takes what is there, up to a bound, so that a flood cannot hold up the watchdogs.
    fn receive(&mut self, buffer: &mut [u8], on_frame: &mut dyn FnMut(Frame)) -> Option<Verdict> {
        for _ in 0..64 {
            let got = match self.channel.read(buffer) {
                Ok(0) => return Some(Verdict::Ended),
                Ok(got) => got,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return None,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                // The child closed its end with unread input in it.
                Err(_) => return Some(Verdict::Ended),
            };
            let watch = &mut self.watch;
            let fed = self.parser.feed(buffer.split_at(got).0, &mut |frame| {
                let moved = watch.is_progress(&frame);
                on_frame(frame);
                // Only now: the time that the caller took is not the child's.
                if moved {
                    watch.moved();
                }
            });
            if let Err(error) = fed {
                return Some(Verdict::Kill(match error {
                    FrameError::OverBudget => Reason::OutputTooLarge(self.limits.max_output_bytes),
                    other => Reason::ProtocolError(other.to_string()),
                }));
            }
            if self.parser.finished() {
                return Some(Verdict::Answered);
            }
        }
        None
    }
}

/// The two clocks over a child.
struct Watch {
    started: Instant,
    last_progress: Instant,
    /// Highest counters reported: pages, elements.
    best: (u32, u32),
}

impl Watch {
    fn moved(&mut self) {
        self.last_progress = Instant::now();
    }

    /// Counters that stand still or fall are no progress; any other frame is.
    fn is_progress(&mut self, frame: &Frame) -> bool {
        let Frame::Progress {
            pages_done, elements, ..
        } = frame
        else {
            return true;
        };
        let (pages, found) = self.best;
        self.best = (pages.max(*pages_done), found.max(*elements));
        *pages_done > pages || *elements > found
    }

    /// Time left until one of the clocks runs out, or the reason when one has.
    fn patience(&self, limits: &ChildLimits) -> Result<Duration, Reason> {
        let wall = limits
            .wall
            .checked_sub(self.started.elapsed())
            .ok_or(Reason::WallTimeout(limits.wall))?;
        let stall = limits
            .stall
            .checked_sub(self.last_progress.elapsed())
            .ok_or(Reason::Stalled(limits.stall))?;
        Ok(wall.min(stall))
    }
}

/// What is still to be sent: the header and request, then the input in pieces.
struct Outbox<'a> {
    piece: Vec<u8>,
    sent: usize,
    input: &'a mut dyn Read,
    input_left: u64,
    finished: bool,
}

const PIECE: u64 = 256 * 1024;

impl<'a> Outbox<'a> {
    fn new(start: Vec<u8>, input: &'a mut dyn Read, input_len: u64) -> Outbox<'a> {
        Outbox {
            piece: start,
            sent: 0,
            input,
            input_left: input_len,
            finished: false,
        }
    }

    fn finished(&self) -> bool {
        self.finished
    }

    /// Sends as much as the channel takes, and says how much that was. Errors are those of the input alone: a channel
    /// that the child has closed ends the sending, and reading from it shows why.
    fn push(&mut self, channel: &mut UnixStream) -> io::Result<u64> {
        let mut total = 0;
        for _ in 0..64 {
            let (_, rest) = self.piece.split_at(self.sent.min(self.piece.len()));
            if rest.is_empty() && !self.refill()? {
                // The writing half stays open: its end is what tells a child that has answered to go.
                self.finished = true;
                break;
            }
            let (_, rest) = self.piece.split_at(self.sent.min(self.piece.len()));
            match channel.write(rest) {
                Ok(sent) => {
                    self.sent += sent;
                    total += sent as u64;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => {
                    self.finished = true;
                    break;
                }
            }
        }
        Ok(total)
    }

    /// Reads the next piece of the input; `false` when all of it is sent.
    fn refill(&mut self) -> io::Result<bool> {
        self.piece.clear();
        self.sent = 0;
        if self.input_left == 0 {
            return Ok(false);
        }
        let wanted = self.input_left.min(PIECE);
        let got = Read::take(&mut *self.input, wanted).read_to_end(&mut self.piece)? as u64;
        if got < wanted {
            let message = format!("it ended {} bytes early", self.input_left - got);
            return Err(io::Error::new(ErrorKind::UnexpectedEof, message));
        }
        self.input_left -= got;
        Ok(true)
    }
}
