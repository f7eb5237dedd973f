//! The sentences of a verdict: claims, the limits of claims, and caveats.
//!
//! Claims and caveats, on the screen and in the JSON, consist only of these sentences and those in
//! [`note`](super::note). The reference page on verdicts shows each of them. A test compares that page with
//! this file.

use std::fmt::Display;

/// A sentence, or a part of one. A check replaces each name in braces, such as `{executions}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sentence(pub &'static str);

impl Sentence {
    /// The sentence with each name replaced by its word.
    pub fn with(self, words: &[(&str, &dyn Display)]) -> String {
        let mut text = self.0.to_owned();
        for (name, word) in words {
            text = text.replace(&format!("{{{name}}}"), &word.to_string());
        }
        text
    }

    /// The text of a sentence without names in braces.
    pub fn plain(self) -> String {
        self.0.to_owned()
    }

    /// Whether a text is this sentence with any words in place of the names.
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

    /// The pieces of text between the names in braces.
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
    /// The claims of a check without findings. [`LIMITS`] provides the words for `{kind}`, `{of}`, `{with}`,
    /// `{within}`, `{without}`, `{if}`, `{except}` and `{or}`.
    CLAIMS:
    /// Every schedule was explored, and no bound cut any off.
    ALL = "no bug in any {kind}schedule{of}{with}{within}{without}{except}; {all}";
    /// Every schedule within the bound was explored.
    BOUNDED = "no bug in any {kind}schedule{of}{with}{within}{without}{except}; {all}; a remaining bug needs at least {more}{or}";
    /// One bound was explored fully, and the next one in part.
    BOUNDED_AND_MORE = "no bug in any {kind}schedule{of}{with}{within}{without}{except}; more were only partly explored ({executions}); a remaining bug needs at least {more}{or}";
    /// Every happens-before class was explored.
    CLASSES = "no bug in any {kind}schedule{of}{with}{within}{without}{if}{except}; every happens-before class explored: {classes}";
    /// Every happens-before class within the bound was explored.
    BOUNDED_CLASSES = "no bug in any {kind}schedule{of}{with}{within}{without}{if}{except}; every happens-before class explored: {classes}; a remaining bug needs at least {more}{or}";
    /// Every path of every thread was explored.
    PATHS = "no bug in any {kind}schedule{of}{inputs}{with}{within}{without}{except}; every path of every thread explored: {executions}";
    /// The solver-driven search stopped early, but had explored every path within a number of rounds.
    PATHS_AND_MORE = "no bug in any {kind}schedule{of}{inputs}{with}{within}{without}{except}; every path of every thread explored within these rounds, paths of more rounds only partly: {executions}";
    /// The solver-driven search stopped early.
    PART_OF_PATHS = "no bug in {executions}{with}, not all paths explored";
    /// The search stopped before it had explored all schedules.
    PART = "no bug in {executions}{with}, not all schedules explored";
    /// Partial-order reduction stopped before it had explored all classes.
    PART_OF_CLASSES = "no bug in {executions}{with}, not all happens-before classes explored";
    /// Not even all schedules without a preemption were explored.
    NO_BOUND = "no bug in {executions}{with}, not all schedules without preemptions explored";
    /// Executions diverged from their plan, got stuck or were cut off.
    NOT_FOLLOWED = "no bug in {executions}{with}, but some could not be followed to their end, see below";
    /// A sampler other than `random` ran.
    SAMPLED = "no bug in {executions} of {strategy} (seed {seed}){with}{guarantee}";
    /// The sampler `random` ran.
    RANDOM = "no bug in {random} (seed {seed}){with}";
    /// `{guarantee}`: the probability that probabilistic concurrency testing (pct) guarantees.
    GUARANTEE = "; with {threads} threads and {steps} steps, {they} find a bug{within} of depth {depth} with probability at least {total}{except}";
    /// Executions of a sampler failed, but not when they were replayed.
    NOT_AGAIN = "no bug that happens again in {executions} of {strategy} (seed {seed}){with}, though {failed} failed, see below";
    /// No execution started a second thread.
    ONE_THREAD = "nothing to explore: only one thread ran";
    /// The test program reports that it ran no test.
    NO_TEST = "nothing to explore: the program ran no test (name one, or change the filter)";
    /// Every execution ended at an assumption.
    CONTRADICTION = "nothing was checked: none of {executions} met the assumptions of the program (heisen_assume, __VERIFIER_assume){choose}; correct one of them";
    /// No scheduling point lies in the scope.
    NO_POINT_IN_SCOPE = "no bug in {executions}, but no thread was ever preempted: no scheduling point is in the scope (widen --focus, or narrow --no-preempt)";
}

