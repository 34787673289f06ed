// Copies between dtypes and layouts, and constant fills.
#include <cstring>

#include "tensor/cpu/loop.h"
#include "tensor/kernels.h"

namespace weft::cpu_kernels {
namespace {

/// Same layout and dtype: bytes.
void copy_bytes(const Tensor& x, Tensor& out) {
  const auto* from = static_cast<const char*>(x.raw_data());
  auto* to = static_cast<char*>(out.raw_data());
  parallel_for(x.bytes(), kGrain * 8, [&](int64_t begin, int64_t end) {
    std::memcpy(to + begin, from + begin, static_cast<size_t>(end - begin));
  });
}

constexpr int64_t kTile = 16;
/// A row of a tile whose elements have four bytes.
typedef int32_t TileRow __attribute__((vector_size(kTile * 4)));

/// The lanes of `a` and `b` in turn: the first halves of both, or the second ones.
TileRow low_halves(TileRow a, TileRow b) {
  return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
}
TileRow high_halves(TileRow a, TileRow b) {
  return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
}

/// out[r][c] = x[c][r] for a whole tile: four perfect shuffles of its rows.
void transpose_tile(const void* x, void* out, int64_t x_bytes, int64_t out_bytes) {
  TileRow rows[kTile], next[kTile];
  for (int64_t i = 0; i < kTile; ++i) std::memcpy(&rows[i], static_cast<const char*>(x) + i * x_bytes, sizeof(TileRow));
  for (int round = 0; round < 4; ++round) {
    for (int64_t i = 0; i < kTile / 2; ++i) {
      next[2 * i] = low_halves(rows[i], rows[i + kTile / 2]);
      next[2 * i + 1] = high_halves(rows[i], rows[i + kTile / 2]);
    }
    std::copy_n(next, kTile, rows);
  }
  for (int64_t i = 0; i < kTile; ++i) std::memcpy(static_cast<char*>(out) + i * out_bytes, &rows[i], sizeof(TileRow));
}

/// [rows, columns] with x column-major and out row-major, in tiles that fit the cache.
template <class T>
void copy_transposed(const T* x, T* out, int64_t rows, int64_t columns, int64_t x_step, int64_t out_step) {
  for (int64_t r0 = 0; r0 < rows; r0 += kTile) {
    const int64_t r1 = std::min(rows, r0 + kTile);
    for (int64_t c0 = 0; c0 < columns; c0 += kTile) {
      const int64_t c1 = std::min(columns, c0 + kTile);
      if constexpr (sizeof(T) == 4) {
        if (r1 - r0 == kTile && c1 - c0 == kTile) {
          transpose_tile(x + c0 * x_step + r0, out + r0 * out_step + c0, x_step * 4, out_step * 4);
          continue;
        }
      }
      for (int64_t r = r0; r < r1; ++r)
        for (int64_t c = c0; c < c1; ++c) out[r * out_step + c] = x[c * x_step + r];
    }
  }
}

/// A batch of transposes (channels-last to row-major and back): out [batch, rows, columns] dense, x with unit stride
/// along the rows. True where it applied.
template <class T>
bool copy_as_transposes(const Loop<2>& loop, const T* x, T* out) {
  if (loop.ndim < 2 || loop.ndim > 3 || loop.strides[0][0] != 1 || loop.strides[1][1] != 1) return false;
  const int64_t columns = loop.sizes[0], rows = loop.sizes[1], batch = loop.ndim == 3 ? loop.sizes[2] : 1;
  if (rows < 8 || columns < 8) return false;
  parallel_for(batch, std::max<int64_t>(1, kGrain / (rows * columns)), [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b)
      copy_transposed(x + b * loop.strides[1][2], out + b * loop.strides[0][2], rows, columns, loop.strides[1][0],
                      loop.strides[0][1]);
  });
  return true;
}

/// Elements of one size, whatever they mean.
template <class Bits>
void copy_strided(const Tensor& x, Tensor& out) {
  const auto* from = static_cast<const Bits*>(x.raw_data());
  auto* to = static_cast<Bits*>(out.raw_data());
  const Loop<2> loop({&out, &x});
  if (copy_as_transposes(loop, from, to)) return;
  loop.run([=](int64_t n, const auto& at, const auto& step) {
    Bits* const o = to + at[0];
    const Bits* const p = from + at[1];
    if (step[0] == 1 && step[1] == 1)
      std::copy_n(p, n, o);
    else if (step[0] == 1 && step[1] == 0)
      std::fill_n(o, n, *p);
    else
      for (int64_t i = 0; i < n; ++i) o[i * step[0]] = p[i * step[1]];
  });
}

bool same_dense_layout(const Tensor& x, const Tensor& out) {
  if (x.is_contiguous() && out.is_contiguous()) return true;
  if (!(x.strides() == out.strides())) return false;
  return x.is_channels_last() && out.is_channels_last();
}

}  // namespace

void copy(const Tensor& x, Tensor& out) {
  WEFT_ASSERT(x.sizes() == out.sizes());
  if (x.dtype() == out.dtype()) {
    if (same_dense_layout(x, out)) return copy_bytes(x, out);
    switch (size_of(x.dtype())) {
      case 8:
        return copy_strided<uint64_t>(x, out);
      case 4:
        return copy_strided<uint32_t>(x, out);
      case 2:
        return copy_strided<uint16_t>(x, out);
      default:
        return copy_strided<uint8_t>(x, out);
    }
  }
  dispatch(out.dtype(), [&]<class To>() {
    dispatch(x.dtype(), [&]<class From>() {
      map<To, From>(
          [](auto v) {
            if constexpr (std::is_same_v<To, bool>)
              return v != decltype(v)(0);
            else
              return static_cast<compute_t<To>>(v);
          },
          out, x);
    });
  });
}

void fill(Tensor& out, Scalar value) {
  dispatch(out.dtype(), [&]<class T>() {
    const T v = value.to<T>();
    Loop<1>({&out}).run([y = out.data<T>(), v](int64_t n, const auto& at, const auto& step) {
      if (step[0] == 1)
        std::fill_n(y + at[0], n, v);
      else
        for (int64_t i = 0; i < n; ++i) y[at[0] + i * step[0]] = v;
    });
  });
}

void write_bytes(std::span<const std::byte> bytes, Tensor& out) {
  WEFT_ASSERT(static_cast<int64_t>(bytes.size()) <= out.bytes());
  std::memcpy(out.raw_data(), bytes.data(), bytes.size());
}

void arange(Tensor& out, Scalar start, Scalar step) {
  WEFT_ASSERT(out.is_contiguous());
  dispatch(out.dtype(), [&]<class T>() {
    T* y = out.data<T>();
    for (int64_t i = 0; i < out.numel(); ++i) {
      if constexpr (std::is_integral_v<T>)
        y[i] = static_cast<T>(start.to<int64_t>() + i * step.to<int64_t>());
      else
        y[i] = static_cast<T>(static_cast<compute_t<T>>(start.d + static_cast<double>(i) * step.d));
    }
  });
}

}  // namespace weft::cpu_kernels
