/*
 * run/session/notes/recent.h - the sessions that run or ended lately: recent/KEY of the state directory, an empty file each.
 *
 * So that looking at what runs does not read what ended long ago, however much of it there is. The keeper of every run adds
 * its name when it holds the lock, before anything of the run is on disk; it is taken out by a look that finds that the
 * session ended more than a day ago, while nobody can take the lock. A name too many costs a look; none is ever missing:
 * where the directory itself is, it is made from all sessions there are, as a whole (rename).
 */
#ifndef RUN_SESSION_NOTES_RECENT_H
#define RUN_SESSION_NOTES_RECENT_H

#include "hf/run/session/record/store.h"

/* Adds the name. For the holder of its lock. 0 or -errno. */
int hf_recent_add(struct hf_sessions *sessions, const char *name);

/* Calls `fn` for each name, sorted, until it returns less than 0. */
int hf_recent_each(struct hf_sessions *sessions, int (*fn)(void *arg, const char *name), void *arg, struct hf_err *err);

/* The same where there is such a directory; nothing where there is none. */
int hf_recent_each_there(struct hf_sessions *sessions, int (*fn)(void *arg, const char *name), void *arg);

/* Takes it out, unless the name is held: for one that ended before `before`, or that has no record. */
void hf_recent_drop(struct hf_sessions *sessions, const char *name, struct hf_wall before);

/* Takes it out. For a caller that keeps others from the lock. */
void hf_recent_remove(struct hf_sessions *sessions, const char *name);

#endif
