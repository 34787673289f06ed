// WEFT_HD marks functions that kernels of every device call.
#pragma once

#ifdef __CUDACC__
#define WEFT_HD __host__ __device__ __forceinline__
#else
#define WEFT_HD inline __attribute__((always_inline))
#endif
