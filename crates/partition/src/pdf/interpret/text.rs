//! Text operators: where the characters stand.

use hayro_interpret::hayro_syntax::content::ops::TypedInstruction;
use hayro_interpret::hayro_syntax::object::{Array, Object};
use hayro_interpret::hayro_syntax::page::Resources;
use hayro_interpret::kurbo::{Affine, Shape};

use super::super::visibility::Shade;
use super::spaced::Item;
use super::state::State;
use super::{FontNames, Interpreter, affine};

/// Glyph space has 1000 units to the em.
const UNITS_PER_EM: f32 = 1000.0;

/// One glyph of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::pdf) struct Shown {
    /// Place of its code among those of the font.
    pub(in crate::pdf) code: u32,
    /// Its origin on the page.
    pub(in crate::pdf) x: f64,
    pub(in crate::pdf) y: f64,
}

/// How glyphs are painted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::pdf) enum Mode {
    Fill,
    Stroke,
    Invisible,
}

/// Glyphs that one operator shows.
pub(in crate::pdf) struct Run<'r> {
    /// Place of their font among the loaded fonts.
    pub(in crate::pdf) font: usize,
    pub(in crate::pdf) glyphs: &'r [Shown],
    /// Glyph space to the page, but for where they stand.
    pub(in crate::pdf) matrix: Affine,
    pub(in crate::pdf) mode: Mode,
    pub(in crate::pdf) shade: Shade,
}

impl<'a> Interpreter<'_, '_, 'a> {
    /// Follows an operator on text.
    pub(super) fn draw_text(
        &mut self,
        operator: &TypedInstruction<'_, '_>,
        resources: &Resources<'a>,
        fonts: &mut FontNames,
    ) {
        use TypedInstruction as Op;
        match operator {
            Op::BeginText(_) => self.now().text.set_matrix(Affine::IDENTITY),
            Op::EndText(_) => self.clip_to_outlines(),
            Op::SetTextMatrix(m) => {
                let matrix = affine([m.0, m.1, m.2, m.3, m.4, m.5]);
                self.now().text.set_matrix(matrix);
            }
            Op::TextFont(t) => {
                let font = match fonts.get(t.0.as_ref()) {
                    Some(font) => *font,
                    None => {
                        let dict = resources.get_font(t.0);
                        let font = match dict {
                            Some(dict) => self.device.fonts.load(&dict),
                            None => self.device.fonts.stand_in(),
                        };
                        fonts.insert(t.0.to_vec(), font);
                        font
                    }
                };
                let text = &mut self.now().text;
                (text.font, text.size) = (font, t.1.as_f32());
            }
            Op::CharacterSpacing(c) => self.now().text.char_space = c.0.as_f32(),
            Op::WordSpacing(w) => self.now().text.word_space = w.0.as_f32(),
            Op::HorizontalScaling(h) => self.now().text.scaling = h.0.as_f32(),
            Op::TextLeading(l) => self.now().text.leading = l.0.as_f32(),
            Op::TextRise(r) => self.now().text.rise = r.0.as_f32(),
            Op::TextRenderingMode(m) => self.now().text.mode = m.0.as_i64(),
            Op::NextLine(n) => self.now().text.next_line(n.0.as_f64(), n.1.as_f64()),
            Op::NextLineAndSetLeading(n) => {
                let text = &mut self.now().text;
                text.leading = -n.1.as_f64() as f32;
                text.next_line(n.0.as_f64(), n.1.as_f64());
            }
            Op::NextLineUsingLeading(_) => self.next_line(),
            Op::ShowText(t) => self.show(t.0.as_bytes()),
            Op::ShowTexts(t) => self.show_all(t.0),
            Op::NextLineAndShowText(t) => {
                self.next_line();
                self.show(t.0.as_bytes());
            }
            Op::ShowTextWithParameters(t) => {
                let text = &mut self.now().text;
                (text.word_space, text.char_space) = (t.0.as_f32(), t.1.as_f32());
                self.next_line();
                self.show(t.2.as_bytes());
            }
            _ => {}
        }
    }

    fn next_line(&mut self) {
        let text = &mut self.now().text;
        text.next_line(0.0, -f64::from(text.leading));
    }

    fn show(&mut self, codes: &[u8]) {
        self.begin_run();
        self.append(codes);
        self.end_run();
    }

