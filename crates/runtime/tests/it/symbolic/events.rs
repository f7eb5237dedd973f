//! Events: sharing, visible operations, and what threads were about to do at the end.

use super::*;

#[test]
fn shared_memory_has_events_and_other_memory_has_none() {
    let trace = trace(
        "static int x, alone;
         static void *other(void *a) {
             V v = load(&x, 4);
             store(&alone, 4, v);
             if (branch(binary(EQ, 32, 1, load(&alone, 4), constant(5)))) store(&x, 4, binary(ADD, 32, 32, v, constant(1)));
             return a;
         }
         int main(void) {
             store(&x, 4, constant(5));
             join(start(other, 0));
             return load(&x, 4).v != 6;
         }",
    );
    assert!(trace.losses.is_exact(), "{:?}", trace.losses);
    assert_eq!(accesses(&trace), [(0, true, 4, 5), (1, false, 4, 5), (1, true, 4, 6), (0, false, 4, 6)]);
    assert_eq!(branches(&trace), [(1, true)]);
}
