// Stands in for the NVIDIA driver, libcuda.so.1, on a machine that has none: one that finds no GPU, or, where
// FAKE_DRIVER is "old", one of another year. The CUDA runtime asks it for its functions by name.
#include <cstdlib>
#include <cstring>

namespace {

constexpr int kSuccess = 0, kInvalidValue = 1, kNoDevice = 100;

int version(int* out) {
  const char* kind = std::getenv("FAKE_DRIVER");
  *out = kind && std::strcmp(kind, "old") == 0 ? 11000 : 13000;
  return kSuccess;
}
int init(unsigned) { return kNoDevice; }
int address_of(const char* name, void** out, int version, unsigned long flags, int* found);

void* function(const char* name) {
  if (std::strcmp(name, "cuDriverGetVersion") == 0) return reinterpret_cast<void*>(&version);
  if (std::strcmp(name, "cuGetProcAddress") == 0) return reinterpret_cast<void*>(&address_of);
  return reinterpret_cast<void*>(&init);  // cuInit; nothing else is called before it has failed
}

int address_of(const char* name, void** out, int, unsigned long, int* found) {
  if (*name == 0) return kInvalidValue;
  *out = function(name);
  if (found) *found = 0;
  return kSuccess;
}

}  // namespace

extern "C" {
int cuDriverGetVersion(int* out) { return version(out); }
int cuInit(unsigned flags) { return init(flags); }
int cuGetProcAddress_v2(const char* name, void** out, int version, unsigned long flags, int* found) {
  return address_of(name, out, version, flags, found);
}
}
