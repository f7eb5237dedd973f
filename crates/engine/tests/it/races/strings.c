// Functions of the C library access memory for their caller, each of them just as much as it needs.
// race: write item | write copied
// race: read seen | write filled
// race: read letter | write string
// race: write last | read length
// race: write second | read comparison
#include <pthread.h>
#include <string.h>
static char copied[100], filled[100], string[100], measured[100] = "123456789", compared[100] = "abcdefg";
static char other[100] = "abd", input[100] = "some text that is copied";
static volatile size_t many = 60;
static int seen;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static void lock(void) {
#ifdef CLEAN
    pthread_mutex_lock(&mutex);
#endif
}
static void unlock(void) {
#ifdef CLEAN
    pthread_mutex_unlock(&mutex);
#endif
}
static void *worker(void *none) {
    // Behind what the other thread accesses.
    copied[60] = 1;
    string[25] = 1;
    measured[10] = 1;
    compared[3] = 'x';
    lock();
    copied[59] = 1; // @item
    seen += filled[7]; // @seen
    seen += string[24]; // @letter
    measured[8] = 'x'; // @last
    compared[2] = 'c'; // @second
    unlock();
    return none;
}
int main(void) {
    pthread_t thread;
    size_t sum = 0;
    pthread_create(&thread, 0, worker, 0);
    lock();
    memcpy(copied, input, many); // @copied
    memset(filled, 0, many); // @filled
    strcpy(string, input); // @string
    sum += strlen(measured); // @length
    sum += strcmp(compared, other) < 0; // @comparison
    unlock();
    pthread_join(thread, 0);
    return sum != 10 || copied[70] || string[70];
}
