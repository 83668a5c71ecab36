/* cli/cmd_version.c - version. */
#include <stdio.h>

#include "cli.h"
#include "holdfast/version.h"

int cmd_version(struct cli *cli, int argc, char **argv)
{
	int n = cli_options(cli, NULL, argc, argv, 0, 0);

	if (n < 0)
		return cli_options_status(n);
	if (cli->json) {
		json_t *object = json_object();

		cli_set(object, "version", json_string(hf_version()));
		cli_print_json(object);
	} else {
		printf("holdfast %s\n", hf_version());
	}
	return HF_EXIT_DONE;
}
