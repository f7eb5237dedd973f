/*
 * An engine that is shut down with its last context and started with the next one, and a garbage collection in between.
 *
 * Three threads make a context and destroy it again, which collects garbage. The first context launches the engine (DOWN to
 * UP), the last one lands it (UP to LANDING, and DOWN after the last collection); whoever makes a context meanwhile waits.
 * A collection by a thread whose context was not the last makes no sense while the engine is not up; but js_GC looks for
 * that before it has the lock, and only for LANDING.
 *
 * So: A destroys its context, which is not the last, and is about to collect. B destroys the last one, lands the engine,
 * collects, and leaves it DOWN. A gets the lock and collects although the engine is down. C makes a context, finds the
 * engine down, and launches it while A is collecting: it resets what belongs to collections, and adds roots. The assertion
 * in js_GC, that A is still the one who collects, fails.
 *
 * Three preemptions are needed: of B after JS_NewContext, of A in js_GC before it has the lock, and again after it has set
 * gcThread. No order of whole threads fails.
 *
 * Stands for the case study of the paper's section 2 (SpiderMonkey, spidermonkey2): spidermonkey_seq.rhai,
 * spidermonkey_all.rhai, spidermonkey_buggy.rhai and spidermonkey_exact.rhai. With -DFIXED the look at the state is under
 * the lock, and the engine must be up.
 */
#include <assert.h>
#include <heisen.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

enum { THREADS = 3 };

static struct JSRuntime {
    pthread_mutex_t gcLock;
    pthread_cond_t changed; /* state or gcThread */
    enum { DOWN, UP, LANDING } state;
    int contexts;
    int gcThread; /* who collects, or 0 */
    int gcNumber; /* collections so far */
} rt = {.gcLock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

/* The last part of a launch: the first atoms are roots, and the engine is up. No collection may run. */
__attribute__((noinline)) static void js_AddRoot(void) {
    pthread_mutex_lock(&rt.gcLock);
    rt.state = UP;
    pthread_cond_broadcast(&rt.changed);
    pthread_mutex_unlock(&rt.gcLock);
}

/* The last collection lands the engine. */
__attribute__((noinline)) static void js_GC(int self, bool last) {
#ifndef FIXED
    if (!last && rt.state == LANDING)
        return; /* who lands the engine collects, too */
#endif
    pthread_mutex_lock(&rt.gcLock);
#ifdef FIXED
    if (!last && rt.state != UP) {
        pthread_mutex_unlock(&rt.gcLock);
        return;
    }
#endif
    while (rt.gcThread != 0)
        pthread_cond_wait(&rt.changed, &rt.gcLock);
    rt.gcThread = self;
    int number = rt.gcNumber + 1;
    pthread_mutex_unlock(&rt.gcLock);

    rt.gcNumber = number; /* and whatever there is to collect: nobody else may */

    pthread_mutex_lock(&rt.gcLock);
    assert(rt.gcThread == self);
    rt.gcThread = 0;
    if (last)
        rt.state = DOWN;
    pthread_cond_broadcast(&rt.changed);
    pthread_mutex_unlock(&rt.gcLock);
}

__attribute__((noinline)) static void JS_NewContext(void) {
    pthread_mutex_lock(&rt.gcLock);
    int others = rt.contexts;
    while (rt.state != (others == 0 ? DOWN : UP)) {
        pthread_cond_wait(&rt.changed, &rt.gcLock);
        others = rt.contexts;
    }
    rt.contexts = others + 1;
    if (others == 0)
        rt.gcThread = 0; /* as new */
    pthread_mutex_unlock(&rt.gcLock);
    if (others == 0)
        js_AddRoot();
}

__attribute__((noinline)) static void JS_DestroyContext(int self) {
    pthread_mutex_lock(&rt.gcLock);
    int left = rt.contexts - 1;
    rt.contexts = left;
    if (left == 0)
        rt.state = LANDING;
    pthread_mutex_unlock(&rt.gcLock);
    js_GC(self, left == 0);
}

static void *testfunc(void *self) {
    JS_NewContext();
    JS_DestroyContext((int)(size_t)self);
    return NULL;
}

int main(void) {
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, testfunc, (void *)(size_t)(i + 1));
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert(rt.state == DOWN);
    return 0;
}
