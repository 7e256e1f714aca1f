/* SPDX-License-Identifier: Apache-2.0 */
/* mapping.c: makes the sealed memfd, and keeps the library's descriptors apart from the app's. */
#include "client/libedgeprof/private.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* Descriptors that stay open between events: the socket, the memfd, the threads' schedstat. */

int descriptor_set(struct descriptor *d, int fd)
{
	if (fd >= 0 && fd <= 2) {
		int moved = fcntl(fd, F_DUPFD_CLOEXEC, 3);
		close(fd);
		fd = moved;
	}
	struct stat st;
	if (fd < 0 || fstat(fd, &st) < 0) {
		return -EBADF;
	}
	*d = (struct descriptor){fd, st.st_dev, st.st_ino};
	return 0;
}

bool descriptor_ours(const struct descriptor *d)
{
	struct stat st;
	return d->fd >= 0 && fstat(d->fd, &st) == 0 && st.st_dev == d->dev && st.st_ino == d->ino;
}

void descriptor_close(struct descriptor *d)
{
	if (descriptor_ours(d)) {
		close(d->fd);
	}
	d->fd = -1;
}

/* The memfd: all its blocks present and its size sealed, so that neither side can be faulted. */

static void mapping_fill(void *map, const struct proto_geometry *g)
{
	struct proto_map_header *header = map;
	*header = (struct proto_map_header){
		.magic = PROTO_MAP_MAGIC,
		.major = PROTO_MAP_MAJOR,
		.minor = PROTO_MAP_MINOR,
		.size = g->size,
		.created_ns = edgeprof_now(),
	};
	struct proto_slot *slots = proto_map_slots(map, g);
	for (uint32_t i = 0; i < g->slots; i++) {
		slots[i].first_chunk = PROTO_NO_CHUNK;
		slots[i].tail_chunk = PROTO_NO_CHUNK;
	}
	struct proto_chunk *chunks = proto_map_chunks(map, g);
	for (uint32_t i = 0; i < g->chunks; i++) {
		chunks[i] = (struct proto_chunk){.base = PROTO_NO_BASE, .next = PROTO_NO_CHUNK};
	}
}

/* A memfd that is never run, which some systems insist on; older ones don't know the flag. */
static int memfd_new(void)
{
	const unsigned noexec_seal = 0x0008; /* MFD_NOEXEC_SEAL, Linux 6.3 */
	int fd = memfd_create("edgeprof", MFD_CLOEXEC | MFD_ALLOW_SEALING | noexec_seal);
	return fd < 0 && errno == EINVAL ? memfd_create("edgeprof", MFD_CLOEXEC | MFD_ALLOW_SEALING)
					 : fd;
}

/* A file beyond the app's limit would not fail but kill it with SIGXFSZ, memfd or not. */
static bool size_allowed(uint32_t size)
{
	struct rlimit limit;
	return getrlimit(RLIMIT_FSIZE, &limit) < 0 || limit.rlim_cur >= size;
}

int mapping_create(uint32_t size)
{
	if (!size_allowed(size)) {
		return -ENOMEM;
	}
	struct proto_geometry g;
	void *map = MAP_FAILED;
	int error = -ENOMEM;
	int fd = memfd_new();
	if (fd < 0 || proto_geometry(size, &g) < 0 || ftruncate(fd, size) < 0) {
		goto error;
	}
	int failed;
	do {
		failed = posix_fallocate(fd, 0, size);
	} while (failed == EINTR);
	if (failed || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0) {
		goto error;
	}
	map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED) {
		goto error;
	}
	mapping_fill(map, &g);
	/* an event may have brought us here, and events never wait */
	if (pthread_mutex_trylock(&process.lock) != 0) {
		error = -EAGAIN;
		goto error;
	}
	names_copy(map);
	process.geometry = g;
	__atomic_store_n(&process.map, map, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&process.lock);
	return fd;
error:
	if (map != MAP_FAILED) {
		munmap(map, size);
	}
	if (fd >= 0) {
		close(fd);
	}
	return error;
}
