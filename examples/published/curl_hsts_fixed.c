/*
 * curl_hsts.c put right: a look-up holds a lock, as it does for the other things that handles share. (curl 8.0.0 itself
 * settled it by its manual: the list is not to be shared between threads.)
 *
 * heisen: clean
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { NOW = 1000 };

struct entry {
    struct entry *next, *previous;
    char *host;
    long expires;
};

struct hsts {
    pthread_mutex_t lock;
    struct entry *head, *tail;
};

static void create(struct hsts *hsts, const char *host, long expires) {
    struct entry *entry = calloc(1, sizeof *entry);
    entry->host = strdup(host);
    entry->expires = expires;
    entry->previous = hsts->tail;
    *(hsts->tail ? &hsts->tail->next : &hsts->head) = entry;
    hsts->tail = entry;
}

static void unlink_entry(struct hsts *hsts, struct entry *entry) {
    *(entry->previous ? &entry->previous->next : &hsts->head) = entry->next;
    *(entry->next ? &entry->next->previous : &hsts->tail) = entry->previous;
}

static struct entry *look_up(struct hsts *hsts, const char *host) {
    struct entry *next;
    for (struct entry *entry = hsts->head; entry; entry = next) {
        next = entry->next;
        if (entry->expires <= NOW) {
            unlink_entry(hsts, entry);
            free(entry->host);
            free(entry);
        } else if (strcmp(host, entry->host) == 0) {
            return entry;
        }
    }
    return NULL;
}

static void *transfer(void *shared) {
    struct hsts *hsts = shared;
    pthread_mutex_lock(&hsts->lock);
    look_up(hsts, "curl.example");
    pthread_mutex_unlock(&hsts->lock);
    return NULL;
}

int main(void) {
    struct hsts shared = {PTHREAD_MUTEX_INITIALIZER, NULL, NULL};
    create(&shared, "old.example", NOW - 1);
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, transfer, &shared);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return shared.head != NULL;
}
