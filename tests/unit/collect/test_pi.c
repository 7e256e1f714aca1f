/* SPDX-License-Identifier: Apache-2.0 */
/* The Raspberry Pi's firmware: texts, the property buffer, and the collector over a fake ioctl. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/collect/board/pi_firmware.h"
#include "tests/unit/collect/fixture_tree.h"
#include "tests/unit/collect/pi_fake.h"
#include "tests/unit/shared.h"
#include "tests/unit/unit.h"

static struct tree tree;
static struct bench bench;

static void setup(void)
{
	tree_make(&tree);
	pi_fake_start();
}

static void teardown(void)
{
	pi_fake_stop();
	tree_remove(&tree);
}

static const struct {
	const char *text;
	int result;
	uint32_t word;
} words[] = {
	{"throttled=0x50000\n", 0, 0x50000},
	{"throttled=0x0", 0, 0},
	{"60002\n", 0, 0x60002},
	{"0x8000f", 0, 0x8000f},
	{"80008", 0, 0x80008},
	{"FFFFFFFF", 0, 0xffffffff},
	{"", -EBADMSG, 0},
	{"\n", -EBADMSG, 0},
	{"throttled=", -EBADMSG, 0},
	{"throttled=0x", -EBADMSG, 0},
	{"throttled=0xzz", -EBADMSG, 0},
	{"throttled=-1", -EBADMSG, 0},
	{"throttled=0x123456789", -EBADMSG, 0},
	{"50005 50005", -EBADMSG, 0},
	{"error=1 error_msg=\"Command not registered\"", -EBADMSG, 0},
	{"VCHI initialization failed", -EBADMSG, 0},
	{"bad arguments", -EBADMSG, 0},
};

FIXTURE(setup, teardown);

/* covers G0.13 */
START_LOOP_TEST(a_throttle_word_is_read_or_refused, 0, COUNT(words))
{
	uint32_t word = 77;
	ck_assert_int_eq(pi_parse_throttled(words[_i].text, &word), words[_i].result);
	ck_assert_uint_eq(word, words[_i].result == 0 ? words[_i].word : 77);
}
END_TEST

static const struct {
	const char *text;
	int result;
	double value;
} numbers[] = {
	{"frequency(48)=2000478464\n", 0, 2000478464},
	{"frequency(0)=0\n", 0, 0},
	{"volt=0.8563V\n", 0, 0.8563},
	{"temp=39.2'C\n", 0, 39.2},
	{"temp=-3.5'C", 0, -3.5},
	{"arm=948M\n", 0, 948.0 * 1024 * 1024},
	{"error=2 error_msg=\"Invalid arguments\"", -EBADMSG, 0},
	{"bad arguments", -EBADMSG, 0},
	{"VCHI initialization failed", -EBADMSG, 0},
	{"volt=", -EBADMSG, 0},
	{"volt=V", -EBADMSG, 0},
	{"volt=1.2.3V", -EBADMSG, 0},
	{"volt=1V 2V", -EBADMSG, 0},
	{"arm=948K", -EBADMSG, 0},
	{"frequency(48)=1e9", -EBADMSG, 0},
	{"", -EBADMSG, 0},
};

START_LOOP_TEST(a_number_stands_behind_the_equals_sign, 0, COUNT(numbers))
{
	double value = 77;
	ck_assert_int_eq(pi_parse_number(numbers[_i].text, &value), numbers[_i].result);
	ck_assert_double_eq_tol(value, numbers[_i].result == 0 ? numbers[_i].value : 77, 1e-9);
}
END_TEST

static const char adc_text[] = "   VDD_CORE_A current(7)=0.50000000A\n"
			       "nonsense\n"
			       "   X_A current(1)=1V\n"
			       "   VDD_CORE_V volt(15)=0.80000000V\n"
			       "     EXT5V_V volt(24)=5.11478000V\n";

