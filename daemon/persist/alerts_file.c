/* SPDX-License-Identifier: Apache-2.0 */
/* alerts_file.c: reads the state of alerts when the daemon starts and writes it when it changes.
 * The loop makes and parses the bytes; a thread (offload) waits for the medium, and one that hangs
 * is left to that thread. Usually a start finds the file at once, as if it had been read in line.
 */
#include "daemon/persist/alerts_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/core/alerts/snapshot.h"
#include "daemon/core/alerts/store.h"
#include "daemon/util/crc32c.h"
#include "daemon/util/file.h"
#include "daemon/util/log.h"
#include "daemon/util/offload/offload.h"
#include "daemon/util/sysops.h"

enum {
	READ_QUICK_MS = 50,
	READ_MAX_MS = 5000,
	CHECK_MS = 60000,
	STOP_MS = 2000,
	RENAME_BYTES = 16 * 1024, /* directory, inode and journal in addition to the file itself */
};

#define FILE_NAME "alerts"

/* What one thread reads or writes; it belongs to the thread until the job is done. */
struct transfer {
	enum { READ, WRITE, WRITE_IF_PRESENT } kind;
	char dir[192];
	size_t size; /* of the bytes, or of the buffer to read into */
	uint8_t bytes[];
};

struct alerts_reader {
	uv_timer_t timer;
	struct offload *job; /* NULL: has ended */
	char dir[192];
	void *store, *overrides;
	uint8_t boot_id[16];
	bool waiting; /* on the loop */
	alerts_begin *begin;
	void *ctx;
};

struct alerts_writer {
	uv_timer_t timer;
	struct core *core;
	struct persist *persist;
	struct offload *job; /* NULL: none is running */
	char dir[192];
	uint32_t crc;	  /* of what is being written */
	uint32_t written; /* of what the file holds; 0 = unknown */
	uint32_t empty;	  /* of a file without alerts */
	bool closing, failed;
};

static struct transfer *transfer_create(const char *dir)
{
	struct transfer *transfer = mem_zalloc(sizeof(*transfer) + alerts_snapshot_bytes());
	if (transfer) {
		snprintf(transfer->dir, sizeof(transfer->dir), "%s", dir);
		transfer->size = alerts_snapshot_bytes();
	}
	return transfer;
}

