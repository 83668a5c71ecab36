/* view/columns.c - figures as people read them. */
#include "hf/base/parse.h"
#include "hf/view/columns.h"
#include "holdfast/clock.h"

void hf_view_duration(struct hf_buf *out, int64_t ns)
{
	if (ns < 0)
		hf_buf_add_char(out, '-');
	else
		hf_buf_add_duration(out, ns);
}

void hf_view_ago(struct hf_buf *out, int64_t ns)
{
	int64_t sec = ns > 0 ? ns / HF_SEC : 0;

	if (sec < 60)
		hf_buf_add_format(out, "%llds ago", (long long)sec);
	else if (sec < 3600)
		hf_buf_add_format(out, "%lldm ago", (long long)(sec / 60));
	else if (sec < 86400)
		hf_buf_add_format(out, "%lldh ago", (long long)(sec / 3600));
	else
		hf_buf_add_format(out, "%lldd ago", (long long)(sec / 86400));
}

void hf_view_size(struct hf_buf *out, int64_t bytes)
{
	if (bytes < 0)
		hf_buf_add_char(out, '-');
	else if (bytes < INT64_C(10) << 20)
		hf_buf_add_format(out, "%lldK", (long long)(bytes >> 10));
	else
		hf_buf_add_format(out, "%lldM", (long long)(bytes >> 20));
}

void hf_view_count(struct hf_buf *out, int64_t count)
{
	if (count < 0)
		hf_buf_add_char(out, '-');
	else
		hf_buf_add_i64(out, count);
}

void hf_view_cells_done(struct hf_buf *cells, int n)
{
	for (int i = 0; i < n; i++)
		hf_buf_done(&cells[i]);
}
