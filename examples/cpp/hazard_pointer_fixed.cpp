// The reader of hazard_pointer.cpp, put right: what it has written down is used only if it is still current then.
//
// heisen: clean
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
        hazard.store(node);
    } while (current.load() != node);
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
