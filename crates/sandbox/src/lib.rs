//! Runs untrusted work in a child process of its own: one process per file, locked down before it sees a byte of it.
//!
//! A parser that is given hostile files can loop, allocate without end, overflow its stack or, where it is written in
//! an unsafe language, be taken over. In a child of this crate all of that ends the child alone, within known limits,
//! and the caller learns the reason.
//!
//! # What a child cannot do
//!
//! | Measure | Effect |
//! |---|---|
//! | seccomp filter | no opening of files, no sockets, no new processes or programs, no signals to others, no tracing, no executable or shared memory; see the list in `policy.rs` |
//! | Landlock, all rights denied | the same for files and TCP a second time, by another mechanism |
//! | resource limits | heap + stack, address space, processor time, 16 descriptors, no file growth, no core dump |
//! | descriptors | only standard input (the channel to the parent), output (`/dev/null`) and error (captured, last 64 KiB) |
//! | prepared children | only those started by [`Sandbox::run_prepared`] hold more: libraries mapped and files opened for reading before the lock-down, chosen by the program, not by the input |
//! | environment | empty; arguments hold nothing secret; working directory `/` |
//! | watchdogs in the parent | wall clock, time without progress, size of the output, cancellation |
//! | life | ends with the parent, even when that is killed; first to go when the machine runs out of memory |
//!
//! Differences by user: as root, the kernel ignores the limit on the number of processes, which therefore is only a
//! second wall where seccomp is missing (as a normal user it holds, and forbids threads as well). Everything else holds
//! for root and for normal users alike; no privilege is needed for any of it. Still do not run a server as root: a flaw
//! of the kernel would give away more.
//!
//! On macOS only the separate process, the resource limits without memory, and the parent's watchdogs remain; the
//! [`Report`] says so. Other systems with `posix_spawn` and Unix sockets compile and behave alike.
//!
//! # What a child costs
//!
//! Starting, locking down, answering and reaping takes about 1.4 ms on one core for a small program and 2 ms for one of
//! 30 MB with 80,000 relocations, against 0.9 ms for the bare start of `/bin/true` on the same machine (measure yours
//! with the example `spawn_cost`). That is why there is no server process that forks prepared children, and no pool:
//! a fresh program image for every file has a fresh address layout and can carry nothing over from the file before.
//!
//! # Use
//!
//! The program that uses this crate starts itself again. First thing in `main`:
//! ```no_run
//! if std::env::args_os().nth(1).is_some_and(|a| a == "__child") {
//!     docmill_sandbox::child_main(|request, answer| answer.done(&request.input));
//! }
//! let config = docmill_sandbox::SandboxConfig::current_exe(["__child"])?;
//! let sandbox = docmill_sandbox::Sandbox::new(config)?;
//! let cancel = docmill_sandbox::CancelFlag::new();
//! let bytes = b"hello".as_slice();
//! let usage = sandbox.run(b"", &mut { bytes }, 5, &cancel, &mut |frame| println!("{frame:?}"))?;
//! println!("{} ms", usage.wall.as_millis());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod child;
mod config;
mod outcome;
mod parent;
#[cfg(target_os = "linux")]
mod policy;
mod process;
mod sys;
mod wire;

pub use child::{FrameWriter, Request, child_main, child_main_prepared};
pub use config::{ChildLimits, Level, Report, SandboxConfig};
pub use outcome::{CrashKind, Killed, Reason, Usage};
pub use parent::{CancelFlag, Sandbox, SandboxError};
pub use sys::raise_descriptor_limit;
pub use wire::Frame;
