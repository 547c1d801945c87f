//! The graphics state, as far as text and lines need it.

use hayro_interpret::kurbo::Affine;

use super::colour::Colour;

/// States that can be saved at a time; more are counted only.
const MAX_SAVED: usize = 65_536;

/// What `q` saves and `Q` brings back.
#[derive(Clone, Copy, Debug)]
pub(super) struct State {
    /// User space to the page as displayed.
    pub(super) ctm: Affine,
    pub(super) fill: Colour,
    pub(super) stroke: Colour,
    pub(super) text: TextState,
    /// Clips that held when it was saved.
    clips: usize,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct TextState {
    pub(super) char_space: f32,
    pub(super) word_space: f32,
    /// Horizontal scaling in hundredths.
    pub(super) scaling: f32,
    pub(super) leading: f32,
    /// Place among the loaded fonts.
    pub(super) font: Option<usize>,
    pub(super) size: f32,
    pub(super) rise: f32,
    /// Rendering mode.
    pub(super) mode: i64,
    pub(super) matrix: Affine,
    pub(super) line_matrix: Affine,
}

impl TextState {
    /// The horizontal scaling as a factor.
    pub(super) fn factor(&self) -> f32 {
        self.scaling / 100.0
    }

    pub(super) fn set_matrix(&mut self, matrix: Affine) {
        self.matrix = matrix;
        self.line_matrix = matrix;
    }

    pub(super) fn next_line(&mut self, x: f64, y: f64) {
        self.set_matrix(self.line_matrix * Affine::translate((x, y)));
    }
}

impl State {
    fn new(ctm: Affine) -> Self {
        Self {
            ctm,
            fill: Colour::default(),
            stroke: Colour::default(),
            text: TextState {
                char_space: 0.0,
                word_space: 0.0,
                scaling: 100.0,
                leading: 0.0,
                font: None,
                size: 1.0,
                rise: 0.0,
                mode: 0,
                matrix: Affine::IDENTITY,
                line_matrix: Affine::IDENTITY,
            },
            clips: 0,
        }
    }
}

/// The state that holds and those that are saved.
pub(super) struct States {
    now: State,
    saved: Vec<State>,
    /// Saved beyond the limit.
    beyond: usize,
}

impl States {
    pub(super) fn new(ctm: Affine) -> Self {
        Self {
            now: State::new(ctm),
            saved: Vec::new(),
            beyond: 0,
        }
    }

    pub(super) fn now(&self) -> &State {
        &self.now
    }

    pub(super) fn now_mut(&mut self) -> &mut State {
        &mut self.now
    }

    /// Number of states that are saved.
    pub(super) fn depth(&self) -> usize {
        self.saved.len() + self.beyond
    }

    /// Saves the state; `clips` is the number of clips that hold.
    pub(super) fn save(&mut self, clips: usize) {
        if self.saved.len() >= MAX_SAVED {
            self.beyond += 1;
            return;
        }
        self.saved.push(self.now);
        self.now.clips = clips;
    }

    /// Brings back the state saved last; the number of clips that held then, when any have to go.
    pub(super) fn restore(&mut self) -> Option<usize> {
        if self.beyond > 0 {
            self.beyond -= 1;
            return None;
        }
        let before = self.saved.pop()?;
        let clips = self.now.clips;
        self.now = before;
        Some(clips)
    }
}
