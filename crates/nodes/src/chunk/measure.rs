//! How long a text is.

use docmill_model::settings::{ChunkOptions, Tokenizer};
use tiktoken_rs::CoreBPE;

use super::split::split;
use super::split_tokens::{split_tokens, tail_of_tokens};
use super::text;

/// The unit of lengths.
#[derive(Clone, Copy)]
pub(crate) enum Measure {
    /// Unicode code points.
    Chars,
    /// Tokens of an encoding.
    Tokens(&'static CoreBPE),
}

impl Measure {
    pub(crate) fn of(options: &ChunkOptions) -> Self {
        match options.tokenizer {
            None => Self::Chars,
            Some(tokenizer) => Self::Tokens(encoding(tokenizer)),
        }
    }

    pub(crate) fn in_tokens(self) -> bool {
        matches!(self, Self::Tokens(_))
    }

    pub(crate) fn len(self, text: &str) -> usize {
        match self {
            Self::Chars => text::len(text),
            Self::Tokens(encoding) => encoding.count_ordinary(text),
        }
    }

    /// Length of what stands between two elements.
    pub(crate) fn separator(self) -> usize {
        match self {
            Self::Chars => text::SEPARATOR_LEN,
            Self::Tokens(_) => 1,
        }
    }

    /// The end of a text to repeat in front of the next one.
    pub(crate) fn tail(self, text: &str, n: usize) -> &str {
        match self {
            Self::Chars => text::tail(text, n),
            Self::Tokens(encoding) => tail_of_tokens(encoding, text, n),
        }
    }

    /// Pieces of at most `max` each; `overlap` is less than `max`.
    pub(crate) fn split(self, text: &str, max: usize, overlap: usize) -> Vec<String> {
        match self {
            Self::Chars => split(text, max, overlap),
            Self::Tokens(encoding) => split_tokens(encoding, text, max, overlap),
        }
    }
}

/// The tables are compiled in and read once, at the first use.
fn encoding(tokenizer: Tokenizer) -> &'static CoreBPE {
    match tokenizer {
        Tokenizer::Cl100k => tiktoken_rs::cl100k_base_singleton(),
        Tokenizer::O200k => tiktoken_rs::o200k_base_singleton(),
        Tokenizer::P50k => tiktoken_rs::p50k_base_singleton(),
        Tokenizer::R50k => tiktoken_rs::r50k_base_singleton(),
    }
}
