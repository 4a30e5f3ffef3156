/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* What the files of the C side share. */
#ifndef SHIM_H
#define SHIM_H

#include <linux/skbuff.h>
#include <net/pkt_cls.h>
#include <net/pkt_sched.h>

#include "simnel.h"

/* Calls in a row where a discipline has more work than one call may do, or has none. */
#define SIMNEL_TURNS 16

/* As many bytes of headers as the parser looks at. */
#define SIMNEL_HEADERS 256

/* The private part of a struct Qdisc. */
struct simnel_sched {
	struct simnel_line *line;
	/* Where the line reads of a packet that arrives. */
	struct simnel_arrival *arrival;
	/* What the settings want of this side: SIMNEL_WANTS_... */
	u32 wants;
	/* Queues of which a class of ours names one; 0: classes mean something else. */
	u32 named_queues;
	/* Not 0 while dequeues come to the line: it has packets, or must know that it has none. */
	u32 asks;
	/* Packets that leave up to the next that is looked at, that one included. */
	u32 unseen;
	/* Packets and bytes that were queued and dropped, which the parents do not know of yet. */
	u32 lost_packets;
	u32 lost_bytes;
	/* Bytes of the packet that the parent has taken out to look at, or 0. */
	u32 lent;
	/* The time of an arrival, for the dequeue that follows at once; 0: none does. */
	u64 now;
	/* During an enqueue: the packet that arrives, until it is dropped, and where those go. */
	struct sk_buff *arriving;
	struct sk_buff **to_free;
	struct tcf_proto __rcu *filters;
	struct tcf_block *block;
	struct qdisc_watchdog watchdog;
	/* What was hung below in place of the discipline's own queue, or NULL. */
	struct Qdisc *below;
	/* A root of parallel queues, until they are attached: these. */
	struct Qdisc **queues;
	/* Headers of the present packet, where they do not lie in one piece. */
	u8 headers[SIMNEL_HEADERS];
#ifdef SIMNEL_DEBUG
	/* The packets that the Rust side holds. */
	struct sk_buff_head held;
	u32 calls;
#endif
};

/* From now on dequeues come to the line. */
static inline void simnel_be_asked(struct Qdisc *sch)
{
	struct simnel_sched *q = qdisc_priv(sch);

	q->asks = SIMNEL_TURNS;
	sch->dequeue = sch->ops->dequeue;
}

/* All fields are written before they are read: kernels that zero the stack need not. */
#if __has_attribute(__uninitialized__)
#define SIMNEL_WRITTEN __attribute__((__uninitialized__))
#else
#define SIMNEL_WRITTEN
#endif

/* books.c: debug builds compare books with packets. */
#ifdef SIMNEL_DEBUG
void simnel_books_open(struct simnel_sched *q);
void simnel_books_take(struct simnel_sched *q, struct sk_buff *skb);
void simnel_books_give(struct simnel_sched *q, struct sk_buff *skb);
void simnel_books_check(struct Qdisc *sch);
void simnel_books_time(u64 now);
#else
static inline void simnel_books_open(struct simnel_sched *q) {}
static inline void simnel_books_take(struct simnel_sched *q, struct sk_buff *skb) {}
static inline void simnel_books_give(struct simnel_sched *q, struct sk_buff *skb) {}
static inline void simnel_books_check(struct Qdisc *sch) {}
static inline void simnel_books_time(u64 now) {}
#endif

/* qdisc.c */
extern const struct Qdisc_ops simnel_queue_ops;
void simnel_tell_parents(struct Qdisc *sch);
void simnel_describe(struct Qdisc *sch, struct sk_buff *skb, struct simnel_unusual *unusual,
		     struct simnel_translation *translation);
bool simnel_classify(struct sk_buff *skb, struct Qdisc *sch, struct tcf_proto *filters, u32 *class,
		     struct sk_buff **to_free, int *result);
unsigned long simnel_class_bind(struct Qdisc *sch, unsigned long parent, u32 id);
void simnel_class_unbind(struct Qdisc *sch, unsigned long class);
struct tcf_block *simnel_class_block(struct Qdisc *sch, unsigned long class,
				     struct netlink_ext_ack *extack);

/* below.c */
extern const struct Qdisc_class_ops simnel_red_class_ops, simnel_sfb_class_ops;
struct Qdisc *simnel_unhang(struct Qdisc *sch);

/* packet.c */
bool simnel_translate(const struct sk_buff *skb, struct simnel_translation *translation);
void simnel_rewrite(struct sk_buff *skb, const struct simnel_packet *packet);

/* netlink.c */
int simnel_qdisc_init(struct Qdisc *sch, struct nlattr *options, struct netlink_ext_ack *extack);
int simnel_qdisc_change(struct Qdisc *sch, struct nlattr *options, struct netlink_ext_ack *extack);
int simnel_refuse(const struct simnel_message *message, struct netlink_ext_ack *extack);
void simnel_request(struct simnel_request *to, struct Qdisc *sch, struct nlattr *options);
void simnel_start(struct Qdisc *sch, struct simnel_line *line);
void simnel_adopt(struct Qdisc *sch, struct simnel_change *change);
int simnel_qdisc_dump(struct Qdisc *sch, struct sk_buff *skb);
void simnel_count(struct Qdisc *sch, struct simnel_counters *counters);
int simnel_put_statistics(struct Qdisc *sch, const struct simnel_counters *counters,
			  struct gnet_dump *dump);
int simnel_qdisc_dump_stats(struct Qdisc *sch, struct gnet_dump *dump);
int simnel_class_dump_stats(struct Qdisc *sch, unsigned long class, struct gnet_dump *dump);
void simnel_class_walk(struct Qdisc *sch, struct qdisc_walker *walker);

/* mq.c */
int simnel_mq_init(struct Qdisc *sch, const struct simnel_request *asked,
		   const struct simnel_surroundings *surroundings, struct netlink_ext_ack *extack);
void simnel_mq_forget(struct Qdisc *sch);

#endif
