/* Part of the gpu collector: the one place that knows the drivers' spellings of load. */
#include "daemon/collect/board/gpu_load.h"

#include <errno.h>
#include <string.h>

#include "daemon/collect/lib/text.h"

int gpu_load_parse(const char *text, enum gpu_scale scale, double *ret)
{
	const char *p = text + strspn(text, " \t\r\n");
	uint64_t value;
	if (*p == '\0') {
		return -ENODATA;
	}
	if (!text_u64(&p, &value)) {
		return -EBADMSG;
	}
	if (*p == '@' || *p == '%') {
		scale = GPU_PERCENT;
	} else if (p[strspn(p, " \t\r\n")] != '\0') {
		return -EBADMSG;
	}
	double percent = (double)value / (scale == GPU_PERMILLE ? 10 : 1);
	if (percent > 100) {
		return -ERANGE;
	}
	*ret = percent;
	return 0;
}
