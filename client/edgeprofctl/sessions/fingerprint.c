/* SPDX-License-Identifier: Apache-2.0 */
/* fingerprint.c: computes SHA-256 digests by libcrypto. */
#include "client/edgeprofctl/sessions/fingerprint.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/evp.h>

#include "client/edgeprofctl/link/json.h"
#include "proto/text.h"

enum { READ_BYTES = 1 << 16 };

static int digest_begin(EVP_MD_CTX **ret)
{
	*ret = EVP_MD_CTX_new();
	return *ret && EVP_DigestInit_ex(*ret, EVP_sha256(), NULL) == 1 ? 0 : -ENOMEM;
}

/* Frees the context. r: an error so far. */
static int digest_end(EVP_MD_CTX *context, int r, char ret[FINGERPRINT_SIZE])
{
	unsigned char bytes[EVP_MAX_MD_SIZE];
	if (r == 0 && EVP_DigestFinal_ex(context, bytes, NULL) != 1) {
		r = -ENOMEM;
	}
	EVP_MD_CTX_free(context);
	struct text text = text_in(ret, FINGERPRINT_SIZE);
	for (size_t i = 0; r == 0 && i < (FINGERPRINT_SIZE - 1) / 2; i++) {
		text_add(&text, "%02x", bytes[i]);
	}
	return r;
}

static int compare_lines(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int add_lines(const cJSON *session, const char *array, char **lines, size_t *count)
{
	for (const cJSON *row = json_first(session, array); row; row = row->next) {
		if (asprintf(&lines[*count], "%s=%s\n", json_word(row, "name"),
			    json_word(row, "value")) < 0) {
			return -ENOMEM;
		}
		++*count;
	}
	return 0;
}

int fingerprint_session(const cJSON *session, char ret[FINGERPRINT_SIZE])
{
	size_t count = 0;
	size_t most = (size_t)(json_count(session, "tags") + json_count(session, "environment"));
	char **lines = calloc(most + 1, sizeof(*lines));
	EVP_MD_CTX *context = NULL;
	int r = lines ? digest_begin(&context) : -ENOMEM;
	r = r == 0 ? add_lines(session, "tags", lines, &count) : r;
	r = r == 0 ? add_lines(session, "environment", lines, &count) : r;
	if (r == 0) {
		qsort(lines, count, sizeof(*lines), compare_lines);
	}
	for (size_t i = 0; i < count; i++) {
		if (r == 0 && EVP_DigestUpdate(context, lines[i], strlen(lines[i])) != 1) {
			r = -ENOMEM;
		}
		free(lines[i]);
	}
	free(lines);
	return digest_end(context, r, ret);
}

static int digest_fd(int fd, EVP_MD_CTX *context, uint64_t *ret_bytes)
{
	unsigned char buffer[READ_BYTES];
	uint64_t bytes = 0;
	for (;;) {
		ssize_t got = read(fd, buffer, sizeof(buffer));
		if (got < 0 && errno != EINTR) {
			return -errno;
		}
		if (got == 0) {
			*ret_bytes = bytes;
			return 0;
		}
		if (got > 0 && EVP_DigestUpdate(context, buffer, (size_t)got) != 1) {
			return -ENOMEM;
		}
		bytes += got > 0 ? (uint64_t)got : 0;
	}
}

int fingerprint_file(const char *path, char ret[FINGERPRINT_SIZE], uint64_t *ret_bytes)
{
	EVP_MD_CTX *context = NULL;
	struct stat status;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO must not block */
	if (fd < 0) {
		return -errno;
	}
	int r = fstat(fd, &status) < 0	   ? -errno
		: S_ISDIR(status.st_mode)  ? -EISDIR
		: !S_ISREG(status.st_mode) ? -EINVAL
					   : digest_begin(&context);
	r = r == 0 ? digest_fd(fd, context, ret_bytes) : r;
	close(fd);
	return digest_end(context, r, ret);
}
