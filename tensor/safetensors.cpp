// The safetensors format. Values are laid out by falling element size, then by name, so each is aligned to its size.
#include "tensor/safetensors.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "tensor/atomic_file.h"
#include "tensor/error.h"
#include "tensor/kernels.h"

namespace weft {
namespace {

using nlohmann::json;

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

constexpr const char* kMetadata = "__metadata__";
constexpr int64_t kMaxHeader = 100'000'000;  // the format's own limit

constexpr std::array<std::pair<DType, const char*>, 8> kNames{{{DType::f32, "F32"},
                                                               {DType::f64, "F64"},
                                                               {DType::bf16, "BF16"},
                                                               {DType::f16, "F16"},
                                                               {DType::i32, "I32"},
                                                               {DType::i64, "I64"},
                                                               {DType::u8, "U8"},
                                                               {DType::boolean, "BOOL"}}};

const char* format_name(DType t) {
  return std::ranges::find(kNames, t, [](const auto& entry) { return entry.first; })->second;
}

/// Where one tensor lies in the file's data.
struct Entry {
  std::string name;
  DType dtype;
  Shape sizes;
  int64_t begin, end;
};

/// An open file and what its header says, checked.
class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path), file_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    WEFT_CHECK(file_ >= 0, "load", "{}: cannot be opened: {}", path, std::strerror(errno));
    try {
      read_header();
    } catch (...) {
      close(file_);
      throw;
    }
  }
  ~Reader() { close(file_); }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  Tensor read(const Entry& entry) const {
    Tensor x = empty(entry.sizes, entry.dtype);
    read_at(data_ + entry.begin, {static_cast<char*>(x.raw_data()), static_cast<size_t>(entry.end - entry.begin)});
    if (entry.dtype == DType::boolean) {
      const auto* bytes = static_cast<const uint8_t*>(x.raw_data());
      const auto* odd = std::find_if(bytes, bytes + x.numel(), [](uint8_t b) { return b > 1; });
      check(odd == bytes + x.numel(), entry.name, "is BOOL but holds a byte that is neither 0 nor 1");
    }
    return x;
  }

  std::vector<Entry> entries;
  Metadata metadata;

 private:
  void check(bool good, const std::string& tensor, const std::string& what) const {
    WEFT_CHECK(good, "load", "{}: tensor \"{}\" {}", path_, tensor, what);
  }

  void read_at(int64_t offset, std::span<char> out) const {
    while (!out.empty()) {
      const ssize_t n = pread(file_, out.data(), std::min<size_t>(out.size(), size_t{1} << 30), offset);
      if (n < 0 && errno == EINTR) continue;
      WEFT_CHECK(n >= 0, "load", "{}: cannot be read: {}", path_, std::strerror(errno));
      WEFT_CHECK(n > 0, "load", "{}: became shorter while it was read", path_);
      out = out.subspan(static_cast<size_t>(n));
      offset += n;
    }
  }

  json parse(const std::string& text) const {
    std::vector<std::set<std::string>> keys;  // of the objects that are open
    std::string twice;
    auto watch = [&](int, json::parse_event_t event, json& value) {
      if (event == json::parse_event_t::object_start) keys.emplace_back();
      if (event == json::parse_event_t::object_end) keys.pop_back();
      if (event == json::parse_event_t::key && !keys.back().insert(value.get<std::string>()).second) twice = value;
      return true;
    };
    json header;
    try {
      header = json::parse(text, watch);
    } catch (const json::exception& error) {
      fail("load", fmt::format("{}: the header is not JSON: {}", path_, error.what()));
    }
    WEFT_CHECK(twice.empty(), "load", "{}: the header has \"{}\" twice", path_, twice);
    WEFT_CHECK(header.is_object(), "load", "{}: the header is not a JSON object", path_);
    return header;
  }

  void read_header() {
    struct stat info {};
    WEFT_CHECK(fstat(file_, &info) == 0 && S_ISREG(info.st_mode), "load", "{}: is not a file", path_);
    WEFT_CHECK(info.st_size >= 8, "load", "{}: is too short for a safetensors file: {} bytes", path_, info.st_size);
    uint64_t length = 0;
    read_at(0, {reinterpret_cast<char*>(&length), 8});
    WEFT_CHECK(length <= static_cast<uint64_t>(info.st_size - 8), "load",
               "{}: claims a header of {} bytes, the file has {} after its length", path_, length, info.st_size - 8);
    WEFT_CHECK(length <= kMaxHeader, "load", "{}: claims a header of {} bytes, the format allows {}", path_, length,
               kMaxHeader);
    std::string text(length, '\0');
    read_at(8, text);
    data_ = static_cast<int64_t>(length) + 8;
    data_bytes_ = info.st_size - data_;
    const json header = parse(text);
    for (const auto& [name, value] : header.items()) {
      if (name == kMetadata)
        read_metadata(value);
      else
        entries.push_back(read_entry(name, value));
    }
    check_places();
  }

  void read_metadata(const json& value) {
    bool good = value.is_object();
    for (auto it = value.begin(); good && it != value.end(); ++it) good = it.value().is_string();
    WEFT_CHECK(good, "load", "{}: {} is not an object of strings", path_, kMetadata);
    metadata = value.get<Metadata>();
  }

  Entry read_entry(const std::string& name, const json& value) const {
    check(value.is_object() && value.contains("dtype") && value.contains("shape") && value.contains("data_offsets"),
          name, "has no dtype, shape and data_offsets");
    Entry entry{.name = name, .dtype = {}, .sizes = {}, .begin = 0, .end = 0};
    const json &dtype = value["dtype"], &shape = value["shape"], &offsets = value["data_offsets"];
    check(dtype.is_string(), name, "has a dtype that is not a string");
    const auto* known =
        std::ranges::find(kNames, dtype.get<std::string>(), [](const auto& e) { return std::string(e.second); });
    check(known != kNames.end(), name, "has dtype " + dtype.get<std::string>() + ", which weft does not have");
    entry.dtype = known->first;
    auto whole = [](const json& v) { return v.is_number_unsigned() && v.get<uint64_t>() <= INT64_MAX; };
    check(shape.is_array() && std::ranges::all_of(shape, whole), name, "has a shape that is not a list of sizes");
    check(static_cast<int64_t>(shape.size()) <= kMaxDims, name,
          fmt::format("has {} dimensions, weft has at most {}", shape.size(), kMaxDims));
    int64_t bytes = size_of(entry.dtype);
    for (const json& size : shape) {
      entry.sizes.push_back(size.get<int64_t>());
      check(!__builtin_mul_overflow(bytes, entry.sizes.back(), &bytes), name, "has a shape of more than 2^63 bytes");
    }
    check(offsets.is_array() && offsets.size() == 2 && std::ranges::all_of(offsets, whole), name,
          "has data_offsets that are not two numbers");
    entry.begin = offsets[0].get<int64_t>();
    entry.end = offsets[1].get<int64_t>();
    check(entry.begin <= entry.end && entry.end <= data_bytes_, name,
          fmt::format("lies at bytes {} to {}, the file has {} bytes of data", entry.begin, entry.end, data_bytes_));
    check(entry.end - entry.begin == bytes, name,
          fmt::format("has {} bytes, its shape {} as {} wants {}", entry.end - entry.begin, str(entry.sizes),
                      weft::name(entry.dtype), bytes));
    return entry;
  }

  /// The tensors must fill the data, each byte once.
  void check_places() const {
    std::vector<const Entry*> order;
    for (const Entry& entry : entries) order.push_back(&entry);
    std::ranges::sort(order, {}, [](const Entry* e) { return std::pair(e->begin, e->end); });
    int64_t at = 0;
    for (const Entry* entry : order) {
      check(entry->begin >= at, entry->name, "overlaps the one before it");
      check(entry->begin == at, entry->name, fmt::format("leaves a gap of {} bytes before it", entry->begin - at));
      at = entry->end;
    }
    WEFT_CHECK(at == data_bytes_, "load", "{}: {} bytes follow the last tensor", path_, data_bytes_ - at);
  }

  std::string path_;
  int file_;
  int64_t data_ = 0, data_bytes_ = 0;
};

}  // namespace

