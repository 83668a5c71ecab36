/* bench/bench.h - time, medians, and results as a table and as JSON. Header only: each program is one file. */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static inline double bench_now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

static inline int bench_by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static inline double bench_median(double *values, size_t n)
{
	qsort(values, n, sizeof(*values), bench_by_value);
	return values[n / 2];
}

/* One row: ours, the peer, the ratio, and the bar of the design where there is one. */
static inline void bench_row(FILE *json, int *rows, const char *what, double us, const char *peer,
			     double peer_us, double bar)
{
	printf("  %-44s %9.1f us   %-28s %9.1f us   ratio %5.2f", what, us, peer, peer_us,
	       us / peer_us);
	if (bar > 0)
		printf("   bar %.2f%s", bar, us / peer_us <= bar ? "" : "  MISSED");
	putchar('\n');
	if (json)
		fprintf(json, "%s{\"what\":\"%s\",\"us\":%.2f,\"peer\":\"%s\",\"peer_us\":%.2f,\"ratio\":%.3f,\"bar\":%.2f}",
			(*rows)++ ? "," : "", what, us, peer, peer_us, us / peer_us, bar);
}

static inline FILE *bench_json_open(int *argc, char ***argv)
{
	FILE *json = NULL;

	if (*argc >= 3 && (*argv)[1][0] == '-' && (*argv)[1][2] == 'j') {
		json = fopen((*argv)[2], "we");
		*argc -= 2;
		*argv += 2;
	}
	if (json)
		fputs("{\"v\":1,\"results\":[", json);
	return json;
}

static inline void bench_json_close(FILE *json)
{
	if (json) {
		fputs("]}\n", json);
		fclose(json);
	}
}

#endif
