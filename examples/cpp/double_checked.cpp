// Double-checked locking: the lock is only taken by who finds that the object is not there yet, and that is looked at
// again with the lock.
//
// instance() lets others see the object before it is complete. One preemption is enough, in between: the other thread
// finds the object there, does not take the lock, and uses it. None is not, as to be seen before it is complete the
// first thread must be stopped where nothing stops it.
//
// heisen: bug=assertion preemptions=1 class=atomicity-violation
#include <atomic>
#include <cassert>
#include <mutex>
#include <thread>

struct Settings {
    int size = 0;

    void read() { size = 42; }
};

static std::mutex lock;
static std::atomic<Settings *> settings{nullptr};
static Settings the_settings;

static Settings &instance() {
    if (settings.load() == nullptr) {
        std::lock_guard<std::mutex> guard(lock);
        if (settings.load() == nullptr) {
            settings.store(&the_settings);
            the_settings.read(); // preempt here
        }
    }
    return *settings.load();
}

int main() {
    auto use = [] { assert(instance().size == 42); };
    std::thread first(use), second(use);
    first.join();
    second.join();
}