START_TEST(rails_of_the_pmic_are_read_line_by_line)
{
	struct pi_adc adc;
	const char *cursor = adc_text;
	ck_assert_int_eq(pi_parse_adc(&cursor, &adc), 0);
	ck_assert_str_eq(adc.rail, "VDD_CORE");
	ck_assert_int_eq(adc.quantity, 'A');
	ck_assert_double_eq(adc.value, 0.5);
	ck_assert_int_eq(pi_parse_adc(&cursor, &adc), 0);
	ck_assert_int_eq(adc.quantity, 'V');
	ck_assert_int_eq(pi_parse_adc(&cursor, &adc), 0);
	ck_assert_str_eq(adc.rail, "EXT5V");
	ck_assert_int_eq(pi_parse_adc(&cursor, &adc), -ENODATA);
	ck_assert_int_eq(pi_parse_adc(&cursor, &adc), -ENODATA);
}
END_TEST

static struct pi_firmware firmware;

static int open_firmware(void)
{
	struct root root;
	ck_assert_int_eq(root_init(&root, tree.path), 0);
	int r = pi_firmware_open(&firmware, &root);
	root_finish(&root);
	return r;
}

/* covers G0.13 */
START_TEST(the_mailbox_is_asked_without_clearing_anything)
{
	uint32_t word;
	const char *source;
	tree_write(&tree, "dev/vcio", "");
	pi_fake.word = 0x50005;
	ck_assert_int_eq(open_firmware(), 0);
	ck_assert_int_eq(pi_firmware_throttled(&firmware, &word, &source), 0);
	ck_assert_uint_eq(word, 0x50005);
	ck_assert_uint_eq(pi_fake.mask, 0);
	ck_assert_str_eq(source, "firmware mailbox");
	pi_firmware_close(&firmware);
}
END_TEST

START_TEST(a_tag_that_is_not_answered_is_no_value)
{
	uint32_t word;
	const char *source;
	tree_write(&tree, "dev/vcio", "");
	pi_fake.tags_unknown = true;
	pi_fake_answer("get_throttled", "throttled=0x80008");
	ck_assert_int_eq(open_firmware(), 0);
	ck_assert_int_eq(pi_firmware_tag(&firmware, PI_TAG_GET_THROTTLED, &word, 1), -EBADMSG);
	ck_assert_int_eq(pi_firmware_throttled(&firmware, &word, &source), 0);
	ck_assert_uint_eq(word, 0x80008);
	ck_assert_str_eq(source, "firmware command");
	pi_firmware_close(&firmware);
}
END_TEST

START_TEST(the_command_device_alone_is_enough)
{
	uint32_t word;
	const char *source;
	tree_write(&tree, "dev/vcio_gencmd", "");
	pi_fake_answer("get_throttled", "throttled=0x0");
	ck_assert_int_eq(open_firmware(), 0);
	ck_assert_int_eq(firmware.mailbox_fd, -ENOENT);
	ck_assert_int_eq(pi_firmware_throttled(&firmware, &word, &source), 0);
	ck_assert_uint_eq(word, 0);
	pi_firmware_close(&firmware);
}
END_TEST

START_TEST(a_firmware_that_fails_tells_why)
{
	uint32_t word = 7;
	const char *source;
	char text[8];
	ck_assert_int_eq(open_firmware(), -ENOENT);
	ck_assert_int_eq(pi_firmware_throttled(&firmware, &word, &source), -ENODEV);
	tree_write(&tree, "dev/vcio", "");
	ck_assert_int_eq(open_firmware(), 0);
	pi_fake.tag_error = pi_fake.command_error = ETIMEDOUT;
	ck_assert_int_eq(pi_firmware_throttled(&firmware, &word, &source), -ETIMEDOUT);
	pi_fake.command_error = 0;
	ck_assert_int_eq(pi_firmware_throttled(&firmware, &word, &source), -EBADMSG);
	pi_fake_answer("version", "a long answer");
	ck_assert_int_eq(pi_firmware_command(&firmware, "version", text, sizeof(text)), -EMSGSIZE);
	ck_assert_uint_eq(word, 7);
	pi_firmware_close(&firmware);
}
END_TEST

