//! Builds the filter by which the kernel itself refuses calls that change the machine, in every process of a
//! check. It also covers system call instructions that Heisen does not intercept, and programs that the
//! program starts. See `heisen_trace::machine`.

use heisen_trace::machine::{Control, EVERYONE, IOCTL, KILL, REFUSED_REQUESTS, TABLE};

/// An instruction of the filter: code, jump offsets if true and if false, operand.
pub type Instruction = (u16, u8, u8, u32);

const LOAD: u16 = 0x20;
const AND: u16 = 0x54;
const IF_EQUAL: u16 = 0x15;
const RETURN: u16 = 0x06;

/// Offsets of the kernel's data that the filter reads. Of arguments it reads the lower halves, because all of
/// them are numbers.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
const FIRST: u32 = 16;
const SECOND: u32 = 24;

const X86_64: u32 = 0xc000_003e;
const I386: u32 = 0x4000_0003;
/// The bit set in call numbers of the x32 interface.
const X32: u32 = 0x4000_0000;

const ALLOW: u32 = 0x7fff_0000;
const REFUSE: u32 = 0x0005_0000 | libc::EPERM as u32;

/// The numbers of the same calls in a 32-bit program: clocks, reboot and kexec, names, file systems, swap,
/// accounting, modules and ports.
const OF_I386: [u32; 25] = [
    21, 22, 25, 51, 52, 74, 79, 87, 88, 101, 110, 111, 115, 121, 124, 128, 129, 131, 217, 264, 283, 343, 350,
    404, 405,
];

/// The filter's instructions.
pub fn instructions() -> Vec<Instruction> {
    let refused = TABLE.iter().filter(|row| matches!(row.control, Control::Virtual | Control::Refused(_)));
    let refused = refused.flat_map(|row| row.calls).map(|call| call.1 as u32);
    let mut all = vec![(LOAD, 0, 0, ARCHITECTURE)];
    let of_others = refuse_each(&OF_I386);
    all.push((IF_EQUAL, 0, of_others.len() as u8 + 2, I386));
    all.push((LOAD, 0, 0, NUMBER));
    all.extend(of_others);
    all.push((RETURN, 0, 0, ALLOW));
    all.extend([(LOAD, 0, 0, ARCHITECTURE), (IF_EQUAL, 1, 0, X86_64), (RETURN, 0, 0, ALLOW)]);
    all.extend([(LOAD, 0, 0, NUMBER), (AND, 0, 0, !X32)]);
    all.extend(refuse_each(&refused.collect::<Vec<_>>()));
    // Signal 0 to all processes only asks whether there are any, and does no harm.
    all.push((IF_EQUAL, 0, 7, KILL as u32));
    all.extend([(LOAD, 0, 0, FIRST), (IF_EQUAL, 1, 0, EVERYONE as u32), (RETURN, 0, 0, ALLOW)]);
    all.extend([(LOAD, 0, 0, SECOND), (IF_EQUAL, 0, 1, 0), (RETURN, 0, 0, ALLOW), (RETURN, 0, 0, REFUSE)]);
    all.extend([(IF_EQUAL, 1, 0, IOCTL as u32), (RETURN, 0, 0, ALLOW), (LOAD, 0, 0, SECOND)]);
    all.extend(refuse_each(&REFUSED_REQUESTS.map(|request| request as u32)));
    all.push((RETURN, 0, 0, ALLOW));
    all
}

/// Refuses if the loaded value is one of these.
fn refuse_each(values: &[u32]) -> Vec<Instruction> {
    values.iter().flat_map(|&value| [(IF_EQUAL, 0, 1, value), (RETURN, 0, 0, REFUSE)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The filter's answer to a call, as the kernel computes it.
    fn verdict(architecture: u32, number: u32, first: u32, second: u32) -> u32 {
        let all = instructions();
        let (mut at, mut value) = (0, 0);
        loop {
            let (code, yes, no, operand) = all[at];
            at += 1;
            match code {
                LOAD => {
                    value = match operand {
                        NUMBER => number,
                        ARCHITECTURE => architecture,
                        FIRST => first,
                        _ => second,
                    }
                }
                AND => value &= operand,
                IF_EQUAL => at += usize::from(if value == operand { yes } else { no }),
                _ => return operand,
            }
        }
    }

    #[test]
    fn refuses_what_the_table_refuses_and_nothing_else() {
        for number in 0..600 {
            let row = TABLE.iter().find(|row| row.calls.iter().any(|call| call.1 == number));
            let refused =
                row.is_some_and(|row| matches!(row.control, Control::Virtual | Control::Refused(_)));
            let expected = if refused { REFUSE } else { ALLOW };
            assert_eq!(verdict(X86_64, number as u32, 1, 9), expected, "{number}");
            assert_eq!(verdict(X86_64, number as u32 | X32, 1, 9), expected, "{number}");
            let known = OF_I386.contains(&(number as u32));
            assert_eq!(verdict(I386, number as u32, 1, 9), if known { REFUSE } else { ALLOW }, "{number}");
        }
    }

    #[test]
    fn refuses_signals_to_everyone_and_requests_that_take_over_a_terminal() {
        let kill = |process: i32, signal| verdict(X86_64, KILL as u32, process as u32, signal);
        assert_eq!([kill(-1, 9), kill(-1, 31)], [REFUSE; 2]);
        assert_eq!([kill(-1, 0), kill(0, 9), kill(7, 9), kill(-7, 9)], [ALLOW; 4]);
        for request in REFUSED_REQUESTS {
            assert_eq!(verdict(X86_64, IOCTL as u32, 3, request as u32), REFUSE);
        }
        assert_eq!(verdict(X86_64, IOCTL as u32, 3, 0x5401), ALLOW);
    }
}
