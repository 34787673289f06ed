// The emulator's header: what a `.cu` source includes in place of CUDA's when a host compiler builds it for tests.
// Kernels run on the CPU, one block at a time and every CUDA thread a fiber; machine.cpp says what is checked.
#pragma once

#ifdef __CUDACC__
#error "simt.h is for the host compiler"
#endif

#include <cuda_runtime_api.h>
#include <vector_functions.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <tuple>
#include <type_traits>
#include <utility>

// ---- keywords ----
#undef __global__
#undef __device__
#undef __host__
#undef __shared__
#undef __constant__
#undef __launch_bounds__
#undef __forceinline__
#undef __grid_constant__
#undef __noinline__  // libstdc++ writes its attribute with this word
#define __global__
#define __device__
#define __host__
#define __constant__
#define __launch_bounds__(...)
#define __grid_constant__
#define __forceinline__ inline __attribute__((always_inline))
// Blocks run one after the other, so a block's array can be a static one. The mark lets the machine find the arrays of
// the function and fill them with NaN bytes before a block's first thread comes here. `__shared__` begins a
// declaration.
#define __shared__ SIMT_SHARED(__COUNTER__)
#define SIMT_SHARED(number) SIMT_SHARED_NUMBERED(number)  // once more, for __COUNTER__ to become its number
#define SIMT_SHARED_NUMBERED(number) SIMT_SHARED_MARKED(simt_mark_##number)
#define SIMT_SHARED_MARKED(mark)  \
  static ::simt::SharedMark mark; \
  ::simt::enter_shared(mark);     \
  static

namespace simt {

/// What a GPU would hang on, spoil silently or leave undefined. Thrown by `launch`; by the call that waits where
/// streams are lazy.
struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

enum class Order { forward, reverse, random };

struct Options {
  Order order = Order::forward;     ///< of threads between two barriers, and of blocks; env SIMT_ORDER
  uint64_t seed = 1;                ///< of Order::random
  bool lazy_streams = false;        ///< streams run when something waits for them; env SIMT_STREAMS=lazy
  bool ordered_blocks = false;      ///< ThreadSanitizer takes blocks for ordered, also those without shared memory
  size_t stack_bytes = 128 << 10;   ///< of one CUDA thread
  size_t shared_bytes = 227 << 10;  ///< dynamic shared memory that a block may have
  size_t memory_bytes = size_t{8} << 30;  ///< what cudaMalloc gives in all; env SIMT_MEMORY
};
Options& options();

struct Statistics {
  uint64_t launches = 0, switches = 0, barriers = 0, warp_operations = 0;
};
Statistics& statistics();

/// A kernel with its arguments, ready to run any number of times.
struct Kernel {
  const void* function;
  dim3 grid, block;
  size_t shared_bytes;
  std::shared_ptr<void> arguments;
  void (*body)(void* arguments);  ///< what one thread does
};
/// Throws unless a GPU would take grid, block and shared memory.
void check(const Kernel& kernel);
/// Runs all blocks now, outside of any stream.
void run(const Kernel& kernel);
/// Puts the kernel into a stream.
void enqueue(cudaStream_t stream, Kernel kernel);
/// Puts host code that stands for a device operation (a library's) into a stream; it may run several times in a graph.
void enqueue(cudaStream_t stream, std::function<void()> operation);

/// kernel<<<grid, block, shared_bytes, stream>>>(arguments…); arguments convert as in a call and are kept by value.
template <class... Parameters, class... Arguments>
void launch(dim3 grid, dim3 block, size_t shared_bytes, cudaStream_t stream, void (*kernel)(Parameters...),
            Arguments&&... arguments) {
  static_assert((std::is_trivially_copyable_v<Parameters> && ...), "a kernel's parameters are copied as bytes");
  struct Call {
    void (*kernel)(Parameters...);
    std::tuple<Parameters...> parameters;
  };
  auto body = [](void* call) { std::apply(static_cast<Call*>(call)->kernel, static_cast<Call*>(call)->parameters); };
  std::shared_ptr<void> call(new Call{kernel, {std::forward<Arguments>(arguments)...}},
                             [](void* p) { delete static_cast<Call*>(p); });
  enqueue(stream, Kernel{reinterpret_cast<const void*>(kernel), grid, block, shared_bytes, std::move(call), body});
}

/// The block's dynamic shared memory, aligned to 128 bytes; for a kernel to call.
void* dynamic_shared();

// ---- what the functions below ask of the machine ----
struct Location {
  const char* file;
  int line;
  static constexpr Location here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return {file, line};
  }
};
struct SharedArrays;
struct SharedMark {
  SharedArrays* arrays;
};
void enter_shared(SharedMark& mark);

