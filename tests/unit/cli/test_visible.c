/* unit/cli/test_visible.c - output made safe for a terminal, cut into pieces at every place. */
#include <string.h>

#include "helper/test.h"
#include "screen/visible.h"

static const struct {
	const char *bytes, *shown;
} cases[] = {
	{ "plain\ttext\n", "plain\ttext\n" },
	{ "two\r\nlines\rover", "two\nlines^Mover" },
	{ "\033[31mred\033[0m", "\033[31mred\033[0m" },
	{ "\033[38;2;1;2;3mon", "\033[38;2;1;2;3mon\033[0m" },
	{ "\033[1mon\033[mx", "\033[1mon\033[mx" },
	{ "\033]0;title\a\033[2J\033[6n\033c", "^[]0;title^G^[[2J^[[6n^[c" },
	{ "\033\033[1m\033[m", "^[\033[1m\033[m" },
	{ "\033[", "^[[" },
	{ "\033[1111111111111111111111111111111111111111111111m", "^[[1111111111111111111111111111111111111111111111m" },
	{ "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80" },
	{ "\xc2\x9b" "2J\x9b\xff\xe2\x82", "\\xc2\\x9b2J\\x9b\\xff\\xe2\\x82" },
	{ "\x7f\b\v", "^?^H^K" },
};

static void add_pieces(const char *bytes, size_t n, size_t first, size_t step, struct hf_buf *out)
{
	struct visible visible = { 0 };
	size_t at = first;

	visible_add(&visible, bytes, first, out);
	for (; at < n; at += step)
		visible_add(&visible, bytes + at, at + step < n ? step : n - at, out);
	visible_end(&visible, out);
}

static void text_is_the_same_however_it_is_cut(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		size_t n = strlen(cases[i].bytes);

		for (size_t first = 0; first <= n; first++) {
			for (size_t step = 1; step <= 3; step++) {
				struct hf_buf out = HF_BUF_INIT;

				add_pieces(cases[i].bytes, n, first, step, &out);
				assert_int_equal(out.err, 0);
				assert_string_equal(out.s, cases[i].shown);
				hf_buf_done(&out);
			}
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { HF_TEST(text_is_the_same_however_it_is_cut) };

	return hf_run_tests("visible", tests);
}
