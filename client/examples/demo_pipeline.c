#include "edgeprof.h"

int main(void)
{
	return 0;
}
