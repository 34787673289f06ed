// Optimizer steps, norm and scaling over lists of tensors: one launch for many tensors. Blocks take pieces of a fixed
// size, and tables in the kernels' arguments say whose; so nothing depends on the device, and sums have a fixed order.
#include "tensor/cuda/block.cuh"
#include "tensor/optim_updates.h"
#include "tensor/step_values.h"

namespace weft::WEFT_GPU {
namespace {

/// Elements of a tensor that one block takes.
constexpr int64_t kPiece = 8192;
/// What the tables leave of the 4096 bytes that a kernel's arguments may have.
constexpr size_t kArgumentBytes = 3584;

/// Entry k of each of N lists, for as many k as fit, and the block that each begins with.
template <int N>
struct ListTable {
  static constexpr int kMost = static_cast<int>(kArgumentBytes / (sizeof(void*) * N + sizeof(int64_t) + sizeof(int)));
  void* data[N][kMost];
  int64_t numel[kMost];
  int first_block[kMost];
  int count = 0;
  int blocks = 0;
};

/// Which piece of which tensor this block takes.
struct Piece {
  int tensor;
  int64_t begin, length;
};

template <int N>
__device__ Piece piece_of_block(const ListTable<N>& table) {
  const int block = static_cast<int>(blockIdx.x);
  int low = 0, high = table.count;  // the last that begins at or before this block
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    if (table.first_block[middle] <= block)
      low = middle;
    else
      high = middle;
  }
  const int64_t begin = (block - table.first_block[low]) * kPiece;
  const int64_t rest = table.numel[low] - begin;
  return {low, begin, rest < kPiece ? rest : kPiece};
}

/// body(table) for tables that together hold all tensors of the lists; tensors without elements are left out.
template <int N, class Body>
void in_tables(const std::array<std::span<const Tensor>, N>& lists, const Body& body) {
  constexpr int64_t kMostPieces = int64_t{1} << 20;  // in one launch
  ListTable<N> table;
  const auto flush = [&] {
    if (table.count > 0) body(table);
    table.count = table.blocks = 0;
  };
  for (size_t k = 0; k < lists[0].size(); ++k) {
    const int64_t numel = lists[0][k].numel();
    for (int64_t begin = 0; begin < numel; begin += kMostPieces * kPiece) {
      const int64_t length = std::min(numel - begin, kMostPieces * kPiece);
      for (size_t l = 0; l < N; ++l)
        table.data[l][table.count] = static_cast<char*>(lists[l][k].raw_data()) + begin * size_of(lists[l][k].dtype());
      table.numel[table.count] = length;
      table.first_block[table.count++] = table.blocks;
      table.blocks += static_cast<int>(ceil_div(length, kPiece));
      if (table.count == ListTable<N>::kMost || table.blocks >= kMostPieces) flush();
    }
  }
  flush();
}

struct NoCopy {};

/// V elements of one parameter.
template <int V, class T, class F, class Copy, class... S>
__device__ __forceinline__ void update_packs(const F& f, T* p, const T* g, [[maybe_unused]] Copy* copy, S*... state) {
  Pack<T, V> ps = *reinterpret_cast<const Pack<T, V>*>(p);
  const Pack<T, V> gs = *reinterpret_cast<const Pack<T, V>*>(g);
  std::tuple<Pack<S, V>...> states{*reinterpret_cast<const Pack<S, V>*>(state)...};
  [[maybe_unused]] Pack<Copy, V> copies;
  std::apply(
      [&](Pack<S, V>&... s) {
        WEFT_UNROLL
        for (int k = 0; k < V; ++k) {
          const compute_t<T> value =
              f(static_cast<compute_t<T>>(ps.v[k]), static_cast<compute_t<T>>(gs.v[k]), s.v[k]...);
          ps.v[k] = static_cast<T>(value);
          if constexpr (!std::is_same_v<Copy, NoCopy>) copies.v[k] = static_cast<Copy>(value);
        }
        ((*reinterpret_cast<Pack<S, V>*>(state) = s), ...);
      },
      states);
  *reinterpret_cast<Pack<T, V>*>(p) = ps;
  if constexpr (!std::is_same_v<Copy, NoCopy>) *reinterpret_cast<Pack<Copy, V>*>(copy) = copies;
}

template <class T, class F, class Copy, class... S>
__device__ void update_piece(const F& f, int64_t length, T* p, const T* g, Copy* copy, S*... state) {
  constexpr int V = sizeof(T) == 8 ? 2 : 4;  // 128 bits of f32 and of its state
  constexpr bool copied = !std::is_same_v<Copy, NoCopy>;
  const int n = static_cast<int>(length);
  int i = static_cast<int>(threadIdx.x), done = 0;
  bool packed = packs_fit<V>(p, g, state...);
  if constexpr (copied) packed = packed && packs_fit<V>(copy);
  if (packed) {
    done = n / V * V;
    for (int at = i * V; at < done; at += kBlock * V)
      update_packs<V>(f, p + at, g + at, copied ? copy + at : nullptr, state + at...);
  }
  for (i += done; i < n; i += kBlock) update_packs<1>(f, p + i, g + i, copied ? copy + i : nullptr, state + i...);
}

/// The factor of clip_factor, for all threads.
template <class C>
__device__ C clip_of_block(const double* squared_norm, double max_norm) {
  __shared__ C factor;
  if (threadIdx.x == 0) factor = static_cast<C>(updates::clip_factor(*squared_norm, max_norm));
  __syncthreads();
  return factor;
}

/// Lists: parameters, gradients, states, and copies last where there are any.
template <class T, class Copy, int states, class F>
__global__ void __launch_bounds__(kBlock, kResident)
    update_kernel(const __grid_constant__ ListTable<2 + states + !std::is_same_v<Copy, NoCopy>> table,
                  const __grid_constant__ StepValue<F> functor, const double* squared_norm, double max_norm) {
  F f = functor.get();
  if constexpr (requires { f.clip; })
    if (squared_norm) f.clip = clip_of_block<compute_t<T>>(squared_norm, max_norm);
  const Piece piece = piece_of_block(table);
  const auto list = [&]<class E>(int l, E*) { return static_cast<E*>(table.data[l][piece.tensor]) + piece.begin; };
  Copy* copy = nullptr;
  if constexpr (!std::is_same_v<Copy, NoCopy>) copy = list(2 + states, static_cast<Copy*>(nullptr));
  [&]<size_t... S>(std::index_sequence<S...>) {
    update_piece(f, piece.length, list(0, static_cast<T*>(nullptr)),
                 static_cast<const T*>(list(1, static_cast<T*>(nullptr))), copy,
                 list(2 + static_cast<int>(S), static_cast<compute_t<T>*>(nullptr))...);
  }
  (std::make_index_sequence<states>{});
}

template <class T, class Copy, class F, class... Lists>
void launch_updates(const F& f, const double* squared_norm, double max_norm, const Lists&... lists) {
  constexpr int N = sizeof...(lists);
  constexpr int states = N - 2 - !std::is_same_v<Copy, NoCopy>;
  const StepValue<F> functor = step_value(f);
  in_tables<N>({lists...}, [&](const ListTable<N>& table) {
    launch(static_cast<unsigned>(table.blocks), kBlock, 0, update_kernel<T, Copy, states, F>, table, functor,
           squared_norm, max_norm);
  });
}

template <class T, class F, class... Lists>
void update(const F& f, std::span<const Tensor> params, std::span<const Tensor> grads, const updates::Extras& extras,
            const Lists&... states) {
  WEFT_ASSERT(grads.size() == params.size() && ((states.size() == params.size()) && ...));
  const double* const norm = extras.squared_norm.defined() ? extras.squared_norm.template data<double>() : nullptr;
  if constexpr (std::is_same_v<T, float> && requires { f.clip; }) {
    if (!extras.copies.empty()) {
      WEFT_ASSERT(extras.copies.size() == params.size());
      if (extras.copies.front().dtype() == bf16)
        launch_updates<T, BFloat16>(f, norm, extras.max_norm, params, grads, states..., extras.copies);
      else
        launch_updates<T, Float16>(f, norm, extras.max_norm, params, grads, states..., extras.copies);
      return;
    }
  }
  WEFT_ASSERT(extras.copies.empty());
  launch_updates<T, NoCopy>(f, norm, extras.max_norm, params, grads, states...);
}

/// One partial sum of squares a block, in double: squares of f32 can pass its range.
template <class T>
__global__ void __launch_bounds__(kBlock) squares_kernel(const __grid_constant__ ListTable<1> table, double* partial) {
  constexpr int V = static_cast<int>(16 / sizeof(T));
  const Piece piece = piece_of_block(table);
  const T* const x = static_cast<const T*>(table.data[0][piece.tensor]) + piece.begin;
  const int n = static_cast<int>(piece.length);
  double sum = 0;
  int done = 0;
  if (packs_fit<V>(x)) {
    done = n / V * V;
    for (int i = static_cast<int>(threadIdx.x) * V; i < done; i += kBlock * V) {
      const Pack<T, V> pack = *reinterpret_cast<const Pack<T, V>*>(x + i);
      WEFT_UNROLL
      for (int k = 0; k < V; ++k) {
        const double v = static_cast<compute_t<T>>(pack.v[k]);
        sum += v * v;
      }
    }
  }
  for (int i = done + static_cast<int>(threadIdx.x); i < n; i += kBlock) {
    const double v = static_cast<compute_t<T>>(x[i]);
    sum += v * v;
  }
  sum = block_sum(sum);
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

/// x *= factor, or by the clip factor where there is a squared norm; nothing is touched where that is 1.
template <class T>
__global__ void __launch_bounds__(kBlock) scale_kernel(const __grid_constant__ ListTable<1> table, double factor,
                                                       const double* squared_norm, double max_norm) {
  constexpr int V = static_cast<int>(16 / sizeof(T));
  using C = compute_t<T>;
  auto f = static_cast<C>(factor);
  if (squared_norm) {
    f = clip_of_block<C>(squared_norm, max_norm);
    if (f == C(1)) return;
  }
  const Piece piece = piece_of_block(table);
  T* const x = static_cast<T*>(table.data[0][piece.tensor]) + piece.begin;
  const int n = static_cast<int>(piece.length);
  int done = 0;
  if (packs_fit<V>(x)) {
    done = n / V * V;
    for (int i = static_cast<int>(threadIdx.x) * V; i < done; i += kBlock * V) {
      Pack<T, V> pack = *reinterpret_cast<const Pack<T, V>*>(x + i);
      WEFT_UNROLL
      for (int k = 0; k < V; ++k) pack.v[k] = static_cast<T>(static_cast<C>(pack.v[k]) * f);
      *reinterpret_cast<Pack<T, V>*>(x + i) = pack;
    }
  }
  for (int i = done + static_cast<int>(threadIdx.x); i < n; i += kBlock)
    x[i] = static_cast<T>(static_cast<C>(x[i]) * f);
}

/// body.operator()<T>(the tensors of this dtype) for each floating dtype of the list.
template <class Body>
void by_dtype(const char* op, std::span<const Tensor> list, const Body& body) {
  for (const DType dtype : {f32, bf16, f16, f64}) {
    std::vector<Tensor> some;
    for (const Tensor& x : list)
      if (x.dtype() == dtype) some.push_back(x);
    if (some.empty()) continue;
    dispatch_floating(op, dtype, [&]<class T>() { body.template operator()<T>(std::span<const Tensor>(some)); });
  }
}

void scale_by(std::span<const Tensor> list, double factor, const double* squared_norm, double max_norm) {
  by_dtype("scale", list, [&]<class T>(std::span<const Tensor> some) {
    in_tables<1>({some}, [&](const ListTable<1>& table) {
      launch(static_cast<unsigned>(table.blocks), kBlock, 0, scale_kernel<T>, table, factor, squared_norm, max_norm);
    });
  });
}

}  // namespace

#include "tensor/optim_steps.def"

void squared_norm(std::span<const Tensor> list, Tensor& out) {
  int64_t pieces = 0;
  for (const Tensor& x : list) pieces += ceil_div(x.numel(), kPiece);
  Tensor partial = empty({pieces}, {f64, out.device()});
  double* next = partial.data<double>();
  by_dtype("squared_norm", list, [&]<class T>(std::span<const Tensor> some) {
    in_tables<1>({some}, [&](const ListTable<1>& table) {
      launch(static_cast<unsigned>(table.blocks), kBlock, 0, squares_kernel<T>, table, next);
      next += table.blocks;
    });
  });
  launch(1, kBlock, 0, sum_kernel<double>, static_cast<const double*>(partial.data<double>()), pieces,
         out.data<double>());
}

void scale(std::span<const Tensor> list, double factor) { scale_by(list, factor, nullptr, 0); }

void clip_scale(std::span<const Tensor> list, const Tensor& squared_norm, double max_norm) {
  scale_by(list, 1, squared_norm.data<double>(), max_norm);
}

}  // namespace weft::WEFT_GPU
