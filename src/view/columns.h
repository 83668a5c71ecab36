/* view/columns.h - rows for people: which columns there are, and what stands in them. */
#ifndef VIEW_COLUMNS_H
#define VIEW_COLUMNS_H

#include <stdint.h>

#include "hf/base/buf.h"

struct hf_view_column {
	const char *title;
	int width; /* negative: to the left; 0: the last one, as long as it is */
};

/* How it is going, for what shows colours. */
enum hf_view_tone {
	HF_TONE_GOOD = 1,
	HF_TONE_CARE = 2,
	HF_TONE_BAD = 3,
};

/* "3m20s", or "-" when it is not known (negative). */
void hf_view_duration(struct hf_buf *out, int64_t ns);

/* "12s ago", "3m ago", "2d ago"; the clock may have been set back since: then "0s ago". */
void hf_view_ago(struct hf_buf *out, int64_t ns);

/* "500K", "12M", or "-" when it is not known (negative). */
void hf_view_size(struct hf_buf *out, int64_t bytes);

/* The number, or "-" when it is not known (negative). */
void hf_view_count(struct hf_buf *out, int64_t count);

/* Frees the cells of a row. */
void hf_view_cells_done(struct hf_buf *cells, int n);

#endif
