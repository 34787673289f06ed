// Memory of the runtime API: all of it the host's, kept apart by what it stands for.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

namespace simt {

enum class Place { pageable, pinned, device };

/// Where an address lies.
Place place_of(const void* address);
/// Whether [begin, begin + bytes) fits into one allocation; pageable memory is taken to.
bool fits(const void* begin, size_t bytes);

}  // namespace simt
