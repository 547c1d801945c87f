//! How a run ended, and how an exit status is read.

use std::fmt;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use crate::config::ChildLimits;
use crate::sys::Ended;

/// Exit codes of [`child_main`](crate::child_main), chosen away from those that shells and libraries use.
pub(crate) mod exit {
    /// Started by hand or by another version: no valid header.
    pub(crate) const NOT_A_CHILD: i32 = 81;
    /// The isolation that the header demands could not be put up.
    pub(crate) const NOT_ISOLATED: i32 = 82;
    /// The work returned without a result.
    pub(crate) const NO_RESULT: i32 = 83;
    /// The parent is gone.
    pub(crate) const ORPHAN: i32 = 84;
    /// No memory for the request, the input or the worker thread.
    pub(crate) const NO_MEMORY: i32 = 85;
    /// The work panicked; the message is on stderr.
    pub(crate) const PANIC: i32 = 101;
}

/// What a child used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// From before the start of the process until its end was known.
    pub wall: Duration,
    /// User and system time of all threads of the child.
    pub cpu: Duration,
    /// Largest resident set in bytes. For a child that crashed, this can include the size of the process that started
    /// it, as the kernel carries that number over.
    pub max_rss: u64,
}

/// How a crashed child ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CrashKind {
    /// The work panicked.
    Panic,
    /// The stack was used up.
    StackOverflow,
    /// Ended by this signal.
    Signal(i32),
    /// Ended by itself with this exit code.
    Exit(i32),
    /// The host process discards the exit status of its children.
    Unknown,
}

/// Why a run has no result.
#[derive(Debug)]
#[non_exhaustive]
pub enum Reason {
    /// The caller's [`CancelFlag`](crate::CancelFlag) was raised.
    Cancelled,
    /// [`ChildLimits::wall`] is over.
    WallTimeout(Duration),
    /// No progress for [`ChildLimits::stall`].
    Stalled(Duration),
    /// More memory was needed than [`ChildLimits::memory_bytes`].
    MemoryLimit(u64),
    /// [`ChildLimits::cpu_secs`] are used up.
    CpuLimit(u64),
    /// The frames were larger than [`ChildLimits::max_output_bytes`].
    OutputTooLarge(u64),
    /// The child made a system call that the sandbox punishes: a bug, or hostile input that took the parser over.
    ForbiddenCall {
        /// End of what the child wrote to stderr, at most 64 KiB.
        stderr: String,
    },
    /// The child ended before its result.
    Crashed {
        /// How it ended.
        kind: CrashKind,
        /// End of what the child wrote to stderr, at most 64 KiB. For the log: it can hold names of source files.
        stderr: String,
    },
    /// The child did not keep to the frame format, or closed its channel without a result.
    ProtocolError(String),
    /// The child could not isolate itself as the probe at start had found possible.
    NotIsolated(String),
    /// Reading the input failed on the parent's side.
    Input(io::Error),
    /// The child could not be started or talked to.
    SpawnFailed(io::Error),
}

