//! Grey pictures and the few operations a page needs.

/// Largest side of a picture, in pixels.
const MAX_SIDE: usize = 32_000;
/// Largest picture, in pixels.
const MAX_PIXELS: usize = 120_000_000;

/// A picture is larger than can be worked on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a picture of {0} x {1} pixels is too large")]
pub struct TooLarge(pub usize, pub usize);

/// A picture of grey values, 0 black to 255 white, row by row from the top.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gray {
    width: usize,
    height: usize,
    pixels: Vec<u8>,
}

impl Gray {
    /// A picture of `height` rows of `width` bytes each. Missing pixels are white, surplus ones are cut off.
    ///
    /// # Errors
    /// [`TooLarge`], at more than 120 million pixels or 32,000 to a side.
    pub fn new(width: usize, height: usize, mut pixels: Vec<u8>) -> Result<Self, TooLarge> {
        let size = width.checked_mul(height).filter(|size| *size <= MAX_PIXELS);
        match size {
            Some(size) if width <= MAX_SIDE && height <= MAX_SIDE => {
                pixels.resize(size, 255);
                Ok(Self { width, height, pixels })
            }
            _ => Err(TooLarge(width, height)),
        }
    }

    /// Width in pixels.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Height in pixels.
    pub fn height(&self) -> usize {
        self.height
    }

    /// The grey values, row by row.
    pub fn pixels(&self) -> &[u8] {
        &self.pixels
    }

