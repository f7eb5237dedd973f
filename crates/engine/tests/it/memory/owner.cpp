// A count of references that is looked at after it was let go: the last one may not be the last any more. FIXED: what the
// decrement returns decides.
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

struct Shared {
    std::atomic<int> references{2};
    std::vector<std::string> names{"a name that is too long to be inside", "another one that is long as well"};
};

static void release(Shared *shared) {
#ifdef FIXED
    if (shared->references.fetch_sub(1) == 1) delete shared;
#else
    shared->references.fetch_sub(1);
    if (shared->references.load() == 0) delete shared;
#endif
}

int main() {
    auto shared = new Shared;
    std::thread other(release, shared);
    release(shared);
    other.join();
}
