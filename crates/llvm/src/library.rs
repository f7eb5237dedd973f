//! Finds the LLVM library of rustc, and the functions of its C interface.
//!
//! The compiler reads and writes bitcode of its own LLVM version. Other LLVMs on the machine are usually
//! older and cannot read it. The compiler's own library can, and exports the complete C interface. The
//! signatures are those of LLVM's `llvm-c` headers. All functions are looked up at once, so that a missing
//! one is noticed at once.

use crate::Error;
use std::ffi::{CStr, CString, OsStr, c_char, c_int, c_uint, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The LLVM version whose interface and options this crate is written for and tested with.
pub const VERSION: u32 = 22;

/// Declares types of LLVM of which only the address is used.
macro_rules! opaque {
    ($($(#[$meta:meta])* $name:ident)*) => {$(
        $(#[$meta])*
        #[repr(C)]
        #[derive(Debug)]
        pub struct $name {
            _private: [u8; 0],
        }
    )*};
}

opaque! {
    /// The types and constants that modules share.
    RawContext
    /// A module.
    RawModule
    /// The contents of a file.
    RawBuffer
    /// A function or another value.
    RawValue
    /// An attribute of a function.
    RawAttribute
    /// A kind of processor.
    RawTarget
    /// A code generator.
    RawMachine
    /// Options of passes.
    RawOptions
    /// An error of a pass.
    RawError
    /// A message about a module.
    RawDiagnostic
    /// A type.
    RawType
    /// A basic block.
    RawBlock
    /// What appends instructions.
    RawBuilder
    /// Sizes and offsets of types.
    RawData
    /// A node of debug information or hints.
    RawMetadata
    /// A use of a value.
    RawUse
    /// Symbols that the linker keeps or drops together.
    RawComdat
}

/// Declares the table of functions, and the function that fills it.
macro_rules! functions {
    ($(fn $name:ident($($argument:ty),*) $(-> $result:ty)?;)*) => {
        /// LLVM's functions, under their own names.
        #[allow(non_snake_case, missing_docs)]
        #[derive(Debug)]
        pub struct Functions {
            $(pub $name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
        }

        impl Functions {
            /// Looks up all functions with `find`.
            fn new(find: impl Fn(&CStr) -> Result<*mut c_void, Error>) -> Result<Functions, Error> {
                Ok(Functions {
                    $($name: {
                        const NAME: &CStr = match CStr::from_bytes_with_nul(
                            concat!(stringify!($name), "\0").as_bytes(),
                        ) {
                            Ok(name) => name,
                            Err(_) => panic!("a name without zeros"),
                        };
                        let address = find(NAME)?;
                        // SAFETY: it is a function of LLVM's C interface with this name, whose signature is as declared.
                        unsafe {
                            std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($argument),*) $(-> $result)?>(
                                address,
                            )
                        }
                    },)*
                })
            }
        }
    };
}

/// The type of the callback for messages.
pub type DiagnosticHandler = extern "C" fn(*mut RawDiagnostic, *mut c_void);

functions! {
    fn LLVMABIAlignmentOfType(*mut RawData, *mut RawType) -> c_uint;
    fn LLVMABISizeOfType(*mut RawData, *mut RawType) -> u64;
    fn LLVMAddAttributeAtIndex(*mut RawValue, c_uint, *mut RawAttribute);
    fn LLVMAddCallSiteAttribute(*mut RawValue, c_uint, *mut RawAttribute);
    fn LLVMAddFunction(*mut RawModule, *const c_char, *mut RawType) -> *mut RawValue;
    fn LLVMAddGlobal(*mut RawModule, *mut RawType, *const c_char) -> *mut RawValue;
    fn LLVMAddIncoming(*mut RawValue, *const *mut RawValue, *const *mut RawBlock, c_uint);
    fn LLVMAppendBasicBlockInContext(*mut RawContext, *mut RawValue, *const c_char) -> *mut RawBlock;
    fn LLVMAppendModuleInlineAsm(*mut RawModule, *const c_char, usize);
    fn LLVMArrayType2(*mut RawType, u64) -> *mut RawType;
    fn LLVMBasicBlockAsValue(*mut RawBlock) -> *mut RawValue;
    fn LLVMBuildAdd(*mut RawBuilder, *mut RawValue, *mut RawValue, *const c_char) -> *mut RawValue;
    fn LLVMBuildAlloca(*mut RawBuilder, *mut RawType, *const c_char) -> *mut RawValue;
    fn LLVMBuildBitCast(*mut RawBuilder, *mut RawValue, *mut RawType, *const c_char) -> *mut RawValue;
    fn LLVMBuildCall2(*mut RawBuilder, *mut RawType, *mut RawValue, *const *mut RawValue, c_uint, *const c_char) -> *mut RawValue;
    fn LLVMBuildCondBr(*mut RawBuilder, *mut RawValue, *mut RawBlock, *mut RawBlock) -> *mut RawValue;
    fn LLVMBuildExtractElement(*mut RawBuilder, *mut RawValue, *mut RawValue, *const c_char) -> *mut RawValue;
    fn LLVMBuildExtractValue(*mut RawBuilder, *mut RawValue, c_uint, *const c_char) -> *mut RawValue;
    fn LLVMBuildGEP2(*mut RawBuilder, *mut RawType, *mut RawValue, *const *mut RawValue, c_uint, *const c_char) -> *mut RawValue;
    fn LLVMBuildICmp(*mut RawBuilder, c_uint, *mut RawValue, *mut RawValue, *const c_char) -> *mut RawValue;
    fn LLVMBuildLShr(*mut RawBuilder, *mut RawValue, *mut RawValue, *const c_char) -> *mut RawValue;
    fn LLVMBuildLoad2(*mut RawBuilder, *mut RawType, *mut RawValue, *const c_char) -> *mut RawValue;
    fn LLVMBuildMul(*mut RawBuilder, *mut RawValue, *mut RawValue, *const c_char) -> *mut RawValue;
    fn LLVMBuildOr(*mut RawBuilder, *mut RawValue, *mut RawValue, *const c_char) -> *mut RawValue;
    fn LLVMBuildPtrToInt(*mut RawBuilder, *mut RawValue, *mut RawType, *const c_char) -> *mut RawValue;
    fn LLVMBuildRet(*mut RawBuilder, *mut RawValue) -> *mut RawValue;
    fn LLVMBuildRetVoid(*mut RawBuilder) -> *mut RawValue;
    fn LLVMBuildSExt(*mut RawBuilder, *mut RawValue, *mut RawType, *const c_char) -> *mut RawValue;
    fn LLVMBuildShl(*mut RawBuilder, *mut RawValue, *mut RawValue, *const c_char) -> *mut RawValue;
    fn LLVMBuildStore(*mut RawBuilder, *mut RawValue, *mut RawValue) -> *mut RawValue;
    fn LLVMBuildSub(*mut RawBuilder, *mut RawValue, *mut RawValue, *const c_char) -> *mut RawValue;
    fn LLVMBuildTrunc(*mut RawBuilder, *mut RawValue, *mut RawType, *const c_char) -> *mut RawValue;
    fn LLVMBuildZExt(*mut RawBuilder, *mut RawValue, *mut RawType, *const c_char) -> *mut RawValue;
    fn LLVMConstArray2(*mut RawType, *const *mut RawValue, u64) -> *mut RawValue;
    fn LLVMConstInt(*mut RawType, u64, c_int) -> *mut RawValue;
    fn LLVMConstIntGetZExtValue(*mut RawValue) -> u64;
    fn LLVMConstNull(*mut RawType) -> *mut RawValue;
    fn LLVMContextCreate() -> *mut RawContext;
    fn LLVMContextDispose(*mut RawContext);
    fn LLVMContextSetDiagnosticHandler(*mut RawContext, DiagnosticHandler, *mut c_void);
    fn LLVMCountIncoming(*mut RawValue) -> c_uint;
    fn LLVMCountParamTypes(*mut RawType) -> c_uint;
    fn LLVMCountParams(*mut RawValue) -> c_uint;
    fn LLVMCountStructElementTypes(*mut RawType) -> c_uint;
    fn LLVMCreateBuilderInContext(*mut RawContext) -> *mut RawBuilder;
    fn LLVMCreateEnumAttribute(*mut RawContext, c_uint, u64) -> *mut RawAttribute;
    fn LLVMCreateMemoryBufferWithContentsOfFile(*const c_char, *mut *mut RawBuffer, *mut *mut c_char) -> c_int;
    fn LLVMCreatePassBuilderOptions() -> *mut RawOptions;
    fn LLVMCreateTargetMachine(*mut RawTarget, *const c_char, *const c_char, *const c_char, c_uint, c_uint, c_uint) -> *mut RawMachine;
    fn LLVMDeleteFunction(*mut RawValue);
    fn LLVMDisposeBuilder(*mut RawBuilder);
    fn LLVMDisposeErrorMessage(*mut c_char);
    fn LLVMDisposeMemoryBuffer(*mut RawBuffer);
    fn LLVMDisposeMessage(*mut c_char);
    fn LLVMDisposeModule(*mut RawModule);
    fn LLVMDisposePassBuilderOptions(*mut RawOptions);
    fn LLVMDisposeTargetMachine(*mut RawMachine);
    fn LLVMFunctionType(*mut RawType, *const *mut RawType, c_uint, c_int) -> *mut RawType;
    fn LLVMGetAlignment(*mut RawValue) -> c_uint;
    fn LLVMGetArrayLength2(*mut RawType) -> u64;
    fn LLVMGetAtomicRMWBinOp(*mut RawValue) -> c_uint;
    fn LLVMGetAttributeCountAtIndex(*mut RawValue, c_uint) -> c_uint;
    fn LLVMGetAttributesAtIndex(*mut RawValue, c_uint, *mut *mut RawAttribute);
    fn LLVMGetBasicBlockTerminator(*mut RawBlock) -> *mut RawValue;
    fn LLVMGetCallSiteEnumAttribute(*mut RawValue, c_uint, c_uint) -> *mut RawAttribute;
    fn LLVMGetCalledFunctionType(*mut RawValue) -> *mut RawType;
    fn LLVMGetCalledValue(*mut RawValue) -> *mut RawValue;
    fn LLVMGetComdat(*mut RawValue) -> *mut RawComdat;
    fn LLVMGetDiagInfoDescription(*mut RawDiagnostic) -> *mut c_char;
    fn LLVMGetDiagInfoSeverity(*mut RawDiagnostic) -> c_uint;
    fn LLVMGetElementType(*mut RawType) -> *mut RawType;
    fn LLVMGetEntryBasicBlock(*mut RawValue) -> *mut RawBlock;
    fn LLVMGetEnumAttributeAtIndex(*mut RawValue, c_uint, c_uint) -> *mut RawAttribute;
    fn LLVMGetEnumAttributeKindForName(*const c_char, usize) -> c_uint;
    fn LLVMGetErrorMessage(*mut RawError) -> *mut c_char;
    fn LLVMGetFirstBasicBlock(*mut RawValue) -> *mut RawBlock;
    fn LLVMGetFirstFunction(*mut RawModule) -> *mut RawValue;
    fn LLVMGetFirstInstruction(*mut RawBlock) -> *mut RawValue;
    fn LLVMGetFirstUse(*mut RawValue) -> *mut RawUse;
    fn LLVMGetFunctionCallConv(*mut RawValue) -> c_uint;
    fn LLVMGetGEPSourceElementType(*mut RawValue) -> *mut RawType;
    fn LLVMGetICmpPredicate(*mut RawValue) -> c_uint;
    fn LLVMGetIncomingBlock(*mut RawValue, c_uint) -> *mut RawBlock;
    fn LLVMGetIncomingValue(*mut RawValue, c_uint) -> *mut RawValue;
    fn LLVMGetIndices(*mut RawValue) -> *const c_uint;
    fn LLVMGetInlineAsm(*mut RawType, *const c_char, usize, *const c_char, usize, c_int, c_int, c_uint, c_int) -> *mut RawValue;
    fn LLVMGetInstructionOpcode(*mut RawValue) -> c_uint;
    fn LLVMGetInstructionParent(*mut RawValue) -> *mut RawBlock;
    fn LLVMGetIntTypeWidth(*mut RawType) -> c_uint;
    fn LLVMGetLinkage(*mut RawValue) -> c_uint;
    fn LLVMGetMDKindIDInContext(*mut RawContext, *const c_char, c_uint) -> c_uint;
    fn LLVMGetMaskValue(*mut RawValue, c_uint) -> c_int;
    fn LLVMGetMetadata(*mut RawValue, c_uint) -> *mut RawValue;
    fn LLVMGetModuleDataLayout(*mut RawModule) -> *mut RawData;
    fn LLVMGetNextBasicBlock(*mut RawBlock) -> *mut RawBlock;
    fn LLVMGetNextFunction(*mut RawValue) -> *mut RawValue;
    fn LLVMGetNextInstruction(*mut RawValue) -> *mut RawValue;
    fn LLVMGetNextUse(*mut RawUse) -> *mut RawUse;
    fn LLVMGetNormalDest(*mut RawValue) -> *mut RawBlock;
    fn LLVMGetNumArgOperands(*mut RawValue) -> c_uint;
    fn LLVMGetNumIndices(*mut RawValue) -> c_uint;
    fn LLVMGetNumMaskElements(*mut RawValue) -> c_uint;
    fn LLVMGetNumOperands(*mut RawValue) -> c_int;
    fn LLVMGetNumSuccessors(*mut RawValue) -> c_uint;
    fn LLVMGetOperand(*mut RawValue, c_uint) -> *mut RawValue;
    fn LLVMGetParam(*mut RawValue, c_uint) -> *mut RawValue;
    fn LLVMGetPoison(*mut RawType) -> *mut RawValue;
    fn LLVMGetPreviousInstruction(*mut RawValue) -> *mut RawValue;
    fn LLVMGetReturnType(*mut RawType) -> *mut RawType;
    fn LLVMGetSection(*mut RawValue) -> *const c_char;
    fn LLVMGetSuccessor(*mut RawValue, c_uint) -> *mut RawBlock;
    fn LLVMGetTailCallKind(*mut RawValue) -> c_uint;
    fn LLVMGetTarget(*mut RawModule) -> *const c_char;
    fn LLVMGetTargetFromTriple(*const c_char, *mut *mut RawTarget, *mut *mut c_char) -> c_int;
    fn LLVMGetTypeAttributeValue(*mut RawAttribute) -> *mut RawType;
    fn LLVMGetTypeKind(*mut RawType) -> c_uint;
    fn LLVMGetUnnamedAddress(*mut RawValue) -> c_uint;
    fn LLVMGetUsedValue(*mut RawUse) -> *mut RawValue;
    fn LLVMGetUser(*mut RawUse) -> *mut RawValue;
    fn LLVMGetValueName2(*mut RawValue, *mut usize) -> *const c_char;
    fn LLVMGetVectorSize(*mut RawType) -> c_uint;
    fn LLVMGetVersion(*mut c_uint, *mut c_uint, *mut c_uint);
    fn LLVMGetVisibility(*mut RawValue) -> c_uint;
    fn LLVMGetVolatile(*mut RawValue) -> c_int;
    fn LLVMGlobalGetValueType(*mut RawValue) -> *mut RawType;
    fn LLVMInitializeX86AsmParser();
    fn LLVMInitializeX86AsmPrinter();
    fn LLVMInitializeX86Target();
    fn LLVMInitializeX86TargetInfo();
    fn LLVMInitializeX86TargetMC();
    fn LLVMInsertIntoBuilder(*mut RawBuilder, *mut RawValue);
    fn LLVMInstructionEraseFromParent(*mut RawValue);
    fn LLVMInstructionRemoveFromParent(*mut RawValue);
    fn LLVMIntTypeInContext(*mut RawContext, c_uint) -> *mut RawType;
    fn LLVMIsAConstant(*mut RawValue) -> *mut RawValue;
    fn LLVMIsAConstantExpr(*mut RawValue) -> *mut RawValue;
    fn LLVMIsAConstantInt(*mut RawValue) -> *mut RawValue;
    fn LLVMIsAFunction(*mut RawValue) -> *mut RawValue;
    fn LLVMIsAGlobalVariable(*mut RawValue) -> *mut RawValue;
    fn LLVMGetInlineAsmAsmString(*mut RawValue, *mut usize) -> *const c_char;
    fn LLVMIsAInlineAsm(*mut RawValue) -> *mut RawValue;
    fn LLVMIsAInstruction(*mut RawValue) -> *mut RawValue;
    fn LLVMIsDeclaration(*mut RawValue) -> c_int;
    fn LLVMIsFunctionVarArg(*mut RawType) -> c_int;
    fn LLVMIsGlobalConstant(*mut RawValue) -> c_int;
    fn LLVMMDNodeInContext2(*mut RawContext, *const *mut RawMetadata, usize) -> *mut RawMetadata;
    fn LLVMMDStringInContext2(*mut RawContext, *const c_char, usize) -> *mut RawMetadata;
    fn LLVMMetadataAsValue(*mut RawContext, *mut RawMetadata) -> *mut RawValue;
    fn LLVMOffsetOfElement(*mut RawData, *mut RawType, c_uint) -> u64;
    fn LLVMParseBitcodeInContext2(*mut RawContext, *mut RawBuffer, *mut *mut RawModule) -> c_int;
    fn LLVMParseCommandLineOptions(c_int, *const *const c_char, *const c_char);
    fn LLVMPassBuilderOptionsSetLoopInterleaving(*mut RawOptions, c_int);
    fn LLVMPassBuilderOptionsSetLoopVectorization(*mut RawOptions, c_int);
    fn LLVMPassBuilderOptionsSetSLPVectorization(*mut RawOptions, c_int);
    fn LLVMPointerTypeInContext(*mut RawContext, c_uint) -> *mut RawType;
    fn LLVMPositionBuilderAtEnd(*mut RawBuilder, *mut RawBlock);
    fn LLVMPositionBuilderBefore(*mut RawBuilder, *mut RawValue);
    fn LLVMPrintModuleToFile(*mut RawModule, *const c_char, *mut *mut c_char) -> c_int;
    fn LLVMRemoveCallSiteEnumAttribute(*mut RawValue, c_uint, c_uint);
    fn LLVMRemoveEnumAttributeAtIndex(*mut RawValue, c_uint, c_uint);
    fn LLVMReplaceAllUsesWith(*mut RawValue, *mut RawValue);
    fn LLVMRunPasses(*mut RawModule, *const c_char, *mut RawMachine, *mut RawOptions) -> *mut RawError;
    fn LLVMSetAlignment(*mut RawValue, c_uint);
    fn LLVMSetComdat(*mut RawValue, *mut RawComdat);
    fn LLVMSetFunctionCallConv(*mut RawValue, c_uint);
    fn LLVMSetGlobalConstant(*mut RawValue, c_int);
    fn LLVMSetInitializer(*mut RawValue, *mut RawValue);
    fn LLVMSetInstructionCallConv(*mut RawValue, c_uint);
    fn LLVMSetLinkage(*mut RawValue, c_uint);
    fn LLVMSetMetadata(*mut RawValue, c_uint, *mut RawValue);
    fn LLVMSetSection(*mut RawValue, *const c_char);
    fn LLVMSetTailCallKind(*mut RawValue, c_uint);
    fn LLVMSetUnnamedAddress(*mut RawValue, c_uint);
    fn LLVMSetValueName2(*mut RawValue, *const c_char, usize);
    fn LLVMSetVisibility(*mut RawValue, c_uint);
    fn LLVMSetVolatile(*mut RawValue, c_int);
    fn LLVMStoreSizeOfType(*mut RawData, *mut RawType) -> u64;
    fn LLVMStructGetTypeAtIndex(*mut RawType, c_uint) -> *mut RawType;
    fn LLVMStructTypeInContext(*mut RawContext, *const *mut RawType, c_uint, c_int) -> *mut RawType;
    fn LLVMTargetMachineEmitToFile(*mut RawMachine, *mut RawModule, *const c_char, c_uint, *mut *mut c_char) -> c_int;
    fn LLVMTypeOf(*mut RawValue) -> *mut RawType;
    fn LLVMValueAsMetadata(*mut RawValue) -> *mut RawMetadata;
    fn LLVMVerifyModule(*mut RawModule, c_uint, *mut *mut c_char) -> c_int;
    fn LLVMVoidTypeInContext(*mut RawContext) -> *mut RawType;
}

/// The loaded library. It stays loaded, because LLVM registers functions that run when the process exits.
#[derive(Debug)]
pub struct Library {
    /// Its functions.
    pub functions: Functions,
}

/// The library of the compiler that `rustc` runs.
pub fn find(rustc: &OsStr) -> Result<PathBuf, Error> {
    let shown = rustc.display();
    let output = Command::new(rustc)
        .args(["--print", "sysroot"])
        .stdin(Stdio::null())
        .output()
        .map_err(|e| Error(format!("{shown}: {e}; install Rust, or set RUSTC to its compiler")))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(Error(format!("{shown} does not say where it is installed: {}", said.trim_end())));
    }
    let sysroot = Path::new(OsStr::from_bytes(output.stdout.trim_ascii_end()));
    in_directory(&sysroot.join("lib"))
}

/// The library in a directory of a compiler. (The file `libLLVM-22-rust-….so` beside it is a linker script.)
fn in_directory(directory: &Path) -> Result<PathBuf, Error> {
    let named =
        |path: &PathBuf| path.file_name().is_some_and(|name| name.as_bytes().starts_with(b"libLLVM.so."));
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(named).collect();
    found.sort();
    found.pop().ok_or_else(|| {
        Error(format!(
            "{} has no libLLVM.so; a compiler that has its LLVM built in cannot be used, one from rustup can",
            directory.display()
        ))
    })
}

impl Library {
    /// Loads the library.
    pub fn open(path: &Path) -> Result<Library, Error> {
        let shown = path.display();
        let name = CString::new(path.as_os_str().as_bytes())
            .map_err(|_| Error(format!("{shown} is no path: it contains a zero")))?;
        // SAFETY: the name ends with a zero. Code of the library that runs at once is LLVM's, which is to be trusted as
        // much as the compiler that it comes with.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if handle.is_null() {
            return Err(Error(format!("LLVM cannot be loaded: {}", last_error())));
        }
        let functions = Functions::new(|function| {
            // SAFETY: the handle is of a library that stays loaded; the name ends with a zero.
            let address = unsafe { libc::dlsym(handle, function.as_ptr()) };
            if address.is_null() {
                let function = function.to_string_lossy();
                return Err(Error(format!(
                    "{shown} has no {function}; Heisen needs the LLVM {VERSION} of rustc"
                )));
            }
            Ok(address)
        })?;
        let library = Library { functions };
        let [major, minor, patch] = library.version();
        if major != VERSION {
            return Err(Error(format!(
                "{shown} is LLVM {major}.{minor}.{patch}; Heisen needs LLVM {VERSION}, as in Rust 1.95: choose such a \
                 toolchain, with rustup or RUSTC"
            )));
        }
        Ok(library)
    }

    /// Its version.
    pub fn version(&self) -> [u32; 3] {
        let [mut major, mut minor, mut patch] = [0; 3];
        // SAFETY: it writes to three places, which are there.
        unsafe { (self.functions.LLVMGetVersion)(&mut major, &mut minor, &mut patch) };
        [major, minor, patch]
    }

    /// Sets options of passes, as LLVM's own tools take them. They apply to the process and can be set only
    /// once. A wrong option ends the process with a message.
    pub fn set_options(&self, options: &[&CStr]) {
        let words: Vec<*const c_char> =
            [c"heisen"].iter().chain(options).map(|option| option.as_ptr()).collect();
        // SAFETY: as many words as counted, each ending with a zero.
        unsafe {
            (self.functions.LLVMParseCommandLineOptions)(words.len() as c_int, words.as_ptr(), c"".as_ptr());
        }
    }

    /// Copies a message of LLVM, and disposes of it.
    ///
    /// # Safety
    /// `text` is null or such a message, and not used afterwards.
    pub(crate) unsafe fn message(&self, text: *mut c_char) -> String {
        if text.is_null() {
            return "no reason given".to_owned();
        }
        // SAFETY: it is a string that ends with a zero, by the contract of this function.
        let message = unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned();
        // SAFETY: it was made by LLVM and has been copied.
        unsafe { (self.functions.LLVMDisposeMessage)(text) };
        message
    }
}

/// Why a library could not be loaded.
fn last_error() -> String {
    // SAFETY: it has no arguments; what it returns is null or a string that stays until the next call in this thread.
    let text = unsafe { libc::dlerror() };
    if text.is_null() {
        return "no reason given".to_owned();
    }
    // SAFETY: see above.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_llvm_is_reported() {
        let directory = tempfile::tempdir().expect("a directory");
        let missing = in_directory(directory.path()).expect_err("empty");
        assert!(missing.0.contains("has no libLLVM.so"), "{missing}");
        let script = directory.path().join("libLLVM.so.22");
        std::fs::write(&script, "INPUT(libLLVM.so)").expect("a file");
        assert_eq!(in_directory(directory.path()), Ok(script.clone()));
        let bad = Library::open(&script).expect_err("no library");
        assert!(bad.0.starts_with("LLVM cannot be loaded: ") && bad.0.contains("libLLVM.so.22"), "{bad}");
        let other = Library::open(Path::new("libc.so.6")).expect_err("another library");
        assert!(other.0.starts_with("libc.so.6 has no LLVM"), "{other}");
        assert!(find(OsStr::new("/nowhere/rustc")).is_err_and(|e| e.0.contains("install Rust")));
        assert!(find(OsStr::new("false")).is_err_and(|e| e.0.contains("does not say")));
    }
}
