//! Instruments every memory access of a program in LLVM bitcode, and writes an object file.
//!
//! These are the steps of a compiler with `-fsanitize=thread`, at the same point: after optimisation.

use crate::Error;
use crate::library::{Library, RawMachine, RawTarget, RawValue};
use crate::module::{Module, c_path};
use std::ffi::CStr;
use std::path::Path;
use std::ptr::null_mut;
use std::sync::Once;

/// Without this option a read is not instrumented if the same location is written afterwards.
const OPTIONS: [&CStr; 2] = [
    c"-tsan-instrument-read-before-write=1",
    // Only small functions are inlined, because code grows some eightfold by instrumentation.
    c"-inline-threshold=40",
];

/// The pass instruments only functions with this attribute.
const ATTRIBUTE: &str = "sanitize_thread";

/// Calls `__tsan_init` when the program is loaded. The pass `tsan-module` would make a constructor that LLVM
/// puts into `.ctors` by default, and the C interface cannot change that. Some linkers drop `.ctors`.
const CONSTRUCTOR: &str =
    ".pushsection .init_array, \"aw\", @init_array\n.p2align 3\n.quad __tsan_init\n.popsection\n";

/// Sets the options and initialises the target, once in a process.
static PREPARED: Once = Once::new();

/// Instruments the optimised bitcode in the file `bitcode`, and writes the object file `object`.
pub fn instrument(library: &Library, bitcode: &Path, object: &Path) -> Result<(), Error> {
    prepare_library(library);
    let module = Module::read(library, bitcode)?;
    let machine = Machine::new(&module)?;
    // Most of the standard library is unused.
    machine.run(&module, c"globaldce")?;
    add_tsan(&module, &machine, |_| true)?;
    machine.write(&module, object)
}

/// Sets options and initialises the target, if nobody has yet.
pub(crate) fn prepare_library(library: &Library) {
    let functions = &library.functions;
    PREPARED.call_once(|| {
        library.set_options(&OPTIONS);
        // SAFETY: they have no arguments, and are called once.
        unsafe {
            (functions.LLVMInitializeX86TargetInfo)();
            (functions.LLVMInitializeX86Target)();
            (functions.LLVMInitializeX86TargetMC)();
            (functions.LLVMInitializeX86AsmPrinter)();
            (functions.LLVMInitializeX86AsmParser)();
        }
    });
}

/// Adds the calls at the accesses of some functions, and the constructor.
pub(crate) fn add_tsan(
    module: &Module<'_>,
    machine: &Machine<'_>,
    wanted: impl Fn(*mut RawValue) -> bool,
) -> Result<(), Error> {
    let functions = &module.library.functions;
    // SAFETY: the name is as long as said; the context is there.
    let attribute = unsafe {
        let kind = (functions.LLVMGetEnumAttributeKindForName)(ATTRIBUTE.as_ptr().cast(), ATTRIBUTE.len());
        (functions.LLVMCreateEnumAttribute)(module.context, kind, 0)
    };
    const FUNCTION: u32 = u32::MAX;
    for function in module.bodies().filter(|&function| wanted(function)) {
        // SAFETY: function and attribute are of the same context.
        unsafe { (functions.LLVMAddAttributeAtIndex)(function, FUNCTION, attribute) };
    }
    machine.run(module, c"function(tsan)")?;
    module.append_assembly(CONSTRUCTOR);
    Ok(())
}

/// The code generator for the target of a module.
#[derive(Debug)]
pub(crate) struct Machine<'a> {
    library: &'a Library,
    raw: *mut RawMachine,
}

