//! The child's side: lock down, take the input, do the work, answer.

use std::fs::File;
use std::io::{self, IoSlice, Read, Write};
use std::os::fd::AsFd;
use std::panic::{self, AssertUnwindSafe, PanicHookInfo};
use std::time::{Duration, Instant};

use crate::config::{Level, Report};
use crate::outcome::{PANIC_PREFIX, exit};
use crate::sys::{self, Resource};
use crate::wire::{self, HEADER_LEN, Header, Mode};

/// What the parent asks the child to do.
#[derive(Debug)]
pub struct Request {
    /// The caller's own description of the work.
    pub request: Vec<u8>,
    /// The whole input, to be treated as hostile.
    pub input: Vec<u8>,
}

/// The child's way to answer. After [`done`](Self::done) or [`failed`](Self::failed) nothing more is sent.
#[derive(Debug)]
pub struct FrameWriter {
    channel: File,
    finished: bool,
    last_progress: Option<Instant>,
}

/// Progress is sent at most this often, so that it costs nothing to report every page.
const PROGRESS_EVERY: Duration = Duration::from_millis(20);

impl FrameWriter {
    /// Reports how far the work is, and tells the watchdog that it moves. Cheap: calls in quick succession are
    /// dropped.
    pub fn progress(&mut self, pages_done: u32, pages_total: u32, elements: u32) {
        let now = Instant::now();
        if self
            .last_progress
            .is_some_and(|last| now.duration_since(last) < PROGRESS_EVERY)
        {
            return;
        }
        self.last_progress = Some(now);
        let mut payload = Vec::with_capacity(12);
        for number in [pages_done, pages_total, elements] {
            payload.extend_from_slice(&number.to_le_bytes());
        }
        self.send(wire::KIND_PROGRESS, &[], &payload);
    }

    /// Sends a side product under a number of the caller's choice. At most 4 GiB less 4 bytes.
    pub fn output(&mut self, index: u32, bytes: &[u8]) {
        self.send(wire::KIND_OUTPUT, &index.to_le_bytes(), bytes);
    }

    /// Sends the result and ends the conversation.
    pub fn done(&mut self, bytes: &[u8]) {
        self.send(wire::KIND_DONE, &[], bytes);
        self.finished = true;
    }

    /// Sends an orderly error and ends the conversation.
    pub fn failed(&mut self, bytes: &[u8]) {
        self.send(wire::KIND_FAILED, &[], bytes);
        self.finished = true;
    }

    fn send(&mut self, kind: u8, prefix: &[u8], payload: &[u8]) {
        if self.finished {
            return;
        }
        let Ok(len) = u32::try_from(prefix.len() + payload.len()) else {
            // The parent's limit on output cannot be higher than this by far; say so in a way it understands.
            eprintln!(
                "memory allocation of {} bytes failed: a frame holds 4 GiB",
                payload.len()
            );
            sys::exit_now(exit::NO_MEMORY);
        };
        let mut head = Vec::with_capacity(wire::FRAME_HEADER_LEN + prefix.len());
        head.extend_from_slice(&wire::frame_header(kind, len));
        head.extend_from_slice(prefix);
        if write_all(&mut self.channel, &head, payload).is_err() {
            sys::exit_now(exit::ORPHAN);
        }
    }
}

