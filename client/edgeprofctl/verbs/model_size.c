/* SPDX-License-Identifier: Apache-2.0 */
/* model_size.c: adds up the files of models. Symbolic links are followed, because folders of model
 * hubs consist of them; a file that is found twice counts once. Needs no daemon. */
#include "client/edgeprofctl/verb.h"

#include <errno.h>
#include <fts.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/listing.h"

/* links that fan out make a small tree endless */
enum { MIB = 1 << 20, GIB = 1 << 30, ENTRIES_MAX = 4000000 };

struct file {
	dev_t device;
	ino_t inode;
};

struct model {
	void *files; /* tree of tsearch(3) */
	double bytes, count;
	size_t unreadable;
};

static int by_inode(const void *a, const void *b)
{
	const struct file *first = a, *second = b;
	return first->device != second->device
		       ? (first->device > second->device ? 1 : -1)
		       : (first->inode > second->inode) - (first->inode < second->inode);
}

static void fail(struct ctl *ctl, struct model *model, const char *path, int error)
{
	ctl_fail(ctl, 0, "cannot read %s: %s", path[0] ? path : "''", strerror(error));
	model->unreadable++;
}

static void add_file(struct ctl *ctl, struct model *model, const FTSENT *entry)
{
	const struct stat *info = entry->fts_statp;
	struct file *file = malloc(sizeof(*file)), **found = NULL;
	if (file) {
		*file = (struct file){info->st_dev, info->st_ino};
		found = tsearch(file, &model->files, by_inode);
	}
	if (!found) {
		fail(ctl, model, entry->fts_path, ENOMEM);
	} else if (*found == file) {
		model->bytes += (double)info->st_size;
		model->count++;
		return;
	}
	free(file);
}

/* Folders, and loops of links, are of no interest. */
static void add_entry(struct ctl *ctl, struct model *model, const FTSENT *entry)
{
	switch (entry->fts_info) {
	case FTS_F:
		add_file(ctl, model, entry);
		break;
	case FTS_SLNONE:
		fail(ctl, model, entry->fts_path, ENOENT);
		break;
	case FTS_DNR:
	case FTS_ERR:
	case FTS_NS:
		fail(ctl, model, entry->fts_path, entry->fts_errno);
		break;
	case FTS_DEFAULT:
		if (entry->fts_level == 0) {
			ctl_fail(ctl, 0, "%s is not a file or a folder", entry->fts_path);
			model->unreadable++;
		}
	}
}

static struct model read_model(struct ctl *ctl, char *path)
{
	char *const paths[] = {path, NULL};
	struct model model = {.bytes = 0};
	FTS *tree = fts_open(paths, FTS_LOGICAL | FTS_NOCHDIR, NULL);
	if (!tree) { /* an empty path */
		fail(ctl, &model, path, errno);
		return model;
	}
	FTSENT *entry;
	for (long entries = 0; (entry = fts_read(tree)); entries++) {
		if (entries == ENTRIES_MAX) {
			ctl_fail(ctl, 0, "%s: more than %d entries", path, ENTRIES_MAX);
			model.unreadable++;
			break;
		}
		add_entry(ctl, &model, entry);
	}
	if (model.count == 0 && model.unreadable == 0) {
		ctl_fail(ctl, 0, "%s contains no files", path);
	}
	fts_close(tree);
	tdestroy(model.files, free);
	return model;
}

static void add_row(cJSON *rows, const char *path, const struct model *model)
{
	double first = json_number(rows->child, "size_bytes"), more = model->bytes - first;
	cJSON *row = cJSON_CreateObject();
	cJSON_AddStringToObject(row, "path", path);
	json_add_number(row, "size_bytes", model->bytes);
	json_add_number(row, "size_mb", model->bytes / MIB);
	json_add_number(row, "size_gb", model->bytes / GIB);
	json_add_number(row, "files", model->count);
	json_add_number(row, "unreadable", (double)model->unreadable);
	if (first > 0) {
		json_add_number(row, "difference_bytes", more);
		json_add_number(row, "difference_percent", 100 * more / first);
	}
	cJSON_AddItemToArray(rows, row);
}

static void show_models(struct ctl *ctl, const cJSON *reply)
{
	static const struct field fields[] = {
		{"MODEL", FIELD_LONG, "{path}"},
		{"SIZE", FIELD_NUMBER, "{size_bytes:bytes}"},
		{"BYTES", FIELD_NUMBER, "{size_bytes:count}"},
		{"FILES", FIELD_NUMBER, "{files:count}"},
		{"DIFFERENCE", FIELD_NUMBER,
			"[{difference_bytes:+MiB} ({difference_percent:1} %)|]"},
		{"", FIELD_TEXT, "[{?unreadable}{~warn}{unreadable:0} unreadable]"},
	};
	listing_show(ctl, reply, "models", fields, sizeof(fields) / sizeof(fields[0]));
}

static int run(struct ctl *ctl)
{
	cJSON *reply = cJSON_CreateObject(), *rows = cJSON_AddArrayToObject(reply, "models");
	int status = ctl_check_local(ctl);
	for (int i = 0; status != CTL_USAGE && i < ctl->word_count; i++) {
		struct model model = read_model(ctl, ctl->words[i]);
		if (model.count > 0) {
			add_row(rows, ctl->words[i], &model);
		}
		status = model.unreadable > 0 || model.count == 0 ? CTL_NO_INPUT : status;
	}
	if (ctl->options.json == JSON_OFF) {
		json_clean(reply, ctl->style.utf8);
	}
	if (!rows->child) {
		cJSON_Delete(reply);
		return status;
	}
	int shown = ctl_answer(ctl, reply, show_models);
	return shown != CTL_FINE ? shown : status;
}

const struct verb verb_model_size = {"model-size", "PATH...",
	"Show the size of model files or folders, compared with the first.",
	"model-size yolo_fp32.onnx yolo_int8.onnx", NULL, run};
