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
    #[cfg(target_os = "linux")]
    let state = {
        // The state follows the name, which ends with the last bracket.
        let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        text.rsplit_once(") ")
            .map_or_else(String::new, |(_, rest)| rest.to_owned())
    };
    #[cfg(not(target_os = "linux"))]
    let state = Command::new("ps")
        .args(["-o", "stat=", "-p", &pid.to_string()])
        .output()
        .expect("ps");
    #[cfg(not(target_os = "linux"))]
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

/// What a server on a kernel without these measures says of itself and of three deeds of its children.
#[cfg(target_os = "linux")]
fn on_kernel_without(measure: &str) -> Vec<String> {
    let output = Command::new(CHILD)
        .args(["on-old-kernel", measure])
        .output()
        .expect("runs");
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .map(str::to_owned)
        .collect()
}

#[test]
#[cfg(target_os = "linux")]
fn a_kernel_without_landlock_is_best_effort_and_refused_when_full_is_required() {
    let lines = on_kernel_without("landlock");
    let [refused, rest @ ..] = lines.as_slice() else {
        panic!("{lines:?}")
    };
    assert!(
        refused.starts_with("refused: sandbox level full is required but only best-effort"),
        "{refused}"
    );
    assert!(refused.contains("Landlock"), "{refused}");
    let [level, file, exec, program, crash, ..] = rest else {
        panic!("{lines:?}")
    };
    assert_eq!([level, file], ["level: best-effort", "read-file /etc/passwd: errno 13"]);
    assert_eq!(exec, "exec: forbidden_call");
    assert!(program != "run-program: allowed", "{program}");
    assert_eq!(crash, "panic: crashed");
}

#[test]
#[cfg(target_os = "linux")]
fn a_kernel_without_seccomp_is_best_effort_and_still_keeps_files_closed() {
    let lines = on_kernel_without("seccomp");
    let [refused, level, file, _, program, crash, ..] = lines.as_slice() else {
        panic!("{lines:?}")
    };
    assert!(
        refused.starts_with("refused: ") && refused.contains("seccomp"),
        "{refused}"
    );
    assert_eq!([level, file], ["level: best-effort", "read-file /etc/passwd: errno 13"]);
    // The program is a file, too.
    assert!(program.starts_with("run-program: errno"), "{program}");
    assert_eq!(crash, "panic: crashed");
}

#[test]
#[cfg(target_os = "linux")]
fn a_kernel_without_both_is_process_only_and_says_so() {
    let lines = on_kernel_without("both");
    let [refused, level, file, _, program, crash, grow, many] = lines.as_slice() else {
        panic!("{lines:?}")
    };
    assert!(refused.contains("only process-only is possible here"), "{refused}");
    assert_eq!([level, file], ["level: process-only", "read-file /etc/passwd: allowed"]);
    // The kernel does not count the processes of root. For others, "resource temporarily unavailable".
    let root = refused.contains("runs as root");
    assert_eq!(
        program,
        if root {
            "run-program: allowed"
        } else {
            "run-program: errno 11"
        }
    );
    assert_eq!([grow, many], ["grow-file: crashed", "many-files: errno 24"]);
    assert_eq!(crash, "panic: crashed");
}
