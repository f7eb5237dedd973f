// Threads that are switched at an atomic instruction have x87 registers in use there, or the upper halves of vector registers, or
// none; and one that is switched at calls only has all of x87 to itself in between.
#include <assert.h>
#include <pthread.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int word;
static void *computes(void *unused) {
    long double sum; int one = 1; unsigned int upper[4];
    __asm__ volatile("fldpi\n fldpi\n fldpi\n fldpi\n lock xaddl %1, %2\n faddp\n faddp\n faddp\n fstpt %0"
        : "=m"(sum), "+r"(one), "+m"(word) : : "st", "st(1)", "st(2)", "st(3)", "cc");
    assert(sum > 12.566L && sum < 12.567L);
    if (__builtin_cpu_supports("avx")) {
        __asm__ volatile("vxorps %%ymm3, %%ymm3, %%ymm3\n vcmpps $15, %%ymm3, %%ymm3, %%ymm3\n lock xaddl %1, %2\n"
            "vextractf128 $1, %%ymm3, %%xmm4\n vmovups %%xmm4, %0\n vzeroupper"
            : "=m"(upper), "+r"(one), "+m"(word) : : "xmm3", "xmm4", "cc");
        for (int i = 0; i < 4; i++) assert(upper[i] == 0xffffffff);
    }
    return unused;
}
static void *calls(void *unused) {
    for (int i = 0; i < 2; i++) {
        pthread_mutex_lock(&m); pthread_mutex_unlock(&m);
        unsigned short status;
        __asm__ volatile("fnclex\n fld1\n fld1\n fld1\n fld1\n fld1\n fld1\n fld1\n fld1\n fnstsw %0\n"
            "fstp %%st(0)\n fstp %%st(0)\n fstp %%st(0)\n fstp %%st(0)\n fstp %%st(0)\n fstp %%st(0)\n fstp %%st(0)\n fstp %%st(0)"
            : "=m"(status) : : "st", "st(1)", "st(2)", "st(3)", "st(4)", "st(5)", "st(6)", "st(7)");
        assert((status & 0x41) == 0);
    }
    return unused;
}
static void *uses_none(void *unused) {
    int one = 1; unsigned int upper[4] = {0};
    if (__builtin_cpu_supports("avx")) {
        __asm__ volatile("vzeroupper\n lock xaddl %1, %2\n vextractf128 $1, %%ymm3, %%xmm4\n vmovups %%xmm4, %0\n vzeroupper"
            : "=m"(upper), "+r"(one), "+m"(word) : : "xmm3", "xmm4", "cc");
        for (int i = 0; i < 4; i++) assert(upper[i] == 0);
    }
    return unused;
}
int main(void) {
    pthread_t t[3];
    void *(*all[3])(void *) = {computes, calls, uses_none};
    for (int i = 0; i < 3; i++) pthread_create(&t[i], 0, all[i], 0);
    for (int i = 0; i < 3; i++) pthread_join(t[i], 0);
    return 0;
}
