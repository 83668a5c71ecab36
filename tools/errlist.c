/*
 * tools/errlist.c - renders the one list of error codes (HF_ERR_LIST) for other readers.
 *
 *     errlist mdoc      the table of the manual page
 *     errlist python    the exceptions of the Python module
 *
 * Run by the build; a code added to the header is in both by that alone.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "holdfast/err.h"
#include "holdfast/exit.h"

static void print_mdoc(const struct hf_err_info *info)
{
	printf(".It Dv HF_E_%s\n%d, exit status %d: %s.\n", info->name, info->code,
	       info->exit_status, info->text);
}

/* STORED_ID becomes StoredId. */
static void print_class_name(const char *name)
{
	int start = 1;

	for (; *name; name++) {
		if (*name == '_') {
			start = 1;
			continue;
		}
		putchar(start ? toupper((unsigned char)*name) : tolower((unsigned char)*name));
		start = 0;
	}
}

/* What a caller may catch instead of one class: a refusal, a wrong argument, Python's own time-out. */
static const char *base_of(const struct hf_err_info *info)
{
	if (info->code == HF_E_TIMEOUT)
		return "HoldfastError, TimeoutError";
	switch (info->exit_status) {
	case HF_EXIT_USAGE:
		return "Usage";
	case HF_EXIT_REFUSED:
		return "Refused";
	default:
		return "HoldfastError";
	}
}

static void print_python(const struct hf_err_info *info)
{
	fputs("\n\nclass ", stdout);
	print_class_name(info->name);
	printf("(%s):\n    \"\"\"%c%s.\"\"\"\n\n    code = %d\n    exit_status = %d\n", base_of(info),
	       toupper((unsigned char)info->text[0]), info->text + 1, info->code,
	       info->exit_status);
}

static int run_python(void)
{
	puts("\"\"\"The error codes of libholdfast as exceptions. Made from HF_ERR_LIST (tools/errlist.c); do not edit.\"\"\"\n"
	     "from typing import Dict, Type\n\n"
	     "from ._base import HoldfastError as HoldfastError\n"
	     "from ._base import Refused as Refused\n"
	     "from ._base import Usage as Usage");
	for (size_t i = 0; hf_err_at(i); i++)
		print_python(hf_err_at(i));
	fputs("\n\nBY_CODE: Dict[int, Type[HoldfastError]] = {", stdout);
	for (size_t i = 0; hf_err_at(i); i++) {
		printf("\n    %d: ", hf_err_at(i)->code);
		print_class_name(hf_err_at(i)->name);
		putchar(',');
	}
	puts("\n}");
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "python") == 0)
		return run_python();
	if (argc != 2 || strcmp(argv[1], "mdoc") != 0) {
		fputs("usage: errlist mdoc|python\n", stderr);
		return 2;
	}
	puts(".Bl -tag -width Ds");
	for (size_t i = 0; hf_err_at(i); i++)
		print_mdoc(hf_err_at(i));
	puts(".El");
	return 0;
}
