//! The program that the integration tests start: as a child it does the deed that its request names, most of them bad;
//! as `parent` it is the process in the middle whose death its child must not survive.
#![allow(unsafe_code)]

use std::fs::OpenOptions;
use std::hint::black_box;
use std::io::{self, Write};
use std::time::{Duration, Instant};

use docmill_sandbox::{CancelFlag, FrameWriter, Level, Request, Sandbox, SandboxConfig, child_main};

fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("__child") => child_main(act),
        Some("__raw") => raw(&std::env::args().nth(2).unwrap_or_default()),
        Some("parent") => middle(),
        Some("many") => many(),
        #[cfg(target_os = "linux")]
        Some("on-old-kernel") => on_old_kernel(&std::env::args().nth(2).unwrap_or_default()),
        _ => eprintln!("for the tests of docmill-sandbox only"),
    }
}

/// A child that never locks itself down nor speaks the protocol: what a taken-over one could do.
fn raw(deed: &str) {
    let mut channel = io::stdin().lock();
    let mut head = [0u8; 56];
    let _ = io::Read::read_exact(&mut channel, &mut head);
    let write = |bytes: &[u8]| {
        // SAFETY: the pointer and the length describe a live slice.
        unsafe { libc::write(0, bytes.as_ptr().cast(), bytes.len()) };
    };
    match deed {
        "giant" => write(&[3, 0xff, 0xff, 0xff, 0xff, 1, 2, 3]),
        "garbage" => write(&[0xde, 0xad, 0xbe, 0xef, 0, 0, 0]),
        "promise" => write(&[3, 100, 0, 0, 0, 1, 2, 3]),
        "close-and-spin" => {
            // SAFETY: closing a descriptor that nothing uses any more.
            unsafe { libc::close(0) };
            loop {
                black_box(0);
            }
        }
        "flood" => loop {
            write(&[1, 12, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0]);
        },
        "extra" => write(&[3, 1, 0, 0, 0, b'x', 3, 1, 0, 0, 0, b'y', 9, 9, 9, 9, 9]),
        _ => {}
    }
}

/// Runs a child that never ends, and tells its process id.
fn middle() {
    let mut config = SandboxConfig::current_exe(["__child"]).expect("own path");
    config.require = Level::ProcessOnly;
    let sandbox = Sandbox::new(config).expect("sandbox");
    let _ = sandbox.run(
        b"pid-then-spin",
        &mut io::empty(),
        0,
        &CancelFlag::new(),
        &mut |frame| {
            if let docmill_sandbox::Frame::Output { index, .. } = frame {
                println!("{index}");
                let _ = io::stdout().flush();
            }
        },
    );
}

/// Runs of every kind of outcome, then a count of what they left behind.
fn many() {
    let mut config = SandboxConfig::current_exe(["__child"]).expect("own path");
    config.limits.memory_bytes = 128 << 20;
    let sandbox = Sandbox::new(config).expect("sandbox");
    let count = |path: &str| std::fs::read_dir(path).map_or(0, Iterator::count);
    let before = count("/proc/self/fd");
    for n in 0..200 {
        let request = ["echo", "panic", "segfault", "exec", "nothing"]
            .iter()
            .cycle()
            .nth(n)
            .copied()
            .unwrap_or("echo");
        let _ = sandbox.run(request.as_bytes(), &mut io::empty(), 0, &CancelFlag::new(), &mut drop);
    }
    let after = count("/proc/self/fd");
    let children = std::fs::read_to_string("/proc/thread-self/children").expect("the list of children");
    println!(
        "descriptors +{}, children {}",
        after - before,
        children.split_whitespace().count()
    );
}

/// A server on a kernel that lacks a measure, played by a filter that answers "not implemented" in its place.
#[cfg(target_os = "linux")]
fn on_old_kernel(lacks: &str) {
    use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};
    let mut missing = std::collections::BTreeMap::new();
    if lacks != "seccomp" {
        missing.insert(libc::SYS_landlock_create_ruleset, Vec::new());
    }
    if lacks != "landlock" {
        missing.insert(libc::SYS_seccomp, Vec::new());
    }
    let answer = SeccompAction::Errno(libc::ENOSYS as u32);
    let arch = std::env::consts::ARCH.try_into().expect("known architecture");
    let filter = SeccompFilter::new(missing, SeccompAction::Allow, answer, arch).expect("filter");
    seccompiler::apply_filter(&BpfProgram::try_from(filter).expect("program")).expect("applies");

    let mut config = SandboxConfig::current_exe(["__child"]).expect("own path");
    if let Err(error) = Sandbox::new(config.clone()) {
        println!("refused: {error}");
    }
    config.require = Level::ProcessOnly;
    let sandbox = Sandbox::new(config).expect("sandbox");
    println!("level: {}", sandbox.report().level);
    for deed in [
        "read-file /etc/passwd",
        "exec",
        "run-program",
        "panic",
        "grow-file",
        "many-files",
    ] {
        let mut last = None;
        let result = sandbox.run(deed.as_bytes(), &mut io::empty(), 0, &CancelFlag::new(), &mut |f| {
            last = Some(f)
        });
        match (last, result) {
            (Some(docmill_sandbox::Frame::Done(bytes)), _) => println!("{deed}: {}", String::from_utf8_lossy(&bytes)),
            (_, result) => println!("{deed}: {}", result.map_or_else(|e| e.reason.kind(), |_| "?")),
        }
    }
}

