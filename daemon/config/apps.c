/* The keys of [stage APP/STAGE], [frame APP] and [app APP]: what the operator says about apps. Zero
 * is "nothing said" of stages and frames, so none of their keys takes it. */
#include "daemon/config/keys.h"

#include <errno.h>
#include <pwd.h>
#include <string.h>

#include "daemon/util/parse.h"

/* A word for people, as clients may give it. */
static int set_label(void *instance, const char *key, const char *value)
{
	struct stage_settings *stage = instance;
	size_t length = strlen(value);
	char *label = strcmp(key, "unit") == 0 ? stage->unit : stage->category;
	for (const char *c = value; *c; c++) {
		if (*c <= ' ' || *c >= 0x7f) {
			return -EINVAL;
		}
	}
	if (length == 0 || length >= PROTO_LABEL_SIZE) {
		return -EINVAL;
	}
	memcpy(label, value, length + 1);
	return 0;
}

static int parse_warmup(const char *value, uint32_t *ret)
{
	uint64_t events;
	if (parse_u64(value, &events) < 0 || events < 1 || events > 1000000) {
		return -EINVAL;
	}
	*ret = (uint32_t)events;
	return 0;
}

static int set_stage_warmup(void *instance, const char *key, const char *value)
{
	(void)key;
	return parse_warmup(value, &((struct stage_settings *)instance)->warmup);
}

static int set_frame_warmup(void *instance, const char *key, const char *value)
{
	(void)key;
	return parse_warmup(value, &((struct frames_settings *)instance)->warmup);
}

static int set_growth(void *instance, const char *key, const char *value)
{
	(void)key;
	uint64_t bytes;
	if (parse_size(value, &bytes) < 0 || bytes < 4096 || bytes > UINT64_C(1) << 50) {
		return -EINVAL;
	}
	((struct stage_settings *)instance)->rss_growth_limit = (int64_t)bytes;
	return 0;
}

static int set_target_fps(void *instance, const char *key, const char *value)
{
	(void)key;
	double fps;
	if (parse_double(value, &fps) < 0 || !(fps > 0 && fps <= 100000)) {
		return -EINVAL;
	}
	((struct frames_settings *)instance)->target_fps = fps;
	return 0;
}

static int parse_deadline(const char *value, uint64_t *ret)
{
	uint64_t deadline_ns;
	if (parse_duration_ns(value, &deadline_ns) < 0 || deadline_ns < 1000 ||
		deadline_ns > UINT64_C(3600000000000)) {
		return -EINVAL;
	}
	*ret = deadline_ns;
	return 0;
}

static int set_stage_deadline(void *instance, const char *key, const char *value)
{
	(void)key;
	return parse_deadline(value, &((struct stage_settings *)instance)->deadline_ns);
}

static int set_frame_deadline(void *instance, const char *key, const char *value)
{
	(void)key;
	return parse_deadline(value, &((struct frames_settings *)instance)->deadline_ns);
}

/* A user of this machine, or any number. */
static int set_user(void *instance, const char *key, const char *value)
{
	(void)key;
	struct app_rules *rules = instance;
	uint64_t number;
	const struct passwd *user = getpwnam(value);
	if (user) {
		number = user->pw_uid;
	} else if (parse_u64(value, &number) < 0 || number >= UINT32_MAX) {
		return -EINVAL;
	}
	rules->reserved = true;
	rules->user = (uid_t)number;
	return 0;
}

static int set_restart_within(void *instance, const char *key, const char *value)
{
	(void)key;
	struct app_rules *rules = instance;
	if (parse_duration_ns(value, &rules->restart_within_ns) < 0 ||
		rules->restart_within_ns > UINT64_C(86400000000000)) {
		return -EINVAL;
	}
	rules->has_restart_within = true;
	return 0;
}

#define DEADLINE_TEXT "a duration from 1us to 1h such as 33ms"
#define WARMUP_TEXT "a number of events from 1 to 1000000"
#define LABEL_TEXT "a word of at most 23 printable bytes"

const struct config_key config_stage_keys[] = {
	CONFIG_SPECIAL_KEY("deadline", DEADLINE_TEXT, set_stage_deadline),
	CONFIG_SPECIAL_KEY("unit", LABEL_TEXT, set_label),
	CONFIG_SPECIAL_KEY("category", LABEL_TEXT, set_label),
	CONFIG_SPECIAL_KEY("warmup", WARMUP_TEXT, set_stage_warmup),
	CONFIG_SPECIAL_KEY("rss_growth_limit", "a size of at least 4K such as 10M", set_growth),
};

const struct config_key config_frame_keys[] = {
	CONFIG_SPECIAL_KEY("deadline", DEADLINE_TEXT, set_frame_deadline),
	CONFIG_SPECIAL_KEY("target_fps", "frames a second, above 0 up to 100000", set_target_fps),
	CONFIG_SPECIAL_KEY("warmup", WARMUP_TEXT, set_frame_warmup),
};

const struct config_key config_app_keys[] = {
	CONFIG_SPECIAL_KEY("user", "the name of a user of this machine, or a number", set_user),
	CONFIG_SPECIAL_KEY(
		"restart_within", "a duration from 0 to 24h such as 30s", set_restart_within),
};
