/* run/run.c - the public starts. */
#include <errno.h>

#include "hf/base/fail.h"
#include "hf/run/options.h"
#include "hf/run/stage.h"
#include "hf/run/supervisor/order.h"
#include "hf/run/supervisor/supervise.h"

static int check(const char *name, const struct hf_run_opts *opts, struct hf_err *err)
{
	if (!opts || opts->size < sizeof(*opts))
		return FAIL(err, -EINVAL, "arguments", name ? name : "", "size is not set");
	return hf_options_check(name, opts, err);
}

int hf_run_supervise_staged(struct hf_state *state, const char *name, const struct hf_run_opts *opts,
			    const struct hf_stage *stage, struct hf_run_report *ret_report,
			    struct hf_err *err)
{
	struct hf_run_report report = { 0 };
	int r;

	if (!state || !ret_report)
		return FAIL(err, -EINVAL, "arguments", "hf_run_supervise", "NULL");
	r = check(name, opts, err);
	if (r == 0)
		r = hf_supervise(&(struct hf_start){ .state = state, .name = name, .given = opts, .stage = stage },
				 &report, err);
	if (r == 0 || r == HF_E_BUSY || r == HF_E_TIMEOUT)
		*ret_report = report;
	return hf_err_wrap(err, r, "session", name);
}

int hf_run_supervise(struct hf_state *state, const char *name, const struct hf_run_opts *opts,
		     struct hf_run_report *ret_report, struct hf_err *err)
{
	return hf_run_supervise_staged(state, name, opts, NULL, ret_report, err);
}

/* -- in the background --------------------------------------------------------------- */

int hf_run_start(struct hf_state *state, const char *name, const struct hf_run_opts *opts,
		 struct hf_run_report *ret_report, struct hf_err *err)
{
	struct hf_link_news news;
	int r;

	if (!state || !ret_report)
		return FAIL(err, -EINVAL, "arguments", "hf_run_start", "NULL");
	r = check(name, opts, err);
	if (r == 0)
		r = hf_detach(state, name, opts, &news, err);
	if (r < 0)
		return hf_err_wrap(err, r, "session", name);
	if (news.kind == HF_LINK_STARTED)
		news.result = 0;
	if (opts->resumed && news.report.resumed[0])
		opts->resumed(opts->resumed_arg, news.report.resumed);
	if (news.result == 0 || news.result == HF_E_BUSY || news.result == HF_E_TIMEOUT)
		*ret_report = news.report;
	if (news.result < 0 && err)
		*err = news.err;
	return hf_err_wrap(err, news.result, "session", name);
}
