/*
 * Processes that create files in a tiny file system: the benchmark "File system model" of "Iterative context bounding"
 * (PLDI 2007, section 4.1), after Flanagan and Godefroid, "Dynamic partial-order reduction" (POPL 2005).
 *
 * There is a lock for each inode and one for each block. A process locks its inode and, if that has no block yet, goes
 * through the blocks, locks each in turn and takes the first that is free. Processes 0 and 2 share an inode, and all
 * of them start to search at the same block. There is no bug: an inode's lock always comes before a block's and only
 * one block is locked at a time, so no circle of waiting can close, and blocks are marked under their lock.
 *
 * heisen: clean
 */
#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#ifndef PROCESSES
#define PROCESSES 3
#endif
/* How many files each creates, and how many there can be. */
#ifndef FILES
#define FILES 1
#endif
#ifndef INODES
#define INODES 2
#endif
enum { BLOCKS = INODES, NO_BLOCK = -1 };

static struct {
    pthread_mutex_t lock;
    int block;
} inodes[INODES];

static struct {
    pthread_mutex_t lock;
    bool busy;
} blocks[BLOCKS];

static int allocate_block(int start) {
    for (int i = 0; i < BLOCKS; i++) {
        int block = (start + i) % BLOCKS;
        pthread_mutex_lock(&blocks[block].lock);
        bool mine = !blocks[block].busy;
        blocks[block].busy = true;
        pthread_mutex_unlock(&blocks[block].lock);
        if (mine)
            return block;
    }
    return NO_BLOCK;
}

static void *process(void *arg) {
    for (int file = 0; file < FILES; file++) {
        int inode = (*(int *)arg + file) % INODES;
        pthread_mutex_lock(&inodes[inode].lock);
        if (inodes[inode].block == NO_BLOCK)
            inodes[inode].block = allocate_block(inode * 2 % BLOCKS);
        pthread_mutex_unlock(&inodes[inode].lock);
    }
    return NULL;
}

int main(void) {
    pthread_t threads[PROCESSES];
    int ids[PROCESSES];
    for (int i = 0; i < INODES; i++) {
        pthread_mutex_init(&inodes[i].lock, NULL);
        inodes[i].block = NO_BLOCK;
    }
    for (int i = 0; i < BLOCKS; i++)
        pthread_mutex_init(&blocks[i].lock, NULL);
    for (int i = 0; i < PROCESSES; i++) {
        ids[i] = i;
        pthread_create(&threads[i], NULL, process, &ids[i]);
    }
    for (int i = 0; i < PROCESSES; i++)
        pthread_join(threads[i], NULL);
    assert(inodes[0].block != NO_BLOCK && inodes[1].block != NO_BLOCK);
    assert(inodes[0].block != inodes[1].block);
    return 0;
}
