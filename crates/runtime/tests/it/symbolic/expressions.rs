//! Expressions: nodes, and the memory that holds them. A program pins each result, so that its expression is compared with
//! the value that the program had.

use super::*;
use heisen_trace::symbolic::PinReason;

/// How many expressions a program has pinned because they are without an operation of the trace.
fn pins(trace: &SymbolicTrace) -> usize {
    let is_pin =
        |event: &&SymbolicEvent| matches!(event.kind, EventKind::Pin { reason: PinReason::Other, .. });
    trace.events.iter().filter(is_pin).count()
}

/// The trace of a program with the input `x` of 4 bytes, which is 0x11223344.
#[track_caller]
fn trace_with_input(body: &str) -> Arc<SymbolicTrace> {
    trace(&format!("int main(void) {{ V x = input(\"x\", 0x11223344); {body} return 0; }}"))
}

#[test]
fn operations_have_the_values_of_the_program() {
    let trace = trace_with_input(
        "V sum = binary(ADD, 32, 32, x, constant(7));
         V wide = unary(ZEXT, 32, 64, binary(MUL, 32, 32, sum, x));
         V low = unary(TRUNC, 64, 8, binary(LSHR, 64, 64, wide, constant(8)));
         V less = binary(ULT, 32, 1, constant(5), sum);
         pin(sum, 8); pin(wide, 8); pin(low, 8); pin(less, 8); pin(choose(32, less, x, constant(1)), 8);
         pin(unary(NOT, 32, 32, x), 8); pin(binary(SUB, 32, 32, constant(3), x), 8);",
    );
    assert_eq!(pins(&trace), 7);
    assert_eq!(trace.losses.pinned, [(PinReason::Other, 7)]);
}

#[test]
fn equal_expressions_are_one_node_and_are_asserted_once() {
    let trace = trace_with_input(
        "for (int i = 0; i < 1000; i++) branch(binary(ULT, 32, 1, binary(ADD, 32, 32, x, constant(1)), constant(9)));",
    );
    assert_eq!((trace.nodes.len(), branches(&trace).len()), (3, 1));
}

#[test]
fn results_that_do_not_depend_on_the_unknown_are_concrete() {
    let trace = trace_with_input(
        "V byte = binary(AND, 32, 32, x, constant(0xff));
         if (binary(AND, 32, 32, byte, constant(0xff00)).id) abort();
         if (binary(LSHR, 32, 32, byte, constant(8)).id) abort();
         if (binary(EQ, 32, 1, byte, constant(0x100)).id) abort();
         if (binary(AND, 32, 32, byte, constant(0xff)).id != byte.id) abort();
         if (unary(TRUNC, 32, 8, unary(ZEXT, 8, 32, unary(TRUNC, 32, 8, x))).id != unary(TRUNC, 32, 8, x).id) abort();
         if (!binary(LSHR, 32, 32, byte, constant(7)).id) abort();
         if (!binary(EQ, 32, 1, byte, constant(0xff)).id) abort();
         V sum = binary(ADD, 32, 32, byte, byte);
         if (!binary(LSHR, 32, 32, sum, constant(8)).id || binary(LSHR, 32, 32, sum, constant(9)).id) abort();",
    );
    assert!(trace.losses.is_exact());
}

#[test]
fn memory_holds_expressions() {
    let trace = trace_with_input(
        "static unsigned char m[64];
         store(m, 4, x); pin(load(m, 4), 8);
         if (load(m, 4).id != x.id) abort();
         // Parts, and parts together with concrete bytes.
         pin(load(m + 1, 2), 8); pin(load(m + 3, 1), 8); pin(load(m + 2, 8), 8);
         store(m + 1, 1, constant(0xaa)); pin(load(m, 4), 8);
         // Two expressions side by side, and one inside another.
         store(m + 16, 4, x); store(m + 20, 4, binary(ADD, 32, 32, x, constant(1))); pin(load(m + 18, 4), 8);
         pin(load(m + 16, 8), 8); store(m + 17, 2, unary(TRUNC, 32, 16, x)); pin(load(m + 16, 4), 8);
         // A comparison takes a byte.
         store(m + 32, 1, binary(ULT, 32, 1, x, constant(5))); pin(load(m + 32, 1), 8);
         pin(unary(TRUNC, 8, 1, load(m + 32, 1)), 8);
         // Across pages.
         static unsigned char large[8192]; unsigned char *edge = large + 4096 - ((uintptr_t)large & 4095) - 2;
         store(edge, 4, x); pin(load(edge, 4), 8); pin(load(edge + 1, 8), 8);",
    );
    // Of these loads, two give the expression `x` again, and it is pinned only once.
    assert_eq!((pins(&trace), trace.losses.overwritten), (11, 0));
    assert_eq!(accesses(&trace), []);
}

