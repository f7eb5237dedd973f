/* Thread-local variables that are larger than a small stack, on stacks of the usual size. */
#include "cases.h"

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static __thread char large[3 << 20];
static __thread char large_filled[1 << 20] = {1, 2, 3};

static void *uses_large(void *arg)
{
    char mark = (char)(intptr_t)arg;
    assert(large[0] == 0 && large[sizeof large - 1] == 0);
    assert(large_filled[2] == 3 && large_filled[sizeof large_filled - 1] == 0);
    memset(large, mark, sizeof large);
    pthread_mutex_lock(&m);
    pthread_mutex_unlock(&m);
    for (size_t i = 0; i < sizeof large; i += 1000)
        assert(large[i] == mark);
    return NULL;
}

static void large_thread_locals(void)
{
    pthread_t a = start(uses_large, (void *)1), b = start(uses_large, (void *)2);
    join(a);
    join(b);
    assert(large[0] == 0);
}

CASES(CASE(large_thread_locals))
