// The C++17 standard library's threads, as gcc implements them.
#include "cases.h"
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

static std::mutex m;

static void pause_here()
{
    std::lock_guard<std::mutex> guard(m);
}

// ---- threads ----

static void threads_and_arguments()
{
    int sum = 0;
    auto add = [&](int a, const std::string &b, std::unique_ptr<int> c) {
        std::lock_guard<std::mutex> guard(m);
        sum += a + (int)b.size() + *c;
    };
    std::thread a(add, 1, "two", std::make_unique<int>(10)), b(add, 5, "", std::make_unique<int>(20));
    assert(a.joinable() && a.get_id() != b.get_id() && a.get_id() != std::this_thread::get_id());
    std::thread moved = std::move(a);
    assert(!a.joinable() && moved.joinable());
    moved.join();
    b.join();
    assert(sum == 39 && !b.joinable() && b.get_id() == std::thread::id());
    assert(std::thread::hardware_concurrency() >= 1);
}

static void detached_thread()
{
    auto done = std::make_shared<std::promise<int>>();
    auto future = done->get_future();
    std::thread([done] {
        pause_here();
        done->set_value(3);
    }).detach();
    assert(future.get() == 3);
}

static void refused_joins()
{
    std::thread none;
    bool refused = false;
    try {
        none.join();
    } catch (const std::system_error &e) {
        refused = e.code() == std::errc::invalid_argument;
    }
    assert(refused);
}

// ---- mutexes ----

template <class Mutex> static void exclude()
{
    Mutex mutex;
    int inside = 0, total = 0;
    auto work = [&] {
        for (int i = 0; i < 2; i++) {
            std::lock_guard<Mutex> guard(mutex);
            assert(inside++ == 0);
            std::this_thread::yield();
            total++;
            assert(--inside == 0);
        }
    };
    std::thread a(work), b(work);
    work();
    a.join();
    b.join();
    assert(total == 6);
}

static void mutexes_exclude()
{
    exclude<std::mutex>();
    exclude<std::recursive_mutex>();
    exclude<std::timed_mutex>();
    exclude<std::recursive_timed_mutex>();
    exclude<std::shared_mutex>();
    exclude<std::shared_timed_mutex>();
}

static void recursive_mutexes()
{
    std::recursive_mutex mutex;
    mutex.lock();
    mutex.lock();
    assert(mutex.try_lock());
    auto busy = [&] {
        bool got = true;
        std::thread([&] { got = mutex.try_lock(); }).join();
        return !got;
    };
    for (int i = 0; i < 3; i++) {
        assert(busy());
        mutex.unlock();
    }
    std::thread([&] {
        assert(mutex.try_lock());
        mutex.unlock();
    }).join();
}

static void timed_mutexes()
{
    std::timed_mutex mutex;
    mutex.lock();
    std::thread([&] {
        assert(!mutex.try_lock());
        auto before = std::chrono::steady_clock::now();
        assert(!mutex.try_lock_for(20ms));
        assert(std::chrono::steady_clock::now() - before >= 20ms);
        auto until = std::chrono::system_clock::now() + 20ms;
        assert(!mutex.try_lock_until(until));
        assert(std::chrono::system_clock::now() >= until);
    }).join();
    mutex.unlock();
    assert(mutex.try_lock_for(1h));
    mutex.unlock();
}

static void shared_mutexes()
{
    std::shared_timed_mutex mutex;
    std::atomic<int> readers{0};
    int writers = 0;
    auto read = [&] {
        std::shared_lock<std::shared_timed_mutex> lock(mutex);
        readers++;
        std::this_thread::yield();
        assert(writers == 0);
        readers--;
    };
    auto write = [&] {
        std::unique_lock<std::shared_timed_mutex> lock(mutex);
        assert(writers++ == 0 && readers == 0);
        std::this_thread::yield();
        assert(--writers == 0 && readers == 0);
    };
    std::thread a(read), b(write), c(read), d(write);
    for (std::thread *t : {&a, &b, &c, &d})
        t->join();
    mutex.lock_shared();
    std::thread([&] {
        assert(mutex.try_lock_shared());
        mutex.unlock_shared();
        assert(!mutex.try_lock() && !mutex.try_lock_for(10ms));
        assert(mutex.try_lock_shared_for(10ms));
        mutex.unlock_shared();
    }).join();
    mutex.unlock_shared();
    mutex.lock();
    std::thread([&] { assert(!mutex.try_lock_shared() && !mutex.try_lock_shared_for(10ms)); }).join();
    mutex.unlock();
}

