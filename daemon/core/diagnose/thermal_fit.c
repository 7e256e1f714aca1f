/* SPDX-License-Identifier: Apache-2.0 */
/* thermal_fit.c: fits exponentials of given time constants: recursive sums and a regression with
 * two or three terms. */
#include "daemon/core/diagnose/thermal_fit.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { POINTS_MIN = 8 };

/* Of the terms, the values, and their products, over the points from one on. */
struct sums {
	double n, slow, fast, slow_slow, slow_fast, fast_fast;
	double y, y_slow, y_fast, y_y;
};

/* Adds an earlier point, where both exponentials are 1. */
static void prepend(struct sums *sums, double slow, double fast, double y)
{
	sums->n += 1;
	sums->slow = 1 + slow * sums->slow;
	sums->fast = 1 + fast * sums->fast;
	sums->slow_slow = 1 + slow * slow * sums->slow_slow;
	sums->slow_fast = 1 + slow * fast * sums->slow_fast;
	sums->fast_fast = 1 + fast * fast * sums->fast_fast;
	sums->y += y;
	sums->y_slow = y + slow * sums->y_slow;
	sums->y_fast = y + fast * sums->y_fast;
	sums->y_y += y * y;
}

/* Gauss–Jordan in place; the matrix is symmetric and positive definite, or false. */
static bool invert(double matrix[THERMAL_TERMS][THERMAL_TERMS], size_t terms)
{
	for (size_t pivot = 0; pivot < terms; pivot++) {
		const double scale = matrix[pivot][pivot];
		if (!(scale > 1e-10)) {
			return false;
		}
		matrix[pivot][pivot] = 1;
		for (size_t i = 0; i < terms; i++) {
			matrix[pivot][i] /= scale;
		}
		for (size_t row = 0; row < terms; row++) {
			const double factor = matrix[row][pivot];
			if (row == pivot) {
				continue;
			}
			matrix[row][pivot] = 0;
			for (size_t i = 0; i < terms; i++) {
				matrix[row][i] -= factor * matrix[pivot][i];
			}
		}
	}
	return true;
}

static bool regress(const struct sums *sums, struct thermal_fit *fit)
{
	const double normal[THERMAL_TERMS][THERMAL_TERMS] = {
		{sums->n, sums->slow, sums->fast},
		{sums->slow, sums->slow_slow, sums->slow_fast},
		{sums->fast, sums->slow_fast, sums->fast_fast},
	};
	const double y[THERMAL_TERMS] = {sums->y, sums->y_slow, sums->y_fast};
	memcpy(fit->inverse, normal, sizeof(normal));
	if (!invert(fit->inverse, fit->terms)) {
		return false;
	}
	fit->squares = sums->y_y;
	for (size_t i = 0; i < fit->terms; i++) {
		fit->coefficient[i] = 0;
		for (size_t j = 0; j < fit->terms; j++) {
			fit->coefficient[i] += fit->inverse[i][j] * y[j];
		}
		fit->squares -= fit->coefficient[i] * y[i];
	}
	fit->squares = fmax(fit->squares, 0);
	return true;
}

void thermal_fit_ends(const struct thermal_series *series, double slow_s, double fast_s, size_t end,
	size_t stride, thermal_fit_function *function, void *context)
{
	struct sums prior = {.n = series->prior_weight,
		.y = series->prior_weight * series->prior,
		.y_y = series->prior_weight * series->prior * series->prior};
	struct sums sums = prior;
	struct thermal_fit fit = {.slow_s = slow_s, .fast_s = fast_s, .terms = fast_s > 0 ? 3 : 2};
	for (size_t k = end; k-- > 0;) {
		const double dt = k + 1 < end ? series->t[k + 1] - series->t[k] : 0;
		prepend(&sums, exp(-dt / slow_s), fast_s > 0 ? exp(-dt / fast_s) : 0,
			series->value[k]);
		if (k % stride == 0 && end - k >= POINTS_MIN && regress(&sums, &fit)) {
			function(context, k, &fit);
		}
	}
}

double thermal_fit_at(const struct thermal_fit *fit, double t, double *ret_variance)
{
	const double term[THERMAL_TERMS] = {
		1, exp(-t / fit->slow_s), fit->terms > 2 ? exp(-t / fit->fast_s) : 0};
	double value = 0, variance = 0;
	for (size_t i = 0; i < fit->terms; i++) {
		value += term[i] * fit->coefficient[i];
		for (size_t j = 0; j < fit->terms; j++) {
			variance += term[i] * term[j] * fit->inverse[i][j];
		}
	}
	*ret_variance = fmax(variance, 0);
	return value;
}
