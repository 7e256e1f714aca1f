/* What a connection sends, and the limits on the memory that a user can make us hold. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct api_connection;

/* Memory on the user's account. False, and nothing charged, when he or all hold too much. */
bool queue_charge(struct api_connection *connection, size_t bytes);
void queue_release(struct api_connection *connection, size_t bytes);

/* Room for one more reply of any size in the queues of connection, user and server? */
bool queue_has_room(struct api_connection *connection);

/* Sends bytes: at once what the socket takes, the rest queued. Closes the connection on failure. */
void queue_send(struct api_connection *connection, const char *bytes, size_t length);

/* Sets or clears the time by which the peer must have read something. */
void queue_watch(struct api_connection *connection);
