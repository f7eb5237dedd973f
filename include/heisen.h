/* heisen.h: the functions by which a C or C++ program talks to Heisen.
 *
 * A program needs only this file; it links no library. Without Heisen each call costs the test of an address:
 * points, atomic sections and no-preempt sections do nothing, heisen_choose returns 0, and heisen_assert is assert.
 * (The symbols are weak; Heisen's runtime defines them.)
 */
#ifndef HEISEN_H
#define HEISEN_H

#include <assert.h>

#if !defined(__GNUC__)
#error "heisen.h needs weak symbols: compile with gcc or clang"
#endif

/* noplt: the address of a procedure linkage table entry would not be null even if the symbol is undefined. */
#if defined(__has_attribute)
#if __has_attribute(noplt)
#define HEISEN_WEAK __attribute__((weak, noplt))
#endif
#endif
#ifndef HEISEN_WEAK
#define HEISEN_WEAK __attribute__((weak))
#endif

#ifdef __cplusplus
extern "C" {
#endif

HEISEN_WEAK int heisen_running(void);
HEISEN_WEAK void heisen_point(void);
HEISEN_WEAK void heisen_point_at(unsigned long number);
HEISEN_WEAK unsigned heisen_choose(unsigned n);
HEISEN_WEAK void heisen_state(unsigned long hash);
HEISEN_WEAK void heisen_no_preempt_begin(void);
HEISEN_WEAK void heisen_no_preempt_end(void);
HEISEN_WEAK void heisen_atomic_begin(void);
HEISEN_WEAK void heisen_atomic_end(void);
HEISEN_WEAK void __VERIFIER_atomic_begin(void);
HEISEN_WEAK void __VERIFIER_atomic_end(void);
HEISEN_WEAK void heisen_ready(void);
HEISEN_WEAK void heisen_input(void *at, __SIZE_TYPE__ bytes, const char *name);
HEISEN_WEAK void heisen_assume(int condition);
HEISEN_WEAK void heisen_test_start(void);
HEISEN_WEAK void heisen_test_end(void);
HEISEN_WEAK void heisen_assert_fail(const char *expression, const char *file, unsigned line, const char *function)
    __attribute__((noreturn));

#ifdef __cplusplus
}
#endif

/* Each macro has the name of its function; the preprocessor does not expand a macro inside its own expansion. Each
 * call is therefore made from the program's own line, and Heisen reports that line. */

/* Returns 1 under Heisen and 0 otherwise. */
#define heisen_running() (heisen_running ? heisen_running() : 0)

/* A scheduling point: other threads may run before this call returns. Put one between two accesses to shared
 * memory that Heisen cannot see. */
#define heisen_point() (heisen_point ? heisen_point() : (void)0)

/* A scheduling point with a number, which reports and traces show. */
#define heisen_point_at(number) (heisen_point_at ? heisen_point_at(number) : (void)0)

/* Returns a number from 0 to n - 1; the search tries each. Without Heisen it returns 0. */
#define heisen_choose(n) (heisen_choose ? heisen_choose(n) : 0u)

/* Tells the search that the state of the program has this hash. With --reduce, the search treats two executions as
 * equal from here on if they report the same hash while their threads are at the same places. The hash must cover
 * everything that the rest of the program depends on: shared and local variables, and the values of semaphores.
 * Heisen itself knows for each thread its next operation, the object of that operation and the place of the call.
 * It does not look at callers further up the stack. */
#define heisen_state(hash) (heisen_state ? heisen_state(hash) : (void)0)

/* No thread preempts this one from begin to end: it continues as long as it is enabled. It may block. The calls
 * nest, and each begin needs an end in the same thread. */
#define heisen_no_preempt_begin() (heisen_no_preempt_begin ? heisen_no_preempt_begin() : (void)0)
#define heisen_no_preempt_end() (heisen_no_preempt_end ? heisen_no_preempt_end() : (void)0)

/* An atomic section: in every schedule, other threads see all of it or nothing. The calls nest, and each begin
 * needs an end in the same thread. If the thread blocks or yields inside, the section ends there. Without Heisen
 * the code is not atomic. __VERIFIER_atomic_begin and __VERIFIER_atomic_end do the same. */
#define heisen_atomic_begin() (heisen_atomic_begin ? heisen_atomic_begin() : (void)0)
#define heisen_atomic_end() (heisen_atomic_end ? heisen_atomic_end() : (void)0)
#define __VERIFIER_atomic_begin() (__VERIFIER_atomic_begin ? __VERIFIER_atomic_begin() : (void)0)
#define __VERIFIER_atomic_end() (__VERIFIER_atomic_end ? __VERIFIER_atomic_end() : (void)0)

/* With heisen check --at-ready, each execution begins here instead of at main. The program runs the code before
 * this call only once. It must have a single thread at this call. */
#define heisen_ready() (heisen_ready ? heisen_ready() : (void)0)

/* The bytes at `at` are an input with this name: a symbolic search looks for values of it that lead to a failure. They
 * keep their values unless a search chooses others. */
#define heisen_input(at, bytes, name) (heisen_input ? heisen_input(at, bytes, name) : (void)0)

/* From here on the execution counts only if the condition holds; otherwise it ends here and is not a failure. Without
 * Heisen it does nothing. */
#define heisen_assume(condition) (heisen_assume ? heisen_assume(!!(condition)) : (void)0)

/* Mark the start and the end of the code under test, as events that scripts can name. */
#define heisen_test_start() (heisen_test_start ? heisen_test_start() : (void)0)
#define heisen_test_end() (heisen_test_end ? heisen_test_end() : (void)0)

/* As assert, but under Heisen it is checked even if NDEBUG is defined. */
#ifdef NDEBUG
#define heisen_assert(condition)                                                                                       \
    (!heisen_assert_fail || (condition) ? (void)0 : heisen_assert_fail(#condition, __FILE__, __LINE__, __func__))
#else
#define heisen_assert(condition)                                                                                       \
    ((condition)          ? (void)0                                                                                    \
     : heisen_assert_fail ? heisen_assert_fail(#condition, __FILE__, __LINE__, __func__)                               \
                          : __assert_fail(#condition, __FILE__, __LINE__, __func__))
#endif

#endif
