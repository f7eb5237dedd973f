//! Runs executions under a script: the program and the script take turns, by a word of their own in the wire.

use super::{Waited, Zygote};
use crate::error::{Error, Result};
use crate::platform::sys;
use crate::process::exit_status::describe_status;
use crate::process::slots;
use crate::process::slots::{Detail, Job, Run};
use heisen_trace::{Op, Plan, Policy, Schedule};
use heisen_wire::script::{Script, turn as script_turn};
use heisen_wire::{MAX_SLOTS, MAX_THREADS, flag, turn};
use std::sync::atomic::{Ordering::Relaxed, Ordering::SeqCst};
use std::time::{Duration, Instant};

/// How long to poll before waiting in the kernel: most answers come at once.
const LOOK: Duration = Duration::from_micros(30);

/// The outcome of letting a program go on.
#[derive(Debug)]
pub enum NextStop {
    /// The program has an answer for the script, and waits for the next command.
    Answer,
    /// The execution has ended.
    End(Box<Run>),
    /// Neither happened in time.
    Late,
}

impl Zygote {
    /// The part of the wire in which the script and the program talk.
    pub fn script(&self) -> &Script {
        &self.wire().script
    }

    /// Whether the program has instrumented code.
    pub fn is_instrumented(&self) -> bool {
        self.wire().instrumented.load(Relaxed) != 0
    }

    /// The threads as of the program's last stop: number, and one of `heisen_wire::state`.
    pub fn threads(&self) -> impl Iterator<Item = (usize, u32)> + '_ {
        let number = self.wire().slot.load(SeqCst) as usize % MAX_SLOTS;
        let count = self.wire().slots[number].report.threads.load(Relaxed) as usize;
        let threads = self.wire().threads[..count.min(MAX_THREADS)].iter();
        threads.map(|thread| thread.state.load(Relaxed)).enumerate()
    }

    /// The operation that a thread was about to perform, its object, and its code address.
    pub fn thread(&self, number: usize) -> (Option<Op>, u64, u64) {
        let thread = &self.wire().threads[number];
        let op = Op::from_code(thread.op.load(Relaxed) as u8);
        (op, thread.object.load(Relaxed), thread.pc.load(Relaxed))
    }

    /// A hash of all steps so far, equal for equivalent executions.
    pub fn graph(&self) -> u64 {
        self.wire().slots[self.wire().slot.load(SeqCst) as usize % MAX_SLOTS].report.graph.load(Relaxed)
    }

    /// The process of the current execution.
    pub fn execution(&self) -> i32 {
        self.wire().child.load(SeqCst) as i32
    }

    /// Begins an execution and runs it until it asks for the first command. It follows the schedule, if one
    /// is given, as long as no thread is held. If `states` is set, [`Zygote::graph`] distinguishes its
    /// states.
    pub fn begin_script(&mut self, follows: Option<&Schedule>, states: bool) -> Result<NextStop> {
        let script = self.script();
        script.turn.store(script_turn::PROGRAM, SeqCst);
        for set in [&script.release, &script.select, &script.known, &script.held] {
            set.iter().for_each(|word| word.store(0, Relaxed));
        }
        script.events.store(0, Relaxed);
        script.promised.store(0, Relaxed);
        let plan = Plan::new(Policy::Default);
        let flags = flag::SCRIPT | if states { flag::STATES } else { 0 };
        let job = follows.map_or(Job::Plan(&plan), Job::Schedule);
        self.begin(&[job], Detail::End, flags)?;
        self.come()
    }

    /// Lets the program go on with the command in the wire, for at most `limit`.
    pub fn go_on(&mut self, limit: Option<Duration>) -> Result<NextStop> {
        let script = self.script();
        script.turn.store(script_turn::PROGRAM, SeqCst);
        sys::futex_wake(&script.turn);
        let since = Instant::now();
        let deadline = limit.map(|limit| since + limit);
        while script.turn.load(SeqCst) == script_turn::PROGRAM && since.elapsed() < LOOK {
            std::hint::spin_loop();
        }
        self.deadline = deadline;
        let came = self.come();
        self.deadline = None;
        came
    }

    /// Ends the execution, wherever it is.
    pub fn abandon(&mut self) {
        self.kill_execution();
        self.script().turn.store(script_turn::PROGRAM, SeqCst);
    }

    fn come(&mut self) -> Result<NextStop> {
        match self.wait(turn::ZYGOTE, None) {
            Waited::Asked => Ok(NextStop::Answer),
            Waited::Late => Ok(NextStop::Late),
            Waited::Parked => Ok(NextStop::End(Box::new(slots::read_run(self.wire(), 0, false)?))),
            Waited::Stuck => {
                self.kill_execution();
                Ok(NextStop::End(Box::new(slots::read_run(self.wire(), 0, true)?)))
            }
            Waited::Over(why) => {
                self.kill_execution();
                Err(why)
            }
            Waited::Gone(status) => {
                self.gone = true;
                let how = describe_status(status);
                Err(Error::Uncontrolled(format!("the parked program is gone ({how})")))
            }
        }
    }
}
