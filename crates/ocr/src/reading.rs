//! A page from picture to words: upright, straight, without its rules, each paragraph in its language.

use std::sync::Arc;

use crate::languages;
use crate::measure::{font_size, type_size};
use crate::models::{Models, OSD};
use crate::page::page_text;
use crate::raster::{Gray, TooLarge};
use crate::rules::{Ruling, take_rules};
use crate::skew::{Lie, lie};
use crate::tesseract::{Engine, Found, Library, Mode, Recognized, Segmentation};

/// Mean confidence below which a page may stand on its head.
const DOUBTFUL: f32 = 55.0;
/// How much clearer columns must show than lines for a page to be taken for lying on its side.
const SIDEWAYS: f64 = 1.25;
/// Certainty from which a told orientation is believed.
const ORIENTED: f32 = 1.0;
/// Smallest skew that is straightened, in radians.
const MIN_ANGLE: f32 = 0.0012;
/// Type smaller than this, in pixels, is enlarged, to the size after it.
const SMALL_TYPE: f32 = 17.0;
const GOOD_TYPE: f32 = 32.0;
/// How much it is enlarged at most.
const MOST_ENLARGED: f32 = 3.0;
/// Pages of so many pixels may hold small type.
const SMALL_PAGE: usize = 1_800_000;
/// Recognisers kept by one reader.
const MAX_ENGINES: usize = 10;
/// Pictures smaller than this to a side hold no text.
const MIN_SIDE: usize = 12;
/// Words kept per page.
const MAX_WORDS: usize = 50_000;

/// Why a page was not read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OcrError {
    /// No model for any of the languages asked for.
    #[error("none of the languages {asked} is installed; installed are {installed}")]
    Languages {
        /// What was asked for.
        asked: String,
        /// What there is.
        installed: String,
    },
    /// A model could not be read or is not one of the library's.
    #[error("the model of the language {0} cannot be used")]
    Model(String),
    /// The library gave up.
    #[error("the recogniser gave up on the picture")]
    Failed,
    /// The picture is too large.
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
}

/// A word in the upright, straightened picture.
#[derive(Clone, Debug, PartialEq)]
pub struct Word {
    /// Its text, in logical order.
    pub text: String,
    /// How sure the recogniser is, 0 to 100.
    pub confidence: f32,
    /// `[left, top, right, bottom]`, in pixels.
    pub bbox: [f32; 4],
    /// Where its baseline runs, in pixels from the top.
    pub baseline: f32,
    /// Font size in pixels, the same for all words of a line.
    pub size: f32,
    /// Whether its strokes are thicker than is usual on the page.
    pub bold: bool,
    /// Whether a space stands between it and the word before it on its line.
    pub spaced: bool,
    /// Number of its line, counting from 0.
    pub line: u32,
}

/// What was read on a page.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PageText {
    /// Quarters by which the picture was turned clockwise to stand upright, 0 to 3.
    pub quarters: u8,
    /// Angle by which the upright picture was then turned to be straight, in radians, clockwise.
    pub angle: f32,
    /// Width in pixels of the upright picture, as given.
    pub width: f32,
    /// Height in pixels of the upright picture, as given.
    pub height: f32,
    /// The words, line by line.
    pub words: Vec<Word>,
    /// Ruling lines.
    pub rules: Vec<Ruling>,
    /// Boxes of what is a picture, not text.
    pub pictures: Vec<[f32; 4]>,
    /// Mean confidence by characters, 0 to 100; 0 without words.
    pub confidence: f32,
    /// Models the words were read with, the one of most text first.
    pub languages: Vec<String>,
}

/// Reads pages, one at a time.
#[derive(Debug)]
pub struct Reader {
    library: Arc<Library>,
    models: Arc<Models>,
    /// Languages to choose from when a paragraph is unclear.
    candidates: Vec<String>,
    /// Whether only the candidates may be used.
    named: bool,
    engines: Vec<Slot>,
}

