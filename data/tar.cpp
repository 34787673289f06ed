// The tar reader: 512-byte blocks, a header before each file (POSIX.1-2001, "ustar Interchange Format" and "pax").
#include "data/tar.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include "data/bytes.h"
#include "tensor/error.h"

namespace weft::data {
namespace {

constexpr int64_t kBlock = 512;
constexpr int64_t kLongestName = 1 << 16;  // of a header that holds the next file's name
constexpr int64_t kPiece = 1 << 20;        // content is read in such pieces, so that a claim alone takes no memory

using Block = std::array<uint8_t, kBlock>;

/// The characters of a field, up to its first NUL.
std::string_view field(const Block& block, size_t begin, size_t size) {
  const std::string_view whole(reinterpret_cast<const char*>(block.data()) + begin, size);
  return whole.substr(0, whole.find('\0'));
}

/// A number: octal digits between blanks, or GNU's binary with the top bit set. Nothing where it is neither.
std::optional<int64_t> number(const Block& block, size_t begin, size_t size) {
  if (block[begin] & 0x80) {
    if (block[begin] != 0x80) return std::nullopt;  // negative, or beyond 64 bits
    uint64_t value = 0;
    for (size_t i = begin + 1; i < begin + size; ++i) {
      if (value >> 54) return std::nullopt;
      value = value << 8 | block[i];
    }
    return static_cast<int64_t>(value);
  }
  std::string_view digits = field(block, begin, size);
  while (!digits.empty() && digits.front() == ' ') digits.remove_prefix(1);
  while (!digits.empty() && digits.back() == ' ') digits.remove_suffix(1);
  int64_t value = 0;
  if (digits.empty()) return value;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 8);
  if (error != std::errc() || end != digits.data() + digits.size() || value < 0) return std::nullopt;
  return value;
}

/// Whether the header's sum is that of its bytes, with the sum's own field as blanks; some old programs added the bytes
/// as signed.
bool sum_is_right(const Block& block) {
  const auto claimed = number(block, 148, 8);
  int64_t sum = 0, signed_sum = 0;
  for (size_t i = 0; i < block.size(); ++i) {
    const uint8_t byte = i >= 148 && i < 156 ? ' ' : block[i];
    sum += byte;
    signed_sum += static_cast<int8_t>(byte);
  }
  return claimed && (*claimed == sum || *claimed == signed_sum);
}

bool is_zero(const Block& block) {
  return std::all_of(block.begin(), block.end(), [](uint8_t b) { return b == 0; });
}

bool is_gzip(std::FILE* file) {
  std::array<uint8_t, 2> start{};
  const size_t n = std::fread(start.data(), 1, start.size(), file);
  std::rewind(file);
  return n == 2 && start[0] == 0x1f && start[1] == 0x8b;
}

}  // namespace

TarReader::TarReader(const std::string& path) : TarReader(nullptr, path) {}

TarReader::TarReader(std::FILE* file, const std::string& name) : owned_(nullptr, std::fclose), name_(name) {
  if (!file) {
    owned_ = open_file(name, "tar");
    file = owned_.get();
  }
  bytes_ = std::make_unique<Bytes>(file, name_, is_gzip(file), "tar");
}

TarReader::~TarReader() = default;

/// Fills the block with the next header; false at the archive's end.
bool TarReader::header() {
  const int64_t got = bytes_->read(block_);
  WEFT_CHECK(got > 0 || entries_ > 0, "tar", "{}: is empty", name_);
  WEFT_CHECK(got > 0, "tar", "{}: is cut off: it ends after {} entries and {} bytes, without the end mark", name_,
             entries_, bytes_->total());
  WEFT_CHECK(got == kBlock || entries_ > 0, "tar", "{}: is not a tar archive: it has {} bytes", name_, got);
  WEFT_CHECK(got == kBlock, "tar", "{}: is cut off inside the header of entry {}", name_, entries_ + 1);
  if (is_zero(block_)) {
    finish();
    return false;
  }
  WEFT_CHECK(sum_is_right(block_) || entries_ > 0, "tar",
             "{}: is not a tar archive: its first header's checksum is wrong", name_);
  WEFT_CHECK(sum_is_right(block_), "tar", "{}: is damaged: the checksum of header {} is wrong, after \"{}\"", name_,
             entries_ + 1, entry_.name);
  ++entries_;
  return true;
}

/// After one block of zeros: only zeros to the end.
void TarReader::finish() {
  WEFT_CHECK(!long_name_ && !long_size_, "tar", "{}: is cut off: a long name or size, and no file after it", name_);
  while (bytes_->read(block_) > 0) {
    WEFT_CHECK(is_zero(block_), "tar", "{}: other bytes follow the end mark of the archive, before byte {}", name_,
               bytes_->total());
    block_.fill(0);
  }
  ended_ = true;
}

/// Reads what fills the last block of `size` bytes.
void TarReader::pad(int64_t size) {
  const int64_t rest = (kBlock - size % kBlock) % kBlock;
  const int64_t got = bytes_->read(std::span(block_).first(static_cast<size_t>(rest)));
  WEFT_CHECK(got == rest, "tar", "{}: is cut off after the content of \"{}\"", name_, entry_.name);
}

