//! Regular expressions in the syntax of Python's `re` module, translated for the `regex` crate.
//!
//! That crate matches in linear time, so what needs backtracking (look-around, back-references, atomic
//! groups) has no translation and is refused by name. Text that is no expression in Python is refused too.
//!
//! `$` without the flag `m` becomes the end of the text, so the text searched must not end in a line break,
//! before which Python's `$` would also match.

mod class;
mod translate;

use regex::{Regex, RegexBuilder};

/// Characters a pattern may have.
pub const MAX_PATTERN_CHARS: usize = 4_096;

/// Groups may stand in one another this deep.
const MAX_DEPTH: usize = 64;

/// Bytes of memory a compiled pattern may take.
const MAX_COMPILED_BYTES: usize = 4 << 20;

/// Why a pattern can't be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// Valid in Python, but it can't be matched in linear time.
    #[error("{construct} at character {at} can't be matched in linear time; write the pattern without it")]
    Unsupported {
        /// Name of the construct.
        construct: &'static str,
        /// Character position from 0.
        at: usize,
    },
    /// Not valid in Python.
    #[error("{problem} at character {at}")]
    Invalid {
        /// What is wrong.
        problem: &'static str,
        /// Character position from 0.
        at: usize,
    },
    /// Longer than [`MAX_PATTERN_CHARS`].
    #[error("longer than {MAX_PATTERN_CHARS} characters")]
    TooLong,
    /// Compiled it would take too much memory.
    #[error("too large when its repetitions are written out: use smaller counts")]
    TooLarge,
    /// Refused by the matcher.
    #[error("{0}")]
    Refused(String),
}

/// Translates `pattern`; the result compiles with [`compile`].
///
/// # Errors
/// See [`PatternError`].
pub fn translate(pattern: &str) -> Result<String, PatternError> {
    if pattern.chars().count() > MAX_PATTERN_CHARS {
        return Err(PatternError::TooLong);
    }
    let translated = translate::translate(pattern)?;
    compile(&translated)?;
    Ok(translated)
}

/// Compiles a translated pattern.
///
/// # Errors
/// [`PatternError::TooLarge`], or [`PatternError::Refused`] for what [`translate`] did not make.
pub fn compile(translated: &str) -> Result<Regex, PatternError> {
    let built = RegexBuilder::new(translated)
        .size_limit(MAX_COMPILED_BYTES)
        .dfa_size_limit(MAX_COMPILED_BYTES)
        .build();
    built.map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => PatternError::TooLarge,
        other => PatternError::Refused(other.to_string().lines().last().unwrap_or_default().to_owned()),
    })
}

#[cfg(test)]
mod tests;
