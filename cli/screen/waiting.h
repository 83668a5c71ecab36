/* cli/screen/waiting.h - one line on the terminal while a command waits for a lock or for its turn. */
#ifndef CLI_SCREEN_WAITING_H
#define CLI_SCREEN_WAITING_H

#include "cli.h"
#include "holdfast/lock.h"

struct waiting; /* shared with processes that are forked later: any of them may draw the line, and the last one takes it away */

/* NULL where no line is to be drawn: standard error is no terminal that can, or -q. `in_background`: Ctrl-C does not end the wait. */
struct waiting *waiting_begin(const struct cli *cli, int in_background);

/* Draws the line anew, or takes it away (`where` NULL). As `waiting` of struct hf_lock_opts and hf_run_opts. */
void waiting_show(void *waiting, const struct hf_lock_waiting *where);

/* Takes the line away if it is there, and frees. NULL is fine. */
void waiting_end(struct waiting *waiting);

#endif
