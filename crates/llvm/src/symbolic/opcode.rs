//! The numbers of LLVM's C interface: instructions, kinds of types, predicates, linkage.

/// Instructions, as `LLVMOpcode` has them.
pub mod instruction {
    pub const RET: u32 = 1;
    pub const BR: u32 = 2;
    pub const SWITCH: u32 = 3;
    pub const INDIRECT_BR: u32 = 4;
    pub const INVOKE: u32 = 5;
    pub const UNREACHABLE: u32 = 7;
    pub const ADD: u32 = 8;
    pub const FADD: u32 = 9;
    pub const SUB: u32 = 10;
    pub const FSUB: u32 = 11;
    pub const MUL: u32 = 12;
    pub const FMUL: u32 = 13;
    pub const UDIV: u32 = 14;
    pub const SDIV: u32 = 15;
    pub const FDIV: u32 = 16;
    pub const UREM: u32 = 17;
    pub const SREM: u32 = 18;
    pub const FREM: u32 = 19;
    pub const SHL: u32 = 20;
    pub const LSHR: u32 = 21;
    pub const ASHR: u32 = 22;
    pub const AND: u32 = 23;
    pub const OR: u32 = 24;
    pub const XOR: u32 = 25;
    pub const ALLOCA: u32 = 26;
    pub const LOAD: u32 = 27;
    pub const STORE: u32 = 28;
    pub const GET_ELEMENT_PTR: u32 = 29;
    pub const TRUNC: u32 = 30;
    pub const ZEXT: u32 = 31;
    pub const SEXT: u32 = 32;
    pub const FP_TO_UI: u32 = 33;
    pub const FP_EXT: u32 = 38;
    pub const PTR_TO_INT: u32 = 39;
    pub const INT_TO_PTR: u32 = 40;
    pub const BIT_CAST: u32 = 41;
    pub const ICMP: u32 = 42;
    pub const FCMP: u32 = 43;
    pub const PHI: u32 = 44;
    pub const CALL: u32 = 45;
    pub const SELECT: u32 = 46;
    pub const VA_ARG: u32 = 49;
    pub const EXTRACT_ELEMENT: u32 = 50;
    pub const INSERT_ELEMENT: u32 = 51;
    pub const SHUFFLE_VECTOR: u32 = 52;
    pub const EXTRACT_VALUE: u32 = 53;
    pub const INSERT_VALUE: u32 = 54;
    pub const COMPARE_EXCHANGE: u32 = 56;
    pub const ATOMIC_RMW: u32 = 57;
    pub const RESUME: u32 = 58;
    pub const LANDING_PAD: u32 = 59;
    pub const FNEG: u32 = 66;
    pub const CALL_BR: u32 = 67;
    pub const FREEZE: u32 = 68;
    pub const PTR_TO_ADDR: u32 = 69;
}

/// Kinds of types, as `LLVMTypeKind` has them.
pub mod kind {
    pub const VOID: u32 = 0;
    pub const HALF: u32 = 1;
    pub const FLOAT: u32 = 2;
    pub const DOUBLE: u32 = 3;
    pub const X86_FP80: u32 = 4;
    pub const FP128: u32 = 5;
    pub const INTEGER: u32 = 8;
    pub const STRUCT: u32 = 10;
    pub const ARRAY: u32 = 11;
    pub const POINTER: u32 = 12;
    pub const VECTOR: u32 = 13;
    pub const BFLOAT: u32 = 18;
}

/// Integer comparisons, as `LLVMIntPredicate` has them.
pub mod predicate {
    pub const EQ: u32 = 32;
    pub const NE: u32 = 33;
    pub const UGT: u32 = 34;
    pub const UGE: u32 = 35;
    pub const ULT: u32 = 36;
    pub const ULE: u32 = 37;
    pub const SGT: u32 = 38;
    pub const SGE: u32 = 39;
    pub const SLT: u32 = 40;
}

/// Linkage, as `LLVMLinkage` has it.
pub mod linkage {
    pub const AVAILABLE_EXTERNALLY: u32 = 1;
    pub const LINK_ONCE_ANY: u32 = 2;
    pub const WEAK_ANY: u32 = 5;
    pub const INTERNAL: u32 = 8;
    pub const PRIVATE: u32 = 9;
    pub const EXTERN_WEAK: u32 = 12;
}

/// The index that stands for the function among the indices of attributes.
pub const FUNCTION: u32 = u32::MAX;

/// The number of a tail call that must be one, as `LLVMTailCallKind` has it.
pub const MUST_TAIL: u32 = 2;

/// Hidden symbols, as `LLVMVisibility` has them.
pub const HIDDEN: u32 = 1;