sentences! {
    /// The limits of a claim, as parts of its sentence.
    LIMITS:
    /// `{kind}`: the program uses weak memory orders, or has data races.
    SEQUENTIAL = "sequentially consistent ";
    /// `{of}`: the program is not instrumented, and nothing is patched.
    OF_CALLS = " of calls";
    /// `{of}`: the program is not instrumented, and its atomic read-modify-write instructions are patched.
    OF_PATCHED = " of calls and patched atomics";
    /// `{of}`: the program is instrumented, and the race check is off.
    OF_ATOMICS = " of calls and atomic accesses";
    /// `{of}`: a part of the program is instrumented.
    OF_INSTRUMENTED = " of calls and instrumented code";
    /// `{with}`: the bounds set by `--bound`, `--spurious` and `--faults`.
    WITH = " with at most {most}";
    /// `{choose}`: without `--inputs`.
    CHOOSE_INPUTS = ", with the inputs that the program gives (--inputs chooses others)";
    /// `{inputs}`: `--inputs`.
    FOR_ANY_INPUT = " and for any input";
    /// `{within}`: `--focus`, `--no-preempt` or the program itself limits where threads are preempted.
    WITHIN_SCOPE = " within the scope";
    /// `{without}`: a wait had a deadline further away than `--timeouts`.
    WITHOUT_FAR = " without time-outs beyond {limit}";
    /// `{without}`: a timer did not fire while a thread could run.
    WITHOUT_EARLY = " without timers that fire early";
    /// `{if}`: dpor treats accesses that it does not see as independent.
    IF_PROTECTED = " if locks protect what threads share";
    /// `{except}`: there is a caveat that no other limit names.
    EXCEPT_LISTED = ", except as listed below";
    /// `{or}`: there is a caveat.
    OR_LISTED = ", or what is listed below";
    /// At the end of the claim: the number of data races that are not reported.
    RACES = "; {races} (--races lists them)";
}

sentences! {
    /// The caveats other than notes of executions: what was not explored or not controlled.
    CAVEATS:
    /// No code is instrumented, and none is patched.
    CALLS_ONLY = "memory accesses: not explored, as the program is not instrumented; only synchronisation calls are scheduling points (heisen cc, heisen c++ or cargo heisen instruments it)";
    /// No code is instrumented, but some is patched.
    PATCHED_ONLY = "memory accesses: plain and atomic loads and stores were not explored, as the program is not instrumented; besides calls, only patched atomic instructions are scheduling points: {patched} (heisen cc, heisen c++ or cargo heisen instruments it)";
    /// `--races=off` is given.
    ATOMICS_ONLY = "plain memory accesses: not explored, as the race check is off (leave out --races=off)";
    /// The search stopped while accesses could still become scheduling points.
    STOPPED_EARLY = "memory accesses: the search stopped early, so accesses that it has not yet seen in conflict were not explored (raise --time or --executions)";
    /// Some code is instrumented, but not the code named here.
    PARTLY_INSTRUMENTED = "not instrumented, so accesses there were not explored: {code}{how}";
    /// The user asked for races, but the program is not instrumented.
    NO_RACES = "data races: not looked for, as the program is not instrumented (heisen cc, heisen c++ or cargo heisen instruments it)";
    /// There are too many races to list.
    MORE_RACES = "data races: {listed} are listed, and {more} more pairs of accesses race (fix or suppress some)";
    /// `--focus` or `--no-preempt` is given.
    OUT_OF_SCOPE = "preemptions at calls {where}: not explored (change --focus or --no-preempt)";
    /// `--at-ready` is given.
    BEFORE_READY = "code before heisen_ready: it ran once, under the default schedule (leave out --at-ready)";
    /// The program differs from run to run, so dpor does not apply.
    DPOR_UNFIT = "dpor does not fit this program: the same steps touched different objects in different executions (use --strategy icb or dfs)";
    /// dpor explores only the beginning of long executions.
    DPOR_CUT = "long executions: dpor explored only the first {events} events of {executions} (use --strategy icb, or make the test shorter)";
    /// The solver-driven search knows that it may have missed something.
    NOT_EXACT = "paths may be missing: {reason}";
    /// The search does not choose inputs.
    INPUTS_KEPT = "inputs keep the values that the program gives them (--inputs explores others)";
    /// Executions did not follow their plan.
    DIVERGED = "{executions} diverged from {their} plan{why}";
    /// Failures did not recur in a replay.
    UNCONFIRMED = "{executions} failed, but not again when replayed, and {are} not reported{why}";
    /// Executions went beyond `--steps`, and are not known to be livelocks.
    TOO_LONG = "too long: {executions} not explored beyond {steps} steps (raise --steps, or give the program less to do)";
    /// A thread computed for long without a scheduling point, and then went on.
    COMPUTED = "an execution computed for more than {seconds} s without a scheduling point, in {place}, and went on (if it waits there for another thread, let the loop yield)";
    /// `--time` ended before a replay could confirm a failure.
    NO_TIME_TO_CONFIRM = "{executions} failed ({seemed}), but --time was over before a replay confirmed it (raise --time)";
    /// The check was interrupted before a replay could confirm a failure.
    NOT_CONFIRMED = "{executions} failed ({seemed}), but the check was interrupted before a replay confirmed it (resume the check)";
    /// Executions were still running when `--time` ended.
    CUT = "{executions} still ran when --time was over (raise --time, or give the program less to do)";
    /// The program waits for input from outside, such as a server without a client.
    AWAITED = "the program waits for someone outside, which is not a deadlock: {awaited}{silence} (run a client beside the check with --jobs 1, or start one with --before)";
    /// The program takes longer to start than `--time` allows.
    NO_TIME = "--time was over before an execution began (raise --time)";
    /// Something outside killed the zygote.
    LOST = "the parked program was killed {times} by something outside; no execution is missing";
    /// `--time` ended a sampler.
    OUT_OF_TIME = "--time ended the search after {executions}, so another run may have more or fewer (--executions fixes their number)";
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
    fn no_sentence_stands_twice() {
        let all: Vec<Sentence> = [CLAIMS, LIMITS, CAVEATS].concat();
        for (number, sentence) in all.iter().enumerate() {
            assert!(!all[..number].contains(sentence), "{sentence:?} is there twice");
        }
    }
}
