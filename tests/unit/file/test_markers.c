/*
 * unit/file/test_markers.c - where a block is, by the lines of a file; and when that is not clear.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "helper/test.h"
#include "hf/file/block/markers.h"
#include "hf/file/block/style.h"

static struct hf_found found;

static int scan_as(const struct hf_scan_spec *spec, const char *text, size_t len, size_t piece)
{
	struct hf_scan scan;

	hf_scan_begin(&scan, spec);
	for (size_t at = 0; at < len; at += piece)
		hf_scan_feed(&scan, text + at, len - at < piece ? len - at : piece);
	return hf_scan_end(&scan, &found, "F", ERR);
}

/* Scans it whole and in pieces of every small size: always the same. */
static int scan_spec(const struct hf_scan_spec *spec, const char *text)
{
	struct hf_found whole;
	char detail[sizeof(ERR->detail)] = "";
	size_t len = strlen(text);
	int r = scan_as(spec, text, len, len + 1);

	whole = found;
	if (r < 0)
		snprintf(detail, sizeof(detail), "%s", ERR->detail);
	for (size_t piece = 1; piece < 9; piece++) {
		assert_int_equal(scan_as(spec, text, len, piece), r);
		assert_memory_equal(&found, &whole, sizeof(found));
		if (r < 0)
			assert_string_equal(ERR->detail, detail);
	}
	return r;
}

static int scan_md(const char *text)
{
	return scan_spec(&(struct hf_scan_spec){ .id = "x", .fences = 1 }, text);
}

static int scan_plain(const char *text)
{
	return scan_spec(&(struct hf_scan_spec){ .id = "x" }, text);
}

#define S  "<!-- holdfast:x:start -->\n"
#define E  "<!-- holdfast:x:end -->\n"
#define SY "<!-- holdfast:y:start -->\n"
#define EY "<!-- holdfast:y:end -->\n"

static void expect_block(int r, uint64_t from, uint64_t to)
{
	assert_int_equal(r, 1);
	assert_int_equal(found.start_line, from);
	assert_int_equal(found.end_line, to);
}

static void expect_refusal(int r, const char *words)
{
	assert_int_equal(r, HF_E_MARKERS);
	if (!strstr(ERR->detail, words))
		print_error("'%s' does not say '%s'\n", ERR->detail, words);
	assert_non_null(strstr(ERR->detail, words));
}

static void block_is_found_with_its_offsets(void **state)
{
	(void)state;
	expect_block(scan_md("a\n" S "text\n" E "b\n"), 2, 4);
	assert_int_equal(found.start_at, 2);
	assert_int_equal(found.text_at, 2 + strlen(S));
	assert_int_equal(found.end_at, 2 + strlen(S) + 5);
	assert_int_equal(found.behind_at, 2 + strlen(S) + 5 + strlen(E));
	assert_int_equal(scan_md(""), 0);
	assert_int_equal(scan_md("no block\n"), 0);
	assert_int_equal(scan_md(SY EY), 0);
}

static void every_style_and_some_laxness_is_a_marker(void **state)
{
	(void)state;
	expect_block(scan_plain("# holdfast:x:start\n# holdfast:x:end\n"), 1, 2);
	expect_block(scan_plain("// holdfast:x:start\n// holdfast:x:end"), 1, 2);
	expect_block(scan_plain("-- holdfast:x:start\r\n-- holdfast:x:end\r\n"), 1, 2);
	expect_block(scan_plain("/* holdfast:x:start */\n/* holdfast:x:end */\n"), 1, 2);
	expect_block(scan_plain("  <!--holdfast:x:start-->  \n\t<!--  holdfast:x:end  -->\t\n"), 1, 2);
}

