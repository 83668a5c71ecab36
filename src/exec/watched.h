/*
 * exec/watched.h - a command whose caller does something else meanwhile, and of which nothing stays behind if the caller is killed.
 *
 *     caller ─► watcher ─► command ─► whatever it starts
 *
 *     hf_watched_start(&spawn, &watched);
 *     do
 *             poll(watched.news, …);
 *     while (hf_watched_hear(&watched) && !watched.tree.leader_exited);
 *     hf_watched_leave(&watched);
 *
 * The watcher is a subreaper in a process group of its own, so that every orphan becomes its child and no signal to the caller's
 * group reaches it. If the caller is killed, it ends all of them, whatever they did (setsid, double fork, TERM ignored), without grace
 * and *the command last*: what belongs to the command, as a lock does, is not free before everything else has ended (L7). For that the command is
 * stopped first, so that it starts nothing more. It lives as long as anything does; watched->tree.reaper is its pid.
 *
 * If the watcher is killed, the kernel kills the command (PDEATHSIG), and the caller ends the rest: it is a subreaper as well, unless
 * it had children before, whose orphans could not be told from the command's. If both are killed at once, the command alone is.
 *
 * Signals that the watcher gets are passed on to the command, which takes it for the process that it was started by. For the search for
 * deadlocks it is a process that renews a lease (spawn.h), so the caller is to be one.
 *
 * For programs with one thread, such as the CLI, with SIGCHLD blocked (hf_command_signals_take).
 */
#ifndef EXEC_WATCHED_H
#define EXEC_WATCHED_H

#include "hf/exec/spawn.h"
#include "hf/exec/tree.h"

struct hf_watched_command {
	pid_t pid;           /* of the command */
	int pidfd;           /* the same */
	int news;            /* readable when hf_watched_hear has something to do; so is SIGCHLD */
	int is_subreaper;    /* the rest comes to us when the watcher is killed */
	int is_told;         /* by the watcher, how the command ended. Not, and the command has ended: the watcher was killed */
	int exec_error;      /* -errno of exec or `enter`; 0: the command ran. Known when it has ended */
	struct hf_tree tree; /* below the watcher, the command is its leader; for signals and for how it ended */
};

#define HF_WATCHED_INIT { .pidfd = -1, .news = -1, .tree = HF_TREE_INIT }

/* Starts the command. One that is to wait does so in spawn->enter. 0 or -errno. */
int hf_watched_start(const struct hf_spawn *spawn, struct hf_watched_command *ret);

/* The same in two steps, for a caller that has something else to do while it is forked. Without the second, done ends what was begun. */
int hf_watched_begin(const struct hf_spawn *spawn, struct hf_watched_command *ret);
int hf_watched_started(struct hf_watched_command *watched);

/*
 * Notes in watched->tree if the command has ended. When the watcher was killed, ends what is left before it returns. 1 while
 * a process is left, else 0.
 */
int hf_watched_hear(struct hf_watched_command *watched);

/* Sends a signal to the command. 0 or -errno. */
int hf_watched_signal(const struct hf_watched_command *watched, int sig);

/* The command has ended; what it left running goes on, without a watcher. */
void hf_watched_leave(struct hf_watched_command *watched);

/* Frees; without hf_watched_leave, what lives is ended. */
void hf_watched_done(struct hf_watched_command *watched);

#endif
