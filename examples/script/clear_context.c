/*
 * A garbage collector looks at a context whose thread is just leaving it.
 *
 * js_GC goes through the contexts and marks those that have a thread. It asks whether there is one, and then reads the
 * pointer again to get at what the thread has. JS_ClearContextThread, called by another thread, takes the thread away
 * without a lock; between the two reads, the second gives null. The access to it is a crash.
 *
 * One preemption is enough, after the check in js_GC.
 *
 * Stands for bug 2 of RADBench in the paper's appendix (SpiderMonkey, spidermonkey1): clear_context.rhai. With -DFIXED
 * both hold the lock of the collector.
 */
#include <assert.h>
#include <heisen.h>
#include <pthread.h>
#include <stddef.h>

struct thread {
    int requests;
    int marked; /* the collection that saw it last */
};

struct context {
    struct thread *thread;
};

static struct thread thread = {.requests = 1};
static struct context context = {.thread = &thread};
static int gc_number;
#ifdef FIXED
static pthread_mutex_t gc_lock = PTHREAD_MUTEX_INITIALIZER;
#endif

__attribute__((noinline)) static void js_GC(struct context *acx) {
#ifdef FIXED
    pthread_mutex_lock(&gc_lock);
#endif
    gc_number++;
    if (acx->thread)
        acx->thread->marked = gc_number;
#ifdef FIXED
    pthread_mutex_unlock(&gc_lock);
#endif
}

__attribute__((noinline)) static void JS_ClearContextThread(struct context *cx) {
#ifdef FIXED
    pthread_mutex_lock(&gc_lock);
#endif
    struct thread *old = cx->thread;
    old->requests--;
    cx->thread = NULL;
#ifdef FIXED
    pthread_mutex_unlock(&gc_lock);
#endif
}

static void *collector_main(void *arg) {
    (void)arg;
    js_GC(&context);
    return NULL;
}

static void *context_main(void *arg) {
    (void)arg;
    JS_ClearContextThread(&context);
    return NULL;
}

int main(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, collector_main, NULL);
    pthread_create(&threads[1], NULL, context_main, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    assert(thread.requests == 0 && context.thread == NULL);
    return 0;
}
