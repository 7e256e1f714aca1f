/* SPDX-License-Identifier: Apache-2.0 */
/* model_size.c: adds up the files of models. Symbolic links are followed, because folders of model
 * hubs consist of them; a file that is found twice counts once. Needs no daemon. */
#include "client/edgeprofctl/verb.h"

#include <errno.h>
#include <fts.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/listing.h"
#include "client/edgeprofctl/term/text.h"

/* links that fan out make a small tree endless */
enum { MIB = 1 << 20, GIB = 1 << 30, ENTRIES_MAX = 4000000 };

struct found {
	dev_t device;
	ino_t inode;
	off_t size;
};

struct model {
	struct found *found;
	size_t count, capacity;
	size_t unreadable;
	bool out_of_memory;
};

static void add_file(struct model *model, const struct stat *info)
{
	if (model->count == model->capacity) {
		size_t capacity = model->capacity == 0 ? 64 : 2 * model->capacity;
		struct found *grown = realloc(model->found, capacity * sizeof(*grown));
		if (!grown) {
			model->out_of_memory = true;
			return;
		}
		model->found = grown;
		model->capacity = capacity;
	}
	model->found[model->count++] = (struct found){info->st_dev, info->st_ino, info->st_size};
}

static void add_entry(struct ctl *ctl, struct model *model, const FTSENT *entry)
{
	switch (entry->fts_info) {
	case FTS_F:
		add_file(model, entry->fts_statp);
		return;
	case FTS_DNR:
	case FTS_ERR:
	case FTS_NS:
	case FTS_SLNONE:
		ctl_fail(ctl, 0, "cannot read %s: %s", entry->fts_path,
			strerror(entry->fts_info == FTS_SLNONE ? ENOENT : entry->fts_errno));
		model->unreadable++;
		return;
	case FTS_DEFAULT:
		if (entry->fts_level == 0) {
			ctl_fail(ctl, 0, "%s is not a file or a folder", entry->fts_path);
			model->unreadable++;
		}
		return;
	default:
		return; /* folders, and loops of links */
	}
}

/* 0 or -ENOMEM. */
static int read_model(struct ctl *ctl, char *path, struct model *model)
{
	char *const paths[] = {path, NULL};
	errno = 0;
	FTS *tree = fts_open(paths, FTS_LOGICAL | FTS_NOCHDIR, NULL);
	FTSENT *entry;
	long entries = 0;
	while (tree && !model->out_of_memory && (entry = fts_read(tree))) {
		add_entry(ctl, model, entry);
		if (++entries == ENTRIES_MAX) {
			ctl_fail(ctl, 0, "%s: more than %d entries", path, ENTRIES_MAX);
			model->unreadable++;
			break;
		}
	}
	bool failed = model->out_of_memory || errno == ENOMEM;
	if (!tree && !failed) { /* an empty path */
		ctl_fail(ctl, 0, "cannot read '%s': %s", path, strerror(errno));
		model->unreadable++;
	}
	if (tree) {
		fts_close(tree);
	}
	return failed ? -ENOMEM : 0;
}

static int by_inode(const void *a, const void *b)
{
	const struct found *first = a, *second = b;
	return first->device != second->device
		       ? (first->device > second->device ? 1 : -1)
		       : (first->inode > second->inode) - (first->inode < second->inode);
}

static cJSON *model_json(const char *path, struct model *model, double *first_bytes)
{
	double bytes = 0, files = 0;
	if (model->count > 0) {
		qsort(model->found, model->count, sizeof(model->found[0]), by_inode);
	}
	for (size_t i = 0; i < model->count; i++) {
		if (i == 0 || by_inode(&model->found[i - 1], &model->found[i]) != 0) {
			bytes += (double)model->found[i].size;
			files++;
		}
	}
	cJSON *object = cJSON_CreateObject();
	cJSON_AddStringToObject(object, "path", path);
	json_add_number(object, "size_bytes", bytes);
	json_add_number(object, "size_mb", bytes / MIB);
	json_add_number(object, "size_gb", bytes / GIB);
	json_add_number(object, "files", files);
	json_add_number(object, "unreadable", (double)model->unreadable);
	if (*first_bytes > 0) {
		json_add_number(object, "difference_bytes", bytes - *first_bytes);
		json_add_number(
			object, "difference_percent", 100 * (bytes - *first_bytes) / *first_bytes);
	} else {
		*first_bytes = bytes;
	}
	return object;
}

static void show_models(struct ctl *ctl, const cJSON *reply)
{
	static const struct field fields[] = {
		{"MODEL", FIELD_LONG, "{path}"},
		{"SIZE", FIELD_NUMBER, "{size_bytes:bytes}"},
		{"BYTES", FIELD_NUMBER, "{size_bytes:count}"},
		{"FILES", FIELD_NUMBER, "{files:count}"},
		{"DIFFERENCE", FIELD_NUMBER,
			"[{difference_bytes:+MB} ({difference_percent:1} %)|]"},
		{"", FIELD_TEXT, "[{?unreadable}{~warn}{unreadable:0} unreadable]"},
	};
	listing_show(ctl, reply, "models", fields, sizeof(fields) / sizeof(fields[0]));
}

static int run(struct ctl *ctl)
{
	cJSON *reply = cJSON_CreateObject(), *rows = cJSON_AddArrayToObject(reply, "models");
	double first_bytes = 0;
	int status = ctl_check_local(ctl);
	for (int i = 0; status != CTL_USAGE && i < ctl->word_count; i++) {
		struct model model = {0};
		int r = read_model(ctl, ctl->words[i], &model);
		if (r == 0 && model.count > 0) {
			cJSON_AddItemToArray(rows, model_json(ctl->words[i], &model, &first_bytes));
		} else if (r == 0 && model.unreadable == 0) {
			ctl_fail(ctl, 0, "%s contains no files", ctl->words[i]);
		}
		status = r < 0					    ? CTL_OUTPUT
			 : model.unreadable > 0 || model.count == 0 ? CTL_NO_INPUT
								    : status;
		free(model.found);
		if (r < 0) {
			cJSON_Delete(reply);
			return ctl_fail(ctl, CTL_OUTPUT, "out of memory");
		}
	}
	if (ctl->options.json == JSON_OFF) {
		json_clean(reply, ctl->style.utf8);
	}
	int shown = CTL_FINE;
	if (cJSON_GetArraySize(rows) > 0) {
		shown = ctl_answer(ctl, reply, show_models);
	} else {
		cJSON_Delete(reply);
	}
	return shown != CTL_FINE ? shown : status;
}

const struct verb verb_model_size = {"model-size", "PATH...",
	"Show the size of model files or folders, compared with the first.",
	"model-size yolo_fp32.onnx yolo_int8.onnx", NULL, run};
