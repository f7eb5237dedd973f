//! Typed access to the values of a module, for passes of our own.
//!
//! A [`Value`], [`Type`] or [`Block`] comes from the module of its [`Ir`] only, and from nowhere else. The module outlives
//! the `Ir`. Nobody uses an instruction that was erased. Therefore each function here may call LLVM.

use crate::library::{
    Functions, RawAttribute, RawBlock, RawBuilder, RawContext, RawData, RawModule, RawType, RawUse, RawValue,
};
use crate::module::Module;
use crate::symbolic::opcode::{FUNCTION, MUST_TAIL, instruction, kind, linkage};
use std::ffi::{CStr, CString, c_uint};
use std::ptr::null_mut;

/// A value: an instruction, an argument, a constant, a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Value(*mut RawValue);

/// A type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Type(*mut RawType);

/// A basic block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Block(*mut RawBlock);

/// Calls a function of LLVM.
macro_rules! llvm {
    ($ir:expr, $function:ident($($argument:expr),* $(,)?)) => {{
        // SAFETY: values, types and blocks are of the module, see the head of this file. Names end with zeros, and
        // lists are as long as said.
        unsafe { ($ir.functions.$function)($($argument),*) }
    }};
}

/// A module, and what appends instructions to it.
#[derive(Debug)]
pub struct Ir<'a> {
    functions: &'a Functions,
    context: *mut RawContext,
    module: *mut RawModule,
    builder: *mut RawBuilder,
    data: *mut RawData,
}

impl Drop for Ir<'_> {
    fn drop(&mut self) {
        llvm!(self, LLVMDisposeBuilder(self.builder));
    }
}

/// Follows a list of LLVM.
fn list<T: Copy>(first: Option<T>, next: impl Fn(T) -> Option<T>) -> Vec<T> {
    std::iter::successors(first, |&item| next(item)).collect()
}

fn value(raw: *mut RawValue) -> Option<Value> {
    Some(Value(raw)).filter(|_| !raw.is_null())
}

fn block(raw: *mut RawBlock) -> Option<Block> {
    Some(Block(raw)).filter(|_| !raw.is_null())
}

fn list_use(raw: *mut RawUse) -> Option<*mut RawUse> {
    Some(raw).filter(|raw| !raw.is_null())
}

