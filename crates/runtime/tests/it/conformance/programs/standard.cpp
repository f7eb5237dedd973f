// The C++ standard library.
#include "results.h"
#include <atomic>
#include <barrier>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <future>
#include <latch>
#include <mutex>
#include <random>
#include <semaphore>
#include <shared_mutex>
#include <stop_token>
#include <string>
#include <thread>

using namespace std::chrono_literals;

// A function beside another.
static void both(std::function<void()> f, std::function<void()> g)
{
    std::thread t(f);
    point();
    g();
    t.join();
}

template <class Mutex>
static void append(Mutex &mutex, const char *letter)
{
    std::lock_guard guard(mutex);
    say("%s", letter);
    point();
    say("%s", letter);
}

template <class Mutex>
static void exclude()
{
    static Mutex mutex;
    both([] { append(mutex, "A"); }, [] { append(mutex, "B"); });
}

CASE(mutexes_exclude, "AABB", "BBAA") { exclude<std::mutex>(); }
CASE(recursive_mutexes_exclude, "AABB", "BBAA") { exclude<std::recursive_mutex>(); }
CASE(timed_mutexes_exclude, "AABB", "BBAA") { exclude<std::timed_mutex>(); }
CASE(recursive_timed_mutexes_exclude, "AABB", "BBAA") { exclude<std::recursive_timed_mutex>(); }
CASE(shared_mutexes_exclude, "AABB", "BBAA") { exclude<std::shared_mutex>(); }
CASE(shared_timed_mutexes_exclude, "AABB", "BBAA") { exclude<std::shared_timed_mutex>(); }

CASE(shared_locks_share, "AABB", "BBAA", "ABAB", "ABBA", "BABA", "BAAB")
{
    static std::shared_mutex mutex;
    auto read = [](const char *letter) {
        std::shared_lock lock(mutex);
        say("%s", letter);
        point();
        say("%s", letter);
    };
    both([&] { read("A"); }, [&] { read("B"); });
}

CASE(a_try_may_meet_another, "1", "0")
{
    static std::mutex mutex;
    both([] { std::lock_guard guard(mutex); }, [] {
        bool taken = mutex.try_lock();
        say("%d", taken);
        if (taken)
            mutex.unlock();
    });
}

CASE(a_timed_lock_may_be_too_late, "1", "0")
{
    static std::timed_mutex mutex;
    both([] { std::lock_guard guard(mutex); }, [] {
        std::unique_lock lock(mutex, 1h);
        say("%d", lock.owns_lock());
    });
}

CASE(a_timed_shared_lock_may_be_too_late, "1", "0")
{
    static std::shared_timed_mutex mutex;
    both([] { std::lock_guard guard(mutex); }, [] {
        std::shared_lock lock(mutex, std::chrono::steady_clock::now() + 1h);
        say("%d", lock.owns_lock());
    });
}

SAMPLED(several_are_locked_without_deadlock, 100, "2")
{
    static std::mutex a, b;
    static int count;
    both(
        [] {
            std::scoped_lock lock(a, b);
            count++;
        },
        [] {
            std::scoped_lock lock(b, a);
            count++;
        });
    say("%d", count);
}

CASE(conditions_are_waited_for, "rw")
{
    static std::mutex mutex;
    static std::condition_variable changed;
    static bool ready;
    both(
        [] {
            std::lock_guard guard(mutex);
            say("r");
            ready = true;
            changed.notify_one();
        },
        [] {
            std::unique_lock lock(mutex);
            changed.wait(lock, [] { return ready; });
            say("w");
        });
}

CASE(conditions_with_any_lock, "rw")
{
    static std::shared_mutex mutex;
    static std::condition_variable_any changed;
    static bool ready;
    both(
        [] {
            std::lock_guard guard(mutex);
            say("r");
            ready = true;
            changed.notify_all();
        },
        [] {
            std::shared_lock lock(mutex);
            changed.wait(lock, [] { return ready; });
            say("w");
        });
}

CASE(conditions_in_time_or_not, "1", "0")
{
    static std::mutex mutex;
    static std::condition_variable changed;
    static bool ready;
    both(
        [] {
            std::lock_guard guard(mutex);
            ready = true;
            changed.notify_one();
        },
        [] {
            std::unique_lock lock(mutex);
            say("%d", changed.wait_for(lock, 1h, [] { return ready; }));
        });
}

