// C++: a mutex, a condition variable, an atomic, a shared pointer; and a vector that nobody protects.
// race: write push | read size
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
struct Queue {
    std::mutex lock;
    std::condition_variable changed;
    int items = 0;
    int size = 0;
    void push() {
#ifdef CLEAN
        std::lock_guard<std::mutex> guard(lock);
        size = 1;
        items = 1;
#else
        size = 1; // @push
        {
            std::lock_guard<std::mutex> guard(lock);
            items = 1;
        }
#endif
        changed.notify_one();
    }
    void wait() {
        std::unique_lock<std::mutex> guard(lock);
        changed.wait(guard, [this] { return items > 0; });
    }
};
int main() {
    auto queue = std::make_shared<Queue>();
    std::thread thread([queue] { queue->push(); });
#ifdef CLEAN
    queue->wait();
    int seen = queue->size;
#else
    int seen = queue->size; // @size
    queue->wait();
#endif
    thread.join();
    return seen > 1;
}
