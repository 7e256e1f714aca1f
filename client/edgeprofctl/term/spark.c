/* spark.c: draws sparklines: enough to see a trend, a step or a gap in a terminal. */
#include "client/edgeprofctl/term/spark.h"

#include <math.h>
#include <string.h>

void spark_init(struct spark *spark, int64_t from_us, int64_t to_us, size_t points)
{
	memset(spark, 0, sizeof(*spark));
	spark->from_us = from_us;
	spark->columns = points < 1 ? 1 : points < SPARK_COLUMNS ? points : SPARK_COLUMNS;
	spark->to_us = to_us > from_us ? to_us : from_us + 1;
}

void spark_add(struct spark *spark, int64_t time_us, double value)
{
	if (time_us < spark->from_us || time_us > spark->to_us || !isfinite(value)) {
		return;
	}
	double share = (double)(time_us - spark->from_us) / (double)(spark->to_us - spark->from_us);
	size_t column = (size_t)(share * (double)spark->columns);
	column = column < spark->columns ? column : spark->columns - 1;
	spark->sums[column] += value;
	spark->counts[column]++;
}

void spark_write(const struct spark *spark, bool utf8, char ret[SPARK_SIZE])
{
	static const char *const bars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
	static const char *const ascii[] = {"_", ".", "-", "=", "+", "*", "#", "@"};
	double min = INFINITY, max = -INFINITY;
	for (size_t i = 0; i < spark->columns; i++) {
		if (spark->counts[i] > 0) {
			double mean = spark->sums[i] / spark->counts[i];
			min = fmin(min, mean);
			max = fmax(max, mean);
		}
	}
	size_t at = 0;
	for (size_t i = 0; i < spark->columns; i++) {
		const char *bar = " ";
		if (spark->counts[i] > 0) {
			double mean = spark->sums[i] / spark->counts[i];
			double share = max > min ? (mean - min) / (max - min) : 0;
			size_t step = (size_t)(share * 7.999);
			bar = utf8 ? bars[step] : ascii[step];
		}
		size_t length = strlen(bar);
		memcpy(ret + at, bar, length);
		at += length;
	}
	ret[at] = '\0';
}
