//! The ink of a page, one bit to a pixel, so that long runs of it are found 64 pixels at a time.

use crate::raster::Gray;

const BITS: usize = u64::BITS as usize;

/// Lines of bits: the rows of a picture, or its columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ink {
    length: usize,
    count: usize,
    /// Words of each line; bit 0 of the first is the first pixel.
    stride: usize,
    words: Vec<u64>,
}

impl Ink {
    /// The rows of a picture: ink is what is not brighter than the threshold.
    pub(crate) fn rows(page: &Gray, threshold: u8) -> Self {
        let stride = page.width().div_ceil(BITS);
        let mut words = Vec::with_capacity(stride * page.height());
        for row in page.rows() {
            words.extend(row.chunks(BITS).map(|pixels| {
                pixels
                    .iter()
                    .rev()
                    .fold(0u64, |word, value| word << 1 | u64::from(*value <= threshold))
            }));
        }
        Self {
            length: page.width(),
            count: page.height(),
            stride,
            words,
        }
    }

    /// Columns for rows, or rows for columns.
    pub(crate) fn transposed(&self) -> Self {
        let stride = self.count.div_ceil(BITS);
        let mut words = vec![0; stride * self.length];
        let mut block = [0u64; BITS];
        for down in 0..stride {
            for across in 0..self.stride {
                for (index, word) in block.iter_mut().enumerate() {
                    let line = down * BITS + index;
                    let inside = line < self.count;
                    *word = if inside { self.word(line, across) } else { 0 };
                }
                transpose(&mut block);
                for (index, word) in block.iter().enumerate() {
                    let line = across * BITS + index;
                    if let Some(slot) = words.get_mut(line * stride + down).filter(|_| line < self.length) {
                        *slot = *word;
                    }
                }
            }
        }
        Self {
            length: self.count,
            count: self.length,
            stride,
            words,
        }
    }

    fn word(&self, line: usize, index: usize) -> u64 {
        self.words.get(line * self.stride + index).copied().unwrap_or(0)
    }

    /// Number of lines.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// A line.
    pub(crate) fn line(&self, line: usize) -> &[u64] {
        let start = (line * self.stride).min(self.words.len());
        self.words.get(start..start + self.stride).unwrap_or_default()
    }

    /// A line with the ink of its two neighbours added, into `words`.
    pub(crate) fn thickened(&self, line: usize, words: &mut Vec<u64>) {
        let of = |line: Option<usize>| line.map(|line| self.line(line)).unwrap_or_default();
        words.clear();
        words.extend_from_slice(of(Some(line)));
        for other in [of(line.checked_sub(1)), of(Some(line + 1))] {
            words.iter_mut().zip(other).for_each(|(word, other)| *word |= other);
        }
    }
}

/// Runs of set bits, as `(from, to)`.
pub(crate) fn runs(words: &[u64]) -> impl Iterator<Item = (usize, usize)> + '_ {
    let mut at = 0;
    std::iter::from_fn(move || {
        let from = seek(words, at, true)?;
        let to = seek(words, from, false).unwrap_or(words.len() * BITS);
        at = to;
        Some((from, to))
    })
}

/// The first bit of a value, at or behind a place.
fn seek(words: &[u64], at: usize, value: bool) -> Option<usize> {
    let flip = if value { 0 } else { u64::MAX };
    let first = at / BITS;
    let mut mask = u64::MAX << (at % BITS);
    for (index, word) in words.iter().enumerate().skip(first) {
        let found = (word ^ flip) & mask;
        if found != 0 {
            return Some(index * BITS + found.trailing_zeros() as usize);
        }
        mask = u64::MAX;
    }
    None
}

/// Transposes a square of bits: squares half as large change places, within them quarters, and so on.
fn transpose(block: &mut [u64; BITS]) {
    let mut half = BITS / 2;
    let mut mask = u64::MAX >> half;
    while half > 0 {
        for index in (0..BITS).filter(|index| index & half == 0) {
            let swap = (block[index] >> half ^ block[index + half]) & mask;
            block[index] ^= swap << half;
            block[index + half] ^= swap;
        }
        half /= 2;
        mask ^= mask << half;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(width: usize, height: usize) -> Gray {
        let mut page = Gray::new(width, height, Vec::new()).unwrap();
        for y in 0..height {
            for x in 0..width {
                if (x * x + 3 * y) % 7 < 3 {
                    page.set(x, y, 10);
                }
            }
        }
        page
    }

    #[test]
    fn columns_are_the_rows_of_the_page_on_its_side() {
        let page = page(150, 70);
        let rows = Ink::rows(&page, 128);
        let columns = rows.transposed();
        assert_eq!((columns.length, columns.count), (70, 150));
        for x in 0..150 {
            for y in 0..70 {
                let bit = columns.word(x, y / 64) >> (y % 64) & 1 == 1;
                assert_eq!(bit, page.get(x, y) <= 128, "{x} {y}");
            }
        }
        assert_eq!(columns.transposed(), rows);
    }

    #[test]
    fn runs_go_over_the_edges_of_words() {
        assert_eq!(runs(&[0b110, 0]).collect::<Vec<_>>(), [(1, 3)]);
        assert_eq!(
            runs(&[u64::MAX << 60, 0b11, 1 << 63]).collect::<Vec<_>>(),
            [(60, 66), (191, 192)]
        );
        assert_eq!(runs(&[]).count(), 0);
    }

    #[test]
    fn neighbours_thicken_a_line() {
        let mut page = Gray::new(10, 3, Vec::new()).unwrap();
        page.set(2, 0, 0);
        page.set(4, 1, 0);
        page.set(6, 2, 0);
        let ink = Ink::rows(&page, 128);
        let mut words = Vec::new();
        ink.thickened(1, &mut words);
        assert_eq!(words, [0b101_0100]);
        ink.thickened(0, &mut words);
        assert_eq!(words, [0b1_0100]);
    }
}
