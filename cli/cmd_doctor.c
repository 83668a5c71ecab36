/* cli/cmd_doctor.c - doctor: checks the state directory and the features of this machine. */
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "hf/base/cleanup.h"
#include "hf/view/doctor/doctor.h"
#include "hf/view/doctor/store.h"

struct doctor {
	const struct cli *cli;
	json_t *rows;
	enum hf_finding worst;
};

static const struct {
	const char *word;
	const char *colour;
} looks[] = { [HF_FOUND_OK] = { "ok", "32" },
	      [HF_FOUND_ABSENT] = { "absent", "33" },
	      [HF_FOUND_WARN] = { "warn", "1;33" },
	      [HF_FOUND_FAIL] = { "FAIL", "1;31" } };

static void add_row(void *arg, const struct hf_checkup *c)
{
	AUTO(hf_buf_done) struct hf_buf shown = HF_BUF_INIT;
	struct doctor *doctor = arg;

	if (c->found > doctor->worst)
		doctor->worst = c->found;
	if (doctor->cli->json) {
		json_t *row = json_object();

		cli_set(row, "check", json_string(c->name));
		cli_set(row, "status", json_string(looks[c->found].word));
		cli_set(row, "found", cli_text(c->text));
		if (c->gives)
			cli_set(row, "gives", json_string(c->gives));
		if (c->instead && c->found != HF_FOUND_OK)
			cli_set(row, "instead", json_string(c->instead));
		if (json_array_append_new(doctor->rows, row) < 0)
			cli_die_oom();
		return;
	}
	hf_buf_add_shown(&shown, c->text, strlen(c->text));
	cli_colour(doctor->cli, looks[c->found].colour);
	printf("%-6s", looks[c->found].word);
	cli_colour(doctor->cli, NULL);
	printf("  %-10s  %s\n", c->name, shown.s);
	if (c->gives)
		printf("%20s%s: %s\n", "", c->found == HF_FOUND_OK ? "gives" : "would give", c->gives);
	if (c->instead && c->found != HF_FOUND_OK)
		printf("%20sinstead: %s\n", "", c->instead);
}

static int examine_store(struct cli *cli, struct doctor *doctor, unsigned flags)
{
	int status = HF_EXIT_DONE;
	struct hf_state *state = cli_state(cli, 0, &status);

	return state ? hf_doctor_store(cli_store(cli), state, flags, add_row, doctor) : status;
}

int cmd_doctor(struct cli *cli, int argc, char **argv)
{
	struct doctor doctor = { .cli = cli };
	int accept_cluster = 0, clean_store = 0;
	const struct option_spec specs[] = {
		{ "accept-cluster", 0, OPTION_FLAG, &accept_cluster, NULL, "accept the cluster that answers now, even if it was created again or restored" },
		{ "clean-store", 0, OPTION_FLAG, &clean_store, NULL, "remove names from the store that were not used for a week" },
		{ 0 },
	};
	int n = cli_options(cli, specs, argc, argv, 0, 0);
	int status;

	if (n < 0)
		return cli_options_status(n);
	if ((accept_cluster || clean_store) && !cli_store(cli))
		return cli_usage(cli, "--accept-cluster and --clean-store need a store: --store URL or HOLDFAST_STORE");
	doctor.rows = json_array();
	status = hf_doctor_examine(cli->dir, add_row, &doctor);
	if (status == HF_EXIT_DONE && cli_store(cli))
		status = examine_store(cli, &doctor, (accept_cluster ? HF_DOCTOR_ACCEPT : 0) | (clean_store ? HF_DOCTOR_CLEAN : 0));
	if (status == HF_EXIT_DONE && doctor.worst == HF_FOUND_FAIL)
		status = HF_EXIT_OS;
	else if (status == HF_EXIT_DONE && doctor.worst == HF_FOUND_WARN)
		status = HF_EXIT_NO;
	if (cli->json) {
		json_t *object = json_object();

		cli_set(object, "checks", doctor.rows);
		cli_set(object, "exit", json_integer(status));
		cli_print_json(object);
	} else {
		json_decref(doctor.rows);
	}
	return status;
}