impl<'a> Machine<'a> {
    pub(crate) fn new(module: &Module<'a>) -> Result<Machine<'a>, Error> {
        /// Some optimisation of the code, which saves more time in executions than it costs here.
        const LESS: u32 = 1;
        /// Position-independent code suits every kind of executable.
        const POSITION_INDEPENDENT: u32 = 2;
        const DEFAULT_MODEL: u32 = 0;
        let library = module.library;
        let triple = module.target();
        let mut target: *mut RawTarget = null_mut();
        let mut text = null_mut();
        let find = library.functions.LLVMGetTargetFromTriple;
        // SAFETY: the name ends with a zero; the places for results are there.
        let failed = unsafe { find(triple.as_ptr(), &mut target, &mut text) };
        if failed != 0 {
            // SAFETY: the message is LLVM's, and ours now.
            return Err(Error(unsafe { library.message(text) }));
        }
        // SAFETY: the target is there, and all names end with zeros. Processor and features of each function are told by
        // its attributes.
        let raw = unsafe {
            (library.functions.LLVMCreateTargetMachine)(
                target,
                triple.as_ptr(),
                c"x86-64".as_ptr(),
                c"".as_ptr(),
                LESS,
                POSITION_INDEPENDENT,
                DEFAULT_MODEL,
            )
        };
        if raw.is_null() {
            return Err(Error(format!("LLVM cannot make code for {}", triple.to_string_lossy())));
        }
        Ok(Machine { library, raw })
    }

    /// Runs passes.
    pub(crate) fn run(&self, module: &Module<'_>, passes: &CStr) -> Result<(), Error> {
        let functions = &self.library.functions;
        // SAFETY: module, machine and options are there; the names of passes end with a zero.
        let error = unsafe {
            let options = (functions.LLVMCreatePassBuilderOptions)();
            (functions.LLVMPassBuilderOptionsSetLoopVectorization)(options, 0);
            (functions.LLVMPassBuilderOptionsSetSLPVectorization)(options, 0);
            (functions.LLVMPassBuilderOptionsSetLoopInterleaving)(options, 0);
            let error = (functions.LLVMRunPasses)(module.raw, passes.as_ptr(), self.raw, options);
            (functions.LLVMDisposePassBuilderOptions)(options);
            error
        };
        if error.is_null() {
            return Ok(());
        }
        // SAFETY: the error is there and is used up; its message ends with a zero and is disposed of when copied.
        let text = unsafe {
            let message = (functions.LLVMGetErrorMessage)(error);
            let text = CStr::from_ptr(message).to_string_lossy().into_owned();
            (functions.LLVMDisposeErrorMessage)(message);
            text
        };
        Err(Error(format!("LLVM's {} failed: {text}", passes.to_string_lossy())))
    }

    /// Writes an object file.
    pub(crate) fn write(&self, module: &Module<'_>, path: &Path) -> Result<(), Error> {
        const OBJECT: u32 = 1;
        let name = c_path(path)?;
        let mut text = null_mut();
        // SAFETY: machine and module are there; the name ends with a zero; the place for the message is there.
        let failed = unsafe {
            (self.library.functions.LLVMTargetMachineEmitToFile)(
                self.raw,
                module.raw,
                name.as_ptr(),
                OBJECT,
                &mut text,
            )
        };
        if failed != 0 {
            // SAFETY: the message is LLVM's, and ours now.
            let reason = unsafe { self.library.message(text) };
            return Err(Error(format!("{} cannot be written: {reason}", path.display())));
        }
        Ok(())
    }
}

impl Drop for Machine<'_> {
    fn drop(&mut self) {
        // SAFETY: it is ours and not used any more.
        unsafe { (self.library.functions.LLVMDisposeTargetMachine)(self.raw) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::library;
    use std::process::Command;

    /// The compiler's, which is there: it has compiled this test.
    fn library() -> Library {
        let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        Library::open(&library::find(&rustc).expect("found")).expect("loaded")
    }

    #[test]
    fn the_object_calls_at_accesses() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = |name: &str| directory.path().join(name);
        std::fs::write(path("a.rs"), "#[no_mangle] pub fn add(a: &mut u32) { *a += 1 }").expect("a source");
        let rustc = Command::new("rustc")
            .current_dir(directory.path())
            .args(["--crate-type=lib", "--emit=llvm-bc", "-Copt-level=1", "a.rs"])
            .status();
        assert!(rustc.is_ok_and(|status| status.success()));
        let library = library();
        instrument(&library, &path("a.bc"), &path("a.o")).expect("instrumented");
        let bytes = std::fs::read(path("a.o")).expect("an object");
        let has = |name: &str| bytes.windows(name.len()).any(|window| window == name.as_bytes());
        for name in ["add", "__tsan_read4", "__tsan_write4", "__tsan_func_entry", "__tsan_init"] {
            assert!(has(name), "{name} is not in the object");
        }

        // Errors are returned; none of them ends the process.
        std::fs::write(path("bad.bc"), "BC\u{0}\u{0}").expect("a file");
        let bad = instrument(&library, &path("bad.bc"), &path("bad.o")).expect_err("no bitcode");
        assert!(bad.0.contains("bad.bc is no bitcode: "), "{bad}");
        let missing = instrument(&library, &path("none.bc"), &path("bad.o")).expect_err("nothing there");
        assert!(missing.0.contains("none.bc: "), "{missing}");
        let nowhere = instrument(&library, &path("a.bc"), &path("none/a.o")).expect_err("no directory");
        assert!(nowhere.0.contains("none/a.o cannot be written: "), "{nowhere}");
    }
}
