//===- Version.cpp - tadVersion -------------------------------------------===//

#include "autodiff-c/Autodiff.h"

#include "llvm/ADT/StringExtras.h"

#include <cstring>
#include <elf.h>
#include <link.h>
#include <string>

using namespace llvm;

/// Of the CPU backend's object files (cmake/code_hash.py).
extern "C" const char tadCpuCode[];

namespace {
struct Search {
  uintptr_t address;
  std::string buildId;
};
} // namespace

/// Finds the GNU build id of the object that `search->address` lies in.
static int findBuildId(dl_phdr_info *info, size_t, void *data) {
  auto *search = static_cast<Search *>(data);
  ArrayRef<ElfW(Phdr)> headers(info->dlpi_phdr, info->dlpi_phnum);
  bool contains = any_of(headers, [&](const ElfW(Phdr) & header) {
    uintptr_t begin = info->dlpi_addr + header.p_vaddr;
    return header.p_type == PT_LOAD && search->address >= begin &&
           search->address < begin + header.p_memsz;
  });
  if (!contains)
    return 0;
  for (const ElfW(Phdr) &header : headers) {
    if (header.p_type != PT_NOTE)
      continue;
    auto *position =
        reinterpret_cast<const char *>(info->dlpi_addr + header.p_vaddr);
    const char *end = position + header.p_memsz;
    while (position + sizeof(ElfW(Nhdr)) <= end) {
      auto *note = reinterpret_cast<const ElfW(Nhdr) *>(position);
      const char *name = position + sizeof(*note);
      const char *content = name + alignTo(note->n_namesz, 4);
      if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 &&
          !std::memcmp(name, "GNU", 4))
        search->buildId =
            toHex(ArrayRef<uint8_t>(reinterpret_cast<const uint8_t *>(content),
                                    note->n_descsz),
                  /*LowerCase=*/true);
      position = content + alignTo(note->n_descsz, 4);
    }
  }
  return 1;
}

const char *tadVersion(void) {
  // The linker's build id is a hash of the library's contents, so a cache entry
  // never outlives the compiler that wrote it.
  static const std::string version = [] {
    Search search{reinterpret_cast<uintptr_t>(&tadVersion), ""};
    dl_iterate_phdr(findBuildId, &search);
    return std::string(TAD_RELEASE "+") + search.buildId + "." + tadCpuCode;
  }();
  return version.c_str();
}
