//! Renders the result of `heisen script` as text or JSON.

use crate::cli::args::ScriptArgs;
use crate::render::paint::count;
use heisen_script::script::Script;
use heisen_script::test::{Found, Outcome, TrailLine};
use serde_json::json;

/// The steps of a script, one line each, with the place in the script before each.
fn lines(script: &Script<'_>, trail: &[TrailLine]) -> String {
    let place = |line: &Option<usize>| match (script, line) {
        (Script::Text(_), Some(line)) => format!("line {line:>3}:"),
        (Script::Remote(_), Some(line)) => format!("{}:", script.place(*line)),
        (_, None) => String::new(),
    };
    let places: Vec<String> = trail.iter().map(|(line, _)| place(line)).collect();
    let width = places.iter().map(String::len).fold("line   1:".len(), usize::max);
    let line = |(place, (_, what)): (&String, &TrailLine)| format!("  {place:width$} {what}\n");
    places.iter().zip(trail).map(line).collect()
}

/// How many steps of a failed script are shown: the last ones.
const SHOWN: usize = 20;

/// The result as text.
pub fn report(args: &ScriptArgs, script: &Script<'_>, outcome: &Outcome) -> String {
    let mut out = String::new();
    let schedules = count(outcome.executions, "schedule");
    match (&outcome.found, &outcome.exists) {
        (Some(found), _) => out.push_str(&report_found(args, script, found, outcome)),
        (None, Some(Some(trail))) => {
            out.push_str(&format!(
                "exists: the script was followed to its end, in schedule {}\n",
                outcome.executions
            ));
            out.push_str(&lines(script, trail));
        }
        (None, Some(None)) => out.push_str("no schedule follows the script to its end\n"),
        (None, None) if outcome.executions == 0 => {
            out.push_str("no schedule follows the script to its end, so nothing was tested\n");
        }
        (None, None) if outcome.complete && outcome.executions == 1 => {
            out.push_str("ok: no bug in the only schedule of the script\n");
        }
        (None, None) if outcome.complete => {
            out.push_str(&format!("ok: no bug in all {schedules} of the script\n"))
        }
        (None, None) => out.push_str(&format!("nothing found: no bug in {schedules} of the script\n")),
    }
    if outcome.infeasible > 0 {
        let ran = count(outcome.infeasible, "execution");
        out.push_str(&format!("{ran} could not follow the script"));
        if let Some((why, line)) = &outcome.why {
            let line = line.map_or(String::new(), |line| format!("{}: ", script.place(line)));
            out.push_str(&format!("; the last: {line}{why}"));
        }
        out.push('\n');
    }
    if outcome.covered > 0 {
        let ran = count(outcome.covered, "execution");
        out.push_str(&format!("{ran} cut, as other executions explored what follows\n"));
    }
    if outcome.assumed > 0 {
        let ran = count(outcome.assumed, "execution");
        out.push_str(&format!("{ran} excluded by an assumption of the script\n"));
    }
    if outcome.diverged > 0 {
        let choices = count(outcome.diverged, "choice");
        let why =
            if args.choices.is_some() { "the program offers fewer" } else { "something is not controlled" };
        out.push_str(&format!("{choices} could not be taken: {why}\n"));
    }
    let events = count(outcome.events, "event");
    out.push_str(&format!("{events}, {:.2} s\n", outcome.time.as_secs_f64()));
    out
}

fn report_found(args: &ScriptArgs, script: &Script<'_>, found: &Found, outcome: &Outcome) -> String {
    let mut out = format!("{}: {}\n", found.verdict.kind, found.verdict.message);
    let place = match found.line {
        Some(line) => format!("while the script was in {}", script.place(line)),
        None => "after the end of the script".to_owned(),
    };
    out.push_str(&format!("in schedule {} of the script, {place}\n", outcome.executions));
    if found.trail.len() > SHOWN {
        out.push_str(&format!("  ({} before)\n", count((found.trail.len() - SHOWN) as u64, "step")));
    }
    out.push_str(&lines(script, &found.trail[found.trail.len().saturating_sub(SHOWN)..]));
    let choices: Vec<String> = found.choices.iter().map(usize::to_string).collect();
    let choices = choices.join(",");
    let again = match &args.script {
        _ if choices.is_empty() => "every run of the script".to_owned(),
        Some(file) => format!("heisen script --choices {choices} {} …", file.display()),
        None => format!("#[heisen::test(choices = \"{choices}\", script = …)]"),
    };
    if found.repeats {
        out.push_str(&format!("replays: {again}\n"));
    } else {
        out.push_str("it did not fail again with the same choices: something is not controlled\n");
    }
    out
}

/// The result as JSON.
pub fn to_json(outcome: &Outcome) -> serde_json::Value {
    let trail = |trail: &[TrailLine]| -> serde_json::Value {
        trail.iter().map(|(line, what)| json!({ "line": line, "what": what })).collect()
    };
    json!({
        "executions": outcome.executions,
        "infeasible": outcome.infeasible,
        "why": outcome.why.as_ref().map(|(why, line)| json!({ "line": line, "what": why })),
        "assumed": outcome.assumed,
        "covered": outcome.covered,
        "complete": outcome.complete,
        "diverged": outcome.diverged,
        "events": outcome.events,
        "seconds": outcome.time.as_secs_f64(),
        "exists": outcome.exists.as_ref().map(|found| found.as_ref().map(|t| trail(t))),
        "found": outcome.found.as_ref().map(|found| json!({
            "kind": found.verdict.kind.to_string(),
            "message": found.verdict.message,
            "line": found.line,
            "choices": found.choices,
            "repeats": found.repeats,
            "trail": trail(&found.trail),
        })),
    })
}
