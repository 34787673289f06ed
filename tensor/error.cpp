// Interned module paths and the two ways to fail.
#include "tensor/error.h"

#include <deque>
#include <mutex>
#include <unordered_map>

namespace weft {
namespace {

struct Paths {
  std::mutex mutex;
  std::deque<std::string> names{""};  // a deque: references stay valid while it grows
  std::unordered_map<std::string_view, uint32_t> ids{{names[0], 0}};
};

Paths& paths() {
  static Paths* instance = new Paths;  // never destroyed: tensors may be freed during static destruction
  return *instance;
}

}  // namespace

uint32_t Scope::intern(std::string_view path) {
  Paths& p = paths();
  std::lock_guard lock(p.mutex);
  if (auto it = p.ids.find(path); it != p.ids.end()) return it->second;
  p.names.emplace_back(path);
  const auto id = static_cast<uint32_t>(p.names.size() - 1);
  p.ids.emplace(p.names.back(), id);
  return id;
}

const std::string& Scope::path(uint32_t id) {
  Paths& p = paths();
  std::lock_guard lock(p.mutex);
  return p.names.at(id);
}

uint32_t& Scope::current() {
  thread_local uint32_t id = 0;
  return id;
}

void fail(std::string_view op, std::string_view message) {
  const uint32_t id = Scope::current();
  if (id == 0) throw Error(fmt::format("[{}] {}", op, message));
  throw Error(fmt::format("[{}] {}: {}", op, Scope::path(id), message));
}

void fail_assert(const char* condition, const char* file, int line) {
  throw Error(fmt::format("a bug in weft: {} does not hold at {}:{}", condition, file, line));
}

}  // namespace weft
