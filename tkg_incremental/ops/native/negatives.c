/* From random numbers to entities that are no true answers. */
#include <string.h>

#include "common.h"

/* Bits for columns, each shared by every 4,096th: a look at them rules out nearly all that are no answers, without a
   search whose every turn is a guess. */
enum { WORDS = 64 };

INLINE void mark(uint64_t *marks, const int64_t *answers, int64_t count) {
    memset(marks, 0, WORDS * sizeof(uint64_t));
    for (int64_t j = 0; j < count; ++j) marks[(uint64_t)answers[j] / 64 % WORDS] |= 1ULL << (uint64_t)answers[j] % 64;
}

INLINE int is_marked(const uint64_t *marks, uint64_t column) { return marks[column / 64 % WORDS] >> column % 64 & 1; }

/* How many of the ascending answers, each less its place, are at most `number`. */
INLINE int64_t skipped(const int64_t *answers, int64_t count, int64_t number) {
    int64_t low = 0, high = count;
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (answers[middle] - middle <= number)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

INLINE int is_among(const int64_t *answers, int64_t count, int64_t column) {
    const int64_t *first = answers;
    for (int64_t left = count; left > 0;) {
        const int64_t half = left / 2;
        if (first[half] == column) return 1;
        if (first[half] < column)
            first += half + 1, left -= half + 1;
        else
            left = half;
    }
    return 0;
}

/* From numbers to columns, both [rows, samples]. Row i may take the first known[i] columns, but for the ascending ones
   at answers[start[i] …]. */
EXPORT void choose_negatives(const int64_t *numbers, const int64_t *known, const int64_t *answers,
                             const int64_t *start, const int64_t *count, int64_t *out, int64_t rows, int64_t samples,
                             int64_t threads) {
#pragma omp parallel for num_threads((int)threads) schedule(static)
    for (int64_t i = 0; i < rows; ++i) {
        const uint64_t columns = (uint64_t)(known[i] > 0 ? known[i] : 1);
        const uint64_t free = (uint64_t)(known[i] - count[i] > 0 ? known[i] - count[i] : 1);
        const int64_t *taken = answers + start[i];
        uint64_t marks[WORDS];
        mark(marks, taken, count[i]);
        for (int64_t k = 0; k < samples; ++k) {
            const uint64_t number = (uint64_t)numbers[i * samples + k];
            int64_t column = (int64_t)(number % columns);
            if (is_marked(marks, (uint64_t)column) && is_among(taken, count[i], column)) {
                const int64_t rest = (int64_t)(number / columns % free);
                column = rest + skipped(taken, count[i], rest);
            }
            out[i * samples + k] = column;
        }
    }
}
