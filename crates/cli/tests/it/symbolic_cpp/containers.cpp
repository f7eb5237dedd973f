// Uses the functions of libstdc++ and libc for which symbolic builds have substitutes, and prints what they do.
#include <cassert>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <unordered_map>
#include <unordered_set>

static unsigned random_number() {
    static unsigned long state = 1;
    state = state * 6364136223846793005ul + 1442695040888963407ul;
    return state >> 33;
}

static void trees(int bits) {
    std::map<unsigned, int> map;
    unsigned long sum = 0;
    for (int i = 0; i < 1000; i++) {
        unsigned key = random_number() & ((1u << bits) - 1);
        if (random_number() & 1) {
            map[key] = i;
        } else if (auto found = map.find(key); found != map.end()) {
            auto after = map.erase(found);
            sum += after == map.end() ? 0 : after->first;
        }
        if (i % 97)
            continue;
        long last = -1;
        size_t there = 0, back = 0;
        for (auto &each : map) {
            assert((long)each.first > last);
            last = each.first;
            there++;
        }
        for (auto each = map.rbegin(); each != map.rend(); ++each)
            sum += ++back * each->first;
        assert(there == map.size() && back == map.size());
    }
    std::set<int> set = {3, 1, 2};
    printf("%d bits: %zu %lu %d\n", bits, map.size(), sum, *set.begin());
}

static void lists() {
    std::list<int> a, b, empty, one = {1};
    for (int i = 0; i < 300; i++) {
        a.push_back(random_number() % 100);
        if (i % 3 == 0)
            b.push_front(random_number() % 100);
        if (i % 7 == 0)
            a.reverse();
        if (i % 11 == 0)
            a.swap(b);
        if (i % 13 == 0 && !a.empty())
            a.pop_front();
        if (i % 50 == 0)
            a.sort();
    }
    a.splice(std::next(a.begin(), 3), b);
    a.unique();
    long hash = 0;
    for (int each : a)
        hash = hash * 31 + each;
    for (auto each = a.rbegin(); each != a.rend(); ++each)
        hash = hash * 37 + *each;
    empty.swap(one);
    printf("list: %ld %zu %zu %zu\n", hash, a.size(), empty.size(), one.size());
}

static void tables() {
    std::unordered_map<std::string, int> words;
    std::unordered_set<long> numbers;
    for (int i = 0; i < 600; i++) {
        std::string word(random_number() % 23, 'a' + i % 26);
        word += std::to_string(i * 7919 % 1000);
        words[word]++;
        numbers.insert(i * i);
        if ((i & (i - 1)) == 0)
            printf("%zu %zu ", words.bucket_count(), numbers.bucket_count());
    }
    unsigned long hash = 0;
    for (auto &each : words)
        hash = hash * 31 + each.first.size() * 7 + each.second;
    words.max_load_factor(0.3f);
    words.rehash(50);
    for (int i = 0; i < 300; i++)
        words[std::to_string(i)] = 1;
    printf("%lu %zu", hash, words.bucket_count());
    words.rehash(0);
    for (size_t wanted : {0, 1, 13, 14, 100, 1000000})
        printf(" %zu", std::unordered_set<int>(wanted).bucket_count());
    for (const char *text : {"", "seven c", "8 letter", "hello world, more than eight"})
        printf(" %zu", std::hash<std::string>()(text));
    printf("\n");
}

static void strings() {
    std::string text = "abc";
    text.insert(1, "xyz");
    text.replace(0, 2, "long long long long long");
    text.erase(3, 4);
    try {
        text.at(1000);
    } catch (std::out_of_range &e) {
        printf("%s\n", e.what());
    }
    printf("%s %zu %zu %zu\n", text.c_str(), text.find("ng"), text.capacity(), text.substr(2, 7).size());
}

static int by_tens(const void *a, const void *b) {
    return *(const int *)a / 10 - *(const int *)b / 10;
}

static int counted(const void *a, const void *b, void *count) {
    ++*(int *)count;
    return by_tens(a, b);
}

struct Large {
    char padding[100];
    int value;
};

static int by_value(const void *a, const void *b) {
    return ((const Large *)a)->value - ((const Large *)b)->value;
}

static void sorting() {
    int numbers[300], count = 0;
    for (int &each : numbers)
        each = random_number() % 900;
    qsort_r(numbers, 299, sizeof *numbers, counted, &count);
    qsort(numbers, 300, sizeof *numbers, by_tens);
    long hash = 0;
    for (int each : numbers)
        hash = hash * 31 + each;
    int none = 100000;
    auto found = (int *)bsearch(&numbers[17], numbers, 300, sizeof *numbers, by_tens);
    assert(!bsearch(&none, numbers, 300, sizeof *numbers, by_tens));
    printf("sorted: %ld %d %ld", hash, count, found - numbers);
    Large large[33];
    for (auto &each : large)
        each.value = random_number() % 50;
    qsort(large, 33, sizeof *large, by_value);
    for (auto &each : large)
        printf(" %d", each.value);
    printf("\n");
}

struct Attempt {
    int value;
    explicit Attempt(int value) : value(value) {
        if (value == 0)
            throw value;
    }
};

static int attempt() {
    static int attempts;
    static Attempt made(attempts++);
    return made.value;
}

struct Noisy {
    ~Noisy() { printf("gone\n"); }
};

static void threads() {
    try {
        attempt();
    } catch (int value) {
        printf("thrown %d ", value);
    }
    printf("%d ", attempt());
    printf("%d\n", attempt());
    std::mutex mutex;
    std::condition_variable condition;
    bool ready = false;
    std::thread thread([&, noisy = std::make_shared<Noisy>()] {
        std::unique_lock<std::mutex> lock(mutex);
        condition.wait(lock, [&] { return ready; });
    });
    {
        std::lock_guard<std::mutex> lock(mutex);
        ready = true;
    }
    condition.notify_all();
    condition.notify_one();
    bool joinable = thread.joinable();
    thread.join();
    printf("%d %d\n", joinable, thread.joinable());
    for (auto end : {&std::thread::join, &std::thread::detach}) {
        try {
            (thread.*end)();
        } catch (std::system_error &e) {
            printf("%s\n", e.what());
        }
    }
    std::once_flag once;
    for (int i = 0; i < 3; i++)
        std::call_once(once, [] { printf("once\n"); });
    std::thread([] {}).detach();
}

int main() {
    for (int bits = 2; bits < 10; bits++)
        trees(bits);
    lists();
    tables();
    strings();
    sorting();
    threads();
}
