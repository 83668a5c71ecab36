/* cli/session/unlanded.h - work that a session left and that neither landed nor was committed nor dropped. */
#ifndef CLI_SESSION_UNLANDED_H
#define CLI_SESSION_UNLANDED_H

#include "cli.h"
#include "holdfast/tx.h"

/* Prints a line for each command that shows, lands or drops it, on standard error. `resumes` 1: the session can be resumed. */
void unlanded_say_commands(const struct cli *cli, const char *name, const struct hf_tx_unlanded *work, int resumes);

/* Prints the work, then drops it. Returns 0 or an error. */
int unlanded_drop(struct cli *cli, const char *name, struct hf_journal *journal, struct hf_err *err);

#endif
