/* What the kernels share. All arrays are C-contiguous and of float or int64_t. */
#ifndef TKG_INCREMENTAL_COMMON_H
#define TKG_INCREMENTAL_COMMON_H

#include <stdint.h>

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

INLINE int64_t at_most(int64_t a, int64_t b) { return a < b ? a : b; }

#endif
