/* The keys of [recorder]. */
#include "daemon/config/keys.h"
#include "daemon/core/status/recordings.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

/* Words with blanks between them; `none` alone, too. */
static int set_triggers(void *instance, const char *key, const char *value)
{
	static const struct {
		const char *word;
		unsigned triggers;
	} words[] = {{"alerts", RECORDER_ALERTS}, {"misses", RECORDER_MISSES},
		{"hangs", RECORDER_HANGS}, {"none", 0}};
	enum { WORDS = sizeof(words) / sizeof(words[0]) };
	unsigned triggers = 0;
	size_t count = 0;
	(void)key;
	for (const char *at = value + strspn(value, " \t"); *at; at += strspn(at, " \t")) {
		size_t length = strcspn(at, " \t"), i = 0;
		while (i < WORDS && (strlen(words[i].word) != length ||
					    strncmp(words[i].word, at, length) != 0)) {
			i++;
		}
		if (i == WORDS) {
			return -EINVAL;
		}
		triggers |= words[i].triggers;
		at += length;
		count++;
	}
	((struct config *)instance)->recorder.triggers = triggers;
	return count > 0 ? 0 : -EINVAL;
}

#define KEY(key, what, member, least, most)                                           \
	{                                                                             \
		.name = key, .type = what, .offset = offsetof(struct config, member), \
		.min = least, .max = most                                             \
	}

const struct config_key config_recorder_keys[] = {
	KEY("memory", CONFIG_SIZE, recorder_bytes, 64 * 1024, 1u << 30),
	KEY("before", CONFIG_DURATION, recorder.before_ns, 0, 600000000000u),
	KEY("after", CONFIG_DURATION, recorder.after_ns, 0, 600000000000u),
	KEY("max_size", CONFIG_SIZE, recorder.max_size, 256 * 1024, 256u << 20),
	KEY("total_size", CONFIG_SIZE, recorder.total_size, 256 * 1024, UINT64_C(1) << 34),
	KEY("keep", CONFIG_COUNT, recorder.keep, 0, RECORDINGS_MAX),
	CONFIG_SPECIAL_KEY("triggers", "some of alerts, misses and hangs, or none", set_triggers),
};
