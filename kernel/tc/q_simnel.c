// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Plug-in of iproute2 for the qdisc `simnel`: tc passes on its words, and prints the module's.
 *
 *     tc qdisc add dev eth0 root simnel fq_pie savings 15kb
 *     tc -s qdisc show dev eth0
 *
 * The module reads the words, and writes its statistics as text and as JSON; nothing here knows
 * any discipline. tc looks for q_simnel.so in the directory $TC_LIB_DIR, else in the one that it
 * was built with: /usr/lib/tc, or in Debian /usr/lib/ARCHITECTURE/tc.
 */
#include <string.h>

#include "iproute2.h"

/* Attributes of the module: words among the options, text and JSON among the statistics. */
#define WORDS 1
#define TEXT 2
#define JSON 3

/* Bytes of words, the final zero included. */
#define MOST_WORDS 4096

static int parse_qopt(struct qdisc_util *util, int argc, char **argv, struct nlmsghdr *message,
		      const char *device)
{
	char words[MOST_WORDS];
	struct rtattr *options;
	size_t length = 0;
	int i;

	if (!argc)
		return 0;
	for (i = 0; i < argc; i++) {
		size_t more = strlen(argv[i]);

		if (more + 1 > sizeof(words) - length) {
			fprintf(stderr, "simnel: more than %d bytes of words\n", MOST_WORDS - 1);
			return -1;
		}
		memcpy(words + length, argv[i], more);
		length += more;
		words[length++] = ' ';
	}
	words[length - 1] = '\0';
	options = addattr_nest(message, TC_ROOM, TCA_OPTIONS | NLA_F_NESTED);
	if (addattr_l(message, TC_ROOM, WORDS, words, length) < 0)
		return -1;
	addattr_nest_end(message, options);
	return 0;
}

/* The string in the attribute `type` within `nest`, or NULL. */
static const char *string_in(struct rtattr *nest, int type)
{
	struct rtattr *at;
	int rest;

	if (!nest)
		return NULL;
	rest = RTA_PAYLOAD(nest);
	for (at = RTA_DATA(nest); RTA_OK(at, rest); at = RTA_NEXT(at, rest))
		if ((at->rta_type & NLA_TYPE_MASK) == type &&
		    memchr(RTA_DATA(at), '\0', RTA_PAYLOAD(at)))
			return RTA_DATA(at);
	return NULL;
}

static int print_qopt(struct qdisc_util *util, FILE *out, struct rtattr *options)
{
	const char *words = string_in(options, WORDS);

	if (!words)
		return 0;
	if (is_json_context()) {
		jsonw_name(get_json_writer(), "words");
		jsonw_string(get_json_writer(), words);
	} else {
		fprintf(out, "%s ", words);
	}
	return 0;
}

/* The end of a string that begins at `at`, behind its second quote. */
static const char *string_end(const char *at)
{
	for (at++; *at && *at != '"'; at++)
		if (*at == '\\' && at[1])
			at++;
	return *at ? at + 1 : at;
}

/* The end of the value at `at`: where a comma or bracket of the object around it stands. */
static const char *value_end(const char *at)
{
	int depth = 0;

	while (*at) {
		if (*at == '"') {
			at = string_end(at);
			continue;
		}
		if (!depth && strchr(",}]", *at))
			break;
		if (strchr("{[", *at))
			depth++;
		else if (strchr("}]", *at))
			depth--;
		at++;
	}
	return at;
}

/* Prints the members of the object `json` as members of the one that tc has open. */
static void print_members(const char *json)
{
	json_writer_t *writer = get_json_writer();
	const char *at = json;

	while (*at == '{' || *at == ',') {
		const char *name = at + 2, *value, *end;
		char key[64];

		/* The module writes no spaces, and its names need no escapes. */
		value = at[1] == '"' ? strstr(name, "\":") : NULL;
		if (!value || value - name >= (long)sizeof(key))
			return;
		memcpy(key, name, value - name);
		key[value - name] = '\0';
		value += 2;
		end = value_end(value);
		jsonw_name(writer, key);
		jsonw_printf(writer, "%.*s", (int)(end - value), value);
		at = end;
	}
}

static int print_xstats(struct qdisc_util *util, FILE *out, struct rtattr *statistics)
{
	if (is_json_context()) {
		const char *json = string_in(statistics, JSON);

		if (json)
			print_members(json);
	} else {
		const char *text = string_in(statistics, TEXT);
		size_t length = text ? strlen(text) : 0;

		/* tc ends the last line itself. */
		if (length && text[length - 1] == '\n')
			length--;
		fwrite(text, 1, length, out);
	}
	return 0;
}

struct qdisc_util simnel_qdisc_util = {
	.id = "simnel",
	.parse_qopt = parse_qopt,
	.print_qopt = print_qopt,
	.print_xstats = print_xstats,
};
