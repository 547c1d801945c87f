//! A parent in front of a child that keeps to no rule: `__raw` is not locked down and writes what it likes.

use std::time::{Duration, Instant};

use docmill_sandbox::{CancelFlag, ChildLimits, Killed, Level, Sandbox, SandboxConfig, SandboxError};

use crate::{CHILD, Reason, config, limits};

/// What `Sandbox::new` makes of a program that does this deed instead of answering the probe.
fn meet(deed: &str) -> SandboxError {
    let limits = ChildLimits {
        cpu_secs: 5,
        ..limits()
    };
    let config = SandboxConfig {
        args: vec!["__raw".into(), deed.into()],
        require: Level::ProcessOnly,
        limits,
        ..config()
    };
    Sandbox::new(config).expect_err("no report")
}

fn reason(deed: &str) -> Reason {
    match meet(deed) {
        SandboxError::Probe(Killed { reason, .. }) => reason,
        other => panic!("{deed}: {other:?}"),
    }
}

#[test]
fn a_giant_frame() {
    assert!(matches!(reason("giant"), Reason::OutputTooLarge(_)));
}

#[test]
fn garbage() {
    assert!(matches!(reason("garbage"), Reason::ProtocolError(_)));
}

#[test]
fn a_frame_that_never_comes() {
    assert!(matches!(reason("promise"), Reason::ProtocolError(_)));
    assert!(matches!(reason("silence"), Reason::ProtocolError(_)));
}

#[test]
fn a_closed_channel_and_a_child_that_stays() {
    let started = Instant::now();
    assert!(matches!(reason("close-and-spin"), Reason::ProtocolError(_)));
    assert!(started.elapsed() < Duration::from_secs(5));
}

#[test]
fn a_flood_of_small_frames() {
    assert!(matches!(reason("flood"), Reason::OutputTooLarge(_)));
}

#[test]
fn frames_after_the_last() {
    // The first terminal frame counts, and "x" is no report.
    assert!(matches!(meet("extra"), SandboxError::Answer(_)));
}

#[test]
fn a_program_that_is_not_there() {
    let config = SandboxConfig {
        program: "/no/such/program".into(),
        ..config()
    };
    let error = Sandbox::new(config).expect_err("nothing to start");
    assert!(matches!(
        error,
        SandboxError::Probe(Killed {
            reason: Reason::SpawnFailed(_),
            ..
        })
    ));
}

#[test]
fn a_child_started_by_hand_says_so() {
    let output = std::process::Command::new(CHILD)
        .arg("__child")
        .stdin(std::process::Stdio::null())
        .output();
    let output = output.expect("runs");
    assert_eq!(output.status.code(), Some(81));
    assert!(!output.stderr.is_empty() && output.stdout.is_empty());
}

#[test]
fn a_raised_flag_starts_nothing() {
    let cancel = CancelFlag::new();
    cancel.clone().cancel();
    let result = crate::sandbox().run(b"echo", &mut std::io::empty(), 0, &cancel, &mut drop);
    assert!(matches!(result.expect_err("cancelled").reason, Reason::Cancelled));
}
