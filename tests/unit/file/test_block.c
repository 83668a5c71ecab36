/* unit/file/test_block.c - blocks put in, replaced and taken out. */
#include "helper/file_helper.h"

static int block(const char *path, const char *id, const char *text)
{
	struct hf_file_opts opts = file_opts(HF_FILE_CREATE);
	struct hf_block b = { .size = sizeof(b), .id = id, .text = text,
			      .len = text ? strlen(text) : 0 };
	struct hf_file *file = NULL;
	int r;

	ASSERT_OK(hf_file_open(locks, path, &opts, &file, ERR));
	ASSERT_OK(hf_file_lock(file, 0, NULL, ERR));
	r = hf_file_block(file, &b, ERR);
	if (r > 0)
		r = hf_file_commit(file, ERR);
	ASSERT_OK(hf_file_close(file, NULL));
	return r;
}

static void block_put_in_and_taken_out_gives_the_same_file(void **state)
{
	static const char *const files[] = { "",	 "a\n",	  "a",	  "a\r\nb\r\n", "a\r\nb",
					     "\xef\xbb\xbf", "\xef\xbb\xbfz", "\n",   "a\nb\r\n",
					     "a\n\n\n",	 "\r\n" };
	static const char *const texts[] = { "", "t", "t\n", "t\nu", "\n", "t\r\n", "\\g<0> \\n $& %s\n" };

	(void)state;
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		for (size_t k = 0; k < sizeof(texts) / sizeof(texts[0]); k++) {
			char with[4096];

			put(in_work("f.md"), files[i]);
			assert_int_equal(block(in_work("f.md"), "x", texts[k]), 1);
			snprintf(with, sizeof(with), "%s", get(in_work("f.md")));
			assert_int_equal(strncmp(with, files[i], strlen(files[i])), 0);
			/* Idempotent. */
			assert_int_equal(block(in_work("f.md"), "x", texts[k]), 0);
			/* There and back over another text. */
			assert_int_equal(block(in_work("f.md"), "x", "quite another"), 1);
			assert_int_equal(block(in_work("f.md"), "x", texts[k]), 1);
			assert_string_equal(get(in_work("f.md")), with);
			assert_int_equal(block(in_work("f.md"), "x", NULL), 1);
			assert_string_equal(get(in_work("f.md")), files[i]);
			assert_int_equal(block(in_work("f.md"), "x", NULL), 0);
		}
	}
}

static void block_has_the_line_ends_of_its_file(void **state)
{
	(void)state;
	put(in_work("f.sh"), "a\r\nb\r\nc\n");
	assert_int_equal(block(in_work("f.sh"), "x", "t\nu\r\nv"), 1);
	assert_string_equal(get(in_work("f.sh")), "a\r\nb\r\nc\n# holdfast:x:start\r\nt\r\nu\r\nv\r\n"
						  "# holdfast:x:end\r\n");
	put(in_work("g.c"), "a");
	assert_int_equal(block(in_work("g.c"), "x", "t"), 1);
	assert_string_equal(get(in_work("g.c")), "a\n// holdfast:x:start\nt\n// holdfast:x:end");
	/* Markers that stand there stay as they are. */
	put(in_work("h.md"), "  <!--holdfast:x:start-->\nold\n\t# holdfast:x:end\nmine\n");
	assert_int_equal(block(in_work("h.md"), "x", "new"), 1);
	assert_string_equal(get(in_work("h.md")), "  <!--holdfast:x:start-->\nnew\n\t# holdfast:x:end\nmine\n");
}

static void blocks_that_make_no_sense_are_refused_and_nothing_is_written(void **state)
{
	static const char orphan[] = "a\n# holdfast:x:start\n";

	(void)state;
	put(in_work("f.py"), orphan);
	ASSERT_ERR(block(in_work("f.py"), "x", "t"), HF_E_MARKERS);
	ASSERT_ERR(block(in_work("f.py"), "x", NULL), HF_E_MARKERS);
	assert_string_equal(get(in_work("f.py")), orphan);
	assert_int_equal(block(in_work("f.py"), "y", "t"), 1);
	put(in_work("f.md"), "a\n");
	ASSERT_ERR(block(in_work("f.md"), "x", "a\n<!-- holdfast:z:end -->\n"), HF_E_MARKERS);
	assert_non_null(strstr(ERR->detail, "line 2 of the text"));
	ASSERT_ERR(block(in_work("f.md"), "x", "```\ncode\n"), HF_E_MARKERS);
	assert_int_equal(block(in_work("f.md"), "x", "```\n# holdfast:z:end\n```\n"), 1);
	put(in_work("f.md"), "a\n~~~\n");
	ASSERT_ERR(block(in_work("f.md"), "x", "t"), HF_E_MARKERS);
	ASSERT_ERR(block(in_work("f.json"), "x", "t"), -EINVAL);
	ASSERT_ERR(block(in_work("f.md"), "x y", "t"), -EINVAL);
	ASSERT_ERR(block(in_work("f.md"), "", "t"), -EINVAL);
	ASSERT_ERR(block(in_work("f.md"), "x:start", "t"), -EINVAL);
	put(in_work("f.txt"), "\xff\xfe" "a");
	ASSERT_ERR(block(in_work("f.txt"), "x", "t"), HF_E_KIND);
	assert_int_equal(entries(".f.md.holdfast"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FILE_TEST(block_put_in_and_taken_out_gives_the_same_file),
		FILE_TEST(block_has_the_line_ends_of_its_file),
		FILE_TEST(blocks_that_make_no_sense_are_refused_and_nothing_is_written),
	};

	return hf_run_tests("block", tests);
}
