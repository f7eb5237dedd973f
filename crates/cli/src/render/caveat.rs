//! The sentences of caveats: what a check did not explore or control, and what to do about it.

use super::note;
use super::paint::count;
use super::sentences::*;
use heisen_engine::check::{Caveat, Differs, Outcome};
use heisen_engine::patch::PatchedModule;
use heisen_engine::program::uninstrumented::{STD, Uninstrumented};
use heisen_trace::Note;

/// A caveat names up to this many files of a module. If there are more, it names one fewer and counts the
/// rest.
const SHOWN: usize = 3;

/// The sentences of all caveats of a check.
pub fn sentences(outcome: &Outcome) -> Vec<String> {
    outcome.caveats.iter().map(sentence).collect()
}

/// The sentence of a caveat.
pub fn sentence(caveat: &Caveat) -> String {
    match caveat {
        Caveat::Note(note) => note::sentence(*note).unwrap_or_default().to_owned(),
        Caveat::CallsOnly => CALLS_ONLY.plain(),
        Caveat::PatchedOnly(modules) => {
            let modules: Vec<String> = modules.iter().map(patched).collect();
            PATCHED_ONLY.with(&[("patched", &modules.join("; "))])
        }
        Caveat::AtomicsOnly => ATOMICS_ONLY.plain(),
        Caveat::StoppedEarly => STOPPED_EARLY.plain(),
        Caveat::PartlyInstrumented(code) => {
            let parts: Vec<String> = code.iter().map(uninstrumented).collect();
            let is_std = |part: &Uninstrumented| matches!(part, Uninstrumented::Files { files, .. } if files[..] == [STD]);
            let how = if code.iter().all(is_std) { " (--with-std instruments them)" } else { "" };
            PARTLY_INSTRUMENTED.with(&[("code", &parts.join("; ")), ("how", &how)])
        }
        Caveat::NoRaces => NO_RACES.plain(),
        Caveat::MoreRaces { listed, more } => MORE_RACES.with(&[("listed", listed), ("more", more)]),
        Caveat::OutOfScope(patterns) => {
            let mut parts = Vec::new();
            if !patterns.focus.is_empty() {
                parts.push(format!("outside {}", patterns.focus.join(", ")));
            }
            if !patterns.no_preempt.is_empty() {
                parts.push(format!("in {}", patterns.no_preempt.join(", ")));
            }
            OUT_OF_SCOPE.with(&[("where", &parts.join(" and "))])
        }
        Caveat::BeforeReady => BEFORE_READY.plain(),
        Caveat::DporUnfit => DPOR_UNFIT.plain(),
        Caveat::DporCut { events, executions } => {
            DPOR_CUT.with(&[("events", events), ("executions", &count(*executions, "execution"))])
        }
        Caveat::NotExact(reason) => NOT_EXACT.with(&[("reason", reason)]),
        Caveat::InputsKept => INPUTS_KEPT.plain(),
        Caveat::Diverged(differs) => DIVERGED.with(&[
            ("executions", &count(differs.executions, "execution")),
            ("their", &if differs.executions == 1 { "its" } else { "their" }),
            ("why", &why(differs)),
        ]),
        Caveat::Unconfirmed(differs) => UNCONFIRMED.with(&[
            ("executions", &count(differs.executions, "execution")),
            ("are", &if differs.executions == 1 { "is" } else { "are" }),
            ("why", &why(differs)),
        ]),
        Caveat::TooLong { executions, steps } => {
            TOO_LONG.with(&[("executions", &count(*executions, "execution")), ("steps", steps)])
        }
        Caveat::Computed { hang, place } => {
            COMPUTED.with(&[("seconds", &hang.as_secs_f32()), ("place", place)])
        }
        Caveat::NoTimeToConfirm { executions, seemed, interrupted } => {
            let sentence = if *interrupted { NOT_CONFIRMED } else { NO_TIME_TO_CONFIRM };
            sentence.with(&[("executions", &count(*executions, "execution")), ("seemed", seemed)])
        }
        Caveat::Cut(executions) => CUT.with(&[("executions", &count(*executions, "execution"))]),
        Caveat::Awaited { awaited, silence } => {
            let silence = silence.map_or(String::new(), |time| {
                format!(", and nobody came for {} s (a quarter of --hang)", time.as_secs_f32())
            });
            AWAITED.with(&[("awaited", awaited), ("silence", &silence)])
        }
        Caveat::NoTime => NO_TIME.plain(),
        Caveat::Lost(1) => LOST.with(&[("times", &"once")]),
        Caveat::Lost(times) => LOST.with(&[("times", &count(*times, "time"))]),
        Caveat::OutOfTime(executions) => {
            OUT_OF_TIME.with(&[("executions", &count(*executions, "execution"))])
        }
    }
}