enum class Vote { none, count, all, any };
int sync_block(Vote vote, int predicate, const Location& where);
enum class WarpOp { sync, shfl, shfl_up, shfl_down, shfl_xor, ballot, all, any, match };
struct Value {  ///< what a lane gives and gets
  uint64_t words[2];
};
Value warp_operation(WarpOp op, unsigned mask, const Value& value, int argument, int width, const Location& where);
unsigned active_lanes();
void fence();
[[noreturn]] void trap(const Location& where);

template <class To, class From>
To bits(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  __builtin_memcpy(&to, &from, sizeof(To));
  return to;
}
template <class T>
Value to_value(const T& x) {
  static_assert(sizeof(T) <= sizeof(Value) && std::is_trivially_copyable_v<T>);
  Value value{};
  __builtin_memcpy(&value, &x, sizeof(T));
  return value;
}
template <class T>
T shuffle(WarpOp op, unsigned mask, const T& x, int argument, int width, const Location& where) {
  const Value value = warp_operation(op, mask, to_value(x), argument, width, where);
  T result;
  __builtin_memcpy(static_cast<void*>(&result), &value, sizeof(T));
  return result;
}
inline unsigned vote(WarpOp op, unsigned mask, int predicate, const Location& where) {
  return static_cast<unsigned>(warp_operation(op, mask, {{predicate != 0, 0}}, 0, 32, where).words[0]);
}

/// x ← f(x) without loss among threads; relaxed, so ThreadSanitizer sees no order in it.
template <class T, class F>
T atomic_update(T* x, F f) {
  using Word = std::conditional_t<sizeof(T) == 8, uint64_t, std::conditional_t<sizeof(T) == 4, uint32_t, uint16_t>>;
  static_assert(sizeof(T) == sizeof(Word));
  auto* word = reinterpret_cast<Word*>(x);
  Word old = __atomic_load_n(word, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(word, &old, bits<Word>(static_cast<T>(f(bits<T>(old)))), true, __ATOMIC_RELAXED,
                                      __ATOMIC_RELAXED)) {
  }
  return bits<T>(old);
}
/// Signed numbers wrap on the device.
template <class T>
T wrapping_sum(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) + static_cast<std::make_unsigned_t<T>>(b));
  } else {
    return static_cast<T>(a + b);
  }
}

}  // namespace simt

// ---- built-in variables, barriers, warps ----
inline uint3 threadIdx{}, blockIdx{};
inline dim3 blockDim{}, gridDim{};
inline constexpr int warpSize = 32;

