/* SPDX-License-Identifier: Apache-2.0 */
/* stage_role.c: names what a stage does by the words of its name. The first row that matches
 * decides, so "postprocess" and "preprocess_frame" are what they begin with. */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "daemon/core/diagnose/facts/facts.h"

/* A word with a final '.' is a complete word of the name: "cam" and "read" are parts of others. */
static const struct {
	enum stage_role role;
	const char *words;
} rows[] = {
	{ROLE_POSTPROCESS, "postproc post nms"},
	{ROLE_PREPROCESS, "preproc prep pre."},
	{ROLE_PUBLISH, "publish pub. send upload mqtt output. sink write. save"},
	{ROLE_INFER,
		"infer detect predict classif segment recogni embed forward model. invoke yolo "
		"net. dnn"},
	{ROLE_PREPROCESS, "resize normali convert color letterbox tokeniz decode crop scale"},
	{ROLE_POSTPROCESS, "draw overlay render annotat track"},
	{ROLE_CAPTURE, "capture camera cam. grab acquire v4l read. dequeue"},
};

static bool contains(const char *name, const char *word, size_t length)
{
	bool complete = word[length - 1] == '.';
	length -= complete;
	for (size_t i = 0; name[i]; i++) {
		if (strncasecmp(name + i, word, length) == 0 &&
			!(complete && i > 0 && isalpha((unsigned char)name[i - 1])) &&
			!(complete && isalpha((unsigned char)name[i + length]))) {
			return true;
		}
	}
	return false;
}

enum stage_role stage_role_of(const char *name)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		for (const char *word = rows[i].words; *word; word += strspn(word, " ")) {
			size_t length = strcspn(word, " ");
			if (contains(name, word, length)) {
				return rows[i].role;
			}
			word += length;
		}
	}
	return ROLE_OTHER;
}
