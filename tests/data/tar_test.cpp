// The tar reader: what other programs write, and a message of its own for each kind of damage.
#include "data/tar.h"

#include <gtest/gtest.h>

#include <map>

#include "tensor/error.h"
#include "tests/data/files.h"

namespace weft::data {
namespace {

using namespace testing_files;
using Files = std::map<std::string, std::string>;

Files files_in(const std::string& path) {
  Files files;
  TarReader archive(path);
  while (const auto entry = archive.next()) {
    files[entry->name] = archive.read();
    EXPECT_EQ(files[entry->name].size(), static_cast<size_t>(entry->size));
  }
  return files;
}

Files read_bytes(const std::string& bytes) {
  const Folder folder;
  write(folder / "x.tar", bytes);
  return files_in(folder / "x.tar");
}

void expect_fault(const std::string& bytes, const std::string& words) {
  try {
    read_bytes(bytes);
    ADD_FAILURE() << "was read, expected: " << words;
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(words), std::string::npos)
        << "wanted \"" << words << "\", got \"" << error.what() << '"';
    EXPECT_NE(std::string(error.what()).find("x.tar"), std::string::npos) << error.what();
  }
}

std::string pax_record(const std::string& text) {
  const size_t rest = text.size() + 2;
  size_t length = rest + 1;
  while (std::to_string(length).size() + rest != length) ++length;
  return std::to_string(length) + " " + text + "\n";
}

TEST(Tar, ReadsFilesPlainAndGzip) {
  const std::string big(1500, 'b');
  const std::string bytes = tar_entry("d/", "", '5') + tar_entry("d/one", "first") + tar_entry("d/two", big) +
                            tar_entry("link", "", '2') + tar_entry("none", "") +
                            tar_entry("full", std::string(512, 'f'));
  const Files wanted{{"d/one", "first"}, {"d/two", big}, {"none", ""}, {"full", std::string(512, 'f')}};
  EXPECT_EQ(read_bytes(bytes + tar_end), wanted);
  EXPECT_EQ(read_bytes(gzip(bytes + tar_end)), wanted);
  EXPECT_EQ(read_bytes(bytes + tar_end + std::string(8192, '\0')), wanted);  // blocks of 20, as programs write them
  EXPECT_EQ(read_bytes(bytes + tar_end.substr(512)), wanted);                // one block of zeros is an end, too
  EXPECT_EQ(read_bytes(tar_end), Files());
}

TEST(Tar, FilesMayBePassedOver) {
  const Folder folder;
  const std::string big(70000, 'b');
  write(folder / "x.tar", tar_entry("a", big) + tar_entry("b", "two") + tar_entry("c", big) + tar_end);
  TarReader archive(folder / "x.tar");
  EXPECT_EQ(archive.next()->name, "a");
  EXPECT_EQ(archive.next()->name, "b");
  EXPECT_EQ(archive.read(), "two");
  EXPECT_THROW(archive.read(), Error);
  EXPECT_EQ(archive.next()->size, 70000);
  EXPECT_THROW(archive.read(100), Error);
  EXPECT_FALSE(archive.next());
  EXPECT_FALSE(archive.next());
}

TEST(Tar, LongNamesOfBothKinds) {
  const std::string name(300, 'n'), other(200, 'o');
  std::string prefixed = tar_entry("file", "in the prefix");
  prefixed.replace(345, 6, "folder");
  unsigned sum = 0;
  for (size_t i = 0; i < 512; ++i) sum += i >= 148 && i < 156 ? ' ' : static_cast<unsigned char>(prefixed[i]);
  char digits[8];
  std::snprintf(digits, sizeof digits, "%06o", sum);
  prefixed.replace(148, 7, digits, 7);
  const std::string bytes = tar_entry("././@LongLink", name + '\0', 'L') + tar_entry(name.substr(0, 100), "gnu") +
                            tar_entry("global", pax_record("comment=none"), 'g') +
                            tar_entry("pax", pax_record("mtime=1.5") + pax_record("path=" + other), 'x') +
                            tar_entry("short", "pax") + prefixed + tar_entry("plain", "after") + tar_end;
  EXPECT_EQ(read_bytes(bytes),
            (Files{{name, "gnu"}, {other, "pax"}, {"folder/file", "in the prefix"}, {"plain", "after"}}));
  EXPECT_EQ(read_bytes(tar_entry("pax", pax_record("size=3"), 'x') + tar_entry("sized", "abc", '0', 0) + tar_end),
            (Files{{"sized", "abc"}}));
}

TEST(Tar, EachDamageHasItsMessage) {
  const std::string one = tar_entry("one", std::string(700, '1')), two = tar_entry("two", "2");
  const std::string good = one + two + tar_end;
  expect_fault("", "is empty");
  expect_fault("PK not a tar", "is not a tar archive: it has 12 bytes");
  expect_fault(std::string(2000, 'x'), "is not a tar archive: its first header's checksum is wrong");
  for (const size_t cut : {513, 1000, 1535})
    expect_fault(good.substr(0, cut), cut < 1212 ? "file \"one\" claims 700 bytes" : "cut off after the content");
  expect_fault(good.substr(0, 1600), "cut off inside the header of entry 2");
  expect_fault(one + two, "it ends after 2 entries and 2560 bytes, without the end mark");
  std::string flipped = good;
  flipped[1536 + 2] ^= 1;
  expect_fault(flipped, "the checksum of header 2 is wrong, after \"one\"");
  expect_fault(good + two, "other bytes follow the end mark");
  expect_fault(one + tar_end.substr(512) + two + tar_end, "other bytes follow the end mark");
  expect_fault(tar_entry("s", "", 'S') + tar_end, "a sparse file, which cannot be read");
  expect_fault(tar_entry("v", "", 'V') + tar_end, "an entry of type 'V'");
  expect_fault(tar_entry("huge", "small", '0', 077777777777) + tar_end,
               "\"huge\" claims 8589934591 bytes, at most 1073741824 are read");
  expect_fault(tar_entry("big", "small", '0', 1 << 29) + tar_end,
               "file \"big\" claims 536870912 bytes, 1536 are there");
  expect_fault(tar_entry("n", std::string(70000, 'n'), 'L') + tar_end, "a name or header of 70000 bytes");
  expect_fault(tar_entry("n", "name", 'L') + tar_end, "a long name or size, and no file after it");
  for (const char* record : {"99 path=x\n", "2 path=x\n", "path=x\n", "10 path=xy", "-9 path=x\n"})
    expect_fault(tar_entry("p", record, 'x') + tar_entry("f", "") + tar_end, "a record of a wrong length");
  expect_fault(tar_entry("p", "8 path\n\n", 'x') + tar_end, "has no value");
  expect_fault(tar_entry("p", pax_record("size=-1"), 'x') + tar_end, "gives the size \"-1\"");
  const std::string packed = gzip(good);
  for (size_t cut = 2; cut < packed.size(); cut += 3) expect_fault(packed.substr(0, cut), "cut off");
  expect_fault(packed + "!!", "other bytes follow the end of the gzip stream");
  std::string sum = packed;
  sum[packed.size() - 8] ^= 1;
  expect_fault(sum, "the gzip stream is damaged");
}

TEST(Tar, BinarySizes) {
  std::string header = tar_entry("binary", "abc");
  header.replace(124, 12, std::string("\x80\0\0\0\0\0\0\0\0\0\0\x03", 12));
  auto sign = [&] {
    header.replace(148, 8, "        ");
    unsigned sum = 0;
    for (size_t i = 0; i < 512; ++i) sum += static_cast<unsigned char>(header[i]);
    char digits[8];
    std::snprintf(digits, sizeof digits, "%06o", sum);
    header.replace(148, 7, digits, 7);
  };
  sign();
  EXPECT_EQ(read_bytes(header + tar_end), (Files{{"binary", "abc"}}));
  header[124] = '\xff';
  sign();
  expect_fault(header + tar_end, "the size of \"binary\" is no number");
  header.replace(124, 12, std::string("\x80\x7f\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 12));
  sign();
  expect_fault(header + tar_end, "is no number");
  header.replace(124, 12, "0000000089\0\0");
  sign();
  expect_fault(header + tar_end, "is no number");
}

}  // namespace
}  // namespace weft::data
