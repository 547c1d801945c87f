//! The system calls that the standard library has no safe door to. All `unsafe` of the product is in this file.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

/// What the kernel says about a child that has ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ended {
    /// Wait status as of `wait(2)`; `None` when the host process lets the kernel reap its children.
    pub(crate) status: Option<i32>,
    /// User and system time of all its threads.
    pub(crate) cpu: Duration,
    /// Largest resident set in bytes.
    pub(crate) max_rss: u64,
}

/// Waits for the child `pid`. With `block` false, `None` means that it still runs.
pub(crate) fn wait(pid: i32, block: bool) -> Option<Ended> {
    let mut status = 0i32;
    loop {
        // SAFETY: an all-zero `rusage` is a valid value of this plain C struct.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        let flags = if block { 0 } else { libc::WNOHANG };
        // SAFETY: both pointers are to live, writable locals of the right type.
        let got = unsafe { libc::wait4(pid, &mut status, flags, &mut usage) };
        if got == pid {
            let cpu = duration_of(usage.ru_utime) + duration_of(usage.ru_stime);
            // Linux counts kibibytes, macOS bytes.
            let unit = if cfg!(target_os = "macos") { 1 } else { 1024 };
            let max_rss = u64::try_from(usage.ru_maxrss).unwrap_or(0).saturating_mul(unit);
            return Some(Ended {
                status: Some(status),
                cpu,
                max_rss,
            });
        }
        if got == 0 {
            return None;
        }
        if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            return Some(Ended {
                status: None,
                cpu: Duration::ZERO,
                max_rss: 0,
            });
        }
    }
}

fn duration_of(time: libc::timeval) -> Duration {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let micros = u64::try_from(time.tv_usec).unwrap_or(0);
    Duration::from_secs(seconds) + Duration::from_micros(micros)
}

/// Sends SIGKILL to the process group `pid` and to the process itself. The caller must not have reaped it yet, so that
/// the number cannot belong to somebody else.
pub(crate) fn kill(pid: i32) {
    if pid > 1 {
        // SAFETY: `kill` takes numbers only.
        unsafe {
            libc::kill(-pid, libc::SIGKILL);
            libc::kill(pid, libc::SIGKILL);
        }
    }
}

/// Which events of a descriptor to wait for, and which came.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Ready {
    pub(crate) read: bool,
    pub(crate) write: bool,
}

