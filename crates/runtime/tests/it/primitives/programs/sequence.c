/* As many threads as its argument says, one after the other, with stacks of other than the usual size. */
#include "cases.h"

static void *same(void *arg)
{
    return arg;
}

int main(int argc, char **argv)
{
    long count = argc > 1 ? atol(argv[1]) : 1;
    pthread_attr_t attr;
    assert(pthread_attr_init(&attr) == 0 && pthread_attr_setstacksize(&attr, 4 << 20) == 0);
    for (long i = 0; i < count; i++) {
        pthread_t t;
        assert(pthread_create(&t, &attr, same, (void *)i) == 0);
        assert(join(t) == (void *)i);
    }
    return 0;
}
