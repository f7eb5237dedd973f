/* The links of std::list of libstdc++. */

#define WEAK __attribute__((weak, visibility("hidden")))

struct node {
    struct node *next, *previous;
};

static void link(struct node *first, struct node *second) {
    first->next = second;
    second->previous = first;
}

WEAK void _ZNSt8__detail15_List_node_base7_M_hookEPS0_(struct node *node, struct node *before) {
    link(before->previous, node);
    link(node, before);
}

WEAK void _ZNSt8__detail15_List_node_base9_M_unhookEv(struct node *node) {
    link(node->previous, node->next);
}

/* Moves the nodes from first up to, and without, last to before a node. */
WEAK void _ZNSt8__detail15_List_node_base11_M_transferEPS0_S1_(struct node *before, struct node *first,
                                                               struct node *last) {
    if (before == last || first == last)
        return;
    struct node *end = last->previous;
    link(first->previous, last);
    link(before->previous, first);
    link(end, before);
}

WEAK void _ZNSt8__detail15_List_node_base10_M_reverseEv(struct node *head) {
    struct node *node = head;
    do {
        struct node *next = node->next;
        node->next = node->previous;
        node->previous = next;
        node = next;
    } while (node != head);
}

/* The content of a head that is now at another place. */
static void adopt(struct node *head, struct node old, struct node *old_head) {
    if (old.next == old_head) {
        link(head, head);
    } else {
        link(head, old.next);
        link(old.previous, head);
    }
}

WEAK void _ZNSt8__detail15_List_node_base4swapERS0_S1_(struct node *a, struct node *b) {
    struct node old_a = *a, old_b = *b;
    adopt(a, old_b, b);
    adopt(b, old_a, a);
}