#define SIMT_HERE const ::simt::Location& where = ::simt::Location::here()
inline void __syncthreads(SIMT_HERE) { simt::sync_block(simt::Vote::none, 0, where); }
inline int __syncthreads_count(int p, SIMT_HERE) { return simt::sync_block(simt::Vote::count, p, where); }
inline int __syncthreads_and(int p, SIMT_HERE) { return simt::sync_block(simt::Vote::all, p, where); }
inline int __syncthreads_or(int p, SIMT_HERE) { return simt::sync_block(simt::Vote::any, p, where); }
inline void __syncwarp(unsigned mask = ~0u, SIMT_HERE) {
  simt::warp_operation(simt::WarpOp::sync, mask, {}, 0, 32, where);
}
template <class T>
T __shfl_sync(unsigned mask, T x, int lane, int width = 32, SIMT_HERE) {
  return simt::shuffle(simt::WarpOp::shfl, mask, x, lane, width, where);
}
template <class T>
T __shfl_up_sync(unsigned mask, T x, unsigned delta, int width = 32, SIMT_HERE) {
  return simt::shuffle(simt::WarpOp::shfl_up, mask, x, static_cast<int>(delta), width, where);
}
template <class T>
T __shfl_down_sync(unsigned mask, T x, unsigned delta, int width = 32, SIMT_HERE) {
  return simt::shuffle(simt::WarpOp::shfl_down, mask, x, static_cast<int>(delta), width, where);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T x, int lane_mask, int width = 32, SIMT_HERE) {
  return simt::shuffle(simt::WarpOp::shfl_xor, mask, x, lane_mask, width, where);
}
inline unsigned __ballot_sync(unsigned mask, int p, SIMT_HERE) {
  return simt::vote(simt::WarpOp::ballot, mask, p, where);
}
inline int __all_sync(unsigned mask, int p, SIMT_HERE) {
  return static_cast<int>(simt::vote(simt::WarpOp::all, mask, p, where));
}
inline int __any_sync(unsigned mask, int p, SIMT_HERE) {
  return static_cast<int>(simt::vote(simt::WarpOp::any, mask, p, where));
}
template <class T>
unsigned __match_any_sync(unsigned mask, T x, SIMT_HERE) {
  return static_cast<unsigned>(
      simt::warp_operation(simt::WarpOp::match, mask, simt::to_value(x), 0, 32, where).words[0]);
}
inline unsigned __activemask() { return simt::active_lanes(); }
inline void __threadfence() { simt::fence(); }
inline void __threadfence_system() { simt::fence(); }
inline void __threadfence_block() {}
[[noreturn]] inline void __trap(SIMT_HERE) { simt::trap(where); }
#undef SIMT_HERE

// ---- atomics ----
template <class T>
using simt_same = std::type_identity_t<T>;
// clang-format off
template <class T> T atomicAdd(T* x, simt_same<T> v) { return simt::atomic_update(x, [&](T old) { return simt::wrapping_sum(old, v); }); }
template <class T> T atomicSub(T* x, simt_same<T> v) { return simt::atomic_update(x, [&](T old) { return simt::wrapping_sum(old, static_cast<T>(-v)); }); }
template <class T> T atomicMax(T* x, simt_same<T> v) { return simt::atomic_update(x, [&](T old) { return old < v ? v : old; }); }
template <class T> T atomicMin(T* x, simt_same<T> v) { return simt::atomic_update(x, [&](T old) { return v < old ? v : old; }); }
template <class T> T atomicAnd(T* x, simt_same<T> v) { return simt::atomic_update(x, [&](T old) { return old & v; }); }
template <class T> T atomicOr(T* x, simt_same<T> v) { return simt::atomic_update(x, [&](T old) { return old | v; }); }
template <class T> T atomicXor(T* x, simt_same<T> v) { return simt::atomic_update(x, [&](T old) { return old ^ v; }); }
template <class T> T atomicExch(T* x, simt_same<T> v) { return simt::atomic_update(x, [&](T) { return v; }); }
template <class T> T atomicCAS(T* x, simt_same<T> expected, simt_same<T> v) { return simt::atomic_update(x, [&](T old) { return old == expected ? v : old; }); }
inline unsigned atomicInc(unsigned* x, unsigned last) { return simt::atomic_update(x, [&](unsigned old) { return old >= last ? 0 : old + 1; }); }
inline unsigned atomicDec(unsigned* x, unsigned last) { return simt::atomic_update(x, [&](unsigned old) { return old == 0 || old > last ? last : old - 1; }); }

