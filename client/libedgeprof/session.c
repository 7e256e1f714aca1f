/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session.c: asks the daemon to start and to stop a session, by one call on its Varlink socket:
 * io.edgeprof in the run directory. The call is sent in pieces, because nothing here allocates; of
 * the reply only the beginning matters: an error's name, or that of the session.
 */
#include "client/libedgeprof/private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "proto/name.h"

enum {
	STEP_US = 300000,      /* to connect, to send, to be answered */
	REPLY_NS = 1000000000, /* for all of the reply, however it arrives */
	PIECE = 512,
	HEAD = 256, /* of a reply */
	NAME_SIZE = 64,
	WARMUP = 10, /* frames */
};

struct call {
	struct descriptor socket;
	int error;
	size_t length;
	char bytes[PIECE]; /* of the call, then of the reply */
};

static struct {
	uint32_t locked;
	char name[NAME_SIZE]; /* of the session that this process started last */
} last;

static void flush(struct call *call)
{
	for (size_t sent = 0; call->error == 0 && sent < call->length;) {
		ssize_t n = send(
			call->socket.fd, call->bytes + sent, call->length - sent, MSG_NOSIGNAL);
		if (n >= 0) {
			sent += (size_t)n;
		} else if (errno != EINTR) {
			call->error = errno == EAGAIN ? -ETIMEDOUT : -errno;
		}
	}
	call->length = 0;
}

static void put(struct call *call, const char *text)
{
	for (; *text != '\0'; text++) {
		call->bytes[call->length++] = *text;
		if (call->length == sizeof(call->bytes)) {
			flush(call);
		}
	}
}

/* `before`, and the value in quotes. The daemon refuses broken UTF-8. */
static void put_value(struct call *call, const char *before, const char *value)
{
	put(call, before);
	put(call, "\"");
	for (; *value != '\0'; value++) {
		char character[8] = {*value};
		if ((unsigned char)*value < 0x20 || *value == '"' || *value == '\\') {
			snprintf(character, sizeof(character), "\\u%04x", (unsigned)*value);
		}
		put(call, character);
	}
	put(call, "\"");
}

static void put_number(struct call *call, const char *before, uint64_t number)
{
	char text[24];
	snprintf(text, sizeof(text), "%llu", (unsigned long long)number);
	put(call, before);
	put(call, text);
}

static void put_tags(
	struct call *call, const char *before, const struct edgeprof_tag *tags, size_t count)
{
	put(call, before);
	for (const char *comma = ""; count > 0; count--, tags++) {
		if (tags->name && tags->value) {
			put(call, comma);
			put_value(call, "{\"name\":", tags->name);
			put_value(call, ",\"value\":", tags->value);
			put(call, "}");
			comma = ",";
		}
	}
	put(call, "]");
}

static void put_options(struct call *call, const struct edgeprof_session *options)
{
	struct edgeprof_tag threads[] = {{"OMP_NUM_THREADS", NULL}, {"OPENBLAS_NUM_THREADS", NULL},
		{"MKL_NUM_THREADS", NULL}, {"NUMEXPR_NUM_THREADS", NULL}};
	const size_t count = sizeof(threads) / sizeof(threads[0]);
	for (size_t i = 0; i < count; i++) {
		threads[i].value = getenv(threads[i].name);
	}
	put_tags(call, ",\"environment\":[", threads, count);
	put_tags(call, ",\"tags\":[", options->tags, options->tags ? options->tag_count : 0);
	put_number(call, ",\"warmup\":",
		options->warmup == 0  ? WARMUP
		: options->warmup > 0 ? (uint64_t)options->warmup
				      : 0);
	if (options->frames > 0) {
		put_number(call, ",\"frames\":", options->frames);
	}
	if (options->duration_ns > 0) { /* "e-9": no decimal point, which the locale may change */
		put_number(call, ",\"seconds\":", options->duration_ns);
		put(call, "e-9");
	}
}

/* Connects as clients do, and begins the call. 0 or a negative errno. */
static int call_begin(struct call *call, const char *method, const char *name)
{
	struct sockaddr_un paths[2];
	const struct timeval limit = {.tv_usec = STEP_US};
	size_t count = attach_paths("io.edgeprof", paths);
	int error = -ENOENT;
	for (size_t i = 0; i < count; i++) {
		int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (descriptor_set(&call->socket, fd) < 0) {
			return -EMFILE;
		}
		fd = call->socket.fd;
		setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
		setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
		if (connect(fd, (const struct sockaddr *)&paths[i], sizeof(paths[i])) == 0) {
			put_value(call, "{\"method\":", method);
			put_value(call, ",\"parameters\":{\"name\":", name);
			return 0;
		}
		int refused = errno == EAGAIN ? -ETIMEDOUT : -errno; /* a full backlog */
		error = error == -EACCES ? error : refused;
		descriptor_close(&call->socket);
	}
	return error;
}