static void several_locks_at_once()
{
    std::mutex a, b, c;
    int total = 0;
    auto work = [&](std::mutex &x, std::mutex &y, std::mutex &z) {
        std::scoped_lock lock(x, y, z);
        total++;
    };
    std::thread one(work, std::ref(a), std::ref(b), std::ref(c)), two(work, std::ref(c), std::ref(a), std::ref(b));
    work(b, c, a);
    one.join();
    two.join();
    assert(total == 3);
    assert(std::try_lock(a, b) == -1);
    std::thread([&] { assert(std::try_lock(c, b) == 1); }).join();
    a.unlock();
    b.unlock();
}

// ---- condition variables ----

template <class Condition, class Mutex> static void wake()
{
    Condition condition;
    Mutex mutex;
    int ready = 0, woken = 0;
    auto wait = [&] {
        std::unique_lock<Mutex> lock(mutex);
        condition.wait(lock, [&] { return ready != 0; });
        woken++;
    };
    std::thread a(wait), b(wait);
    {
        std::unique_lock<Mutex> lock(mutex);
        ready = 1;
        condition.notify_all();
    }
    a.join();
    b.join();
    assert(woken == 2);
    std::unique_lock<Mutex> lock(mutex);
    auto before = std::chrono::steady_clock::now();
    assert(condition.wait_for(lock, 20ms) == std::cv_status::timeout);
    assert(std::chrono::steady_clock::now() - before >= 20ms);
    assert(!condition.wait_until(lock, std::chrono::system_clock::now() + 20ms, [] { return false; }));
    assert(condition.wait_until(lock, std::chrono::steady_clock::now() - 1s, [] { return true; }));
}

static void condition_variables()
{
    wake<std::condition_variable, std::mutex>();
    wake<std::condition_variable_any, std::mutex>();
    wake<std::condition_variable_any, std::recursive_mutex>();
    wake<std::condition_variable_any, std::shared_mutex>();
}

static void notify_at_thread_exit()
{
    struct Late {
        int *at;
        ~Late() { *at = 1; }
    };
    std::condition_variable condition;
    bool ready = false;
    int destroyed = 0;
    std::thread t([&] {
        static thread_local Late late{&destroyed};
        assert(late.at == &destroyed);
        std::unique_lock<std::mutex> lock(m);
        ready = true;
        std::notify_all_at_thread_exit(condition, std::move(lock));
    });
    {
        std::unique_lock<std::mutex> lock(m);
        condition.wait(lock, [&] { return ready; });
        assert(destroyed == 1);
    }
    t.join();
}

// ---- futures ----

static void futures_and_promises()
{
    std::promise<std::string> promise;
    auto future = promise.get_future();
    assert(future.wait_for(1ms) == std::future_status::timeout);
    std::thread t([&] {
        pause_here();
        promise.set_value("done");
    });
    future.wait();
    assert(future.wait_for(0s) == std::future_status::ready);
    assert(future.get() == "done" && !future.valid());
    t.join();
    std::promise<void> broken;
    auto never = broken.get_future();
    broken = std::promise<void>();
    bool told = false;
    try {
        never.get();
    } catch (const std::future_error &e) {
        told = e.code() == std::future_errc::broken_promise;
    }
    assert(told);
}

static void exceptions_through_futures()
{
    std::promise<int> promise;
    std::shared_future<int> future = promise.get_future().share();
    int caught = 0;
    auto wait = [&] {
        try {
            future.get();
        } catch (const std::out_of_range &e) {
            std::lock_guard<std::mutex> guard(m);
            caught += std::string(e.what()) == "far";
        }
    };
    std::thread a(wait), b(wait);
    promise.set_exception(std::make_exception_ptr(std::out_of_range("far")));
    a.join();
    b.join();
    assert(caught == 2);
}

static void async_and_deferred()
{
    auto self = std::this_thread::get_id();
    auto other = std::async(std::launch::async, [=] {
        pause_here();
        return std::this_thread::get_id() != self;
    });
    auto later = std::async(std::launch::deferred, [=] { return std::this_thread::get_id() == self; });
    assert(later.wait_for(0s) == std::future_status::deferred);
    assert(other.get() && later.get());
    auto fails = std::async(std::launch::async, []() -> int { throw std::runtime_error("no"); });
    bool caught = false;
    try {
        fails.get();
    } catch (const std::runtime_error &) {
        caught = true;
    }
    assert(caught);
    bool ran = false;
    {
        auto waits = std::async(std::launch::async, [&] {
            pause_here();
            ran = true;
        });
    }
    assert(ran);
}

