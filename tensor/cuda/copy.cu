// Copies between dtypes, layouts and devices, and constant fills.
#include <cstring>

#include "tensor/backend.h"
#include "tensor/cuda/map.cuh"
#include "tensor/view.h"

namespace weft::WEFT_GPU {
namespace {

template <class To>
struct Convert {
  template <class From>
  __device__ compute_t<To> operator()(From v) const {
    if constexpr (std::is_same_v<To, bool>)
      return v != From(0);
    else
      return static_cast<compute_t<To>>(v);
  }
};

template <class T>
struct Constant {
  compute_t<T> value;
  __device__ compute_t<T> operator()() const { return value; }
};

/// Bytes that travel as a kernel's argument.
struct FewBytes {
  static constexpr int64_t kMost = 3840;
  unsigned char bytes[kMost];
};

__global__ void __launch_bounds__(kBlock)
    write_bytes_kernel(const __grid_constant__ FewBytes from, int n, unsigned char* to) {
  const int i = static_cast<int>(grid_index());
  if (i < n) to[i] = from.bytes[i];
}

struct Identity {
  template <class T>
  __device__ T operator()(T v) const {
    return v;
  }
};

/// Elements of one size, whatever they mean.
template <class Bits>
void copy_bits(const Tensor& x, Tensor& out) {
  if (x.numel() == 0) return;
  map_pointers(Identity{}, LoopNest<2>({&out, &x}), std::index_sequence<0>{}, static_cast<Bits*>(out.raw_data()),
               static_cast<const Bits*>(x.raw_data()));
}

bool same_dense_layout(const Tensor& x, const Tensor& out) {
  return (x.is_contiguous() && out.is_contiguous()) || (x.strides() == out.strides() && raw::is_dense(x));
}

/// Both on the device in use. Bytes are no kernel's, so `launch` does not hold them back from a refreshed step.
void copy_here(const Tensor& x, Tensor& out) {
  if (x.dtype() != out.dtype()) {
    dispatch(out.dtype(),
             [&]<class To>() { dispatch(x.dtype(), [&]<class From>() { map<To, From>(Convert<To>{}, out, x); }); });
    return;
  }
  if (same_dense_layout(x, out)) {
    if (StepValues::refreshing()) return;
    return backend(out.device().type).copy(out.raw_data(), x.raw_data(), x.bytes(), stream());
  }
  switch (size_of(x.dtype())) {
    case 8:
      return copy_bits<uint64_t>(x, out);
    case 4:
      return copy_bits<uint32_t>(x, out);
    case 2:
      return copy_bits<uint16_t>(x, out);
    default:
      return copy_bits<uint8_t>(x, out);
  }
}

/// What is put into `stream` from here on waits for what is in `other` now.
void follow(const Stream& stream, const Stream& other) {
  Event mark(other.device());
  mark.record(other);
  mark.wait(stream);
}

/// Bytes from one device's memory to another's: only between equal dtypes and dense layouts, so what differs is made
/// equal on the side it starts from or ends at.
void copy_across(const Tensor& x, Tensor& out) {
  if (!(x.dtype() == out.dtype() && same_dense_layout(x, out))) {
    const Tensor there = raw::contiguous(x);
    Tensor here = empty(out.sizes(), {x.dtype(), out.device()});
    copy_across(there, here);
    return kernels::copy(here, out);
  }
  const bool host = x.device() == cpu || out.device() == cpu;
  if (host && (StepValues::recording() || StepValues::refreshing()))
    fail("copy", "a captured step copies nothing between the host and a device: a replay would find other bytes there");
  const Device device = (x.device() == cpu ? out : x).device();
  const Stream from = current_stream(device);
  // Between two devices, the other's stream is done with the memory before, and uses it after.
  if (!host) follow(from, current_stream(out.device()));
  const Backend& runtime = backend_in_use(device);
  runtime.copy(out.raw_data(), x.raw_data(), x.bytes(), from.handle());
  if (!host) follow(current_stream(out.device()), from);
  // The host may read or change its side next.
  if (out.device() == cpu || x.storage()->is_pinned()) runtime.synchronize(from.handle());
}

}  // namespace

void copy(const Tensor& x, Tensor& out) {
  WEFT_ASSERT(x.sizes() == out.sizes());
  if (x.device() == out.device())
    copy_here(x, out);
  else
    copy_across(x, out);
}

// As arguments of kernels the bytes need neither pinned memory nor a wait until they have been read.
void write_bytes(std::span<const std::byte> bytes, Tensor& out) {
  WEFT_ASSERT(static_cast<int64_t>(bytes.size()) <= out.bytes());
  auto* to = static_cast<unsigned char*>(out.raw_data());
  FewBytes few;
  for (size_t begin = 0; begin < bytes.size(); begin += FewBytes::kMost) {
    const std::span<const std::byte> some =
        bytes.subspan(begin).first(std::min<size_t>(bytes.size() - begin, FewBytes::kMost));
    std::memcpy(few.bytes, some.data(), some.size());
    const auto n = static_cast<int>(some.size());
    launch(blocks_for(n), kBlock, 0, write_bytes_kernel, few, n, to + begin);
  }
}

void fill(Tensor& out, Scalar value) {
  dispatch(out.dtype(), [&]<class T>() { map<T>(Constant<T>{static_cast<compute_t<T>>(value.to<T>())}, out); });
}

}  // namespace weft::WEFT_GPU
