/* A library with thread-local variables of its own, loaded at run time by loads.c. */
static __thread int counter = 100;
#ifdef STATIC_TLS
/* In the room that the loader keeps for such variables in every thread, also in those that exist already. */
static __thread int fixed __attribute__((tls_model("initial-exec"))) = 7;
static __thread char large[8];
#else
static __thread int fixed = 7;
static __thread char large[100000];
#endif

int plugin_count(void)
{
    large[sizeof large - 1]++;
    return ++counter * 100 + large[sizeof large - 1];
}

int plugin_fixed(int add)
{
    return fixed += add;
}
