//! Directories.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use docmill_connectors::{
    Destination, Document, Environment, ErrorKind, Source, object_name, open_destination, open_source,
};
use docmill_model::connector::ConnectorRole;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::conformance::destinations::{self, DestinationRig};
use super::conformance::sources::{self, SourceRig, list};
use super::conformance::{destination, environment, error, settings, source};

struct Directory {
    place: TempDir,
}

impl Directory {
    fn new() -> Self {
        Self {
            place: tempfile::tempdir().expect("a directory"),
        }
    }

    fn path(&self) -> PathBuf {
        self.place.path().canonicalize().expect("the directory")
    }

    fn config(&self) -> Value {
        json!({"path": self.path()})
    }
}

#[async_trait]
impl SourceRig for Directory {
    fn source(&self) -> Arc<dyn Source> {
        source("local", &self.config())
    }

    fn wrong_credentials(&self) -> Option<Arc<dyn Source>> {
        None
    }

    fn absent(&self) -> Arc<dyn Source> {
        source("local", &json!({"path": self.path().join("absent")}))
    }

    async fn write(&self, name: &str, content: &[u8]) {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    async fn remove(&self, name: &str) {
        std::fs::remove_file(self.path().join(name)).unwrap();
    }

    fn locator(&self, name: &str) -> String {
        name.replace('%', "%25").replace('\n', "%0A").replace('\u{1b}', "%1B")
    }

    fn odd_names(&self) -> Vec<String> {
        let mut names: Vec<String> = [
            "a",
            "a.b/c",
            "a b/c",
            "a/b",
            " ",
            "-rf",
            "~",
            "'\"$(id)`",
            "100%",
            "%2e%2e",
            "new\nline",
            "\u{1b}[31m",
            "\u{202e}fdp",
            "\u{e4}\u{308}",
            "C:\\x",
            ".hidden",
            "...",
            "\u{1f600}/\u{1f600}",
            "a*?[",
        ]
        .map(str::to_owned)
        .into();
        // A file can't have a folder's name.
        names.retain(|name| name != "a");
        names.push("n".repeat(255));
        names.push(format!("{}deep", "d/".repeat(100)));
        names
    }

    async fn power(&self, _on: bool) -> bool {
        false
    }

    fn over_a_page(&self) -> usize {
        600
    }
}

#[async_trait]
impl DestinationRig for Directory {
    fn destination(&self) -> Arc<dyn Destination> {
        destination("local", &self.config())
    }

    fn wrong_credentials(&self) -> Option<Arc<dyn Destination>> {
        None
    }

    fn absent(&self) -> Option<Arc<dyn Destination>> {
        None
    }

    fn parses(&self) -> bool {
        false
    }

    async fn texts(&self, document: &Document) -> Vec<String> {
        texts(&self.path().join(object_name(&document.record_id, &document.name)))
    }

    async fn total(&self) -> usize {
        files(&self.path()).iter().map(|file| texts(file).len()).sum()
    }

