// The primitive cache and the run with reorders.
#include "tensor/cpu/onednn.h"

#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "tensor/threads.h"

namespace weft::onednn {
namespace {

struct KeyHash {
  size_t operator()(const Key& key) const { return key.hash(); }
};

dnnl::memory::dims dims(const Shape& shape) { return {shape.begin(), shape.end()}; }

dnnl::stream& stream() {
  thread_local dnnl::stream own(engine());
  return own;
}

}  // namespace

size_t Key::hash() const {
  uint64_t h = 0xcbf29ce484222325u;
  for (size_t i = 0; i < count_; ++i) h = (h ^ static_cast<uint64_t>(values_[i])) * 0x9E3779B97F4A7C15u, h ^= h >> 29;
  return h;
}

const dnnl::engine& engine() {
  static const dnnl::engine* cpu_engine = new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return *cpu_engine;
}

dnnl::memory::data_type type_of(DType dtype) {
  switch (dtype) {
    case DType::bf16:
      return dnnl::memory::data_type::bf16;
    case DType::f32:
      return dnnl::memory::data_type::f32;
    default:
      fail("onednn", fmt::format("has no {} here", name(dtype)));
  }
}

bool multiplies(DType dtype) {
  if (dtype == DType::f32) return true;
  if (dtype != DType::bf16) return false;
  static const bool has_bf16 = [] {
    constexpr auto wanted = static_cast<unsigned>(dnnl::cpu_isa::avx512_core_bf16);
    return (static_cast<unsigned>(dnnl::get_effective_cpu_isa()) & wanted) == wanted;
  }();
  return has_bf16;
}

dnnl::memory::desc describe(const Shape& sizes, const Shape& strides, DType dtype) {
  return {dims(sizes), type_of(dtype), dims(strides)};
}

dnnl::memory::desc describe(const Tensor& x) { return describe(x.sizes(), x.strides(), x.dtype()); }

dnnl::memory::desc describe_any(const Shape& sizes, DType dtype) {
  return {dims(sizes), type_of(dtype), dnnl::memory::format_tag::any};
}

dnnl::primitive_attr attributes(Activation activation) {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (activation == Activation::none) return attr;
  const auto function = activation == Activation::relu   ? dnnl::algorithm::eltwise_relu
                        : activation == Activation::gelu ? dnnl::algorithm::eltwise_gelu_erf
                                                         : dnnl::algorithm::eltwise_gelu_tanh;
  dnnl::post_ops ops;
#if DNNL_VERSION_MAJOR < 3
  ops.append_eltwise(1.0f, function, 0, 0);
#else
  ops.append_eltwise(function, 0, 0);
#endif
  attr.set_post_ops(ops);
  return attr;
}

const Prepared& prepared(Key key, const std::function<Prepared()>& make) {
  static std::mutex* mutex = new std::mutex;
  static auto* cache = new std::unordered_map<Key, std::shared_ptr<const Prepared>, KeyHash>;
  thread_local std::shared_ptr<const Prepared> in_use;  // stays, though another thread may clear the cache
  constexpr size_t kMost = 1024;                        // shapes that never come back must not pile up
  key.add(num_threads());
  std::lock_guard lock(*mutex);
  std::shared_ptr<const Prepared>& entry = (*cache)[key];
  if (entry) return *(in_use = entry);
  try {
    in_use = std::make_shared<const Prepared>(make());
  } catch (const dnnl::error& error) {
    cache->erase(key);
    fail("onednn", fmt::format("cannot do this: {} (status {})", error.message, static_cast<int>(error.status)));
  }
  entry = in_use;
  if (cache->size() > kMost) cache->clear();
  return *in_use;
}

void run(const Prepared& p, std::initializer_list<Argument> arguments) {
  std::unordered_map<int, dnnl::memory> memories;
  std::vector<Ref<Storage>> temporaries;
  std::vector<std::pair<dnnl::memory, dnnl::memory>> results;  // from the primitive's layout to ours
  auto temporary = [&](const dnnl::memory::desc& desc) {
    temporaries.push_back(make_ref<Storage>(static_cast<int64_t>(desc.get_size()), Device{}));
    return dnnl::memory(desc, engine(), temporaries.back()->data());
  };
  for (const Argument& a : arguments) {
    if (!a.data) continue;
    dnnl::memory ours(a.ours, engine(), a.data);
    if (a.ours == *a.wanted) {
      memories.emplace(a.id, ours);
      continue;
    }
    dnnl::memory theirs = temporary(*a.wanted);
    if (a.output)
      results.emplace_back(theirs, ours);
    else
      dnnl::reorder(ours, theirs).execute(stream(), ours, theirs);
    memories.emplace(a.id, theirs);
  }
  if (p.scratchpad.get_size() > 0) memories.emplace(DNNL_ARG_SCRATCHPAD, temporary(p.scratchpad));
  p.primitive.execute(stream(), memories);
  for (auto& [theirs, ours] : results) dnnl::reorder(theirs, ours).execute(stream(), theirs, ours);
  stream().wait();
}

}  // namespace weft::onednn