static void what_only_looks_like_a_marker_is_text(void **state)
{
	static const char *const texts[] = {
		"<!-- holdfast:x:start --> behind\n", "before <!-- holdfast:x:start -->\n",
		"<!-- holdfast:x:begin -->\n",	      "<!-- holdfast::start -->\n",
		"<!-- holdfast:x :start -->\n",	      "<!-- holdfast:x:start\n",
		"holdfast:x:start\n",		      "<!-- holdfast:xx:start -->\n",
		"<!-- HOLDFAST:x:start -->\n",	      "# holdfast:x:start #\n",
		"<!-- holdfast:x:start -->\r<!-- holdfast:x:end -->\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_int_equal(scan_md(texts[i]), 0);
}

static void unclear_markers_are_refused_with_their_lines(void **state)
{
	(void)state;
	expect_refusal(scan_md("a\n" S "b\n"), "line 2: block 'x' starts and does not end");
	expect_refusal(scan_md("a\n\n" E), "line 3: block 'x' ends without a start");
	expect_refusal(scan_md(E "a\n" S), "ends in line 1 before it starts in line 3");
	expect_refusal(scan_md(S E "a\n" S E), "twice: it starts in line 1 and in line 4");
	expect_refusal(scan_md(S S E), "line 2: block 'x' starts again inside itself (it starts in line 1)");
	expect_refusal(scan_md(S S E E), "starts again inside itself");
	expect_refusal(scan_md(S E E), "ends twice, in line 2 and in line 3");
	expect_refusal(scan_md(S E S), "twice");
	expect_refusal(scan_md(S SY EY E), "line 2: a marker of another block inside 'x' (lines 1 to 4)");
	expect_refusal(scan_md(S SY E EY), "another block inside");
	expect_refusal(scan_md(SY S E EY), "is inside another that starts in line 1");
	expect_refusal(scan_md(SY "<!-- holdfast:z:start -->\n<!-- holdfast:z:end -->\n" S E EY),
		       "is inside another that starts in line 1");
}

static void other_blocks_are_independent_even_if_broken(void **state)
{
	(void)state;
	expect_block(scan_md(SY EY S E), 3, 4);
	expect_block(scan_md(S E SY EY), 1, 2);
	expect_block(scan_md(SY S E), 2, 3);    /* y never ends: its own problem */
	expect_block(scan_md(EY S E SY), 2, 3);
	expect_block(scan_md(SY SY EY S E), 4, 5);
}

static void fenced_code_hides_markers_in_markdown_only(void **state)
{
	(void)state;
	assert_int_equal(scan_md("```\n" S E "```\n"), 0);
	expect_block(scan_plain("```\n" S E "```\n"), 2, 3);
	assert_int_equal(scan_md("~~~ html\n" S E "~~~\n"), 0);
	assert_int_equal(scan_md("   ````\n```\n" S E "````\n"), 0); /* a longer fence */
	expect_block(scan_md("```\n~~~\n```\n" S E), 4, 5);	    /* the other character is text */
	expect_block(scan_md("```\ncode\n```   \n" S E), 4, 5);
	assert_int_equal(scan_md("```\n``` not a close\n" S E "```\n"), 0);
	expect_block(scan_md("``` a `b` c\n" S E), 2, 3); /* code within a line */
	expect_block(scan_md("``\n" S E), 2, 3);
	assert_int_equal(scan_md("- item\n\n  ```\n" S E "  ```\n"), 0);
	assert_int_equal(scan_md("- ```\n" S E "  ```\n"), 0);
	assert_int_equal(scan_md("12. * ~~~~\n" S E "~~~~\n"), 0);
	expect_block(scan_md("```\n```\n" S E "```\n" S E "```\n"), 3, 4);
	expect_refusal(scan_md(S "```\n" E), "the marker in line 3 is in the fenced code that begins in line 2");
	/* Indented code is no fence, in a list it may be one. */
	expect_block(scan_md("text\n\n    ```\n" S E), 4, 5);
	expect_block(scan_md("text\n\t~~~\n" S E), 3, 4);
	assert_int_equal(scan_md("```\n    ```\n" S E "```\n"), 0);
	assert_int_equal(scan_md("1. a\n\n   - b\n\n         ```\n" S E "         ```\n"), 0);
	expect_block(scan_md("- a\n\ntext\n\n    ```\n" S E), 6, 7);
	assert_int_equal(scan_md("a\n```\nb\n"), 0);
	assert_int_equal(found.open_fence, 2);
}

static void line_ends_bom_and_binary_are_noticed(void **state)
{
	const struct hf_scan_spec spec = { .id = "x" };

	(void)state;
	expect_block(scan_plain("\xef\xbb\xbf" S E "t"), 1, 2);
	assert_true(found.has_bom && !found.ends_with_newline);
	assert_int_equal(found.start_at, 3);
	assert_int_equal(scan_plain("\xef\xbb\xbf"), 0);
	assert_true(found.has_bom && found.ends_with_newline);
	assert_int_equal(scan_plain("a\r\nb\nc\r\n"), 0);
	assert_true(found.n_crlf == 2 && found.n_lf == 1 && found.ends_with_newline);
	assert_int_equal(scan_as(&spec, "a\0b\n", 4, 4), 0);
	assert_true(found.is_binary);
	assert_int_equal(scan_as(&spec, "\xff\xfe" "a", 3, 1), 0);
	assert_true(found.is_binary);
}

static void a_line_of_any_length_is_survived(void **state)
{
	size_t len = 3 << 20;
	char *text = malloc(len + 200);
	const struct hf_scan_spec spec = { .id = "x", .fences = 1 };

	(void)state;
	memset(text, 'a', len);
	snprintf(text + len, 200, "\n" S "t\n" E);
	expect_block(scan_as(&spec, text, strlen(text), 4096), 2, 4);
	/* A marker, then blanks without end: too long to be one. */
	memset(text, ' ', len);
	memcpy(text, S, strlen(S) - 1);
	snprintf(text + len, 200, "\n");
	assert_int_equal(scan_as(&spec, text, strlen(text), 4096), 0);
	/* A fence whose backtick comes late is none. */
	memset(text, 'a', len);
	memcpy(text, "```", 3);
	text[len - 1] = '`';
	snprintf(text + len, 200, "\n" S "t\n" E);
	expect_block(scan_as(&spec, text, strlen(text), 4096), 2, 4);
	free(text);
}

static void foreign_markers_are_whole_lines(void **state)
{
	const struct hf_scan_spec spec = { .id = "p", .start = "<!-- P_START: do not edit -->",
					   .end = "<!-- P_END -->" };

	(void)state;
	expect_block(scan_spec(&spec, "a\n<!-- P_START: do not edit -->\nb\n <!-- P_END --> \n"), 2, 4);
	assert_int_equal(scan_spec(&spec, "<!-- P_START -->\n"), 0);
	expect_refusal(scan_spec(&spec, "<!-- P_END -->\n"), "line 1: block 'p' ends without a start");
	expect_refusal(scan_spec(&spec, "<!-- P_START: do not edit -->\n" S E "<!-- P_END -->\n"),
		       "another block inside");
	/* Our own of the same id are another block's. */
	expect_block(scan_spec(&spec, "# holdfast:p:start\n# holdfast:p:end\n"
				      "<!-- P_START: do not edit -->\n<!-- P_END -->"), 3, 4);
}

static void style_follows_the_name(void **state)
{
	static const struct {
		const char *leaf;
		enum hf_block_style style;
		int fences;
	} rows[] = {
		{ "CLAUDE.md", HF_STYLE_HTML, 1 },  { "README", HF_STYLE_HTML, 1 },
		{ "a.html", HF_STYLE_HTML, 0 },	    { "a.py", HF_STYLE_HASH, 0 },
		{ ".gitignore", HF_STYLE_HASH, 0 }, { "Makefile", HF_STYLE_HASH, 0 },
		{ "x.TS", HF_STYLE_SLASH, 0 },	    { "a.c", HF_STYLE_SLASH, 0 },
		{ "q.sql", HF_STYLE_DASH, 0 },	    { "s.css", HF_STYLE_C, 0 },
		{ ".claude.json", HF_STYLE_AUTO, 0 }, { "noext", HF_STYLE_HASH, 0 },
		{ "a.", HF_STYLE_HASH, 0 },	    { ".md", HF_STYLE_HASH, 0 },
		{ "a.m", HF_STYLE_HASH, 0 },	    { "a.d h", HF_STYLE_HASH, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (hf_style_of(rows[i].leaf) != rows[i].style)
			print_error("%s\n", rows[i].leaf);
		assert_int_equal(hf_style_of(rows[i].leaf), rows[i].style);
		assert_int_equal(hf_style_has_fences(rows[i].leaf), rows[i].fences);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		HF_TEST(block_is_found_with_its_offsets),
		HF_TEST(every_style_and_some_laxness_is_a_marker),
		HF_TEST(what_only_looks_like_a_marker_is_text),
		HF_TEST(unclear_markers_are_refused_with_their_lines),
		HF_TEST(other_blocks_are_independent_even_if_broken),
		HF_TEST(fenced_code_hides_markers_in_markdown_only),
		HF_TEST(line_ends_bom_and_binary_are_noticed),
		HF_TEST(a_line_of_any_length_is_survived),
		HF_TEST(foreign_markers_are_whole_lines),
		HF_TEST(style_follows_the_name),
	};

	return hf_run_tests("markers", tests);
}
