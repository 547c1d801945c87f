//! Speed of reading PDFs, against a named peer in the same run: the two take turns, and the ratio of their
//! best times is printed: time of a processor, which other work on the machine disturbs least.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use docmill_model::limits::ParseLimits;
use docmill_model::settings::PartitionOptions;
use docmill_partition::{Input, partition, read_pdf_text};

use crate::Failure;

/// Rounds; the first warms up.
const ROUNDS: usize = 21;

/// First tells which of the files named in its arguments it can read, by position; then reads the plain
/// text of every page of those each time a line comes in, and answers with the seconds of a
/// processor it took.
const PEER: &str = r#"
import sys, time
import pypdfium2

def read(data):
    document = pypdfium2.PdfDocument(data)
    for page in document:
        text = page.get_textpage()
        text.get_text_range()
        text.close()
        page.close()
    document.close()

good = []
for position, name in enumerate(sys.argv[1:]):
    data = open(name, "rb").read()
    try:
        read(data)
        good.append((position, data))
    except pypdfium2.PdfiumError:
        pass
print(*(position for position, _ in good), flush=True)
for _ in sys.stdin:
    start = time.thread_time()
    for _, data in good:
        read(data)
    print(time.thread_time() - start, flush=True)
"#;

pub(crate) fn compare(folder: Option<&Path>, python: &Path) -> Result<(), Failure> {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
    let mut files = Vec::new();
    find_files(folder.unwrap_or(&examples), &["pdf"], &mut files)?;
    files.sort();
    let mut inputs: Vec<(PathBuf, Arc<Vec<u8>>)> = Vec::new();
    for file in files {
        let bytes = Arc::new(std::fs::read(&file)?);
        if read_pdf_text(&bytes).is_ok_and(|(pages, _)| pages > 0) {
            inputs.push((file, bytes));
        }
    }
    let mut peer = Command::new(python)
        .args(["-c", PEER])
        .args(inputs.iter().map(|(file, _)| file))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| {
            format!(
                "cannot start {}: {error}; name a Python with pypdfium2 by --python",
                python.display()
            )
        })?;
    let (mut ask, answers) = (
        peer.stdin.take().ok_or("no stdin")?,
        peer.stdout.take().ok_or("no stdout")?,
    );
    let mut answers = BufReader::new(answers).lines();
    let mut answer = move || answers.next().ok_or("the peer ended; has this Python pypdfium2?");
    // What one side can't open says nothing about speed.
    let known: Vec<usize> = answer()??
        .split_whitespace()
        .map(str::parse)
        .collect::<Result<_, _>>()?;
    let inputs: Vec<_> = known.iter().filter_map(|&position| inputs.get(position)).collect();
    let mut best = [f64::INFINITY; 3];
    let mut pages = 0;
    for _ in 0..ROUNDS {
        writeln!(ask, "go")?;
        let peer_time: f64 = answer()??.trim().parse()?;
        pages = 0;
        let text = timed(|| {
            inputs
                .iter()
                .try_for_each(|(_, bytes)| read_pdf_text(bytes).map(|(count, _)| pages += count))
        })?;
        let whole = timed(|| inputs.iter().try_for_each(|(_, bytes)| partition_whole(bytes)))?;
        for (best, time) in best.iter_mut().zip([peer_time, text, whole]) {
            *best = best.min(time);
        }
    }
    drop(ask);
    peer.wait()?;
    let [peer_time, text, whole] = best;
    println!(
        "pdf         {} files, {} pages, one thread: text with positions {:.2} x, whole partition {:.2} x the time of pypdfium2's plain text",
        inputs.len(),
        pages,
        text / peer_time,
        whole / peer_time
    );
    Ok(())
}

fn partition_whole(bytes: &Arc<Vec<u8>>) -> Result<(), docmill_partition::PartitionError> {
    let input = Input {
        bytes: bytes.clone(),
        filename: Some("a.pdf".into()),
        content_type: None,
    };
    partition(
        &input,
        &PartitionOptions::default(),
        &ParseLimits::default(),
        &mut |_| {},
    )
    .map(drop)
}

/// Seconds of a processor the work takes on this thread.
fn timed(work: impl FnOnce() -> Result<(), docmill_partition::PartitionError>) -> Result<f64, Failure> {
    let start = processor_time()?;
    work()?;
    Ok(processor_time()? - start)
}

/// Seconds this thread has had a processor, which other work on the machine takes nothing from.
fn processor_time() -> Result<f64, Failure> {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let first = stat.split_whitespace().next().ok_or("no time in schedstat")?;
    Ok(first.parse::<f64>()? / 1e9)
}

/// The files of a folder, and of those in it, that have one of the extensions.
pub(crate) fn find_files(folder: &Path, extensions: &[&str], found: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let extension = path.extension().map(|extension| extension.to_ascii_lowercase());
        if path.is_dir() {
            find_files(&path, extensions, found)?;
        } else if extension.is_some_and(|extension| extensions.iter().any(|known| extension == *known)) {
            found.push(path);
        }
    }
    Ok(())
}
