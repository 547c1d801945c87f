//! When a delivery is tried again.

use std::time::Duration;

/// Seconds from each failed attempt to the next.
const DELAYS: [u64; 7] = [5, 300, 1_800, 7_200, 18_000, 36_000, 36_000];

/// How long after the end of failed attempt number `attempt` (the first is 1) the next one is due: 5 s,
/// 5 min, 30 min, 2 h, 5 h, 10 h, 10 h, each lengthened by up to a tenth, as `random` says (0: not at all,
/// `u32::MAX`: by the whole tenth), so that what failed together is not tried together. `None` when there
/// is no next one: after the eighth attempt, more than a day after the first.
pub fn retry_delay(attempt: u32, random: u32) -> Option<Duration> {
    let index = usize::try_from(attempt.checked_sub(1)?).ok()?;
    let delay = Duration::from_secs(*DELAYS.get(index)?);
    Some(delay + delay.mul_f64(f64::from(random) / f64::from(u32::MAX) / 10.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_attempts_are_made() {
        let delays: Vec<u64> = (1..)
            .map_while(|attempt| retry_delay(attempt, 0))
            .map(|d| d.as_secs())
            .collect();
        assert_eq!(delays, DELAYS);
        assert_eq!(retry_delay(8, 0), None);
        assert_eq!(retry_delay(0, 0), None);
        assert_eq!(retry_delay(u32::MAX, 0), None);
    }

    proptest::proptest! {
        #[test]
        fn jitter_adds_a_tenth_at_most(attempt in 1_u32..=7, random: u32) {
            let (least, delay) = (retry_delay(attempt, 0).unwrap(), retry_delay(attempt, random).unwrap());
            proptest::prop_assert!(least <= delay && delay <= least.mul_f64(1.1) + Duration::from_nanos(2));
        }
    }
}
