/* cli/cmd_name.c - name sanitize, name key, name unkey. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "holdfast/name.h"

static void print_form(const struct cli *cli, const char *input, const char *form, const char *text)
{
	if (cli->json) {
		json_t *object = json_object();

		cli_set(object, "input", cli_text(input));
		cli_set(object, form, cli_text(text));
		cli_print_json(object);
	} else {
		puts(text);
	}
}

int cmd_name_sanitize(struct cli *cli, int argc, char **argv)
{
	size_t len;
	char *out;
	int n = cli_options(cli, NULL, argc, argv, 1, 1);

	if (n < 0)
		return cli_options_status(n);
	len = hf_name_sanitize(argv[0], strlen(argv[0]), NULL, 0);
	out = malloc(len + 1);
	if (!out)
		cli_die_oom();
	(void)hf_name_sanitize(argv[0], strlen(argv[0]), out, len + 1);
	print_form(cli, argv[0], "sanitized", out);
	free(out);
	return HF_EXIT_DONE;
}

int cmd_name_key(struct cli *cli, int argc, char **argv)
{
	struct hf_err err = HF_ERR_INIT;
	char key[HF_NAME_KEY_MAX];
	int n = cli_options(cli, NULL, argc, argv, 1, 1);

	if (n < 0)
		return cli_options_status(n);
	if (hf_name_key(argv[0], strlen(argv[0]), key, &err) < 0)
		return cli_fail(cli, &err);
	print_form(cli, argv[0], "key", key);
	return HF_EXIT_DONE;
}

int cmd_name_unkey(struct cli *cli, int argc, char **argv)
{
	struct hf_err err = HF_ERR_INIT;
	char name[HF_NAME_MAX + 1];
	int n = cli_options(cli, NULL, argc, argv, 1, 1);
	int len;

	if (n < 0)
		return cli_options_status(n);
	len = hf_name_unkey(argv[0], strlen(argv[0]), name, &err);
	if (len < 0)
		return cli_fail(cli, &err);
	if (cli->json) {
		print_form(cli, argv[0], "name", name);
	} else if (isatty(STDOUT_FILENO)) {
		cli_print_shown(name);
		putchar('\n');
	} else {
		/* Print the raw bytes of the name: this is data. */
		(void)fwrite(name, 1, (size_t)len, stdout);
		putchar('\n');
	}
	return HF_EXIT_DONE;
}
