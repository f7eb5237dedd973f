// C that a symbolic build has to carry expressions through. Each line that it shows is one with an expression.
#include "features.h"
#include <ctype.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>

typedef uint8_t u8; typedef uint16_t u16; typedef uint32_t u32; typedef uint64_t u64;
typedef int8_t i8; typedef int16_t i16; typedef int32_t i32; typedef int64_t i64;
#define KEEP __attribute__((noinline))

struct bits { unsigned a : 3, b : 7; int c : 11; unsigned long d : 40; };
struct pair { long a; int b; };
struct small { short a, b; };
struct large { long a[6]; char tail; };
struct mixed { double d; int i; };
union pun { u32 word; u8 bytes[4]; float real; };

static u32 input(u32 value) { u32 x = value; INPUT(x); return x; }
static u64 input64(u64 value) { u64 x = value; INPUT(x); return x; }

KEEP static void arithmetic(void) {
  u32 x = input(0xdeadbeef), y = input(77);
  i32 s = (i32)x, t = (i32)y;
  u64 w = input64(0x123456789abcdef0), v = input64(1000003);
  SHOW(x + y); SHOW(x - y); SHOW(x * y); SHOW(x / y); SHOW(x % y); SHOW((u32)(s / t)); SHOW((u32)(s % t));
  SHOW(x << (y & 31)); SHOW(x >> 5); SHOW((u32)(s >> 5)); SHOW(x & y); SHOW(x | y); SHOW(x ^ y); SHOW(~x); SHOW((u32)-s);
  SHOW(w + v); SHOW(w * v); SHOW(w / v); SHOW(w % v); SHOW((u64)((i64)w / (i64)v)); SHOW(w >> (v & 63));
  SHOW((u8)x); SHOW((u16)(x >> 3)); SHOW((u64)(i64)s); SHOW((u64)(i8)x); SHOW((u8)(x * y)); SHOW((u16)((u16)x * (u16)y));
  SHOW(x < y); SHOW(x <= y); SHOW(x > y); SHOW(x >= y); SHOW(x == y); SHOW(x != y); SHOW(s < t); SHOW(s <= t); SHOW(s > t); SHOW(s >= t);
  SHOW(x && y); SHOW(!x); SHOW(x ? x + 1 : y);
  SHOW(x < y ? x : y); SHOW(x > y ? x : y); SHOW((u32)(s < t ? s : t)); SHOW((u32)(s > t ? s : t)); SHOW((u32)abs(s));
}

KEEP static void intrinsics(void) {
  u32 x = input(0x00f0c201), y = input(0xfffffff0); u64 w = input64(0x0123456789abcdef);
  SHOW(__builtin_popcount(x)); SHOW(__builtin_ctz(x)); SHOW(__builtin_clz(x)); SHOW(__builtin_popcountll(w));
  SHOW(__builtin_bswap32(x)); SHOW(__builtin_bswap16((u16)x)); SHOW(__builtin_bswap64(w)); SHOW(__builtin_bitreverse32(x));
  SHOW(__builtin_bitreverse8((u8)x)); SHOW(x << 7 | x >> 25); SHOW(w << 13 | w >> 51); SHOW(__builtin_rotateleft32(x, y & 31));
  SHOW(__builtin_rotateright64(w, x & 63)); SHOW((u8)((u8)x << 3 | (u8)x >> 5)); SHOW(__builtin_ffs((int)x)); SHOW(__builtin_parity(x));
  u32 r; i32 q; u64 z;
  SHOW(__builtin_add_overflow(x, y, &r)); SHOW(r); SHOW(__builtin_sub_overflow(x, y, &r)); SHOW(r); SHOW(__builtin_mul_overflow(x, y, &r)); SHOW(r);
  SHOW(__builtin_add_overflow((i32)x, (i32)y, &q)); SHOW((u32)q); SHOW(__builtin_mul_overflow((i32)x, (i32)y, &q)); SHOW(__builtin_mul_overflow(w, w, &z)); SHOW(z);
  SHOW(x + y < x ? ~0u : x + y); SHOW(x > y ? x - y : 0); SHOW(y > x ? y - x : 0);
  i64 wide_sum = (i64)(i32)x + (i32)y; SHOW((u32)(wide_sum > INT32_MAX ? INT32_MAX : wide_sum < INT32_MIN ? INT32_MIN : wide_sum));
  SHOW(__builtin_elementwise_max(x, y)); SHOW((u32)__builtin_elementwise_abs((i32)y)); SHOW(__builtin_expect(x == y, 0));
}