/// Both slices in as few calls as possible.
fn write_all(file: &mut File, mut head: &[u8], mut body: &[u8]) -> io::Result<()> {
    while !head.is_empty() || !body.is_empty() {
        match file.write_vectored(&[IoSlice::new(head), IoSlice::new(body)]) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => {
                let (_, rest) = head.split_at(written.min(head.len()));
                let (_, body_rest) = body.split_at((written - (head.len() - rest.len())).min(body.len()));
                (head, body) = (rest, body_rest);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The whole life of a child process: locks it down, runs `work` on the request of the parent, and exits.
///
/// Call it first thing in `main`, before any thread is started, any file opened or any library set up; descriptors
/// above 2 are closed. `work` runs on its own thread with the stack size of the parent's limits. It must answer through
/// the [`FrameWriter`]; a panic is reported to the parent as a crash with its message. `work` can start threads, unless
/// the kernel lacks seccomp; it can open no file and no socket, so everything it needs must be in the program or the
/// request.
pub fn child_main<F>(work: F) -> !
where
    F: FnOnce(Request, &mut FrameWriter) + Send,
{
    child_main_prepared(|| (), |request, writer, _| work(request, writer))
}

/// As [`child_main`], for work that may need more than the program and the request.
///
/// `prepare` runs before the child is locked down and before it has seen a byte of the request or the input, in
/// children started by [`Sandbox::run_prepared`](crate::Sandbox::run_prepared) alone. It is the time to map libraries
/// and to open files for reading, which stay usable; it must start no thread. What it returns goes to `work`, which
/// gets `None` in all other children.
pub fn child_main_prepared<T, P, F>(prepare: P, work: F) -> !
where
    T: Send,
    P: FnOnce() -> T,
    F: FnOnce(Request, &mut FrameWriter, Option<T>) + Send,
{
    let code = match live(prepare, work) {
        Ok(()) => 0,
        Err((code, message)) => {
            if !message.is_empty() {
                eprintln!("{message}");
            }
            code
        }
    };
    sys::exit_now(code)
}

type Fate = Result<(), (i32, String)>;

fn live<T, P, F>(prepare: P, work: F) -> Fate
where
    T: Send,
    P: FnOnce() -> T,
    F: FnOnce(Request, &mut FrameWriter, Option<T>) + Send,
{
    let bound = bind_to_parent();
    sys::close_above(2);
    let not_a_child = || (exit::NOT_A_CHILD, "this command is for docmill itself".to_owned());
    let mut channel = io::stdin()
        .as_fd()
        .try_clone_to_owned()
        .map(File::from)
        .map_err(|_| not_a_child())?;
    let mut bytes = [0u8; HEADER_LEN];
    channel.read_exact(&mut bytes).map_err(|_| not_a_child())?;
    let header = Header::decode(&bytes).ok_or_else(not_a_child)?;
    if std::os::unix::process::parent_id() != header.parent_pid {
        return Err((exit::ORPHAN, String::new()));
    }
    let prepared = header.prepare.then(prepare);
    let report = lock_down(&header, bound).map_err(|what| (exit::NOT_ISOLATED, what))?;
    if report.level < header.min_level {
        let what = format!(
            "level {} instead of {}: {}",
            report.level,
            header.min_level,
            report.notes.join("; ")
        );
        return Err((exit::NOT_ISOLATED, what));
    }
    let mut writer = FrameWriter {
        channel,
        finished: false,
        last_progress: None,
    };
    if header.mode == Mode::Probe {
        writer.done(&serde_json::to_vec(&report).unwrap_or_default());
    } else {
        let request = Request {
            request: receive(&mut writer.channel, header.request_len)?,
            input: receive(&mut writer.channel, header.input_len)?,
        };
        let work = move |request, writer: &mut FrameWriter| work(request, writer, prepared);
        perform(work, request, &mut writer, &header, report.seccomp)?;
    }
    if !writer.finished {
        return Err((exit::NO_RESULT, String::new()));
    }
    // The parent reads the final memory figure from the living process, then kills it.
    let _ = writer.channel.read(&mut [0u8; 1]);
    Ok(())
}

/// Reads exactly `len` bytes.
fn receive(channel: &mut File, len: u64) -> Result<Vec<u8>, (i32, String)> {
    let no_memory = || (exit::NO_MEMORY, format!("no memory for {len} bytes of input"));
    let mut bytes = Vec::new();
    bytes
        .try_reserve_exact(usize::try_from(len).map_err(|_| no_memory())?)
        .map_err(|_| no_memory())?;
    let got = channel.take(len).read_to_end(&mut bytes);
    if got.is_err() || bytes.len() as u64 != len {
        // The parent has given up on this file, or is gone.
        return Err((exit::ORPHAN, String::new()));
    }
    Ok(bytes)
}

fn perform<F>(work: F, request: Request, writer: &mut FrameWriter, header: &Header, threads: bool) -> Fate
where
    F: FnOnce(Request, &mut FrameWriter) + Send,
{
    panic::set_hook(Box::new(print_panic));
    let stack = usize::try_from(header.stack_bytes).unwrap_or(usize::MAX).max(1 << 16);
    std::thread::scope(|scope| {
        let body = move || {
            if !threads {
                // Without the filter this is what is left against new processes. It counts threads too, hence so late.
                let _ = sys::limit(Resource::Processes, 0, 0);
            }
            panic::catch_unwind(AssertUnwindSafe(|| work(request, writer))).is_ok()
        };
        let worker = std::thread::Builder::new()
            .name("work".to_owned())
            .stack_size(stack)
            .spawn_scoped(scope, body);
        match worker.map(|handle| handle.join()) {
            Ok(Ok(true)) => Ok(()),
            Ok(_) => Err((exit::PANIC, String::new())),
            Err(error) => Err((exit::NO_MEMORY, format!("no worker thread: {error}"))),
        }
    })
}

/// One line, without the paths of the machine that built the program.
fn print_panic(info: &PanicHookInfo<'_>) {
    let message = info.payload_as_str().unwrap_or("(no message)");
    let place = info.location().map(|at| {
        let file = at.file();
        let tail = file
            .rmatch_indices('/')
            .nth(2)
            .map_or(file, |(slash, _)| file.split_at(slash + 1).1);
        format!(" at {tail}:{}", at.line())
    });
    eprintln!("{PANIC_PREFIX}{message}{}", place.unwrap_or_default());
}

/// Room for code, libraries and address ranges that allocators reserve without using them.
const ADDRESS_SLACK: u64 = 1 << 30;

fn limit_resources(header: &Header) -> io::Result<()> {
    let heap = header.memory_bytes.saturating_add(header.stack_bytes);
    let space = heap.saturating_add(ADDRESS_SLACK);
    sys::limit(Resource::Core, 0, 0)?;
    sys::limit(Resource::FileSize, 0, 0)?;
    sys::limit(Resource::OpenFiles, 16, 16)?;
    sys::limit(Resource::Cpu, header.cpu_secs, header.cpu_secs.saturating_add(1))?;
    sys::limit(Resource::Data, heap, heap)?;
    // macOS refuses limits below what is mapped already, and does not enforce this one.
    if cfg!(target_os = "linux") {
        sys::limit(Resource::AddressSpace, space, space)?;
    }
    Ok(())
}

#[cfg(target_os = "linux")]
fn bind_to_parent() -> bool {
    sys::die_with_parent().is_ok()
}

/// Without help from the kernel, a thread looks every half second whether the parent is still there.
#[cfg(not(target_os = "linux"))]
fn bind_to_parent() -> bool {
    let parent = std::os::unix::process::parent_id();
    let watch = move || {
        while std::os::unix::process::parent_id() == parent {
            std::thread::sleep(Duration::from_millis(500));
        }
        sys::exit_now(exit::ORPHAN)
    };
    std::thread::Builder::new().stack_size(1 << 16).spawn(watch).is_ok()
}

#[cfg(target_os = "linux")]
fn lock_down(header: &Header, parent_death: bool) -> Result<Report, String> {
    let mut notes = Vec::new();
    if sys::is_root() {
        notes.push("runs as root: the limit on processes does not bind root, the other measures do".to_owned());
    }
    // When the machine runs out of memory, this process goes and not the server. Must come before `not_dumpable`,
    // which hands the file over to root.
    if let Err(error) = std::fs::write("/proc/self/oom_score_adj", "1000") {
        notes.push(format!("not marked as the first to go when memory runs out: {error}"));
    }
    let fatal = |what: &str, error: io::Error| format!("{what}: {error}");
    sys::not_dumpable().map_err(|e| fatal("core dumps and tracing cannot be forbidden", e))?;
    sys::no_new_privileges().map_err(|e| fatal("new privileges cannot be forbidden", e))?;
    limit_resources(header).map_err(|e| fatal("resource limits cannot be set", e))?;
    if !parent_death {
        notes.push("the kernel does not kill children with their parent".to_owned());
    }
    let landlock_abi = crate::policy::restrict_files_and_network().unwrap_or_else(|error| {
        notes.push(format!("Landlock failed: {error}"));
        None
    });
    let seccomp = crate::policy::restrict_system_calls().map_err(|error| {
        notes.push(format!(
            "seccomp is not available, network and new processes are not shut off: {error}"
        ));
    });
    let mut seccomp = seccomp.is_ok();
    match landlock_abi {
        None if seccomp => {
            notes.push("Landlock is not available: the system-call filter alone protects files".to_owned())
        }
        None => notes.push("Landlock is not available: nothing keeps a child from files".to_owned()),
        Some(abi) if abi < 4 => notes.push(format!("Landlock ABI {abi} does not know TCP; the filter covers it")),
        Some(_) => {}
    }
    // Believe it when it is seen: both promise that no file opens.
    let opens = std::fs::File::open("/").is_ok() || std::fs::File::open("/proc/self/environ").is_ok();
    let landlock_abi = if opens { None } else { landlock_abi };
    if opens && seccomp {
        seccomp = false;
        notes.push("files can still be opened although the kernel accepted the restrictions".to_owned());
    }
    let level = match (landlock_abi.is_some(), seccomp) {
        (true, true) if parent_death => Level::Full,
        (false, false) => Level::ProcessOnly,
        _ => Level::BestEffort,
    };
    Ok(Report {
        level,
        landlock_abi,
        seccomp,
        rlimits: true,
        parent_death,
        notes,
    })
}

#[cfg(not(target_os = "linux"))]
fn lock_down(header: &Header, parent_watched: bool) -> Result<Report, String> {
    let mut notes = vec![
        "this system has neither Landlock nor seccomp: a child can reach files and the network".to_owned(),
        "the memory limit is not enforced by this system".to_owned(),
    ];
    if parent_watched {
        notes.push("children look for their parent every half second; the kernel does not end them".to_owned());
    }
    if sys::is_root() {
        notes.push("runs as root: children have all its rights".to_owned());
    }
    let limited = limit_resources(header);
    if let Err(error) = &limited {
        notes.push(format!("resource limits cannot all be set: {error}"));
    }
    Ok(Report {
        level: Level::ProcessOnly,
        landlock_abi: None,
        seccomp: false,
        rlimits: limited.is_ok(),
        parent_death: false,
        notes,
    })
}