static const char *behind(const char *text, const char *start)
{
	size_t length = strlen(start);
	return strncmp(text, start, length) == 0 ? text + length : NULL;
}

/* What does not begin as the daemon's replies do is none. */
static int read_reply(const char *reply, char ret_name[NAME_SIZE])
{
	static const struct {
		const char *name;
		int error;
	} errors[] = {{"io.edgeprof.NotPermitted\"", -EPERM}, {"io.edgeprof.NotFound\"", -ENXIO},
		{"io.edgeprof.LimitReached\"", -EDQUOT},
		{"org.varlink.service.InvalidParameter\"", -EINVAL},
		{"org.varlink.service.MethodNotFound\"", -ENOSYS}, {"", -EIO}};
	const char *name = behind(reply, "{\"parameters\":{\"session\":{\"name\":\"");
	const char *error = behind(reply, "{\"error\":\"");
	for (size_t i = 0; error; i++) {
		if (behind(error, errors[i].name)) {
			return errors[i].error;
		}
	}
	if (!name || strcspn(name, "\"") >= NAME_SIZE) {
		return -EBADMSG;
	}
	snprintf(ret_name, NAME_SIZE, "%.*s", (int)strcspn(name, "\""), name);
	return 0;
}

/* Sends the rest of the call, and reads up to the end of the reply. */
static int call_end(struct call *call, char ret_name[NAME_SIZE])
{
	put(call, "}}");
	call->bytes[call->length++] = '\0';
	flush(call);
	const uint64_t end_ns = clock_ns() + REPLY_NS;
	for (bool more = true; call->error == 0 && more;) {
		char *to = call->bytes + (call->length < HEAD ? call->length : HEAD);
		ssize_t n = recv(call->socket.fd, to, (size_t)(call->bytes + PIECE - to), 0);
		if (n > 0) {
			call->length += (size_t)n;
			more = to[n - 1] != '\0';
			call->error = more && clock_ns() > end_ns ? -ETIMEDOUT : 0;
		} else if (n == 0 || errno != EINTR) {
			call->error = n == 0 ? -ECONNRESET : errno == EAGAIN ? -ETIMEDOUT : -errno;
		}
	}
	call->bytes[PIECE - 1] = '\0';
	descriptor_close(&call->socket);
	return call->error < 0 ? call->error : read_reply(call->bytes, ret_name);
}

static bool session_lock(void)
{
	return __atomic_exchange_n(&last.locked, 1, __ATOMIC_ACQUIRE) == 0;
}

static void session_unlock(void)
{
	__atomic_store_n(&last.locked, 0, __ATOMIC_RELEASE);
}

void session_forget(void)
{
	last.name[0] = '\0';
	session_unlock();
}

static int start(const char *name, const struct edgeprof_session *options)
{
	struct call call = {.socket = {.fd = -1}};
	char clean[PROTO_NAME_SIZE];
	proto_name_clean(name, strlen(name), clean);
	int r = call_begin(&call, "io.edgeprof.StartSession", clean);
	if (r == 0) {
		put_value(&call, ",\"app\":", attach_app());
		put_options(&call, options);
		r = call_end(&call, last.name);
	}
	if (r == 0 && options->ret_name && options->ret_name_size > 0) {
		snprintf(options->ret_name, options->ret_name_size, "%s", last.name);
	}
	return r;
}

int edgeprof_session_start(const char *name, const struct edgeprof_session *options)
{
	struct edgeprof_session known = {0}; /* what an older program does not know is 0 */
	int saved = errno, r = -EINVAL;
	if (options && options->size >= sizeof(options->size)) {
		memcpy(&known, options,
			options->size < sizeof(known) ? options->size : sizeof(known));
	}
	if (name && (!options || known.size > 0)) {
		r = edgeprof_init(NULL);
		r = r == 0 && process_mode() == PROCESS_OFF ? -ESHUTDOWN : r;
		r = r == 0 && !session_lock() ? -EBUSY : r;
		if (r == 0) {
			r = start(name, &known);
			session_unlock();
		}
	}
	errno = saved;
	return r;
}

int edgeprof_session_stop(const char *name, const char *error)
{
	struct call call = {.socket = {.fd = -1}};
	char stopped[NAME_SIZE];
	int saved = errno, r = -EBUSY;
	if (session_lock()) {
		name = name ? name : last.name;
		r = name[0] == '\0' ? -ENXIO : call_begin(&call, "io.edgeprof.StopSession", name);
		if (r == 0 && error) {
			put_value(&call, ",\"error\":", error);
		}
		r = r == 0 ? call_end(&call, stopped) : r;
		session_unlock();
	}
	errno = saved;
	return r;
}
