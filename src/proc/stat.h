/*
 * proc/stat.h - the parts of /proc/PID that identity rests on.
 *
 * The parsers are pure and take whatever bytes they are given; results are
 * written only on success.
 */
#ifndef PROC_STAT_H
#define PROC_STAT_H

#include <stddef.h>
#include <stdint.h>

struct hf_stat {
	int32_t pid;
	char state; /* R S D Z T t X I */
	int32_t ppid;
	uint64_t threads;
	uint64_t start_ticks; /* field 22 */
	uint64_t cpu_ticks;   /* fields 14 and 15: user and system */
	uint64_t waited_ticks; /* fields 16 and 17: the same of children that it has waited for, and of theirs */
	uint64_t rss_pages;   /* field 24; 0 when the line ends before it */
};

/*
 * One /proc/PID/stat line. The command name may hold anything, ") R 1 1 (" and
 * newlines included, so fields are counted from behind the *last* ')'.
 * Returns 0 or HF_E_FORMAT.
 */
int hf_stat_parse(const char *text, size_t len, struct hf_stat *ret);

/*
 * 1 when all its threads have ended. A process whose first thread alone has ended shows as a zombie, too,
 * but lives.
 */
int hf_stat_is_dead(const struct hf_stat *st);

/* The real uid from the text of /proc/PID/status. Returns 0 or HF_E_FORMAT. */
int hf_status_parse_uid(const char *text, size_t len, uint32_t *ret);

/*
 * The state of /proc/PID/status and how often it was taken off its processor, by its own will or
 * not. While that number does not change, a process that sleeps has not run. Returns 0 or HF_E_FORMAT.
 */
int hf_status_parse_switches(const char *text, size_t len, char *ret_state, uint64_t *ret);

/* The "Pid:" line of a pidfd's fdinfo: -1 exited, 0 not visible. Returns 0 or HF_E_FORMAT. */
int hf_fdinfo_parse_pid(const char *text, size_t len, int32_t *ret);

/* Reads and parses /proc/PID/stat; `pid` is a number in /proc's own namespace, 0 means self. */
int hf_stat_read(int32_t pid, struct hf_stat *ret);

/* The process that a line of /proc/PID/status belongs to; PID itself, unless PID is a thread. */
int hf_status_parse_tgid(const char *text, size_t len, int32_t *ret);

/* 1 when /proc/PID is a thread of another process, 0 when not, or -errno. */
int hf_status_is_thread(int32_t pid);

/*
 * Writes 1 when the text of /proc/PID/status gives the process `pid` in one of the namespaces below that
 * of /proc, else 0. Returns 0 or HF_E_FORMAT.
 */
int hf_status_parse_inner(const char *text, size_t len, int32_t pid, int *ret);

/* The same of /proc/NUMBER: 1, 0, or -errno. */
int hf_status_has_inner_pid(int32_t number, int32_t pid);

/* Reads the real uid of /proc/PID. */
int hf_status_read_uid(int32_t pid, uint32_t *ret);

/* 1 when /proc shows our own pid namespace: then its numbers are our numbers. */
int hf_proc_is_ours(void);

/*
 * The number under which /proc shows the process behind `pidfd`, which has `pid`
 * in our namespace. They differ when /proc was mounted for another pid
 * namespace. Returns 0, HF_E_GONE, HF_E_UNKNOWN (not visible there), or -errno.
 */
int hf_proc_number(int pidfd, int32_t pid, int32_t *ret);

#endif
