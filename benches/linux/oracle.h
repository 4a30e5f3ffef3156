/* Between the two halves of the oracle: oracle.c sees the kernel's headers, oracle-main.c the C
 * library's. */
#include "bench.h"

/* One line of the input file. */
struct arrival {
	unsigned long long time, id;
	unsigned len, sport, dport, proto, dscp, ecn, flags, seq, ack, tsval, tsecr, class_id;
	int is_ipv6, has_timestamp, sack_count, is_new_flow;
	unsigned char source[16], destination[16];
	unsigned sack[4][2];
	const char *tuple;
};

/* Numbers of the configuration. */
struct settings {
	unsigned long long seed, key0, key1, start, hz, wheel, link;
};

/* oracle.c */
void oracle_begin(const struct settings *settings);
/* Makes the discipline `kind` as the root, or below the class `parent`, with the body of
 * TCA_OPTIONS. `has_options` is 0 where there is none. */
void oracle_qdisc(unsigned parent, unsigned handle, const char *kind, const void *options,
		  unsigned size, int has_options);
/* Adds a class to the root, or changes it. */
void oracle_class(unsigned parent, unsigned id, const void *options, unsigned size);
/* Changes the settings of the root, or of the discipline below `class`. */
void oracle_change(unsigned class, const void *options, unsigned size);
/* Empties the root. */
void oracle_reset(void);
/* Writes what was counted until now. */
void oracle_look(void);
void oracle_arrive(const struct arrival *arrival);
void oracle_run(unsigned long long until);
/* Last lines: what was counted. */
void oracle_end(void);

/* Where cake took a packet from, and its length on the line. */
struct place {
	unsigned tin, flow, length;
};

/* oracle-main.c */
/* Writes what became of a packet: ` deq ` and so on. */
void oracle_event(unsigned long long time, const char *what, unsigned long long id,
		  const struct place *place, int is_marked);
void oracle_print(const char *format, ...);
void oracle_free(void *memory);
/* Ends the program with status 3: Linux refuses the settings. */
void oracle_refused(const char *why);
