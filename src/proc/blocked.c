/* proc/blocked.c - what /proc says of a process that waits for its children. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "hf/base/parse.h"
#include "hf/proc/blocked.h"
#include "hf/proc/stat.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"

#define CHILDREN_TEXT_MAX (HF_BLOCKED_CHILDREN_MAX * 11)
#define ANCESTORS_MAX     256

static ssize_t read_proc(int32_t pid, const char *leaf, char *to, size_t cap)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, leaf);
	return hf_read_file(AT_FDCWD, path, to, cap);
}

static ssize_t read_children(int32_t pid, char text[CHILDREN_TEXT_MAX])
{
	char leaf[32];

	(void)snprintf(leaf, sizeof(leaf), "task/%d/children", (int)pid);
	return read_proc(pid, leaf, text, CHILDREN_TEXT_MAX);
}

int hf_blocked_children(int32_t pid, struct hf_blocked *ret)
{
	char text[CHILDREN_TEXT_MAX], again[CHILDREN_TEXT_MAX];
	ssize_t n = read_children(pid, text);
	uint64_t child;

	/* Twice: while a child ends, the kernel may leave out another one. */
	if (n < 0 || read_children(pid, again) != n || memcmp(text, again, (size_t)n) != 0)
		return 0;
	ret->n = 0;
	for (const char *at = text, *end = text + n; at < end;) {
		const char *space = memchr(at, ' ', (size_t)(end - at));
		const char *stop = space ? space : end;

		if (ret->n == HF_BLOCKED_CHILDREN_MAX ||
		    hf_parse_u64(at, (size_t)(stop - at), INT32_MAX, &child) < 0)
			return 0;
		ret->children[ret->n++] = (int32_t)child;
		at = stop + 1;
	}
	return 1;
}

/* " 0xffffffff": the number, and how far it goes. 0 or -1. */
static int parse_hex(const char **at, uint64_t *ret)
{
	const char *digit = *at;
	uint64_t value = 0;

	if (strncmp(digit, " 0x", 3) != 0)
		return -1;
	for (digit += 3; (*digit >= '0' && *digit <= '9') || (*digit >= 'a' && *digit <= 'f'); digit++)
		value = value << 4 | (uint64_t)(*digit <= '9' ? *digit - '0' : *digit - 'a' + 10);
	*ret = value;
	*at = digit;
	return 0;
}

/* "61 0xffffffff 0x7ffd... ": the number and two arguments. 0, or -1: not known. */
static int read_call(int32_t pid, uint64_t *ret_number, uint64_t args[2])
{
	char text[256];
	ssize_t n = read_proc(pid, "syscall", text, sizeof(text) - 1);
	const char *at;

	if (n <= 0)
		return -1;
	text[n] = '\0';
	at = text + strcspn(text, " \n");
	if (hf_parse_u64(text, (size_t)(at - text), UINT32_MAX, ret_number) < 0)
		return -1;
	return parse_hex(&at, &args[0]) < 0 || parse_hex(&at, &args[1]) < 0 ? -1 : 0;
}

/* The one child that it waits for; 0: any of them, or not known. */
static int32_t awaited_child(int32_t pid)
{
	uint64_t number, args[2];

	/* Needs more rights than the rest: without them, it may be any child. */
	if (read_call(pid, &number, args) < 0)
		return 0;
	if (number == SYS_wait4 && (int32_t)args[0] > 0)
		return (int32_t)args[0];
	if (number == SYS_waitid && (int32_t)args[0] == P_PID)
		return (int32_t)args[1];
	return 0;
}

static int is_asleep(int32_t pid, uint64_t *ret_switches)
{
	char text[16384], state;
	ssize_t n = read_proc(pid, "status", text, sizeof(text));

	return n > 0 && hf_status_parse_switches(text, (size_t)n, &state, ret_switches) == 0 &&
	       state == 'S';
}

/* Asleep in the kernel function that wait4 and waitid share. A process that runs has none. */
static int is_in_wait(int32_t pid)
{
	char text[64];
	ssize_t n = read_proc(pid, "wchan", text, sizeof(text));

	return n == 7 && memcmp(text, "do_wait", 7) == 0;
}

int hf_blocked_on_children(int32_t pid, struct hf_blocked *ret)
{
	uint64_t after;
	int32_t one;

	if (!is_in_wait(pid) || !is_asleep(pid, &ret->switches) || !is_in_wait(pid) ||
	    !hf_blocked_children(pid, ret))
		return 0;
	one = awaited_child(pid);
	for (size_t i = 0; i < ret->n && one > 0; i++)
		if (ret->children[i] == one) {
			ret->children[0] = one;
			ret->n = 1;
			break;
		}
	return is_asleep(pid, &after) && after == ret->switches;
}

int hf_comm_is_keeper(const char *comm)
{
	return strcmp(comm, HF_COMM_KEEPER) == 0 || strcmp(comm, HF_COMM_LEAVER) == 0;
}

void hf_comm_read(int32_t pid, char out[HF_COMM_MAX])
{
	ssize_t n = read_proc(pid, "comm", out, HF_COMM_MAX);

	out[n > 0 ? n - 1 : 0] = '\0';
}

int hf_same_program(int32_t a, int32_t b)
{
	struct stat st[2];
	char path[64];

	for (int i = 0; i < 2; i++) {
		(void)snprintf(path, sizeof(path), "/proc/%d/exe", (int)(i ? b : a));
		if (hf_sys.fstatat(AT_FDCWD, path, &st[i], 0) < 0)
			return 0;
	}
	return st[0].st_dev == st[1].st_dev && st[0].st_ino == st[1].st_ino;
}

int hf_descends_from(int32_t pid, int32_t ancestor)
{
	struct hf_stat st;

	for (int i = 0; i < ANCESTORS_MAX && pid > 1; i++) {
		if (hf_stat_read(pid, &st) < 0)
			return 0;
		if (st.ppid == ancestor)
			return 1;
		pid = st.ppid;
	}
	return 0;
}
