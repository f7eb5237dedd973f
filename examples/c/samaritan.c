/*
 * A mailbox with room for one message, two senders, and a receiver that wants the messages in order.
 *
 * The receiver yields while the mailbox is empty. But if the wrong message is in it, it looks again at once, without a
 * yield: it neither makes progress nor lets the others run, so it is no good Samaritan. (CHESS, OSDI'08, found such a
 * loop in the boot process of an operating system.) Here nobody else takes that message, so the program never ends.
 *
 * One preemption is enough, in the first sender, at one of its steps after it has created the second and before it
 * has the lock: the second sender then puts its message first. None is not enough: left alone, the first sender goes on
 * to put its own.
 *
 * heisen: bug=good-samaritan preemptions=1 with --steps 20000
 */
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>

enum { EMPTY, FIRST, SECOND };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int mailbox = EMPTY;

static bool put(int message) {
    pthread_mutex_lock(&lock); /* preempt here */
    bool room = mailbox == EMPTY;
    if (room)
        mailbox = message;
    pthread_mutex_unlock(&lock);
    return room;
}

static int look(int wanted) {
    pthread_mutex_lock(&lock);
    int found = mailbox;
    if (found == wanted)
        mailbox = EMPTY;
    pthread_mutex_unlock(&lock);
    return found;
}

static void receive(int wanted) {
    for (;;) {
        int found = look(wanted);
        if (found == wanted)
            return;
        if (found == EMPTY)
            sched_yield();
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
    receive(FIRST);
    receive(SECOND);
    pthread_join(first, NULL);
    return 0;
}
