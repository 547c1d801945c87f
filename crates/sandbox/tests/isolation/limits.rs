//! Every limit triggers, with the right reason; crashes are told apart.

use std::time::{Duration, Instant};

use docmill_sandbox::{CancelFlag, ChildLimits, CrashKind, Frame};

use crate::{Reason, answer, limits, reason, reason_of, run, run_with, sandbox};

#[test]
fn a_result_comes_back_with_its_costs() {
    let (frames, result) = run("echo", b"some input");
    assert_eq!(frames, [Frame::Done(b"some input".to_vec())]);
    let usage = result.expect("a result");
    assert!(usage.wall > Duration::ZERO && usage.wall < Duration::from_secs(10));
    assert!(usage.cpu > Duration::ZERO && usage.cpu < Duration::from_secs(5));
    assert!(usage.max_rss > 100 << 10 && usage.max_rss < 64 << 20, "{usage:?}");
}

#[test]
fn an_orderly_failure_is_a_result() {
    let (frames, result) = run("fail", b"");
    assert_eq!(frames, [Frame::Failed(b"sorry".to_vec())]);
    assert!(result.is_ok());
}

#[test]
#[cfg(target_os = "linux")]
fn memory() {
    assert!(matches!(reason("memory"), Reason::MemoryLimit(bytes) if bytes == 256 << 20));
    assert!(matches!(reason("memory-at-once"), Reason::MemoryLimit(_)));
}

#[test]
#[cfg(target_os = "linux")]
fn work_that_asks_first_can_fail_in_good_order() {
    assert_eq!(run("memory-if-possible", b"").0, [Frame::Failed(b"too big".to_vec())]);
}

#[test]
#[cfg(target_os = "linux")]
fn input_beyond_the_memory_limit() {
    let small = ChildLimits {
        memory_bytes: 16 << 20,
        ..limits()
    };
    assert!(matches!(
        reason_of(run_with(&small, "length", &vec![0; 20 << 20])),
        Reason::MemoryLimit(_)
    ));
}

#[test]
fn processor_time() {
    let short = ChildLimits {
        cpu_secs: 1,
        ..limits()
    };
    let started = Instant::now();
    assert!(matches!(reason_of(run_with(&short, "spin", b"")), Reason::CpuLimit(1)));
    assert!(started.elapsed() < Duration::from_secs(15));
}

#[test]
fn wall_clock() {
    let short = ChildLimits {
        wall: Duration::from_millis(300),
        ..limits()
    };
    let started = Instant::now();
    assert!(matches!(
        reason_of(run_with(&short, "sleep", b"")),
        Reason::WallTimeout(_)
    ));
    let (_, result) = run_with(&short, "progress", b"");
    assert!(matches!(result.expect_err("too slow").reason, Reason::WallTimeout(_)));
    assert!(started.elapsed() >= Duration::from_millis(600) && started.elapsed() < Duration::from_secs(3));
}

#[test]
fn stalling() {
    let short = ChildLimits {
        stall: Duration::from_millis(400),
        ..limits()
    };
    let started = Instant::now();
    assert!(matches!(reason_of(run_with(&short, "sleep", b"")), Reason::Stalled(_)));
    assert!(matches!(
        reason_of(run_with(&short, "no-progress", b"")),
        Reason::Stalled(_)
    ));
    assert!(started.elapsed() < Duration::from_secs(4));
}

#[test]
fn progress_keeps_the_watchdog_quiet() {
    let short = ChildLimits {
        stall: Duration::from_millis(500),
        ..limits()
    };
    let (frames, result) = run_with(&short, "progress", b"");
    assert!(result.is_ok(), "{result:?}");
    let seen = frames
        .iter()
        .filter(|f| matches!(f, Frame::Progress { pages_total: 8, .. }))
        .count();
    assert_eq!(seen, 8);
}

