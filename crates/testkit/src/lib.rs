//! Real servers for tests, each started on a port of its own in a directory of its own and ended with the
//! value that stands for it. A program that is missing fails the test and says how to get it.

mod postgres;

pub use postgres::Postgres;

use std::net::TcpListener;
use std::path::{Path, PathBuf};

/// The workspace's root directory.
fn workspace() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_path_buf()
}

/// A port of the loopback interface that nobody listened on a moment ago.
///
/// # Panics
/// When there is none.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    listener.local_addr().expect("a bound port").port()
}
