/*
 * A worker thread with a queue of tasks, and its shutdown.
 *
 * shutdown() sets the flag and notifies without the mutex: the flag is atomic, so it looks as if none were needed. But
 * the worker may have read the flag already and be about to wait. Nobody is waiting yet when the notification comes,
 * the worker then sleeps for ever, and main never returns from join(): a deadlock.
 *
 * One preemption is enough, in the worker, just before the pthread_cond_wait under wakeup.wait(): main has seen the
 * result of the task, sets the flag, notifies and blocks in join(). None is not enough: a worker that is not preempted
 * there is waiting, or has ended, before main goes on.
 *
 * heisen: bug=deadlock preemptions=1 class=lost-wake-up
 */
#include <atomic>
#include <cassert>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <queue>
#include <thread>
#include <utility>

class Worker {
public:
    void submit(std::function<void()> task) {
        std::lock_guard<std::mutex> guard(mutex);
        tasks.push(std::move(task));
        wakeup.notify_one();
    }

    void shutdown() {
        stop = true;
        wakeup.notify_one();
        thread.join();
    }

private:
    void run() {
        std::unique_lock<std::mutex> guard(mutex);
        while (true) {
            while (tasks.empty() && !stop)
                wakeup.wait(guard); // preempt here
            if (tasks.empty())
                return;
            auto task = std::move(tasks.front());
            tasks.pop();
            guard.unlock();
            task();
            guard.lock();
        }
    }

    std::mutex mutex;
    std::condition_variable wakeup;
    std::queue<std::function<void()>> tasks;
    std::atomic<bool> stop{false};
    std::thread thread{&Worker::run, this};
};

class Result {
public:
    void set(int v) {
        std::lock_guard<std::mutex> guard(mutex);
        value = v;
        known = true;
        set_once.notify_one();
    }

    int get() {
        std::unique_lock<std::mutex> guard(mutex);
        while (!known)
            set_once.wait(guard);
        return value;
    }

private:
    std::mutex mutex;
    std::condition_variable set_once;
    bool known = false;
    int value = 0;
};

int main() {
    Result result;
    Worker worker;
    worker.submit([&result] { result.set(6 * 7); });
    assert(result.get() == 42);
    worker.shutdown();
    return 0;
}
