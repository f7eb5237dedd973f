//! The sentences of a verdict: what a check claims, what limits that claim, and what was not explored.
//!
//! The screen and the JSON are made of these and of [`heisen_trace::Note`] alone. `docs/reference/verdicts.md` shows every one of them, and a
//! test holds it against these tables.

use std::fmt::Display;

/// A sentence, or a part of one, in which `{words}` in braces stand for what a check fills in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sentence(pub &'static str);

impl Sentence {
    /// The sentence with these words filled in.
    pub fn with(self, words: &[(&str, &dyn Display)]) -> String {
        let mut text = self.0.to_owned();
        for (name, word) in words {
            text = text.replace(&format!("{{{name}}}"), &word.to_string());
        }
        text
    }

    /// The sentence that has no words to fill in.
    pub fn plain(self) -> String {
        self.0.to_owned()
    }

    /// Whether a text is this sentence with some words filled in.
    pub fn fits(self, text: &str) -> bool {
        let pieces = self.pieces();
        let (Some(first), Some(last)) = (pieces.first(), pieces.last()) else { return false };
        let Some(mut rest) = text.strip_prefix(first) else { return false };
        if pieces.len() == 1 {
            return rest.is_empty();
        }
        for piece in &pieces[1..pieces.len() - 1] {
            match rest.find(piece) {
                Some(at) => rest = &rest[at + piece.len()..],
                None => return false,
            }
        }
        rest.ends_with(last)
    }

    /// The text between the words that are filled in.
    fn pieces(self) -> Vec<&'static str> {
        let mut pieces = Vec::new();
        let mut rest = self.0;
        while let Some((before, after)) = rest.split_once('{') {
            pieces.push(before);
            rest = after.split_once('}').map_or("", |(_, after)| after);
        }
        pieces.push(rest);
        pieces
    }
}

