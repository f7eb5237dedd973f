// LiteEvent, figure 2 of CHESS (OSDI'08): an event that only makes a kernel event when somebody really has to wait. It
// was made for two threads, one that calls set() and one that calls wait() and then dispose(); here a second thread
// waits.
//
// wait() makes the kernel event with the lock, but uses it without. One preemption is enough, in between: the event is
// set, the other waiter finds that and disposes of the kernel event, and the first waits on none. None is not, as a
// thread that waits already is not disturbed: the kernel's own object stays until everybody has returned from it.
//
// heisen: bug=assertion preemptions=1 class=atomicity-violation
#include <atomic>
#include <cassert>
#include <condition_variable>
#include <mutex>
#include <thread>

// What the kernel would provide.
class KernelEvent {
public:
    void set() {
        std::lock_guard<std::mutex> guard(mutex);
        is_set = true;
        changed.notify_all();
    }

    void wait() {
        std::unique_lock<std::mutex> guard(mutex);
        changed.wait(guard, [this] { return is_set; });
    }

private:
    std::mutex mutex;
    std::condition_variable changed;
    bool is_set = false;
};

static KernelEvent kernel_event;

class LiteEvent {
public:
    void set() {
        signalled = true;
        if (kevent.load() != nullptr) {
            std::lock_guard<std::mutex> guard(lock);
            if (KernelEvent *event = kevent.load()) {
                event->set();
            }
        }
    }

    void wait() {
        if (signalled) {
            return;
        }
        alloc_kevent();
        KernelEvent *event = kevent.load(); // preempt here
        assert(event != nullptr);
        event->wait();
    }

    void dispose() {
        std::lock_guard<std::mutex> guard(lock);
        if (KernelEvent *event = kevent.exchange(nullptr)) {
            // A set() that was stopped on its way here will not find it any more.
            event->set();
        }
    }

private:
    KernelEvent *alloc_kevent() {
        std::lock_guard<std::mutex> guard(lock);
        kevent = &kernel_event;
        if (signalled) {
            kernel_event.set();
        }
        return &kernel_event;
    }

    std::mutex lock;
    std::atomic<bool> signalled{false};
    std::atomic<KernelEvent *> kevent{nullptr};
};

int main() {
    LiteEvent event;
    std::thread setter([&] { event.set(); });
    std::thread waiter([&] { event.wait(); });
    event.wait();
    event.dispose();
    setter.join();
    waiter.join();
}
