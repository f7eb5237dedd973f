//! The list of callbacks that instrumented code calls.
//!
//! Compilers emit calls to them (`-fsanitize=thread`), the stub that is linked to each instrumented program
//! forwards them, and the runtime answers them. Names and meaning are those of ThreadSanitizer.
//!
//! The list holds the callbacks that gcc 12 and later, clang 14 and later and the LLVM of rustc can emit, as
//! found in their binaries. It also holds those that their headers declare for programs.
//!
//! Stub and runtime may come from different builds. The runtime has a [`Table`] with a version, and a stub
//! uses no table of another version. Therefore **the order never changes**: additions come last, with a new
//! [`VERSION`].
#![no_std]

pub mod symbolic;

/// Increases with every change of [`callbacks`].
pub const VERSION: u32 = 1;

/// The table of the runtime's callbacks. The runtime exports it as `heisen_tsan_table`; stubs look for it
/// when they are initialised, which may be before the runtime is.
#[repr(C)]
#[derive(Debug)]
pub struct Table {
    /// [`VERSION`]
    pub version: u32,
    /// [`COUNT`]
    pub length: u32,
    /// A function for each name, in the order of [`callbacks`].
    pub callbacks: [*const (); COUNT],
}

// SAFETY: the pointers are addresses of functions, and nobody writes them.
unsafe impl Sync for Table {}

