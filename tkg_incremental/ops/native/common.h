/* What the kernels share. All arrays are C-contiguous and of float or int64_t. */
#ifndef TKG_INCREMENTAL_COMMON_H
#define TKG_INCREMENTAL_COMMON_H

#include <stdint.h>
#include <string.h>

#if defined(_WIN32)
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif

/* One binary for old and new processors: the loader takes the version that fits the machine. The functions so marked
   work on a range and start no threads, because what OpenMP takes out of a function is compiled for one machine only. */
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__linux__)
#define FOR_EVERY_CPU __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default"), noinline))
#else
#define FOR_EVERY_CPU
#endif

#if defined(__GNUC__)
#define INLINE static inline __attribute__((always_inline))
#define PREFETCH(address) __builtin_prefetch(address)
#else
#define INLINE static inline
#define PREFETCH(address) ((void)0)
#endif

/* Takes numbers too small for full precision as zero, in this thread, until the mode it returns is restored. Processors
   take up to thirty times as long over them, and weight decay leaves tables full of them. */
#if defined(__SSE2__)
#include <xmmintrin.h>
INLINE uint32_t flush_tiny_numbers(void) {
    const uint32_t mode = _mm_getcsr();
    _mm_setcsr(mode | 0x8040); /* results, and what goes in */
    return mode;
}
INLINE void restore_mode(uint32_t mode) { _mm_setcsr(mode); }
#else
INLINE uint32_t flush_tiny_numbers(void) { return 0; }
INLINE void restore_mode(uint32_t mode) { (void)mode; }
#endif

/* Sixteen numbers that are added up at a time. A sum over a row is a sum in each lane, then a tree over the lanes, then
   what is left of the row; compilers add the lanes of a reduction one after the other, which takes as long as the row. */
enum { LANES = 16 };
typedef float lanes __attribute__((vector_size(64), aligned(4), may_alias));
typedef int32_t lane_bits __attribute__((vector_size(64), aligned(4), may_alias));
typedef float half_lanes __attribute__((vector_size(32), aligned(4), may_alias));
typedef float quarter_lanes __attribute__((vector_size(16), aligned(4), may_alias));

INLINE float sum_of_lanes(const lanes *given) {
    half_lanes low, high;
    memcpy(&low, given, sizeof low);
    memcpy(&high, (const char *)given + sizeof low, sizeof high);
    low += high;
    quarter_lanes first, last;
    memcpy(&first, &low, sizeof first);
    memcpy(&last, (const char *)&low + sizeof first, sizeof last);
    first += last;
    return (first[0] + first[2]) + (first[1] + first[3]);
}

INLINE int64_t at_most(int64_t a, int64_t b) { return a < b ? a : b; }

#endif