#[derive(Debug)]
struct Slot {
    language: String,
    engine: Engine,
    has_page: bool,
}

/// A page ready for recognition.
pub(crate) struct Sheet {
    pub(crate) picture: Gray,
    pub(crate) dpi: u32,
    /// How much larger the picture is than the page as given.
    pub(crate) scale: f32,
    /// Parts ink from paper.
    pub(crate) threshold: u8,
    /// In pixels of the page as given.
    pub(crate) rules: Vec<Ruling>,
    pub(crate) quarters: u8,
    pub(crate) angle: f32,
}

/// Words of one paragraph and the language they were read in.
pub(crate) struct Paragraph {
    pub(crate) words: Vec<Found>,
    pub(crate) language: String,
}

/// What one pass over a page gave.
pub(crate) struct Reading {
    pub(crate) paragraphs: Vec<Paragraph>,
    pub(crate) pictures: Vec<[i32; 4]>,
}

impl Reading {
    pub(crate) fn words(&self) -> impl Iterator<Item = &Found> {
        self.paragraphs.iter().flat_map(|paragraph| &paragraph.words)
    }

    pub(crate) fn confidence(&self) -> f32 {
        confidence(self.words())
    }
}

/// Mean confidence by characters; 0 without words.
pub(crate) fn confidence<'w>(words: impl Iterator<Item = &'w Found>) -> f32 {
    let (mut sum, mut count) = (0.0, 0.0);
    for word in words {
        let length = word.text.chars().count() as f32;
        sum += word.confidence * length;
        count += length;
    }
    if count > 0.0 { sum / count } else { 0.0 }
}

impl Reader {
    pub(crate) fn new(library: Arc<Library>, models: Arc<Models>, wanted: &[String]) -> Result<Self, OcrError> {
        let installed = models.languages();
        let mut candidates: Vec<String> = Vec::new();
        for name in wanted
            .iter()
            .flat_map(|name| name.split('+'))
            .filter(|name| !name.trim().is_empty())
        {
            if let Some(model) = languages::model(name, &installed)
                && !candidates.iter().any(|known| known == model)
            {
                candidates.push(model.to_owned());
            }
        }
        let named = wanted.iter().any(|name| !name.trim().is_empty());
        if named && candidates.is_empty() {
            return Err(OcrError::Languages {
                asked: wanted.join(", "),
                installed: installed.join(", "),
            });
        }
        if !named {
            candidates = languages::representatives(&installed);
        }
        Ok(Self {
            library,
            models,
            candidates,
            named,
            engines: Vec::new(),
        })
    }

    /// Reads a page. `dpi` is the resolution of the picture; `lead` is the language most pages of the
    /// document are in, as far as known, which is tried first.
    ///
    /// # Errors
    /// See [`OcrError`]. A page without text is no error.
    pub fn read(&mut self, picture: Gray, dpi: f32, lead: Option<&str>) -> Result<PageText, OcrError> {
        if picture.width() < MIN_SIDE || picture.height() < MIN_SIDE {
            return Ok(PageText {
                width: picture.width() as f32,
                height: picture.height() as f32,
                ..PageText::default()
            });
        }
        let lead = lead
            .filter(|lead| !self.named || self.candidates.iter().any(|name| name == lead))
            .map(str::to_owned)
            .or_else(|| self.candidates.first().cloned())
            .ok_or_else(|| OcrError::Model("any".into()))?;
        let dpi = dpi.clamp(50.0, 1200.0);
        let page = picture.evened();
        let threshold = page.threshold();
        let first = lie(&page, threshold);
        let sideways = first.down > SIDEWAYS * first.across;
        let mut tried = [false; 4];
        let mut told = if sideways {
            self.orientation(&page, dpi)
        } else {
            Some(0)
        };
        let quarters = told.unwrap_or(0);
        let mut text = self.read_turned(&page, dpi, quarters, (quarters == 0).then_some(first), &lead)?;
        tried[usize::from(quarters) % 4] = true;
        let is_doubtful = |text: &PageText| text.confidence < DOUBTFUL || text.words.is_empty();
        if first == Lie::default() || !is_doubtful(&text) {
            return Ok(text);
        }
        if !sideways {
            told = self.orientation(&page, dpi);
        }
        // Short text often can't be told, or is told wrong; then what reads best is right.
        let guesses = [told.unwrap_or(quarters), (quarters + 2) % 4, 1, 3];
        let guesses = if sideways { &guesses[..] } else { &guesses[..2] };
        for &quarters in guesses {
            let Some(tried) = tried.get_mut(usize::from(quarters)) else {
                continue;
            };
            if std::mem::replace(tried, true) {
                continue;
            }
            let other = self.read_turned(&page, dpi, quarters, None, &lead)?;
            if other.confidence > text.confidence {
                text = other;
            }
            if !is_doubtful(&text) {
                break;
            }
        }
        Ok(text)
    }

