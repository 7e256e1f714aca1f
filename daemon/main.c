#include "daemon/daemon.h"

int main(void)
{
	return 0;
}
