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
 * Status 0: done; 3: Linux refuses the settings; 1: anything else.
 *
 * `oracle serve` takes many: each as a line with its number of bytes, and the bytes. A child of its
 * own answers, as with one; then `# status N` tells how it ended. */
#include <arpa/inet.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "oracle.h"

/* Of a line, its five-tuple counted as one. */
#define COLUMNS 14

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

static int is_serving;

void oracle_refused(const char *why)
{
	fflush(stdout);
	if (!is_serving)
		fprintf(stderr, "oracle: Linux refuses the settings: %s\n", why);
	_exit(3);
}

void oracle_free(void *memory) { free(memory); }

void oracle_print(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
}

static void put_number(char **to, unsigned long long number)
{
	char digits[24], *first = digits + sizeof digits;

	do
		*--first = '0' + number % 10;
	while (number /= 10);
	memcpy(*to, first, digits + sizeof digits - first);
	*to += digits + sizeof digits - first;
}

static void put_text(char **to, const char *text)
{
	while (*text)
		*(*to)++ = *text++;
}

/* Most lines are these: as `printf`, at a fraction of its cost. */
void oracle_event(unsigned long long time, const char *what, unsigned long long id,
		  const struct place *place, int is_marked)
{
	char line[160], *end = line;

	put_number(&end, time);
	put_text(&end, what);
	put_number(&end, id);
	if (place) {
		put_text(&end, " tin=");
		put_number(&end, place->tin);
		put_text(&end, " flow=");
		put_number(&end, place->flow);
		put_text(&end, " adj=");
		put_number(&end, place->length);
	}
	put_text(&end, is_marked ? " CE\n" : "\n");
	fwrite(line, 1, end - line, stdout);
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

struct tuple {
	char *text;
	unsigned sport, dport, proto;
	int is_ipv6;
	unsigned char source[16], destination[16];
};

/* The five-tuple that was written so; a new one is read. */
static const struct tuple *tuple_of(const char *text, int *is_new)
{
	enum { SLOTS = 1 << 17 };
	static struct tuple *seen[SLOTS];
	char source[64], destination[64];
	unsigned long hash = 5381;
	struct tuple *tuple;
	const char *c;
	int family;

	for (c = text; *c; c++)
		hash = hash * 33 + *c;
	while ((tuple = seen[hash %= SLOTS])) {
		if (!strcmp(tuple->text, text))
			return tuple;
		hash++;
	}
	*is_new = 1;
	tuple = seen[hash] = calloc(1, sizeof *tuple);
	tuple->text = strdup(text);
	tuple->is_ipv6 = strchr(text, ':') != NULL;
	family = tuple->is_ipv6 ? AF_INET6 : AF_INET;
	if (sscanf(text, "%63[^,],%63[^,],%u,%u,%u", source, destination, &tuple->sport,
		   &tuple->dport, &tuple->proto) != 5 ||
	    inet_pton(family, source, tuple->source) != 1 ||
	    inet_pton(family, destination, tuple->destination) != 1)
		bench_died("a five-tuple is none");
	return tuple;
}

/* The columns, of which the five of the five-tuple are left together. */
static int columns_of(char *line, char **column)
{
	int count = 0, commas = 0;

	column[count++] = line;
	for (; *line; line++) {
		if (*line != ',' || (++commas > 4 && commas < 9))
			continue;
		*line = 0;
		if (count == COLUMNS)
			bench_died("a line of input is long");
		column[count++] = line + 1;
	}
	return count;
}

static void arrive(char *line)
{
	struct arrival arrival = { 0 };
	char *column[COLUMNS], *sack;
	const struct tuple *tuple;
	int count = columns_of(line, column);

	while (count < COLUMNS)
		column[count++] = "";
	arrival.time = strtoull(column[0], NULL, 10);
	arrival.id = strtoull(column[2], NULL, 10);
	arrival.len = atoi(column[3]);
	tuple = tuple_of(column[4], &arrival.is_new_flow);
	arrival.tuple = tuple->text;
	arrival.is_ipv6 = tuple->is_ipv6;
	memcpy(arrival.source, tuple->source, sizeof arrival.source);
	memcpy(arrival.destination, tuple->destination, sizeof arrival.destination);
	arrival.sport = tuple->sport;
	arrival.dport = tuple->dport;
	arrival.proto = tuple->proto;
	arrival.dscp = atoi(column[5]);
	arrival.ecn = atoi(column[6]);
	arrival.flags = strtoul(column[7], NULL, 16);
	arrival.seq = strtoul(column[8], NULL, 10);
	arrival.ack = strtoul(column[9], NULL, 10);
	arrival.has_timestamp = *column[10] != 0;
	arrival.tsval = strtoul(column[10], NULL, 10);
	arrival.tsecr = strtoul(column[11], NULL, 10);
	for (sack = strtok(column[12], ";"); sack && arrival.sack_count < 4; sack = strtok(NULL, ";"))
		if (sscanf(sack, "%u-%u", &arrival.sack[arrival.sack_count][0],
			   &arrival.sack[arrival.sack_count][1]) == 2)
			arrival.sack_count++;
	if (*column[13]) {
		unsigned major = 0, minor = 0;

		sscanf(column[13], "%x:%x", &major, &minor);
		/* Written 1:10, whatever the root's handle. */
		arrival.class_id = 0x80010000 | minor;
	}
	oracle_arrive(&arrival);
}

/* WHAT of a change. */
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
	char *what, *rest;
	unsigned long long time = strtoull(line, &what, 10);

	if (!strncmp(what, ",enq+,", 6)) {
		arrive(line);
		return;
	}
	if (*what++ != ',')
		bench_died("a line of input is short");
	oracle_run(time);
	rest = what;
	strsep(&rest, ",");
	if (!strcmp(what, "reset"))
		oracle_reset();
	else if (!strcmp(what, "stats"))
		oracle_look();
	else if (!strcmp(what, "change") && rest)
		change(strsep(&rest, ","));
	else if (strcmp(what, "run"))
		bench_died("a line of input is none");
}

/* One case from its text. */
static void answer(char *text)
{
	static char kind[64], hex[132000];
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
	char *line;

	while ((line = strsep(&text, "\n")) && (text || *line)) {
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
	fflush(stdout);
}

/* Reads `size` bytes, or to the end, and a zero behind them. */
static char *read_text(unsigned long size)
{
	unsigned long room = size ? size + 1 : 1 << 20, length = 0, got;
	char *text = malloc(room);

	while (text && (got = fread(text + length, 1, (size ? size : room - 1) - length, stdin))) {
		length += got;
		if (!size && length + 1 == room)
			text = realloc(text, room *= 2);
	}
	if (!text || (size && length < size))
		bench_died("the input ends early, or is too long");
	text[length] = 0;
	return text;
}

static void serve(void)
{
	char line[64];

	is_serving = 1;
	while (fgets(line, sizeof line, stdin)) {
		char *text = read_text(strtoul(line, NULL, 10));
		int status = 0;
		pid_t child = fork();

		if (!child) {
			answer(text);
			_exit(0);
		}
		if (child < 0 || waitpid(child, &status, 0) != child)
			bench_died("no child");
		/* As shells tell it: a signal's number behind 128. */
		printf("# status %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
		fflush(stdout);
		free(text);
	}
}

int main(int count, char **words)
{
	static char room[1 << 16];

	setvbuf(stdout, room, _IOFBF, sizeof room);
	bench_register_all();
	if (count > 1 && !strcmp(words[1], "serve"))
		serve();
	else
		answer(read_text(0));
	return 0;
}