/// Calls the macro that it is given with the list: `kind(argument) name;` for each callback.
///
/// | kind | in C |
/// | --- | --- |
/// | `init()` | `void f(void)`; for each unit of code, or more often |
/// | `enter()` | `void f(void *pc)`: a function begins that was called from `pc` |
/// | `leave()` | `void f(void)` |
/// | `read(bytes)`, `write(bytes)`, `read_write(bytes)`, `volatile_read(bytes)`, `volatile_write(bytes)` | `void f(void *address)` |
/// | `read_pc(bytes)`, `write_pc(bytes)` | `void f(void *address, void *pc)` |
/// | `read_range()`, `write_range()` | `void f(void *address, unsigned long bytes)` |
/// | `read_range_pc()`, `write_range_pc()` | `void f(void *address, unsigned long bytes, void *pc)` |
/// | `vptr_update()` | `void f(void **address, void *value)`: about to be written |
/// | `vptr_read()` | `void f(void **address)` |
/// | `memcpy()`, `memmove()`, `memset()` | as the C library's |
/// | `load(type)` | `type f(const type *address, int order)` |
/// | `store(type)` | `void f(type *address, type value, int order)` |
/// | `exchange(type)`, `fetch_…(type)` | `type f(type *address, type operand, int order)`: gives the old value |
/// | `compare_exchange(type)` | `int f(type *address, type *expected, type value, int order, int order_if_not)` |
/// | `compare_exchange_val(type)` | `type f(type *address, type expected, type value, int order, int order_if_not)` |
/// | `thread_fence()`, `signal_fence()` | `void f(int order)` |
/// | `ignore_begin()`, `ignore_end()` | `void f(void)` |
/// | `acquire()`, `release()` | `void f(void *address)`: an edge from each release of an address to later acquires |
/// | `mutex(what)` | `void f(void *address, unsigned flags)`, `post_lock` with `int recursion`; `pre_unlock` gives `int` |
/// | `annotate_happens(when)` | `void f(const char *file, int line, void *address)`: `before` releases, `after` acquires |
/// | `told()` | various, see `sanitizer/tsan_interface.h`; giving 0 is always right |
///
/// Orders are those of C11: 0 relaxed, 1 consume, 2 acquire, 3 release, 4 both, 5 sequentially consistent; higher bits are
/// hints of gcc's.
#[macro_export]
macro_rules! callbacks {
    ($with:ident) => {
        $with! {
            // The frame of a function, and of a unit of code.
            init() __tsan_init;
            enter() __tsan_func_entry;
            leave() __tsan_func_exit;
            // Plain accesses.
            read(1) __tsan_read1;
            read(2) __tsan_read2;
            read(4) __tsan_read4;
            read(8) __tsan_read8;
            read(16) __tsan_read16;
            write(1) __tsan_write1;
            write(2) __tsan_write2;
            write(4) __tsan_write4;
            write(8) __tsan_write8;
            write(16) __tsan_write16;
            read(2) __tsan_unaligned_read2;
            read(4) __tsan_unaligned_read4;
            read(8) __tsan_unaligned_read8;
            read(16) __tsan_unaligned_read16;
            write(2) __tsan_unaligned_write2;
            write(4) __tsan_unaligned_write4;
            write(8) __tsan_unaligned_write8;
            write(16) __tsan_unaligned_write16;
            // Clang, with -tsan-compound-read-before-write: a read and then a write of the same location.
            read_write(1) __tsan_read_write1;
            read_write(2) __tsan_read_write2;
            read_write(4) __tsan_read_write4;
            read_write(8) __tsan_read_write8;
            read_write(16) __tsan_read_write16;
            read_write(2) __tsan_unaligned_read_write2;
            read_write(4) __tsan_unaligned_read_write4;
            read_write(8) __tsan_unaligned_read_write8;
            read_write(16) __tsan_unaligned_read_write16;
            // Accesses with an explicit code address.
            read_pc(1) __tsan_read1_pc;
            read_pc(2) __tsan_read2_pc;
            read_pc(4) __tsan_read4_pc;
            read_pc(8) __tsan_read8_pc;
            read_pc(16) __tsan_read16_pc;
            write_pc(1) __tsan_write1_pc;
            write_pc(2) __tsan_write2_pc;
            write_pc(4) __tsan_write4_pc;
            write_pc(8) __tsan_write8_pc;
            write_pc(16) __tsan_write16_pc;
            // Volatile accesses, if the compiler is asked to distinguish them.
            volatile_read(1) __tsan_volatile_read1;
            volatile_read(2) __tsan_volatile_read2;
            volatile_read(4) __tsan_volatile_read4;
            volatile_read(8) __tsan_volatile_read8;
            volatile_read(16) __tsan_volatile_read16;
            volatile_write(1) __tsan_volatile_write1;
            volatile_write(2) __tsan_volatile_write2;
            volatile_write(4) __tsan_volatile_write4;
            volatile_write(8) __tsan_volatile_write8;
            volatile_write(16) __tsan_volatile_write16;
            volatile_read(2) __tsan_unaligned_volatile_read2;
            volatile_read(4) __tsan_unaligned_volatile_read4;
            volatile_read(8) __tsan_unaligned_volatile_read8;
            volatile_read(16) __tsan_unaligned_volatile_read16;
            volatile_write(2) __tsan_unaligned_volatile_write2;
            volatile_write(4) __tsan_unaligned_volatile_write4;
            volatile_write(8) __tsan_unaligned_volatile_write8;
            volatile_write(16) __tsan_unaligned_volatile_write16;
            // Ranges, as gcc uses them for structures.
            read_range() __tsan_read_range;
            write_range() __tsan_write_range;
            read_range_pc() __tsan_read_range_pc;
            write_range_pc() __tsan_write_range_pc;
            // The virtual function table pointer of an object.
            vptr_update() __tsan_vptr_update;
            vptr_read() __tsan_vptr_read;
            // Memory blocks: the callback does what the function of that name does.
            memcpy() __tsan_memcpy;
            memmove() __tsan_memmove;
            memset() __tsan_memset;
            // Atomics: the callback does the operation.
            load(u8) __tsan_atomic8_load;
            load(u16) __tsan_atomic16_load;
            load(u32) __tsan_atomic32_load;
            load(u64) __tsan_atomic64_load;
            load(u128) __tsan_atomic128_load;
            store(u8) __tsan_atomic8_store;
            store(u16) __tsan_atomic16_store;
            store(u32) __tsan_atomic32_store;
            store(u64) __tsan_atomic64_store;
            store(u128) __tsan_atomic128_store;
            exchange(u8) __tsan_atomic8_exchange;
            exchange(u16) __tsan_atomic16_exchange;
            exchange(u32) __tsan_atomic32_exchange;
            exchange(u64) __tsan_atomic64_exchange;
            exchange(u128) __tsan_atomic128_exchange;
            fetch_add(u8) __tsan_atomic8_fetch_add;
            fetch_add(u16) __tsan_atomic16_fetch_add;
            fetch_add(u32) __tsan_atomic32_fetch_add;
            fetch_add(u64) __tsan_atomic64_fetch_add;
            fetch_add(u128) __tsan_atomic128_fetch_add;
            fetch_sub(u8) __tsan_atomic8_fetch_sub;
            fetch_sub(u16) __tsan_atomic16_fetch_sub;
            fetch_sub(u32) __tsan_atomic32_fetch_sub;
            fetch_sub(u64) __tsan_atomic64_fetch_sub;
            fetch_sub(u128) __tsan_atomic128_fetch_sub;
            fetch_and(u8) __tsan_atomic8_fetch_and;
            fetch_and(u16) __tsan_atomic16_fetch_and;
            fetch_and(u32) __tsan_atomic32_fetch_and;
            fetch_and(u64) __tsan_atomic64_fetch_and;
            fetch_and(u128) __tsan_atomic128_fetch_and;
            fetch_or(u8) __tsan_atomic8_fetch_or;
            fetch_or(u16) __tsan_atomic16_fetch_or;
            fetch_or(u32) __tsan_atomic32_fetch_or;
            fetch_or(u64) __tsan_atomic64_fetch_or;
            fetch_or(u128) __tsan_atomic128_fetch_or;
            fetch_xor(u8) __tsan_atomic8_fetch_xor;
            fetch_xor(u16) __tsan_atomic16_fetch_xor;
            fetch_xor(u32) __tsan_atomic32_fetch_xor;
            fetch_xor(u64) __tsan_atomic64_fetch_xor;
            fetch_xor(u128) __tsan_atomic128_fetch_xor;
            fetch_nand(u8) __tsan_atomic8_fetch_nand;
            fetch_nand(u16) __tsan_atomic16_fetch_nand;
            fetch_nand(u32) __tsan_atomic32_fetch_nand;
            fetch_nand(u64) __tsan_atomic64_fetch_nand;
            fetch_nand(u128) __tsan_atomic128_fetch_nand;
            compare_exchange(u8) __tsan_atomic8_compare_exchange_strong;
            compare_exchange(u16) __tsan_atomic16_compare_exchange_strong;
            compare_exchange(u32) __tsan_atomic32_compare_exchange_strong;
            compare_exchange(u64) __tsan_atomic64_compare_exchange_strong;
            compare_exchange(u128) __tsan_atomic128_compare_exchange_strong;
            compare_exchange(u8) __tsan_atomic8_compare_exchange_weak;
            compare_exchange(u16) __tsan_atomic16_compare_exchange_weak;
            compare_exchange(u32) __tsan_atomic32_compare_exchange_weak;
            compare_exchange(u64) __tsan_atomic64_compare_exchange_weak;
            compare_exchange(u128) __tsan_atomic128_compare_exchange_weak;
            compare_exchange_val(u8) __tsan_atomic8_compare_exchange_val;
            compare_exchange_val(u16) __tsan_atomic16_compare_exchange_val;
            compare_exchange_val(u32) __tsan_atomic32_compare_exchange_val;
            compare_exchange_val(u64) __tsan_atomic64_compare_exchange_val;
            compare_exchange_val(u128) __tsan_atomic128_compare_exchange_val;
            thread_fence() __tsan_atomic_thread_fence;
            signal_fence() __tsan_atomic_signal_fence;
            // Accesses between these two are ignored.
            ignore_begin() __tsan_ignore_thread_begin;
            ignore_end() __tsan_ignore_thread_end;
            // Functions of sanitizer/tsan_interface.h. Instrumented programs call them, and so do the headers
            // of libstdc++.
            acquire() __tsan_acquire;
            release() __tsan_release;
            mutex(create) __tsan_mutex_create;
            mutex(destroy) __tsan_mutex_destroy;
            mutex(pre_lock) __tsan_mutex_pre_lock;
            mutex(post_lock) __tsan_mutex_post_lock;
            mutex(pre_unlock) __tsan_mutex_pre_unlock;
            mutex(post_unlock) __tsan_mutex_post_unlock;
            mutex(pre_signal) __tsan_mutex_pre_signal;
            mutex(post_signal) __tsan_mutex_post_signal;
            mutex(pre_divert) __tsan_mutex_pre_divert;
            mutex(post_divert) __tsan_mutex_post_divert;
            told() __tsan_get_current_fiber;
            told() __tsan_create_fiber;
            told() __tsan_destroy_fiber;
            told() __tsan_switch_to_fiber;
            told() __tsan_set_fiber_name;
            told() __tsan_external_register_tag;
            told() __tsan_external_register_header;
            told() __tsan_external_assign_tag;
            told() __tsan_external_read;
            told() __tsan_external_write;
            told() __tsan_flush_memory;
            // Virtual machines report their heaps by these.
            told() __tsan_java_init;
            told() __tsan_java_fini;
            told() __tsan_java_alloc;
            told() __tsan_java_free;
            told() __tsan_java_move;
            told() __tsan_java_find;
            told() __tsan_java_finalize;
            told() __tsan_java_mutex_lock;
            told() __tsan_java_mutex_unlock;
            told() __tsan_java_mutex_read_lock;
            told() __tsan_java_mutex_read_unlock;
            told() __tsan_java_mutex_lock_rec;
            told() __tsan_java_mutex_unlock_rec;
            told() __tsan_java_acquire;
            told() __tsan_java_release;
            told() __tsan_java_release_store;
            // Annotations of older programs, which declare them in their own header.
            annotate_happens(before) AnnotateHappensBefore;
            annotate_happens(after) AnnotateHappensAfter;
            told() AnnotateBenignRace;
            told() AnnotateBenignRaceSized;
            told() AnnotateCondVarSignal;
            told() AnnotateCondVarSignalAll;
            told() AnnotateCondVarWait;
            told() AnnotateEnableRaceDetection;
            told() AnnotateExpectRace;
            told() AnnotateFlushExpectedRaces;
            told() AnnotateFlushState;
            told() AnnotateIgnoreReadsBegin;
            told() AnnotateIgnoreReadsEnd;
            told() AnnotateIgnoreSyncBegin;
            told() AnnotateIgnoreSyncEnd;
            told() AnnotateIgnoreWritesBegin;
            told() AnnotateIgnoreWritesEnd;
            told() AnnotateMemoryIsInitialized;
            told() AnnotateMemoryIsUninitialized;
            told() AnnotateMutexIsNotPHB;
            told() AnnotateMutexIsUsedAsCondVar;
            told() AnnotateNewMemory;
            told() AnnotateNoOp;
            told() AnnotatePCQCreate;
            told() AnnotatePCQDestroy;
            told() AnnotatePCQGet;
            told() AnnotatePCQPut;
            told() AnnotatePublishMemoryRange;
            told() AnnotateRWLockAcquired;
            told() AnnotateRWLockCreate;
            told() AnnotateRWLockCreateStatic;
            told() AnnotateRWLockDestroy;
            told() AnnotateRWLockReleased;
            told() AnnotateThreadName;
            told() AnnotateTraceMemory;
            told() AnnotateUnpublishMemoryRange;
        }
    };
}

macro_rules! names {
    ($($kind:ident($($argument:tt)?) $name:ident;)*) => {
        [$(stringify!($name)),*]
    };
}

/// How many callbacks there are.
pub const COUNT: usize = NAMES.len();

/// Their names, in order.
pub const NAMES: &[&str] = &callbacks!(names);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_is_there_once() {
        for (index, name) in NAMES.iter().enumerate() {
            assert!(!NAMES[..index].contains(name), "{name}");
        }
    }

    #[test]
    fn a_version_has_its_list_for_good() {
        let bytes = NAMES.iter().flat_map(|name| name.bytes().chain([b'\n']));
        let hash = bytes
            .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
        assert_eq!(
            (VERSION, COUNT, hash),
            (1, 206, 1_357_166_316_050_847_637),
            "the list has changed: it needs a new version"
        );
    }
}