    async fn power(&self, _on: bool) -> bool {
        false
    }
}

fn texts(file: &Path) -> Vec<String> {
    let Ok(bytes) = std::fs::read(file) else { return vec![] };
    let elements: Vec<Value> = serde_json::from_slice(&bytes).expect("elements");
    elements
        .iter()
        .map(|element| element["text"].as_str().unwrap().to_owned())
        .collect()
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found = vec![];
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_conforms_as_a_source() {
    sources::conforms(&Directory::new()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_conforms_as_a_destination() {
    let rig = Directory::new();
    destinations::conforms(&rig).await;
    assert_eq!(
        std::fs::read_dir(rig.path()).unwrap().count(),
        0,
        "no folder or temporary file is left"
    );
}

#[tokio::test]
async fn names_that_are_no_text_can_be_fetched() {
    let rig = Directory::new();
    let name = std::ffi::OsStr::from_bytes(b"caf\xe9.txt");
    std::fs::write(rig.path().join(name), "x").unwrap();
    let objects = list(&*rig.source(), None).await.unwrap();
    assert_eq!(objects[0].locator, "caf%E9.txt");
    assert_eq!(objects[0].name, "caf\u{fffd}.txt");
    assert_eq!(&*rig.source().fetch(&objects[0], 10).await.unwrap(), b"x");
}

#[tokio::test]
async fn links_out_devices_and_pipes_are_neither_listed_nor_read() {
    let (rig, outside) = (Directory::new(), Directory::new());
    std::fs::write(outside.path().join("secret"), "s").unwrap();
    std::fs::write(rig.path().join("inside"), "i").unwrap();
    let link = |target: &Path, name: &str| std::os::unix::fs::symlink(target, rig.path().join(name)).unwrap();
    link(&outside.path().join("secret"), "out");
    link(&outside.path(), "folder");
    link(Path::new("inside"), "in");
    link(Path::new("loop"), "loop");
    link(Path::new("/dev/zero"), "zero");
    let pipe = rig.path().join("pipe");
    assert!(
        std::process::Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    let _socket = std::os::unix::net::UnixListener::bind(rig.path().join("socket")).unwrap();
    let source = rig.source();
    let objects = list(&*source, None).await.unwrap();
    let locators: Vec<_> = objects.iter().map(|object| &*object.locator).collect();
    assert_eq!(locators, ["in", "inside"]);
    assert_eq!(&*source.fetch(&objects[0], 10).await.unwrap(), b"i");
    for locator in [
        "out",
        "folder/secret",
        "loop",
        "zero",
        "pipe",
        "socket",
        "../x",
        "/etc/passwd",
        "",
        "%2E%2E/x",
    ] {
        let mut object = objects[0].clone();
        object.locator = locator.into();
        let read = tokio::time::timeout(std::time::Duration::from_secs(5), source.fetch(&object, 10)).await;
        error(read.expect("no waiting for a pipe"), locator);
    }
}

#[tokio::test]
async fn a_destination_follows_no_link() {
    let (rig, outside) = (Directory::new(), Directory::new());
    std::os::unix::fs::symlink(outside.path(), rig.path().join("folder")).unwrap();
    std::fs::write(outside.path().join("kept"), "k").unwrap();
    std::os::unix::fs::symlink(outside.path().join("kept"), rig.path().join("file.json")).unwrap();
    let document = destinations::document(1, "folder/x", &[]);
    assert_eq!(
        error(rig.destination().put(&document).await, "a linked folder").kind,
        ErrorKind::Invalid
    );
    // A link in the place of the file is replaced, not followed.
    rig.destination()
        .put(&destinations::document(2, "file", &[]))
        .await
        .unwrap();
    assert_eq!(std::fs::read(outside.path().join("kept")).unwrap(), b"k");
    assert_eq!(files(&outside.path()).len(), 1);
}

#[tokio::test]
async fn only_directories_below_the_roots_are_opened() {
    let (allowed, other) = (Directory::new(), Directory::new());
    std::fs::create_dir(allowed.path().join("below")).unwrap();
    std::os::unix::fs::symlink(other.path(), allowed.path().join("away")).unwrap();
    let environment = |roots: Vec<PathBuf>| Environment {
        local_roots: Some(roots),
        ..environment()
    };
    let open = |roots: Vec<PathBuf>, path: PathBuf| {
        let config = settings(ConnectorRole::Source, "local", &json!({"path": path}));
        open_source(&environment(roots), "local", &config)
    };
    let roots = vec![allowed.path()];
    for good in [allowed.path(), allowed.path().join("below")] {
        open(roots.clone(), good).unwrap().check().await.unwrap();
    }
    for bad in [
        other.path(),
        allowed.path().join("away"),
        "/".into(),
        allowed.path().parent().unwrap().into(),
    ] {
        let error = error(open(roots.clone(), bad), "a directory elsewhere");
        assert_eq!(error.kind, ErrorKind::Forbidden);
        assert!(error.message.contains("connectors.local_roots"), "{error}");
    }
    assert_eq!(
        error(open(vec![], allowed.path()), "no roots").kind,
        ErrorKind::Forbidden
    );
    for bad in ["relative", "/tmp/../etc"] {
        assert_eq!(error(open(roots.clone(), bad.into()), bad).kind, ErrorKind::Invalid);
    }
    // Exchanged for a link after it was opened.
    let config = settings(
        ConnectorRole::Destination,
        "local",
        &json!({"path": allowed.path().join("below")}),
    );
    let opened = open_destination(&environment(roots), "local", &config).unwrap();
    std::fs::remove_dir(allowed.path().join("below")).unwrap();
    std::os::unix::fs::symlink(other.path(), allowed.path().join("below")).unwrap();
    let put = opened.put(&destinations::document(1, "x", &[])).await;
    assert_eq!(error(put, "a link in between").kind, ErrorKind::Forbidden);
    assert_eq!(files(&other.path()).len(), 0);
}

#[tokio::test]
async fn a_destination_that_is_not_there_is_checked_without_making_it() {
    let rig = Directory::new();
    let path = rig.path().join("new/folder");
    let destination = destination("local", &json!({"path": path}));
    destination.check().await.unwrap();
    assert!(!path.exists());
    destination
        .put(&destinations::document(1, "a/b", &["t".into()]))
        .await
        .unwrap();
    assert_eq!(texts(&path.join("a/b.json")), ["t"]);
}

#[tokio::test]
async fn folders_are_left_out_on_demand() {
    let rig = Directory::new();
    rig.write("top", b"t").await;
    rig.write("folder/below", b"b").await;
    let flat = source("local", &json!({"path": rig.path(), "recursive": false}));
    let objects = list(&*flat, None).await.unwrap();
    assert_eq!(objects.len(), 1);
    assert_eq!(objects[0].locator, "top");
}
