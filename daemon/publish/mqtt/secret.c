/* Used once at start, to refuse a wrong file early, and by the broker's thread before each
 * connection, so that a changed password is taken up. Nothing here is ever logged. */
#include "daemon/publish/mqtt/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* systemd gives a credential to the service's user by an access list where the file system has
 * them; the mode then shows the list's mask as group bits although no group may read. */
static bool is_credential(const char *path)
{
	const char *folder = getenv("CREDENTIALS_DIRECTORY");
	size_t length = folder ? strlen(folder) : 0;
	return length > 0 && strncmp(path, folder, length) == 0 && path[length] == '/' &&
	       !strstr(path + length, "/../");
}

static int secret_load(int fd, mode_t forbidden, char *buf, size_t size)
{
	struct stat st;
	if (fstat(fd, &st) < 0) {
		return -errno;
	}
	if (!S_ISREG(st.st_mode)) {
		return -EINVAL;
	}
	if (st.st_mode & forbidden) {
		return -EPERM;
	}
	size_t used = 0;
	while (used < size) {
		ssize_t n = read(fd, buf + used, size - used);
		if (n < 0 && errno == EINTR) {
			continue;
		}
		if (n < 0) {
			return -errno;
		}
		if (n == 0) {
			break;
		}
		used += (size_t)n;
	}
	if (used == size) {
		return -EFBIG;
	}
	if (used > 0 && buf[used - 1] == '\n') {
		used--;
	}
	buf[used] = '\0';
	return memchr(buf, '\0', used) ? -EINVAL : 0;
}

int secret_read(const char *path, char *buf, size_t size)
{
	/* O_NONBLOCK: a fifo must not hang the caller. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0) {
		return -errno;
	}
	mode_t forbidden = is_credential(path) ? S_IRWXO : S_IRWXG | S_IRWXO;
	int r = secret_load(fd, forbidden, buf, size);
	close(fd);
	if (r < 0) {
		explicit_bzero(buf, size);
	}
	return r;
}