// ---- loads and stores with a hint, bits, numbers ----
template <class T> T __ldg(const T* p) { return *p; }
template <class T> T __ldcs(const T* p) { return *p; }
template <class T> T __ldcg(const T* p) { return *p; }
template <class T> void __stcs(T* p, simt_same<T> x) { *p = x; }
template <class T> void __stcg(T* p, simt_same<T> x) { *p = x; }
inline float __int_as_float(int x) { return simt::bits<float>(x); }
inline int __float_as_int(float x) { return simt::bits<int>(x); }
inline float __uint_as_float(unsigned x) { return simt::bits<float>(x); }
inline unsigned __float_as_uint(float x) { return simt::bits<unsigned>(x); }
inline double __longlong_as_double(long long x) { return simt::bits<double>(x); }
inline long long __double_as_longlong(double x) { return simt::bits<long long>(x); }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x ? __builtin_clz(static_cast<unsigned>(x)) : 32; }
inline int __clzll(long long x) { return x ? __builtin_clzll(static_cast<unsigned long long>(x)) : 64; }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline unsigned __brev(unsigned x) {
  unsigned reversed = 0;
  for (int i = 0; i < 32; ++i) reversed |= (x >> i & 1u) << (31 - i);
  return reversed;
}
inline unsigned __umulhi(unsigned a, unsigned b) { return static_cast<unsigned>(static_cast<uint64_t>(a) * b >> 32); }
inline int __mulhi(int a, int b) { return static_cast<int>(static_cast<int64_t>(a) * b >> 32); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<unsigned long long>(static_cast<Wide>(a) * b >> 64);
}
inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
inline double rsqrt(double x) { return 1.0 / std::sqrt(x); }
inline float __fdividef(float a, float b) { return a / b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __frcp_rn(float x) { return 1.0f / x; }
inline float __fsqrt_rn(float x) { return std::sqrt(x); }
inline float __frsqrt_rn(float x) { return 1.0f / std::sqrt(x); }
inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
inline double __fma_rn(double a, double b, double c) { return std::fma(a, b, c); }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline float __saturatef(float x) { return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f; }
inline int __float2int_rn(float x) { return static_cast<int>(std::nearbyint(x)); }
inline int __float2int_rz(float x) { return static_cast<int>(x); }
inline int __float2int_rd(float x) { return static_cast<int>(std::floor(x)); }
inline int __double2int_rn(double x) { return static_cast<int>(std::nearbyint(x)); }
inline float __int2float_rn(int x) { return static_cast<float>(x); }
inline float __uint2float_rn(unsigned x) { return static_cast<float>(x); }
inline float __double2float_rn(double x) { return static_cast<float>(x); }
template <class A, class B> requires(std::is_arithmetic_v<A> && std::is_arithmetic_v<B>)
constexpr auto min(A a, B b) { using C = std::common_type_t<A, B>; return static_cast<C>(b) < static_cast<C>(a) ? static_cast<C>(b) : static_cast<C>(a); }
template <class A, class B> requires(std::is_arithmetic_v<A> && std::is_arithmetic_v<B>)
constexpr auto max(A a, B b) { using C = std::common_type_t<A, B>; return static_cast<C>(a) < static_cast<C>(b) ? static_cast<C>(b) : static_cast<C>(a); }
// clang-format on
// glibc declares these names itself.
#define __expf(x) ::std::exp(static_cast<float>(x))
#define __exp10f(x) ::std::pow(10.0f, static_cast<float>(x))
#define __logf(x) ::std::log(static_cast<float>(x))
#define __log2f(x) ::std::log2(static_cast<float>(x))
#define __log10f(x) ::std::log10(static_cast<float>(x))
#define __sinf(x) ::std::sin(static_cast<float>(x))
#define __cosf(x) ::std::cos(static_cast<float>(x))
#define __tanf(x) ::std::tan(static_cast<float>(x))
#define __powf(x, y) ::std::pow(static_cast<float>(x), static_cast<float>(y))