std::string TarReader::text(int64_t size, const char* what) {
  std::string out;
  while (static_cast<int64_t>(out.size()) < size) {
    const size_t had = out.size();
    const int64_t wanted = std::min(kPiece, size - static_cast<int64_t>(had));
    out.resize(had + static_cast<size_t>(wanted));
    const int64_t got = bytes_->read({reinterpret_cast<uint8_t*>(out.data()) + had, static_cast<size_t>(wanted)});
    WEFT_CHECK(got == wanted, "tar", "{}: is cut off: {} \"{}\" claims {} bytes, {} are there", name_, what,
               entry_.name, size, static_cast<int64_t>(had) + got);
  }
  return out;
}

void TarReader::skip() {
  std::array<uint8_t, 1 << 14> scratch;
  const int64_t size = entry_.size;
  while (left_ > 0) {
    const int64_t wanted = std::min<int64_t>(left_, scratch.size());
    const int64_t got = bytes_->read(std::span(scratch).first(static_cast<size_t>(wanted)));
    left_ -= got;
    WEFT_CHECK(got == wanted, "tar", "{}: is cut off: file \"{}\" claims {} bytes, {} are there", name_, entry_.name,
               size, size - left_);
    if (left_ == 0) pad(size);
  }
}

/// The records "length key=value\n" of a pax header: the next file's path and size count here, the rest does not.
void TarReader::pax(const std::string& records) {
  std::string_view rest = records;
  while (!rest.empty()) {
    int64_t length = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), length);
    const auto digits = end - rest.data();
    const bool good = error == std::errc() && length > digits + 2 && length <= static_cast<int64_t>(rest.size()) &&
                      *end == ' ' && rest[static_cast<size_t>(length) - 1] == '\n';
    WEFT_CHECK(good, "tar", "{}: is damaged: the pax header of entry {} has a record of a wrong length", name_,
               entries_);
    const std::string_view record =
        rest.substr(static_cast<size_t>(digits) + 1, static_cast<size_t>(length - digits) - 2);
    rest.remove_prefix(static_cast<size_t>(length));
    const size_t equals = record.find('=');
    WEFT_CHECK(equals != std::string_view::npos, "tar", "{}: is damaged: the pax header of entry {} has no value",
               name_, entries_);
    const std::string_view key = record.substr(0, equals), value = record.substr(equals + 1);
    WEFT_CHECK(!key.starts_with("GNU.sparse"), "tar", "{}: holds a sparse file, which cannot be read", name_);
    if (key == "path") long_name_ = std::string(value);
    if (key == "size") {
      int64_t size = -1;
      const auto [stop, wrong] = std::from_chars(value.data(), value.data() + value.size(), size);
      WEFT_CHECK(wrong == std::errc() && stop == value.data() + value.size() && size >= 0, "tar",
                 "{}: is damaged: the pax header of entry {} gives the size \"{}\"", name_, entries_, value);
      long_size_ = size;
    }
  }
}

std::optional<TarEntry> TarReader::next() {
  skip();
  while (!ended_ && header()) {
    const char type = static_cast<char>(block_[156]);
    const auto claimed = number(block_, 124, 12);
    const std::string_view magic = field(block_, 257, 6), prefix = field(block_, 345, 155);
    std::string short_name(field(block_, 0, 100));
    if (magic == "ustar" && !prefix.empty()) short_name = std::string(prefix) + "/" + short_name;
    WEFT_CHECK(claimed, "tar", "{}: is damaged: the size of \"{}\" is no number", name_, short_name);
    const int64_t most = INT64_MAX - kBlock;
    if (type == 'L' || type == 'K' || type == 'x' || type == 'g') {  // about the next file, or about all
      WEFT_CHECK(*claimed <= kLongestName, "tar",
                 "{}: a name or header of {} bytes before entry {}: at most {} are read", name_, *claimed, entries_ + 1,
                 kLongestName);
      entry_.name = short_name;
      std::string content = text(*claimed, "the header");
      pad(*claimed);
      if (type == 'L') long_name_ = content.substr(0, content.find('\0'));
      if (type == 'x') pax(content);
      continue;
    }
    entry_ = {long_name_.value_or(short_name), long_size_.value_or(*claimed)};
    long_name_.reset();
    long_size_.reset();
    if (type >= '1' && type <= '6') continue;  // links, devices, folders, pipes: no content
    WEFT_CHECK(type == '0' || type == '\0' || type == '7', "tar", "{}: \"{}\" is an entry of type '{}' (0x{:02x}), {}",
               name_, entry_.name, type >= ' ' && type <= '~' ? type : '?', static_cast<uint8_t>(type),
               type == 'S' ? "a sparse file, which cannot be read" : "which is not known");
    WEFT_CHECK(entry_.size <= most, "tar", "{}: is damaged: \"{}\" claims {} bytes", name_, entry_.name, entry_.size);
    WEFT_CHECK(entry_.name.find('\0') == std::string::npos, "tar", "{}: is damaged: a name with a NUL", name_);
    left_ = entry_.size;
    if (!entry_.name.ends_with('/')) return entry_;
    skip();  // how the oldest tar marks a folder
  }
  return std::nullopt;
}

std::string TarReader::read(int64_t limit) {
  WEFT_CHECK(left_ == entry_.size, "tar", "{}: the content of \"{}\" was read before", name_, entry_.name);
  WEFT_CHECK(left_ <= limit, "tar", "{}: \"{}\" claims {} bytes, at most {} are read", name_, entry_.name, left_,
             limit);
  const int64_t size = std::exchange(left_, 0);
  std::string content = text(size, "file");
  pad(size);
  return content;
}

}  // namespace weft::data
