/* proc/host.c - the id of this machine, or else of its state directory. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/proc/here.h"
#include "hf/sys/io.h"
#include "hf/sys/replace.h"
#include "hf/sys/state/state.h"

#define MACHINE_ID_PATH "/etc/machine-id"
#define UNINITIALIZED   "uninitialized\n" /* what an image has until its first boot */
#define ROOM            "stores"
#define OWN_ID          "host-id"

/* One byte more than an id and its newline: so a longer file is noticed. */
#define TEXT_MAX (HF_HOST_ID_LEN + 2)

static size_t hex_digits(const char *text, size_t len)
{
	size_t n = 0;

	while (n < len && memchr("0123456789abcdef", text[n], 16))
		n++;
	return n;
}

/* 1 when it is an id. */
static int take_id(const char *text, ssize_t n, char out[HF_HOST_ID_LEN + 1])
{
	if (n != HF_HOST_ID_LEN + 1 || text[HF_HOST_ID_LEN] != '\n' ||
	    hex_digits(text, HF_HOST_ID_LEN) != HF_HOST_ID_LEN)
		return 0;
	memcpy(out, text, HF_HOST_ID_LEN);
	out[HF_HOST_ID_LEN] = '\0';
	return 1;
}

/* 0 with the id, 1 without one, or a failure. */
static int read_machine_id(char out[HF_HOST_ID_LEN + 1], struct hf_err *err)
{
	char text[TEXT_MAX];
	ssize_t n = hf_read_file(AT_FDCWD, MACHINE_ID_PATH, text, sizeof(text));

	/* Docker makes a directory for a mounted file that its host lacks. */
	if (n == 0 || n == -ENOENT || n == -EISDIR ||
	    (n == sizeof(UNINITIALIZED) - 1 && memcmp(text, UNINITIALIZED, (size_t)n) == 0))
		return 1;
	if (n < 0 && n != -E2BIG)
		return hf_fail_sys(err, (int)-n, "read", MACHINE_ID_PATH);
	if (!take_id(text, n, out))
		return FAIL(err, HF_E_FORMAT, "read", MACHINE_ID_PATH,
			    "not a machine id; empty it, or let 'systemd-machine-id-setup' or 'dbus-uuidgen' make one");
	/* Zeros identify no machine: any number of them may have that id. */
	return strspn(out, "0") == HF_HOST_ID_LEN;
}

static int read_own_id(int room, const char *shown, char out[HF_HOST_ID_LEN + 1], struct hf_err *err)
{
	char text[TEXT_MAX];
	AUTO_FD fd = -1;
	ssize_t n;
	int r = hf_open_private(room, OWN_ID, O_RDONLY, shown, &fd, NULL, err);

	if (r < 0)
		return r;
	n = hf_read_all(fd, text, sizeof(text));
	if (n < 0 && n != -E2BIG)
		return hf_fail_sys(err, (int)-n, "read", shown);
	return take_id(text, n, out) ? 0
				     : FAIL(err, HF_E_FORMAT, "read", shown,
					    "not a machine id; remove it to get a new one");
}

static int make_own_id(int room, const char *shown, struct hf_err *err)
{
	char temp[64], text[TEXT_MAX];
	unsigned char bytes[HF_HOST_ID_LEN / 2];
	int r;

	if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
		return FAIL_SYS(err, "getrandom", shown);
	for (size_t i = 0; i < sizeof(bytes); i++)
		(void)snprintf(text + 2 * i, 3, "%02x", bytes[i]);
	text[HF_HOST_ID_LEN] = '\n';
	(void)snprintf(temp, sizeof(temp), ".%d.%d.tmp", (int)getpid(), (int)gettid());
	/* Another process may have made it just now, and use it already. */
	r = hf_replace_file(room, OWN_ID, temp, text, HF_HOST_ID_LEN + 1, HF_REPLACE_SYNC | HF_REPLACE_NEW);
	return r < 0 && r != -EEXIST ? hf_fail_sys(err, -r, "create", shown) : 0;
}

int hf_host_id(const struct hf_state *state, char out[HF_HOST_ID_LEN + 1], struct hf_err *err)
{
	char shown[4096];
	AUTO_FD room = -1;
	int r = read_machine_id(out, err);

	if (r <= 0)
		return r;
	(void)snprintf(shown, sizeof(shown), "%s/" ROOM "/" OWN_ID, state->path);
	r = hf_state_subdir(state, ROOM, 1, &room, err);
	if (r == 0)
		r = read_own_id(room, shown, out, err);
	if (r == -ENOENT) {
		r = make_own_id(room, shown, err);
		if (r == 0)
			r = read_own_id(room, shown, out, err);
	}
	return r < 0 ? r : 1;
}
