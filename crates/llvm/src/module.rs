//! A module of bitcode, in its own context.

use crate::Error;
use crate::library::{Library, RawBuffer, RawContext, RawDiagnostic, RawModule, RawValue};
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_void};
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::null_mut;

/// A module.
pub struct Module<'a> {
    pub(crate) library: &'a Library,
    pub(crate) context: *mut RawContext,
    pub(crate) raw: *mut RawModule,
    /// The messages of LLVM about it. The context holds the address.
    said: Box<Said<'a>>,
}

/// Collects messages.
struct Said<'a> {
    library: &'a Library,
    errors: RefCell<Vec<String>>,
}

impl fmt::Debug for Module<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Module").field("raw", &self.raw).finish_non_exhaustive()
    }
}

/// Receives messages. LLVM's own handler ends the process at an error.
extern "C" fn hear(diagnostic: *mut RawDiagnostic, said: *mut c_void) {
    const ERROR: u32 = 0;
    // SAFETY: it is the address that was given with this function, of what lives as long as the context.
    let said = unsafe { &*said.cast::<Said<'_>>() };
    let functions = &said.library.functions;
    // SAFETY: LLVM has called with this diagnostic.
    if unsafe { (functions.LLVMGetDiagInfoSeverity)(diagnostic) } == ERROR {
        // SAFETY: as above; the text is a new message.
        let text = unsafe { said.library.message((functions.LLVMGetDiagInfoDescription)(diagnostic)) };
        said.errors.borrow_mut().push(text);
    }
}

impl<'a> Module<'a> {
    /// Reads a file of bitcode.
    pub fn read(library: &'a Library, path: &Path) -> Result<Module<'a>, Error> {
        let functions = &library.functions;
        let name = c_path(path)?;
        let mut buffer: *mut RawBuffer = null_mut();
        let mut text = null_mut();
        // SAFETY: the name ends with a zero; the places for results are there.
        let failed = unsafe {
            (functions.LLVMCreateMemoryBufferWithContentsOfFile)(name.as_ptr(), &mut buffer, &mut text)
        };
        if failed != 0 {
            // SAFETY: the message is LLVM's, and ours now.
            let reason = unsafe { library.message(text) };
            return Err(Error(format!("{}: {reason}", path.display())));
        }
        // SAFETY: it has no arguments.
        let context = unsafe { (functions.LLVMContextCreate)() };
        let said = Box::new(Said { library, errors: RefCell::default() });
        let mut module = Module { library, context, raw: null_mut(), said };
        let said: *const Said<'_> = &*module.said;
        // SAFETY: the context is there; what it is given lives as long, in a box, see `drop`.
        unsafe { (functions.LLVMContextSetDiagnosticHandler)(context, hear, said.cast_mut().cast()) };
        // SAFETY: context and buffer are there, and the place for the result.
        let failed = unsafe { (functions.LLVMParseBitcodeInContext2)(context, buffer, &mut module.raw) };
        // SAFETY: the module is read as a whole and needs the buffer no more.
        unsafe { (functions.LLVMDisposeMemoryBuffer)(buffer) };
        if failed != 0 {
            module.raw = null_mut();
            return Err(Error(format!("{} is no bitcode: {}", path.display(), module.errors())));
        }
        Ok(module)
    }

    /// The errors that LLVM has reported.
    pub(crate) fn errors(&self) -> String {
        match &self.said.errors.borrow()[..] {
            [] => "no reason given".to_owned(),
            all => all.join("; "),
        }
    }

    /// The target of the module.
    pub fn target(&self) -> &CStr {
        // SAFETY: the module is there, and has the string as long as it is not changed.
        unsafe { CStr::from_ptr((self.library.functions.LLVMGetTarget)(self.raw)) }
    }

    /// The functions that have a body.
    pub(crate) fn bodies(&self) -> impl Iterator<Item = *mut RawValue> {
        let functions = &self.library.functions;
        // SAFETY: the module is there.
        let first = unsafe { (functions.LLVMGetFirstFunction)(self.raw) };
        // SAFETY: the function is one of the module's.
        let next = |function: &*mut RawValue| unsafe { (functions.LLVMGetNextFunction)(*function) };
        let some = |function: *mut RawValue| Some(function).filter(|function| !function.is_null());
        std::iter::successors(some(first), move |function| some(next(function)))
            // SAFETY: the function is one of the module's.
            .filter(|function| unsafe { (functions.LLVMIsDeclaration)(*function) } == 0)
    }
}

impl Module<'_> {
    /// Adds text in assembly language to the code of the module.
    pub(crate) fn append_assembly(&self, text: &str) {
        // SAFETY: the module is there; the text is as long as said.
        unsafe {
            (self.library.functions.LLVMAppendModuleInlineAsm)(self.raw, text.as_ptr().cast(), text.len())
        };
    }
}

impl Drop for Module<'_> {
    fn drop(&mut self) {
        let functions = &self.library.functions;
        if !self.raw.is_null() {
            // SAFETY: it is ours and not used any more.
            unsafe { (functions.LLVMDisposeModule)(self.raw) };
        }
        // SAFETY: as above, and nothing that belongs to it is left.
        unsafe { (functions.LLVMContextDispose)(self.context) };
    }
}

/// A path as a C string.
pub(crate) fn c_path(path: &Path) -> Result<CString, Error> {
    CString::new(path.as_os_str().as_bytes())
        .map_err(|_| Error(format!("{} is no path: it contains a zero", path.display())))
}
