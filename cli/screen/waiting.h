/* cli/screen/waiting.h - shows a line on the terminal while a command waits for a lock or for its turn. */
#ifndef CLI_SCREEN_WAITING_H
#define CLI_SCREEN_WAITING_H

#include "cli.h"
#include "holdfast/lock.h"

struct waiting; /* shared with processes forked later: any of them may draw the line, and the last one erases it */

/*
 * Returns NULL if no line will be drawn: with -q, or if standard error is not a capable terminal. `in_background`: Ctrl-C
 * does not end the wait.
 */
struct waiting *waiting_begin(const struct cli *cli, int in_background);

/* Draws the line again, or erases it (`where` NULL). The type fits `waiting` in struct hf_lock_opts and hf_run_opts. */
void waiting_show(void *waiting, const struct hf_lock_waiting *where);

/* Erases the line if it is shown, and frees `waiting`, which may be NULL. */
void waiting_end(struct waiting *waiting);

#endif
