/*
 * pbzip2, Launchpad bug 876686: consumers are told that nothing will come any more just before they go to sleep.
 *
 * Put right in 1.1.6 (30 October 2011); its ChangeLog says: deadlock due to unsynchronized broadcasts. Consumers take
 * blocks from a queue under its mutex, and wait at its condition if it is empty and the producer is not done. Whether it
 * is, is kept under another mutex. The producer set that and woke the consumers without the queue's mutex; a consumer
 * between its look and its sleep missed it, and slept for ever.
 *
 * The extract has the queue, its mutex and condition, the producer's flag with the mutex of its own, and both loops in the
 * order of pbzip2.cpp (1.1.13), without what the ChangeLog says was added. Blocks are numbers.
 *
 * It takes two preemptions: of the producer before it is done, so that the consumer finds an empty queue, and of the
 * consumer before it waits. With one, the consumer comes either too late to wait or is asleep when it is woken.
 *
 * heisen: bug=deadlock preemptions=2 class=lost-wake-up
 */
#include <pthread.h>
#include <queue>

namespace {

struct Queue {
    std::queue<int> blocks;
    pthread_mutex_t mut = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t notEmpty = PTHREAD_COND_INITIALIZER;
};

Queue fifo;
pthread_mutex_t producerDoneMutex = PTHREAD_MUTEX_INITIALIZER;
bool producerDone;

bool getProducerDone() {
    pthread_mutex_lock(&producerDoneMutex);
    bool done = producerDone;
    pthread_mutex_unlock(&producerDoneMutex);
    return done;
}

void setProducerDone() {
    pthread_mutex_lock(&producerDoneMutex);
    producerDone = true;
    pthread_mutex_unlock(&producerDoneMutex);
}

void *consumer(void *) {
    for (;;) {
        pthread_mutex_lock(&fifo.mut);
        while (fifo.blocks.empty()) {
            if (getProducerDone()) {
                pthread_mutex_unlock(&fifo.mut);
                return nullptr;
            }
            pthread_cond_wait(&fifo.notEmpty, &fifo.mut); /* preempt here, fix */
        }
        fifo.blocks.pop();
        pthread_mutex_unlock(&fifo.mut);
    }
}

void producer() {
    pthread_mutex_lock(&fifo.mut);
    fifo.blocks.push(1);
    pthread_cond_signal(&fifo.notEmpty);
    pthread_mutex_unlock(&fifo.mut);

    setProducerDone();
    pthread_cond_broadcast(&fifo.notEmpty); /* fix */
}

}  // namespace

int main() {
    pthread_t thread;
    pthread_create(&thread, nullptr, consumer, nullptr);
    producer();
    pthread_join(thread, nullptr);
    return 0;
}