START_TEST(a_file_that_is_no_device_is_no_firmware)
{
	uint32_t word;
	const char *source;
	tree_write(&tree, "dev/vcio", "");
	pi_fake_stop();
	ck_assert_int_eq(open_firmware(), 0);
	ck_assert_int_eq(pi_firmware_throttled(&firmware, &word, &source), -ENOTTY);
	pi_firmware_close(&firmware);
}
END_TEST

/* covers G0.12 covers G0.19 */
START_TEST(clocks_volts_memory_and_rails_become_metrics)
{
	tree_write(&tree, "dev/vcio_gencmd", "");
	pi_fake_answer("measure_clock arm", "frequency(0)=2400033792\n");
	pi_fake_answer("measure_clock v3d", "frequency(0)=0\n");
	pi_fake_answer("measure_volts core", "volt=0.8563V\n");
	pi_fake_answer("get_mem arm", "arm=948M\n");
	pi_fake_answer("get_mem gpu", "gpu=8M\n");
	pi_fake_answer("pmic_read_adc", adc_text);
	pi_fake_answer("measure_temp", "temp=52.6'C\n");
	bench_make(&bench, tree.path, "pi");
	ck_assert_int_eq(bench_open(&bench), 0);
	ck_assert_int_eq(bench_sample(&bench), 0);
	bench_expect(&bench, "clock/arm", 2400033792);
	bench_expect(&bench, "clock/v3d", 0);
	bench_expect(&bench, "voltage/core", 0.8563);
	bench_expect(&bench, "memory_split/arm", 948.0 * 1024 * 1024);
	bench_expect(&bench, "memory_split/gpu", 8.0 * 1024 * 1024);
	bench_expect(&bench, "power/VDD_CORE", 400);
	bench_expect(&bench, "power/total", 400);
	ck_assert_str_eq(bench_metric(&bench, "power/total")->origin, "sum of the PMIC's rails");
	bench_expect(&bench, "voltage/EXT5V", 5.11478);
	bench_expect(&bench, "temperature/firmware", 52.6);
	ck_assert_ptr_null(metrics_find(bench.core.metrics, "clock/h264"));
	ck_assert_int_eq(bench_metric(&bench, "power/VDD_CORE")->unit, UNIT_MILLIWATTS);
	/* an error text is null with a reason */
	pi_fake_answer("measure_clock arm", "error=2 error_msg=\"Invalid arguments\"");
	pi_fake_answer("pmic_read_adc", "VDD_CORE_A current(7)=0.5A\n");
	ck_assert_int_eq(bench_sample(&bench), 0);
	bench_expect_null(&bench, "clock/arm", "malformed");
	bench_expect_null(&bench, "power/VDD_CORE", "not reported");
	bench_expect_null(&bench, "power/total", "a rail of the sum is null");
	bench_expect_null(&bench, "voltage/EXT5V", "not reported");
	bench_expect(&bench, "voltage/core", 0.8563);
	bench_finish(&bench);
}
END_TEST

START_TEST(the_total_of_another_source_stays)
{
	struct source *power;
	struct metric *total;
	tree_write(&tree, "dev/vcio_gencmd", "");
	pi_fake_answer("pmic_read_adc", adc_text);
	bench_make(&bench, tree.path, "pi");
	ck_assert_int_eq(sources_add(bench.core.sources, "power", 1000000000, &power), 0);
	ck_assert_int_eq(
		metrics_add(bench.core.metrics, power, "power/total", UNIT_MILLIWATTS, &total), 0);
	ck_assert_int_eq(bench_open(&bench), 0);
	ck_assert_int_eq(bench_sample(&bench), 0);
	bench_expect(&bench, "power/VDD_CORE", 400);
	ck_assert_ptr_eq(bench_metric(&bench, "power/total")->source, power);
	ck_assert_ptr_null(total->origin);
	bench_finish(&bench);
}
END_TEST

/* A HAT's INA measures what comes in, with the USB ports; the PMIC only what it feeds itself.
 * covers G2.7 */
