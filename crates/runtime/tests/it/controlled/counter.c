/* What it does depends on a file that it writes itself: how often it has been run. */
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int runs;

static void *worker(void *unused) {
    for (int i = 0; i < 2 + runs % 2; i++) {
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
    }
    return unused;
}

int main(void) {
    FILE *file = fopen("counter.txt", "r");
    if (file) {
        if (fscanf(file, "%d", &runs) != 1)
            runs = 0;
        fclose(file);
    }
    file = fopen("counter.txt", "w");
    fprintf(file, "%d", runs + 1);
    fclose(file);
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, worker, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
