#include <pthread.h>
#include <stdatomic.h>
#include <assert.h>
static atomic_int flag[2]; static atomic_int in;
static void *worker(void *u) { long me=(long)u;
  if (atomic_load(&flag[1-me])==0) { atomic_store(&flag[me],1);
    assert(atomic_fetch_add(&in,1)==0); atomic_fetch_sub(&in,1); atomic_store(&flag[me],0);} return 0; }
int main(void) {
    pthread_t t[2];
    for (long i = 0; i < 2; i++) pthread_create(&t[i], 0, worker, (void*)i);
    for (int i = 0; i < 2; i++) pthread_join(t[i], 0);
    return 0;
}