static void packaged_tasks()
{
    std::packaged_task<int(int)> task([](int x) { return x * 2; });
    auto future = task.get_future();
    std::thread t(std::move(task), 21);
    assert(future.get() == 42);
    t.join();
    std::packaged_task<int()> at_exit([] { return 7; });
    auto late = at_exit.get_future();
    std::thread([&] {
        at_exit.make_ready_at_thread_exit();
        assert(late.wait_for(0s) == std::future_status::timeout);
    }).join();
    assert(late.get() == 7);
}

// ---- once ----

static void call_once_and_throw()
{
    std::once_flag flag;
    int tries = 0, done = 0, caught = 0;
    auto init = [&] {
        pause_here();
        if (tries++ == 0)
            throw std::runtime_error("first time");
        pause_here();
        done++;
    };
    auto work = [&] {
        try {
            std::call_once(flag, init);
            assert(done == 1);
        } catch (const std::runtime_error &) {
            std::lock_guard<std::mutex> guard(m);
            caught++;
        }
    };
    std::thread a(work), b(work), c(work);
    a.join();
    b.join();
    c.join();
    assert(tries == 2 && done == 1 && caught == 1);
}

static int made;

struct Slow {
    int value;
    Slow() : value(0)
    {
        made++;
        for (int i = 0; i < 3; i++)
            pause_here();
        value = 7;
    }
};

static Slow &the_slow()
{
    static Slow slow;
    return slow;
}

static void statics_in_functions()
{
    auto work = [] { assert(the_slow().value == 7); };
    std::thread a(work), b(work), c(work);
    a.join();
    b.join();
    c.join();
    assert(made == 1);
}

static int static_tries;

struct Throws {
    Throws()
    {
        pause_here();
        if (static_tries++ == 0)
            throw 1;
    }
};

static void statics_that_throw()
{
    int caught = 0;
    auto work = [&] {
        try {
            static Throws once;
        } catch (int) {
            std::lock_guard<std::mutex> guard(m);
            caught++;
        }
    };
    std::thread a(work), b(work), c(work);
    a.join();
    b.join();
    c.join();
    assert(static_tries == 2 && caught == 1);
}

// ---- thread-local objects ----

static std::vector<std::string> ended;
static pthread_key_t key;

struct Local {
    std::string name;
    int uses = 0;
    explicit Local(const char *n) : name(n) {}
    ~Local()
    {
        std::lock_guard<std::mutex> guard(m);
        ended.push_back(name + std::to_string(uses));
    }
};

static thread_local Local first("first"), second("second");

static void key_ends(void *)
{
    std::lock_guard<std::mutex> guard(m);
    ended.push_back("key");
}

static void thread_local_objects()
{
    assert(pthread_key_create(&key, key_ends) == 0);
    std::thread([] {
        assert(pthread_setspecific(key, &key) == 0);
        first.uses++;
        pause_here();
        second.uses += 2;
        first.uses++;
    }).join();
    // Both are made together at the first use of either; they end in the opposite order, and before the keys.
    assert((ended == std::vector<std::string>{"second2", "first2", "key"}));
    std::thread([] {}).join();
    assert(ended.size() == 3);
}

static void thread_locals_after_exit()
{
    std::thread t([] {
        first.uses = 5;
        pthread_exit(nullptr);
    });
    t.join();
    assert((ended == std::vector<std::string>{"second0", "first5"}));
}

struct Chain {
    static inline int count;
    ~Chain()
    {
        if (++count < 4) {
            // Made while the others are being destroyed, so destroyed in turn.
            if (count == 1) {
                static thread_local Chain one;
                (void)&one;
            } else if (count == 2) {
                static thread_local Chain two;
                (void)&two;
            } else {
                static thread_local Chain three;
                (void)&three;
            }
        }
    }
};

static void thread_locals_made_at_the_end()
{
    std::thread([] {
        static thread_local Chain zero;
        (void)&zero;
    }).join();
    assert(Chain::count == 4);
}

// ---- exceptions ----

