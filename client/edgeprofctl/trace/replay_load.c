/* SPDX-License-Identifier: Apache-2.0 */
/* replay_load.c: loads a recording or a session, from a file or from the daemon, for a replay. */
#include "client/edgeprofctl/trace/replay.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/edgeprofctl/ctl.h"
#include "client/edgeprofctl/link/json.h"

enum { FILE_MAX = 1 << 29, FILE_AT_ONCE = 1 << 16 };

static int read_path(struct ctl *ctl, const char *path, FILE *to)
{
	char buffer[FILE_AT_ONCE];
	FILE *file = fopen(path, "re");
	if (!file) {
		return ctl_fail(ctl, CTL_NO_INPUT, "cannot read '%s': %s", path, strerror(errno));
	}
	size_t n, left = FILE_MAX;
	while ((n = fread(buffer, 1, sizeof(buffer), file)) > 0 && n <= left &&
		fwrite(buffer, 1, n, to) == n) {
		left -= n;
	}
	int error = n > left ? EFBIG : n > 0 ? ENOMEM : ferror(file) ? EIO : 0;
	fclose(file);
	return error ? ctl_fail(ctl, CTL_NO_INPUT, "cannot read '%s': %s", path, strerror(error))
		     : CTL_FINE;
}

static int fetch(struct ctl *ctl, const char *name, const char *method, FILE *to)
{
	enum json_mode json = ctl->options.json;
	bool continues = true;
	ctl->options.json = JSON_SHORT; /* the text as it is */
	int status = ctl_subscribe(ctl, method, ctl_parameters("name", name));
	while (status == CTL_FINE && continues) {
		cJSON *reply;
		status = ctl_chunk(ctl, method, &reply, &continues);
		if (fputs(json_word(reply, "text"), to) < 0 || ftell(to) > FILE_MAX) {
			status = ctl_fail(ctl, CTL_OUTPUT, "out of memory");
		}
		cJSON_Delete(reply);
	}
	ctl->options.json = json;
	if (status == CTL_FINE && ftell(to) == 0) {
		status = ctl_fail(ctl, CTL_NO_DATA, "nothing of '%s' is written yet", name);
	}
	return status;
}

int replay_load(struct ctl *ctl, const char *name, const char *method)
{
	static const struct responder responder = {replay_send, replay_receive};
	const char *reason = "";
	char *text = NULL;
	size_t length;
	FILE *stream = open_memstream(&text, &length);
	if (!stream) {
		return ctl_fail(ctl, CTL_OUTPUT, "out of memory");
	}
	int status = method ? fetch(ctl, name, method, stream) : read_path(ctl, name, stream);
	bool failed = fclose(stream) != 0 || !text; /* ferror(3) knows nothing of memory */
	if (status == CTL_FINE && failed) {
		status = ctl_fail(ctl, CTL_OUTPUT, "out of memory");
	}
	if (status != CTL_FINE) {
		free(text);
		return status;
	}
	ctl->responder = &responder;
	int r = replay_create(text, length, &ctl->replay, &reason);
	return r == -ENOMEM ? ctl_fail(ctl, CTL_OUTPUT, "out of memory")
	       : r < 0 ? ctl_fail(ctl, CTL_NO_INPUT, "'%s' is not a recording: %s", name, reason)
		       : CTL_FINE;
}
