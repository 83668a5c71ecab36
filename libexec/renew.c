/*
 * libexec/renew.c - holdfast-renew: keeps the lease of one lock alive (src/lock/lease/renewer.h). `lock run`, `lock acquire` and sessions start it.
 *
 * Not for people: it reads its order from the socket on its standard input. Its first argument, the name of the lock, is for
 * readers of `ps`; a second argument means that it holds the name of a session (src/run/fleet/agent.h).
 */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hf/lock/lease/renewer.h"
#include "hf/run/fleet/agent.h"
#include "holdfast/exit.h"

int main(int argc, char **argv)
{
	int type = 0;
	socklen_t len = sizeof(type);

	if (getsockopt(STDIN_FILENO, SOL_SOCKET, SO_TYPE, &type, &len) < 0) {
		fputs(HF_RENEW_PROGRAM ": 'holdfast lock' starts this program; it is not a command\n", stderr);
		return HF_EXIT_USAGE;
	}
	return argc == 3 && strcmp(argv[2], "session") == 0 ? hf_fleet_main(STDIN_FILENO) : hf_renewer_main(STDIN_FILENO);
}