KEEP static u64 many(u8 a, u16 b, u32 c, u64 d, i8 e, i16 f, i32 g, i64 h, _Bool i, u32 *j) {
  return a + 3u * b + 5u * c + 7 * d + 11u * e + 13u * f + 17u * g + 19u * h + i + *j;
}
KEEP static struct pair make_pair(long a, int b) { struct pair p = {a + 1, b * 2}; return p; }
KEEP static struct small make_small(short a) { struct small s = {a, (short)(a + 1)}; return s; }
KEEP static struct large make_large(long a) { struct large l; for (int i = 0; i < 6; i++) l.a[i] = a + i; l.tail = (char)a; return l; }
KEEP static struct mixed make_mixed(int i, double d) { struct mixed m = {d, i}; return m; }
KEEP static long take_pair(struct pair p) { return p.a - p.b; }
KEEP static long take_small(struct small s) { return s.a * 100 + s.b; }
KEEP static long take_large(struct large l) { l.a[2] += l.tail; return l.a[0] + l.a[2] + l.a[5]; }
KEEP static long take_mixed(struct mixed m) { return m.i * 3; }
KEEP static u32 recurse(u32 n, u32 acc) { return n == 0 ? acc : recurse(n - 1, acc * 31 + n); }
KEEP static u32 twice(u32 x) { return 2 * x; }
KEEP static u32 square(u32 x) { return x * x; }
static u32 (*const table[2])(u32) = {twice, square};
static u32 (*volatile chosen)(u32) = square;

KEEP static void calls(void) {
  u32 x = input(12345), y = input(2);
  SHOW(many((u8)x, (u16)x, x, x, (i8)x, (i16)x, (i32)x, x, x & 1, &y));
  struct pair p = make_pair(x, (int)y); SHOW(p.a); SHOW(p.b); SHOW(take_pair(p));
  struct small s = make_small((short)x); SHOW(s.a); SHOW(s.b); SHOW(take_small(s));
  struct large l = make_large(x); SHOW(l.a[3]); SHOW(l.tail); SHOW(take_large(l)); SHOW(l.a[2]);
  struct mixed m = make_mixed((int)x, 1.5); SHOW(m.i); SHOW(take_mixed(m));
  SHOW(recurse(10, x)); SHOW(chosen(x)); SHOW(table[y & 1](x)); SHOW(table[1](x));
}

KEEP static void memory(void) {
  u64 w = input64(0x1122334455667788); u8 buffer[64] = {0}; u32 words[8];
  memcpy(buffer + 3, &w, 8); u64 back; memcpy(&back, buffer + 3, 8); SHOW(back);
  memmove(buffer + 5, buffer + 3, 8); u32 part; memcpy(&part, buffer + 7, 4); SHOW(part);
  SHOW(buffer[9]); SHOW(buffer[5] + buffer[6]);
  for (int i = 0; i < 8; i++) words[i] = (u32)w + (u32)i;
  SHOW(words[7]); words[2] = 5; SHOW(words[3]);
  memset(buffer, (int)(w & 0xff), 16); SHOW(buffer[15]); SHOW(*(volatile u16 *)(buffer + 2));
  union pun u; u.word = (u32)w; SHOW(u.bytes[2]); u.bytes[1] = 1; SHOW(u.word); float f = u.real; u32 again; memcpy(&again, &f, 4); SHOW(again);
  struct bits b = {1, 2, 3, 4}; b.b = (unsigned)w; b.c = (int)w; b.d = w; SHOW(b.b); SHOW((u32)b.c); SHOW(b.d);
  u32 *heap = malloc(40); heap[3] = (u32)w; u32 *moved = heap + (w & 1); SHOW(moved[3]); free(heap);
  static u32 global[4]; global[w & 3] = (u32)w; SHOW(global[w & 3]);
  double d; memcpy(&d, &w, 8); double e = d; memcpy(&back, &e, 8); SHOW(back);
}

