//! One child process as its parent holds it: never forgotten, never left behind.

use std::io::{self, ErrorKind, Read};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::config::SandboxConfig;
use crate::sys::{self, Ended};

/// A running child. Dropping it kills and reaps it.
#[derive(Debug)]
pub(crate) struct Process {
    pid: i32,
    ended: Option<Ended>,
    max_rss: Option<u64>,
}

/// A child with the parent's ends of its two connections, both non-blocking.
pub(crate) struct Spawned {
    pub(crate) process: Process,
    pub(crate) channel: UnixStream,
    pub(crate) stderr: UnixStream,
}

/// Starts the program. Nothing in here needs `fork`: the standard library takes the `posix_spawn` path, whose cost does
/// not grow with the memory of the server.
pub(crate) fn spawn(config: &SandboxConfig) -> io::Result<Spawned> {
    let (channel, child_channel) = UnixStream::pair()?;
    let (stderr, child_stderr) = UnixStream::pair()?;
    channel.set_nonblocking(true)?;
    stderr.set_nonblocking(true)?;
    let mut command = Command::new(&config.program);
    command
        .args(&config.args)
        .env_clear()
        .current_dir("/")
        .stdin(OwnedFd::from(child_channel))
        .stdout(Stdio::null())
        .stderr(OwnedFd::from(child_stderr))
        // A group of its own: an interrupt typed at the terminal reaches the server alone, which can then drain.
        .process_group(0);
    let child = command.spawn()?;
    // `command` holds the child's ends; while it lives, the end of the child would not show on the channel.
    drop(command);
    // A process id always fits: the kernel's own type for it is `i32`.
    let pid = i32::try_from(child.id()).map_err(io::Error::other)?;
    Ok(Spawned {
        process: Process {
            pid,
            ended: None,
            max_rss: None,
        },
        channel,
        stderr,
    })
}

impl Process {
    pub(crate) fn id(&self) -> i32 {
        self.pid
    }

    /// `true` once the child has ended; reaps it then.
    pub(crate) fn has_ended(&mut self) -> bool {
        if self.ended.is_none() {
            self.ended = sys::wait(self.pid, false);
        }
        self.ended.is_some()
    }

    /// Waits up to `patience` for the child to end by itself.
    pub(crate) fn wait_for_end(&mut self, patience: Duration) -> bool {
        let start = Instant::now();
        let mut pause = Duration::from_micros(100);
        while !self.has_ended() {
            if start.elapsed() >= patience {
                return false;
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(5));
        }
        true
    }

    /// Kills the child if it still runs, reaps it, and says what it used.
    pub(crate) fn end(&mut self) -> Ended {
        if !self.has_ended() {
            self.note_memory();
            sys::kill(self.pid);
        }
        let mut ended = *self.ended.get_or_insert_with(|| {
            sys::wait(self.pid, true).unwrap_or(Ended {
                status: None,
                cpu: Duration::ZERO,
                max_rss: 0,
            })
        });
        ended.max_rss = self.max_rss.unwrap_or(ended.max_rss);
        ended
    }

    /// Remembers the largest resident set of the living child. The figure that the kernel reports at the end is no
    /// substitute where this one can be had: it starts from the size of the process that spawned the child.
    pub(crate) fn note_memory(&mut self) {
        if !cfg!(target_os = "linux") || self.ended.is_some() {
            return;
        }
        let Ok(status) = std::fs::read_to_string(format!("/proc/{}/status", self.pid)) else {
            return;
        };
        let peak = status
            .lines()
            .find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse().ok());
        if let Some(kib) = peak.map(|kib: u64| kib.saturating_mul(1024)) {
            self.max_rss = Some(self.max_rss.unwrap_or(0).max(kib));
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}

/// The last bytes the child wrote to stderr.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    bytes: Vec<u8>,
    closed: bool,
}

/// How much of stderr is kept.
const TAIL_BYTES: usize = 64 * 1024;

impl Tail {
    pub(crate) fn closed(&self) -> bool {
        self.closed
    }

    /// Takes what is there now, at most a few buffers full, so that a flood cannot hold up the watchdogs.
    pub(crate) fn take(&mut self, from: &mut UnixStream) {
        let mut buffer = [0u8; 8192];
        for _ in 0..16 {
            match from.read(&mut buffer) {
                Ok(0) => self.closed = true,
                Ok(got) => {
                    self.bytes.extend_from_slice(buffer.split_at(got).0);
                    if self.bytes.len() > 2 * TAIL_BYTES {
                        self.bytes.drain(..self.bytes.len() - TAIL_BYTES);
                    }
                    continue;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => self.closed = error.kind() != ErrorKind::WouldBlock,
            }
            return;
        }
    }

    /// The text, with whatever is not UTF-8 replaced.
    pub(crate) fn into_text(mut self) -> String {
        if self.bytes.len() > TAIL_BYTES {
            self.bytes.drain(..self.bytes.len() - TAIL_BYTES);
        }
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}
