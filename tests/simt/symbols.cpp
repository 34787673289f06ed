// Reads ELF symbol tables. A static variable of a function is called _ZZ<function>E<name>, so the arrays of a function
// are those whose names begin as its mark's does.
#include "tests/simt/symbols.h"

#include <cxxabi.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <string_view>

namespace simt {
namespace {

struct Module {
  uintptr_t base = 0;
  const Elf64_Sym* symbols = nullptr;
  size_t count = 0;
  const char* names = nullptr;

  const Elf64_Sym* at(const void* address) const {
    const uintptr_t value = reinterpret_cast<uintptr_t>(address) - base;
    for (size_t i = 0; i < count; ++i) {
      const Elf64_Sym& symbol = symbols[i];
      if (symbol.st_value == value && symbol.st_shndx != SHN_UNDEF && symbol.st_size != 0) return &symbol;
    }
    return nullptr;
  }
  std::string_view name(const Elf64_Sym& symbol) const { return names + symbol.st_name; }
};

/// Finds the symbol table in a file that is mapped for as long as the process lives.
void read_symbols(const char* path, Module& module) {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  struct stat status {};
  void* memory = MAP_FAILED;
  if (fstat(file, &status) == 0) {
    memory = mmap(nullptr, static_cast<size_t>(status.st_size), PROT_READ, MAP_PRIVATE, file, 0);
  }
  close(file);
  if (memory == MAP_FAILED) return;
  const auto* bytes = static_cast<const char*>(memory);
  const auto* header = reinterpret_cast<const Elf64_Ehdr*>(bytes);
  const auto* sections = reinterpret_cast<const Elf64_Shdr*>(bytes + header->e_shoff);
  for (int i = 0; i < header->e_shnum; ++i) {
    if (sections[i].sh_type != SHT_SYMTAB) continue;
    module.symbols = reinterpret_cast<const Elf64_Sym*>(bytes + sections[i].sh_offset);
    module.count = sections[i].sh_size / sizeof(Elf64_Sym);
    module.names = bytes + sections[sections[i].sh_link].sh_offset;
  }
}

struct Search {
  uintptr_t address;
  Module* found;
};

int visit(dl_phdr_info* info, size_t, void* argument) {
  static std::map<uintptr_t, Module> modules;
  auto& search = *static_cast<Search*>(argument);
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info->dlpi_phdr[i];
    const uintptr_t begin = info->dlpi_addr + segment.p_vaddr;
    if (segment.p_type != PT_LOAD || search.address < begin || search.address >= begin + segment.p_memsz) continue;
    auto [place, fresh] = modules.try_emplace(info->dlpi_addr);
    if (fresh) {
      place->second.base = info->dlpi_addr;
      read_symbols(info->dlpi_name[0] == '\0' ? "/proc/self/exe" : info->dlpi_name, place->second);
    }
    search.found = &place->second;
    return 1;
  }
  return 0;
}

const Module* module_of(const void* address) {
  Search search{reinterpret_cast<uintptr_t>(address), nullptr};
  dl_iterate_phdr(visit, &search);
  return search.found;
}

}  // namespace

SharedArrays& arrays_beside(const void* mark) {
  static std::map<std::string, SharedArrays, std::less<>> functions;
  constexpr std::string_view kMark = "simt_mark_";
  const Module* module = module_of(mark);
  const Elf64_Sym* symbol = module ? module->at(mark) : nullptr;
  const std::string_view name = symbol ? module->name(*symbol) : "";
  size_t end = name.rfind(kMark);
  if (end == std::string_view::npos || !name.starts_with("_ZZ")) return functions[""];
  while (name[end - 1] >= '0' && name[end - 1] <= '9') --end;  // the length of the name
  const std::string_view function = name.substr(0, end);
  auto [place, fresh] = functions.try_emplace(std::to_string(module->base) + std::string(function));
  for (size_t i = 0; fresh && i < module->count; ++i) {
    const Elf64_Sym& other = module->symbols[i];
    if (ELF64_ST_TYPE(other.st_info) != STT_OBJECT || other.st_size == 0) continue;
    const std::string_view candidate = module->name(other);
    if (!candidate.starts_with(function) || candidate.find(kMark) != std::string_view::npos) continue;
    place->second.arrays.push_back({reinterpret_cast<void*>(module->base + other.st_value), other.st_size});
  }
  return place->second;
}

std::string function_name(const void* address) {
  const Module* module = module_of(address);
  const Elf64_Sym* symbol = module ? module->at(address) : nullptr;
  if (!symbol) return "kernel";
  const std::string mangled(module->name(*symbol));
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status), &std::free);
  if (!text) return mangled;
  std::string name = text.get();
  if (name.starts_with("void ")) name.erase(0, 5);  // templates name what they return
  int depth = 0;
  for (size_t i = name.size(); i-- > 0;) {  // the parameters are no help
    depth += name[i] == ')' ? 1 : name[i] == '(' ? -1 : 0;
    if (depth == 0) {
      if (name[i] == '(') name.resize(i);
      break;
    }
  }
  return name;
}

}  // namespace simt
