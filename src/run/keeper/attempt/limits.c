/* run/keeper/attempt/limits.c - the limits of a session: by its cgroup where that has the controllers, else by what bounds a process. */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "hf/base/fail.h"
#include "hf/run/keeper/keeper.h"

/* CPUs in whole, at least one, from another one on for each session. */
static void choose_cpus(struct hf_keeper *k)
{
	unsigned wanted = (k->o.cpus_centi + 99) / 100, allowed, skip, seen = 0, chosen = 0;
	cpu_set_t all;

	if (sched_getaffinity(0, sizeof(all), &all) < 0)
		return;
	allowed = (unsigned)CPU_COUNT(&all);
	if (wanted >= allowed)
		return;
	skip = (unsigned)(k->record.token % allowed);
	CPU_ZERO(&k->limits.cpus);
	/* Twice around, so that it goes on behind the last. */
	for (size_t i = 0; i < 2 * CPU_SETSIZE && chosen < wanted; i++)
		if (CPU_ISSET(i % CPU_SETSIZE, &all) && seen++ >= skip) {
			CPU_SET(i % CPU_SETSIZE, &k->limits.cpus);
			chosen++;
		}
	k->limits.has_cpus = 1;
}

static int by_group(struct hf_keeper *k, const struct hf_cgroup *own, const char *controller, const char *file, const char *value,
		    enum hf_limited_by bit)
{
	if (k->tree.group.fd < 0 || hf_cgroup_limit(own, &k->tree.group, controller, file, value) < 0)
		return 0;
	k->record.limited |= bit;
	return 1;
}

int hf_keeper_limit(struct hf_keeper *k, const struct hf_cgroup *own, struct hf_err *err)
{
	char value[48];

	k->record.limited = 0;
	k->limits = (struct hf_spawn_limits){ .nice = (int)k->o.nice };
	(void)snprintf(value, sizeof(value), "%llu", (unsigned long long)k->o.mem_max);
	if (k->o.mem_max && !by_group(k, own, "memory", "memory.max", value, HF_LIMITED_MEMORY))
		k->limits.data = k->o.mem_max;
	/* Of each tenth of a second so much. */
	(void)snprintf(value, sizeof(value), "%llu 100000", (unsigned long long)k->o.cpus_centi * 1000);
	if (k->o.cpus_centi && !by_group(k, own, "cpu", "cpu.max", value, HF_LIMITED_CPUS))
		choose_cpus(k);
	(void)snprintf(value, sizeof(value), "%u", k->o.pids_max);
	if (k->o.pids_max == 0 || by_group(k, own, "pids", "pids.max", value, HF_LIMITED_PIDS))
		return 0;
	if (geteuid() == 0)
		return FAIL(err, -ENOTSUP, "limit", k->name, "no cgroup here can count processes, and no other limit applies to root (--pids)");
	k->limits.nproc = k->o.pids_max;
	return 0;
}
