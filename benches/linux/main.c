/* Times a pair of enqueue and dequeue in one of Linux's own disciplines: nanoseconds, the median of
 * five runs of a million pairs on one core. See benches/linux.sh. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench.h"

enum { RUNS = 5, PAIRS = 1000000, WARM_UP = 10000 };

void *bench_zeroed(unsigned long size)
{
	size_t whole = (size + 63) & ~63ul;
	void *memory = aligned_alloc(64, whole);

	if (!memory)
		bench_died("out of memory");
	return memset(memory, 0, whole);
}

void bench_died(const char *why)
{
	fprintf(stderr, "linux-qdiscs: %s\n", why);
	exit(1);
}

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

static int ascending(const void *a, const void *b)
{
	double difference = *(const double *)a - *(const double *)b;

	return difference < 0 ? -1 : difference > 0;
}

int main(int argc, char **argv)
{
	double times[RUNS];
	cpu_set_t one;
	int run;

	if (argc != 5) {
		fputs("usage: linux-qdiscs DISCIPLINE FLOWS empty|backlog given|computed\n", stderr);
		return 2;
	}
	CPU_ZERO(&one);
	CPU_SET(0, &one);
	sched_setaffinity(0, sizeof one, &one);
	bench_register_all();
	for (run = 0; run < RUNS; run++) {
		double begin;

		if (bench_begin(argv[1], atoi(argv[2]), !strcmp(argv[3], "backlog"),
				!strcmp(argv[4], "given")))
			bench_died("no such discipline");
		bench_run(WARM_UP);
		begin = now_ns();
		if (bench_run(PAIRS) != PAIRS || bench_dropped())
			bench_died("packets were dropped or held back: this is another workload");
		times[run] = (now_ns() - begin) / PAIRS;
	}
	qsort(times, RUNS, sizeof *times, ascending);
	printf("%.1f\n", times[RUNS / 2]);
	return 0;
}