    /// Quarters to turn a page by, if that can be told.
    fn orientation(&mut self, page: &Gray, dpi: f32) -> Option<u8> {
        let slot = self.slot(OSD, Mode::Legacy).ok()?;
        slot.engine.set_image(page, dpi as u32);
        let told = slot.engine.orientation();
        slot.engine.clear();
        let (degrees, confidence) = told?;
        (confidence >= ORIENTED).then_some((degrees.rem_euclid(360) / 90) as u8)
    }

    fn read_turned(
        &mut self,
        page: &Gray,
        dpi: f32,
        quarters: u8,
        known: Option<Lie>,
        lead: &str,
    ) -> Result<PageText, OcrError> {
        let enlarged = |size: f32| (GOOD_TYPE / size).min(MOST_ENLARGED);
        // Seen beforehand, small type takes one reading, else two.
        let small = (page.width() * page.height() <= SMALL_PAGE)
            .then(|| type_size(page, page.threshold()))
            .flatten()
            .filter(|size| *size < SMALL_TYPE);
        // Too large a picture is read as it is.
        let mut sheet = match small.map(|size| prepare(page, dpi, quarters, known, enlarged(size))) {
            Some(Ok(larger)) => larger,
            _ => prepare(page, dpi, quarters, known, 1.0)?,
        };
        let mut reading = self.read_sheet(&sheet, lead)?;
        let size = usual_size(&reading);
        if sheet.scale == 1.0
            && size > 0.0
            && size < SMALL_TYPE
            && let Ok(larger) = prepare(page, dpi, quarters, known, enlarged(size))
        {
            let again = self.read_sheet(&larger, lead)?;
            if again.confidence() + 1.0 >= reading.confidence() {
                (sheet, reading) = (larger, again);
            } else {
                self.forget_page();
            }
        }
        let mut reading = self.settle(&sheet, reading)?;
        self.read_cells(&sheet, &mut reading)?;
        self.forget_page();
        Ok(page_text(&sheet, reading))
    }

    /// Reads a whole page in one language.
    pub(crate) fn read_sheet(&mut self, sheet: &Sheet, language: &str) -> Result<Reading, OcrError> {
        self.forget_page();
        let area = [0, 0, sheet.picture.width() as i32, sheet.picture.height() as i32];
        let found = self.recognize(sheet, language, area, Segmentation::Page)?;
        let mut paragraphs: Vec<Paragraph> = Vec::new();
        for word in found.words.into_iter().take(MAX_WORDS) {
            match paragraphs.last_mut() {
                Some(paragraph) if !word.begins_paragraph => paragraph.words.push(word),
                _ => paragraphs.push(Paragraph {
                    words: vec![word],
                    language: language.to_owned(),
                }),
            }
        }
        Ok(Reading {
            paragraphs,
            pictures: found.pictures,
        })
    }

