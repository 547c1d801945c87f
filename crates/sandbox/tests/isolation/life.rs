//! Children end when they must and leave nothing behind.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use docmill_sandbox::{CancelFlag, Frame, Level, SandboxConfig};

use crate::{CHILD, Reason, sandbox};

#[test]
fn cancelling_is_fast() {
    let cancel = CancelFlag::new();
    let other = cancel.clone();
    let mut raised = None;
    std::thread::scope(|scope| {
        let watcher = scope.spawn(move || {
            std::thread::sleep(Duration::from_millis(200));
            other.cancel();
            Instant::now()
        });
        let result = sandbox().run(b"spin", &mut std::io::empty(), 0, &cancel, &mut drop);
        let ended = Instant::now();
        assert!(matches!(result.expect_err("cancelled").reason, Reason::Cancelled));
        raised = watcher.join().ok().map(|at| ended - at);
    });
    let latency = raised.expect("watcher");
    assert!(latency < Duration::from_secs(1), "{latency:?}");
}

#[test]
fn a_panicking_caller_leaves_no_child() {
    let mut pid = 0;
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _ = sandbox().run(
            b"pid-then-spin",
            &mut std::io::empty(),
            0,
            &CancelFlag::new(),
            &mut |frame| {
                if let Frame::Output { index, .. } = frame {
                    pid = index;
                    panic!("the caller's own fault");
                }
            },
        );
    }));
    assert!(caught.is_err() && pid > 1);
    assert!(!alive(pid));
}

/// Present and not a zombie that waits for somebody else to reap it.
fn alive(pid: u32) -> bool {
    let state = Command::new("ps")
        .args(["-o", "stat=", "-p", &pid.to_string()])
        .output()
        .expect("ps");
    let state = String::from_utf8_lossy(&state.stdout);
    !state.trim().is_empty() && !state.starts_with('Z')
}

#[test]
fn a_child_dies_with_its_parent() {
    let mut parent = Command::new(CHILD)
        .arg("parent")
        .stdout(Stdio::piped())
        .spawn()
        .expect("starts");
    let mut line = String::new();
    BufReader::new(parent.stdout.take().expect("piped"))
        .read_line(&mut line)
        .expect("a line");
    let child: u32 = line.trim().parse().expect("a process id");
    assert!(alive(child));
    parent.kill().expect("killed");
    parent.wait().expect("reaped");
    let deadline = Instant::now() + Duration::from_secs(1);
    while alive(child) {
        assert!(Instant::now() < deadline, "{child} is still there");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn the_level_can_be_insisted_on() {
    let report = sandbox().report();
    assert_eq!(report.level, Level::Full);
    assert!(report.seccomp && report.rlimits && report.parent_death && report.landlock_abi >= Some(1));
    let text = serde_json::to_string(report).expect("serialises");
    assert!(text.contains(r#""level":"full""#), "{text}");
}

#[test]
fn levels_have_an_order_and_names() {
    assert!(Level::Full > Level::BestEffort && Level::BestEffort > Level::ProcessOnly);
    for level in [Level::Full, Level::BestEffort, Level::ProcessOnly] {
        assert_eq!(level.as_str().parse(), Ok(level));
    }
    assert!("none".parse::<Level>().is_err());
}

#[test]
fn the_running_image_is_its_own_child_program() {
    let config = SandboxConfig::current_exe(["__child"]).expect("a path");
    assert!(config.program.exists());
    assert_eq!(config.require, Level::Full);
}

#[test]
#[cfg(target_os = "linux")]
fn many_runs_leave_no_descriptors_and_no_zombies() {
    // In a process of its own: other tests of this program open descriptors and start children meanwhile.
    let output = Command::new(CHILD).arg("many").output().expect("runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(
        text.trim(),
        "descriptors +0, children 0",
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