    /// Shows strings with the distances between them.
    fn show_all(&mut self, parts: &Array<'_>) {
        self.begin_run();
        let mut spaced = std::mem::take(&mut self.spaced);
        if spaced.read(parts.data()) {
            for item in spaced.items(parts.data()) {
                match item {
                    Item::Codes(codes) => self.append(codes),
                    Item::Distance(distance) => self.step(distance),
                }
            }
        } else {
            for part in parts.iter::<Object<'_>>() {
                match part {
                    Object::String(codes) => self.append(codes.as_bytes()),
                    Object::Number(distance) => self.step(distance.as_f32()),
                    _ => {}
                }
            }
        }
        self.spaced = spaced;
        self.end_run();
    }

    fn begin_run(&mut self) {
        self.run.clear();
        if self.states.now().text.font.is_none() {
            self.now().text.font = self.device.fonts.stand_in();
        }
    }

    /// Moves on by a distance of thousandths of the font size, backwards.
    fn step(&mut self, distance: f32) {
        let vertical = self.is_vertical();
        let text = &mut self.now().text;
        let factor = if vertical { 1.0 } else { text.factor() };
        let by = -distance / UNITS_PER_EM * text.size * factor;
        let by = if vertical { (0.0, by) } else { (by, 0.0) };
        text.matrix *= Affine::translate((f64::from(by.0), f64::from(by.1)));
    }

    fn is_vertical(&self) -> bool {
        let font = self.states.now().text.font;
        font.is_some_and(|font| self.device.fonts.is_vertical(font))
    }

    /// Glyph space to text space.
    fn glyph_matrix(&self) -> Affine {
        let text = &self.states.now().text;
        let (size, rise) = (f64::from(text.size), f64::from(text.rise));
        let scaled = Affine::new([size * f64::from(text.factor()), 0.0, 0.0, size, 0.0, rise]);
        text.matrix * scaled * Affine::scale(1.0 / f64::from(UNITS_PER_EM))
    }

    fn append(&mut self, codes: &[u8]) {
        let State { ctm, text, .. } = *self.states.now();
        let Some(font) = text.font else { return };
        let fonts = &mut *self.device.fonts;
        let vertical = fonts.is_vertical(font);
        // Text without a font of its own is shown if it can be what it seems to be.
        let shown = self.layers.is_shown() && (!fonts.is_stand_in(font) || codes.is_ascii());
        let (size, factor) = (text.size, text.factor());
        let rise = f64::from(text.rise);
        let scale = 1.0 / f64::from(UNITS_PER_EM);
        let [a, b, c, d, mut e, mut f] = text.matrix.as_coeffs();
        let [wide, high] = [f64::from(size) * f64::from(factor) * scale, f64::from(size) * scale];
        let mut left = codes;
        while let Some((slot, length)) = fonts.read(font, left) {
            left = left.get(length..).unwrap_or_default();
            let Some(code) = fonts.code(font, slot) else { break };
            if shown {
                let mut origin = (c * rise + e, d * rise + f);
                if vertical {
                    let (x, y) = (code.origin.0 * wide, code.origin.1 * high);
                    origin = (a * x + c * y + origin.0, b * x + d * y + origin.1);
                }
                let [ca, cb, cc, cd, ce, cf] = ctm.as_coeffs();
                self.run.push(Shown {
                    code: slot,
                    x: ca * origin.0 + cc * origin.1 + ce,
                    y: cb * origin.0 + cd * origin.1 + cf,
                });
            }
            let word_space = if code.code == 32 && length == 1 {
                text.word_space
            } else {
                0.0
            };
            let advance = |width: f32| width / UNITS_PER_EM * size + text.char_space + word_space;
            let (x, y) = if vertical {
                (0.0, f64::from(advance(code.down)))
            } else {
                (f64::from(advance(code.across) * factor), 0.0)
            };
            (e, f) = (a * x + c * y + e, b * x + d * y + f);
        }
        self.now().text.matrix = Affine::new([a, b, c, d, e, f]);
    }

    fn end_run(&mut self) {
        let State {
            ctm,
            fill,
            stroke,
            text,
            ..
        } = *self.states.now();
        let Some(font) = text.font.filter(|_| !self.run.is_empty()) else {
            return;
        };
        let glyphs = std::mem::take(&mut self.run);
        let matrix = ctm * self.glyph_matrix();
        let modes: &[Mode] = match text.mode {
            1 | 5 => &[Mode::Stroke],
            2 | 6 => &[Mode::Fill, Mode::Stroke],
            3 | 7 => &[Mode::Invisible],
            _ => &[Mode::Fill],
        };
        for &mode in modes {
            let colour = if mode == Mode::Stroke { &stroke } else { &fill };
            self.device.text(&Run {
                font,
                glyphs: &glyphs,
                matrix,
                mode,
                shade: colour.shade(),
            });
        }
        if (4..=7).contains(&text.mode) {
            self.keep_outlines(font, &glyphs, matrix);
        }
        self.run = glyphs;
    }

    /// Keeps where glyphs are, to clip what comes after the text.
    fn keep_outlines(&mut self, font: usize, glyphs: &[Shown], matrix: Affine) {
        for glyph in glyphs {
            if let Some(outline) = self.device.fonts.outline(font, glyph.code) {
                let placed = matrix.with_translation((glyph.x, glyph.y).into());
                self.outlines.extend((placed * outline).path_elements(0.1));
            }
        }
    }

    fn clip_to_outlines(&mut self) {
        if self.outlines.segments().next().is_some() {
            let outlines = std::mem::take(&mut self.outlines);
            self.clip(&outlines);
        }
        self.outlines.truncate(0);
    }
}
