//! `heisen script --from`: a script from a finding.

use crate::args::ScriptArgs;
use crate::check::check_file;
use crate::paint::{count, print};
use crate::{exit, replay, show};
use heisen_engine::confirm::Camera;
use heisen_engine::saved::write_whole;
use heisen_engine::slot::Job;
use heisen_engine::zygote::Output;
use heisen_engine::{Error, stdin, unpack};
use heisen_script::generate::Draft;
use heisen_script::oracle::Order;
use heisen_script::script::Script;
use heisen_script::source::Source;
use heisen_script::test::{Target, Test};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// So often a script that was made must fail, in a row.
const RUNS: usize = 100;

/// Writes a script that leads to the bug of a schedule.
pub fn run(args: &ScriptArgs, path: &Path, stop: Arc<AtomicBool>) -> Result<u8, Error> {
    if let Some(file) = &args.output {
        check_file("-o", file)?;
    }
    let mut schedule = show::read(path)?;
    let mut program = replay::find_program(&schedule)?;
    stdin::fetch(&mut schedule.world, path)?;
    program.at_ready = schedule.at_ready;
    let mut limits = replay::limits(&schedule, path, args.hang, stop)?;
    let runtime = unpack::runtime()?;
    let camera = Camera {
        runtime: &runtime,
        program: &program,
        limits: &limits,
        expect_exit: schedule.expect_exit,
        output: Output::Dropped,
        trace: true,
    };
    let closeup = camera.shoot(Job::Schedule(&schedule))?;
    let Some(verdict) = closeup.verdict.filter(|_| closeup.run.execution.diverged.is_none()) else {
        return Err(Error::Input(format!(
            "{} does not lead to a bug any more; heisen replay tells where it diverges",
            path.display()
        )));
    };
    limits.world.accesses.check = false;
    let test = |text: &str, times: usize| {
        let source = Source::new(text);
        let test = Test {
            script: Script::Text(&source),
            runtime: &runtime,
            target: Target::Unit(&program),
            limits: limits.clone(),
            expected: schedule.expect_exit,
            order: Order::Depth,
            choices: Some(Vec::new()),
            reduce: false,
            executions: None,
            time: None,
        };
        test.fails(times, &verdict)
    };
    let mut made = None;
    for main in [false, true] {
        made = Draft::strengthen(&closeup.trace, &closeup.threads, main).weaken(&mut |text| test(text, 1))?;
        if made.is_some() {
            break;
        }
    }
    let text = made.map(|draft| draft.text()).filter(|text| matches!(test(text, RUNS), Ok(true)));
    let Some(text) = text else {
        return Err(Error::Uncontrolled(format!(
            "no script leads to the bug of {}: it depends on more than the order of events that a script can name",
            path.display()
        )));
    };
    let text = format!("// {}: {}\n{text}", verdict.kind, verdict.message.lines().next().unwrap_or_default());
    match &args.output {
        None => print(&text, false),
        Some(file) => {
            write_whole(file, text.as_bytes())
                .map_err(|e| Error::Input(format!("{} cannot be written: {e}", file.display())))?;
            if !args.quiet {
                let lines = count(text.lines().count() as u64, "line");
                print(&format!("{}: {lines}; fails in {RUNS} runs of {RUNS}\n", file.display()), false);
            }
        }
    }
    Ok(exit::CLEAN)
}
