/* plan/enter/layers.c - the overlays of a plan, made ready to be mounted: directories, modes, T0. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/plan/target/census.h"
#include "hf/plan/enter/confine.h"
#include "hf/plan/enter/enter_inner.h"
#include "hf/plan/target/target.h"
#include "hf/plan/sandbox/use.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"
#include "hf/sys/mode.h"

/* The upper directory's mode is what the target's root shows inside. */
static int open_upper(int sandbox_fd, int target_fd, int fresh, struct hf_layer *layer,
		      struct hf_err *err)
{
	struct stat st;

	if ((hf_mkdir_at(sandbox_fd, HF_SANDBOX_UPPER, 0700) < 0 && errno != EEXIST) ||
	    (hf_mkdir_at(sandbox_fd, HF_SANDBOX_WORK, 0700) < 0 && errno != EEXIST))
		return FAIL_SYS(err, "mkdirat", layer->sandbox);
	layer->upper = hf_open_at(sandbox_fd, HF_SANDBOX_UPPER, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	layer->work = hf_open_at(sandbox_fd, HF_SANDBOX_WORK, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (layer->upper < 0 || layer->work < 0)
		return hf_fail_sys(err, layer->upper < 0 ? -layer->upper : -layer->work, "openat",
				   layer->sandbox);
	layer->pins = hf_open_at(sandbox_fd, HF_SANDBOX_PINS, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (layer->pins < 0 && layer->pins != -ENOENT)
		return hf_fail_sys(err, -layer->pins, "openat", layer->sandbox);
	if (hf_sys.fstatat(target_fd, "", &st, AT_EMPTY_PATH) < 0)
		return FAIL_SYS(err, "fstat", layer->target);
	layer->dev = st.st_dev;
	layer->ino = st.st_ino;
	if (!fresh)
		return 0;
	/* Root may sandbox another user's directory, which must go on being that user's inside. */
	if (geteuid() == 0 && (st.st_uid != 0 || st.st_gid != 0) &&
	    hf_sys.fchown(layer->upper, st.st_uid, st.st_gid) < 0)
		return FAIL_SYS(err, "fchown", layer->sandbox);
	if (hf_sys.fchmod(layer->upper, st.st_mode & 07777) < 0)
		return FAIL_SYS(err, "fchmod", layer->sandbox);
	return 0;
}

static int prepare_layer(struct hf_enter *enter, struct hf_sandbox_record *s, struct hf_err *err)
{
	size_t i = enter->inside.n;
	struct hf_layer *layer = &enter->layers[i];
	AUTO(hf_buf_done) struct hf_buf path = HF_BUF_INIT;
	AUTO_FD target = -1;
	int r = hf_target_open(&s->target, &target, err);

	if (r == 0)
		r = hf_target_check(enter->plans, &s->target, err);
	if (r == 0)
		r = hf_sandbox_dir(enter->plan_fd, s->name, 1, &enter->helper.sandboxes[i], err);
	if (r < 0)
		return r;
	hf_sandbox_path(enter->plans, enter->record.name, s->name, "", &path);
	enter->paths[i] = path.err ? NULL : strdup(path.s);
	if (!enter->paths[i])
		return hf_fail_sys(err, ENOMEM, "memory", s->name);
	layer->target = s->target.path;
	layer->sandbox = enter->paths[i];
	r = open_upper(enter->helper.sandboxes[i], target, !s->entered, layer, err);
	if (r < 0)
		return r;
	if (!s->entered) {
		/* What others change from now on is a conflict; what they did before is seen inside. */
		r = hf_t0_take(&s->t0, err);
		if (r < 0)
			return r;
		enter->targets[i] = fd_take(&target);
	}
	enter->inside.n = enter->helper.n = i + 1;
	return 0;
}

/* Outer before inner: a shorter path is never below a longer one. */
static int by_length(const void *a, const void *b)
{
	size_t x = strlen((*(struct hf_sandbox_record *const *)a)->target.path);
	size_t y = strlen((*(struct hf_sandbox_record *const *)b)->target.path);

	return (x > y) - (x < y);
}

int hf_enter_prepare_layers(struct hf_enter *enter, struct hf_err *err)
{
	struct hf_sandbox_record *order[HF_PLAN_SANDBOXES_MAX];
	char boot_id[HF_BOOT_ID_LEN + 1];
	size_t n = 0;
	int r = hf_here_boot(boot_id, err);

	for (size_t i = 0; i < enter->record.n_sandboxes; i++) {
		if (enter->record.sandboxes[i].strategy == HF_STRATEGY_OVERLAY) {
			order[n++] = &enter->record.sandboxes[i];
			continue;
		}
		enter->entered |= HF_ENTERED_ELSEWHERE;
		if (r == 0)
			r = hf_sandbox_dir(enter->plan_fd, enter->record.sandboxes[i].name, 0,
					   &enter->helper.copies[enter->helper.n_copies], err);
		if (r == 0)
			enter->helper.n_copies++;
	}
	if (n > 0)
		qsort(order, n, sizeof(*order), by_length);
	for (size_t i = 0; r == 0 && i < n; i++) {
		r = prepare_layer(enter, order[i], err);
		if (r == 0) {
			hf_copy_text(order[i]->entered_boot, sizeof(order[i]->entered_boot),
				     boot_id);
			order[i]->entered = 1;
		}
	}
	enter->inside.layers = enter->layers;
	return r;
}