static __thread u32 local_word;
static _Atomic u32 atom; static atomic_uchar small_atom; static _Atomic u64 wide_atom;
KEEP static void atomics(void) {
  u32 x = input(99);
  local_word = x; SHOW(local_word + 1);
  atomic_store(&atom, x); SHOW(atomic_load(&atom)); SHOW(atomic_fetch_add(&atom, 5)); SHOW(atomic_load(&atom));
  SHOW(atomic_exchange(&atom, 7)); atomic_fetch_xor(&atom, x); SHOW(atomic_load(&atom)); atomic_fetch_sub(&atom, 1); atomic_fetch_or(&atom, 16); SHOW(atomic_fetch_and(&atom, 0xffff));
  u32 expected = atomic_load(&atom); SHOW(atomic_compare_exchange_strong(&atom, &expected, x + 3)); SHOW(atomic_load(&atom));
  expected = 1; _Bool ok = atomic_compare_exchange_strong(&atom, &expected, 4); SHOW(ok); SHOW(expected);
  atomic_store(&small_atom, (unsigned char)x); SHOW(atomic_fetch_add(&small_atom, 200)); SHOW(atomic_load(&small_atom));
  atomic_store(&wide_atom, (u64)x << 40); SHOW(atomic_load_explicit(&wide_atom, memory_order_acquire));
}

KEEP static void flow(void) {
  u32 x = input(6), sum = 0, a = 1, b = input(2);
  for (u32 i = 0; i < x; i++) sum += i * x; SHOW(sum);
  for (int i = 0; i < 5; i++) { u32 t = a; a = b; b = t + b; } SHOW(a); SHOW(b);
  u32 n = x; do { if (n & 1) sum ^= n; else { sum += 3; if (sum > 100) break; } } while (--n); SHOW(sum);
  switch (x) { case 1: sum = x; break; case 6: sum += x * 2; // falls through
  case 7: sum++; break; default: sum = 0; } SHOW(sum);
  void *labels[] = {&&first, &&second, &&end}; u32 i = 0; u32 acc = x;
  goto *labels[i]; first: acc += 1; i = 1; goto *labels[i]; second: acc *= 3; i = acc > 20 ? 2 : 0; goto *labels[i]; end: SHOW(acc);
  char text[] = "hello"; text[1] = (char)('a' + x); u32 hash = 5381; for (char *p = text; *p; p++) hash = hash * 33 + (u8)*p; SHOW(hash);
  SHOW((x > 3 && sum < 1000) || hash == 0);
}

static jmp_buf target;
KEEP static void jumps(u32 x) { longjmp(target, x > 2 ? 1 : 2); }
KEEP static u32 va(int n, ...) { va_list list; va_start(list, n); u32 sum = 0; for (int i = 0; i < n; i++) sum += va_arg(list, u32); va_end(list); return sum; }
static int order(const void *a, const void *b) { u32 x = *(const u32 *)a, y = *(const u32 *)b; return x < y ? -1 : x > y; }
KEEP static void *thread(void *p) { *(u32 *)p *= 2; return p; }
typedef int v4 __attribute__((vector_size(16)));

KEEP static void others(void) {
  u32 x = input(41); volatile u32 kept = x;
  if (setjmp(target) == 0) jumps(x); else kept++; SHOW(kept);
  printf("%u\n", va(3, x, 2u, 3u));
  u32 list[] = {5, x, 1, 99, 3}; qsort(list, 5, sizeof *list, order); printf("%u %u\n", list[0], list[4]);
  unsigned __int128 wide = (unsigned __int128)x << 64 | (x + 1); SHOW((u64)wide); SHOW((u64)(wide >> 64)); wide = wide * 3 + 1; printf("%llx\n", (unsigned long long)(wide >> 64));
  double d = x * 0.5; printf("%g\n", d + (float)x); long double ld = x; printf("%Lg\n", ld * 2);
  v4 v = {1, 2, 3, 4}; v[1] = (int)x; v = v * v + 1; printf("%d %d\n", v[1], v[3]);
  u32 out; __asm__("lea 1(%1), %0" : "=r"(out) : "r"(x)); printf("%u\n", out);
  char text[32]; snprintf(text, sizeof text, "%u %s", x, x > 3 ? "big" : "small"); puts(text); printf("%zu\n", strlen(text));
  pthread_t t; u32 shared = x; pthread_create(&t, NULL, thread, &shared); pthread_join(t, NULL); printf("%u\n", shared);
  u32 length = x & 7; char vla[length + 1]; memset(vla, 'a', length); vla[length] = 0; puts(vla);
  printf("%d %d\n", isdigit((int)x), toupper('a'));
}

int main(void) {
  arithmetic(); intrinsics(); calls(); memory(); atomics(); flow(); others();
  return 0;
}
