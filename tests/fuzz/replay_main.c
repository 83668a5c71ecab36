/*
 * tests/fuzz/replay_main.c - runs a fuzz target over stored inputs, with any compiler.
 *
 *     replay-name DIRECTORY|FILE...
 *
 * Prints TAP, one line for each file in the order of their names. A property that does not
 * hold ends the program by a signal before the plan is printed.
 */
#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "fuzz.h"

static size_t done;

static int not_hidden(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

static int fail(const char *path)
{
	fprintf(stderr, "%s: %s\n", path, strerror(errno));
	return -1;
}

/* Memory of exactly the file's size, so that a sanitizer sees a step beyond it. */
static int replay_file(const char *path, size_t size)
{
	const char *slash = strrchr(path, '/');
	FILE *file = fopen(path, "rbe");
	uint8_t *data = malloc(size ? size : 1);
	int r = 0;

	if (!file || !data || fread(data, 1, size, file) != size)
		r = fail(path);
	if (r == 0) {
		/* Named before it runs: the last name is the one that crashed. */
		fprintf(stderr, "# %s\n", path);
		LLVMFuzzerTestOneInput(data, size);
		printf("ok %zu - %s\n", ++done, slash ? slash + 1 : path);
		fflush(stdout);
	}
	if (file)
		fclose(file);
	free(data);
	return r;
}

static int replay(const char *path);

static int replay_directory(const char *path)
{
	struct dirent **entries;
	int n = scandir(path, &entries, not_hidden, alphasort), r = 0;

	if (n < 0)
		return fail(path);
	for (int i = 0; i < n; i++) {
		char below[4096];
		int len = snprintf(below, sizeof(below), "%s/%s", path, entries[i]->d_name);

		if (r == 0)
			r = len < (int)sizeof(below) ? replay(below) : -1;
		free(entries[i]);
	}
	free(entries);
	return r;
}

static int replay(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return fail(path);
	return S_ISDIR(st.st_mode) ? replay_directory(path)
				   : replay_file(path, (size_t)st.st_size);
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (replay(argv[i]) < 0)
			return 1;
	printf("1..%zu\n", done);
	/* Nothing replayed is nothing proven. */
	return done > 0 ? 0 : 1;
}
