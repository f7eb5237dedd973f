// What C++20 adds, as gcc 12 implements it: over futexes, with some spinning first.
#include "cases.h"
#include <atomic>
#include <barrier>
#include <chrono>
#include <condition_variable>
#include <latch>
#include <mutex>
#include <semaphore>
#include <stop_token>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

static std::mutex m;

static void pause_here()
{
    std::lock_guard guard(m);
}

static void jthreads_join_themselves()
{
    int done = 0;
    {
        std::jthread a([&] {
            std::lock_guard guard(m);
            done++;
        });
        std::jthread b([&] {
            std::lock_guard guard(m);
            done++;
        });
    }
    assert(done == 2);
}

static void stop_requests()
{
    int stopped = 0, called = 0;
    {
        std::jthread t([&](std::stop_token token) {
            std::stop_callback callback(token, [&] { called++; });
            while (!token.stop_requested())
                std::this_thread::yield();
            stopped++;
        });
        pause_here();
    }
    assert(stopped == 1 && called == 1);
    std::condition_variable_any condition;
    bool ready = false;
    {
        std::jthread t([&](std::stop_token token) {
            std::unique_lock lock(m);
            stopped += !condition.wait(lock, token, [&] { return ready; });
        });
        pause_here();
    }
    assert(stopped == 2);
}

template <class Int> static void wait_and_notify()
{
    std::atomic<Int> word{0};
    std::vector<std::jthread> threads;
    std::atomic<int> awake{0};
    for (int i = 0; i < 2; i++)
        threads.emplace_back([&] {
            word.wait(0);
            assert(word.load() == 1);
            awake++;
        });
    pause_here();
    word.store(1);
    word.notify_all();
    threads.clear();
    assert(awake == 2);
    word.wait(0);
    std::jthread last([&] {
        while (word.load() != 3) {
            Int seen = word.load();
            if (seen != 3)
                word.wait(seen);
        }
    });
    word.store(2);
    word.notify_one();
    pause_here();
    word.store(3);
    word.notify_one();
}

static void atomic_wait_int()
{
    wait_and_notify<int>();
}

// Not of a futex's size: libstdc++ waits on a word of its own instead.
static void atomic_wait_long()
{
    wait_and_notify<long>();
}

static void atomic_wait_char()
{
    wait_and_notify<char>();
}

static void atomic_flags()
{
    std::atomic_flag flag;
    std::jthread t([&] {
        pause_here();
        flag.test_and_set();
        flag.notify_one();
    });
    flag.wait(false);
    assert(flag.test());
}

static void latches()
{
    std::latch latch(3), go(1);
    int arrived = 0;
    std::vector<std::jthread> threads;
    for (int i = 0; i < 2; i++)
        threads.emplace_back([&] {
            go.wait();
            {
                std::lock_guard guard(m);
                arrived++;
            }
            latch.count_down();
        });
    assert(!latch.try_wait());
    go.count_down();
    latch.arrive_and_wait();
    assert(arrived == 2 && latch.try_wait());
}

static void barriers()
{
    int arrived = 0, phases = 0;
    auto completion = [&]() noexcept {
        phases++;
        assert(arrived == 2 * phases);
    };
    std::barrier barrier(2, completion);
    auto work = [&] {
        for (int i = 0; i < 3; i++) {
            {
                std::lock_guard guard(m);
                arrived++;
            }
            barrier.arrive_and_wait();
        }
    };
    std::jthread a(work);
    work();
    a.join();
    assert(phases == 3);
}

static void semaphores()
{
    std::counting_semaphore<2> places(2);
    std::binary_semaphore done(0);
    std::atomic<int> inside{0};
    auto work = [&] {
        for (int i = 0; i < 2; i++) {
            places.acquire();
            assert(++inside <= 2);
            std::this_thread::yield();
            inside--;
            places.release();
        }
    };
    std::jthread a(work), b(work), c([&] {
        work();
        done.release();
    });
    done.acquire();
    assert(!done.try_acquire());
    auto before = std::chrono::steady_clock::now();
    assert(!done.try_acquire_for(20ms));
    assert(std::chrono::steady_clock::now() - before >= 20ms);
    assert(!done.try_acquire_until(std::chrono::system_clock::now() + 20ms));
}

CASES(CASE(jthreads_join_themselves), CASE(stop_requests), CASE(atomic_wait_int), CASE(atomic_wait_long),
      CASE(atomic_wait_char), CASE(atomic_flags), CASE(latches), CASE(barriers), CASE(semaphores))