fn act(request: Request, answer: &mut FrameWriter) {
    let text = String::from_utf8_lossy(&request.request).into_owned();
    let (deed, argument) = text.split_once(' ').unwrap_or((&text, ""));
    if !limits_deed(deed, &request.input, answer) && !crash_deed(deed) {
        match forbidden_deed(deed, argument) {
            Some(Ok(())) => answer.done(b"allowed"),
            Some(Err(error)) => answer.done(format!("errno {}", error.raw_os_error().unwrap_or(0)).as_bytes()),
            None => answer.failed(b"unknown deed"),
        }
    }
}

fn limits_deed(deed: &str, input: &[u8], answer: &mut FrameWriter) -> bool {
    match deed {
        "echo" => answer.done(input),
        "length" => answer.done(input.len().to_string().as_bytes()),
        "nothing" => {}
        "fail" => answer.failed(b"sorry"),
        "environment" => answer.done(std::env::vars_os().count().to_string().as_bytes()),
        "pid-then-spin" => {
            answer.output(std::process::id(), &[]);
            spin();
        }
        "spin" => spin(),
        "sleep" => std::thread::sleep(Duration::from_secs(3600)),
        "memory" => {
            let mut all = Vec::new();
            loop {
                all.push(black_box(vec![1u8; 1 << 20]));
            }
        }
        "memory-at-once" => {
            black_box(vec![0u8; 1 << 40]);
        }
        "memory-if-possible" => match Vec::<u8>::new().try_reserve_exact(1 << 40) {
            Ok(()) => answer.done(b"got it"),
            Err(_) => answer.failed(b"too big"),
        },
        "progress" => {
            for page in 1..=8 {
                std::thread::sleep(Duration::from_millis(100));
                answer.progress(page, 8, page * 10);
            }
            answer.done(b"end");
        }
        "no-progress" => loop {
            std::thread::sleep(Duration::from_millis(30));
            answer.progress(1, 8, 1);
        },
        "outputs" => {
            let page = vec![7u8; 1 << 20];
            (0..50).for_each(|index| answer.output(index, &page));
            answer.done(b"end");
        }
        "flood-stderr" => {
            let line = "x".repeat(8000);
            (0..200).for_each(|_| eprintln!("{line}"));
            panic!("after the flood");
        }
        "threads" => {
            let sum: usize = (0..4)
                .map(|n| std::thread::spawn(move || black_box(n)).join().unwrap_or(99))
                .sum();
            answer.done(sum.to_string().as_bytes());
        }
        "libraries" => {
            // What parsers commonly lean on: hashing seeds, clocks, the number of processors.
            let map: std::collections::HashMap<u32, u32> = (0..100).map(|n| (n, n)).collect();
            let _ = (
                Instant::now(),
                std::time::SystemTime::now(),
                std::thread::available_parallelism(),
            );
            answer.done(map.len().to_string().as_bytes());
        }
        "canary" => {
            // Is anything of an earlier file in the memory that a fresh allocation gives?
            let found = vec![0u8; 8 << 20].iter().any(|byte| *byte != 0);
            let mut map = Vec::<u8>::with_capacity(8 << 20);
            map.extend(input);
            answer.done(format!("{found}").as_bytes());
        }
        _ => return false,
    }
    true
}

fn spin() -> ! {
    loop {
        black_box(0u64);
    }
}

fn crash_deed(deed: &str) -> bool {
    match deed {
        "panic" => panic!("boom {}", 42),
        "panic-in-format" => std::panic::resume_unwind(Box::new(7u8)),
        "abort" => std::process::abort(),
        // SAFETY: not safe at all, which is the point; only this process suffers.
        "segfault" => unsafe { black_box(std::ptr::without_provenance_mut::<u8>(8)).write_volatile(1) },
        "overflow" => {
            black_box(recurse(1));
        }
        // SAFETY: takes a number and ends the process.
        "exit" => unsafe { libc::_exit(7) },
        _ => return false,
    }
    true
}

#[allow(unconditional_recursion)]
fn recurse(depth: u64) -> u64 {
    let ballast = black_box([depth; 64]);
    recurse(depth + 1) + ballast.iter().sum::<u64>()
}

