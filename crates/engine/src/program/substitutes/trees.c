/* The red-black trees of std::map and std::set of libstdc++: Cormen, Leiserson, Rivest and Stein, chapter 13. */

#define WEAK __attribute__((weak, visibility("hidden")))

enum { RED, BLACK };

/* The header of a tree is a red node: its parent is the root, and its children are the first and the last node. */
struct node {
    int colour;
    struct node *parent, *child[2];
};

enum { LEFT, RIGHT };

static int is_header(struct node *node) {
    return node->colour == RED && node->parent && node->parent->parent == node;
}

static struct node *outermost(struct node *node, int side) {
    while (node->child[side])
        node = node->child[side];
    return node;
}

/* The next node on a side. The header comes after the last node, and the last node before the header. */
static struct node *neighbour(struct node *node, int side) {
    if (node->child[side])
        return outermost(node->child[side], !side);
    struct node *parent = node->parent;
    while (node == parent->child[side]) {
        node = parent;
        parent = parent->parent;
    }
    /* The last node may be the root: then the header is its parent and its own grandparent. */
    return node->child[side] == parent ? node : parent;
}

WEAK struct node *_ZSt18_Rb_tree_incrementPSt18_Rb_tree_node_base(struct node *node) {
    return neighbour(node, RIGHT);
}

WEAK struct node *_ZSt18_Rb_tree_incrementPKSt18_Rb_tree_node_base(struct node *node) {
    return neighbour(node, RIGHT);
}

static struct node *previous(struct node *node) {
    return is_header(node) ? node->child[RIGHT] : neighbour(node, LEFT);
}

WEAK struct node *_ZSt18_Rb_tree_decrementPSt18_Rb_tree_node_base(struct node *node) {
    return previous(node);
}

WEAK struct node *_ZSt18_Rb_tree_decrementPKSt18_Rb_tree_node_base(struct node *node) {
    return previous(node);
}

/* Puts a node, or nothing, at the place of another one. */
static void replace(struct node *old, struct node *by, struct node *header) {
    struct node *parent = old->parent;
    if (parent == header)
        header->parent = by;
    else
        parent->child[parent->child[RIGHT] == old] = by;
    if (by)
        by->parent = parent;
}

/* The child on the other side takes the place of the node, which goes down to this side. */
static void rotate(struct node *node, int side, struct node *header) {
    struct node *up = node->child[!side];
    replace(node, up, header);
    node->child[!side] = up->child[side];
    if (up->child[side])
        up->child[side]->parent = node;
    up->child[side] = node;
    node->parent = up;
}

WEAK void _ZSt29_Rb_tree_insert_and_rebalancebPSt18_Rb_tree_node_baseS0_RS_(_Bool left, struct node *node,
                                                                             struct node *parent,
                                                                             struct node *header) {
    node->parent = parent;
    node->child[LEFT] = node->child[RIGHT] = 0;
    node->colour = RED;
    if (parent == header) {
        header->parent = header->child[LEFT] = header->child[RIGHT] = node;
    } else {
        int side = left ? LEFT : RIGHT;
        parent->child[side] = node;
        if (header->child[side] == parent)
            header->child[side] = node;
    }
    while (node != header->parent && node->parent->colour == RED) {
        struct node *up = node->parent, *above = up->parent;
        int side = above->child[RIGHT] == up ? RIGHT : LEFT;
        struct node *uncle = above->child[!side];
        if (uncle && uncle->colour == RED) {
            up->colour = uncle->colour = BLACK;
            above->colour = RED;
            node = above;
            continue;
        }
        if (node == up->child[!side]) {
            rotate(up, side, header);
            node = up;
        }
        node->parent->colour = BLACK;
        above->colour = RED;
        rotate(above, !side, header);
    }
    header->parent->colour = BLACK;
}

/* A black node is missing above this place, which may be empty. */
static void restore(struct node *node, struct node *parent, struct node *header) {
    while (node != header->parent && (!node || node->colour == BLACK)) {
        int side = parent->child[RIGHT] == node ? RIGHT : LEFT;
        struct node *sibling = parent->child[!side];
        if (sibling->colour == RED) {
            sibling->colour = BLACK;
            parent->colour = RED;
            rotate(parent, side, header);
            sibling = parent->child[!side];
        }
        struct node *near = sibling->child[side], *far = sibling->child[!side];
        if ((!near || near->colour == BLACK) && (!far || far->colour == BLACK)) {
            sibling->colour = RED;
            node = parent;
            parent = node->parent;
            continue;
        }
        if (!far || far->colour == BLACK) {
            near->colour = BLACK;
            sibling->colour = RED;
            rotate(sibling, !side, header);
            sibling = near;
            far = sibling->child[!side];
        }
        sibling->colour = parent->colour;
        parent->colour = far->colour = BLACK;
        rotate(parent, side, header);
        break;
    }
    if (node)
        node->colour = BLACK;
}

/* Takes a node out of its tree. Returns it. */
WEAK struct node *_ZSt28_Rb_tree_rebalance_for_erasePSt18_Rb_tree_node_baseRS_(struct node *node,
                                                                               struct node *header) {
    for (int side = LEFT; side <= RIGHT; side++)
        if (header->child[side] == node)
            header->child[side] =
                node->child[!side] ? outermost(node->child[!side], side) : node->parent;
    struct node *moved, *parent;
    int colour = node->colour;
    if (node->child[LEFT] && node->child[RIGHT]) {
        /* The next node has no left child. It takes the place of this one. */
        struct node *next = outermost(node->child[RIGHT], LEFT);
        colour = next->colour;
        moved = next->child[RIGHT];
        parent = next;
        if (next->parent != node) {
            parent = next->parent;
            replace(next, moved, header);
            next->child[RIGHT] = node->child[RIGHT];
            next->child[RIGHT]->parent = next;
        }
        replace(node, next, header);
        next->child[LEFT] = node->child[LEFT];
        next->child[LEFT]->parent = next;
        next->colour = node->colour;
    } else {
        moved = node->child[LEFT] ? node->child[LEFT] : node->child[RIGHT];
        parent = node->parent;
        replace(node, moved, header);
    }
    if (colour == BLACK)
        restore(moved, parent, header);
    return node;
}
