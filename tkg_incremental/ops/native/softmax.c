/* Softmax of rows of scores beside one more score, the true answer's, with some places left out. */
#include "exponential.h"

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
