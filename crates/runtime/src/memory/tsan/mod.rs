//! The callbacks of instrumented code: implements those that the list in `heisen-abi` names. With
//! `-fsanitize=thread` compilers insert calls before plain accesses and in place of atomic operations. The
//! names are ThreadSanitizer's, whose library this module replaces.
//!
//! Code that is linked with Heisen's stub gets here through [`heisen_tsan_table`], other code by the names
//! themselves.

mod annotate;
mod atomic;
mod block_access;
pub mod code;
pub mod plain;

pub use block_access::{Part, announce, copies, fills, touch};

use heisen_abi::{COUNT, Table, VERSION};

/// Exports the implementation of one callback. Each kind is one macro of this module's files.
macro_rules! export {
    ($($kind:ident($($argument:tt)?) $name:ident;)*) => {$(
        one!($kind($($argument)?) $name);
    )*};
}

macro_rules! one {
    (init() $name:ident) => {
        annotate::init!($name);
    };
    (enter() $name:ident) => {
        annotate::enter!($name);
    };
    (leave() $name:ident) => {
        annotate::nothing!($name);
    };
    (read($n:literal) $name:ident) => {
        plain::accesses!($name, [$n], [false], [false]);
    };
    (write($n:literal) $name:ident) => {
        plain::accesses!($name, [$n], [true], [false]);
    };
    (read_write($n:literal) $name:ident) => {
        plain::both!($name, $n);
    };
    (volatile_read($n:literal) $name:ident) => {
        plain::accesses!($name, [$n], [false], [true]);
    };
    (volatile_write($n:literal) $name:ident) => {
        plain::accesses!($name, [$n], [true], [true]);
    };
    (read_pc($n:literal) $name:ident) => {
        plain::access_pc!($name, $n, false);
    };
    (write_pc($n:literal) $name:ident) => {
        plain::access_pc!($name, $n, true);
    };
    (read_range() $name:ident) => {
        plain::range!($name, false);
    };
    (write_range() $name:ident) => {
        plain::range!($name, true);
    };
    (read_range_pc() $name:ident) => {
        plain::range_pc!($name, false);
    };
    (write_range_pc() $name:ident) => {
        plain::range_pc!($name, true);
    };
    (vptr_update() $name:ident) => {
        plain::vptr_update!($name);
    };
    (vptr_read() $name:ident) => {
        plain::accesses!($name, [8], [false], [false]);
    };
    (memcpy() $name:ident) => {
        block_access::copy!($name);
    };
    (memmove() $name:ident) => {
        block_access::copy!($name);
    };
    (memset() $name:ident) => {
        block_access::set!($name);
    };
    (load($ty:ident) $name:ident) => {
        atomic::loads!($name, $ty);
    };
    (store($ty:ident) $name:ident) => {
        atomic::stores!($name, $ty);
    };
    (exchange($ty:ident) $name:ident) => {
        atomic::updates!($name, $ty, |_old, operand| operand);
    };
    (fetch_add($ty:ident) $name:ident) => {
        atomic::updates!($name, $ty, |old, operand| old.wrapping_add(operand));
    };
    (fetch_sub($ty:ident) $name:ident) => {
        atomic::updates!($name, $ty, |old, operand| old.wrapping_sub(operand));
    };
    (fetch_and($ty:ident) $name:ident) => {
        atomic::updates!($name, $ty, |old, operand| old & operand);
    };
    (fetch_or($ty:ident) $name:ident) => {
        atomic::updates!($name, $ty, |old, operand| old | operand);
    };
    (fetch_xor($ty:ident) $name:ident) => {
        atomic::updates!($name, $ty, |old, operand| old ^ operand);
    };
    (fetch_nand($ty:ident) $name:ident) => {
        atomic::updates!($name, $ty, |old, operand| !(old & operand));
    };
    (compare_exchange($ty:ident) $name:ident) => {
        atomic::compares!($name, $ty);
    };
    (compare_exchange_val($ty:ident) $name:ident) => {
        atomic::compares_val!($name, $ty);
    };
    (thread_fence() $name:ident) => {
        atomic::fences!($name);
    };
    (signal_fence() $name:ident) => {
        annotate::nothing!($name);
    };
    (ignore_begin() $name:ident) => {
        annotate::nothing!($name);
    };
    (ignore_end() $name:ident) => {
        annotate::nothing!($name);
    };
    (acquire() $name:ident) => {
        annotate::order!($name, acquire);
    };
    (release() $name:ident) => {
        annotate::order!($name, release);
    };
    (mutex(post_lock) $name:ident) => {
        annotate::order!($name, acquire);
    };
    (mutex(pre_unlock) $name:ident) => {
        annotate::order!($name, release);
    };
    (mutex($what:ident) $name:ident) => {
        annotate::nothing!($name);
    };
    (annotate_happens(before) $name:ident) => {
        annotate::happens!($name, release);
    };
    (annotate_happens(after) $name:ident) => {
        annotate::happens!($name, acquire);
    };
    (told() $name:ident) => {
        annotate::nothing!($name);
    };
}

/// The exported functions, in a module of their own so that their names do not collide with others.
pub mod exports {
    use super::{annotate, atomic, block_access, plain};
    heisen_abi::callbacks!(export);
}

macro_rules! addresses {
    ($($kind:ident($($argument:tt)?) $name:ident;)*) => { [$(exports::$name as *const (),)*] };
}

/// The implementations, for stubs.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
pub static heisen_tsan_table: Table =
    Table { version: VERSION, length: COUNT as u32, callbacks: heisen_abi::callbacks!(addresses) };