impl Reason {
    /// A short stable name for metrics and stored records.
    pub fn kind(&self) -> &'static str {
        match self {
            Reason::Cancelled => "cancelled",
            Reason::WallTimeout(_) => "wall_timeout",
            Reason::Stalled(_) => "stalled",
            Reason::MemoryLimit(_) => "memory_limit",
            Reason::CpuLimit(_) => "cpu_limit",
            Reason::OutputTooLarge(_) => "output_too_large",
            Reason::ForbiddenCall { .. } => "forbidden_call",
            Reason::Crashed { .. } => "crashed",
            Reason::ProtocolError(_) => "protocol_error",
            Reason::NotIsolated(_) => "not_isolated",
            Reason::Input(_) => "input_error",
            Reason::SpawnFailed(_) => "spawn_failed",
        }
    }

    /// `true` when the cause lies with this machine or the caller and not with the file: another attempt may succeed.
    pub fn is_transient(&self) -> bool {
        matches!(
            self,
            Reason::Cancelled | Reason::NotIsolated(_) | Reason::Input(_) | Reason::SpawnFailed(_)
        )
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Cancelled => f.write_str("cancelled"),
            Reason::WallTimeout(limit) => write!(f, "not finished after {} s", limit.as_secs_f64()),
            Reason::Stalled(limit) => write!(f, "no progress for {} s", limit.as_secs_f64()),
            Reason::MemoryLimit(limit) => write!(f, "needs more memory than the limit of {} MiB", limit >> 20),
            Reason::CpuLimit(limit) => write!(f, "needs more processor time than the limit of {limit} s"),
            Reason::OutputTooLarge(limit) => write!(f, "the result is larger than the limit of {} MiB", limit >> 20),
            Reason::ForbiddenCall { .. } => f.write_str("the worker process made a forbidden system call"),
            Reason::Crashed { kind, .. } => match kind {
                CrashKind::Panic => f.write_str("the worker process crashed (panic)"),
                CrashKind::StackOverflow => f.write_str("the worker process crashed (stack overflow)"),
                CrashKind::Signal(number) => write!(f, "the worker process crashed ({})", signal_name(*number)),
                CrashKind::Exit(code) => write!(f, "the worker process ended early with exit code {code}"),
                CrashKind::Unknown => f.write_str("the worker process ended early"),
            },
            Reason::ProtocolError(what) => write!(f, "the worker process broke the protocol: {what}"),
            Reason::NotIsolated(what) => write!(f, "the worker process could not be isolated: {what}"),
            Reason::Input(error) => write!(f, "the input could not be read: {error}"),
            Reason::SpawnFailed(error) => write!(f, "the worker process could not be started: {error}"),
        }
    }
}

/// A run without a result: why, and what was used until then.
#[derive(Debug, thiserror::Error)]
#[error("{reason}")]
pub struct Killed {
    /// Why.
    pub reason: Reason,
    /// Resources used.
    pub usage: Usage,
}

fn signal_name(number: i32) -> String {
    let name = match number {
        libc::SIGABRT => "SIGABRT, aborted",
        libc::SIGBUS => "SIGBUS, bad memory access",
        libc::SIGFPE => "SIGFPE, arithmetic error",
        libc::SIGILL => "SIGILL, illegal instruction",
        libc::SIGSEGV => "SIGSEGV, bad memory access",
        libc::SIGXFSZ => "SIGXFSZ, file size limit",
        libc::SIGKILL => "SIGKILL from outside, for example the kernel's out-of-memory killer",
        libc::SIGTERM => "SIGTERM from outside",
        other => return format!("signal {other}"),
    };
    name.to_owned()
}

/// Reads the reason from the way a child ended by itself, without a result.
pub(crate) fn classify(ended: &Ended, stderr: String, limits: &ChildLimits) -> Reason {
    let Some(status) = ended.status.map(ExitStatus::from_raw) else {
        return Reason::Crashed {
            kind: CrashKind::Unknown,
            stderr,
        };
    };
    if let Some(signal) = status.signal() {
        return classify_signal(signal, ended, stderr, limits);
    }
    match status.code().unwrap_or_default() {
        0 => Reason::ProtocolError("ended without a result".to_owned()),
        exit::NO_RESULT => Reason::ProtocolError("the work returned without a result".to_owned()),
        exit::NOT_ISOLATED => Reason::NotIsolated(stderr.trim_end().to_owned()),
        exit::NOT_A_CHILD => Reason::SpawnFailed(io::Error::other("the worker program is of another version")),
        exit::NO_MEMORY => Reason::MemoryLimit(limits.memory_bytes),
        exit::PANIC => Reason::Crashed {
            kind: CrashKind::Panic,
            stderr,
        },
        code => Reason::Crashed {
            kind: CrashKind::Exit(code),
            stderr,
        },
    }
}