/// Waits until one of the descriptors is ready or the time is over; `None` entries are skipped. A hang-up counts as
/// readable and writable, so that the next call on the descriptor shows what happened.
pub(crate) fn poll<const N: usize>(
    wanted: [Option<(BorrowedFd<'_>, Ready)>; N],
    timeout: Duration,
) -> io::Result<[Ready; N]> {
    let mut entries = wanted.map(|entry| match entry {
        Some((fd, ready)) => {
            let read = if ready.read { libc::POLLIN } else { 0 };
            let write = if ready.write { libc::POLLOUT } else { 0 };
            libc::pollfd {
                fd: fd.as_raw_fd(),
                events: read | write,
                revents: 0,
            }
        }
        None => libc::pollfd {
            fd: -1,
            events: 0,
            revents: 0,
        },
    });
    // Rounded up, so that a deadline in a fraction of a millisecond does not become a busy loop.
    let millis = i32::try_from(timeout.as_micros().div_ceil(1000)).unwrap_or(i32::MAX);
    // SAFETY: the pointer and the count describe the live array `entries`.
    let got = unsafe { libc::poll(entries.as_mut_ptr(), N as libc::nfds_t, millis) };
    if got < 0 {
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
        return Ok([Ready::default(); N]);
    }
    let gone = libc::POLLHUP | libc::POLLERR | libc::POLLNVAL;
    Ok(entries.map(|entry| Ready {
        read: entry.revents & (libc::POLLIN | gone) != 0,
        write: entry.revents & (libc::POLLOUT | gone) != 0,
    }))
}

/// Ends the process at once, without running destructors or exit handlers.
pub(crate) fn exit_now(code: i32) -> ! {
    // SAFETY: `_exit` takes a number and does not return.
    unsafe { libc::_exit(code) }
}

/// The resources a child limits for itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Resource {
    AddressSpace,
    Data,
    Cpu,
    FileSize,
    OpenFiles,
    Core,
    Processes,
}

/// Lowers a resource limit to `soft`/`hard`, or to what is left of it where the hard limit is already lower.
pub(crate) fn limit(resource: Resource, soft: u64, hard: u64) -> io::Result<()> {
    let which = match resource {
        Resource::AddressSpace => libc::RLIMIT_AS,
        Resource::Data => libc::RLIMIT_DATA,
        Resource::Cpu => libc::RLIMIT_CPU,
        Resource::FileSize => libc::RLIMIT_FSIZE,
        Resource::OpenFiles => libc::RLIMIT_NOFILE,
        Resource::Core => libc::RLIMIT_CORE,
        Resource::Processes => libc::RLIMIT_NPROC,
    };
    let mut now = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the pointer is to a live, writable local of the right type.
    if unsafe { libc::getrlimit(which, &mut now) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let rlim_max = now.rlim_max.min(hard);
    let lowered = libc::rlimit {
        rlim_cur: rlim_max.min(soft),
        rlim_max,
    };
    // SAFETY: the pointer is to a live local of the right type.
    if unsafe { libc::setrlimit(which, &lowered) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Raises this process's soft limit on open descriptors to its hard limit, at most `wanted`, and tells the result.
///
/// A server holds a descriptor per connection, and the usual soft limit of 1,024 is soon used up. Children are not
/// affected: each sets a limit of its own.
pub fn raise_descriptor_limit(wanted: u64) -> io::Result<u64> {
    let mut now = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the pointer is to a live, writable local of the right type.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut now) } != 0 {
        return Err(io::Error::last_os_error());
    }
    now.rlim_cur = now.rlim_cur.max(now.rlim_max.min(wanted));
    // SAFETY: the pointer is to a live local of the right type.
    if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &now) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(now.rlim_cur)
}

/// Closes every descriptor above `last`.
pub(crate) fn close_above(last: i32) {
    #[cfg(target_os = "linux")]
    {
        let first = (last + 1) as libc::c_uint;
        // SAFETY: numbers only. The process has just started and is single-threaded, and no value that owns one of
        // these descriptors is used afterwards, so nobody is left holding a closed one.
        if unsafe { libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, 0) } == 0 {
            return;
        }
    }
    // Kernels before 5.9 and other systems: one by one, up to a bound that covers every sane server.
    // SAFETY: `sysconf` takes a number.
    let open_max = unsafe { libc::sysconf(libc::_SC_OPEN_MAX) };
    let end = i32::try_from(open_max).unwrap_or(65_536).clamp(256, 65_536);
    for fd in last + 1..end {
        // SAFETY: as above.
        unsafe { libc::close(fd) };
    }
}

#[cfg(target_os = "linux")]
fn prctl(option: libc::c_int, value: libc::c_ulong) -> io::Result<()> {
    let zero: libc::c_ulong = 0;
    // SAFETY: the options used in this file take a number and three zeros.
    if unsafe { libc::prctl(option, value, zero, zero, zero) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Asks the kernel to kill this process when the thread that started it ends.
#[cfg(target_os = "linux")]
pub(crate) fn die_with_parent() -> io::Result<()> {
    prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong)
}

/// Forbids core dumps and being traced or inspected by other processes of the same user.
#[cfg(target_os = "linux")]
pub(crate) fn not_dumpable() -> io::Result<()> {
    prctl(libc::PR_SET_DUMPABLE, 0)
}

/// Gives up gaining rights through set-uid programs, for good.
#[cfg(target_os = "linux")]
pub(crate) fn no_new_privileges() -> io::Result<()> {
    prctl(libc::PR_SET_NO_NEW_PRIVS, 1)
}

/// `true` when the effective user is root.
pub(crate) fn is_root() -> bool {
    // SAFETY: no arguments, cannot fail.
    unsafe { libc::geteuid() == 0 }
}
