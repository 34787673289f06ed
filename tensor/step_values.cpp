// Values of captured steps lie at fixed places of one block.
#include "tensor/step_values.h"

#include <cstring>
#include <utility>

#include "tensor/error.h"
#include "tensor/kernels.h"

namespace weft {
namespace {

constexpr int64_t kCapacity = 1 << 16;
constexpr int64_t kAlignment = 16;

struct Current {
  StepValues* values = nullptr;
  bool refresh = false;
};
thread_local Current current;

struct CurrentGuard {
  Current before;
  explicit CurrentGuard(Current now) : before(std::exchange(current, now)) {}
  ~CurrentGuard() { current = before; }
};

}  // namespace

StepValues::StepValues(Device device) : host_(kCapacity), device_(empty({kCapacity}, {u8, device})) {}

bool StepValues::recording() { return current.values && !current.refresh; }
bool StepValues::refreshing() { return current.values && current.refresh; }

void StepValues::run(bool refresh, const std::function<void()>& step) {
  WEFT_CHECK(!current.values, "step_values", "a step is recorded or refreshed already");
  const CurrentGuard guard({this, refresh});
  step();
}

void StepValues::record(const std::function<void()>& step) {
  used_ = 0;
  places_.clear();
  draws_.clear();
  start_ = default_generator().state();
  run(false, step);
  const Philox end = default_generator().state();
  WEFT_CHECK(end.seed == start_.seed, "step_values", "the default generator was seeded anew within the step");
  moved_ = end.offset - start_.offset;
}

void StepValues::refresh(const std::function<void()>& step) {
  const Philox start = default_generator().state();
  for (const Draw& draw : draws_) {
    const Philox state{start.seed, start.offset + draw.ahead};
    set(draw.begin, &state, sizeof state);
  }
  default_generator().set_state({start.seed, start.offset + moved_});
  next_ = 0;
  run(true, step);
  WEFT_CHECK(
      next_ == places_.size(), "step_values",
      "the captured step had {} changing arguments, this one has {}: parameters with a gradient must stay the same",
      places_.size(), next_);
}

void StepValues::write() const {
  if (used_ == 0) return;
  Tensor out = device_;
  kernels::write_bytes(std::span(host_).first(static_cast<size_t>(used_)), out);
}

int64_t StepValues::add(const void* value, int64_t bytes) {
  const int64_t begin = (used_ + kAlignment - 1) / kAlignment * kAlignment;
  WEFT_CHECK(begin + bytes <= kCapacity, "step_values", "a step has more than {} bytes of changing arguments",
             kCapacity);
  used_ = begin + bytes;
  set(begin, value, bytes);
  return begin;
}

void StepValues::set(int64_t begin, const void* value, int64_t bytes) {
  std::memcpy(host_.data() + begin, value, static_cast<size_t>(bytes));
}

const void* step_slot(const void* value, int64_t bytes) {
  if (!current.values) return nullptr;
  StepValues& v = *current.values;
  const auto* const device = static_cast<const std::byte*>(v.device_.raw_data());
  if (!current.refresh) {
    v.places_.push_back({v.add(value, bytes), bytes});
    return device + v.places_.back().begin;
  }
  const size_t i = v.next_++;
  WEFT_CHECK(i < v.places_.size() && v.places_[i].bytes == bytes, "step_values",
             "changing argument {} is not as in the captured step: parameters with a gradient must stay the same", i);
  v.set(v.places_[i].begin, value, bytes);
  return device + v.places_[i].begin;
}

StepValue<Philox> step_value(const Philox& state) {
  if (!StepValues::recording()) return {state};
  StepValues& v = *current.values;
  WEFT_CHECK(state.seed == v.start_.seed, "step_values",
             "a captured step draws from the default generator only, not from one with seed {}", state.seed);
  const int64_t begin = v.add(&state, sizeof state);
  v.draws_.push_back({begin, state.offset - v.start_.offset});
  return {state, reinterpret_cast<const Philox*>(static_cast<const std::byte*>(v.device_.raw_data()) + begin)};
}

}  // namespace weft
