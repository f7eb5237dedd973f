/*
 * The fixed version of samaritan.c: the receiver takes whatever is in the mailbox, and yields until it has both messages.
 *
 * heisen: clean
 */
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>

enum { EMPTY, FIRST, SECOND };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int mailbox = EMPTY;

static bool put(int message) {
    pthread_mutex_lock(&lock);
    bool room = mailbox == EMPTY;
    if (room)
        mailbox = message;
    pthread_mutex_unlock(&lock);
    return room;
}

static int take(void) {
    pthread_mutex_lock(&lock);
    int found = mailbox;
    mailbox = EMPTY;
    pthread_mutex_unlock(&lock);
    return found;
}

static void receive_both(void) {
    bool seen[] = {[FIRST] = false, [SECOND] = false};
    while (!seen[FIRST] || !seen[SECOND]) {
        int found = take();
        if (found == EMPTY)
            sched_yield();
        else
            seen[found] = true;
    }
}

static void *second_sender(void *arg) {
    while (!put(SECOND))
        sched_yield();
    return arg;
}

static void *first_sender(void *arg) {
    pthread_t second;
    pthread_create(&second, NULL, second_sender, NULL);
    while (!put(FIRST))
        sched_yield();
    pthread_join(second, NULL);
    return arg;
}

int main(void) {
    pthread_t first;
    pthread_create(&first, NULL, first_sender, NULL);
    receive_both();
    pthread_join(first, NULL);
    return 0;
}