    pub(crate) fn rows(&self) -> std::slice::ChunksExact<'_, u8> {
        self.pixels.chunks_exact(self.width.max(1))
    }

    pub(crate) fn get(&self, x: usize, y: usize) -> u8 {
        if x >= self.width {
            return 255;
        }
        self.pixels.get(y * self.width + x).copied().unwrap_or(255)
    }

    pub(crate) fn set(&mut self, x: usize, y: usize, value: u8) {
        if x < self.width
            && let Some(pixel) = self.pixels.get_mut(y * self.width + x)
        {
            *pixel = value;
        }
    }

    fn same_size(&self, width: usize, height: usize) -> Self {
        Self {
            width,
            height,
            pixels: vec![255; width * height],
        }
    }

    /// Turned clockwise by a number of quarters.
    #[must_use]
    pub fn turned(&self, quarters: u8) -> Self {
        let (w, h) = (self.width, self.height);
        let quarters = quarters % 4;
        let mut out = if quarters % 2 == 1 {
            self.same_size(h, w)
        } else {
            self.same_size(w, h)
        };
        for (y, row) in self.rows().enumerate() {
            for (x, value) in row.iter().enumerate() {
                let (nx, ny) = match quarters {
                    1 => (h - 1 - y, x),
                    2 => (w - 1 - x, h - 1 - y),
                    3 => (y, w - 1 - x),
                    _ => (x, y),
                };
                out.set(nx, ny, *value);
            }
        }
        out
    }

    /// Turned by a small angle (radians, positive is clockwise) about its centre, at the same size;
    /// corners that come into view are white.
    #[must_use]
    pub(crate) fn rotated(&self, angle: f32) -> Self {
        // Steps in the source, as whole numbers of 65536ths: pixels are too many for fractions.
        let fixed = |value: f64| (value * 65536.0).round() as i64;
        let (sin, cos) = f64::from(angle).sin_cos();
        let (across, down) = (fixed(cos), fixed(-sin));
        let (cx, cy) = (self.width as f64 / 2.0, self.height as f64 / 2.0);
        let mut out = self.same_size(self.width, self.height);
        for (y, row) in out.pixels.chunks_exact_mut(self.width.max(1)).enumerate() {
            let dy = y as f64 - cy;
            // Where the row's first pixel comes from.
            let mut sx = fixed(sin * dy - cos * cx + cx);
            let mut sy = fixed(cos * dy + sin * cx + cy);
            for pixel in row {
                *pixel = self.at_fixed(sx, sy);
                sx += across;
                sy += down;
            }
        }
        out
    }

    /// The value between four pixels, at a place in 65536ths of a pixel.
    fn at_fixed(&self, x: i64, y: i64) -> u8 {
        let (Ok(x0), Ok(y0)) = (usize::try_from(x >> 16), usize::try_from(y >> 16)) else {
            return 255;
        };
        if x0 + 1 >= self.width || y0 + 1 >= self.height {
            return 255;
        }
        let at = y0 * self.width + x0;
        let pair = |at: usize| match self.pixels.get(at..at + 2) {
            Some(&[left, right]) => (u32::from(left), u32::from(right)),
            _ => (255, 255),
        };
        let ((a, b), (c, d)) = (pair(at), pair(at + self.width));
        if a & b & c & d == 255 {
            return 255;
        }
        let (fx, fy) = ((x >> 8) as u32 & 255, (y >> 8) as u32 & 255);
        let upper = a * (256 - fx) + b * fx;
        let lower = c * (256 - fx) + d * fx;
        ((upper * (256 - fy) + lower * fy) >> 16) as u8
    }

    /// The value between four pixels.
    fn between(&self, x: f32, y: f32) -> u8 {
        if x < 0.0 || y < 0.0 {
            return 255;
        }
        let (x0, y0) = (x as usize, y as usize);
        if x0 + 1 >= self.width || y0 + 1 >= self.height {
            return 255;
        }
        let (fx, fy) = (((x - x0 as f32) * 256.0) as u32, ((y - y0 as f32) * 256.0) as u32);
        let at = y0 * self.width + x0;
        let value = |index: usize| u32::from(self.pixels.get(index).copied().unwrap_or(255));
        let upper = value(at) * (256 - fx) + value(at + 1) * fx;
        let lower = value(at + self.width) * (256 - fx) + value(at + self.width + 1) * fx;
        ((upper * (256 - fy) + lower * fy) >> 16) as u8
    }

    /// Scaled by a factor, by averaging where it shrinks and by interpolation where it grows.
    ///
    /// # Errors
    /// [`TooLarge`].
    pub fn scaled(&self, factor: f32) -> Result<Self, TooLarge> {
        let side = |side: usize| ((side as f32 * factor).round() as usize).max(1);
        let (width, height) = (side(self.width), side(self.height));
        let mut out = Self::new(width, height, Vec::new())?;
        let step = 1.0 / factor;
        for (y, row) in out.pixels.chunks_exact_mut(width).enumerate() {
            for (x, pixel) in row.iter_mut().enumerate() {
                *pixel = if factor >= 1.0 {
                    let centre = |at: usize, end: usize| {
                        ((at as f32 + 0.5) * step - 0.5).clamp(0.0, (end as f32 - 1.01).max(0.0))
                    };
                    self.between_or_edge(centre(x, self.width), centre(y, self.height))
                } else {
                    self.mean(x as f32 * step, y as f32 * step, step)
                };
            }
        }
        Ok(out)
    }

    fn between_or_edge(&self, x: f32, y: f32) -> u8 {
        if x as usize + 1 >= self.width || y as usize + 1 >= self.height {
            return self.get(x as usize, y as usize);
        }
        self.between(x, y)
    }

    /// Mean of a square.
    fn mean(&self, x: f32, y: f32, side: f32) -> u8 {
        let (x0, y0) = (x as usize, y as usize);
        let (x1, y1) = (((x + side) as usize).max(x0 + 1), ((y + side) as usize).max(y0 + 1));
        let (mut sum, mut count) = (0u32, 0u32);
        for row in self.rows().take(y1).skip(y0) {
            for value in row.iter().take(x1).skip(x0) {
                sum += u32::from(*value);
                count += 1;
            }
        }
        sum.checked_div(count).unwrap_or(255) as u8
    }

    /// The grey value that best parts ink from paper (Otsu's method).
    pub(crate) fn threshold(&self) -> u8 {
        let mut counts = [0u64; 256];
        for value in &self.pixels {
            if let Some(count) = counts.get_mut(usize::from(*value)) {
                *count += 1;
            }
        }
        let total: u64 = counts.iter().sum();
        let sum: u64 = counts.iter().zip(0u64..).map(|(count, value)| count * value).sum();
        let (mut below, mut sum_below) = (0u64, 0u64);
        let (mut best, mut threshold) = (0.0f64, 127u8);
        for (count, value) in counts.iter().zip(0u8..=255) {
            below += count;
            sum_below += count * u64::from(value);
            let above = total - below;
            if below == 0 || above == 0 {
                continue;
            }
            let apart = sum_below as f64 / below as f64 - (sum - sum_below) as f64 / above as f64;
            let score = below as f64 * above as f64 * apart * apart;
            if score > best {
                (best, threshold) = (score, value);
            }
        }
        threshold
    }

    /// The picture with its paper made evenly white, and with light text on dark paper reversed.
    #[must_use]
    pub(crate) fn evened(mut self) -> Self {
        const TILE: usize = 48;
        let (across, down) = (self.width.div_ceil(TILE).max(1), self.height.div_ceil(TILE).max(1));
        let mut dark = 0;
        let mut paper = vec![0u8; across * down];
        for (index, slot) in paper.iter_mut().enumerate() {
            let (tx, ty) = (index % across * TILE, index / across * TILE);
            let mut counts = [0u32; 256];
            let mut total = 0;
            for row in self.rows().skip(ty).take(TILE) {
                for value in row.iter().skip(tx).take(TILE) {
                    if let Some(count) = counts.get_mut(usize::from(*value)) {
                        *count += 1;
                    }
                    total += 1;
                }
            }
            // Four fifths of the way up: paper even where the tile is dense with text.
            let mut left = total / 5;
            *slot = (0..=255u8)
                .rev()
                .find(|value| {
                    let count = counts.get(usize::from(*value)).copied().unwrap_or(0);
                    let here = count > left;
                    left = left.saturating_sub(count);
                    here
                })
                .unwrap_or(255);
            dark += usize::from(*slot < 90);
        }
        if dark * 10 > paper.len() * 8 {
            self.pixels.iter_mut().for_each(|value| *value = 255 - *value);
            return self;
        }
        let (least, most) = paper
            .iter()
            .filter(|value| **value >= 90)
            .fold((255u8, 0u8), |(least, most), value| {
                (least.min(*value), most.max(*value))
            });
        // Even paper is left as it is.
        if most <= least.saturating_add(24) && most > 200 {
            return self;
        }
        self.divide(&paper, across, down, TILE);
        self
    }

    /// Takes the grain off the paper: what is nearly white becomes white, and the greys below it are
    /// stretched, so that letters keep their soft edges. `threshold` parts ink from paper.
    pub(crate) fn whiten(&mut self, threshold: u8) {
        let threshold = u32::from(threshold);
        // White from here on, and as it was up to there.
        let (white, knee) = (255 - (255 - threshold) / 3, 255 - (255 - threshold) * 2 / 3);
        let mut map = [0u8; 256];
        for (slot, value) in map.iter_mut().zip(0u32..) {
            let stretched = match value.checked_sub(knee) {
                Some(above) => knee + above * (255 - knee) / (white - knee).max(1),
                None => value,
            };
            *slot = stretched.min(255) as u8;
        }
        for pixel in &mut self.pixels {
            *pixel = map.get(usize::from(*pixel)).copied().unwrap_or(*pixel);
        }
    }

    /// Divides by the brightness of the paper, interpolated between the middles of tiles.
    fn divide(&mut self, paper: &[u8], across: usize, down: usize, tile: usize) {
        let at = |tx: usize, ty: usize| {
            let value = paper
                .get(ty.min(down - 1) * across + tx.min(across - 1))
                .copied()
                .unwrap_or(255);
            // Pictures and dark fields are not paper.
            f32::from(value.max(90))
        };
        // By how much pixels grow, in 65536ths: within a tile between the middles of its neighbours.
        let mut growth = vec![0i32; across];
        for (y, row) in self.pixels.chunks_exact_mut(self.width.max(1)).enumerate() {
            let fy = ((y as f32 + 0.5) / tile as f32 - 0.5).max(0.0);
            let (ty, fy) = (fy as usize, fy.fract());
            for (tx, slot) in growth.iter_mut().enumerate() {
                let white = at(tx, ty) * (1.0 - fy) + at(tx, ty + 1) * fy;
                *slot = (250.0 * 65536.0 / white) as i32;
            }
            let (first, rest) = row.split_at_mut((tile / 2).min(row.len()));
            let ends = growth.iter().zip(growth.iter().skip(1).chain(growth.last()));
            let edge = growth.first().copied().unwrap_or(65536);
            grow(first, edge, edge, tile);
            for (part, (left, right)) in rest.chunks_mut(tile).zip(ends) {
                grow(part, *left, *right, tile);
            }
        }
    }
}

