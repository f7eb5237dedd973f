/* Libraries, linked and loaded: PLUGIN names one with thread-local variables. */
#include "cases.h"
#include <dlfcn.h>

extern int keyed_destroyed;
void keyed_set(int *value);

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static sem_t go;
static int (*plugin_count)(void), (*plugin_fixed)(int);

static void pause_here(void)
{
    pthread_mutex_lock(&m);
    pthread_mutex_unlock(&m);
}

static void load(void)
{
    void *library = dlopen(getenv("PLUGIN"), RTLD_NOW);
    assert(library != NULL);
    plugin_count = (int (*)(void))dlsym(library, "plugin_count");
    plugin_fixed = (int (*)(int))dlsym(library, "plugin_fixed");
    assert(plugin_count != NULL && plugin_fixed != NULL);
}

static void *counts(void *arg)
{
    assert(plugin_count() == 10101 && plugin_fixed(1) == 8);
    pause_here();
    assert(plugin_count() == 10202 && plugin_fixed(2) == 10);
    return arg;
}

static void loaded_before_the_threads(void)
{
    load();
    pthread_t a = start(counts, NULL), b = start(counts, NULL);
    join(a);
    join(b);
    counts(NULL);
}

static void *counts_later(void *arg)
{
    sem_wait(&go);
    return counts(arg);
}

static void loaded_while_they_wait(void)
{
    pthread_t a = start(counts_later, NULL), b = start(counts_later, NULL);
    load();
    sem_post(&go);
    sem_post(&go);
    join(a);
    join(b);
    counts(NULL);
}

static void *loads(void *arg)
{
    load();
    return counts(arg);
}

static void loaded_by_threads(void)
{
    pthread_t a = start(loads, NULL), b = start(loads, NULL);
    join(a);
    join(b);
    counts(NULL);
}

static int three = 3;

static void *sets(void *arg)
{
    keyed_set(&three);
    return arg;
}

static void key_of_a_constructor(void)
{
    join(start(sets, NULL));
    assert(keyed_destroyed == 3);
    join(start(sets, NULL));
    assert(keyed_destroyed == 6);
}

CASES(CASE(loaded_before_the_threads), CASE(loaded_while_they_wait), CASE(loaded_by_threads),
      CASE(key_of_a_constructor))
