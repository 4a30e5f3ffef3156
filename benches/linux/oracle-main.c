/* The oracle: reads a configuration and arrivals from standard input, and writes what Linux's
 * disciplines do with them. Made by benches/linux/compile.sh; conformance/fuzz-linux.sh uses it.
 *
 *     seed N, key0 N, key1 N, t0 NS, hz 1000, wheel 0|1, link BITS   a line each; 0 is no link
 *     qdisc PARENT HANDLE KIND HEX     the root first, PARENT 0; HEX is TCA_OPTIONS' body, - none
 *     class PARENT ID HEX              a class of the root; numbers are hexadecimal here
 *     input                            arrivals follow, as in a recording's .csv, and
 *     T,change,WHAT[,...]              other settings while it runs: HEX of the root,
 *                                      leaf:CLASS:HEX below a class, class:PARENT:ID:HEX of a class
 *     T,reset, T,stats                 the root is emptied; asked what it counted
 *
 * Status 0: done; 3: Linux refuses the settings; 1: anything else. */
#include <arpa/inet.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "oracle.h"

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
	fflush(stdout);
	fprintf(stderr, "oracle: %s\n", why);
	exit(1);
}

void oracle_refused(const char *why)
{
	fprintf(stderr, "oracle: Linux refuses the settings: %s\n", why);
	exit(3);
}

void oracle_free(void *memory) { free(memory); }

void oracle_print(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
}

static unsigned char body[65536];

/* Bytes of a hexadecimal word. */
static unsigned bytes_of(const char *hex)
{
	unsigned count = 0, byte;

	if (!strcmp(hex, "-"))
		return 0;
	for (; sscanf(hex, "%2x", &byte) == 1 && count < sizeof body; hex += 2)
		body[count++] = byte;
	return count;
}

/* True the first time that a five-tuple is seen. */
static int is_new(const char *tuple)
{
	enum { SLOTS = 1 << 17 };
	static char *seen[SLOTS];
	unsigned long hash = 5381;
	const char *c;

	for (c = tuple; *c; c++)
		hash = hash * 33 + *c;
	while (seen[hash %= SLOTS]) {
		if (!strcmp(seen[hash], tuple))
			return 0;
		hash++;
	}
	seen[hash] = strdup(tuple);
	return 1;
}

static void arrive(char **column, int count)
{
	struct arrival arrival = { 0 };
	char tuple[160], *sack;
	int family;

	while (count < 18)
		column[count++] = "";
	family = strchr(column[4], ':') ? AF_INET6 : AF_INET;
	snprintf(tuple, sizeof tuple, "%s,%s,%s,%s,%s", column[4], column[5], column[6], column[7],
		 column[8]);
	arrival.time = strtoull(column[0], NULL, 10);
	arrival.id = strtoull(column[2], NULL, 10);
	arrival.len = atoi(column[3]);
	arrival.is_ipv6 = family == AF_INET6;
	if (inet_pton(family, column[4], arrival.source) != 1 ||
	    inet_pton(family, column[5], arrival.destination) != 1)
		bench_died("an address is none");
	arrival.sport = atoi(column[6]);
	arrival.dport = atoi(column[7]);
	arrival.proto = atoi(column[8]);
	arrival.dscp = atoi(column[9]);
	arrival.ecn = atoi(column[10]);
	arrival.flags = strtoul(column[11], NULL, 16);
	arrival.seq = strtoul(column[12], NULL, 10);
	arrival.ack = strtoul(column[13], NULL, 10);
	arrival.has_timestamp = *column[14] != 0;
	arrival.tsval = strtoul(column[14], NULL, 10);
	arrival.tsecr = strtoul(column[15], NULL, 10);
	for (sack = strtok(column[16], ";"); sack && arrival.sack_count < 4; sack = strtok(NULL, ";"))
		if (sscanf(sack, "%u-%u", &arrival.sack[arrival.sack_count][0],
			   &arrival.sack[arrival.sack_count][1]) == 2)
			arrival.sack_count++;
	if (*column[17]) {
		unsigned major = 0, minor = 0;

		sscanf(column[17], "%x:%x", &major, &minor);
		/* Written 1:10, whatever the root's handle. */
		arrival.class_id = 0x80010000 | minor;
	}
	arrival.tuple = tuple;
	arrival.is_new_flow = is_new(tuple);
	oracle_arrive(&arrival);
}

static void change(const char *what)
{
	static char hex[132000];
	unsigned parent, id;

	if (sscanf(what, "class:%x:%x:%131999s", &parent, &id, hex) == 3)
		oracle_class(parent, id, body, bytes_of(hex));
	else if (sscanf(what, "leaf:%x:%131999s", &id, hex) == 2)
		oracle_change(id, body, bytes_of(hex));
	else
		oracle_change(0, body, bytes_of(what));
}

static void event(char *line)
{
	char *column[24], *next = line;
	int count = 0;

	while (next && count < 24)
		column[count++] = strsep(&next, ",");
	if (count < 2)
		bench_died("a line of input is short");
	if (!strcmp(column[1], "enq+") && count > 10) {
		arrive(column, count);
		return;
	}
	oracle_run(strtoull(column[0], NULL, 10));
	if (!strcmp(column[1], "reset"))
		oracle_reset();
	else if (!strcmp(column[1], "stats"))
		oracle_look();
	else if (!strcmp(column[1], "change") && count > 2)
		change(column[2]);
	else if (strcmp(column[1], "run"))
		bench_died("a line of input is none");
}

int main(void)
{
	static char line[140000], kind[64], hex[132000];
	struct settings settings = { .seed = 1, .hz = 1000 };
	const struct {
		const char *name;
		unsigned long long *value;
	} numbers[] = { { "seed", &settings.seed }, { "key0", &settings.key0 },
			{ "key1", &settings.key1 }, { "t0", &settings.start },
			{ "hz", &settings.hz },	    { "wheel", &settings.wheel },
			{ "link", &settings.link } };
	int is_input = 0, has_begun = 0;
	unsigned parent, id, i;

	bench_register_all();
	while (fgets(line, sizeof line, stdin)) {
		line[strcspn(line, "\n")] = 0;
		if (is_input) {
			event(line);
			continue;
		}
		is_input = !strcmp(line, "input");
		for (i = 0; i < sizeof numbers / sizeof *numbers; i++)
			if (!strncmp(line, numbers[i].name, strlen(numbers[i].name)))
				*numbers[i].value = strtoull(line + strlen(numbers[i].name), NULL, 10);
		if (strncmp(line, "qdisc ", 6) && strncmp(line, "class ", 6))
			continue;
		if (!has_begun)
			oracle_begin(&settings);
		has_begun = 1;
		if (sscanf(line, "qdisc %x %x %63s %131999s", &parent, &id, kind, hex) == 4)
			oracle_qdisc(parent, id, kind, body, bytes_of(hex), strcmp(hex, "-") != 0);
		else if (sscanf(line, "class %x %x %131999s", &parent, &id, hex) == 3)
			oracle_class(parent, id, body, bytes_of(hex));
		else
			bench_died("a line of the configuration is none");
	}
	if (!has_begun)
		bench_died("no discipline was given");
	oracle_end();
	return 0;
}
