/* cli/file/block.c - file block: replaces the text between two marker lines. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "file/file.h"
#include "hf/base/cleanup.h"

#define CHUNK ((size_t)64 << 10)

static const char *const styles[] = {
	[HF_STYLE_HTML] = "html",   [HF_STYLE_HASH] = "hash", [HF_STYLE_SLASH] = "slash",
	[HF_STYLE_DASH] = "dash",   [HF_STYLE_C] = "c",
};

static int read_style(const struct cli *cli, const char *word, enum hf_block_style *ret)
{
	if (!word)
		return HF_EXIT_DONE;
	for (unsigned i = HF_STYLE_HTML; i < sizeof(styles) / sizeof(styles[0]); i++) {
		if (strcmp(styles[i], word) == 0) {
			*ret = (enum hf_block_style)i;
			return HF_EXIT_DONE;
		}
	}
	return cli_usage(cli, "--style must be html, hash, slash, dash or c, not '%s'", word);
}

/* Reads all of standard input, before anything is locked. */
static int read_text(const struct cli *cli, int64_t limit_ns, struct hf_buf *ret)
{
	struct hf_mono deadline = hf_mono_in(limit_ns);

	for (;;) {
		struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
		ssize_t n;

		if (hf_mono_left(deadline) == 0) {
			cli_say(cli, "standard input did not end in time; --deadline sets the limit, "
				     "--text TEXT or < FILE avoids the wait");
			return HF_EXIT_NO;
		}
		/* Waits at most a second, then checks the deadline again. */
		if (poll(&input, 1, hf_mono_left(deadline) < HF_SEC ? (int)(hf_mono_left(deadline) / HF_MSEC) + 1 : 1000) <= 0)
			continue;
		if (hf_buf_reserve(ret, CHUNK) < 0)
			cli_die_oom();
		n = read(STDIN_FILENO, ret->s + ret->len, CHUNK);
		if (n < 0 && errno != EINTR) {
			cli_say(cli, "standard input: %s", strerrordesc_np(errno));
			return HF_EXIT_OS;
		}
		if (n == 0)
			return HF_EXIT_DONE;
		ret->len += n > 0 ? (size_t)n : 0;
		if (ret->len > HF_BLOCK_TEXT_MAX)
			return cli_usage(cli, "the text is larger than %d MiB", HF_BLOCK_TEXT_MAX >> 20);
	}
}

static enum file_made make_block(struct file_work *work, void *arg, int *ret_status)
{
	int r = hf_file_block(work->file, arg, &work->err);

	(void)ret_status;
	return r < 0 ? FILE_FAILED : r > 0 ? FILE_WRITTEN : FILE_SAME;
}

int cmd_file_block(struct cli *cli, int argc, char **argv)
{
	AUTO(file_end) struct file_work work = { .cli = cli, .o = FILE_OPTIONS_INIT };
	AUTO(hf_buf_done) struct hf_buf input = HF_BUF_INIT;
	struct hf_block block = { .size = sizeof(block) };
	const char *text = NULL, *style = NULL;
	int remove = 0;
	const struct option_spec specs[] = {
		{ "text", 't', OPTION_TEXT, &text, "TEXT", "the text (default: standard input)" },
		{ "remove", 0, OPTION_FLAG, &remove, NULL, "remove the block and its markers" },
		{ "start", 0, OPTION_TEXT, &block.start, "LINE", "another tool's start marker" },
		{ "end", 0, OPTION_TEXT, &block.end, "LINE", "another tool's end marker" },
		{ "style", 0, OPTION_TEXT, &style, "STYLE", "comment style: html, hash, slash, dash or c" },
		FILE_WRITE_SPECS(work.o),
		{ 0 },
	};
	int status, go, n = cli_options(cli, specs, argc, argv, 2, 2);

	if (n < 0)
		return cli_options_status(n);
	if (text && remove)
		return cli_usage(cli, "--text and --remove cannot be combined");
	if (!block.start != !block.end)
		return cli_usage(cli, "--start and --end need each other");
	work.path = argv[0];
	block.id = argv[1];
	status = read_style(cli, style, &block.style);
	if (status == HF_EXIT_DONE && !text && !remove)
		status = read_text(cli, work.o.limit_ns, &input);
	if (status != HF_EXIT_DONE)
		return status;
	if (remove) {
		work.o.create = 1; /* a missing file has no block, and none is created */
	} else {
		block.text = text ? text : input.s;
		block.len = text ? strlen(text) : input.len;
	}
	status = file_begin(&work, 0, &go);
	return go ? file_replace(&work, make_block, &block) : status;
}