static int transfer_work(void *data)
{
	struct transfer *transfer = data;
	struct stat st;
	int r = 0, folder = folder_open(transfer->dir, 0);
	if (folder < 0) {
		return transfer->kind == WRITE_IF_PRESENT && folder == -ENOENT ? 0 : folder;
	}
	if (transfer->kind == READ) {
		r = (int)file_read_own(folder, FILE_NAME, transfer->bytes, transfer->size, &st);
	} else if (transfer->kind == WRITE ||
		   fstatat(folder, FILE_NAME, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		r = file_replace(
			folder, FILE_NAME ".new", FILE_NAME, 0600, transfer->bytes, transfer->size);
	}
	close(folder);
	return r;
}

static void on_timer_closed(uv_handle_t *handle)
{
	free(handle->data);
}

static void log_result(const struct alerts_reader *reader, int r)
{
	if (r == 0) {
		log_info("restored the alerts of the previous boot");
	} else if (r != -ENOENT && r != -EALREADY) {
		log_warning("cannot restore the alerts of the previous boot: %s/%s: %s",
			reader->dir, FILE_NAME,
			r == -EBADMSG ? "damaged, or written by another version" : strerror(-r));
	}
}

void alerts_reader_close(struct alerts_reader *reader)
{
	if (!reader) {
		return;
	}
	if (reader->job) {
		offload_detach(reader->job);
	}
	uv_close((uv_handle_t *)&reader->timer, on_timer_closed);
}

void alerts_reader_give_up(struct alerts_reader *reader)
{
	if (reader) {
		alerts_begin *begin = reader->begin;
		void *ctx = reader->ctx;
		log_result(reader, -ETIMEDOUT);
		alerts_reader_close(reader);
		begin(ctx);
	}
}

static void on_read_timeout(uv_timer_t *timer)
{
	alerts_reader_give_up(timer->data);
}

static void on_read(void *ctx, int result, void *data)
{
	struct alerts_reader *reader = ctx;
	struct transfer *transfer = data;
	reader->job = NULL;
	if (result >= 0) {
		result = alerts_snapshot_restore(reader->store, reader->overrides, reader->boot_id,
			transfer->bytes, (size_t)result, sysops()->now_ns());
	}
	free(transfer);
	log_result(reader, result);
	if (reader->waiting) {
		alerts_reader_close(reader);
		reader->begin(reader->ctx);
	}
}

static int start_reading(struct alerts_reader *reader, uv_loop_t *loop)
{
	static const struct offload_ops ops = {
		.work = transfer_work, .done = on_read, .release = free};
	struct transfer *transfer = transfer_create(reader->dir);
	int r = transfer ? offload_start(loop, &ops, transfer, reader, &reader->job) : -ENOMEM;
	if (r < 0) {
		free(transfer);
	}
	return r;
}

bool alerts_reader_open(uv_loop_t *loop, const char *dir, void *store, void *overrides,
	const uint8_t boot_id[16], alerts_begin *begin, void *ctx, struct alerts_reader **ret)
{
	*ret = NULL;
	if (alerts_store_is_of(store, boot_id)) {
		return true;
	}
	struct alerts_reader *reader = mem_zalloc(sizeof(*reader));
	if (!reader) {
		log_warning("cannot restore the alerts of the previous boot: %s", strerror(ENOMEM));
		return true;
	}
	snprintf(reader->dir, sizeof(reader->dir), "%s", dir);
	memcpy(reader->boot_id, boot_id, sizeof(reader->boot_id));
	reader->store = store;
	reader->overrides = overrides;
	reader->begin = begin;
	reader->ctx = ctx;
	int r = start_reading(reader, loop);
	if (r < 0) {
		log_result(reader, r);
	}
	if (r < 0 || offload_wait(reader->job, READ_QUICK_MS)) {
		free(reader);
		return true;
	}
	reader->waiting = true;
	uv_timer_init(loop, &reader->timer);
	reader->timer.data = reader;
	uv_timer_start(&reader->timer, on_read_timeout, READ_MAX_MS, 0);
	*ret = reader;
	return false;
}

static void finish(struct alerts_writer *writer)
{
	if (writer->job) {
		offload_detach(writer->job);
		writer->job = NULL;
	}
	uv_close((uv_handle_t *)&writer->timer, on_timer_closed);
}

static bool write_changes(struct alerts_writer *writer);

static void on_written(void *ctx, int result, void *data)
{
	struct alerts_writer *writer = ctx;
	free(data);
	writer->job = NULL;
	writer->written = result == 0 ? writer->crc : 0;
	if (result < 0 && !writer->failed) {
		log_warning("cannot write the state of alerts: %s/%s: %s", writer->dir, FILE_NAME,
			strerror(-result));
	}
	writer->failed = result < 0;
	/* what changed in the meantime; what failed is not tried again */
	if (writer->closing && (result < 0 || !write_changes(writer))) {
		finish(writer);
	}
}

/* True when something is being written. */
static bool write_changes(struct alerts_writer *writer)
{
	static const struct offload_ops ops = {
		.work = transfer_work, .done = on_written, .release = free};
	if (writer->job || !persist_is_open(writer->persist)) {
		return writer->job != NULL;
	}
	struct transfer *transfer = transfer_create(writer->dir);
	if (!transfer) {
		return false;
	}
	transfer->size = alerts_snapshot(writer->core->alerts, writer->core->wall, transfer->bytes);
	writer->crc = crc32c(0, transfer->bytes, transfer->size) | 1;
	/* No alerts need no file. A start does not know whether there is one, and pays only when it
	 * had to try twice. */
	const bool empty = writer->crc == writer->empty;
	const bool guess = empty && writer->written == 0 && !writer->failed;
	transfer->kind = empty ? WRITE_IF_PRESENT : WRITE;
	if (transfer->size == 0 || writer->crc == writer->written ||
		(!guess && !persist_charge(writer->persist, transfer->size + RENAME_BYTES,
				   writer->closing)) ||
		offload_start(writer->timer.loop, &ops, transfer, writer, &writer->job) < 0) {
		free(transfer);
		return false;
	}
	return true;
}

static void on_check(uv_timer_t *timer)
{
	write_changes(timer->data);
}

int alerts_writer_open(uv_loop_t *loop, struct core *core, const char *dir, struct persist *persist,
	struct alerts_writer **ret)
{
	uint8_t empty[ALERTS_SNAPSHOT_EMPTY];
	struct alerts_writer *writer = mem_zalloc(sizeof(*writer));
	int r = !writer ? -ENOMEM : strlen(dir) >= sizeof(writer->dir) ? -ENAMETOOLONG : 0;
	if (r < 0) {
		free(writer);
		return r;
	}
	snprintf(writer->dir, sizeof(writer->dir), "%s", dir);
	writer->empty = crc32c(0, empty, alerts_snapshot_empty(empty)) | 1;
	writer->core = core;
	writer->persist = persist;
	uv_timer_init(loop, &writer->timer);
	writer->timer.data = writer;
	uv_timer_start(&writer->timer, on_check, CHECK_MS, CHECK_MS);
	*ret = writer;
	return 0;
}

static void on_stop_timeout(uv_timer_t *timer)
{
	log_warning("stopped before the state of alerts was written: no response within %d s",
		STOP_MS / 1000);
	finish(timer->data);
}

void alerts_writer_close(struct alerts_writer *writer)
{
	if (!writer) {
		return;
	}
	writer->closing = true;
	if (write_changes(writer)) {
		uv_timer_start(&writer->timer, on_stop_timeout, STOP_MS, 0);
	} else {
		finish(writer);
	}
}
