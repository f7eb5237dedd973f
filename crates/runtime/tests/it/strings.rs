//! Tests that the C library functions that copy, fill and compare memory work as they do without Heisen. They
//! work from the first moment of a process, with instrumented and uninstrumented callers. `races.rs` and
//! `memory.rs` of the engine tests check which accesses Heisen sees.

use heisen_testkit::{Sandbox, run};
use std::path::{Path, PathBuf};
use std::process::Command;

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/strings").join(name)
}

#[test]
fn same_results_as_natively() {
    let here = Sandbox::new();
    // The calls go through the global offset table, whose entries are set before the resolvers run.
    let library = ["-w", "-O1", "-fno-builtin", "-fno-plt", "-shared", "-fPIC"];
    run(Command::new("cc").args(library).arg(source("early.c")).arg("-o").arg(here.path("libearly.so")))
        .expect(0);
    let build = |command: &mut Command, flags: &[&str], name: &str| {
        let directory = here.path("");
        command.arg("-w").args(flags).arg(source("rules.c")).arg("-o").arg(here.path(name));
        run(command.arg("-L").arg(directory).args(["-learly", "-Wl,-rpath,$ORIGIN"])).expect(0);
        here.path(name).to_str().expect("a plain path").to_owned()
    };
    let plain = build(&mut Command::new("cc"), &["-fno-builtin"], "plain");
    let mut programs = vec![(plain.clone(), "off"), (plain.clone(), "on")];
    for compiler in ["gcc", "clang"] {
        if Command::new(compiler).arg("--version").output().is_err() {
            eprintln!("{compiler} is not installed: not tried");
            continue;
        }
        for optimisation in ["-O0", "-O2"] {
            let mut command = here.command(&["cc"]);
            let name = format!("{compiler}{optimisation}");
            let program = build(command.env("HEISEN_CC", compiler), &[optimisation], &name);
            programs.extend([(program.clone(), "on"), (program, "off")]);
        }
    }
    let native = run(&mut Command::new(&plain)).expect(0).out;
    assert!(native.ends_with("\n1 1\n1 1\n"), "{native}");
    for (program, heap) in programs {
        assert_eq!(run(&mut Command::new(&program)).expect(0).out, native, "{program}");
        for races in ["report", "off"] {
            let races = format!("--races={races}");
            let args =
                ["check", "-q", "--executions", "1", &races, "--heap", heap, "--", &program, "out.txt"];
            here.heisen(&args).expect(0);
            let out = std::fs::read_to_string(here.path("out.txt")).expect("the output");
            assert_eq!(out, native, "{program} {heap} {races}");
        }
    }
}
