/* Softmax of rows of scores beside one more score, the true answer's, with some places left out. */
#include <math.h>
#include <string.h>

#include "common.h"

/* e^x for x ≤ 0 to about one unit in the last place; zero below the smallest normal number. */
INLINE float exponential(float x) {
    const float low = x < -87.0f ? -87.0f : x;
    const float n = floorf(low * 1.44269504088896341f + 0.5f);
    /* ln 2 in two parts; the first has so few bits that its product is exact. */
    float r = low - n * 0.693359375f;
    r = r + n * 2.12194440e-4f;
    float y = 1.9875691500e-4f;
    y = y * r + 1.3981999507e-3f;
    y = y * r + 8.3334519073e-3f;
    y = y * r + 4.1665795894e-2f;
    y = y * r + 1.6666665459e-1f;
    y = y * r + 5.0000001201e-1f;
    y = y * r * r + r + 1.0f;
    const int32_t bits = ((int32_t)n + 127) << 23;
    float scale;
    memcpy(&scale, &bits, sizeof scale);
    return x < -87.0f ? 0.0f : y * scale;
}

FOR_EVERY_CPU
static void softmax_of(float *scores, int64_t width, float true_score, float *peak, float *total) {
    float largest = true_score;
#pragma omp simd reduction(max : largest)
    for (int64_t j = 0; j < width; ++j) largest = scores[j] > largest ? scores[j] : largest;
    float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < width; ++j) {
        scores[j] = exponential(scores[j] - largest);
        sum += scores[j];
    }
    *peak = largest;
    *total = sum + exponential(true_score - largest);
}

/* Scores [rows, width] become e^(score - peak), zero at the `masked` places (row · width + column); `peak` [rows] is the
   largest score of a row with its true answer, `total` [rows] the sum of the row with it. */
EXPORT void masked_softmax(float *scores, const float *true_scores, const int64_t *masked, int64_t count, int64_t rows,
                           int64_t width, float *peak, float *total, int64_t threads) {
    for (int64_t k = 0; k < count; ++k) scores[masked[k]] = -INFINITY;
#pragma omp parallel for num_threads((int)threads) schedule(static)
    for (int64_t b = 0; b < rows; ++b)
        softmax_of(scores + b * width, width, true_scores[b], peak + b, total + b);
}
