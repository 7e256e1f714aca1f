/* What a connection has received and not yet handled. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct api_connection;

/* The next whole frame, without its NUL; it lives until the input is kept or dropped. 0, -ENODATA
 * when there is none, -EMSGSIZE when it is longer than a frame may be. */
int input_next(struct api_connection *connection, const char **ret, size_t *length);

size_t input_left(const struct api_connection *connection);
/* What is left was looked at and is the beginning of a frame. */
bool input_partial(const struct api_connection *connection);

/* Makes what is left an owned copy of just its size, with more behind it. -ENOSPC: the user holds
 * too much; -ENOMEM. */
int input_keep(struct api_connection *connection, const char *more, size_t more_length);
void input_drop(struct api_connection *connection);
