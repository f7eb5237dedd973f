// Threads in an order that the C++ library's random device gives. One of the orders fails.
#include <algorithm>
#include <cstdio>
#include <mutex>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

int main() {
    std::random_device device;
    std::mt19937 generator(device());
    std::vector<int> order{0, 1, 2};
    std::shuffle(order.begin(), order.end(), generator);
    std::mutex mutex;
    std::vector<int> seen;
    std::vector<std::thread> threads;
    for (int number : order)
        threads.emplace_back([&, number] {
            for (int i = 0; i <= number; i++) {
                std::lock_guard<std::mutex> lock(mutex);
                seen.push_back(number);
            }
        });
    for (auto &thread : threads)
        thread.join();
    std::printf("%u:", device());
    for (int number : seen)
        std::printf(" %d", number);
    std::puts("");
    std::fflush(stdout);
    if (seen.front() != order.front())
        throw std::runtime_error("overtaken");
}