START_TEST(a_monitor_of_the_supply_takes_the_total_from_the_pmic)
{
	struct bench power;
	const char *hat = "sys/class/hwmon/hwmon4";
	char path[64];
	tree_write(&tree, "dev/vcio_gencmd", "");
	pi_fake_answer("pmic_read_adc", adc_text);
	static const char *const files[][2] = {{"name", "ina219\n"}, {"in1_input", "5100\n"},
		{"curr1_input", "900\n"}, {"power1_input", "4590000\n"}};
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", hat, files[i][0]);
		tree_write(&tree, path, files[i][1]);
	}
	for (int power_first = 0; power_first < 2; power_first++) {
		bench_make(&bench, tree.path, "pi");
		power = bench;
		power.ops = collector_find("power");
		ck_assert_int_eq(
			sources_add(bench.core.sources, "power", 1000000000, &power.source), 0);
		power.ctx.source = power.source;
		if (!power_first) {
			ck_assert_int_eq(bench_open(&bench), 0);
			ck_assert_int_eq(bench_sample(&bench), 0);
			ck_assert_ptr_eq(bench_metric(&bench, "power/total")->source, bench.source);
			ck_assert_str_eq(bench_metric(&bench, "power/total")->origin,
				"sum of the PMIC's rails");
		}
		ck_assert_int_eq(bench_open(&power), 0);
		ck_assert_int_eq(bench_sample(&power), 0);
		if (power_first) {
			ck_assert_int_eq(bench_open(&bench), 0);
		}
		for (int again = 0; again < 2; again++) {
			ck_assert_int_eq(bench_sample(&bench), 0);
			ck_assert_ptr_eq(bench_metric(&bench, "power/total")->source, power.source);
			bench_expect(&bench, "power/total", 4590);
			bench_expect(&bench, "power/VDD_CORE", 400);
			ck_assert_str_eq(
				bench_metric(&bench, "power/total")->origin, "sum of the rails");
		}
		bench_close(&power);
		bench_finish(&bench);
	}
}
END_TEST

/* covers G0.12 */
START_TEST(the_mailbox_comes_first_then_a_command_and_a_zone_stays_beside_them)
{
	struct metric *max;
	struct source *thermal;
	tree_write(&tree, "dev/vcio", "");
	tree_write(&tree, "sys/class/thermal/thermal_zone0/temp", "47000");
	pi_fake.milli_celsius = 48312;
	pi_fake_answer("measure_temp", "temp=52.6'C");
	bench_make(&bench, tree.path, "pi");
	ck_assert_int_eq(bench_open(&bench), 0);
	ck_assert_int_eq(bench_sample(&bench), 0);
	bench_expect(&bench, "temperature/firmware", 48.312);
	ck_assert_str_eq(bench_metric(&bench, "temperature/firmware")->origin, "firmware mailbox");
	/* nobody else tells the hottest: it is this one, until somebody does */
	bench_expect(&bench, "temperature/max", 48.312);
	ck_assert_int_eq(sources_add(bench.core.sources, "thermal", 1000000000, &thermal), 0);
	ck_assert_int_eq(
		metrics_add(bench.core.metrics, thermal, "temperature/max", UNIT_CELSIUS, &max), 0);
	metric_set(max, 47);
	pi_fake.tags_unknown = true;
	ck_assert_int_eq(bench_sample(&bench), 0);
	bench_expect(&bench, "temperature/firmware", 52.6);
	ck_assert_str_eq(bench_metric(&bench, "temperature/firmware")->origin,
		"firmware command measure_temp");
	bench_expect(&bench, "temperature/max", 47);
	ck_assert_ptr_eq(bench_metric(&bench, "temperature/max")->source, thermal);
	pi_fake.command_error = ETIMEDOUT;
	ck_assert_int_eq(bench_sample(&bench), 0);
	ck_assert(isnan(bench_value(&bench, "temperature/firmware")));
	bench_finish(&bench);
}
END_TEST