#[test]
fn output() {
    let small = ChildLimits {
        max_output_bytes: 10 << 20,
        ..limits()
    };
    let (frames, result) = run_with(&small, "outputs", b"");
    assert!(matches!(
        result.expect_err("too much").reason,
        Reason::OutputTooLarge(_)
    ));
    assert!(frames.len() <= 10);
}

#[test]
fn large_input_and_output_pass() {
    let wide = ChildLimits {
        memory_bytes: 512 << 20,
        max_output_bytes: 128 << 20,
        ..limits()
    };
    let input: Vec<u8> = (0..50u32 << 20).map(|n| (n % 251) as u8).collect();
    let (frames, result) = run_with(&wide, "echo", &input);
    assert!(result.is_ok(), "{result:?}");
    assert!(matches!(frames.as_slice(), [Frame::Done(bytes)] if *bytes == input));
    let (frames, result) = run_with(&wide, "outputs", b"");
    assert!(result.is_ok(), "{result:?}");
    assert_eq!(frames.len(), 51);
    assert!(matches!(frames.get(49), Some(Frame::Output { index: 49, bytes }) if bytes.len() == 1 << 20));
}

#[test]
fn input_that_ends_early_is_the_parents_fault() {
    let mut short = b"only this".as_slice();
    let result = sandbox().run(b"length", &mut short, 1000, &CancelFlag::new(), &mut drop);
    assert!(matches!(result.expect_err("no input").reason, Reason::Input(_)));
}

#[test]
fn input_beyond_its_length_is_not_sent() {
    let mut long = b"1234567890".as_slice();
    let mut frames = Vec::new();
    let result = sandbox().run(b"echo", &mut long, 4, &CancelFlag::new(), &mut |f| frames.push(f));
    assert!(result.is_ok());
    assert_eq!(frames, [Frame::Done(b"1234".to_vec())]);
}

fn crash(deed: &str) -> (CrashKind, String) {
    match reason(deed) {
        Reason::Crashed { kind, stderr } => (kind, stderr),
        other => panic!("{deed}: {other:?}"),
    }
}

#[test]
fn a_panic_tells_its_message_and_no_paths() {
    let (kind, stderr) = crash("panic");
    assert_eq!(kind, CrashKind::Panic);
    assert!(stderr.starts_with("panicked: boom 42 at "), "{stderr}");
    assert!(
        !stderr.contains("/home") && !stderr.contains("/work") && stderr.lines().count() == 1,
        "{stderr}"
    );
    assert_eq!(crash("panic-in-format").0, CrashKind::Panic);
}

#[test]
fn aborts_bad_memory_and_exits() {
    // Where the C library signals the thread and not the process, the filter leaves it only the hard way out.
    let abort = if cfg!(target_env = "musl") {
        libc::SIGSEGV
    } else {
        libc::SIGABRT
    };
    assert_eq!(crash("abort").0, CrashKind::Signal(abort));
    assert_eq!(crash("segfault").0, CrashKind::Signal(libc::SIGSEGV));
    assert_eq!(crash("overflow").0, CrashKind::StackOverflow);
    assert_eq!(crash("exit").0, CrashKind::Exit(7));
}

#[test]
fn no_result_is_an_error() {
    assert!(matches!(reason("nothing"), Reason::ProtocolError(_)));
}

#[test]
fn of_a_flood_on_stderr_the_end_is_kept() {
    let (kind, stderr) = crash("flood-stderr");
    assert_eq!(kind, CrashKind::Panic);
    assert!(stderr.len() <= 64 << 10 && stderr.len() > 60 << 10);
    assert!(stderr.contains("panicked: after the flood"));
}

#[test]
fn files_do_not_see_each_other() {
    for _ in 0..3 {
        let (frames, _) = run("canary", &[0xab; 4 << 20]);
        assert_eq!(frames, [Frame::Done(b"false".to_vec())]);
    }
    assert_eq!(answer("length"), "0");
}
