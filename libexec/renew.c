/*
 * libexec/renew.c - holdfast-renew: keeps the lease of one lock alive (src/lock/lease/renewer.h). `lock run`, `lock acquire` and sessions start it.
 *
 * Not for people: what it is to do comes through the socket that is its standard input. Its one argument, the name of the
 * lock, is for those that read `ps`.
 */
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hf/lock/lease/renewer.h"
#include "holdfast/exit.h"

int main(void)
{
	int type = 0;
	socklen_t len = sizeof(type);

	if (getsockopt(STDIN_FILENO, SOL_SOCKET, SO_TYPE, &type, &len) < 0) {
		fputs(HF_RENEW_PROGRAM ": 'holdfast lock' starts this program; it is not a command\n", stderr);
		return HF_EXIT_USAGE;
	}
	return hf_renewer_main(STDIN_FILENO);
}