#[test]
fn concrete_stores_remove_expressions() {
    let trace = trace_with_input(
        "static unsigned char m[64];
         store(m, 4, x); store(m, 4, constant(0x11223344)); if (load(m, 4).id) abort();
         store(m, 4, x); store(m + 8, 4, x); copy(m + 16, m, 16);
         CALL(4, void, uint64_t, uint64_t, uint32_t, uint32_t, uint64_t)((uint64_t)m, 16, 0, 0, 0);
         if (load(m, 4).id || load(m + 8, 4).id || !load(m + 16, 4).id || !load(m + 24, 4).id) abort();
         fill(m + 16, constant(0x44), 1); if (load(m + 16, 1).id || !load(m + 17, 1).id) abort();",
    );
    assert!(trace.losses.is_exact(), "{:?}", trace.losses);
}

#[test]
fn copies_take_expressions_along() {
    let trace = trace_with_input(
        "static unsigned char m[256], n[256];
         for (int i = 0; i < 8; i++) store(m + 8 * i, 4, binary(ADD, 32, 32, x, constant(i)));
         copy(n + 3, m, 64); for (int i = 0; i < 8; i++) pin(load(n + 3 + 8 * i, 4), 8);
         // Both directions of an overlap, by distances that cut words in two.
         copy(m + 5, m, 64); for (int i = 0; i < 8; i++) pin(load(m + 5 + 8 * i, 8), 8);
         copy(n, n + 3, 64); for (int i = 0; i < 8; i++) if (load(n + 8 * i, 4).id != load(n + 8 * i, 4).id) abort();
         if (!load(n, 4).id || load(n + 4, 4).id) abort();
         // A concrete source clears.
         static unsigned char zeros[64]; copy(m, zeros, 64); if (load(m + 5, 8).id) abort();
         fill(m, unary(TRUNC, 32, 8, x), 11); pin(load(m, 8), 8); pin(load(m + 7, 4), 8); pin(load(m + 9, 4), 8);",
    );
    assert_eq!((pins(&trace), trace.losses.overwritten), (19, 0));
}

#[test]
fn unseen_writes_remove_expressions_and_are_counted() {
    let trace = trace_with_input(
        "static unsigned char m[64];
         store(m, 4, x); m[2] = 9; if (load(m, 4).id || load(m, 4).id) abort();
         store(m, 4, x); m[2] = 0x22; if (!load(m, 4).id) abort();",
    );
    assert_eq!(trace.losses.overwritten, 1);
    assert!(!trace.losses.is_exact());
}

#[test]
fn new_memory_holds_no_expressions() {
    let trace = trace_with_input(
        "char *p = malloc(5000), *q, *other = malloc(40);
         store(p, 4, x); store(p + 100, 4, x); free(p); q = malloc(5000);
         if (p != q) abort();
         memcpy(q, &x.v, 4); if (load(q, 4).id) abort();
         // But what realloc moves goes along.
         store(other, 4, x); static void *volatile barrier; barrier = malloc(3000); char *moved = realloc(other, 30000);
         if (moved == other || !load(moved, 4).id) abort();
         pin(load(moved + 1, 4), 8); free(barrier);",
    );
    assert_eq!((pins(&trace), trace.losses.overwritten), (1, 0));
}

#[test]
fn updates_of_memory_that_is_not_shared() {
    let trace = trace_with_input(
        "static volatile uint32_t m = 5;
         if (update(1, &m, x).id) abort();
         pin(update(8, &m, constant(7)), 8); pin(load(&m, 4), 8);
         pin(update(0, &m, x), 8); if (load(&m, 4).id != x.id) abort();
         V old = compare(&m, constant(3), constant(4), 0); if (old.id != x.id || m != 0x11223344) abort();
         old = compare(&m, constant(0x11223344), constant(4), 1); if (old.id != x.id || load(&m, 4).id != x.id) abort();
         old = compare(&m, constant(0x11223344), constant(4), 0); if (old.id != x.id || load(&m, 4).id) abort();",
    );
    assert_eq!((branches(&trace), accesses(&trace)), (vec![(0, false), (0, true)], vec![]));
}
