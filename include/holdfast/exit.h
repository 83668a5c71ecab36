/*
 * holdfast/exit.h - exit statuses of the program holdfast.
 *
 * The first five are for all verbs. A verb that runs a command (run, lock run, file edit, file with)
 * exits with the command's status. 124 to 127 concern the command, as in timeout(1) and env(1). A
 * command that was killed by signal N gives HF_EXIT_SIGNAL + N.
 */
#ifndef HOLDFAST_EXIT_H
#define HOLDFAST_EXIT_H

enum hf_exit {
	HF_EXIT_DONE = 0,    /* done, yes */
	HF_EXIT_NO = 1,      /* busy, dead, not found, problems found */
	HF_EXIT_USAGE = 2,   /* the command line is wrong */
	HF_EXIT_REFUSED = 3, /* refused for safety */
	HF_EXIT_OS = 4,      /* operating system or storage */

	HF_EXIT_TIMED_OUT = 124, /* the command was ended at a time limit */
	HF_EXIT_AROUND = 125,    /* Holdfast failed around the command */
	HF_EXIT_NO_EXEC = 126,   /* the command could not be executed */
	HF_EXIT_NO_FILE = 127,   /* the command was not found */
	HF_EXIT_SIGNAL = 128,    /* plus the number of the signal */
};

#endif
