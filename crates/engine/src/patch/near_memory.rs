//! Finds unused memory near a module: a jump reaches at most two gigabytes.

use heisen_inspect::maps::Mapping;

const PAGE: u64 = 4096;
/// The lowest address that processes may map on a machine with default settings.
const LOWEST: u64 = 64 << 10;
/// The address after the highest that processes may map.
const HIGHEST: u64 = 1 << 47;
/// How far a jump reaches, with a margin.
const REACH: u64 = (1 << 31) - (1 << 20);

/// Finds `size` unused bytes such that jumps reach them from all code between `start` and `end`, and back.
/// They lie below the code if possible, because the heap may grow above it. `taken` are ranges that are
/// reserved in addition to the mapped ones.
pub fn near(mappings: &[Mapping], taken: &[(u64, u64)], start: u64, end: u64, size: u64) -> Option<u64> {
    let size = size.next_multiple_of(PAGE);
    let mut used: Vec<(u64, u64)> = mappings.iter().map(|m| (m.start, m.end)).collect();
    used.extend(taken.iter().map(|&(at, size)| (at, at + size)));
    used.sort_unstable();
    let lowest = end.saturating_sub(REACH).max(LOWEST).next_multiple_of(PAGE);
    let highest = start.saturating_add(REACH).min(HIGHEST);
    // The gaps, each from the end of a used range to the beginning of the next.
    let ends = std::iter::once(LOWEST).chain(used.iter().map(|&(_, end)| end));
    let starts = used.iter().map(|&(start, _)| start).chain([HIGHEST]);
    let gaps: Vec<(u64, u64)> = ends
        .zip(starts)
        .map(|(from, to)| (from.max(lowest), to.min(highest)))
        .filter(|(from, to)| to.checked_sub(*from).is_some_and(|room| room >= size))
        .collect();
    let below = gaps.iter().rev().find(|(_, to)| *to <= start).map(|(_, to)| to - size);
    // As high as possible, away from the heap.
    let above = gaps.iter().rev().find(|(from, _)| *from >= end).map(|(_, to)| (to - size) / PAGE * PAGE);
    below.or(above)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapping(start: u64, end: u64) -> Mapping {
        Mapping {
            start,
            end,
            writable: false,
            executable: true,
            offset: 0,
            inode: 0,
            path: Default::default(),
            deleted: false,
        }
    }

    #[test]
    fn below_if_possible() {
        let maps = [mapping(0x40_0000, 0x40_5000), mapping(0x7000_0000_0000, 0x7000_0000_1000)];
        assert_eq!(near(&maps, &[], 0x40_0000, 0x40_5000, 100), Some(0x3f_f000));
        assert_eq!(near(&maps, &[(0x3f_f000, 0x1000)], 0x40_0000, 0x40_5000, 100), Some(0x3f_e000));
        assert_eq!(near(&maps, &[], 0x7000_0000_0000, 0x7000_0000_1000, 1 << 20), Some(0x6fff_fff0_0000));
        // There is not enough room below.
        let above = near(&maps, &[], 0x40_0000, 0x40_5000, 8 << 20).unwrap();
        assert!(above > 0x7000_0000 && above + (8 << 20) <= 0x40_0000 + REACH);
        // Everything near is taken.
        let full = [mapping(0, 0x7000_0000_0000), mapping(0x7000_0000_0000, HIGHEST)];
        assert_eq!(near(&full, &[], 0x40_0000, 0x40_5000, 100), None);
    }
}
