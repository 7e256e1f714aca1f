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

/* Frees the context, which may be NULL. r: an error so far. */
static int digest_end(EVP_MD_CTX *context, int r, char ret[FINGERPRINT_SIZE])
{
	unsigned char bytes[EVP_MAX_MD_SIZE];
	r = r == 0 && EVP_DigestFinal_ex(context, bytes, NULL) != 1 ? -ENOMEM : r;
	EVP_MD_CTX_free(context);
	struct text text = text_in(ret, FINGERPRINT_SIZE);
	for (size_t i = 0; r == 0 && i < (FINGERPRINT_SIZE - 1) / 2; i++) {
		text_add(&text, "%02x", bytes[i]);
	}
	return r;
}

/* *ret is for digest_end(), also after an error. */
static int digest_begin(EVP_MD_CTX **ret)
{
	*ret = EVP_MD_CTX_new();
	return *ret && EVP_DigestInit_ex(*ret, EVP_sha256(), NULL) == 1 ? 0 : -ENOMEM;
}

static int digest_add(EVP_MD_CTX *context, const void *bytes, size_t length)
{
	return EVP_DigestUpdate(context, bytes, length) == 1 ? 0 : -ENOMEM;
}

static int compare_lines(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

int fingerprint_session(const cJSON *session, char ret[FINGERPRINT_SIZE])
{
	static const char *const arrays[] = {"tags", "environment"};
	size_t count = 0;
	size_t max = (size_t)(json_count(session, arrays[0]) + json_count(session, arrays[1]));
	char **lines = calloc(max + 1, sizeof(*lines));
	EVP_MD_CTX *context = NULL;
	int r = lines ? digest_begin(&context) : -ENOMEM;
	for (size_t i = 0; i < 2; i++) {
		const cJSON *row = json_first(session, arrays[i]);
		for (; r == 0 && row; row = row->next) {
			r = asprintf(&lines[count], "%s=%s\n", json_word(row, "name"),
				    json_word(row, "value")) < 0
				    ? -ENOMEM
				    : 0;
			count += r == 0;
		}
	}
	if (lines) {
		qsort(lines, count, sizeof(*lines), compare_lines);
	}
	for (size_t i = 0; i < count; i++) {
		r = r == 0 ? digest_add(context, lines[i], strlen(lines[i])) : r;
		free(lines[i]);
	}
	free(lines);
	return digest_end(context, r, ret);
}

int fingerprint_file(const char *path, char ret[FINGERPRINT_SIZE], uint64_t *ret_bytes)
{
	unsigned char buffer[1 << 16];
	EVP_MD_CTX *context = NULL;
	struct stat status;
	ssize_t got = 1;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO must not block */
	if (fd < 0) {
		return -errno;
	}
	int r = fstat(fd, &status) < 0	   ? -errno
		: S_ISDIR(status.st_mode)  ? -EISDIR
		: !S_ISREG(status.st_mode) ? -EINVAL
					   : digest_begin(&context);
	for (*ret_bytes = 0; r == 0 && got > 0; *ret_bytes += (uint64_t)got) {
		got = read(fd, buffer, sizeof(buffer));
		r = got < 0 ? -errno : digest_add(context, buffer, (size_t)got);
	}
	close(fd);
	return digest_end(context, r, ret);
}
