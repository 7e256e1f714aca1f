/* A descriptor inside somebody else's program: it is used only while it is still ours. Apps that
 * close what they do not know, or reuse the number, must not find our bytes in their files. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

struct descriptor {
	int fd; /* -1: none */
	dev_t dev;
	ino_t ino;
};

/* Takes fd over (a negative one is -EBADF). Numbers 0-2 are left to the app, which may have closed
 * them and still write there. 0 or -EBADF. */
int descriptor_set(struct descriptor *d, int fd);

bool descriptor_ours(const struct descriptor *d);

/* Closes it if it is ours, forgets it anyway. */
void descriptor_close(struct descriptor *d);
