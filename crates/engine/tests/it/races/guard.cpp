// The initialiser of a static variable is before every use of it; a write after it is not.
// race: write change | read use
#include <thread>
struct Config {
    int value;
    Config() : value(1) {}
};
static Config &config() {
    static Config instance;
    return instance;
}
static void worker() {
#ifndef CLEAN
    config().value = 2; // @change
#else
    config();
#endif
}
int main() {
    std::thread thread(worker);
    int seen = config().value; // @use
    thread.join();
    return seen > 2;
}
