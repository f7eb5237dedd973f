//! Describes in words what an execution under a script has done.

use crate::event::Event;
use crate::run::{Run, What};
use crate::subject::Subject;
use crate::threads::Threads;
use heisen_trace::Op;
use heisen_wire::script::kind;
use heisen_wire::state;

impl Run {
    /// The place of an event in the source.
    pub fn place(&mut self, event: &Event) -> Option<(String, Option<u32>)> {
        let pc = event.pc;
        let frames = self.view(Some(event)).ok()?.frame_at(pc, true);
        // The program's own frame, rather than that of an inlined library function.
        let own = frames.iter().position(|frame| frame.own).unwrap_or(0);
        let frame = frames.into_iter().nth(own)?;
        Some((frame.file.unwrap_or(frame.function), frame.line))
    }

    /// The commands that were done, in words, with the lines of the script.
    pub fn tell(&mut self) -> Vec<(Option<usize>, String)> {
        let trail = self.trail.clone();
        let mut tell = |what: &What| match what {
            What::Event(event) => format!("{} {}", self.who(event), self.describe(event)),
            What::Said(text) => text.clone(),
        };
        trail.iter().map(|done| (done.line, tell(&done.what))).collect()
    }

    /// An event in words.
    pub fn describe(&mut self, event: &Event) -> String {
        let object = (event.address != 0)
            .then(|| self.view(Some(event)).ok()?.object_name(event.address))
            .flatten()
            .unwrap_or_else(|| format!("{:#x}", event.address));
        let what = match event.kind {
            kind::READ => format!("is about to read {object}"),
            kind::WRITE => format!("is about to write {object}"),
            kind::ENTER => format!("enters {}", self.name(event.number as usize)),
            kind::RETURN => format!("is about to return from {}", self.name(event.number as usize)),
            kind::CALL => match self.view(Some(event)).ok().map(|mut view| view.frame_at(event.pc, true)) {
                Some(frames) if !frames.is_empty() => format!("enters {}", frames[0].function),
                _ => "enters a function".to_owned(),
            },
            kind::POINT => format!("is at control point {}", event.number),
            kind::START => "starts".to_owned(),
            kind::END => return "has ended".to_owned(),
            kind::TEST_START => "starts the test".to_owned(),
            kind::TEST_END => "ends the test".to_owned(),
            kind::LINE => format!("is at {}", self.name(event.number as usize)),
            _ if event.address == 0 => format!("is about to {}", event.op.map_or("go on", Op::name)),
            _ => format!("is about to {} {object}", event.op.map_or("use", Op::name)),
        };
        match self.place(event) {
            Some((file, Some(line))) => format!("{what} ({file}:{line})"),
            _ => what,
        }
    }

    /// The thread of an event, with its program if there are several.
    fn who(&self, event: &Event) -> String {
        match &self.subject {
            Subject::System(system) if system.programs() > 1 => {
                format!("T{} of {}", event.thread, system.names().nth(event.program).unwrap_or("?"))
            }
            _ => format!("T{}", event.thread),
        }
    }

    /// Where the known threads are, as far as that is known of threads that run in parallel.
    pub(crate) fn whereabouts(&mut self) -> String {
        let Subject::System(system) = &self.subject else { return String::new() };
        let held = system.held();
        let known: Vec<usize> =
            self.known.iter().copied().filter(|thread| !system.has_ended(*thread)).collect();
        let running: Vec<(usize, String)> =
            known.iter().map(|thread| (*thread, system.whereabouts(*thread))).collect();
        let mut parts = Vec::new();
        for (thread, place) in running {
            let event = self.subject.at(thread);
            let who = self.who(&event);
            parts.push(match held.contains(&thread) {
                true => format!("{who} is held, as it {}", self.describe(&event)),
                false => format!("{who} {place}"),
            });
        }
        if parts.is_empty() { String::new() } else { format!(": {}", parts.join("; ")) }
    }

    /// Why no thread is enabled.
    pub(crate) fn why_nobody(&mut self, wanted: &Threads) -> String {
        let held = self.subject.held();
        let Subject::Unit(zygote, _) = &self.subject else { return String::new() };
        let threads: Vec<_> =
            zygote.threads().map(|(thread, told)| (thread, told, zygote.thread(thread))).collect();
        let mut parts = Vec::new();
        for (thread, told, (op, object, pc)) in threads {
            if told == state::ENDED {
                continue;
            }
            if held.contains(&thread) {
                let event = self.subject.at(thread);
                let what = self.describe(&event);
                parts.push((!wanted.has(thread), format!("T{thread} is held, as it {what}")));
            } else {
                let name = self.view(None).ok().and_then(|view| view.object_name(object));
                let name = name.map_or(String::new(), |name| format!(" of {name}"));
                let place = self.view(None).ok().and_then(|mut view| {
                    view.frame_at(pc, true).into_iter().find(|frame| frame.own).map(|frame| frame.place())
                });
                let place = place.map_or(String::new(), |place| format!(" ({place})"));
                parts.push((
                    !wanted.has(thread),
                    format!("T{thread} waits in {}{name}{place}", op.map_or("?", Op::name)),
                ));
            }
        }
        parts.sort();
        let parts: Vec<String> = parts.into_iter().map(|(_, part)| part).collect();
        format!("no thread can go on: {}", parts.join("; "))
    }
}
