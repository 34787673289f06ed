// Stands in for the NVIDIA driver, libcuda.so.1, on a machine that has none: one that finds no GPU, or, where
// FAKE_DRIVER is "old", one of another year. The CUDA runtime asks it for its functions by name.
#include <cstdlib>
#include <cstring>

namespace {

constexpr int kSuccess = 0, kNoDevice = 100, kNotFound = 500;

int version(int* out) {
  const char* kind = std::getenv("FAKE_DRIVER");
  *out = kind && std::strcmp(kind, "old") == 0 ? 11000 : 13000;
  return kSuccess;
}
int init(unsigned) { return kNoDevice; }

void* function(const char* name) {
  if (std::strcmp(name, "cuDriverGetVersion") == 0) return reinterpret_cast<void*>(&version);
  if (std::strcmp(name, "cuInit") == 0) return reinterpret_cast<void*>(&init);
  return reinterpret_cast<void*>(&init);  // nothing else is called before cuInit has failed
}

}  // namespace

extern "C" {
int cuDriverGetVersion(int* out) { return version(out); }
int cuInit(unsigned flags) { return init(flags); }
int cuGetProcAddress(const char* name, void** out, int, unsigned long) {
  *out = function(name);
  return kSuccess;
}
int cuGetProcAddress_v2(const char* name, void** out, int, unsigned long, int* found) {
  *out = function(name);
  if (found) *found = kSuccess;
  return *out ? kSuccess : kNotFound;
}
}
