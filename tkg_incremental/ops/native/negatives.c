/* From random numbers to entities that are no true answers. */
#include <string.h>

#include "common.h"

/* Bits for entities, each shared by every 4,096th: one look rules out nearly all entities that are no answers. */
enum { WORDS = 64, MAX_DRAWS = 32 };

INLINE int is_marked(const uint64_t *marks, uint64_t entity) { return marks[entity / 64 % WORDS] >> entity % 64 & 1; }

/* The first of the ascending keys first … end - 1 that is not below `key`. */
INLINE int64_t find_key(const int64_t *keys, int64_t first, int64_t end, int64_t key) {
    while (first < end) {
        const int64_t middle = first + (end - first) / 2;
        if (keys[middle] < key)
            first = middle + 1;
        else
            end = middle;
    }
    return first;
}

/* Replaces numbers [rows, samples] by entities. Row i takes one of the first known[i] entities of the pool that is no
   answer of its query at time[i]. Keys are query · entities + answer, ascending, with the steps first … last at which an
   answer is true. -1 where none was found; missing[i] counts these. */
EXPORT void choose_negatives(const int64_t *pool, const int64_t *known, const int64_t *time, const int64_t *query,
                             const int64_t *keys, const int64_t *first, const int64_t *last, int64_t facts,
                             int64_t entities, int64_t *numbers, int64_t *missing, int64_t rows, int64_t samples,
                             int64_t threads) {
#pragma omp parallel for num_threads((int)threads) schedule(static)
    for (int64_t i = 0; i < rows; ++i) {
        int64_t *const out = numbers + i * samples;
        const int64_t low = query[i] * entities, when = time[i], begin = find_key(keys, 0, facts, low);
        int64_t end = begin;
        uint64_t marks[WORDS];
        memset(marks, 0, sizeof marks);
        for (; end < facts && keys[end] < low + entities; ++end)
            if (first[end] <= when && when <= last[end]) {
                const uint64_t entity = (uint64_t)(keys[end] - low);
                marks[entity / 64 % WORDS] |= 1ULL << entity % 64;
            }
        const uint64_t size = (uint64_t)(known[i] > 0 ? known[i] : 1);
        for (int64_t k = 0; k < samples; ++k) {
            uint64_t number = (uint64_t)out[k];
            int64_t chosen = known[i] > 0 ? pool[number % size] : -1;
            for (int draws = 1; chosen >= 0 && is_marked(marks, (uint64_t)chosen); ++draws) {
                int is_answer = 0;
                for (int64_t j = find_key(keys, begin, end, low + chosen); j < end && keys[j] == low + chosen; ++j)
                    is_answer |= first[j] <= when && when <= last[j];
                if (!is_answer) break;
                number = number * 6364136223846793005ULL + 1442695040888963407ULL;
                chosen = draws < MAX_DRAWS ? pool[(number >> 33 & 0x7FFFFFFF) % size] : -1;
            }
            out[k] = chosen;
            missing[i] += chosen < 0;
        }
    }
}
