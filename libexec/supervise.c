/*
 * libexec/supervise.c - holdfast-supervise: the supervisor of a session in the background. hf_run_start starts it.
 *
 * Not for people: it reads its order from the socket on its standard input (src/run/supervisor/order.h). Its only argument,
 * the name of the session, is for readers of `ps`.
 */
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hf/run/supervisor/order.h"
#include "hf/tx/stage.h"
#include "holdfast/exit.h"

int main(void)
{
	int type = 0;
	socklen_t len = sizeof(type);

	if (getsockopt(STDIN_FILENO, SOL_SOCKET, SO_TYPE, &type, &len) < 0) {
		fputs(HF_SUPERVISE_PROGRAM ": 'holdfast run --detach' starts this program; it is not a command\n", stderr);
		return HF_EXIT_USAGE;
	}
	return hf_supervise_main(STDIN_FILENO, hf_tx_with_stage);
}
