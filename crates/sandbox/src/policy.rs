//! What a child may still do after it has locked itself down (Linux): nothing but compute, allocate, use threads, and
//! read and write the descriptors it already has.
//!
//! Three filters are stacked. For every call the kernel takes the strictest answer:
//! 1. `punish`: calls that no parser has a reason to make end the process;
//! 2. `redirect`: `clone3` answers "not implemented", so that the C library uses `clone`, whose flags can be judged
//!    (the arguments of `clone3` lie in memory, which a filter cannot read);
//! 3. `permit`: a list of harmless calls is allowed, everything else fails with "permission denied", so that libraries
//!    that look for optional files and features carry on without them.

use std::collections::BTreeMap;

use landlock::{ABI, Access, AccessFs, AccessNet, LandlockStatus, Ruleset, RulesetAttr, RulesetStatus, Scope};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as Width, SeccompCmpOp as Op, SeccompCondition as Condition,
    SeccompFilter, SeccompRule,
};

type Rules = BTreeMap<i64, Vec<SeccompRule>>;
type Fallible<T> = Result<T, Box<dyn std::error::Error>>;

/// Forbids every file, TCP port, abstract socket and foreign signal that the running kernel can forbid.
/// Returns the Landlock ABI in force, `None` when the kernel has none.
pub(crate) fn restrict_files_and_network() -> Fallible<Option<u32>> {
    // The newest set known; the crate leaves out what the running kernel does not know.
    let newest = ABI::V9;
    let status = Ruleset::default()
        .handle_access(AccessFs::from_all(newest))?
        .handle_access(AccessNet::from_all(newest))?
        .scope(Scope::from_all(newest))?
        .create()?
        .restrict_self()?;
    if status.ruleset == RulesetStatus::NotEnforced {
        return Ok(None);
    }
    Ok(match status.landlock {
        LandlockStatus::Available {
            effective_abi,
            kernel_abi,
        } => {
            let number = kernel_abi.unwrap_or(effective_abi as i32);
            u32::try_from(number).ok()
        }
        _ => None,
    })
}

/// Puts the system-call filters in force for this thread and all it will start. Irrevocable.
pub(crate) fn restrict_system_calls() -> Fallible<()> {
    // All are built before the first applies: it may take away what building needs. `permit` comes last because it
    // takes away the right to add filters.
    let denied = SeccompAction::Errno(libc::EACCES as u32);
    let absent = SeccompAction::Errno(libc::ENOSYS as u32);
    let programs = [
        compile(punish()?, SeccompAction::Allow, SeccompAction::KillProcess)?,
        compile(redirect(), SeccompAction::Allow, absent)?,
        compile(permit()?, denied, SeccompAction::Allow)?,
    ];
    for program in &programs {
        seccompiler::apply_filter(program)?;
    }
    Ok(())
}

fn compile(rules: Rules, otherwise: SeccompAction, matched: SeccompAction) -> Fallible<BpfProgram> {
    let architecture = std::env::consts::ARCH.try_into()?;
    Ok(SeccompFilter::new(rules, otherwise, matched, architecture)?.try_into()?)
}

/// Calls without conditions: an empty list of rules matches always.
fn always(calls: &[i64]) -> Rules {
    calls.iter().map(|call| (*call, Vec::new())).collect()
}

fn when(argument: u8, width: Width, op: Op, value: u64) -> Fallible<Condition> {
    Ok(Condition::new(argument, width, op, value)?)
}

fn redirect() -> Rules {
    always(&[libc::SYS_clone3])
}

