/*
 * pbzip2_broadcast.cpp put right, as in pbzip2 1.1.6: consumers are woken under the mutex that they look and wait under.
 *
 * heisen: clean
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
            pthread_cond_wait(&fifo.notEmpty, &fifo.mut);
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
    pthread_mutex_lock(&fifo.mut);
    pthread_cond_broadcast(&fifo.notEmpty);
    pthread_mutex_unlock(&fifo.mut);
}

}  // namespace

int main() {
    pthread_t thread;
    pthread_create(&thread, nullptr, consumer, nullptr);
    producer();
    pthread_join(thread, nullptr);
    return 0;
}
