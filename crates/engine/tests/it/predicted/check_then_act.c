/* Money is looked for in one section and taken in another, after and before many quiet steps; with TOGETHER, in one
   section. */
#include <assert.h>
#include <pthread.h>
static pthread_mutex_t account = PTHREAD_MUTEX_INITIALIZER;
static int balance = 100;
static void quiet(int steps) {
    static __thread pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
    for (int i = 0; i < steps; i++) {
        pthread_mutex_lock(&own);
        pthread_mutex_unlock(&own);
    }
}
static void *withdraw(void *arg) {
    quiet(arg ? 10 : 200);
    pthread_mutex_lock(&account);
    int enough = balance >= 100;
#ifndef TOGETHER
    pthread_mutex_unlock(&account);
    pthread_mutex_lock(&account);
#endif
    if (enough) balance -= 100;
    assert(balance >= 0);
    pthread_mutex_unlock(&account);
    quiet(arg ? 200 : 10);
    return arg;
}
int main(void) {
    pthread_t one, two;
    pthread_create(&one, 0, withdraw, &balance);
    pthread_create(&two, 0, withdraw, 0);
    pthread_join(one, 0);
    pthread_join(two, 0);
    return 0;
}
