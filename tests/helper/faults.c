/* tests/helper/faults.c - the fault injector, made from the same list as the call table. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "helper/faults.h"
#include "hf/sys/calls.h"

static struct hf_fault armed;
static struct hf_sys real;
static int have_real, counted, struck;
static char struck_call[32];

/* An openat that makes a file is followed by one of these. */
static int is_mutating(const char *call)
{
	static const char *const list[] = { "write", "write_quiet", "pwrite", "ftruncate", "fchmod", "mkdirat",
					    "mkfifoat", "renameat2", "unlinkat", "fchown", "linkat",
					    "copy_file_range", "fsetxattr", "fremovexattr", "syncfs",
					    "symlinkat", "fchownat", "utimensat", "chmod", "lsetxattr",
					    "lremovexattr", "fsync", "fdatasync" };

	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++)
		if (strcmp(list[i], call) == 0)
			return 1;
	return 0;
}

/* Returns 1 when this call must fail; errno is set. */
static int strike(const char *call)
{
	if (armed.at == 0 || (armed.call && strcmp(armed.call, call) != 0) ||
	    (armed.mutating && !is_mutating(call)))
		return 0;
	counted++;
	if (counted != armed.at && !(armed.persist && counted > armed.at))
		return 0;
	struck = 1;
	snprintf(struck_call, sizeof(struck_call), "%s", call);
	if (armed.kill) {
		kill(getpid(), SIGKILL);
		for (;;)
			pause();
	}
	errno = armed.error;
	return 1;
}

static off_t full_from, full_to; /* nothing can be written there any more */

/* 1 when the call that was struck is to do half of it. */
static int halve(size_t len, off_t at)
{
	int half = armed.short_write;

	if (!half || len < 2)
		return 0;
	armed.short_write = 0;
	armed.at = half == 1 ? counted + 1 : 0; /* the rest of it, the next call, fails */
	if (half == 2) {
		full_from = at + (off_t)(len / 2);
		full_to = at + (off_t)len;
	}
	return 1;
}

static ssize_t half_pwrite(int fd, const void *from, size_t len, off_t at)
{
	if (at >= full_from && at < full_to) {
		errno = EFBIG;
		return -1;
	}
	if (!strike("pwrite"))
		return real.pwrite(fd, from, len, at);
	return halve(len, at) ? real.pwrite(fd, from, len / 2, at) : -1;
}

static ssize_t half_write(int fd, const void *from, size_t len)
{
	if (!strike("write"))
		return real.write(fd, from, len);
	return halve(len, 0) ? real.write(fd, from, len / 2) : -1;
}

#define HF_SYS_CALL(result, name, params, args) \
	static result fault_##name params       \
	{                                       \
		if (strike(#name))              \
			return -1;              \
		return real.name args;          \
	}
#include "hf/sys/calls.def"
#undef HF_SYS_CALL

void hf_fault_arm(const struct hf_fault *fault)
{
	if (!have_real) {
		real = hf_sys;
		have_real = 1;
	}
	armed = *fault;
	counted = struck = 0;
	full_from = full_to = 0;
	struck_call[0] = '\0';
#define HF_SYS_CALL(result, name, params, args) hf_sys.name = fault_##name;
#include "hf/sys/calls.def"
#undef HF_SYS_CALL
	hf_sys.pwrite = half_pwrite;
	hf_sys.write = half_write;
	(void)fault_pwrite;
	(void)fault_write;
}

void hf_fault_disarm(void)
{
	if (have_real)
		hf_sys = real;
	memset(&armed, 0, sizeof(armed));
}

int hf_fault_hit(void)
{
	return struck;
}

int hf_fault_count(void)
{
	return counted;
}

const char *hf_fault_call(void)
{
	return struck_call;
}

int hf_fault_arm_from_env(void)
{
	static char call[32];
	struct hf_fault fault = { 0 };
	char what[16];
	const char *text = getenv("HF_FAULT");

	if (!text)
		return 0;
	if (sscanf(text, "%31[a-z_0-9]:%d:%15s", call, &fault.at, what) != 3 || fault.at < 1)
		return -1;
	fault.call = strcmp(call, "any") == 0 ? NULL : call;
	if (strcmp(what, "KILL") == 0)
		fault.kill = 1;
	else
		fault.error = atoi(what);
	hf_fault_arm(&fault);
	return 1;
}
