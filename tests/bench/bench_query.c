/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a query costs: its latency, and the CPU time of the daemon, beside a process that answers
 * each request with as many bytes that are there already. In turns in random order; optionally
 * while another client asks something else all the time. One line of JSON in microseconds.
 *
 * usage: bench_query SOCKET PID COUNT REQUEST [BESIDE]
 */
#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/bench/bench.h"

enum { BLOCK = 25, COUNT_MAX = 5000, REPLY_MAX = 4 * 1024 * 1024 };

static char reply[REPLY_MAX + 1];

struct side {
	int fd;
	clockid_t cpu;
	size_t count;
	double cpu_ns, took_us[COUNT_MAX];
};

static int dial(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
		perror(path);
		exit(1);
	}
	return fd;
}

/* Sends the request with its NUL and reads the reply, the last one of several. All their bytes. */
static size_t exchange(int fd, const char *request)
{
	size_t size = 0, frame = 0;
	if (send(fd, request, strlen(request) + 1, MSG_NOSIGNAL) < 0) {
		return 0;
	}
	for (;;) {
		ssize_t n = recv(fd, reply + size, REPLY_MAX - size, 0);
		if (n <= 0) {
			return 0;
		}
		size += (size_t)n;
		for (char *end; (end = memchr(reply + frame, '\0', size - frame));) {
			if (!strstr(reply + frame, "\"continues\":true")) {
				return size;
			}
			frame = (size_t)(end - reply) + 1;
		}
	}
}

static pid_t start_child(void)
{
	pid_t pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	}
	return pid;
}

static void echo(int fd, size_t size)
{
	char request[4096];
	ssize_t n;
	while ((n = recv(fd, request, sizeof(request), 0)) > 0) {
		if (request[n - 1] == '\0' && send(fd, reply, size, MSG_NOSIGNAL) < 0) {
			break;
		}
	}
	_exit(0);
}

static void end_child(pid_t pid)
{
	if (pid > 0) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
}

static bool ask(struct side *side, const char *request, size_t count)
{
	double cpu = clock_ns(side->cpu);
	for (size_t i = 0; i < BLOCK && side->count < count; i++) {
		double start = now_ns();
		if (exchange(side->fd, request) == 0) {
			return false;
		}
		side->took_us[side->count++] = (now_ns() - start) / 1e3;
	}
	side->cpu_ns += clock_ns(side->cpu) - cpu;
	return true;
}

static void print(const char *name, struct side *side)
{
	qsort(side->took_us, side->count, sizeof(double), by_value);
	printf("\"%sp50\": %.2f, \"%sp99\": %.2f, \"%scpu\": %.2f", name,
		side->took_us[side->count / 2], name, side->took_us[side->count * 99 / 100], name,
		side->cpu_ns / (double)side->count / 1e3);
}

int main(int argc, char **argv)
{
	static struct side daemon, floor;
	size_t count = argc > 4 ? strtoul(argv[3], NULL, 10) : 0;
	int pair[2];
	if (count == 0 || count > COUNT_MAX || socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0) {
		fprintf(stderr, "usage: bench_query SOCKET PID COUNT REQUEST [BESIDE]\n");
		return 64;
	}
	const char *request = argv[4];
	daemon.fd = dial(argv[1]);
	size_t size = exchange(daemon.fd, request);
	bool refused = size > 0 && strstr(reply, "\"error\":");
	memset(reply, 'x', size);
	reply[size - 1] = '\0';
	pid_t server = start_child();
	if (server == 0) {
		close(pair[0]);
		echo(pair[1], size);
	}
	pid_t other = argc > 5 ? start_child() : -1;
	if (other == 0) {
		for (int fd = dial(argv[1]); exchange(fd, argv[5]) > 0;) {
		}
		_exit(0);
	}
	close(pair[1]);
	floor.fd = pair[0];
	bool whole = size > 0 &&
		     clock_getcpuclockid((pid_t)strtol(argv[2], NULL, 10), &daemon.cpu) == 0 &&
		     clock_getcpuclockid(server, &floor.cpu) == 0;
	while (whole && floor.count < count) {
		struct side *first = toss() ? &daemon : &floor;
		whole = ask(first, request, count) &&
			ask(first == &daemon ? &floor : &daemon, request, count);
	}
	end_child(other);
	end_child(server);
	if (!whole) {
		fprintf(stderr, "bench_query: no reply\n");
		return 1;
	}
	printf("{\"bytes\": %zu, \"refused\": %s, ", size, refused ? "true" : "false");
	print("", &daemon);
	printf(", ");
	print("floor_", &floor);
	puts("}");
	return 0;
}
