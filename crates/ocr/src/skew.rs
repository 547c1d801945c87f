//! The angle of a scan's lines, by projection profile: at the right angle the rows of black pixels are
//! either full or empty.

use crate::raster::Gray;

/// Black pixels looked at.
const MAX_POINTS: usize = 60_000;
/// Largest skew that is looked for, in degrees.
const MAX_DEGREES: f32 = 8.0;
/// Fewer black pixels say nothing.
const MIN_POINTS: usize = 200;

/// How lines lie on a page.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Lie {
    /// Angle of the lines in radians, positive when they fall to the right.
    pub(crate) angle: f32,
    /// How clearly the lines show, and how clearly columns of the page turned by a quarter would.
    pub(crate) across: f64,
    pub(crate) down: f64,
}

/// Finds how the lines of a page lie. `threshold` parts ink from paper.
pub(crate) fn lie(page: &Gray, threshold: u8) -> Lie {
    let points = points(page, threshold);
    if points.len() < MIN_POINTS {
        return Lie::default();
    }
    let across = best_angle(&points, page.height());
    let turned: Vec<(f32, f32)> = points.iter().map(|(x, y)| (*y, *x)).collect();
    let down = best_angle(&turned, page.width());
    Lie {
        angle: across.0,
        across: across.1,
        down: down.1,
    }
}

/// Lower edges of black, which lines of text share at their baseline; evenly thinned out.
fn points(page: &Gray, threshold: u8) -> Vec<(f32, f32)> {
    let rows: Vec<&[u8]> = page.rows().collect();
    let mut points = Vec::new();
    for (y, pair) in rows.windows(2).enumerate() {
        let [row, below] = pair else { continue };
        for (x, (value, under)) in row.iter().zip(*below).enumerate() {
            if *value <= threshold && *under > threshold {
                points.push((x as f32, y as f32));
            }
        }
    }
    let step = points.len().div_ceil(MAX_POINTS).max(1);
    points.into_iter().step_by(step).collect()
}

/// The angle at which the profile is sharpest, and how sharp it is there.
fn best_angle(points: &[(f32, f32)], rows: usize) -> (f32, f64) {
    let (mut centre, mut step) = (0.0f32, 0.5f32);
    let mut reach = MAX_DEGREES;
    let mut best = (0.0f32, sharpness(points, rows, 0.0));
    while step > 0.01 {
        let count = (reach / step).round() as i32;
        for index in -count..=count {
            let degrees = centre + index as f32 * step;
            let score = sharpness(points, rows, degrees.to_radians());
            // A page is straight unless another angle is clearly better.
            if score > best.1 * if index == 0 { 1.0 } else { 1.002 } {
                best = (degrees, score);
            }
        }
        centre = best.0;
        reach = step;
        step /= 4.0;
    }
    (best.0.to_radians(), best.1)
}

fn sharpness(points: &[(f32, f32)], rows: usize, angle: f32) -> f64 {
    let slope = angle.tan();
    let margin = rows / 2 + 64;
    let mut profile = vec![0u32; rows + 2 * margin];
    for (x, y) in points {
        let row = y - slope * x + margin as f32;
        if row >= 0.0
            && let Some(count) = profile.get_mut(row as usize)
        {
            *count += 1;
        }
    }
    let squares: f64 = profile.iter().map(|count| f64::from(*count) * f64::from(*count)).sum();
    squares / points.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Dashed lines that fall by `slope` pixels per pixel.
    fn page(slope: f32) -> Gray {
        let (width, height) = (800, 600);
        let mut page = Gray::new(width, height, Vec::new()).unwrap();
        for line in (60..540).step_by(30) {
            for x in 60..740 {
                if x / 9 % 3 != 0 {
                    let y = (line as f32 + slope * (x as f32 - 400.0)).round() as usize;
                    for dy in 0..8 {
                        page.set(x, y.saturating_sub(dy), 0);
                    }
                }
            }
        }
        page
    }

    #[test]
    fn the_angle_is_found_within_a_tenth_of_a_degree() {
        for degrees in [-3.0f32, 0.0, 0.7, 5.0] {
            let lie = lie(&page(degrees.to_radians().tan()), 128);
            assert!((lie.angle.to_degrees() - degrees).abs() < 0.1, "{degrees}: {lie:?}");
            assert!(lie.across > lie.down);
        }
    }

    #[test]
    fn straightening_makes_it_straight() {
        let slanted = page(2f32.to_radians().tan());
        let found = lie(&slanted, 128).angle;
        assert!(lie(&slanted.rotated(-found), 128).angle.to_degrees().abs() < 0.15);
    }

    #[test]
    fn an_empty_page_lies_straight() {
        assert_eq!(lie(&Gray::new(300, 300, Vec::new()).unwrap(), 128), Lie::default());
    }
}
