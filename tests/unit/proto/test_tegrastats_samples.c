/* SPDX-License-Identifier: Apache-2.0 */
/* Whole lines of tegrastats: captures and own samples against the JSON of what they hold, and the
 * same samples damaged in a hundred thousand ways. */
#include "proto/tegrastats/tegrastats.h"

#include <cjson/cJSON.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/proto/tegrastats_check.h"
#include "tests/unit/shared.h"
#include "tests/unit/unit.h"

static struct tegrastats stats;

static char *read_file(const char *path, size_t *length)
{
	FILE *file = fopen(path, "rb");
	ck_assert_msg(file != NULL, "%s", path);
	char *text = calloc(1, 256 * 1024);
	*length = fread(text, 1, 256 * 1024 - 1, file);
	fclose(file);
	return text;
}

/* Null in JSON is TEGRASTATS_NONE. */
static void same(const cJSON *object, const char *key, int64_t value)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
	int64_t want = cJSON_IsNumber(item) ? (int64_t)item->valuedouble : TEGRASTATS_NONE;
	ck_assert_msg(
		value == want, "%s is %lld, not %lld", key, (long long)value, (long long)want);
}

static const cJSON *at(const cJSON *root, const char *key)
{
	return cJSON_GetObjectItemCaseSensitive(root, key);
}

static void same_gpu(const cJSON *gpu, bool has, int64_t load, const int64_t *freq, size_t count)
{
	ck_assert_int_eq(has, cJSON_IsObject(gpu));
	if (has) {
		same(gpu, "load_pct", load);
		ck_assert_int_eq((int)count, cJSON_GetArraySize(at(gpu, "freqs_mhz")));
		for (size_t i = 0; i < count; i++) {
			double want = cJSON_GetArrayItem(at(gpu, "freqs_mhz"), (int)i)->valuedouble;
			ck_assert_double_eq((double)freq[i], want);
		}
	}
}

static void same_memory(const cJSON *root)
{
	const char *time = cJSON_GetStringValue(at(root, "timestamp"));
	ck_assert_str_eq(stats.timestamp, time ? time : "");
	same(root, "ram_used_mb", stats.ram_used_mb);
	same(root, "ram_total_mb", stats.ram_total_mb);
	same(at(root, "lfb"), "blocks", stats.lfb_blocks);
	same(at(root, "lfb"), "block_kb", stats.lfb_block_kb);
	same(root, "swap_used_mb", stats.swap_used_mb);
	same(root, "swap_total_mb", stats.swap_total_mb);
	same(root, "swap_cached_mb", stats.swap_cached_mb);
	same(at(root, "iram"), "used_kb", stats.iram_used_kb);
	same(at(root, "iram"), "total_kb", stats.iram_total_kb);
	same(at(root, "iram"), "lfb_kb", stats.iram_lfb_kb);
	same(root, "edp_limit_mhz", stats.edp_limit_mhz);
	ck_assert_int_eq(stats.has_mts, cJSON_IsObject(at(root, "mts")));
	same(at(root, "mts"), "fg_pct", stats.mts_fg_percent);
	same(at(root, "mts"), "bg_pct", stats.mts_bg_percent);
	ck_assert_int_eq((int)stats.unknown, cJSON_GetArraySize(at(root, "unknown")));
}

static void same_loads(const cJSON *root)
{
	ck_assert_int_eq((int)stats.cpus, cJSON_GetArraySize(at(root, "cpus")));
	for (size_t i = 0; i < stats.cpus; i++) {
		const cJSON *cpu = cJSON_GetArrayItem(at(root, "cpus"), (int)i);
		ck_assert_int_eq(stats.cpu[i].online, cJSON_IsTrue(at(cpu, "online")));
		same(cpu, "load_pct", stats.cpu[i].load_percent);
		same(cpu, "freq_mhz", stats.cpu[i].freq_mhz);
	}
	ck_assert_int_eq(stats.emc.present, cJSON_IsObject(at(root, "emc")));
	same(at(root, "emc"), "load_pct", stats.emc.load_percent);
	same(at(root, "emc"), "freq_mhz", tegrastats_fastest_mhz(&stats.emc));
	same_gpu(at(root, "gpu"), stats.gpu.present, stats.gpu.load_percent, stats.gpu.freq_mhz,
		stats.gpu.freqs);
	same_gpu(at(root, "gpu2"), stats.gpu2.present, stats.gpu2.load_percent, stats.gpu2.freq_mhz,
		stats.gpu2.freqs);
	ck_assert_int_eq((int)stats.engines, cJSON_GetArraySize(at(root, "engines")));
	for (size_t i = 0; i < stats.engines; i++) {
		const cJSON *engine = cJSON_GetArrayItem(at(root, "engines"), (int)i);
		ck_assert_str_eq(stats.engine[i].name, engine->string);
		ck_assert_str_eq(stats.engine[i].on ? "on" : "off",
			cJSON_GetStringValue(at(engine, "state")));
		same(engine, "load_pct", stats.engine[i].load_percent);
		same(engine, "freq_mhz", stats.engine[i].freq_mhz);
	}
}

