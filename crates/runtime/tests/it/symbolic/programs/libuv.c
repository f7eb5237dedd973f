/* libuv: work of the thread pool on numbers that are inputs, and then the pool's own test. */
#include "driver.h"
#include <uv.h>

int run_test_threadpool_queue_work_simple(void);

static unsigned numbers[4], sum;

static void work(uv_work_t *request) {
    unsigned *number = request->data;
    *number = *number > 1000 ? 0 : *number * 3 + 1;
}

static void after(uv_work_t *request, int status) {
    sum += *(unsigned *)request->data;
}

static int once(void) {
    static uv_work_t requests[4];
    for (int i = 0; i < 4; i++) numbers[i] = i + 5;
    mark(numbers, sizeof numbers);
    uv_loop_t loop;
    if (uv_loop_init(&loop)) return 2;
    for (int i = 0; i < 4; i++) {
        requests[i].data = &numbers[i];
        if (uv_queue_work(&loop, &requests[i], work, after)) return 3;
    }
    uv_run(&loop, UV_RUN_DEFAULT);
    if (uv_loop_close(&loop)) return 4;
    printf("%u\n", sum);
    // It ends the threads, too.
    return run_test_threadpool_queue_work_simple();
}
