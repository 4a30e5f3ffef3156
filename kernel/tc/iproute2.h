/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * What a plug-in of iproute2's tc shares with it: tc finds the structure NAME_qdisc_util in
 * q_NAME.so, and the plug-in calls functions of the running tc. iproute2 installs no header of
 * these; the declarations are of its interface as of 6.1, which tc 6.1.0 of Debian 12 was checked
 * against. Later versions only add `const`, which changes nothing in memory.
 */
#ifndef IPROUTE2_H
#define IPROUTE2_H

#include <linux/rtnetlink.h>
#include <stdbool.h>
#include <stdio.h>

struct qdisc_util {
	struct qdisc_util *next;
	const char *id;
	int (*parse_qopt)(struct qdisc_util *util, int argc, char **argv,
			  struct nlmsghdr *message, const char *device);
	int (*print_qopt)(struct qdisc_util *util, FILE *out, struct rtattr *options);
	int (*print_xstats)(struct qdisc_util *util, FILE *out, struct rtattr *statistics);
	int (*parse_copt)(struct qdisc_util *util, int argc, char **argv,
			  struct nlmsghdr *message, const char *device);
	int (*print_copt)(struct qdisc_util *util, FILE *out, struct rtattr *options);
	int (*has_block)(struct qdisc_util *util, struct rtattr *options, bool *has);
};

/* Bytes that tc has room for in a message, behind its header. */
#define TC_ROOM (64 * 1024)

/* Attributes of a request. */
struct rtattr *addattr_nest(struct nlmsghdr *message, int most, int type);
int addattr_nest_end(struct nlmsghdr *message, struct rtattr *nest);
int addattr_l(struct nlmsghdr *message, int most, int type, const void *data, int length);

/* Output with -j. */
typedef struct json_writer json_writer_t;
bool is_json_context(void);
json_writer_t *get_json_writer(void);
void jsonw_name(json_writer_t *writer, const char *name);
void jsonw_string(json_writer_t *writer, const char *value);
void jsonw_printf(json_writer_t *writer, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
