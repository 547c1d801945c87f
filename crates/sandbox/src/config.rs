//! What the caller decides: which program is the child, how much it may use, and how strong the isolation must be.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Strength of the isolation around a child, from weakest to strongest.
///
/// The order is meaningful: `Level::Full > Level::ProcessOnly`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// A separate process with resource limits, but the kernel does not keep it from files or the network.
    ProcessOnly,
    /// Either seccomp or Landlock is enforced, not both.
    BestEffort,
    /// Resource limits, death with the parent, seccomp and Landlock are all enforced.
    Full,
}

impl Level {
    /// The name used in settings and reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Level::ProcessOnly => "process-only",
            Level::BestEffort => "best-effort",
            Level::Full => "full",
        }
    }

    pub(crate) fn to_wire(self) -> u8 {
        match self {
            Level::ProcessOnly => 0,
            Level::BestEffort => 1,
            Level::Full => 2,
        }
    }

    pub(crate) fn from_wire(byte: u8) -> Option<Level> {
        [Level::ProcessOnly, Level::BestEffort, Level::Full]
            .into_iter()
            .find(|l| l.to_wire() == byte)
    }
}

impl std::fmt::Display for Level {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl std::str::FromStr for Level {
    type Err = String;

    fn from_str(text: &str) -> Result<Level, String> {
        [Level::ProcessOnly, Level::BestEffort, Level::Full]
            .into_iter()
            .find(|l| l.as_str() == text)
            .ok_or_else(|| format!("unknown sandbox level {text:?}, expected full, best-effort or process-only"))
    }
}

/// Limits of one child process, that is of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChildLimits {
    /// Heap in bytes, the input included. The stack of the worker thread comes on top.
    pub memory_bytes: u64,
    /// Stack of the thread that does the work, in bytes.
    pub stack_bytes: u64,
    /// Processor time in whole seconds, over all threads of the child. At least 1.
    pub cpu_secs: u64,
    /// Wall-clock time from start to result.
    pub wall: Duration,
    /// Seconds that [`cpu_secs`](Self::cpu_secs) and [`wall`](Self::wall) grow by for each page that takes long,
    /// see [`for_pages`](Self::for_pages).
    pub page_secs: u64,
    /// Seconds that they grow by at most.
    pub max_page_secs: u64,
    /// Longest time without progress: input taken, output received, or a progress counter that grew.
    pub stall: Duration,
    /// Bytes of all frames together, headers included.
    pub max_output_bytes: u64,
}

impl Default for ChildLimits {
    /// 2 GiB of heap, 64 MiB of stack, 10 minutes of processor time, 15 minutes in all, 2 minutes without progress,
    /// 512 MiB of output.
    fn default() -> ChildLimits {
        ChildLimits {
            memory_bytes: 2 << 30,
            stack_bytes: 64 << 20,
            cpu_secs: 600,
            wall: Duration::from_secs(900),
            page_secs: 4,
            max_page_secs: 7200,
            stall: Duration::from_secs(120),
            max_output_bytes: 512 << 20,
        }
    }
}

impl ChildLimits {
    /// The limits for a file of so many pages that each take long, as scans do. The number is the file's claim:
    /// what it adds is bounded.
    #[must_use]
    pub fn for_pages(&self, pages: u32) -> ChildLimits {
        let more = self.page_secs.saturating_mul(pages.into()).min(self.max_page_secs);
        ChildLimits {
            cpu_secs: self.cpu_secs.saturating_add(more),
            wall: self.wall.saturating_add(Duration::from_secs(more)),
            ..self.clone()
        }
    }
}

/// How to start children and what to demand of them.
#[derive(Debug, Clone)]
pub struct SandboxConfig {
    /// The program to start. It must call [`child_main`](crate::child_main) first thing when it sees [`args`](Self::args).
    pub program: PathBuf,
    /// Arguments for the program, for example a hidden subcommand.
    pub args: Vec<OsString>,
    /// The weakest isolation that is acceptable.
    pub require: Level,
    /// Limits for every child.
    pub limits: ChildLimits,
}

impl SandboxConfig {
    /// Runs the current executable again with `args` as its arguments, default limits, and [`Level::Full`] required.
    ///
    /// On Linux the program is the running image itself (`/proc/self/exe`), so that children stay the same version as
    /// the server when the file on disk is replaced or removed during an upgrade.
    ///
    /// # Errors
    /// The path of the running executable cannot be found.
    pub fn current_exe<A: Into<OsString>>(args: impl IntoIterator<Item = A>) -> std::io::Result<SandboxConfig> {
        let image = PathBuf::from("/proc/self/exe");
        let usable = cfg!(target_os = "linux") && image.read_link().is_ok();
        Ok(SandboxConfig {
            program: if usable { image } else { std::env::current_exe()? },
            args: args.into_iter().map(Into::into).collect(),
            require: Level::Full,
            limits: ChildLimits::default(),
        })
    }
}

/// What the kernel really enforces on a child, found by locking one down and asking it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// The summary that [`SandboxConfig::require`] is compared with.
    pub level: Level,
    /// Landlock ABI of the running kernel, if Landlock is enforced.
    pub landlock_abi: Option<u32>,
    /// The system-call filter is in force.
    pub seccomp: bool,
    /// Memory, processor time, file size, descriptors and core dumps are limited.
    pub rlimits: bool,
    /// The kernel kills the child when its parent dies.
    pub parent_death: bool,
    /// What is missing or weaker than it could be, one sentence each.
    pub notes: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_grows_with_pages_up_to_a_bound() {
        let limits = ChildLimits::default();
        let grown = |pages| {
            let limits = limits.for_pages(pages);
            (limits.cpu_secs, limits.wall.as_secs())
        };
        assert_eq!(grown(0), (600, 900));
        assert_eq!(grown(1000), (4600, 4900));
        assert_eq!(grown(u32::MAX), (7800, 8100));
    }
}