/// Multiplies pixels by what goes from `left` to `right`, in 65536ths, over the length of a tile.
fn grow(pixels: &mut [u8], left: i32, right: i32, tile: usize) {
    let step = (right - left) / tile as i32;
    let mut by = left + step / 2;
    for pixel in pixels {
        *pixel = ((i32::from(*pixel) * by) >> 16).clamp(0, 255) as u8;
        by += step;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture() -> Gray {
        Gray::new(3, 2, vec![1, 2, 3, 4, 5, 6]).unwrap()
    }

    #[test]
    fn claims_beyond_the_bounds_are_refused_before_memory_is_taken() {
        assert_eq!(Gray::new(100_000, 100_000, Vec::new()), Err(TooLarge(100_000, 100_000)));
        assert!(Gray::new(usize::MAX, 2, Vec::new()).is_err());
    }

    #[test]
    fn four_quarters_are_a_whole_turn() {
        assert_eq!(picture().turned(1).pixels(), [4, 1, 5, 2, 6, 3]);
        assert_eq!(picture().turned(2).pixels(), [6, 5, 4, 3, 2, 1]);
        assert_eq!(picture().turned(1).turned(3), picture());
    }

    #[test]
    fn the_threshold_parts_ink_from_paper() {
        let mut pixels = vec![200; 900];
        pixels.extend(vec![40; 100]);
        let threshold = Gray::new(100, 10, pixels).unwrap().threshold();
        assert!((40..200).contains(&threshold));
    }

    #[test]
    fn dark_paper_is_reversed_and_uneven_paper_evened() {
        let dark = Gray::new(100, 100, vec![10; 10_000]).unwrap().evened();
        assert_eq!(dark.get(50, 50), 245);
        let shaded = (0..200 * 200).map(|i| 120 + (i % 200 / 2) as u8).collect();
        let even = Gray::new(200, 200, shaded).unwrap().evened();
        assert!(even.pixels().iter().all(|value| *value > 200));
    }

    #[test]
    fn scaling_keeps_the_mean() {
        let half = Gray::new(4, 2, vec![0, 100, 0, 100, 0, 100, 0, 100])
            .unwrap()
            .scaled(0.5)
            .unwrap();
        assert_eq!(
            (half.width(), half.height(), half.pixels()),
            (2, 1, [50, 50].as_slice())
        );
        assert_eq!(half.scaled(2.0).unwrap().width(), 4);
    }
}
