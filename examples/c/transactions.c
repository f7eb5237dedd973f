/*
 * A small transaction manager in memory, after what "Iterative context bounding" (PLDI 2007, section 4.1) tells of the one that
 * it was tried on: transactions that are under way are in a hash table with a lock for each chain, and a lock of its own for
 * each transaction. A client begins, commits and aborts them; a timer goes through the table now and then and gives up those
 * that have been there for too long.
 *
 * A transaction ends once: by whoever finds it active under its lock. It is taken out of the table by the one who has ended
 * it, and freed by the last one who has hold of it; the table counts as one. There is no bug: no lock of a chain is taken
 * while that of a transaction is held, or the other way round.
 *
 * heisen: clean
 */
#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#ifndef TRANSACTIONS
#define TRANSACTIONS 2
#endif
#ifndef FLUSHES
#define FLUSHES 2
#endif
enum { CHAINS = 2, PATIENCE = 1 };

enum state { ACTIVE, COMMITTED, ABORTED, TIMED_OUT };

struct transaction {
    int id, amount;
    /* Under the lock of its chain. */
    struct transaction *next;
    int holders;
    /* Under its own. */
    pthread_mutex_t lock;
    enum state state;
    int age;
};

static struct chain {
    pthread_mutex_t lock;
    struct transaction *first;
} chains[CHAINS];

/* How each one ended, and what the committed ones have brought: written by whoever ends one. */
static pthread_mutex_t books = PTHREAD_MUTEX_INITIALIZER;
static int ended[TRANSACTIONS];
static int balance;

static struct chain *chain_of(int id) {
    return &chains[id % CHAINS];
}

static void let_go(struct transaction *t) {
    struct chain *chain = chain_of(t->id);
    pthread_mutex_lock(&chain->lock);
    bool last = --t->holders == 0;
    pthread_mutex_unlock(&chain->lock);
    if (last) {
        pthread_mutex_destroy(&t->lock);
        free(t);
    }
}

/* Finds one and holds it, so that it stays even if somebody else ends it. */
static struct transaction *hold(int id) {
    struct chain *chain = chain_of(id);
    pthread_mutex_lock(&chain->lock);
    struct transaction *t = chain->first;
    while (t && t->id != id)
        t = t->next;
    if (t)
        t->holders++;
    pthread_mutex_unlock(&chain->lock);
    return t;
}

static void take_out(struct transaction *t) {
    struct chain *chain = chain_of(t->id);
    pthread_mutex_lock(&chain->lock);
    struct transaction **at = &chain->first;
    while (*at != t)
        at = &(*at)->next;
    *at = t->next;
    t->holders--;
    pthread_mutex_unlock(&chain->lock);
}

/* Ends one that is held, unless it has ended before. */
static bool end(struct transaction *t, enum state how) {
    pthread_mutex_lock(&t->lock);
    bool mine = t->state == ACTIVE;
    if (mine)
        t->state = how;
    pthread_mutex_unlock(&t->lock);
    if (mine) {
        take_out(t);
        pthread_mutex_lock(&books);
        ended[t->id]++;
        if (how == COMMITTED)
            balance += t->amount;
        pthread_mutex_unlock(&books);
    }
    return mine;
}

static void begin(int id, int amount) {
    struct transaction *t = calloc(1, sizeof *t);
    assert(t);
    t->id = id;
    t->amount = amount;
    t->holders = 1;
    pthread_mutex_init(&t->lock, NULL);
    struct chain *chain = chain_of(id);
    pthread_mutex_lock(&chain->lock);
    t->next = chain->first;
    chain->first = t;
    pthread_mutex_unlock(&chain->lock);
}

/* Commits or aborts; false if it has timed out. */
static bool finish(int id, enum state how) {
    struct transaction *t = hold(id);
    if (!t)
        return false;
    bool mine = end(t, how);
    let_go(t);
    return mine;
}

/* Gives up those that have been there for too long. */
static void flush(void) {
    for (int id = 0; id < TRANSACTIONS; id++) {
        struct transaction *t = hold(id);
        if (!t)
            continue;
        pthread_mutex_lock(&t->lock);
        bool old = ++t->age > PATIENCE;
        pthread_mutex_unlock(&t->lock);
        if (old)
            end(t, TIMED_OUT);
        let_go(t);
    }
}

static int committed;

static void *client(void *unused) {
    for (int id = 0; id < TRANSACTIONS; id++)
        begin(id, 1 << id);
    for (int id = 0; id < TRANSACTIONS; id++) {
        enum state how = id % 2 == 0 ? COMMITTED : ABORTED;
        if (finish(id, how) && how == COMMITTED)
            committed += 1 << id;
    }
    return unused;
}

static void *timer(void *unused) {
    for (int i = 0; i < FLUSHES; i++)
        flush();
    return unused;
}

int main(void) {
    pthread_t threads[2];
    for (int i = 0; i < CHAINS; i++)
        pthread_mutex_init(&chains[i].lock, NULL);
    pthread_create(&threads[0], NULL, client, NULL);
    pthread_create(&threads[1], NULL, timer, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    for (int id = 0; id < TRANSACTIONS; id++)
        assert(ended[id] == 1);
    for (int i = 0; i < CHAINS; i++)
        assert(!chains[i].first);
    assert(balance == committed);
    return 0;
}