fn permit() -> Fallible<Rules> {
    let mut rules = always(PERMITTED);
    #[cfg(target_arch = "x86_64")]
    rules.extend(always(&[libc::SYS_poll]));

    // Memory that is private and never executable.
    let private = || when(3, Width::Dword, Op::MaskedEq(libc::MAP_SHARED as u64), 0);
    let not_executable = || when(2, Width::Dword, Op::MaskedEq(libc::PROT_EXEC as u64), 0);
    rules.insert(
        libc::SYS_mmap,
        vec![SeccompRule::new(vec![private()?, not_executable()?])?],
    );
    rules.insert(libc::SYS_mprotect, vec![SeccompRule::new(vec![not_executable()?])?]);

    // Threads, not processes: `punish` ends whoever leaves the flag out.
    let thread = libc::CLONE_THREAD as u64;
    rules.insert(
        libc::SYS_clone,
        vec![SeccompRule::new(vec![when(
            0,
            Width::Qword,
            Op::MaskedEq(thread),
            thread,
        )?])?],
    );

    // Signals to this process alone: how `abort` ends it.
    let own = u64::from(std::process::id());
    let to_self = || -> Fallible<_> { Ok(vec![SeccompRule::new(vec![when(0, Width::Dword, Op::Eq, own)?])?]) };
    rules.insert(libc::SYS_tgkill, to_self()?);
    rules.insert(libc::SYS_tkill, to_self()?);

    // Questions about descriptors and limits, without the means to change them.
    let command =
        |number: i32| -> Fallible<_> { Ok(SeccompRule::new(vec![when(1, Width::Dword, Op::Eq, number as u64)?])?) };
    rules.insert(libc::SYS_fcntl, vec![command(libc::F_GETFD)?, command(libc::F_GETFL)?]);
    let ask_only = vec![when(0, Width::Dword, Op::Eq, 0)?, when(2, Width::Qword, Op::Eq, 0)?];
    rules.insert(libc::SYS_prlimit64, vec![SeccompRule::new(ask_only)?]);
    let name = when(0, Width::Dword, Op::Eq, libc::PR_SET_NAME as u64)?;
    rules.insert(libc::SYS_prctl, vec![SeccompRule::new(vec![name])?]);
    Ok(rules)
}

/// `fstat` is here and its relatives that take a path are not: the existence of files is nobody's business either.
const PERMITTED: &[i64] = &[
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_readv,
    libc::SYS_writev,
    libc::SYS_close,
    libc::SYS_fstat,
    libc::SYS_lseek,
    libc::SYS_ppoll,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_madvise,
    libc::SYS_brk,
    libc::SYS_futex,
    libc::SYS_set_robust_list,
    libc::SYS_rseq,
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_clone3,
    libc::SYS_clock_gettime,
    libc::SYS_clock_getres,
    libc::SYS_clock_nanosleep,
    libc::SYS_nanosleep,
    libc::SYS_gettimeofday,
    libc::SYS_getrandom,
    libc::SYS_getrusage,
    libc::SYS_sysinfo,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_restart_syscall,
    libc::SYS_exit,
    libc::SYS_exit_group,
];

fn punish() -> Fallible<Rules> {
    let mut rules = always(PUNISHED);
    #[cfg(target_arch = "x86_64")]
    rules.extend(always(&[
        libc::SYS_fork,
        libc::SYS_vfork,
        libc::SYS_iopl,
        libc::SYS_ioperm,
        libc::SYS_modify_ldt,
    ]));
    let not_a_thread = when(0, Width::Qword, Op::MaskedEq(libc::CLONE_THREAD as u64), 0)?;
    rules.insert(libc::SYS_clone, vec![SeccompRule::new(vec![not_a_thread])?]);
    Ok(rules)
}

const PUNISHED: &[i64] = &[
    // Network.
    libc::SYS_socket,
    libc::SYS_socketpair,
    libc::SYS_connect,
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_sendto,
    libc::SYS_sendmsg,
    libc::SYS_sendmmsg,
    libc::SYS_recvmsg,
    libc::SYS_recvmmsg,
    // Other programs and processes.
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_kill,
    libc::SYS_rt_sigqueueinfo,
    libc::SYS_rt_tgsigqueueinfo,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_kcmp,
    libc::SYS_pidfd_open,
    libc::SYS_pidfd_getfd,
    libc::SYS_pidfd_send_signal,
    // Ways around this filter, and large attack surfaces of the kernel.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_memfd_create,
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    libc::SYS_fanotify_init,
    // The machine.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsmount,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_setns,
    libc::SYS_unshare,
    libc::SYS_setuid,
    libc::SYS_setgid,
    libc::SYS_setreuid,
    libc::SYS_setregid,
    libc::SYS_setresuid,
    libc::SYS_setresgid,
    libc::SYS_setgroups,
    libc::SYS_capset,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_syslog,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_call_is_both_permitted_and_punished() {
        assert!(PERMITTED.iter().all(|call| !PUNISHED.contains(call)));
    }

    #[test]
    fn the_filters_compile_and_fit_the_kernel() {
        let sets = [permit().unwrap(), redirect(), punish().unwrap()];
        for rules in sets {
            let program = compile(rules, SeccompAction::Allow, SeccompAction::Trap).unwrap();
            // The kernel's BPF_MAXINSNS.
            assert!(program.len() <= 4096);
        }
    }
}
