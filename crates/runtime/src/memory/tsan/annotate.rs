//! Callbacks of instrumented code besides accesses: function entries and exits, and annotations. The
//! annotations are those of `sanitizer/tsan_interface.h` and of older headers. Only the ones that order threads
//! have an effect; function entries matter only to scripts.

use crate::sched::dependence;
use crate::sched::{self, SCHED};
use heisen_trace::Op;

/// A scheduling point at an annotation, which then orders.
pub fn ordered(order: fn(usize), object: usize, pc: usize) {
    if SCHED.active.get() && SCHED.running.get() {
        sched::point(Op::Point, object, pc);
        dependence::write(object);
        order(object);
    }
}

macro_rules! nothing {
    ($name:ident) => {
        /// Does nothing, and returns 0.
        ///
        /// # Safety
        /// Called by instrumented code.
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() -> usize {
            core::arch::naked_asm!(".cfi_startproc", "xor eax, eax", "ret", ".cfi_endproc")
        }
    };
}
pub(super) use nothing;

macro_rules! enter {
    ($name:ident) => {
        /// A function begins; a script may wait for that.
        ///
        /// # Safety
        /// Called by instrumented code.
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() -> usize {
            core::arch::naked_asm!(
                ".cfi_startproc",
                "test byte ptr [rip + {mode}], {script}",
                "jne 2f",
                "xor eax, eax",
                "ret",
                // The place within the function.
                "2:",
                "mov rdi, [rsp]",
                "jmp {calls}",
                ".cfi_endproc",
                mode = sym $crate::sched::access_mode::MODE,
                script = const $crate::sched::access_mode::mode::SCRIPT,
                calls = sym $crate::script::unit_mode::calls,
            )
        }
    };
}
pub(super) use enter;

macro_rules! init {
    ($name:ident) => {
        /// Code of the program is instrumented: the race check follows its accesses from now on.
        ///
        /// # Safety
        /// Called by instrumented code.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name() {
            $crate::memory::race::instrumented();
        }
    };
}
pub(super) use init;

macro_rules! order {
    ($name:ident, $what:ident) => {
        /// Orders threads by an object: everything before a release there is ordered before a later acquire. A
        /// scheduling point, as every operation that orders threads.
        ///
        /// # Safety
        /// Called by instrumented code.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(object: usize) -> i32 {
            $crate::memory::tsan::annotate::ordered(
                $crate::memory::race::order::$what,
                object,
                $crate::platform::registers::caller!(),
            );
            0
        }
    };
}
pub(super) use order;

macro_rules! happens {
    ($name:ident, $what:ident) => {
        /// Orders threads by an object: everything before a "happens before" there is ordered before a later
        /// "happens after". A scheduling point, as every operation that orders threads.
        ///
        /// # Safety
        /// Called by instrumented code.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(_file: usize, _line: i32, object: usize) {
            $crate::memory::tsan::annotate::ordered(
                $crate::memory::race::order::$what,
                object,
                $crate::platform::registers::caller!(),
            );
        }
    };
}
pub(super) use happens;
