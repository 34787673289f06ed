// Finding and reading reviews in trees and archives.
#include "data/review_files.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <future>
#include <optional>
#include <string_view>
#include <utility>

#include "data/sha256.h"
#include "data/tar.h"
#include "tensor/error.h"

namespace weft::data {
namespace {

namespace fs = std::filesystem;

constexpr size_t kPortion = 256;
constexpr int64_t kLongestReview = int64_t{64} << 20;

/// What a path's last three parts say; nothing where it is no review.
std::optional<Review> review_at(std::string_view path) {
  auto last = [&path] {
    const size_t slash = path.rfind('/');
    const std::string_view part = slash == std::string_view::npos ? path : path.substr(slash + 1);
    path = slash == std::string_view::npos ? std::string_view() : path.substr(0, slash);
    return part;
  };
  const std::string_view file = last(), kind = last(), split = last();
  if (!file.ends_with(".txt") || file.starts_with('.')) return std::nullopt;
  if ((kind != "pos" && kind != "neg") || (split != "train" && split != "test")) return std::nullopt;
  Review review{.test = split == "test", .positive = kind == "pos", .file = std::string(file)};
  const auto [end, error] = std::from_chars(file.data(), file.data() + file.size(), review.id);
  if (error != std::errc() || review.id < 0) review.id = INT64_MAX;
  return review;
}

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

/// Calls f(entry, review) for each review file of a tree.
template <class F>
void walk(const std::string& tree, F&& f) {
  for (const char* split : {"train", "test"})
    for (const char* kind : {"neg", "pos"}) {
      const fs::path folder = fs::path(tree) / split / kind;
      if (!is_folder(folder)) continue;
      try {
        for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
          auto review = review_at(entry.path().string());
          if (!review || !entry.is_regular_file()) continue;
          review->path = entry.path().string();
          if (!f(entry, std::move(*review))) return;
        }
      } catch (const fs::filesystem_error& error) {
        fail("imdb", fmt::format("{}: cannot be read: {}", folder.string(), error.code().message()));
      }
    }
}

std::string fingerprint_of_tree(const std::string& tree) {
  std::vector<std::string> lines;
  walk(tree, [&](const fs::directory_entry& entry, const Review& review) {
    const auto time = entry.last_write_time().time_since_epoch();
    lines.push_back(fmt::format("{}/{}/{} {} {}\n", review.test, review.positive, review.file, entry.file_size(),
                                std::chrono::duration_cast<std::chrono::nanoseconds>(time).count()));
    return true;
  });
  std::sort(lines.begin(), lines.end());
  Sha256 sum;
  for (const std::string& line : lines) sum.update({reinterpret_cast<const uint8_t*>(line.data()), line.size()});
  return sum.hex();
}

}  // namespace

void ReviewCounts::add(const Review& review) {
  int64_t& train = review.positive ? train_positive : train_negative;
  int64_t& test = review.positive ? test_positive : test_negative;
  ++(review.test ? test : train);
}

std::vector<std::string> review_sources(const std::string& folder) {
  if (is_file(folder)) return {folder};
  const auto archive = [&](const char* stem) -> std::string {
    for (const char* ending : {".tar.gz", ".tgz", ".tar"})
      if (const fs::path path = fs::path(folder) / (std::string(stem) + ending); is_file(path)) return path.string();
    return {};
  };
  std::vector<std::string> halves;
  for (const char* stem : {"aclImdb-train", "aclImdb-test"})
    if (std::string path = archive(stem); !path.empty()) halves.push_back(path);
  if (halves.size() == 2) return halves;
  if (std::string whole = archive("aclImdb_v1"); !whole.empty()) return {whole};
  for (const fs::path& tree : {fs::path(folder) / "aclImdb", fs::path(folder)})
    for (const char* split : {"train", "test"})
      if (is_folder(tree / split / "pos") || is_folder(tree / split / "neg")) return {tree.string()};
  return halves;
}

std::string fingerprint(std::span<const std::string> sources) {
  std::vector<std::future<std::string>> sums;
  for (const std::string& source : sources)
    sums.push_back(std::async(std::launch::async, [&source] {
      return is_folder(source) ? fingerprint_of_tree(source) : sha256_of_file(source);
    }));
  std::string all;
  for (auto& sum : sums) all += sum.get() + "\n";
  return all;
}

void read_reviews(const std::string& source, const std::function<bool(std::vector<Review>)>& f) {
  std::vector<Review> portion;
  bool more = true;
  const auto give = [&] { more = f(std::exchange(portion, {})); };
  const auto take = [&](Review review) {
    portion.push_back(std::move(review));
    if (portion.size() == kPortion) give();
    return more;
  };
  if (is_folder(source)) {
    walk(source, [&](const fs::directory_entry&, Review review) { return take(std::move(review)); });
  } else {
    TarReader archive(source);
    while (more) {
      const auto entry = archive.next();
      if (!entry) break;
      auto review = review_at(entry->name);
      if (!review) continue;
      review->text = archive.read(kLongestReview);
      take(std::move(*review));
    }
  }
  if (more && !portion.empty()) give();
}

ReviewCounts count_reviews(const std::string& source) {
  ReviewCounts counts;
  if (is_folder(source)) {
    walk(source, [&](const fs::directory_entry&, const Review& review) {
      counts.add(review);
      return true;
    });
    return counts;
  }
  TarReader archive(source);
  while (const auto entry = archive.next())
    if (const auto review = review_at(entry->name)) counts.add(*review);
  return counts;
}

}  // namespace weft::data
