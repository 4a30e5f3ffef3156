/* Between the two halves of the benchmark: kernel.c sees the kernel's headers, main.c the C
 * library's. */

/* kernel.c */

/* Makes a discipline and its packets, of so many flows. 0, or -1 if there is none of that name. */
int bench_begin(const char *name, unsigned flows, int backlog, int hash_given);
/* Passes packets through it, so many times one in and one out; says how many packets came out. */
unsigned long bench_run(unsigned long pairs);
/* Packets that were dropped since bench_begin. */
unsigned long bench_dropped(void);
/* What the disciplines register themselves with. */
void bench_register_all(void);

/* main.c */

/* Zeroed memory that begins a cache line; never freed. */
void *bench_zeroed(unsigned long size);
/* Ends the program with a message. */
void bench_died(const char *why);
