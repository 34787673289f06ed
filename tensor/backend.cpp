// Opening plug-ins. They lie beside libweft itself.
#include "tensor/backend.h"

#include <dlfcn.h>

#include <algorithm>
#include <mutex>

#include "tensor/error.h"

namespace weft {
namespace {

struct Plugin {
  const char* device;
  const char* file;
  const char* driver;  // what every machine with such a device has, or null
  bool built;          // whether this build made it
  std::once_flag opened = {};
  const Backend* backend = nullptr;
  std::string reason = {};  // why there is none
};

#ifdef WEFT_HAS_CUDA
constexpr bool kHasCuda = true;
#else
constexpr bool kHasCuda = false;
#endif

/// dlopen's text "NAME: cannot open shared object file: …" says which file was missing.
std::string missing_file(const std::string& text) {
  const size_t end = text.find(": cannot open shared object file");
  return end == std::string::npos ? std::string() : text.substr(0, end);
}

/// The folder of libweft itself, with a slash.
std::string own_folder() {
  Dl_info info{};
  const auto here = reinterpret_cast<const void*>(&backend);
  const std::string path = dladdr(here, &info) && info.dli_fname ? info.dli_fname : "";
  return path.substr(0, path.rfind('/') + 1);
}

/// By its name, for which LD_LIBRARY_PATH may have another one, then beside libweft. `why` is empty where that worked.
void* open_library(const std::string& file, std::string& why) {
  for (const std::string& path : {file, own_folder() + file}) {
    if (void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
      why.clear();
      return library;
    }
    const char* said = dlerror();
    why = said ? said : "no reason given";
    const std::string missing = missing_file(why);
    if (missing == path)
      why = fmt::format("{} is not where libweft.so is", file);
    else if (!missing.empty())
      why = fmt::format("the library {} is missing; install it, or name its folder in LD_LIBRARY_PATH", missing);
    if (missing != path) return nullptr;
  }
  return nullptr;
}

std::string open(Plugin& plugin) {
  if (!plugin.built)
    return "this build has no part for it (it was configured with WEFT_CUDA=OFF, or found no CUDA toolkit)";
  // A machine without the driver does not pay for loading the libraries, which takes a tenth of a second.
  if (plugin.driver && !dlopen(plugin.driver, RTLD_LAZY | RTLD_LOCAL))
    return fmt::format("the NVIDIA driver is not installed ({} was not found)", plugin.driver);
  std::string why;
  void* const library = open_library(plugin.file, why);
  if (!library) return why;
  const auto function = reinterpret_cast<BackendFunction*>(dlsym(library, kBackendSymbol));
  if (!function) return fmt::format("{} is no plug-in of Weft", plugin.file);
  try {
    const Backend* found = function();
    if (found->table_bytes != static_cast<int64_t>(sizeof(Backend)))
      return fmt::format("{} is of another version of Weft", plugin.file);
    found->device_count();
    plugin.backend = found;
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

Plugin& plugin_of(DeviceType type) {
  static Plugin cuda{"CUDA", "libweft_cuda.so", "libcuda.so.1", kHasCuda};
  static Plugin simt{"simt", "libweft_simt.so", nullptr, true};
  WEFT_ASSERT(type != DeviceType::cpu);
  Plugin& plugin = type == DeviceType::cuda ? cuda : simt;
  std::call_once(plugin.opened, [&] { plugin.reason = open(plugin); });
  return plugin;
}

}  // namespace

const Backend& backend(DeviceType type) {
  const Plugin& plugin = plugin_of(type);
  WEFT_CHECK(plugin.backend, "device", "no {} device: {}", plugin.device, plugin.reason);
  return *plugin.backend;
}

std::string why_unavailable(Device device) {
  if (device.type == DeviceType::cpu) return {};
  const Plugin& plugin = plugin_of(device.type);
  if (!plugin.backend) return fmt::format("no {} device: {}", plugin.device, plugin.reason);
  const int count = plugin.backend->device_count();
  if (device.index >= count)
    return fmt::format("no device {}: this machine has {} {} device{}", name(device), count, plugin.device,
                       count == 1 ? "" : "s");
  return {};
}

}  // namespace weft
