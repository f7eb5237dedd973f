/*
 * curl, CVE-2023-27537: two threads look up hosts in a list that both may shorten.
 *
 * Versions 7.88.0 and 7.88.1, the first in which handles may share what they know of hosts with strict transport security
 * (CURL_LOCK_DATA_HSTS); advisory of 20 March 2023. A look-up removes entries that have expired. For other things that are
 * shared curl calls the lock functions of the program, here it did not, and two transfers could free one entry.
 *
 * The extract has the list of lib/hsts.c with its entries and the look-up in its order of steps: take the entry and the
 * next one, look whether it has expired, unlink it, free host and entry. Time is a constant.
 *
 * One preemption is enough: an entry is freed by one thread while the other is about to look at it. None is not, as the
 * second look-up finds the list empty.
 *
 * heisen: bug=use-after-free preemptions=1 class=use-after-free
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
    *(entry->next ? &entry->next->previous : &hsts->tail) = entry->previous; /* fix */
}

static struct entry *look_up(struct hsts *hsts, const char *host) {
    struct entry *next;
    for (struct entry *entry = hsts->head; entry; entry = next) {
        next = entry->next;
        if (entry->expires <= NOW) { /* preempt here */
            unlink_entry(hsts, entry);
            free(entry->host);
            free(entry); /* fix */
        } else if (strcmp(host, entry->host) == 0) {
            return entry;
        }
    }
    return NULL;
}

static void *transfer(void *shared) {
    look_up(shared, "curl.example");
    return NULL;
}

int main(void) {
    struct hsts shared = {NULL, NULL};
    create(&shared, "old.example", NOW - 1);
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, transfer, &shared);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return shared.head != NULL;
}
