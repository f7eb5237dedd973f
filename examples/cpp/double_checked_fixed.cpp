// The function of double_checked.cpp, put right: the object is seen when it is complete.
//
// heisen: clean
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
            the_settings.read();
            settings.store(&the_settings);
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
