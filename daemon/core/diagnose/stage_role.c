/* SPDX-License-Identifier: Apache-2.0 */
/* stage_role.c: names what a stage does by the words of its name. A word decides over one that
 * contains it, so "postprocess" is not "process" and "preprocess_frame" is not a capture. */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "daemon/core/diagnose/facts.h"

/* The first that matches: the more specific ones first. A word that ends with '.' is a complete
 * word of the name, since "in" and "cam" are parts of others. */
static const struct {
	const char *text;
	enum stage_role role;
} words[] = {
	{"postproc", ROLE_POSTPROCESS},
	{"post", ROLE_POSTPROCESS},
	{"nms", ROLE_POSTPROCESS},
	{"preproc", ROLE_PREPROCESS},
	{"prep", ROLE_PREPROCESS},
	{"pre.", ROLE_PREPROCESS},
	{"publish", ROLE_PUBLISH},
	{"pub.", ROLE_PUBLISH},
	{"send", ROLE_PUBLISH},
	{"upload", ROLE_PUBLISH},
	{"mqtt", ROLE_PUBLISH},
	{"output.", ROLE_PUBLISH},
	{"sink", ROLE_PUBLISH},
	{"write.", ROLE_PUBLISH},
	{"save", ROLE_PUBLISH},
	{"infer", ROLE_INFER},
	{"detect", ROLE_INFER},
	{"predict", ROLE_INFER},
	{"classif", ROLE_INFER},
	{"segment", ROLE_INFER},
	{"recogni", ROLE_INFER},
	{"embed", ROLE_INFER},
	{"forward", ROLE_INFER},
	{"model.", ROLE_INFER},
	{"invoke", ROLE_INFER},
	{"yolo", ROLE_INFER},
	{"net.", ROLE_INFER},
	{"dnn", ROLE_INFER},
	{"resize", ROLE_PREPROCESS},
	{"normali", ROLE_PREPROCESS},
	{"convert", ROLE_PREPROCESS},
	{"color", ROLE_PREPROCESS},
	{"letterbox", ROLE_PREPROCESS},
	{"tokeniz", ROLE_PREPROCESS},
	{"decode", ROLE_PREPROCESS},
	{"crop", ROLE_PREPROCESS},
	{"scale", ROLE_PREPROCESS},
	{"draw", ROLE_POSTPROCESS},
	{"overlay", ROLE_POSTPROCESS},
	{"render", ROLE_POSTPROCESS},
	{"annotat", ROLE_POSTPROCESS},
	{"track", ROLE_POSTPROCESS},
	{"capture", ROLE_CAPTURE},
	{"camera", ROLE_CAPTURE},
	{"cam.", ROLE_CAPTURE},
	{"grab", ROLE_CAPTURE},
	{"acquire", ROLE_CAPTURE},
	{"v4l", ROLE_CAPTURE},
	{"read.", ROLE_CAPTURE},
	{"dequeue", ROLE_CAPTURE},
};

static bool contains(const char *name, const char *word)
{
	size_t length = strlen(word);
	bool complete = word[length - 1] == '.';
	length -= complete;
	for (size_t i = 0; name[i]; i++) {
		bool alone = (i == 0 || !isalpha((unsigned char)name[i - 1])) &&
			     strlen(name + i) >= length &&
			     !isalpha((unsigned char)name[i + length]);
		if (strncasecmp(name + i, word, length) == 0 && (!complete || alone)) {
			return true;
		}
	}
	return false;
}

enum stage_role stage_role_of(const char *name)
{
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (contains(name, words[i].text)) {
			return words[i].role;
		}
	}
	return ROLE_OTHER;
}
