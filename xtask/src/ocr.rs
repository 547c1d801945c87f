//! Speed of reading scans, against the command line of the recogniser that is used, on the same pictures: the
//! two take turns, each in processes of its own with one thread, and processor time is compared.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use docmill_model::limits::ParseLimits;
use docmill_partition::{Input, Tools, draw_pages, read_pdf_text};

use crate::Failure;
use crate::pdf::find_files;

/// Rounds counted; the median is taken.
const ROUNDS: usize = 5;
/// Longest side of pages drawn from PDFs, in pixels: that of A4 at 200 dots per inch.
const LONG_SIDE: u32 = 2_339;
/// Pages of one file, and of all.
const PAGES_PER_FILE: u32 = 2;
const MAX_PAGES: usize = 16;

/// Measures pages of the scans in a folder; without one, or when it holds none, pages of the PDFs there are drawn.
pub(crate) fn compare(binary: &Path, folder: Option<&Path>) -> Result<(), Failure> {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
    let target = tempfile::tempdir()?;
    let pages = pages(folder.unwrap_or(&examples), target.path())?;
    if pages.is_empty() {
        return Err("no scans, pictures or PDFs to measure with".into());
    }
    let mut ratios = Vec::new();
    let mut walls = Vec::new();
    println!("ocr         seconds of processor time, start of the process included (whole, one thread)");
    for page in &pages {
        let mut times: [Vec<Used>; 2] = Default::default();
        let mut readable = true;
        for _ in 0..ROUNDS {
            let ours = used(Command::new(binary).args(["partition", "--languages", "eng"]).arg(page))?;
            let peer = used(Command::new("tesseract").arg(page).args(["-", "-l", "eng", "tsv"]))?;
            // What one side can't open says nothing about speed.
            let (Some(ours), Some(peer)) = (ours, peer) else {
                readable = false;
                break;
            };
            times[0].push(ours);
            times[1].push(peer);
        }
        if !readable {
            continue;
        }
        let [ours, peer] = times.map(median);
        ratios.push(ours.cpu / peer.cpu);
        walls.push(ours.wall / peer.wall);
        println!(
            "            {:<32} {:5.2} s, tesseract {:5.2} s: {:.2} x; wall clock {:.2} x",
            page.file_name().unwrap_or_default().to_string_lossy(),
            ours.cpu,
            peer.cpu,
            ours.cpu / peer.cpu,
            ours.wall / peer.wall
        );
    }
    if ratios.is_empty() {
        return Err("no page that both can read".into());
    }
    println!(
        "ocr         {} pages: median {:.2} x the processor time and {:.2} x the wall clock of `tesseract page - -l eng tsv`",
        ratios.len(),
        middle(&mut ratios),
        middle(&mut walls)
    );
    Ok(())
}

/// Seconds that a process and those it started took.
#[derive(Clone, Copy, Debug)]
struct Used {
    cpu: f64,
    wall: f64,
}

/// What a command took; none when it failed.
fn used(command: &mut Command) -> Result<Option<Used>, Failure> {
    let name = command.get_program().to_string_lossy().into_owned();
    let before = children_ticks()?;
    let start = Instant::now();
    let status = command
        .env("OMP_THREAD_LIMIT", "1")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .map_err(|error| format!("cannot start {name}: {error}"))?;
    let wall = start.elapsed().as_secs_f64();
    if !status.success() {
        return Ok(None);
    }
    // Linux counts in hundredths of a second, whatever its clock.
    let cpu = (children_ticks()? - before) as f64 / 100.0;
    Ok(Some(Used {
        cpu: cpu.max(0.01),
        wall,
    }))
}

/// Processor time of all children that have ended, and of theirs.
fn children_ticks() -> Result<u64, Failure> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    // Behind the name, which may hold anything, come state (3rd) and on; the 16th and 17th are wanted.
    let rest = stat.rsplit_once(')').ok_or("an unreadable /proc/self/stat")?.1;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let ticks =
        |index: usize| -> Result<u64, Failure> { Ok(fields.get(index).ok_or("a short /proc/self/stat")?.parse()?) };
    Ok(ticks(13)? + ticks(14)?)
}

fn median(mut times: Vec<Used>) -> Used {
    times.sort_by(|a, b| a.cpu.total_cmp(&b.cpu));
    times[times.len() / 2]
}

fn middle(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Pictures of pages: those in the folder, and pages of its PDFs without text, or of all when none is.
fn pages(folder: &Path, target: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut pdfs = Vec::new();
    find_files(folder, &["pdf"], &mut pdfs)?;
    let mut pictures = Vec::new();
    find_files(folder, &["png", "jpg", "jpeg", "tif", "tiff"], &mut pictures)?;
    pdfs.sort();
    pictures.sort();
    let inputs: Vec<(PathBuf, Input)> = pdfs
        .into_iter()
        .map(|file| {
            let input = Input {
                bytes: std::sync::Arc::new(std::fs::read(&file)?),
                filename: None,
                content_type: None,
            };
            Ok((file, input))
        })
        .collect::<std::io::Result<_>>()?;
    let is_scan = |input: &Input| read_pdf_text(&input.bytes).is_ok_and(|(pages, text)| pages > 0 && text == 0);
    let scans: Vec<bool> = inputs.iter().map(|(_, input)| is_scan(input)).collect();
    let all = !scans.contains(&true) && pictures.is_empty();
    let mut found = pictures;
    for ((file, input), scan) in inputs.iter().zip(scans) {
        if scan || all {
            draw(file, input, target, &mut found);
        }
    }
    found.truncate(MAX_PAGES);
    Ok(found)
}

/// Draws the first pages of a PDF; what can't be drawn is left out.
fn draw(file: &Path, input: &Input, target: &Path, found: &mut Vec<PathBuf>) {
    // The folder's name tells more where every file has the same.
    let name = |path: Option<&Path>| {
        path.and_then(Path::file_name)
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned()
    };
    let stem = format!("{}-{}", name(file.parent()), name(Some(&file.with_extension(""))));
    let wanted = (PAGES_PER_FILE, LONG_SIDE);
    let drawn = draw_pages(
        input,
        None,
        (&ParseLimits::default(), &Tools::default()),
        wanted,
        &mut |index, picture| {
            let path = target.join(format!("{stem}-{}.png", index + 1));
            if let Some(picture) = picture
                && std::fs::write(&path, picture.png()).is_ok()
            {
                found.push(path);
            }
        },
    );
    if let Err(error) = drawn {
        eprintln!("{}: {error}", file.display());
    }
}