fn forbidden_deed(deed: &str, argument: &str) -> Option<io::Result<()>> {
    Some(match deed {
        "read-file" => std::fs::read(argument).map(drop),
        "write-file" => OpenOptions::new().create(true).append(true).open(argument).map(drop),
        "grow-file" => {
            let path = std::env::temp_dir().join(format!("docmill-sandbox-grow-{}", std::process::id()));
            let file = OpenOptions::new().create_new(true).write(true).open(&path);
            let _ = std::fs::remove_file(&path);
            file.and_then(|mut file| file.write_all(b"x"))
        }
        "many-files" => (0..40)
            .map(|_| std::fs::File::open("/dev/null"))
            .collect::<io::Result<Vec<_>>>()
            .map(drop),
        "list-folder" => std::fs::read_dir(argument).map(drop),
        "stat-file" => std::fs::metadata(argument).map(drop),
        "delete-file" => std::fs::remove_file(argument),
        "tcp" => std::net::TcpStream::connect(argument).map(drop),
        "udp" => std::net::UdpSocket::bind("127.0.0.1:0")
            .and_then(|s| s.send_to(b"x", argument))
            .map(drop),
        "unix" => std::os::unix::net::UnixStream::connect(argument).map(drop),
        "run-program" => std::process::Command::new("/bin/true").status().map(drop),
        _ => return system_deed(deed),
    })
}

#[cfg(not(target_os = "linux"))]
fn system_deed(_: &str) -> Option<io::Result<()>> {
    None
}

/// The deeds that the standard library has no words for.
#[cfg(target_os = "linux")]
fn system_deed(deed: &str) -> Option<io::Result<()>> {
    let parent = i64::from(std::os::unix::process::parent_id());
    let own = i64::from(std::process::id());
    let own_thread = own + 1;
    let (map_exec, map_shared) = (i64::from(libc::PROT_READ | libc::PROT_EXEC), i64::from(libc::PROT_READ));
    let anonymous = i64::from(libc::MAP_ANONYMOUS | libc::MAP_PRIVATE);
    let shared = i64::from(libc::MAP_ANONYMOUS | libc::MAP_SHARED);
    let (number, arguments) = match deed {
        "fork" => (libc::SYS_clone, [i64::from(libc::SIGCHLD), 0, 0, 0]),
        // With nothing to execute the call itself fails where it is allowed: the process goes on and can tell.
        "exec" => (libc::SYS_execve, [0, 0, 0, 0]),
        "clone3" => (libc::SYS_clone3, [0, 0, 0, 0]),
        "kill-parent" => (libc::SYS_kill, [parent, 9, 0, 0]),
        "tgkill-parent" => (libc::SYS_tgkill, [parent, parent, 9, 0]),
        "ptrace" => (libc::SYS_ptrace, [i64::from(libc::PTRACE_ATTACH), parent, 0, 0]),
        "ptrace-self" => (libc::SYS_ptrace, [i64::from(libc::PTRACE_TRACEME), 0, 0, 0]),
        "read-parent-memory" => (libc::SYS_process_vm_readv, [parent, 0, 0, 0]),
        "io-uring" => (libc::SYS_io_uring_setup, [8, 0, 0, 0]),
        "bpf" => (libc::SYS_bpf, [0, 0, 0, 0]),
        "userfaultfd" => (libc::SYS_userfaultfd, [0, 0, 0, 0]),
        "memfd" => (libc::SYS_memfd_create, [0, 0, 0, 0]),
        "unshare" => (libc::SYS_unshare, [i64::from(libc::CLONE_NEWUSER), 0, 0, 0]),
        "mount" => (libc::SYS_mount, [0, 0, 0, 0]),
        "setuid" => (libc::SYS_setuid, [0, 0, 0, 0]),
        "more-descriptors" => (libc::SYS_dup, [0, 0, 0, 0]),
        "raise-limit" => {
            let wide = libc::rlimit {
                rlim_cur: 1 << 40,
                rlim_max: 1 << 40,
            };
            let at = std::ptr::from_ref(&wide).expose_provenance() as i64;
            (libc::SYS_prlimit64, [0, i64::from(libc::RLIMIT_DATA), at, 0])
        }
        "undo-death-signal" => (libc::SYS_prctl, [i64::from(libc::PR_SET_PDEATHSIG), 0, 0, 0]),
        "own-signal-elsewhere" => (libc::SYS_fcntl, [0, i64::from(libc::F_SETOWN), parent, 0]),
        "map-executable" => return Some(map(map_exec, anonymous)),
        "map-shared" => return Some(map(map_shared, shared)),
        "signal-self" => (libc::SYS_tgkill, [own, own_thread, 0, 0]),
        _ => return None,
    };
    let [a, b, c, d] = arguments;
    // SAFETY: every pointer argument above is null or valid; the kernel checks the rest.
    Some(if unsafe { libc::syscall(number, a, b, c, d) } < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    })
}

#[cfg(target_os = "linux")]
fn map(protection: i64, flags: i64) -> io::Result<()> {
    // SAFETY: a new anonymous mapping at an address of the kernel's choice touches nothing that exists.
    let at = unsafe { libc::mmap(std::ptr::null_mut(), 4096, protection as i32, flags as i32, -1, 0) };
    if at == libc::MAP_FAILED {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}
