/* run/keeper/attempt/account.c - what the run uses: noted now and then for those that look, and at the end of an attempt for the record. */
#include <sys/resource.h>
#include <sys/stat.h>

#include "hf/run/keeper/keeper.h"
#include "hf/sys/calls.h"

void hf_keeper_sample(struct hf_keeper *k)
{
	struct hf_usage_now now;

	if (hf_usage_measure(&k->record, &now) < 0)
		return;
	hf_usage_add(&k->usage, &now);
	hf_usage_write(k->sessions, k->name, k->record.token, &k->usage);
}

static int64_t higher(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* All that was written, also what the limit of the log has dropped since. */
static int64_t output_bytes(const struct hf_keeper *k)
{
	const struct hf_log_writer *log = &k->output.log;
	struct stat st;

	if (log->fd < 0)
		return -1;
	if (!k->output.direct)
		return (int64_t)(log->part.at + log->size);
	return hf_sys.fstat(log->fd, &st) == 0 ? (int64_t)log->part.at + st.st_size : -1;
}

void hf_keeper_account(struct hf_keeper *k)
{
	struct hf_session_record *record = &k->record;
	struct rusage waited = { 0 };
	int64_t cpu, group = -1, peak = -1;

	/* Of all that it waited for, which is all there was, but for what a process of the tree did not wait for itself. */
	(void)getrusage(RUSAGE_CHILDREN, &waited);
	cpu = (waited.ru_utime.tv_sec + waited.ru_stime.tv_sec) * HF_SEC + (waited.ru_utime.tv_usec + waited.ru_stime.tv_usec) * HF_USEC;
	if (k->tree.group.fd >= 0) {
		group = hf_cgroup_number(&k->tree.group, "cpu.stat", "usage_usec ");
		peak = hf_cgroup_number(&k->tree.group, "memory.peak", "");
	}
	/* Without a group that counts memory: the largest process, or the most that was seen of all together. */
	if (peak < 0)
		peak = higher(waited.ru_maxrss * INT64_C(1024), k->usage.peak_bytes);
	record->measured = 1;
	record->cpu_ns = higher(cpu, group * HF_USEC);
	record->peak_bytes = peak;
	record->output_bytes = output_bytes(k);
}
