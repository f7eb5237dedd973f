//! Inspects small real programs. Each test compiles its program, runs it until it stops itself, and kills it
//! afterwards.

mod broken;
mod objects;
mod stacks;

use super::{Registers, Symbols, View};
use heisen_trace::{Frame, Stack};
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// A directory with a compiled program; it is removed at the end.
struct Built {
    directory: TempDir,
    source: String,
    program: PathBuf,
}

impl Built {
    /// Compiles one source file. The suffix of its name selects the compiler.
    fn new(name: &str, source: &str, flags: &[&str]) -> Built {
        let directory = tempfile::tempdir().unwrap();
        let built = Built { program: directory.path().join("program"), directory, source: source.to_owned() };
        fs::write(built.path(name), source).unwrap();
        let compiler = match Path::new(name).extension().and_then(|e| e.to_str()) {
            Some("c") => "gcc",
            Some("cc") => "g++",
            Some("rs") => "rustc",
            _ => panic!("no compiler for {name}"),
        };
        let mut arguments = vec![name, "-o", "program"];
        arguments.extend(flags);
        built.run(compiler, &arguments);
        built
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Runs a tool in the directory.
    fn run(&self, tool: &str, arguments: &[&str]) {
        let output = Command::new(tool).args(arguments).current_dir(self.directory.path()).output().unwrap();
        assert!(output.status.success(), "{tool}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// The source line that contains a text.
    fn line(&self, text: &str) -> Option<u32> {
        let index = self.source.lines().position(|line| line.contains(text));
        Some(index.unwrap_or_else(|| panic!("no line with {text}")) as u32 + 1)
    }

    /// Starts the program and waits until it stops.
    fn stop(&self) -> Stopped {
        Stopped::new(&self.program)
    }
}

/// A stopped program; it is killed at the end.
struct Stopped {
    child: Child,
    registers: Registers,
}

impl Stopped {
    /// Runs a program until its first signal, which it sends to itself or raises by a fault.
    fn new(program: &Path) -> Stopped {
        let mut command = Command::new(program);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        // SAFETY: one system call, which is allowed between fork and exec.
        unsafe {
            command.pre_exec(|| {
                libc::ptrace(libc::PTRACE_TRACEME);
                Ok(())
            })
        };
        let child = command.spawn().unwrap();
        let mut stopped = Stopped { child, registers: Registers::default() };
        // The first stop is the start of the program.
        stopped.wait();
        stopped.go_on(0);
        stopped
    }

    /// Delivers a signal, or no signal if it is 0, and runs the program until its next one.
    fn go_on(&mut self, signal: i32) {
        // SAFETY: a system call on a process that is traced by this thread and stopped.
        let resumed = unsafe { libc::ptrace(libc::PTRACE_CONT, self.pid(), 0, signal) };
        assert_eq!(resumed, 0);
        self.wait();
        // SAFETY: plain numbers, for which zero is a value.
        let mut user: libc::user_regs_struct = unsafe { std::mem::zeroed() };
        // SAFETY: as above, with room for all registers.
        let read = unsafe { libc::ptrace(libc::PTRACE_GETREGS, self.pid(), 0, &mut user) };
        assert_eq!(read, 0);
        let libc::user_regs_struct { rip, rsp, rbp, rbx, r12, r13, r14, r15, .. } = user;
        self.registers = Registers { rip, rsp, rbp, rbx, r12, r13, r14, r15 };
    }

    fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    fn wait(&self) {
        let mut status = 0;
        // SAFETY: waits for a child that has not been waited for.
        let waited = unsafe { libc::waitpid(self.pid(), &mut status, 0) };
        assert!(waited == self.pid() && libc::WIFSTOPPED(status), "the program ended: {status:#x}");
    }

    fn stack(&self, symbols: &mut Symbols) -> Stack {
        View::new(symbols, self.pid()).unwrap().stack(self.registers)
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The program's own functions on a stack, innermost first.
fn own(stack: &Stack) -> Vec<&str> {
    stack.0.iter().filter(|f| f.own).map(|f| f.function.as_str()).collect()
}

/// The frame of a function.
fn frame<'s>(stack: &'s Stack, function: &str) -> &'s Frame {
    let found = stack.0.iter().find(|f| f.function == function);
    found.unwrap_or_else(|| panic!("no {function} in {stack:#?}"))
}
