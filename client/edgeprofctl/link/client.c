/* SPDX-License-Identifier: Apache-2.0 */
/* client.c: reads and writes the wire format: JSON objects that end with NUL, over a stream socket.
 * What arrives is scanned by proto/ before cJSON sees it; a daemon that sends malformed replies is
 * distinguished from an absent one. */
#include "client/edgeprofctl/link/client.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "client/edgeprofctl/term/when.h"
#include "proto/varlink.h"

struct client {
	int fd;
	const char *reason;
	size_t length; /* bytes in buffer */
	char buffer[PROTO_FRAME_MAX];
};

int client_create(int fd, struct client **ret)
{
	struct client *client = calloc(1, sizeof(*client));
	if (!client) {
		close(fd);
		return -ENOMEM;
	}
	client->fd = fd;
	client->reason = "";
	*ret = client;
	return 0;
}

void client_destroy(struct client *client)
{
	if (!client) {
		return;
	}
	close(client->fd);
	free(client);
}

int client_fd(const struct client *client)
{
	return client->fd;
}

const char *client_reason(const struct client *client)
{
	return client->reason;
}

static int wait_for(int fd, short events, double deadline_ms)
{
	int r;
	do {
		double left = ceil(deadline_ms - when_mono_ms());
		struct pollfd poll_fd = {.fd = fd, .events = events};
		r = poll(&poll_fd, 1, (int)fmin(fmax(left, 0), INT_MAX));
	} while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : r == 0 ? -ETIMEDOUT : 0;
}

static int send_all(int fd, const char *bytes, size_t length, double deadline_ms)
{
	while (length > 0) {
		ssize_t sent = send(fd, bytes, length, MSG_NOSIGNAL | MSG_DONTWAIT);
		int r = sent >= 0 || errno == EINTR ? 0
			: errno == EAGAIN	    ? wait_for(fd, POLLOUT, deadline_ms)
						    : -errno;
		if (r < 0) {
			return r;
		}
		bytes += sent > 0 ? sent : 0;
		length -= sent > 0 ? (size_t)sent : 0;
	}
	return 0;
}

int client_send(struct client *client, const char *method, const struct cJSON *parameters,
	bool more, uint64_t timeout_ms)
{
	cJSON *message = cJSON_CreateObject();
	cJSON_AddStringToObject(message, "method", method);
	if (parameters) { /* which stay as they are */
		cJSON_AddItemReferenceToObject(message, "parameters", (cJSON *)parameters);
	}
	if (more) {
		cJSON_AddTrueToObject(message, "more");
	}
	char *call = cJSON_PrintUnformatted(message);
	cJSON_Delete(message);
	size_t length = call ? strlen(call) + 1 : 0;
	int r = !call ? -ENOMEM
		: length > PROTO_FRAME_MAX
			? -EMSGSIZE
			: send_all(client->fd, call, length, when_mono_ms() + (double)timeout_ms);
	free(call);
	return r;
}

/* Checks the envelope of a parsed reply and takes it apart. */
static int open_reply(struct client *client, cJSON *envelope, struct reply *ret)
{
	struct reply reply = {0};
	const cJSON *error = cJSON_GetObjectItemCaseSensitive(envelope, "error");
	const cJSON *continues = cJSON_GetObjectItemCaseSensitive(envelope, "continues");
	cJSON *parameters = cJSON_GetObjectItemCaseSensitive(envelope, "parameters");
	client->reason = "error is not a string, or parameters not an object";
	if ((error && !cJSON_IsString(error) && !cJSON_IsNull(error)) ||
		(parameters && !cJSON_IsObject(parameters) && !cJSON_IsNull(parameters))) {
		return -EBADMSG;
	}
	reply.continues = cJSON_IsTrue(continues);
	reply.error = cJSON_IsString(error) ? strdup(error->valuestring) : NULL;
	reply.parameters = cJSON_IsObject(parameters)
				   ? cJSON_DetachItemViaPointer(envelope, parameters)
				   : cJSON_CreateObject();
	if (!reply.parameters || (cJSON_IsString(error) && !reply.error)) {
		reply_finish(&reply);
		return -ENOMEM;
	}
	*ret = reply;
	return 0;
}

static int open_frame(struct client *client, size_t length, struct reply *ret)
{
	cJSON *envelope = NULL;
	int r = proto_json_parse_reply(client->buffer, length, &envelope, &client->reason);
	client->length -= length + 1;
	memmove(client->buffer, client->buffer + length + 1, client->length);
	if (r < 0) {
		return r;
	}
	r = open_reply(client, envelope, ret);
	cJSON_Delete(envelope);
	return r;
}

int client_receive(struct client *client, uint64_t timeout_ms, struct reply *ret)
{
	double deadline_ms = when_mono_ms() + (double)timeout_ms;
	size_t searched = 0;
	for (;;) {
		const char *end =
			memchr(client->buffer + searched, '\0', client->length - searched);
		if (end) {
			return open_frame(client, (size_t)(end - client->buffer), ret);
		}
		searched = client->length;
		if (client->length == sizeof(client->buffer)) {
			return -EMSGSIZE;
		}
		ssize_t got = recv(client->fd, client->buffer + client->length,
			sizeof(client->buffer) - client->length, MSG_DONTWAIT);
		client->length += got > 0 ? (size_t)got : 0;
		if (got == 0) {
			client->reason = "a reply ended early";
			return client->length > 0 ? -EBADMSG : -ECONNRESET;
		}
		int r = got > 0 || errno == EINTR ? 0
			: errno == EAGAIN	  ? wait_for(client->fd, POLLIN, deadline_ms)
						  : -errno;
		if (r < 0) {
			return r;
		}
	}
}

void reply_finish(struct reply *reply)
{
	cJSON_Delete(reply->parameters);
	free(reply->error);
	*reply = (struct reply){0};
}
