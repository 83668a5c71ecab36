/* unit/exec/test_cgroup_limits.c - the files of a group: numbers that are read, limits that are written. A plain directory stands for it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "helper/proc_helper.h"
#include "helper/state_helper.h"
#include "helper/test.h"
#include "hf/exec/cgroup/cgroup.h"

static void make(const char *file, const char *text)
{
	FILE *out = fopen(hf_test_path(file), "we");

	MUST(out && fputs(text, out) >= 0 && fclose(out) == 0);
}

static void must_have(const char *file, const char *text)
{
	char got[64] = "";
	FILE *in = fopen(hf_test_path(file), "re");

	MUST(in);
	(void)!fread(got, 1, sizeof(got) - 1, in);
	fclose(in);
	assert_string_equal(got, text);
}

static void open_both(struct hf_cgroup *own, struct hf_cgroup *group)
{
	MUST(mkdir(hf_test_path("own"), 0700) == 0 && mkdir(hf_test_path("own/group"), 0700) == 0);
	*own = (struct hf_cgroup)HF_CGROUP_INIT;
	*group = (struct hf_cgroup)HF_CGROUP_INIT;
	own->fd = open(hf_test_path("own"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	group->fd = open(hf_test_path("own/group"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	MUST(own->fd >= 0 && group->fd >= 0);
}

static void close_both(struct hf_cgroup *own, struct hf_cgroup *group)
{
	hf_cgroup_done(own);
	hf_cgroup_done(group);
}

static void a_limit_goes_to_its_file(void **state)
{
	struct hf_cgroup own, group;

	(void)state;
	open_both(&own, &group);
	make("own/group/memory.max", "");
	make("own/cgroup.subtree_control", "");
	ASSERT_OK(hf_cgroup_limit(&own, &group, "memory", "memory.max", "1048576"));
	must_have("own/group/memory.max", "1048576");
	/* The controller was there: it was not asked for. */
	must_have("own/cgroup.subtree_control", "");
	close_both(&own, &group);
}

static void a_controller_that_is_not_there_is_asked_for_and_its_lack_is_an_error(void **state)
{
	struct hf_cgroup own, group;

	(void)state;
	open_both(&own, &group);
	assert_int_equal(hf_cgroup_limit(&own, &group, "pids", "pids.max", "5"), -ENOENT);
	make("own/cgroup.subtree_control", "");
	assert_int_equal(hf_cgroup_limit(&own, &group, "pids", "pids.max", "5"), -ENOENT);
	must_have("own/cgroup.subtree_control", "+pids");
	close_both(&own, &group);
	assert_int_equal(hf_cgroup_limit(&own, &group, "pids", "pids.max", "5"), -ENOENT);
}

static void a_number_is_found_by_its_key_or_is_the_whole_file(void **state)
{
	struct hf_cgroup own, group;

	(void)state;
	open_both(&own, &group);
	make("own/group/memory.events", "low 0\noom 2\noom_kill 1\n");
	make("own/group/memory.peak", "4096\n");
	make("own/group/memory.max", "max\n");
	assert_int_equal(hf_cgroup_number(&group, "memory.events", "oom_kill "), 1);
	assert_int_equal(hf_cgroup_number(&group, "memory.events", "high "), -1);
	assert_int_equal(hf_cgroup_number(&group, "memory.peak", ""), 4096);
	assert_int_equal(hf_cgroup_number(&group, "memory.max", ""), -1);
	assert_int_equal(hf_cgroup_number(&group, "none", ""), -1);
	close_both(&own, &group);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		HF_TEST(a_limit_goes_to_its_file),
		HF_TEST(a_controller_that_is_not_there_is_asked_for_and_its_lack_is_an_error),
		HF_TEST(a_number_is_found_by_its_key_or_is_the_whole_file),
	};

	return hf_run_tests("cgroup_limits", tests);
}