/// The number of patched instructions of a module, and of its functions that Heisen does not understand.
fn patched(module: &PatchedModule) -> String {
    let odd = match module.odd {
        0 => String::new(),
        odd => format!(", and {} that Heisen does not understand", count(odd as u64, "function")),
    };
    format!("{} in {}{odd}", module.sites, module.name)
}

/// Names uninstrumented code: a module, some of its files, or unknown files.
fn uninstrumented(part: &Uninstrumented) -> String {
    match part {
        Uninstrumented::Module(module) => module.clone(),
        Uninstrumented::Files { module, files } => format!("{} of {module}", enumerate(files)),
        Uninstrumented::Unknown(modules) => {
            format!("unknown files of {}, without debug information (-g)", modules.join(" and "))
        }
    }
}

fn enumerate(files: &[String]) -> String {
    match files {
        [one] => one.clone(),
        all if all.len() <= SHOWN => {
            format!("{} and {}", all[..all.len() - 1].join(", "), all[all.len() - 1])
        }
        all => {
            let more = all.len() - (SHOWN - 1);
            format!("{} and {more} more files", all[..SHOWN - 1].join(", "))
        }
    }
}

/// The place where executions of one schedule first differed, if it is known, and the likely reason.
fn why(differs: &Differs) -> String {
    let place = if differs.at.is_empty() { String::new() } else { format!(", first at {}", differs.at) };
    let why = causes(&differs.notes).unwrap_or_else(|| {
        "something that Heisen does not control differs between runs: perhaps an instruction such as rdtsc or rdrand, a \
         system call without the C library, or something outside the program"
            .to_owned()
    });
    format!("{place}; {why}")
}

/// Names the operations of the program that may make executions of one schedule differ; `None` if no note
/// points to one.
pub fn causes(notes: &[Note]) -> Option<String> {
    let mut causes: Vec<&str> = notes.iter().filter_map(|note| cause(*note)).collect();
    causes.dedup();
    (!causes.is_empty())
        .then(|| format!("the program {}, which Heisen does not control", causes.join(" and ")))
}

fn cause(note: Note) -> Option<&'static str> {
    match note {
        Note::CpuClock => Some("reads the processor-time clock"),
        Note::RealTime => Some("runs in real time"),
        Note::ChangedFile => Some("reads a file that was written while the check ran"),
        Note::Outside => Some("gets input from outside"),
        Note::Fork | Note::Spawn => Some("starts other processes"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cause_of_a_divergence_is_named() {
        let at = "lock(q) (queue.c:31, T2)".to_owned();
        let differs = Differs { executions: 2, at, notes: vec![Note::LogFull, Note::CpuClock] };
        assert_eq!(
            sentence(&Caveat::Diverged(differs)),
            "2 executions diverged from their plan, first at lock(q) (queue.c:31, T2); the program reads the \
             processor-time clock, which Heisen does not control"
        );
        let unknown = Differs { executions: 1, at: String::new(), notes: Vec::new() };
        assert!(why(&unknown).contains("rdtsc"));
    }
}
