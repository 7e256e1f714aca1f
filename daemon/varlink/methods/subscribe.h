/* Subscribe: the current state, then changes. One observer of each kind serves all subscriptions.
 */
#pragma once

struct api;

/* Registers the server's observers. 0, or -ENOSPC. */
int subscribe_open(struct api *api);
void subscribe_close(struct api *api);
