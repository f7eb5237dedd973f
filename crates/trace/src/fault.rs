//! Faults: calls that fail although they could succeed. Each is a decision, and each execution has a budget
//! of them.

macro_rules! faults {
    ($($(#[$doc:meta])* $variant:ident = $code:literal, $name:literal, $text:literal;)*) => {
        /// One way in which a call may fail. The numbers are part of the wire format and are never reused.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[cfg_attr(feature = "std", derive(serde::Serialize, serde::Deserialize))]
        #[cfg_attr(feature = "std", serde(rename_all = "kebab-case"))]
        #[repr(u8)]
        pub enum Fault { $($(#[$doc])* $variant = $code,)* }

        impl Fault {
            /// Every fault, in the order of its number.
            pub const ALL: &'static [Fault] = &[$(Fault::$variant,)*];

            /// The fault with this number.
            pub const fn from_code(code: u8) -> Option<Fault> {
                match code { $($code => Some(Fault::$variant),)* _ => None }
            }

            /// How the fault is written on the command line and in schedules.
            pub const fn name(self) -> &'static str {
                match self { $(Fault::$variant => $name,)* }
            }

            /// What happens, for reports.
            pub const fn text(self) -> &'static str {
                match self { $(Fault::$variant => $text,)* }
            }
        }
    };
}

faults! {
    /// An allocation fails with `ENOMEM`.
    Malloc = 1, "malloc", "malloc returns NULL";
    /// A read returns fewer bytes than are available.
    ShortRead = 2, "short-read", "read is short";
    /// A write takes fewer bytes than there is room for.
    ShortWrite = 3, "short-write", "write is short";
    /// A call that could succeed is interrupted.
    Eintr = 4, "eintr", "interrupted by a signal (EINTR)";
    /// A call on a non-blocking descriptor reports that it would block.
    Eagain = 5, "eagain", "would block (EAGAIN)";
    /// An attempt to acquire a lock fails although no thread holds it.
    TryLock = 6, "trylock", "trylock fails";
}

impl Fault {
    /// The bits of all faults, as a set.
    pub const ALL_BITS: u32 = {
        let (mut bits, mut index) = (0, 0);
        while index < Fault::ALL.len() {
            bits |= Fault::ALL[index].bit();
            index += 1;
        }
        bits
    };

    /// Its bit in a set of faults.
    pub const fn bit(self) -> u32 {
        1 << (self as u8)
    }
}

#[cfg(feature = "std")]
pub use text::Faults;

#[cfg(feature = "std")]
mod text {
    use super::Fault;
    use serde::{Deserialize, Serialize};
    use std::fmt;
    use std::str::FromStr;

    /// The budget of faults of one execution, and their kinds. Written `2`, for all kinds, or
    /// `2:malloc,trylock`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    pub struct Faults {
        /// The largest number of faults in one execution.
        pub most: u32,
        /// The bits of the faults that may happen.
        pub kinds: u32,
    }

    impl Default for Faults {
        fn default() -> Faults {
            Faults { most: 0, kinds: Fault::ALL_BITS }
        }
    }

    impl fmt::Display for Faults {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "{}", self.most)?;
            if self.kinds == Fault::ALL_BITS {
                return Ok(());
            }
            let names: Vec<&str> =
                Fault::ALL.iter().filter(|k| self.kinds & k.bit() != 0).map(|k| k.name()).collect();
            write!(f, ":{}", names.join(","))
        }
    }

    impl FromStr for Faults {
        type Err = String;

        fn from_str(text: &str) -> Result<Faults, String> {
            let (number, names) = match text.split_once(':') {
                Some((number, names)) => (number, Some(names)),
                None => (text, None),
            };
            let most = number.parse().map_err(|_| format!("{number:?} is not a number of faults"))?;
            let mut kinds = if names.is_some() { 0 } else { Fault::ALL_BITS };
            for name in names.into_iter().flat_map(|names| names.split(',')) {
                let Some(fault) = Fault::ALL.iter().find(|f| f.name() == name) else {
                    let all: Vec<&str> = Fault::ALL.iter().map(|f| f.name()).collect();
                    return Err(format!("no fault is called {name:?}; there are {}", all.join(", ")));
                };
                kinds |= fault.bit();
            }
            Ok(Faults { most, kinds })
        }
    }
}

#[cfg(all(test, feature = "std"))]
mod tests {
    use super::*;

    #[test]
    fn names_and_codes_are_unique_and_round_trip() {
        for (i, &fault) in Fault::ALL.iter().enumerate() {
            assert_eq!(Fault::from_code(fault as u8), Some(fault));
            assert!(Fault::ALL[..i].iter().all(|f| f.name() != fault.name() && f.bit() != fault.bit()));
        }
        assert_eq!(Fault::from_code(0), None);
    }

    #[test]
    fn budgets_are_written_as_they_are_read() {
        for text in ["0", "3", "1:malloc", "2:malloc,eintr", "4294967295:trylock"] {
            assert_eq!(text.parse::<Faults>().map(|f| f.to_string()).as_deref(), Ok(text));
        }
        assert_eq!(
            "1:trylock,malloc".parse::<Faults>().map(|f| f.to_string()).as_deref(),
            Ok("1:malloc,trylock")
        );
        for (bad, words) in [
            ("", "\"\" is not a number"),
            ("-1", "\"-1\" is not a number"),
            ("malloc", "\"malloc\" is not a number"),
            ("1:", "no fault is called \"\""),
            ("1:fire", "no fault is called \"fire\"; there are malloc, short-read,"),
            ("1:malloc,", "no fault is called \"\""),
        ] {
            let error = bad.parse::<Faults>().expect_err(bad);
            assert!(error.contains(words), "{bad}: {error}");
        }
    }
}