static void same_sensors(const cJSON *root)
{
	size_t offline = 0;
	ck_assert_int_eq((int)stats.temps, cJSON_GetArraySize(at(root, "temps_c")));
	for (size_t i = 0; i < stats.temps; i++) {
		const struct tegrastats_temp *temp = &stats.temp[i];
		const cJSON *want = cJSON_GetArrayItem(at(root, "temps_c"), (int)i);
		const cJSON *peak = at(at(root, "temps_peak_c"), temp->name);
		ck_assert_str_eq(temp->name, want->string);
		ck_assert_double_eq(temp->told_celsius, want->valuedouble);
		ck_assert_int_eq(isnan(temp->celsius), want->valuedouble <= -200);
		ck_assert_int_eq(isnan(temp->peak_celsius), peak == NULL);
		ck_assert(peak == NULL || temp->peak_celsius == peak->valuedouble);
		offline += isnan(temp->celsius);
	}
	ck_assert_int_eq((int)offline, cJSON_GetArraySize(at(root, "temps_offline")));
	ck_assert_int_eq((int)stats.rails, cJSON_GetArraySize(at(root, "power_mw")));
	for (size_t i = 0; i < stats.rails; i++) {
		const cJSON *rail = cJSON_GetArrayItem(at(root, "power_mw"), (int)i);
		ck_assert_str_eq(stats.rail[i].name, rail->string);
		same(rail, "now", stats.rail[i].now_mw);
		same(rail, "avg", stats.rail[i].average_mw);
		same(rail, "peak", stats.rail[i].peak_mw);
	}
}

/* Every *.expected.json of the folder whose value is one object; how many there were. */
static size_t compare_folder(const char *folder)
{
	char pattern[1024];
	glob_t found;
	size_t count = 0;
	snprintf(pattern, sizeof(pattern), "%s/*.expected.json", folder);
	if (glob(pattern, 0, NULL, &found) != 0) {
		return 0;
	}
	for (size_t i = 0; i < found.gl_pathc; i++) {
		char path[1024];
		size_t length, stem = strlen(found.gl_pathv[i]) - strlen(".expected.json");
		char *want = read_file(found.gl_pathv[i], &length);
		cJSON *root = cJSON_Parse(want);
		snprintf(path, sizeof(path), "%.*s.txt", (int)stem, found.gl_pathv[i]);
		char *line = read_file(path, &length);
		if (cJSON_IsObject(root)) {
			ck_assert_int_eq(tegrastats_parse(line, length, &stats), 0);
			same_memory(root);
			same_loads(root);
			same_sensors(root);
			count++;
		}
		cJSON_Delete(root);
		free(want);
		free(line);
	}
	globfree(&found);
	return count;
}

TEST_TIMEOUT(100);

/* covers G0.14 */
START_TEST(own_samples_of_every_generation_are_read_exactly)
{
	char folder[512];
	ck_assert_ptr_nonnull(getenv("EDGEPROF_SOURCE"));
	snprintf(folder, sizeof(folder), "%s/tests/fixtures/tegrastats", getenv("EDGEPROF_SOURCE"));
	ck_assert_uint_gt(compare_folder(folder), 8);
}
END_TEST

static uint32_t random_state = 2463534242u;

static uint32_t next_random(uint32_t below)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 17;
	random_state ^= random_state << 5;
	return random_state % below;
}

static size_t mutate(char *line, size_t length)
{
	static const char signs[] = "@%[],/-CmWoff .0123456789()kMB\n\t#_";
	for (uint32_t changes = 1 + next_random(6); changes > 0 && length > 2; changes--) {
		size_t from = next_random((uint32_t)length);
		size_t count = 1 + next_random(12);
		count = from + count > length ? length - from : count;
		switch (next_random(5)) {
		case 0:
			line[from] = (char)next_random(256);
			break;
		case 1:
			line[from] = signs[next_random(sizeof(signs) - 1)];
			break;
		case 2: /* lose some */
			memmove(line + from, line + from + count, length - from - count);
			length -= count;
			break;
		case 3: /* say some twice */
			memmove(line + next_random((uint32_t)(length - count + 1)), line + from,
				count);
			break;
		case 4: /* torn */
			length = next_random(4) == 0 ? from : length;
			break;
		}
	}
	return length;
}

/* EDGEPROF_MUTATIONS: how many, for the long form (1000000). The line and the result lie at the
 * ends of their blocks, where the sanitizer sees one byte too much. */
START_TEST(mutated_lines_keep_what_always_holds)
{
	char pattern[512];
	glob_t found;
	const char *many = getenv("EDGEPROF_MUTATIONS");
	long count = many ? strtol(many, NULL, 10) : 100000;
	struct tegrastats *result = malloc(sizeof(*result));
	snprintf(pattern, sizeof(pattern), "%s/tests/fixtures/tegrastats/*.txt",
		getenv("EDGEPROF_SOURCE"));
	ck_assert_int_eq(glob(pattern, 0, NULL, &found), 0);
	char *seed[64];
	size_t seeds = 0, lengths[64];
	for (; seeds < found.gl_pathc && seeds < 64; seeds++) {
		seed[seeds] = read_file(found.gl_pathv[seeds], &lengths[seeds]);
	}
	for (long i = 0; i < count; i++) {
		char line[2048];
		size_t which = next_random((uint32_t)seeds);
		size_t length = lengths[which] < sizeof(line) ? lengths[which] : sizeof(line);
		memcpy(line, seed[which], length);
		length = mutate(line, length);
		char *exact = malloc(length);
		memcpy(exact, line, length);
		int r = tegrastats_parse(exact, length, result);
		const char *wrong = tegrastats_check(r, result);
		ck_assert_msg(!wrong, "%s in '%.*s'", wrong, (int)length, exact);
		free(exact);
	}
	while (seeds > 0) {
		free(seed[--seeds]);
	}
	globfree(&found);
	free(result);
}
END_TEST

SHARED_TESTS;

/* covers G0.14 */
START_TEST(captures_are_read_exactly)
{
	ck_assert_uint_gt(compare_folder(shared_path("tegrastats")), 30);
}
END_TEST