fn classify_signal(signal: i32, ended: &Ended, stderr: String, limits: &ChildLimits) -> Reason {
    let kind = match signal {
        libc::SIGXCPU => return Reason::CpuLimit(limits.cpu_secs),
        libc::SIGKILL if ended.cpu.as_secs() >= limits.cpu_secs.max(1) => return Reason::CpuLimit(limits.cpu_secs),
        libc::SIGSYS => return Reason::ForbiddenCall { stderr },
        // An abort arrives as another signal where the C library may not signal itself.
        libc::SIGABRT | libc::SIGSEGV | libc::SIGILL | libc::SIGTRAP => {
            if tells_of_failed_allocation(&stderr) {
                return Reason::MemoryLimit(limits.memory_bytes);
            }
            if stderr.contains("has overflowed its stack") {
                CrashKind::StackOverflow
            } else if stderr.starts_with(PANIC_PREFIX) || stderr.contains("\npanicked: ") {
                CrashKind::Panic
            } else {
                CrashKind::Signal(signal)
            }
        }
        other => CrashKind::Signal(other),
    };
    Reason::Crashed { kind, stderr }
}

/// Start of the line that the child writes for a panic.
pub(crate) const PANIC_PREFIX: &str = "panicked: ";

/// The line that the standard library prints before it aborts for want of memory.
fn tells_of_failed_allocation(stderr: &str) -> bool {
    stderr.lines().rev().take(8).any(|line| {
        let Some((_, rest)) = line.split_once("memory allocation of ") else {
            return false;
        };
        rest.split_once(' ')
            .is_some_and(|(size, rest)| size.parse::<u64>().is_ok() && rest.starts_with("bytes failed"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(status: i32, cpu_secs: u64) -> Ended {
        Ended {
            status: Some(status),
            cpu: Duration::from_secs(cpu_secs),
            max_rss: 0,
        }
    }

    fn kind_of(status: i32, cpu_secs: u64, stderr: &str) -> String {
        let limits = ChildLimits {
            cpu_secs: 5,
            ..ChildLimits::default()
        };
        format!("{:?}", classify(&ended(status, cpu_secs), stderr.to_owned(), &limits))
    }

    #[test]
    fn signals_and_codes_map_to_reasons() {
        assert_eq!(kind_of(libc::SIGXCPU, 0, ""), "CpuLimit(5)");
        assert_eq!(kind_of(libc::SIGKILL, 5, ""), "CpuLimit(5)");
        assert!(kind_of(libc::SIGKILL, 1, "").contains("Signal(9)"));
        assert!(kind_of(libc::SIGSYS, 0, "").starts_with("ForbiddenCall"));
        assert!(kind_of(libc::SIGSEGV, 0, "").contains("Signal(11)"));
        assert!(kind_of(0, 0, "").starts_with("ProtocolError"));
        assert!(kind_of(exit::PANIC << 8, 0, "panicked: x").contains("Panic"));
        assert!(kind_of(7 << 8, 0, "").contains("Exit(7)"));
        assert!(kind_of(exit::NOT_ISOLATED << 8, 0, "no seccomp\n").contains("NotIsolated(\"no seccomp\")"));
    }

    #[test]
    fn an_abort_is_read_by_its_last_words() {
        let failed = "memory allocation of 1073741824 bytes failed\n";
        assert!(kind_of(libc::SIGABRT, 0, failed).starts_with("MemoryLimit"));
        assert!(kind_of(libc::SIGABRT, 0, "memory allocation of many bytes failed").contains("Signal(6)"));
        assert!(kind_of(libc::SIGABRT, 0, "thread 'x' (1) has overflowed its stack\n").contains("StackOverflow"));
        assert!(kind_of(libc::SIGABRT, 0, "panicked: boom").contains("Panic"));
        assert!(kind_of(libc::SIGABRT, 0, "").contains("Signal(6)"));
    }
}