void save(const std::string& path, const std::vector<Named>& tensors, const Metadata& metadata) {
  std::vector<const Named*> order;
  std::set<std::string> names;
  for (const Named& tensor : tensors) {
    WEFT_CHECK(tensor.value.defined(), "save", "{}: tensor \"{}\" is undefined", path, tensor.name);
    WEFT_CHECK(tensor.name != kMetadata, "save", "{}: no tensor can be named {}", path, kMetadata);
    WEFT_CHECK(names.insert(tensor.name).second, "save", "{}: there are two tensors named \"{}\"", path, tensor.name);
    order.push_back(&tensor);
  }
  std::ranges::sort(order, {},
                    [](const Named* t) { return std::pair(-size_of(t->value.dtype()), std::string_view(t->name)); });

  json header = json::object();
  if (!metadata.empty()) header[kMetadata] = metadata;
  int64_t at = 0;
  for (const Named* tensor : order) {
    const Tensor& x = tensor->value;
    header[tensor->name] = {{"dtype", format_name(x.dtype())},
                            {"shape", std::vector<int64_t>(x.sizes().begin(), x.sizes().end())},
                            {"data_offsets", {at, at + x.bytes()}}};
    at += x.bytes();
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const json::exception&) {
    fail("save", fmt::format("{}: a name or a metadata string is not UTF-8", path));
  }
  text.resize((text.size() + 7) / 8 * 8, ' ');
  WEFT_CHECK(text.size() <= kMaxHeader, "save", "{}: the header is {} bytes, the format allows {}", path, text.size(),
             kMaxHeader);

  AtomicFile file(path);
  const auto length = static_cast<uint64_t>(text.size());
  file.write({reinterpret_cast<const char*>(&length), 8});
  file.write(text);
  for (const Named* tensor : order) {
    Tensor x = tensor->value;
    if (!x.is_contiguous() || x.device() != cpu) {
      x = empty(x.sizes(), x.dtype());
      kernels::copy(tensor->value, x);
    }
    file.write({static_cast<const char*>(x.raw_data()), static_cast<size_t>(x.bytes())});
  }
  file.commit();
}

std::vector<Named> load(const std::string& path) {
  const Reader reader(path);
  std::vector<Named> tensors;
  for (const Entry& entry : reader.entries) tensors.push_back({entry.name, reader.read(entry)});
  return tensors;
}

Metadata load_metadata(const std::string& path) { return Reader(path).metadata; }

}  // namespace weft
