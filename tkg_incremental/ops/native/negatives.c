/* From random numbers to entities that are no true answers. */
#include <stdlib.h>
#include <string.h>

#include "common.h"

/* Bits for entities, each shared by every 4,096th: one look rules out nearly all entities that are no answers. */
enum { WORDS = 64, MAX_DRAWS = 32 };

INLINE int is_marked(const uint64_t *marks, uint64_t entity) { return marks[entity / 64 % WORDS] >> entity % 64 & 1; }

INLINE int is_among(const int64_t *answers, int64_t count, int64_t entity) {
    const int64_t *first = answers;
    for (int64_t left = count; left > 0;) {
        const int64_t half = left / 2;
        if (first[half] == entity) return 1;
        if (first[half] < entity)
            first += half + 1, left -= half + 1;
        else
            left = half;
    }
    return 0;
}

/* Replaces numbers [rows, samples] by entities. Row i takes one of the first known[i] entities of the pool that is no
   answer at time[i]; its answers are those of the entries start[i] … start[i] + count[i] - 1 of the index, ascending by
   entity, whose interval holds time[i]. -1 where none was found; missing[i] counts these. */
EXPORT void choose_negatives(const int64_t *pool, const int64_t *known, const int64_t *time, const int64_t *entity,
                             const int64_t *first, const int64_t *last, const int64_t *start, const int64_t *count,
                             int64_t *numbers, int64_t *missing, int64_t longest, int64_t rows, int64_t samples,
                             int64_t threads) {
#pragma omp parallel num_threads((int)threads)
    {
        int64_t *answers = malloc((size_t)(longest > 0 ? longest : 1) * sizeof(int64_t));
#pragma omp for schedule(static)
        for (int64_t i = 0; i < rows; ++i) {
            int64_t *const out = numbers + i * samples;
            uint64_t marks[WORDS];
            int64_t found = 0;
            memset(marks, 0, sizeof marks);
            for (int64_t j = start[i]; j < start[i] + count[i]; ++j)
                if (first[j] <= time[i] && time[i] <= last[j]) {
                    answers[found++] = entity[j];
                    marks[(uint64_t)entity[j] / 64 % WORDS] |= 1ULL << (uint64_t)entity[j] % 64;
                }
            const uint64_t size = (uint64_t)(known[i] > 0 ? known[i] : 1);
            for (int64_t k = 0; k < samples; ++k) {
                uint64_t number = (uint64_t)out[k];
                int64_t chosen = known[i] > 0 ? pool[number % size] : -1;
                for (int draws = 1; chosen >= 0 && is_marked(marks, (uint64_t)chosen) && is_among(answers, found, chosen);
                     ++draws) {
                    number = number * 6364136223846793005ULL + 1442695040888963407ULL;
                    chosen = draws < MAX_DRAWS ? pool[(number >> 33 & 0x7FFFFFFF) % size] : -1;
                }
                out[k] = chosen;
                missing[i] += chosen < 0;
            }
        }
        free(answers);
    }
}