    /// Reads part of a page.
    pub(crate) fn recognize(
        &mut self,
        sheet: &Sheet,
        language: &str,
        area: [i32; 4],
        segmentation: Segmentation,
    ) -> Result<Recognized, OcrError> {
        let slot = self.slot(language, Mode::Lstm)?;
        if !slot.has_page {
            slot.engine.set_image(&sheet.picture, sheet.dpi);
            slot.has_page = true;
        }
        slot.engine.recognize(area, segmentation).ok_or(OcrError::Failed)
    }

    fn forget_page(&mut self) {
        for slot in &mut self.engines {
            slot.engine.clear();
            slot.has_page = false;
        }
    }

    /// The recogniser of a language, set up when first asked for.
    fn slot(&mut self, language: &str, mode: Mode) -> Result<&mut Slot, OcrError> {
        let unusable = || OcrError::Model(language.to_owned());
        let position = match self.engines.iter().position(|slot| slot.language == language) {
            Some(position) => position,
            None => {
                let model = self.models.read(language).ok_or_else(unusable)?;
                let engine = Engine::new(self.library.clone(), language, &model, mode).ok_or_else(unusable)?;
                if self.engines.len() >= MAX_ENGINES {
                    self.engines.remove(0);
                }
                self.engines.push(Slot {
                    language: language.to_owned(),
                    engine,
                    has_page: false,
                });
                self.engines.len() - 1
            }
        };
        self.engines.get_mut(position).ok_or_else(unusable)
    }

    /// Number of languages text may be in.
    pub(crate) fn choices(&self) -> usize {
        if self.named {
            self.candidates.len()
        } else {
            self.models.languages().len()
        }
    }

    /// Whether the caller named the languages.
    pub(crate) fn named(&self) -> bool {
        self.named
    }

    pub(crate) fn candidates(&self) -> &[String] {
        &self.candidates
    }

    /// The model for a language that a detector named, if it may be used.
    pub(crate) fn permitted(&self, code: &str) -> Option<String> {
        let allowed: Vec<&str> = if self.named {
            self.candidates.iter().map(String::as_str).collect()
        } else {
            self.models.languages()
        };
        languages::model(code, &allowed).map(str::to_owned)
    }
}

/// Makes a page upright, straight and free of rules. `known` is how the page lies when `quarters` is 0.
fn prepare(page: &Gray, dpi: f32, quarters: u8, known: Option<Lie>, scale: f32) -> Result<Sheet, OcrError> {
    let turned = (quarters != 0).then(|| page.turned(quarters));
    let upright = turned.as_ref().unwrap_or(page);
    let threshold = upright.threshold();
    let angle = known.unwrap_or_else(|| lie(upright, threshold)).angle;
    let mut picture = if angle.abs() > MIN_ANGLE {
        upright.rotated(-angle)
    } else {
        upright.clone()
    };
    picture.whiten(threshold);
    let rules = take_rules(&mut picture, threshold, dpi);
    if scale != 1.0 {
        picture = picture.scaled(scale)?;
    }
    Ok(Sheet {
        picture,
        dpi: (dpi * scale).round() as u32,
        scale,
        threshold,
        rules,
        quarters,
        angle: if angle.abs() > MIN_ANGLE { -angle } else { 0.0 },
    })
}

/// Median font size of a page's words, in pixels; 0 when nothing tells.
pub(crate) fn usual_size(reading: &Reading) -> f32 {
    let mut sizes: Vec<f32> = reading
        .words()
        .filter(|word| word.confidence > 50.0)
        .map(|word| font_size(&word.text, word.bbox.map(|v| v as f32), word.base()))
        .filter(|size| *size > 0.0)
        .collect();
    if sizes.len() < 3 {
        return 0.0;
    }
    let middle = sizes.len() / 2;
    *sizes.select_nth_unstable_by(middle, f32::total_cmp).1
}