macro_rules! sentences {
    ($(#[$about:meta])* $list:ident: $($(#[$doc:meta])* $name:ident = $text:literal;)*) => {
        $($(#[$doc])* pub const $name: Sentence = Sentence($text);)*
        $(#[$about])*
        pub const $list: &[Sentence] = &[$($name,)*];
    };
}

sentences! {
    /// What a check that found nothing claims. `{kind}`, `{of}`, `{within}` and `{without}` are filled in from [`LIMITS`].
    CLAIMS:
    /// Nothing is left, and no bound was in the way.
    ALL = "no bug in any {kind}schedule{of}{within}{without}; all {executions} executions explored";
    /// Nothing is left within the bound.
    BOUNDED = "no bug in any {kind}schedule{of} with at most {preemptions}{within}{without}; all {executions} executions explored; a remaining bug needs at least {more}{or}";
    /// A bound is explored, and the next one in part.
    BOUNDED_AND_MORE = "no bug in any {kind}schedule{of} with at most {preemptions}{within}{without}; more were only partly explored ({executions} executions); a remaining bug needs at least {more}{or}";
    /// Every class of equivalent executions was explored.
    CLASSES = "no bug in any {kind}schedule{of}{without}{if}; every happens-before class explored: {classes}";
    /// The same within a bound.
    BOUNDED_CLASSES = "no bug in any {kind}schedule{of} with at most {preemptions}{without}{if}; every happens-before class explored: {classes}; a remaining bug needs at least {more}{or}";
    /// The search stopped early.
    PART = "no bug in {executions} executions, not all schedules explored";
    /// The same, of a search for classes.
    PART_OF_CLASSES = "no bug in {executions} executions, not all happens-before classes explored";
    /// Not even the schedules without a preemption were explored.
    NO_BOUND = "no bug in {executions} executions; not even bound 0 was explored fully";
    /// Executions diverged from their plan, got stuck or were clipped.
    NOT_FOLLOWED = "no bug in {executions} executions, but some could not be followed to their end";
    /// A search by chance.
    SAMPLED = "no bug in {executions} executions of {strategy} (seed {seed}){guarantee}";
    /// A random walk.
    RANDOM = "no bug in {executions} random executions (seed {seed})";
    /// What probabilistic concurrency testing has earned, as `{guarantee}`.
    GUARANTEE = "; with {threads} threads and {steps} steps, {each} finds a bug{within} of depth {depth} with probability at least {chance}, all together {total}";
    /// Executions failed, and not again.
    NOT_AGAIN = "no bug that happens again in {executions} executions of {strategy} (seed {seed}), though {failed} failed; see below";
    /// No other thread was ever started.
    ONE_THREAD = "nothing to explore: only one thread ran";
    /// A test program says that it ran no test.
    NO_TEST = "nothing to explore: the program ran no test; name one, or leave out what filters them";
    /// The scope leaves nothing to preempt.
    NO_POINT_IN_SCOPE = "no bug in {executions} executions, but no thread was ever preempted: no scheduling point is in the scope (widen --focus, or narrow --no-preempt)";
}

sentences! {
    /// What limits a claim, as a part of its sentence.
    LIMITS:
    /// `{kind}`: the program uses weak memory orders, or has data races.
    SEQUENTIAL = "sequentially consistent ";
    /// `{of}`: the program is not instrumented, and nothing is patched.
    OF_CALLS = " of calls";
    /// `{of}`: the program is not instrumented, and its atomic read-modify-write instructions are patched.
    OF_PATCHED = " of calls and patched atomics";
    /// `{of}`: the program is instrumented, and the check for races is off.
    OF_ATOMICS = " of calls and atomic accesses";
    /// `{of}`: a part of the program is instrumented.
    OF_INSTRUMENTED = " of calls and instrumented code";
    /// `{within}`: `--focus`, `--no-preempt`, or regions of the program's own.
    WITHIN_SCOPE = " within the scope";
    /// `{without}`: a wait had a deadline further away than `--timeouts`.
    WITHOUT_FAR = " without time-outs beyond {limit}";
    /// `{without}`: a timer was kept from firing while a thread could go on.
    WITHOUT_EARLY = " without timers that fire early";
    /// `{if}`: dpor takes accesses that it does not see for independent.
    IF_PROTECTED = " if locks protect what threads share";
    /// `{or}`: something is listed below.
    OR_LISTED = ", or what is listed below";
    /// At the end: `--spurious` and `--faults`.
    ALLOWED = "; with at most {allowed} a run";
    /// At the end: data races that are not reported.
    RACES = "; {races} (--races lists them)";
}

sentences! {
    /// What was not explored or not controlled, besides the notes of executions.
    CAVEATS:
    /// Nothing is instrumented, and nothing patched.
    CALLS_ONLY = "memory accesses: only synchronisation calls are scheduling points, as the program is not instrumented; plain and atomic accesses are not explored (heisen cc, heisen c++ or cargo heisen instruments it)";
    /// Nothing is instrumented.
    PATCHED_ONLY = "memory accesses: besides synchronisation calls, only atomic read-modify-write instructions of patched modules are scheduling points ({patched}); plain and atomic loads and stores are not explored (heisen cc, heisen c++ or cargo heisen instruments them)";
    /// `--races=off`.
    ATOMICS_ONLY = "plain memory accesses: the check for races is off, so only atomic accesses are scheduling points (leave out --races=off)";
    /// An access may still become a scheduling point.
    STOPPED_EARLY = "memory accesses: the search stopped early, so those that it has not yet seen in conflict were not explored (raise --time or --executions)";
    /// Some code is instrumented, and this is not.
    BLIND = "not instrumented: {code}";
    /// Races were asked for, in vain.
    NO_RACES = "data races: none was looked for, as the program is not instrumented (heisen cc, heisen c++ or cargo heisen instruments it)";
    /// Too many to list.
    MORE_RACES = "data races: only {listed} are listed; {more} more pairs of accesses race";
    /// `--focus` and `--no-preempt`.
    OUT_OF_SCOPE = "preemptions at calls {where}: not searched";
    /// `--at-ready`.
    BEFORE_READY = "what the program does before heisen_ready: it ran once, under the default schedule";
    /// dpor, on a program that differs from run to run.
    DPOR_UNFIT = "dpor does not fit this program: executions of the same steps touched different things; icb and dfs do without (--strategy icb, --strategy dfs)";
    /// dpor, in long executions.
    DPOR_CUT = "executions of more than {events} events ({executions} of them): dpor looks at the beginning only; icb does not (--strategy icb)";
    /// Executions that did not follow their plan.
    DIVERGED = "{executions} diverged from {their} plan{why}";
    /// Failures that did not come back.
    UNCONFIRMED = "{executions} failed but did not fail again when replayed, and are not reported{why}";
    /// Executions beyond `--steps` that are not known to be livelocks.
    TOO_LONG = "too long: {executions} not explored beyond {steps} steps; raise --steps, or give the program less to do";
    /// A long computation that went on.
    COMPUTED = "an execution took more than {seconds} s of processor time without a scheduling point, in {place}, and went on; if it waits there for another thread, let the loop yield";
    /// A failure at the end of the time.
    NO_TIME_TO_CONFIRM = "{executions} failed ({seemed}), but there was no time left to confirm it; run again with a longer --time";
    /// A failure at an interrupt.
    NOT_CONFIRMED = "{executions} failed ({seemed}), but the check was interrupted before that was confirmed; resume it";
    /// Executions at the end of the time.
    CUT = "{executions} still ran when --time was over, and did not come to an end";
    /// A server without a client, say.
    AWAITED = "the program waits for someone outside, which is not a deadlock: {awaited}{silence}; run a client beside the check that serves each execution in turn, with --jobs 1, or start one with --before";
    /// The program takes longer to start.
    NO_TIME = "--time was over before an execution began; raise it";
    /// The parked program was killed.
    LOST = "the parked program was killed {times}; what it had to run was run again";
    /// `--time` ended a search by chance.
    OUT_OF_TIME = "executions: --time ended the search after {executions}, so another run may have more or fewer (--executions sets their number)";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_filled_in_and_found_again() {
        let sentence = Sentence("{a} of {b}: {a}!");
        assert_eq!(sentence.with(&[("a", &1), ("b", &"two")]), "1 of two: 1!");
        for (text, fits) in
            [("1 of two: 1!", true), ("1 of two: 1", false), ("of : !", false), (" of : !", true)]
        {
            assert_eq!(sentence.fits(text), fits, "{text}");
        }
        assert!(Sentence("plain").fits("plain") && !Sentence("plain").fits("plainly"));
    }

    #[test]
    fn sentences_are_told_apart() {
        let all: Vec<Sentence> = [CLAIMS, LIMITS, CAVEATS].concat();
        for (number, sentence) in all.iter().enumerate() {
            assert!(!all[..number].contains(sentence), "{sentence:?} is there twice");
        }
    }
}
