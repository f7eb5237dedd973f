/* A library that makes a key in a constructor, before the program's main and before any other thread. */
#include <pthread.h>

static pthread_key_t key;
int keyed_destroyed;

static void destroy(void *value)
{
    keyed_destroyed += *(int *)value;
}

static __attribute__((constructor)) void make(void)
{
    pthread_key_create(&key, destroy);
}

void keyed_set(int *value)
{
    pthread_setspecific(key, value);
}
