//! One test for each thing a child must not be able to do. "errno 13" is "permission denied".

use std::net::{TcpListener, UdpSocket};
use std::os::unix::net::UnixListener;

use docmill_sandbox::Frame;

use crate::{Reason, answer, reason, run};

const DENIED: &str = "errno 13";

fn punished(deed: &str) {
    let reason = reason(deed);
    assert!(matches!(reason, Reason::ForbiddenCall { .. }), "{deed}: {reason:?}");
}

/// A file that everybody may read and write.
fn open_file(name: &str) -> std::path::PathBuf {
    use std::os::unix::fs::PermissionsExt;
    let path = std::env::temp_dir().join(format!("docmill-sandbox-{}-{name}", std::process::id()));
    std::fs::write(&path, b"before").expect("temporary file");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).expect("permissions");
    path
}

#[test]
fn reading_a_file() {
    let path = open_file("read");
    assert_eq!(answer(&format!("read-file {}", path.display())), DENIED);
    assert_eq!(answer("read-file /etc/passwd"), DENIED);
    std::fs::remove_file(path).expect("still there");
}

#[test]
fn reading_the_environment_or_memory_of_processes() {
    assert_eq!(answer("environment"), "0");
    for file in ["environ", "mem", "maps", "cmdline"] {
        assert_eq!(answer(&format!("read-file /proc/self/{file}")), DENIED);
        assert_eq!(
            answer(&format!("read-file /proc/{}/{file}", std::process::id())),
            DENIED
        );
    }
}

#[test]
fn writing_and_creating_a_file() {
    let path = open_file("write");
    assert_eq!(answer(&format!("write-file {}", path.display())), DENIED);
    assert_eq!(answer(&format!("write-file {}.new", path.display())), DENIED);
    assert_eq!(std::fs::read(&path).expect("still there"), b"before");
    std::fs::remove_file(path).expect("still there");
}

#[test]
fn deleting_a_file() {
    let path = open_file("delete");
    assert_eq!(answer(&format!("delete-file {}", path.display())), DENIED);
    std::fs::remove_file(path).expect("still there");
}

#[test]
fn listing_a_folder() {
    assert_eq!(answer("list-folder /"), DENIED);
}

#[test]
fn learning_whether_a_file_exists() {
    assert_eq!(answer("stat-file /etc/passwd"), DENIED);
    assert_eq!(answer("stat-file /no/such/file"), DENIED);
}

#[test]
fn connecting_by_tcp() {
    let server = TcpListener::bind("127.0.0.1:0").expect("port");
    punished(&format!("tcp {}", server.local_addr().expect("address")));
    server.set_nonblocking(true).expect("non-blocking");
    assert!(server.accept().is_err());
}

#[test]
fn sending_by_udp() {
    let server = UdpSocket::bind("127.0.0.1:0").expect("port");
    punished(&format!("udp {}", server.local_addr().expect("address")));
    server.set_nonblocking(true).expect("non-blocking");
    assert!(server.recv(&mut [0; 1]).is_err());
}

#[test]
fn connecting_to_a_unix_socket() {
    let path = std::env::temp_dir().join(format!("docmill-sandbox-{}.sock", std::process::id()));
    let server = UnixListener::bind(&path).expect("socket");
    punished(&format!("unix {}", path.display()));
    server.set_nonblocking(true).expect("non-blocking");
    assert!(server.accept().is_err());
    std::fs::remove_file(path).expect("still there");
}

#[test]
fn starting_a_program() {
    punished("exec");
    // By way of the standard library, which may stumble over another prohibition first.
    let (frames, result) = run("run-program", b"");
    assert!(result.is_err() || frames == [Frame::Done(DENIED.into())], "{frames:?}");
}

#[test]
fn forking() {
    punished("fork");
    // "Not implemented", so that the C library takes the call that can be judged.
    assert_eq!(answer("clone3"), "errno 38");
}

#[test]
fn tracing() {
    punished("ptrace");
    punished("ptrace-self");
    punished("read-parent-memory");
}

#[test]
fn killing_the_parent() {
    punished("kill-parent");
    assert_eq!(answer("tgkill-parent"), DENIED);
    assert_eq!(answer("own-signal-elsewhere"), DENIED);
}

#[test]
fn exotic_interfaces() {
    for deed in ["io-uring", "bpf", "userfaultfd", "memfd", "unshare", "mount", "setuid"] {
        punished(deed);
    }
}

#[test]
fn more_descriptors() {
    assert_eq!(answer("more-descriptors"), DENIED);
}

#[test]
fn executable_or_shared_memory() {
    assert_eq!(answer("map-executable"), DENIED);
    assert_eq!(answer("map-shared"), DENIED);
}

#[test]
fn loosening_its_own_limits() {
    assert_eq!(answer("raise-limit"), DENIED);
    assert_eq!(answer("undo-death-signal"), DENIED);
}

#[test]
fn what_parsers_need_works() {
    assert_eq!(answer("libraries"), "100");
    assert_eq!(answer("threads"), "6");
}