impl<'a> Ir<'a> {
    /// The access to a module.
    pub fn new(module: &'a Module<'_>) -> Ir<'a> {
        let functions = &module.library.functions;
        let (context, module) = (module.context, module.raw);
        let (builder, data) = (null_mut(), null_mut());
        let mut ir = Ir { functions, context, module, builder, data };
        ir.builder = llvm!(ir, LLVMCreateBuilderInContext(context));
        ir.data = llvm!(ir, LLVMGetModuleDataLayout(module));
        ir
    }

    // Types.

    /// The integer type of this many bits.
    pub fn int(&self, bits: u32) -> Type {
        Type(llvm!(self, LLVMIntTypeInContext(self.context, bits)))
    }

    /// The type of pointers.
    pub fn pointer(&self) -> Type {
        Type(llvm!(self, LLVMPointerTypeInContext(self.context, 0)))
    }

    /// The type of an array.
    pub fn array(&self, element: Type, length: u64) -> Type {
        Type(llvm!(self, LLVMArrayType2(element.0, length)))
    }

    /// The type of a function; `None` is the result `void`.
    pub fn function_type(&self, arguments: &[Type], result: Option<Type>) -> Type {
        let void = || llvm!(self, LLVMVoidTypeInContext(self.context));
        let result = result.map_or_else(void, |result| result.0);
        let arguments: Vec<*mut RawType> = arguments.iter().map(|ty| ty.0).collect();
        Type(llvm!(self, LLVMFunctionType(result, arguments.as_ptr(), arguments.len() as c_uint, 0)))
    }

    /// The type of a value.
    pub fn type_of(&self, of: Value) -> Type {
        Type(llvm!(self, LLVMTypeOf(of.0)))
    }

    /// The kind of a type, see [`kind`].
    pub fn kind(&self, of: Type) -> u32 {
        llvm!(self, LLVMGetTypeKind(of.0))
    }

    /// The bits of an integer type.
    pub fn int_bits(&self, of: Type) -> u32 {
        llvm!(self, LLVMGetIntTypeWidth(of.0))
    }

    /// The number of fields of a structure, or elements of an array or vector. Other types have none.
    pub fn elements(&self, of: Type) -> u64 {
        match self.kind(of) {
            kind::STRUCT => llvm!(self, LLVMCountStructElementTypes(of.0)).into(),
            kind::ARRAY => llvm!(self, LLVMGetArrayLength2(of.0)),
            kind::VECTOR => llvm!(self, LLVMGetVectorSize(of.0)).into(),
            _ => 0,
        }
    }

    /// The type of a field or element.
    pub fn element_type(&self, of: Type, index: u32) -> Type {
        Type(match self.kind(of) {
            kind::STRUCT => llvm!(self, LLVMStructGetTypeAtIndex(of.0, index)),
            _ => llvm!(self, LLVMGetElementType(of.0)),
        })
    }

    /// The distance of a field from the start of its structure.
    pub fn field_offset(&self, of: Type, index: u32) -> u64 {
        llvm!(self, LLVMOffsetOfElement(self.data, of.0, index))
    }

    /// The distance of two elements of this type in an array.
    pub fn stride(&self, of: Type) -> u64 {
        llvm!(self, LLVMABISizeOfType(self.data, of.0))
    }

    /// The bytes that a store of this type writes.
    pub fn store_size(&self, of: Type) -> u64 {
        llvm!(self, LLVMStoreSizeOfType(self.data, of.0))
    }

    /// The number of arguments that a type of functions declares.
    pub fn declared_arguments(&self, of: Type) -> usize {
        llvm!(self, LLVMCountParamTypes(of.0)) as usize
    }

    /// Whether functions of this type have arguments without a declared type.
    pub fn is_variadic(&self, of: Type) -> bool {
        llvm!(self, LLVMIsFunctionVarArg(of.0)) != 0
    }

    // Functions and globals.

    /// All functions, with or without body.
    pub fn functions(&self) -> Vec<Value> {
        let first = value(llvm!(self, LLVMGetFirstFunction(self.module)));
        list(first, |function| value(llvm!(self, LLVMGetNextFunction(function.0))))
    }

    /// Whether a function has no body.
    pub fn is_declaration(&self, of: Value) -> bool {
        llvm!(self, LLVMIsDeclaration(of.0)) != 0
    }

    /// The linkage of a function or variable, see [`linkage`](crate::symbolic::opcode::linkage).
    pub fn linkage(&self, of: Value) -> u32 {
        llvm!(self, LLVMGetLinkage(of.0))
    }

    /// Changes the linkage.
    pub fn set_linkage(&self, of: Value, linkage: u32) {
        llvm!(self, LLVMSetLinkage(of.0, linkage));
    }

    /// Changes the visibility.
    pub fn set_visibility(&self, of: Value, visibility: u32) {
        llvm!(self, LLVMSetVisibility(of.0, visibility));
    }

    /// Declares a function.
    pub fn add_function(&self, name: &CStr, ty: Type) -> Value {
        Value(llvm!(self, LLVMAddFunction(self.module, name.as_ptr(), ty.0)))
    }

    /// Whether a value is this one.
    pub fn is_same(&self, value: Value, raw: *mut RawValue) -> bool {
        value.0 == raw
    }

    /// A new function of the same type and with the same attributes as another one.
    pub fn add_like(&self, other: Value, name: &str) -> Value {
        let name = CString::new(name).unwrap_or_default();
        let ty = self.global_type(other);
        let function = self.add_function(&name, ty);
        let convention = llvm!(self, LLVMGetFunctionCallConv(other.0));
        llvm!(self, LLVMSetFunctionCallConv(function.0, convention));
        for index in self.attribute_indices(function) {
            for attribute in self.attributes(other, index) {
                llvm!(self, LLVMAddAttributeAtIndex(function.0, index, attribute));
            }
        }
        function
    }

    /// A function takes the place of another one: its name, its uses, and how the linker sees it.
    pub fn replace(&self, other: Value, function: Value, other_name: &str) {
        let name = self.name(other);
        self.set_name(other, other_name);
        self.set_name(function, &name);
        llvm!(self, LLVMReplaceAllUsesWith(other.0, function.0));
        self.set_linkage(function, self.linkage(other));
        self.set_visibility(function, llvm!(self, LLVMGetVisibility(other.0)));
        let unnamed = llvm!(self, LLVMGetUnnamedAddress(other.0));
        llvm!(self, LLVMSetUnnamedAddress(function.0, unnamed));
        let section = llvm!(self, LLVMGetSection(other.0));
        if !section.is_null() {
            llvm!(self, LLVMSetSection(function.0, section));
        }
        self.share_comdat(other, function);
    }

    /// A function is used where another one was.
    pub fn use_instead(&self, other: Value, function: Value) {
        llvm!(self, LLVMReplaceAllUsesWith(other.0, function.0));
    }

    /// A function is kept or dropped by the linker together with another one.
    pub fn share_comdat(&self, other: Value, function: Value) {
        let comdat = llvm!(self, LLVMGetComdat(other.0));
        if !comdat.is_null() {
            llvm!(self, LLVMSetComdat(function.0, comdat));
        }
    }

    fn set_name(&self, of: Value, name: &str) {
        llvm!(self, LLVMSetValueName2(of.0, name.as_ptr().cast(), name.len()));
    }

    /// The indices of attributes of a function, its result, and its arguments.
    fn attribute_indices(&self, function: Value) -> impl Iterator<Item = u32> + use<> {
        let arguments = llvm!(self, LLVMCountParams(function.0));
        [FUNCTION].into_iter().chain(0..=arguments)
    }

    fn attributes(&self, function: Value, index: u32) -> Vec<*mut RawAttribute> {
        let count = llvm!(self, LLVMGetAttributeCountAtIndex(function.0, index)) as usize;
        let mut all = vec![null_mut(); count];
        llvm!(self, LLVMGetAttributesAtIndex(function.0, index, all.as_mut_ptr()));
        all
    }

    /// Calls a function with the arguments of this one, which has the same type, and returns what it returns.
    pub fn forward(&self, function: Value, to: Value) -> Value {
        let call = self.call(to, &self.parameters(function));
        let convention = llvm!(self, LLVMGetFunctionCallConv(to.0));
        llvm!(self, LLVMSetInstructionCallConv(call.0, convention));
        for index in self.attribute_indices(function).filter(|&index| index != FUNCTION) {
            for attribute in self.attributes(function, index) {
                llvm!(self, LLVMAddCallSiteAttribute(call.0, index, attribute));
            }
        }
        match self.kind(self.type_of(call)) {
            kind::VOID => llvm!(self, LLVMBuildRetVoid(self.builder)),
            _ => llvm!(self, LLVMBuildRet(self.builder, call.0)),
        };
        call
    }

    /// A call leaves no frame behind.
    pub fn set_must_tail(&self, call: Value) {
        llvm!(self, LLVMSetTailCallKind(call.0, MUST_TAIL));
    }

    /// Adds an attribute to a call.
    pub fn add_call_attribute(&self, call: Value, attribute: u32) {
        let attribute = llvm!(self, LLVMCreateEnumAttribute(self.context, attribute, 0));
        llvm!(self, LLVMAddCallSiteAttribute(call.0, FUNCTION, attribute));
    }

    /// Removes a function that nobody uses.
    pub fn delete_function(&self, function: Value) {
        llvm!(self, LLVMDeleteFunction(function.0));
    }

    /// Declares a variable.
    pub fn add_global(&self, name: &CStr, ty: Type) -> Value {
        Value(llvm!(self, LLVMAddGlobal(self.module, ty.0, name.as_ptr())))
    }

    /// The type of a function or variable.
    pub fn global_type(&self, of: Value) -> Type {
        Type(llvm!(self, LLVMGlobalGetValueType(of.0)))
    }

    /// The arguments of a function.
    pub fn parameters(&self, of: Value) -> Vec<Value> {
        let count = llvm!(self, LLVMCountParams(of.0));
        (0..count).map(|index| Value(llvm!(self, LLVMGetParam(of.0, index)))).collect()
    }

    /// The name of a value; empty if it has none.
    pub fn name(&self, of: Value) -> String {
        let mut length = 0;
        let name = llvm!(self, LLVMGetValueName2(of.0, &mut length));
        if name.is_null() {
            return String::new();
        }
        // SAFETY: the name is as long as said, and stays while we copy it.
        let bytes = unsafe { std::slice::from_raw_parts(name.cast::<u8>(), length) };
        String::from_utf8_lossy(bytes).into_owned()
    }

    /// The number of an attribute.
    pub fn attribute(&self, name: &str) -> u32 {
        llvm!(self, LLVMGetEnumAttributeKindForName(name.as_ptr().cast(), name.len()))
    }

    /// Whether a function, its result (0) or an argument (from 1) has an attribute.
    pub fn has_attribute(&self, function: Value, at: u32, attribute: u32) -> bool {
        !llvm!(self, LLVMGetEnumAttributeAtIndex(function.0, at, attribute)).is_null()
    }

    /// The type in an attribute of an argument of a function, if it has the attribute.
    pub fn type_attribute(&self, function: Value, at: u32, attribute: u32) -> Option<Type> {
        let found = llvm!(self, LLVMGetEnumAttributeAtIndex(function.0, at, attribute));
        (!found.is_null()).then(|| Type(llvm!(self, LLVMGetTypeAttributeValue(found))))
    }

    /// Adds an attribute to a function.
    pub fn add_attribute(&self, function: Value, attribute: u32) {
        let attribute = llvm!(self, LLVMCreateEnumAttribute(self.context, attribute, 0));
        llvm!(self, LLVMAddAttributeAtIndex(function.0, FUNCTION, attribute));
    }

    /// Removes an attribute from a function.
    pub fn remove_attribute(&self, function: Value, attribute: u32) {
        llvm!(self, LLVMRemoveEnumAttributeAtIndex(function.0, FUNCTION, attribute));
    }

    /// Whether a call, its result or an argument has an attribute. Those of its function do not count.
    pub fn call_has_attribute(&self, call: Value, at: u32, attribute: u32) -> bool {
        !llvm!(self, LLVMGetCallSiteEnumAttribute(call.0, at, attribute)).is_null()
    }

    /// Removes an attribute from a call.
    pub fn remove_call_attribute(&self, call: Value, attribute: u32) {
        llvm!(self, LLVMRemoveCallSiteEnumAttribute(call.0, FUNCTION, attribute));
    }

    // Blocks and instructions.

    /// The blocks of a function.
    pub fn blocks(&self, of: Value) -> Vec<Block> {
        let first = block(llvm!(self, LLVMGetFirstBasicBlock(of.0)));
        list(first, |at| block(llvm!(self, LLVMGetNextBasicBlock(at.0))))
    }

    /// The block in which a function begins.
    pub fn entry(&self, of: Value) -> Block {
        Block(llvm!(self, LLVMGetEntryBasicBlock(of.0)))
    }

    /// Whether the address of a block is stored somewhere.
    pub fn has_address(&self, block: Block) -> bool {
        let users = self.users(Value(llvm!(self, LLVMBasicBlockAsValue(block.0))));
        users.into_iter().any(|user| !self.is_instruction(user))
    }

    /// The instructions of a block.
    pub fn instructions(&self, of: Block) -> Vec<Value> {
        let first = value(llvm!(self, LLVMGetFirstInstruction(of.0)));
        list(first, |at| value(llvm!(self, LLVMGetNextInstruction(at.0))))
    }

    /// All instructions of a function.
    pub fn body(&self, of: Value) -> Vec<Value> {
        self.blocks(of).into_iter().flat_map(|block| self.instructions(block)).collect()
    }

    /// The last instruction of a block.
    pub fn terminator(&self, of: Block) -> Value {
        Value(llvm!(self, LLVMGetBasicBlockTerminator(of.0)))
    }

    /// The blocks that may follow a terminator.
    pub fn successors(&self, terminator: Value) -> Vec<Block> {
        let count = llvm!(self, LLVMGetNumSuccessors(terminator.0));
        (0..count).map(|index| Block(llvm!(self, LLVMGetSuccessor(terminator.0, index)))).collect()
    }

    /// The instruction before another one.
    pub fn previous(&self, of: Value) -> Option<Value> {
        value(llvm!(self, LLVMGetPreviousInstruction(of.0)))
    }

    /// The opcode of an instruction, see [`instruction`].
    pub fn opcode(&self, of: Value) -> u32 {
        llvm!(self, LLVMGetInstructionOpcode(of.0))
    }

    /// An operand.
    pub fn operand(&self, of: Value, index: u32) -> Value {
        Value(llvm!(self, LLVMGetOperand(of.0, index)))
    }

    /// All operands.
    pub fn operands(&self, of: Value) -> Vec<Value> {
        let count = llvm!(self, LLVMGetNumOperands(of.0)) as u32;
        (0..count).map(|index| self.operand(of, index)).collect()
    }

    /// Whether an instruction uses a value.
    pub fn is_used(&self, of: Value) -> bool {
        !llvm!(self, LLVMGetFirstUse(of.0)).is_null()
    }

    /// The users of a value, and the value that they use.
    pub fn users(&self, of: Value) -> Vec<Value> {
        let first = list_use(llvm!(self, LLVMGetFirstUse(of.0)));
        let uses = list(first, |at| list_use(llvm!(self, LLVMGetNextUse(at))));
        uses.into_iter().map(|at| Value(llvm!(self, LLVMGetUser(at)))).collect()
    }

    /// The number that a value is, if it is a constant of at most 64 bits.
    pub fn constant_int(&self, of: Value) -> Option<u64> {
        let is = !llvm!(self, LLVMIsAConstantInt(of.0)).is_null() && self.int_bits(self.type_of(of)) <= 64;
        is.then(|| llvm!(self, LLVMConstIntGetZExtValue(of.0)))
    }

    /// The number that a constant of more than 64 bits is, if it is small enough to be a distance of a shift.
    pub fn constant_wide_shift(&self, of: Value) -> Option<u64> {
        let is = !llvm!(self, LLVMIsAConstantInt(of.0)).is_null();
        // Larger numbers give their lowest word. No program shifts by them.
        is.then(|| llvm!(self, LLVMConstIntGetZExtValue(of.0)))
    }

    /// Whether a value is an instruction.
    pub fn is_instruction(&self, of: Value) -> bool {
        !llvm!(self, LLVMIsAInstruction(of.0)).is_null()
    }

    /// Whether a value is an instruction that calls.
    pub fn is_call(&self, of: Value) -> bool {
        self.is_instruction(of) && matches!(self.opcode(of), instruction::CALL | instruction::INVOKE)
    }

    /// Whether a value is a function.
    pub fn is_function(&self, of: Value) -> bool {
        !llvm!(self, LLVMIsAFunction(of.0)).is_null()
    }

    /// Whether a value is a variable of the module.
    pub fn is_variable(&self, of: Value) -> bool {
        !llvm!(self, LLVMIsAGlobalVariable(of.0)).is_null()
    }

    /// Whether a value is an expression of constants, such as the cast of an address.
    pub fn is_cast_of_constant(&self, of: Value) -> bool {
        !llvm!(self, LLVMIsAConstantExpr(of.0)).is_null()
    }

    /// Whether a value is a variable that is never written.
    pub fn is_constant_variable(&self, of: Value) -> bool {
        self.is_variable(of) && llvm!(self, LLVMIsGlobalConstant(of.0)) != 0
    }

    /// Whether a value is inline assembly.
    pub fn is_assembly(&self, of: Value) -> bool {
        !llvm!(self, LLVMIsAInlineAsm(of.0)).is_null()
    }

    /// Whether inline assembly has no instructions: it only keeps the compiler from moving others.
    pub fn is_empty_assembly(&self, of: Value) -> bool {
        let mut length = 0;
        llvm!(self, LLVMGetInlineAsmAsmString(of.0, &mut length));
        length == 0
    }

    /// The values that a phi takes, with the blocks from which it takes them.
    pub fn incoming(&self, phi: Value) -> Vec<(Value, Block)> {
        let count = llvm!(self, LLVMCountIncoming(phi.0));
        let one = |index| {
            let from = llvm!(self, LLVMGetIncomingBlock(phi.0, index));
            (Value(llvm!(self, LLVMGetIncomingValue(phi.0, index))), Block(from))
        };
        (0..count).map(one).collect()
    }

    /// The predicate of an integer comparison.
    pub fn predicate(&self, of: Value) -> u32 {
        llvm!(self, LLVMGetICmpPredicate(of.0))
    }

    /// The indices of `extractvalue` and `insertvalue`.
    pub fn indices(&self, of: Value) -> Vec<u32> {
        let count = llvm!(self, LLVMGetNumIndices(of.0)) as usize;
        let indices = llvm!(self, LLVMGetIndices(of.0));
        // SAFETY: there are as many as said; the instruction has them.
        unsafe { std::slice::from_raw_parts(indices, count) }.to_vec()
    }

    /// The elements that `shufflevector` takes; -1 where any will do.
    pub fn mask(&self, of: Value) -> Vec<i32> {
        let count = llvm!(self, LLVMGetNumMaskElements(of.0));
        (0..count).map(|index| llvm!(self, LLVMGetMaskValue(of.0, index))).collect()
    }

    /// The type to which the first index of `getelementptr` counts.
    pub fn source_type(&self, of: Value) -> Type {
        Type(llvm!(self, LLVMGetGEPSourceElementType(of.0)))
    }

    /// What a call calls.
    pub fn callee(&self, call: Value) -> Value {
        Value(llvm!(self, LLVMGetCalledValue(call.0)))
    }

    /// The type of what a call calls.
    pub fn callee_type(&self, call: Value) -> Type {
        Type(llvm!(self, LLVMGetCalledFunctionType(call.0)))
    }

    /// The arguments of a call.
    pub fn arguments(&self, call: Value) -> Vec<Value> {
        let count = llvm!(self, LLVMGetNumArgOperands(call.0));
        (0..count).map(|index| self.operand(call, index)).collect()
    }

    /// Whether an instruction is a call that leaves no frame behind, whatever the optimiser does.
    pub fn must_tail(&self, of: Value) -> bool {
        self.opcode(of) == instruction::CALL && llvm!(self, LLVMGetTailCallKind(of.0)) == MUST_TAIL
    }

    /// The block after an `invoke` that returns.
    pub fn normal_successor(&self, invoke: Value) -> Block {
        Block(llvm!(self, LLVMGetNormalDest(invoke.0)))
    }

    /// The operation of `atomicrmw`.
    pub fn rmw_operation(&self, of: Value) -> u32 {
        llvm!(self, LLVMGetAtomicRMWBinOp(of.0))
    }

    /// Whether an access is volatile.
    pub fn is_volatile(&self, of: Value) -> bool {
        llvm!(self, LLVMGetVolatile(of.0)) != 0
    }

    /// Makes an access volatile, or not.
    pub fn set_volatile(&self, of: Value, volatile: bool) {
        llvm!(self, LLVMSetVolatile(of.0, volatile.into()));
    }

    // Metadata.

    /// The number of a kind of metadata.
    pub fn metadata_kind(&self, name: &str) -> u32 {
        llvm!(self, LLVMGetMDKindIDInContext(self.context, name.as_ptr().cast(), name.len() as c_uint))
    }

    /// Whether an instruction has metadata of a kind.
    pub fn has_metadata(&self, of: Value, kind: u32) -> bool {
        !llvm!(self, LLVMGetMetadata(of.0, kind)).is_null()
    }

    /// Attaches metadata that consists of a word and numbers; both may be missing.
    pub fn set_metadata(&self, of: Value, kind: u32, word: Option<&str>, numbers: &[u32]) {
        let word = word
            .map(|word| llvm!(self, LLVMMDStringInContext2(self.context, word.as_ptr().cast(), word.len())));
        let number =
            |&number: &u32| llvm!(self, LLVMValueAsMetadata(self.number(self.int(32), number.into()).0));
        let parts: Vec<_> = word.into_iter().chain(numbers.iter().map(number)).collect();
        let node = llvm!(self, LLVMMDNodeInContext2(self.context, parts.as_ptr(), parts.len()));
        let node = llvm!(self, LLVMMetadataAsValue(self.context, node));
        llvm!(self, LLVMSetMetadata(of.0, kind, node));
    }

    /// Removes metadata of a kind.
    pub fn remove_metadata(&self, of: Value, kind: u32) {
        llvm!(self, LLVMSetMetadata(of.0, kind, null_mut()));
    }

    // Constants and building.

    /// A constant of the module that consists of words.
    pub fn add_words(&self, words: &[u32]) -> Value {
        const NO_ADDRESS: c_uint = 2;
        let word = self.int(32);
        let values: Vec<*mut RawValue> =
            words.iter().map(|&number| self.number(word, number.into()).0).collect();
        let ty = self.array(word, values.len() as u64);
        let array = llvm!(self, LLVMConstArray2(word.0, values.as_ptr(), values.len() as u64));
        let global = self.add_global(c"heisen.program", ty);
        llvm!(self, LLVMSetInitializer(global.0, array));
        llvm!(self, LLVMSetGlobalConstant(global.0, 1));
        llvm!(self, LLVMSetUnnamedAddress(global.0, NO_ADDRESS));
        self.set_linkage(global, linkage::PRIVATE);
        global
    }

    /// Adds a constant that is a text with a 0 behind it.
    pub fn add_text(&self, text: &str) -> Value {
        let mut bytes = text.as_bytes().to_vec();
        bytes.resize(4 * (bytes.len() / 4 + 1), 0);
        let words: Vec<u32> =
            bytes.as_chunks().0.iter().map(|&chunk: &[u8; 4]| u32::from_le_bytes(chunk)).collect();
        self.add_words(&words)
    }

    /// Any value of a type.
    pub fn poison(&self, ty: Type) -> Value {
        Value(llvm!(self, LLVMGetPoison(ty.0)))
    }

    /// A number.
    pub fn number(&self, ty: Type, number: u64) -> Value {
        Value(llvm!(self, LLVMConstInt(ty.0, number, 0)))
    }

    /// Appends a block to a function.
    pub fn append_block(&self, function: Value, name: &CStr) -> Block {
        Block(llvm!(self, LLVMAppendBasicBlockInContext(self.context, function.0, name.as_ptr())))
    }

    /// Puts new instructions before this one, with its place in the source.
    pub fn before(&self, instruction: Value) {
        llvm!(self, LLVMPositionBuilderBefore(self.builder, instruction.0));
    }

    /// Puts new instructions at the end of this block.
    pub fn at_end(&self, of: Block) {
        llvm!(self, LLVMPositionBuilderAtEnd(self.builder, of.0));
    }

    /// Moves an instruction to where new ones go.
    pub fn place(&self, instruction: Value) {
        llvm!(self, LLVMInstructionRemoveFromParent(instruction.0));
        llvm!(self, LLVMInsertIntoBuilder(self.builder, instruction.0));
    }

    /// Calls a function.
    pub fn call(&self, function: Value, arguments: &[Value]) -> Value {
        let ty = self.global_type(function);
        let arguments: Vec<*mut RawValue> = arguments.iter().map(|argument| argument.0).collect();
        let count = arguments.len() as c_uint;
        Value(llvm!(
            self,
            LLVMBuildCall2(self.builder, ty.0, function.0, arguments.as_ptr(), count, c"".as_ptr())
        ))
    }

    /// A call keeps all general registers but one.
    pub fn keep_registers(&self, call: Value) {
        const PRESERVE_MOST: c_uint = 14;
        llvm!(self, LLVMSetInstructionCallConv(call.0, PRESERVE_MOST));
    }

    /// Reserves memory in the frame of the function.
    pub fn alloca(&self, ty: Type) -> Value {
        Value(llvm!(self, LLVMBuildAlloca(self.builder, ty.0, c"".as_ptr())))
    }

    /// The address that lies this many bytes after another one.
    pub fn offset(&self, address: Value, bytes: u64) -> Value {
        if bytes == 0 {
            return address;
        }
        let by = self.number(self.int(64), bytes).0;
        let ty = self.int(8).0;
        Value(llvm!(self, LLVMBuildGEP2(self.builder, ty, address.0, &by, 1, c"".as_ptr())))
    }

    /// Loads.
    pub fn load(&self, ty: Type, address: Value) -> Value {
        Value(llvm!(self, LLVMBuildLoad2(self.builder, ty.0, address.0, c"".as_ptr())))
    }

    /// Stores.
    pub fn store(&self, stored: Value, address: Value) -> Value {
        Value(llvm!(self, LLVMBuildStore(self.builder, stored.0, address.0)))
    }

    /// Sets this many words of 8 bytes to 0, without a call: a program may replace `memset`.
    pub fn clear(&self, address: Value, words: u64) {
        const CODE: &str = "rep stosq";
        const CONSTRAINTS: &str = "={di},={cx},{ax},0,1,~{memory}";
        const ATT: c_uint = 0;
        let result = [self.pointer(), self.int(64)].map(|ty| ty.0);
        let result = Type(llvm!(self, LLVMStructTypeInContext(self.context, result.as_ptr(), 2, 0)));
        let ty = self.function_type(&[self.int(64), self.pointer(), self.int(64)], Some(result));
        let assembly = llvm!(
            self,
            LLVMGetInlineAsm(
                ty.0,
                CODE.as_ptr().cast(),
                CODE.len(),
                CONSTRAINTS.as_ptr().cast(),
                CONSTRAINTS.len(),
                1,
                0,
                ATT,
                0
            )
        );
        let arguments =
            [self.number(self.int(64), 0), address, self.number(self.int(64), words)].map(|value| value.0);
        llvm!(self, LLVMBuildCall2(self.builder, ty.0, assembly, arguments.as_ptr(), 3, c"".as_ptr()));
    }

    /// Compares integers or pointers.
    pub fn compare(&self, predicate: u32, a: Value, b: Value) -> Value {
        Value(llvm!(self, LLVMBuildICmp(self.builder, predicate, a.0, b.0, c"".as_ptr())))
    }

    /// A binary operation: additions, multiplications and shifts.
    pub fn binary(&self, opcode: u32, a: Value, b: Value) -> Value {
        let (builder, name) = (self.builder, c"".as_ptr());
        Value(match opcode {
            instruction::ADD => llvm!(self, LLVMBuildAdd(builder, a.0, b.0, name)),
            instruction::SUB => llvm!(self, LLVMBuildSub(builder, a.0, b.0, name)),
            instruction::MUL => llvm!(self, LLVMBuildMul(builder, a.0, b.0, name)),
            instruction::LSHR => llvm!(self, LLVMBuildLShr(builder, a.0, b.0, name)),
            instruction::SHL => llvm!(self, LLVMBuildShl(builder, a.0, b.0, name)),
            _ => llvm!(self, LLVMBuildOr(builder, a.0, b.0, name)),
        })
    }

    /// A cast: between pointers and integers, of bits, or to another width.
    pub fn cast(&self, opcode: u32, of: Value, ty: Type) -> Value {
        let (builder, name) = (self.builder, c"".as_ptr());
        Value(match opcode {
            instruction::PTR_TO_INT => llvm!(self, LLVMBuildPtrToInt(builder, of.0, ty.0, name)),
            instruction::SEXT => llvm!(self, LLVMBuildSExt(builder, of.0, ty.0, name)),
            instruction::ZEXT => llvm!(self, LLVMBuildZExt(builder, of.0, ty.0, name)),
            instruction::TRUNC => llvm!(self, LLVMBuildTrunc(builder, of.0, ty.0, name)),
            _ => llvm!(self, LLVMBuildBitCast(builder, of.0, ty.0, name)),
        })
    }

    /// A field of a structure, or an element of an array or vector.
    pub fn extract(&self, of: Value, index: u32) -> Value {
        if self.kind(self.type_of(of)) == kind::VECTOR {
            let index = self.number(self.int(32), index.into());
            return Value(llvm!(self, LLVMBuildExtractElement(self.builder, of.0, index.0, c"".as_ptr())));
        }
        Value(llvm!(self, LLVMBuildExtractValue(self.builder, of.0, index, c"".as_ptr())))
    }

    /// Branches to one of two blocks.
    pub fn branch_if(&self, condition: Value, yes: Block, no: Block) -> Value {
        Value(llvm!(self, LLVMBuildCondBr(self.builder, condition.0, yes.0, no.0)))
    }

    /// Why LLVM does not accept the module.
    pub fn verify(&self) -> Option<String> {
        const RETURN_STATUS: c_uint = 2;
        let mut text = null_mut();
        let bad = llvm!(self, LLVMVerifyModule(self.module, RETURN_STATUS, &mut text)) != 0;
        if text.is_null() {
            return bad.then(|| "no reason given".to_owned());
        }
        // SAFETY: it is a message of LLVM, which ends with a zero.
        let said = unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned();
        llvm!(self, LLVMDisposeMessage(text));
        bad.then_some(said)
    }

    /// Writes the module as text, for whoever looks for a mistake in the pass.
    pub fn print(&self, path: &str) {
        if let Ok(path) = CString::new(path) {
            let mut text = null_mut();
            llvm!(self, LLVMPrintModuleToFile(self.module, path.as_ptr(), &mut text));
        }
    }
}
