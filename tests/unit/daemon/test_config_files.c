/* SPDX-License-Identifier: Apache-2.0 */
/* The files of the configuration: lines, drop-ins, and the one that is shipped. */
#include "daemon/config/private.h"
#include "tests/unit/daemon/config_fixture.h"
#include "tests/unit/unit.h"

FIXTURE(setup, teardown);

START_TEST(indented_line_is_no_continuation)
{
	ck_assert_int_eq(load("[sampling]\ninterval = 2s\n   [history]\n\tmemory = 1M\n"), 0);
	ck_assert_uint_eq(config.interval_ns, 2000000000u);
	ck_assert_uint_eq(config.history_bytes, 1u << 20);
}
END_TEST

START_TEST(long_line_is_told_and_not_split)
{
	char text[1024] = "[daemon]\nsocket_group = ";
	size_t used = strlen(text);
	memset(text + used, 'x', 500);
	snprintf(text + used + 500, sizeof(text) - used - 500, "\nlog_level = debug\n");
	ck_assert_int_eq(load(text), -EINVAL);
	ck_assert_uint_eq(errors.count, 1);
	ck_assert_ptr_nonnull(strstr(errors.text[0], ":2: line too long"));
	ck_assert_int_eq(config.log_level, LOG_LEVEL_DEBUG);
}
END_TEST

START_TEST(what_a_reader_would_not_see_is_not_repeated)
{
	ck_assert_int_eq(load("[mqtt]\nport = \x1b[2J\u202e\xff\n[alert\n"), -EINVAL);
	ck_assert_ptr_nonnull(strstr(errors.text[0], ":2: [mqtt] port = ?[2J??: "));
	ck_assert_ptr_nonnull(strstr(errors.text[1], ":3: "));
}
END_TEST

START_TEST(zero_bytes_are_told_and_not_read_as_an_empty_file)
{
	const char *path = write_file("conf", "[daemon]\n");
	FILE *file = fopen(path, "a");
	ck_assert_ptr_nonnull(file);
	static const char zeroes[4096];
	fwrite(zeroes, 1, sizeof(zeroes), file);
	fclose(file);
	ck_assert_int_eq(config_load(path, &config, &errors), -EINVAL);
	ck_assert_uint_eq(errors.count, 1);
	ck_assert_ptr_nonnull(strstr(errors.text[0], ":2: a zero byte"));
	ck_assert_int_eq(config_load("/dev/zero", &config, &errors), -EINVAL);
	ck_assert_int_eq(config_load("/dev/null", &config, &errors), 0);
}
END_TEST

START_TEST(dropins_override_in_the_order_of_their_names)
{
	char path[256], folder[300];
	snprintf(path, sizeof(path), "%s",
		write_file("conf", "[sampling]\ninterval = 2s\n[daemon]\nsocket_group = a\n"
				   "[alert temperature]\nabove = 60\n"));
	snprintf(folder, sizeof(folder), "%s.d", path);
	ck_assert_int_eq(mkdir(folder, 0700), 0);
	write_file("conf.d/20-b.conf", "[sampling]\ninterval = 4s\n"
				       "[alert temperature]\nslope_above = 3\n");
	write_file("conf.d/10-a.conf", "[sampling]\ninterval = 3s\n[daemon]\nsocket_group = b\n");
	write_file("conf.d/ignored.txt", "nonsense\n");
	ck_assert_int_eq(config_load(path, &config, &errors), 0);
	ck_assert_uint_eq(config.interval_ns, 4000000000u);
	ck_assert_str_eq(config.socket_group, "b");
	ck_assert_uint_eq(config.alert[0].kind, ALERT_SLOPE);
}
END_TEST

START_TEST(absent_explicit_file_is_enoent)
{
	ck_assert_int_eq(config_load("/nonexistent/edgeprofd.conf", &config, &errors), -ENOENT);
	ck_assert_uint_eq(errors.count, 1);
}
END_TEST

START_TEST(folder_or_pipe_instead_of_a_file_is_told)
{
	char pipe_path[sizeof(dir) + 8];
	ck_assert_int_eq(config_load(dir, &config, &errors), -EINVAL);
	ck_assert_ptr_nonnull(strstr(errors.text[0], "cannot be read: Is a directory"));
	snprintf(pipe_path, sizeof(pipe_path), "%s/pipe", dir);
	ck_assert_int_eq(mkfifo(pipe_path, 0600), 0);
	errors.count = 0;
	ck_assert_int_eq(config_load(pipe_path, &config, &errors), -EINVAL);
	ck_assert_ptr_nonnull(strstr(errors.text[0], "cannot be read: Not a regular file"));
	unlink(pipe_path);
}
END_TEST

/* The shipped file documents every key, and with all comments taken away it is still valid and says
 * what the defaults are. */
