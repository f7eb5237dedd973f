//! Tests of the places that Heisen reports in patched code: frames and lines are those of the unpatched
//! program.

use heisen_testkit::Sandbox;

const CRASH: &str = "#include <pthread.h>
static int *p, z;
static __attribute__((noinline)) int take(int *q, int n) {
    __atomic_fetch_add(q, n, __ATOMIC_SEQ_CST);
    return n + 1;
}
static void *clear(void *a) {
    __atomic_exchange_n(&p, (int *)0, __ATOMIC_SEQ_CST);
    return a;
}
static __attribute__((noinline)) int outer(void) {
    int *q = __sync_val_compare_and_swap(&p, 0, 0);
    int r = take(q, 3);
    return r - 4;
}
int main(void) {
    pthread_t t;
    __atomic_exchange_n(&p, &z, __ATOMIC_SEQ_CST);
    pthread_create(&t, 0, clear, 0);
    int r = outer();
    pthread_join(t, 0);
    return r;
}
";

#[test]
fn a_crash_in_an_atomic_instruction() {
    for flags in [["-O0"], ["-O2"]] {
        let sandbox = Sandbox::new();
        let path = sandbox.compile("crash.c", CRASH, &flags);
        let finding = sandbox.finds("crash", &["--patch", "default", "--", path.to_str().unwrap()]);
        assert_eq!(finding["place"], "crash.c:4", "{finding:#}");
        let schedule = finding["schedule"].as_str().unwrap();
        let ran = sandbox.heisen(&["replay", "--trace", schedule]).expect(1);
        // The stack of the crash, and the place of the preemption.
        for words in [
            "in T0 (main), take at crash.c:4",
            "called from outer ← main",
            "preempted before atomic_cas(p) at crash.c:12; T1 (clear) runs",
            "T1   atomic_rmw(p)  crash.c:8",
            "T0   atomic_cas(p)  crash.c:12",
        ] {
            assert!(ran.out.contains(words), "{words:?} is not in:\n{}", ran.out);
        }
    }
}

/// The report of a deadlock shows a thread that was switched out in patched code.
#[test]
fn a_thread_that_is_switched_out() {
    let text = "#include <pthread.h>
static int turn;
static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static void *one(void *x) {
    pthread_mutex_lock(&a);
    __atomic_fetch_add(&turn, 1, __ATOMIC_SEQ_CST);
    pthread_mutex_lock(&b);
    pthread_mutex_unlock(&b);
    pthread_mutex_unlock(&a);
    return x;
}
int main(void) {
    pthread_t t;
    pthread_create(&t, 0, one, 0);
    pthread_mutex_lock(&b);
    if (__atomic_exchange_n(&turn, 5, __ATOMIC_SEQ_CST) == 1) pthread_mutex_lock(&a);
    pthread_mutex_unlock(&b);
    pthread_join(t, 0);
}
";
    let sandbox = Sandbox::new();
    let path = sandbox.compile("dead.c", text, &["-O2"]);
    sandbox.finds("deadlock", &["--patch", "default", "--", path.to_str().unwrap()]);
}