CASE(time_runs_out, "1 1 0")
{
    std::mutex mutex;
    std::condition_variable changed;
    std::unique_lock lock(mutex);
    auto before = std::chrono::steady_clock::now();
    say("%d ", changed.wait_for(lock, 3ms) == std::cv_status::timeout);
    say("%d ", std::chrono::steady_clock::now() - before >= 3ms);
    std::timed_mutex other;
    other.lock();
    both([] {}, [&] { say("%d", std::async(std::launch::async, [&] { return other.try_lock_for(1ms); }).get()); });
}

CASE(called_once, "1")
{
    static std::once_flag flag;
    static int runs;
    auto call = [] { std::call_once(flag, [] { point(); runs++; }); };
    both(call, call);
    say("%d", runs);
}

CASE(called_again_after_an_exception, "x2")
{
    std::once_flag flag;
    int runs = 0;
    try {
        std::call_once(flag, [&] { runs++; throw 1; });
    } catch (int) {
        say("x");
    }
    std::call_once(flag, [&] { runs++; });
    std::call_once(flag, [&] { runs++; });
    say("%d", runs);
}

struct Made {
    Made() { point(); say("made "); }
    ~Made() { say(" gone"); }
    int value = 3;
};

static int use_static()
{
    static Made made;
    return made.value;
}

CASE(static_variables_are_made_once, "made 33 gone")
{
    int theirs = 0;
    std::thread t([&] { theirs = use_static(); });
    int mine = use_static();
    t.join();
    say("%d%d", mine, theirs);
}

CASE(a_latch_opens, "11")
{
    std::latch latch(2);
    std::atomic<int> arrived = 0;
    auto meet = [&] {
        arrived++;
        latch.arrive_and_wait();
        say("%d", arrived == 2);
    };
    both(meet, meet);
}

CASE(a_barrier_has_one_completion_a_round, "2")
{
    int rounds = 0;
    std::barrier barrier(2, [&]() noexcept { rounds++; });
    auto meet = [&] {
        barrier.arrive_and_wait();
        barrier.arrive_and_wait();
    };
    both(meet, meet);
    say("%d", rounds);
}

CASE(semaphores_count, "AABB", "BBAA")
{
    static std::binary_semaphore semaphore(1);
    auto enter = [](const char *letter) {
        semaphore.acquire();
        say("%s", letter);
        point();
        say("%s", letter);
        semaphore.release();
    };
    both([&] { enter("A"); }, [&] { enter("B"); });
}

CASE(semaphores_can_be_tried, "1 1 0 0")
{
    std::counting_semaphore<5> semaphore(2);
    say("%d ", semaphore.try_acquire());
    say("%d ", semaphore.try_acquire_for(1ms));
    say("%d ", semaphore.try_acquire());
    say("%d", semaphore.try_acquire_for(1ms));
}

CASE(atomics_wait, "sw")
{
    static std::atomic<int> value = 0;
    both(
        [] {
            say("s");
            value = 1;
            value.notify_all();
        },
        [] {
            value.wait(0);
            say("w");
        });
}

CASE(joining_threads_stop, "stopped")
{
    std::jthread t([](std::stop_token token) {
        while (!token.stop_requested())
            std::this_thread::yield();
        say("stopped");
    });
}

CASE(a_stop_ends_a_wait, "1 0")
{
    std::mutex mutex;
    std::condition_variable_any changed;
    std::jthread t([&](std::stop_token token) {
        std::unique_lock lock(mutex);
        bool came = changed.wait(lock, token, [] { return false; });
        say("%d %d", token.stop_requested(), came);
    });
    point();
    t.request_stop();
}

CASE(a_stop_calls_back, "called 1 0")
{
    std::stop_source source;
    std::stop_callback call(source.get_token(), [] { say("called "); });
    std::thread t([&] { say("%d ", source.request_stop()); });
    t.join();
    say("%d", source.request_stop());
}

CASE(promises_are_kept, "p7")
{
    std::promise<int> promise;
    auto future = promise.get_future();
    both(
        [&] {
            say("p");
            promise.set_value(7);
        },
        [&] { say("%d", future.get()); });
}

