/* Output is made in memory first: then its length is known (pager or not), and a screen can be
 * drawn with one write. */
#include "client/edgeprofctl/term/output.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/edgeprofctl/term/pager.h"

int output_open(struct output *output)
{
	output->bytes = NULL;
	output->size = 0;
	output->stream = open_memstream(&output->bytes, &output->size);
	return output->stream == NULL ? -ENOMEM : 0;
}

void output_finish(struct output *output)
{
	if (output->stream != NULL) {
		fclose(output->stream);
		output->stream = NULL;
	}
	free(output->bytes);
	output->bytes = NULL;
}

void output_ignore_sigpipe(void)
{
	struct sigaction action = {.sa_handler = SIG_IGN};
	sigaction(SIGPIPE, &action, NULL);
}

int output_write(int fd, const char *bytes, size_t length)
{
	while (length > 0) {
		ssize_t written = write(fd, bytes, length);
		if (written >= 0) {
			bytes += written;
			length -= (size_t)written;
		} else if (errno == EAGAIN) {
			struct pollfd poll_fd = {.fd = fd, .events = POLLOUT};
			poll(&poll_fd, 1, -1);
		} else if (errno != EINTR) {
			return -errno;
		}
	}
	return 0;
}

static int show(struct output *output, const struct style *pager_style)
{
	bool failed = ferror(output->stream) != 0;
	failed = fclose(output->stream) != 0 || failed;
	output->stream = NULL;
	int r = failed ? -ENOMEM : -ENOENT;
	if (r == -ENOENT && pager_style != NULL) {
		r = pager_show(output->bytes, output->size, pager_style);
	}
	if (r == -ENOENT) {
		r = output_write(STDOUT_FILENO, output->bytes, output->size);
	}
	free(output->bytes);
	int opened = output_open(output);
	return r < 0 ? r : opened;
}

int output_flush(struct output *output)
{
	return show(output, NULL);
}

int output_page(struct output *output, const struct style *style)
{
	return show(output, style);
}
