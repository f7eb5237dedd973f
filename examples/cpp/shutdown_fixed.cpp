/*
 * shutdown.cpp put right: the flag is set with the mutex held, so the worker either sees it or is already waiting when
 * the notification comes.
 *
 * heisen: clean
 */
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
        {
            std::lock_guard<std::mutex> guard(mutex);
            stop = true;
        }
        wakeup.notify_one();
        thread.join();
    }

private:
    void run() {
        std::unique_lock<std::mutex> guard(mutex);
        while (true) {
            while (tasks.empty() && !stop)
                wakeup.wait(guard);
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
    bool stop = false;
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
