// A hazard pointer (Michael, "Hazard pointers: safe memory reclamation for lock-free objects", 2004): the reader
// writes down what it is about to use, and who has replaced an object looks there before it frees the old one.
//
// The reader does not look again whether the object is still current after it has written it down. One preemption is
// enough, between the look and the writing down: the writer replaces the object, finds nothing written down, frees it,
// and ends; the reader uses it. None is not, as the reader runs through otherwise.
//
// heisen: bug=assertion preemptions=1 class=atomicity-violation
#include <atomic>
#include <cassert>
#include <thread>

enum : int { FREED = -1 };

struct Node {
    std::atomic<int> value;
};

// Freed memory is marked rather than given back, so that its use is seen.
static Node nodes[2] = {{{10}}, {{20}}};
static std::atomic<Node *> current{&nodes[0]};
static std::atomic<Node *> hazard{nullptr};

static void free_node(Node *node) {
    node->value = FREED;
}

static Node *protect() {
    Node *node;
    do {
        node = current.load();
        hazard.store(node); // preempt here
    } while (false);
    return node;
}

static void reader() {
    int value = protect()->value.load();
    assert(value != FREED);
    hazard.store(nullptr);
}

static void writer() {
    Node *old = current.exchange(&nodes[1]);
    if (hazard.load() != old) {
        free_node(old);
    }
}

int main() {
    std::thread reads(reader), writes(writer);
    reads.join();
    writes.join();
}