CASE(promises_in_time_or_not, "0", "1")
{
    std::promise<void> promise;
    auto future = promise.get_future();
    both([&] { promise.set_value(); }, [&] { say("%d", future.wait_for(1h) == std::future_status::timeout); });
}

CASE(broken_promises, "broken")
{
    std::future<int> future;
    {
        std::promise<int> promise;
        future = promise.get_future();
    }
    try {
        future.get();
    } catch (const std::future_error &error) {
        say("%s", error.code() == std::future_errc::broken_promise ? "broken" : "other");
    }
}

CASE(tasks, "12 oops")
{
    std::packaged_task<int(int)> task([](int x) { return 2 * x; });
    auto future = task.get_future();
    std::thread t(std::move(task), 6);
    say("%d ", future.get());
    t.join();
    auto failing = std::async(std::launch::async, []() -> int { throw std::string("oops"); });
    try {
        failing.get();
    } catch (const std::string &words) {
        say("%s", words.c_str());
    }
}

CASE(deferred_tasks_run_here, "1 1")
{
    auto here = std::this_thread::get_id();
    auto future = std::async(std::launch::deferred, [&] { return std::this_thread::get_id() == here; });
    say("%d ", future.wait_for(0s) == std::future_status::deferred);
    say("%d", future.get());
}

CASE(shared_futures, "55")
{
    std::promise<int> promise;
    std::shared_future<int> future = promise.get_future();
    std::thread a([=] { say("%d", future.get()); }), b([=] { say("%d", future.get()); });
    promise.set_value(5);
    a.join();
    b.join();
}

static thread_local struct Local {
    std::string name = "new";
    ~Local()
    {
        point();
        say("~%s ", name.c_str());
    }
} local;

CASE(variables_of_a_thread_are_destroyed_with_it, "~A main ~main ")
{
    local.name = "main";
    std::thread([] { local.name = "A"; }).join();
    say("%s ", local.name.c_str());
}

CASE(exceptions_travel, "caught 5")
{
    std::exception_ptr error;
    std::thread t([&] {
        try {
            point();
            throw 5;
        } catch (...) {
            error = std::current_exception();
        }
    });
    t.join();
    try {
        std::rethrow_exception(error);
    } catch (int value) {
        say("caught %d", value);
    }
}

struct Unwound {
    const char *name;
    ~Unwound()
    {
        point();
        say("~%s", name);
    }
};

CASE(an_end_unwinds, "~b~a.")
{
    std::thread t([] {
        Unwound a{"a"};
        Unwound b{"b"};
        pthread_exit(nullptr);
    });
    t.join();
    say(".");
}

CASE(at_thread_exit_others_are_told, "done")
{
    std::mutex mutex;
    std::condition_variable changed;
    bool ready = false;
    std::unique_lock lock(mutex);
    std::thread t([&] {
        std::unique_lock inner(mutex);
        ready = true;
        std::notify_all_at_thread_exit(changed, std::move(inner));
    });
    changed.wait(lock, [&] { return ready; });
    say("done");
    lock.unlock();
    t.join();
}

CASE(sleeps_last, "1")
{
    auto before = std::chrono::steady_clock::now();
    std::this_thread::sleep_for(2ms);
    std::this_thread::sleep_until(before + 3ms);
    say("%d", std::chrono::steady_clock::now() - before >= 3ms);
}

CASE(random_devices_differ, "1 1")
{
    // Twelve numbers of 32 bits: by chance they are all the same in no run that anybody sees.
    std::random_device device("getentropy");
    bool differs = false;
    for (unsigned first = device(), i = 1; i < 12; i++)
        differs |= device() != first;
    say("%d ", differs);
    differs = false;
    for (unsigned i = 0; i < 12; i++)
        differs |= std::random_device()() != device();
    say("%d", differs);
}

CASE(errors_are_thrown, "deadlock none")
{
    std::mutex mutex;
    std::unique_lock lock(mutex);
    try {
        lock.lock();
    } catch (const std::system_error &error) {
        say("%s ", error.code() == std::errc::resource_deadlock_would_occur ? "deadlock" : "other");
    }
    std::thread none;
    try {
        none.join();
    } catch (const std::system_error &error) {
        say("%s", error.code() == std::errc::invalid_argument ? "none" : "other");
    }
}

CONFORMANCE_MAIN
