//! What a child may not do, what ends it, and what its parent makes of it: with real processes on the real kernel.
//!
//! The tests of single prohibitions need a kernel with Landlock and seccomp (Linux 5.13 or later), as root or as a
//! normal user; they fail elsewhere rather than pass without having tested anything.

mod hostile;
mod life;
mod limits;
#[cfg(target_os = "linux")]
mod prohibitions;

use std::sync::OnceLock;
use std::time::Duration;

use docmill_sandbox::{CancelFlag, ChildLimits, Frame, Killed, Level, Reason, Sandbox, SandboxConfig, Usage};

const CHILD: &str = env!("CARGO_BIN_EXE_docmill-sandbox-testchild");

fn config() -> SandboxConfig {
    SandboxConfig {
        program: CHILD.into(),
        args: vec!["__child".into()],
        require: if cfg!(target_os = "linux") {
            Level::Full
        } else {
            Level::ProcessOnly
        },
        limits: limits(),
    }
}

/// Small enough for every limit to be reached fast, large enough for a busy machine.
fn limits() -> ChildLimits {
    ChildLimits {
        memory_bytes: 256 << 20,
        stack_bytes: 64 << 20,
        cpu_secs: 20,
        wall: Duration::from_secs(30),
        stall: Duration::from_secs(20),
        max_output_bytes: 64 << 20,
        ..ChildLimits::default()
    }
}

fn sandbox() -> &'static Sandbox {
    static ONE: OnceLock<Sandbox> = OnceLock::new();
    ONE.get_or_init(|| Sandbox::new(config()).expect("a kernel with Landlock and seccomp"))
}

type Outcome = (Vec<Frame>, Result<Usage, Killed>);

fn run_with(limits: &ChildLimits, request: &str, input: &[u8]) -> Outcome {
    let mut frames = Vec::new();
    let mut input_reader = input;
    let result = sandbox().run_with(
        limits,
        request.as_bytes(),
        &mut input_reader,
        input.len() as u64,
        &CancelFlag::new(),
        &mut |frame| frames.push(frame),
    );
    (frames, result)
}

fn run(request: &str, input: &[u8]) -> Outcome {
    run_with(&limits(), request, input)
}

/// Text of the result of a run that must succeed.
fn answer(request: &str) -> String {
    let (mut frames, result) = run(request, b"");
    match (frames.pop(), result) {
        (Some(Frame::Done(bytes)), Ok(_)) => String::from_utf8(bytes).expect("text"),
        other => panic!("{request}: {other:?}"),
    }
}

/// Reason of a run that must not succeed.
fn reason(request: &str) -> Reason {
    reason_of(run(request, b""))
}

fn reason_of(outcome: Outcome) -> Reason {
    match outcome {
        (_, Err(killed)) => killed.reason,
        other => panic!("unexpected result: {other:?}"),
    }
}