static void exceptions_inside_threads()
{
    auto work = [](int n) {
        int steps = 0;
        try {
            try {
                pause_here();
                throw std::runtime_error("inner " + std::to_string(n));
            } catch (const std::runtime_error &) {
                pause_here();
                steps++;
                // In flight while the other thread throws, too.
                std::throw_with_nested(std::logic_error("outer"));
            }
        } catch (const std::logic_error &outer) {
            try {
                std::rethrow_if_nested(outer);
            } catch (const std::runtime_error &inner) {
                pause_here();
                assert(inner.what() == "inner " + std::to_string(n));
                steps++;
                try {
                    throw;
                } catch (const std::exception &again) {
                    assert(again.what() == std::string(inner.what()));
                    steps++;
                }
            }
        }
        assert(steps == 3 && !std::current_exception());
    };
    std::thread a(work, 1), b(work, 2);
    work(3);
    a.join();
    b.join();
}

struct Unwound {
    int *count;
    ~Unwound()
    {
        // Still unwinding while others run.
        assert(std::uncaught_exceptions() == 1);
        pause_here();
        assert(std::uncaught_exceptions() == 1);
        ++*count;
    }
};

static void destructors_wait_while_unwinding()
{
    int count = 0;
    auto work = [&] {
        try {
            Unwound one{&count}, two{&count};
            throw 5;
        } catch (int five) {
            assert(five == 5 && std::uncaught_exceptions() == 0);
        }
    };
    std::thread a(work), b(work);
    work();
    a.join();
    b.join();
    assert(count == 6);
}

static void exit_unwinds()
{
    int destroyed = 0;
    struct Scope {
        int *count;
        ~Scope()
        {
            pause_here();
            ++*count;
        }
    };
    std::thread t([&] {
        Scope outer{&destroyed};
        try {
            Scope inner{&destroyed};
            pthread_exit(nullptr);
        } catch (const std::exception &) {
            assert(false);
        } catch (...) {
            destroyed += 10;
            throw;
        }
    });
    t.join();
    assert(destroyed == 12);
}

// ---- time ----

static void sleeps()
{
    auto before = std::chrono::steady_clock::now();
    std::this_thread::sleep_for(20ms);
    assert(std::chrono::steady_clock::now() - before >= 20ms);
    auto until = std::chrono::system_clock::now() + 20ms;
    std::this_thread::sleep_until(until);
    assert(std::chrono::system_clock::now() >= until);
    std::this_thread::sleep_for(-1s);
}

static void spins_with_yield()
{
    std::atomic<int> flag{0};
    std::thread t([&] {
        pause_here();
        flag.store(1, std::memory_order_release);
    });
    while (flag.load(std::memory_order_acquire) == 0)
        std::this_thread::yield();
    t.join();
}

static void shared_pointers()
{
    static std::atomic<int> alive{0};
    struct Counted {
        Counted() { alive++; }
        ~Counted() { alive--; }
    };
    auto shared = std::make_shared<Counted>();
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; i++)
        threads.emplace_back([copy = shared] {
            for (int j = 0; j < 3; j++) {
                auto another = copy;
                pause_here();
            }
        });
    shared.reset();
    for (auto &t : threads)
        t.join();
    threads.clear();
    assert(alive == 0);
}

// ---- bad ends ----

static void throws_in_a_thread()
{
    std::thread([] {
        pause_here();
        throw 42;
    }).join();
}

static void throws_in_main()
{
    pause_here();
    throw 42;
}

static void throws_a_standard_exception()
{
    std::thread([] {
        pause_here();
        throw std::runtime_error("deep trouble");
    }).join();
}

static void forgets_to_join()
{
    std::thread t(pause_here);
}

CASES(CASE(threads_and_arguments), CASE(detached_thread), CASE(refused_joins), CASE(mutexes_exclude),
      CASE(recursive_mutexes), CASE(timed_mutexes), CASE(shared_mutexes), CASE(several_locks_at_once),
      CASE(condition_variables), CASE(notify_at_thread_exit), CASE(futures_and_promises),
      CASE(exceptions_through_futures), CASE(async_and_deferred), CASE(packaged_tasks), CASE(call_once_and_throw),
      CASE(statics_in_functions), CASE(statics_that_throw), CASE(thread_local_objects), CASE(thread_locals_after_exit),
      CASE(thread_locals_made_at_the_end), CASE(exceptions_inside_threads), CASE(destructors_wait_while_unwinding),
      CASE(exit_unwinds), CASE(sleeps), CASE(spins_with_yield), CASE(shared_pointers), CASE(throws_in_a_thread),
      CASE(throws_in_main), CASE(throws_a_standard_exception), CASE(forgets_to_join))
