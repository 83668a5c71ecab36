/* run/session/notes/usage.c - what a run uses: reading it from the kernel, and the file that its keeper leaves for others. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/parse.h"
#include "hf/exec/tree.h"
#include "hf/run/session/notes/usage.h"
#include "hf/sys/io.h"

#define USAGE_FILE "usage"
#define NUMBERS    6
#define LINE       (NUMBERS * 21)

/* A share over less than this would be that of a few clock ticks. */
#define LEAST_NS (3 * HF_SEC)

/* -- now ---------------------------------------------------------------------------- */

struct sum {
	struct hf_usage_now now;
	long page, tick;
};

static void count(struct sum *sum, const struct hf_stat *st)
{
	sum->now.cpu_ns += (int64_t)(st->cpu_ticks + st->waited_ticks) * (HF_SEC / sum->tick);
	if (hf_stat_is_dead(st))
		return;
	sum->now.processes++;
	sum->now.memory_bytes += (int64_t)st->rss_pages * sum->page;
}

static void count_pid(void *arg, int32_t pid)
{
	struct hf_stat st;

	if (hf_stat_read(pid, &st) == 0)
		count(arg, &st);
}

/* What the keeper has waited for. */
static void count_waited(struct sum *sum, int32_t keeper)
{
	struct hf_stat st;

	if (hf_stat_read(keeper, &st) == 0)
		sum->now.cpu_ns += (int64_t)st.waited_ticks * (HF_SEC / sum->tick);
}

/* A group counts all that was ever in it, also what nobody waited for. */
static void count_group(struct sum *sum, const struct hf_cgroup *group)
{
	int64_t usec = hf_cgroup_number(group, "cpu.stat", "usage_usec ");

	if (usec >= 0)
		sum->now.cpu_ns = usec * HF_USEC;
}

int hf_usage_measure(const struct hf_session_record *r, struct hf_usage_now *ret)
{
	struct sum sum = { .page = sysconf(_SC_PAGESIZE), .tick = sysconf(_SC_CLK_TCK) };
	struct hf_cgroup group = HF_CGROUP_INIT;
	struct hf_ptable scan = { 0 };
	int error;

	if (sum.page <= 0 || sum.tick <= 0)
		return -ENOSYS;
	if (r->cgroup[0] && hf_cgroup_open(r->cgroup, r->cgroup_inode, &group) == 0) {
		(void)hf_cgroup_each(&group, count_pid, &sum);
		count_waited(&sum, r->keeper.pid);
		count_group(&sum, &group);
		hf_cgroup_done(&group);
	} else {
		error = hf_ptable_read(&scan);
		if (error < 0)
			return error;
		hf_ptable_keep_descendants(&scan, r->keeper.pid, NULL, 0);
		for (size_t i = 0; i < scan.n; i++)
			count(&sum, &scan.stats[i]);
		hf_ptable_done(&scan);
		count_waited(&sum, r->keeper.pid);
	}
	*ret = sum.now;
	return 0;
}

/* -- before ---------------------------------------------------------------------------- */

void hf_usage_add(struct hf_usage *usage, const struct hf_usage_now *now)
{
	if (now->memory_bytes > usage->peak_bytes)
		usage->peak_bytes = now->memory_bytes;
	usage->moments[1] = usage->moments[0];
	usage->moments[0] = (struct hf_usage_moment){ hf_boot_now().ns, now->cpu_ns };
}

void hf_usage_write(struct hf_sessions *sessions, const char *name, uint64_t token, const struct hf_usage *usage)
{
	const struct hf_usage_moment *m = usage->moments;
	char line[LINE + 1];
	AUTO_FD dir = -1;
	AUTO_FD fd = -1;
	size_t done;

	if (hf_session_dir(sessions, name, 0, &dir, NULL) < 0 ||
	    hf_open_private(dir, USAGE_FILE, O_WRONLY | O_CREAT, USAGE_FILE, &fd, NULL, NULL) < 0)
		return;
	(void)snprintf(line, sizeof(line), "%020" PRIu64 " %020" PRId64 " %020" PRId64 " %020" PRId64 " %020" PRId64 " %020" PRId64 "\n",
		       token, usage->peak_bytes, m[0].at_ns, m[0].cpu_ns, m[1].at_ns, m[1].cpu_ns);
	(void)hf_pwrite_all(fd, line, LINE, 0, &done);
}

void hf_usage_read(struct hf_sessions *sessions, const char *name, uint64_t token, struct hf_usage *ret)
{
	uint64_t numbers[NUMBERS];
	char line[LINE];
	AUTO_FD dir = -1;
	AUTO_FD fd = -1;

	memset(ret, 0, sizeof(*ret));
	if (hf_session_dir(sessions, name, 0, &dir, NULL) < 0 ||
	    hf_open_private(dir, USAGE_FILE, O_RDONLY, USAGE_FILE, &fd, NULL, NULL) < 0 ||
	    hf_pread_all(fd, line, LINE, 0) != LINE)
		return;
	for (size_t i = 0; i < NUMBERS; i++)
		if (hf_parse_u64(line + i * 21, 20, INT64_MAX, &numbers[i]) < 0)
			return;
	if (numbers[0] != token)
		return;
	ret->peak_bytes = (int64_t)numbers[1];
	for (size_t i = 0; i < 2; i++)
		ret->moments[i] = (struct hf_usage_moment){ (int64_t)numbers[2 + 2 * i], (int64_t)numbers[3 + 2 * i] };
}

int32_t hf_usage_permille(const struct hf_usage *usage, const struct hf_usage_now *now, int64_t began_ns)
{
	struct hf_usage_moment since = { began_ns, 0 };
	int64_t boot = hf_boot_now().ns, span, used;

	for (size_t i = 0; i < 2; i++) {
		const struct hf_usage_moment *m = &usage->moments[i];

		if (m->at_ns > began_ns && boot - m->at_ns >= LEAST_NS) {
			since = *m;
			break;
		}
	}
	span = boot - since.at_ns;
	used = now->cpu_ns - since.cpu_ns;
	if (since.at_ns <= 0 || span < HF_MSEC)
		return -1;
	/* What nobody waited for is gone from the sum. */
	if (used < 0)
		used = 0;
	return (int32_t)(used / (span / 1000));
}
