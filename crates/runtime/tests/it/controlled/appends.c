/* Two threads append to a file in the current directory, which must be empty. */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void *worker(void *number) {
    pthread_mutex_lock(&mutex);
    FILE *file = fopen("log", "a");
    fprintf(file, "%ld\n", (long)number);
    fclose(file);
    pthread_mutex_unlock(&mutex);
    return number;
}

int main(int argc, char **argv) {
    (void)argv;
    char here[4096];
    if (argc > 1)
        assert(strcmp(getcwd(here, sizeof here), getenv("HEISEN_DIR")) == 0 && access("log", F_OK) == -1);
    pthread_t threads[2];
    for (long i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, worker, (void *)(i + 1));
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
