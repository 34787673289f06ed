// Small kernels for the emulator's own test: good ones, and one for every mistake that it has to report.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace weft::planted {

// ---- good ----
void scale(const float* x, float* y, int n, float factor, cudaStream_t stream = nullptr);
/// sums[block] of 256 values each; static shared memory and shuffles.
void block_sums(const float* x, float* sums, int n, cudaStream_t stream = nullptr);
/// Rows of at most 1000 values; dynamic shared memory.
void softmax(const float* x, float* y, int rows, int columns, cudaStream_t stream = nullptr);
void transpose(const float* x, float* y, int rows, int columns, cudaStream_t stream = nullptr);
void histogram(const int* x, int* counts, float* weights, int n, int bins, cudaStream_t stream = nullptr);
/// The whole sum by the block that comes last; fences and a counter between blocks.
void sum_by_last_block(const float* x, float* partial, unsigned* counter, float* sum, int n);
/// What each warp function gives lane by lane: 32 numbers for each of 12.
inline constexpr int kWarpFunctions = 12;
void warp_functions(uint64_t* results);
void other_functions(double* results);
/// 16-byte values through shuffles.
void rotate(double2* x);
void coordinates(int* counts, dim3 grid, dim3 block);
/// A sum of halves with __syncwarp, for 32 values.
void warp_sum(const float* x, float* sum);

// ---- with a mistake; `fixed` leaves it out ----
void out_of_bounds_global(const float* x, float* y, int n, bool fixed);
void out_of_bounds_static(float* y, bool fixed);
void out_of_bounds_dynamic(float* y, bool fixed);
void write_behind_dynamic(bool fixed);
void misaligned_vector(const float* x, float* y, bool fixed);
void divergent_barrier(float* y, bool fixed);
void early_return(float* y, int n, bool fixed);
void wrong_mask(float* y, bool fixed);
void lane_outside_mask(float* y, bool fixed);
void partial_warp(float* y, bool fixed);
void race_without_barrier(const float* x, float* y, bool fixed);
void race_without_syncwarp(const float* x, float* y, bool fixed);
void race_by_reuse(const float* x, float* y, bool fixed);
void race_in_block(const int* index, float* y, bool fixed);
void race_between_blocks(float* y, bool fixed);
void uninitialised_static(float* y, bool fixed);
void uninitialised_template(float* y, bool fixed);
void uninitialised_dynamic(float* y, bool fixed);
void trap(bool fixed);
void launch_trap(cudaStream_t stream);
void throwing(bool fixed);
void configure(dim3 grid, dim3 block, size_t shared_bytes);

}  // namespace weft::planted