START_TEST(without_firmware_the_source_is_absent_with_a_reason)
{
	bench_make(&bench, tree.path, "pi");
	ck_assert_int_eq(bench_open(&bench), -ENOENT);
	ck_assert_ptr_nonnull(strstr(bench.reason, "/dev/vcio"));
	bench_finish(&bench);
	tree_write(&tree, "dev/vcio", "");
	pi_fake.tags_unknown = true;
	bench_make(&bench, tree.path, "pi");
	ck_assert_int_eq(bench_open(&bench), -ENODATA);
	ck_assert_str_ne(bench.reason, "");
	bench_finish(&bench);
}
END_TEST

SHARED_TESTS;

/* Every text of the shared captures: a number where there is one, else refused. */
START_TEST(captures_of_real_boards_read_as_they_say)
{
	static const struct {
		const char *file;
		double value; /* NAN = an error text */
	} captures[] = {
		{"measure_clock_arm_pi3.txt", 600000000},
		{"measure_clock_arm_pi4.txt", 2000478464},
		{"measure_clock_arm_pi4_throttled.txt", 1141118000},
		{"measure_clock_v3d_pi5.txt", 960016128},
		{"measure_clock_v3d_pi5_idle.txt", 0},
		{"measure_clock_bad.txt", NAN},
		{"measure_volts_core.txt", 0.8563},
		{"measure_volts_bad.txt", NAN},
		{"measure_temp_39.2.txt", 39.2},
		{"measure_temp_43.8.txt", 43.8},
		{"measure_temp_80.6.txt", 80.6},
		{"get_mem_arm.txt", 948.0 * 1024 * 1024},
		{"get_mem_gpu.txt", 256.0 * 1024 * 1024},
		{"not_available.txt", NAN},
	};
	static const uint32_t throttled[] = {0x0, 0x50000, 0x50005, 0x60002, 0x80008};
	char path[512], text[4096];
	struct root root;
	ck_assert_int_eq(root_init(&root, shared_path("")), 0);
	for (size_t i = 0; i < sizeof(captures) / sizeof(captures[0]); i++) {
		double value = NAN;
		snprintf(path, sizeof(path), "rpi/%s", captures[i].file);
		ck_assert_msg(root_read(&root, path, text, sizeof(text)) > 0, "%s", path);
		int r = pi_parse_number(text, &value);
		ck_assert_msg(r == (isnan(captures[i].value) ? -EBADMSG : 0), "%s", path);
		ck_assert_msg(r < 0 || fabs(value - captures[i].value) < 1e-6, "%s", path);
	}
	for (size_t i = 0; i < sizeof(throttled) / sizeof(throttled[0]); i++) {
		uint32_t word = 77;
		snprintf(path, sizeof(path), "rpi/get_throttled_0x%x.txt", (unsigned)throttled[i]);
		ck_assert_msg(root_read(&root, path, text, sizeof(text)) > 0, "%s", path);
		ck_assert_int_eq(pi_parse_throttled(text, &word), 0);
		ck_assert_uint_eq(word, throttled[i]);
	}
	ck_assert_int_gt(root_read(&root, "rpi/pmic_read_adc_pi5_idle.txt", text, sizeof(text)), 0);
	tree_write(&tree, "dev/vcio_gencmd", "");
	pi_fake_answer("pmic_read_adc", text);
	bench_make(&bench, tree.path, "pi");
	ck_assert_int_eq(bench_open(&bench), 0);
	ck_assert_int_eq(bench_sample(&bench), 0);
	bench_expect(&bench, "power/VDD_CORE", 0.94657990 * 0.72097620 * 1000);
	bench_expect(&bench, "power/DDR_VDDQ", 0);
	ck_assert_double_eq_tol(bench_value(&bench, "power/total"), 1900, 10);
	bench_expect(&bench, "voltage/EXT5V", 5.11478);
	bench_expect(&bench, "voltage/BATT", 0.01880340);
	ck_assert_uint_eq(metrics_count(bench.core.metrics), 15);
	bench_finish(&bench);
	root_finish(&root);
}
END_TEST