START_TEST(shipped_file_documents_every_key_at_its_default)
{
	const char *source = getenv("EDGEPROF_SOURCE");
	ck_assert_ptr_nonnull(source);
	char path[512];
	snprintf(path, sizeof(path), "%s/config/edgeprofd.conf", source);
	FILE *file = fopen(path, "r");
	ck_assert_ptr_nonnull(file);
	static char all[32768], keys[32768];
	size_t length = fread(all, 1, sizeof(all) - 1, file);
	fclose(file);
	all[length] = '\0';
	size_t used = 0;
	bool own_rules = false;
	char copy[32768];
	memcpy(copy, all, sizeof(copy));
	for (char *line = strtok(copy, "\n"); line; line = strtok(NULL, "\n")) {
		own_rules = own_rules || strstr(line, "Rules of your own");
		own_rules = own_rules && strcmp(line, "[mqtt]") != 0;
		bool commented = line[0] == '#' && line[1] && line[1] != ' ';
		const char *pair = commented ? line + 1 : line;
		bool empty = pair[strlen(pair) - 1] == '=';
		bool example = strncmp(pair, "pid =", 5) == 0 || strncmp(pair, "match =", 7) == 0 ||
			       strncmp(pair, "unit =", 6) == 0 ||
			       strncmp(pair, "memory_limit =", 14) == 0;
		if (line[0] == '#' && !commented) {
			continue;
		}
		if (!own_rules && !empty && !example && strcmp(pair, "[process camera]") != 0) {
			used += (size_t)snprintf(keys + used, sizeof(keys) - used, "%s\n", pair);
		}
	}
	static struct config defaults;
	config_defaults(&defaults);
	ck_assert_msg(load(keys) == 0, "%s", errors.text[0]);
	defaults.mqtt.port = 1883;
	ck_assert_uint_eq(config.interval_ns, defaults.interval_ns);
	ck_assert_uint_eq(config.max_connections, defaults.max_connections);
	ck_assert_uint_eq(config.max_connections_per_uid, defaults.max_connections_per_uid);
	ck_assert_uint_eq(config.max_event_connections, defaults.max_event_connections);
	ck_assert_uint_eq(config.max_mapping_bytes, defaults.max_mapping_bytes);
	ck_assert_uint_eq(config.stage_window, defaults.stage_window);
	ck_assert_uint_eq(config.frame_window, defaults.frame_window);
	ck_assert_uint_eq(config.history_bytes, defaults.history_bytes);
	ck_assert_uint_eq(config.stage_bytes, defaults.stage_bytes);
	ck_assert_uint_eq(config.recorder_bytes, defaults.recorder_bytes);
	ck_assert_int_eq(config.nearest, defaults.nearest);
	ck_assert_str_eq(config.admin_group, defaults.admin_group);
	ck_assert_int_eq(config.log_level, defaults.log_level);
	ck_assert(config.mqtt.off); /* "enabled = no", which holds in spite of a host */
	config.mqtt.off = false;
	ck_assert_mem_eq(&config.mqtt, &defaults.mqtt, sizeof(config.mqtt));
	ck_assert_uint_eq(config.alerts, defaults.alerts);
	for (size_t i = 0; i < defaults.alerts; i++) {
		ck_assert_str_eq(config.alert[i].name, defaults.alert[i].name);
		ck_assert_double_eq(config.alert[i].threshold, defaults.alert[i].threshold);
		ck_assert_int_eq(config.alert[i].kind, defaults.alert[i].kind);
		ck_assert_str_eq(config.alert[i].metric, defaults.alert[i].metric);
		ck_assert_str_eq(config.alert[i].message, defaults.alert[i].message);
		ck_assert_mem_eq(&config.alert[i].clear, &defaults.alert[i].clear, sizeof(double));
		ck_assert_mem_eq(
			&config.alert[i].critical, &defaults.alert[i].critical, sizeof(double));
		ck_assert_uint_eq(config.alert[i].over_ns, defaults.alert[i].over_ns);
		ck_assert_uint_eq(config.alert[i].max_per_hour, defaults.alert[i].max_per_hour);
		/* each is there by its name, with a reason above it */
		char heading[PROTO_NAME_SIZE + 16];
		snprintf(heading, sizeof(heading), "\n#[alert %s]\n", defaults.alert[i].name);
		const char *at = strstr(all, heading);
		ck_assert_msg(at != NULL, "%s is not documented", defaults.alert[i].name);
		while (at > all && at[-1] != '\n') {
			at--;
		}
		ck_assert_msg(at[0] == '#' && at[1] == ' ', "%s has no reason", heading);
		ck_assert_uint_eq(config.alert[i].for_ns, defaults.alert[i].for_ns);
		ck_assert_uint_eq(config.alert[i].clear_for_ns, defaults.alert[i].clear_for_ns);
		ck_assert_int_eq(config.alert[i].severity, defaults.alert[i].severity);
	}
	for (size_t i = 0; i < config_section_count; i++) {
		for (size_t k = 0; k < config_sections[i].count; k++) {
			const char *key = config_sections[i].keys[k].name;
			char wanted[64];
			snprintf(wanted, sizeof(wanted), "\n#%s =", key);
			ck_assert_msg(strstr(all, wanted), "[%s] %s is not documented",
				config_sections[i].name, key);
		}
	}
}
END_TEST
