// The same for C++: exceptions, virtual functions, containers, lambdas.
#include "features.h"
#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>
#include <numeric>

#define KEEP __attribute__((noinline))
using u32 = uint32_t;
static u32 input(u32 value) { u32 x = value; INPUT(x); return x; }

struct Base { virtual ~Base() = default; virtual u32 area(u32 x) const = 0; };
struct Square : Base { u32 area(u32 x) const override { return x * x; } };
struct Twice : virtual Square { u32 area(u32 x) const override { return 2 * Square::area(x); } };
struct Guard { u32 &count; u32 by; ~Guard() { count += by; } };
struct Wrapped { u32 value; explicit Wrapped(u32 v) : value(v) {} Wrapped(const Wrapped &o) : value(o.value + 1) {} };
struct Error : std::runtime_error { u32 code; explicit Error(u32 c) : std::runtime_error("error"), code(c) {} };

KEEP static u32 throws(u32 x, u32 &count) {
  Guard guard{count, x};
  if (x > 10) throw Error(x + 1);
  return x;
}
KEEP static u32 catches(u32 x) {
  u32 count = 1, result = 5;
  try { result = throws(x, count); } catch (const Error &e) { result = e.code; } catch (...) { result = 0; }
  SHOW(count); SHOW(result);
  return result + count;
}
KEEP static Wrapped passes(Wrapped w) { return w; }
template <class T> KEEP static T sum(const std::vector<T> &v) { return std::accumulate(v.begin(), v.end(), T()); }

static thread_local u32 own = 3;
static std::atomic<u32> shared{0};

int main() {
  u32 x = input(20), y = input(4);
  SHOW(catches(x)); SHOW(catches(y));
  std::unique_ptr<Base> shape = std::make_unique<Twice>(); SHOW(shape->area(x));
  Wrapped w = passes(Wrapped(x)); SHOW(w.value);
  std::vector<u32> v; for (u32 i = 0; i < 10; i++) v.push_back(i * y); SHOW(v[9]); SHOW(sum(v));
  std::sort(v.begin(), v.end(), std::greater<u32>()); SHOW(v[0]);
  std::map<u32, u32> map; map[1] = x; map[2] = y; SHOW(map[1] + map[2]);
  auto add = [x](u32 z) { return x + z; }; SHOW(add(1)); std::function<u32(u32)> f = add; SHOW(f(y));
  own += x; SHOW(own); shared.fetch_add(x); SHOW(shared.load());
  std::string s = "abc"; s += char('a' + (y & 7)); SHOW(s[3]); SHOW(s == "abce");
  try { try { throw int(x); } catch (int i) { SHOW(i); throw; } } catch (...) { puts("again"); }
  try { std::vector<int>(3).at(x); } catch (const std::out_of_range &) { puts("range"); }
  u32 total = 0; for (auto &[key, value] : map) total += key * value; SHOW(total);
  bool flags[3] = {x > 3, y > 3, x == y}; SHOW(flags[0]); SHOW(flags[2] || flags[1]);
  auto pair = std::make_pair(x, y); std::swap(pair.first, pair.second); SHOW(pair.first); SHOW(std::max(x, y)); SHOW(std::min(x, y));
  return 0;
}
