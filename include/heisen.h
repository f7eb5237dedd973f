/* heisen.h: what a program may say to Heisen, which checks its schedules.
 *
 * Nothing but this file is needed, in C or C++, and no library is linked. Without Heisen the program runs as if the
 * calls were not there, at the price of a test of an address for each: points and regions do nothing, heisen_choose
 * gives 0, heisen_assert is assert. (The symbols are weak; Heisen's runtime brings them.)
 */
#ifndef HEISEN_H
#define HEISEN_H

#include <assert.h>

#if !defined(__GNUC__)
#error "heisen.h needs weak symbols: compile with gcc or clang"
#endif

/* Without a detour through the procedure linkage table, whose entry would have an address even if the symbol has none. */
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
HEISEN_WEAK void heisen_test_start(void);
HEISEN_WEAK void heisen_test_end(void);
HEISEN_WEAK void heisen_assert_fail(const char *expression, const char *file, unsigned line, const char *function)
    __attribute__((noreturn));

#ifdef __cplusplus
}
#endif

/* The macros have the names of the functions: inside its own text a name is not a macro. So each call is made from the
 * very line of the program, which is where Heisen shows it. */

/* 1 under Heisen, 0 otherwise. */
#define heisen_running() (heisen_running ? heisen_running() : 0)

/* A scheduling point: other threads may run before it returns. Put one between two accesses to shared memory. */
#define heisen_point() (heisen_point ? heisen_point() : (void)0)

/* The same, with a number that is shown with it. */
#define heisen_point_at(number) (heisen_point_at ? heisen_point_at(number) : (void)0)

/* A number from 0 to n - 1: the search tries each. 0 without Heisen. */
#define heisen_choose(n) (heisen_choose ? heisen_choose(n) : 0u)

/* The state of the program has this hash: with --reduce, what was before makes no difference from here on. It must tell apart all
 * that what follows may depend on: shared and local variables, and what semaphores count. Where each thread is Heisen knows: what it
 * is about to do, on what, called from where; callers further up it does not look at. */
#define heisen_state(hash) (heisen_state ? heisen_state(hash) : (void)0)

/* From begin to end the thread is not preempted: it goes on wherever it can. It may block. They nest, and each begin
 * needs its end, in the same thread. */
#define heisen_no_preempt_begin() (heisen_no_preempt_begin ? heisen_no_preempt_begin() : (void)0)
#define heisen_no_preempt_end() (heisen_no_preempt_end ? heisen_no_preempt_end() : (void)0)

/* From begin to end all that the thread does is one step: other threads see all of it or nothing, in every schedule. They nest, and
 * each begin needs its end, in the same thread. A thread that has to wait inside, or yields, leaves the section there. Without
 * Heisen nothing is atomic. __VERIFIER_atomic_begin and __VERIFIER_atomic_end are the same. */
#define heisen_atomic_begin() (heisen_atomic_begin ? heisen_atomic_begin() : (void)0)
#define heisen_atomic_end() (heisen_atomic_end ? heisen_atomic_end() : (void)0)
#define __VERIFIER_atomic_begin() (__VERIFIER_atomic_begin ? __VERIFIER_atomic_begin() : (void)0)
#define __VERIFIER_atomic_end() (__VERIFIER_atomic_end ? __VERIFIER_atomic_end() : (void)0)

/* With heisen check --at-ready, each execution begins here instead of at main: what was done before is done once. The
 * program must have one thread when it calls this. */
#define heisen_ready() (heisen_ready ? heisen_ready() : (void)0)

/* Where the part begins and ends that a script is about. */
#define heisen_test_start() (heisen_test_start ? heisen_test_start() : (void)0)
#define heisen_test_end() (heisen_test_end ? heisen_test_end() : (void)0)

/* As assert; but under Heisen it is checked even if NDEBUG is defined. */
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
