// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Queue disciplines of Simnel, as the kernel calls them. This side translates only: packets to
 * descriptors, netlink to settings, time to timers. What happens to packets is decided in Rust
 * (simnel.h).
 */
#include <linux/if_arp.h>
#include <linux/module.h>
#include <linux/version.h>
#if __has_include(<net/gso.h>)
#include <net/gso.h>
#endif

#include "shim.h"

/* Calls in a row of a dequeue that has more work than one call may do. */
#define TURNS 16

static char *aliases = "";
module_param(aliases, charp, 0444);
MODULE_PARM_DESC(aliases, "Linux's names to answer to, if it has none of them: cake,fq_codel");

void simnel_host_dropped(void *context, u64 packet, u32 reason)
{
	struct sk_buff *skb = (struct sk_buff *)(unsigned long)packet;
	struct simnel_call *call = context;
	struct Qdisc *sch = call->sch;

	simnel_books_give(qdisc_priv(sch), skb);
	sch->q.qlen--;
	sch->qstats.backlog -= qdisc_pkt_len(skb);
	if (reason == SIMNEL_RESET) {
		rtnl_kfree_skbs(skb, skb);
		return;
	}
	sch->qstats.drops++;
	if (call->arriving == skb)
		call->arriving = NULL;
	if (call->to_free)
		__qdisc_drop(skb, call->to_free);
	else
		kfree_skb(skb);
}

/* Tells the parents of packets and bytes that they count, but that are not here. */
static void tell(struct Qdisc *sch, int packets, int bytes)
{
	if (unlikely(packets || bytes))
		qdisc_tree_reduce_backlog(sch, packets, bytes);
}

/* Gives one packet, all but whose headers is described, to the Rust side. */
static noinline void hand_over_rare(struct simnel_sched *q, struct sk_buff *skb,
				    struct simnel_arrival *arrival, u64 now,
				    struct simnel_call *call)
{
	struct simnel_translation translation SIMNEL_WRITTEN;
	u32 wanted = min_t(u32, SIMNEL_HEADERS, arrival->remaining);

	if (arrival->captured < wanted) {
		const u8 *start = skb_header_pointer(skb, skb->len - arrival->remaining, wanted,
						     q->headers);

		if (start) {
			arrival->start = start;
			arrival->captured = wanted;
		}
	}
	if (q->wants & SIMNEL_WANTS_TRANSLATION && simnel_translate(skb, &translation))
		arrival->translation = &translation;
	if (skb_is_gso(skb))
		arrival->gso = skb_shinfo(skb)->gso_size | skb_shinfo(skb)->gso_segs << 16;
	simnel_enqueue(q->line, arrival, now, call);
}

/* Gives one packet to the Rust side. */
static __always_inline void hand_over(struct simnel_sched *q, struct sk_buff *skb, u32 class,
				      u64 now, struct simnel_call *call)
{
	struct simnel_arrival arrival SIMNEL_WRITTEN;
	struct Qdisc *sch = call->sch;
	u32 offset = 0;

	if (likely(skb->protocol == htons(ETH_P_IP) || skb->protocol == htons(ETH_P_IPV6))) {
		offset = skb_network_offset(skb);
		if (unlikely(offset > skb_headlen(skb)))
			offset = 0;
		arrival.link_header = offset;
	} else {
		arrival.link_header = skb->dev->type == ARPHRD_ETHER ? SIMNEL_ETHERNET : 0;
	}
	arrival.handle = (unsigned long)skb;
	arrival.start = skb->data + offset;
	arrival.translation = NULL;
	arrival.captured = skb_headlen(skb) - offset;
	arrival.remaining = skb->len - offset;
	arrival.len = qdisc_pkt_len(skb);
	arrival.truesize = skb->truesize;
	arrival.mark = skb->mark;
	arrival.priority = skb->priority;
	arrival.class = class;
	arrival.gso = 0;
	simnel_books_take(q, skb);
	sch->q.qlen++;
	sch->qstats.backlog += arrival.len;
	if (unlikely(skb_is_nonlinear(skb) || skb_is_gso(skb) ||
		     q->wants & SIMNEL_WANTS_TRANSLATION))
		hand_over_rare(q, skb, &arrival, now, call);
	else
		simnel_enqueue(q->line, &arrival, now, call);
}

/* A super-packet in pieces. */
static noinline int enqueue_split(struct sk_buff *skb, struct Qdisc *sch, u32 class,
				  struct sk_buff **to_free)
{
	struct simnel_sched *q = qdisc_priv(sch);
	struct sk_buff *segment, *next, *segments;
	u32 packets = sch->q.qlen, bytes = sch->qstats.backlog;
	u32 len = qdisc_pkt_len(skb);
	bool taken = false;
	u64 now = ktime_get_ns();

	segments = skb_gso_segment(skb, netif_skb_features(skb) & ~NETIF_F_GSO_MASK);
	if (IS_ERR_OR_NULL(segments))
		return qdisc_drop(skb, sch, to_free);
	skb_list_walk_safe(segments, segment, next) {
		struct simnel_call call = { .sch = sch, .to_free = to_free, .arriving = segment };

		skb_mark_not_on_list(segment);
		qdisc_skb_cb(segment)->pkt_len = segment->len;
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 18, 0)
		qdisc_skb_cb(segment)->pkt_segs = 1;
#endif
		hand_over(q, segment, class, now, &call);
		taken |= call.arriving != NULL;
	}
	simnel_books_check(sch);
	consume_skb(skb);
	packets -= sch->q.qlen;
	bytes -= sch->qstats.backlog;
	if (!taken) {
		tell(sch, packets, bytes);
		return NET_XMIT_DROP;
	}
	tell(sch, packets + 1, bytes + len);
	return NET_XMIT_SUCCESS;
}

/* Asks the filters for a class. Where they took the packet, it is gone, and false. */
static noinline bool classify(struct sk_buff *skb, struct Qdisc *sch, struct tcf_proto *filters,
			      u32 *class, struct sk_buff **to_free, int *result)
{
	struct simnel_sched *q = qdisc_priv(sch);
	struct tcf_result res;
	int verdict = tcf_classify(skb, NULL, filters, &res, false);

	*result = NET_XMIT_SUCCESS | __NET_XMIT_BYPASS;
	switch (verdict) {
#ifdef CONFIG_NET_CLS_ACT
	case TC_ACT_STOLEN:
	case TC_ACT_QUEUED:
	case TC_ACT_TRAP:
		*result = NET_XMIT_SUCCESS | __NET_XMIT_STOLEN;
		__qdisc_drop(skb, to_free);
		return false;
	case TC_ACT_SHOT:
	case TC_ACT_REDIRECT:
		break;
#endif
	default:
		if (verdict >= 0) {
			*class = res.classid;
			return true;
		}
		if (!(q->wants & SIMNEL_WANTS_CLASS))
			return true;
	}
	qdisc_qstats_drop(sch);
	__qdisc_drop(skb, to_free);
	return false;
}

static int simnel_qdisc_enqueue(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	struct simnel_call call = { .sch = sch, .to_free = to_free, .arriving = skb };
	u32 packets = sch->q.qlen, bytes = sch->qstats.backlog, len, class = 0;
	struct simnel_sched *q = qdisc_priv(sch);
	struct tcf_proto *filters = rcu_dereference_bh(q->filters);

	if (unlikely(filters)) {
		int result;

		if (!classify(skb, sch, filters, &class, to_free, &result))
			return result;
	}
	if (skb_is_gso(skb) && q->wants & SIMNEL_WANTS_SPLIT)
		return enqueue_split(skb, sch, class, to_free);
	len = qdisc_pkt_len(skb);
	hand_over(q, skb, class, ktime_get_ns(), &call);
	simnel_books_check(sch);
	packets -= sch->q.qlen;
	bytes -= sch->qstats.backlog;
	if (likely(call.arriving)) {
		tell(sch, packets + 1, bytes + len);
		return NET_XMIT_SUCCESS;
	}
	tell(sch, packets, bytes);
	return NET_XMIT_DROP;
}

/* Parents must not hear of drops while nothing is queued: they would forget this discipline. */
static noinline void tell_later(struct Qdisc *sch, u32 packets, u32 bytes)
{
	struct simnel_sched *q = qdisc_priv(sch);

	q->untold_packets += packets;
	q->untold_bytes += bytes;
	if (sch->q.qlen) {
		qdisc_tree_reduce_backlog(sch, q->untold_packets, q->untold_bytes);
		q->untold_packets = 0;
		q->untold_bytes = 0;
	}
}

/* Nothing came: asks again, or sees to it that somebody asks when something is due. */
static noinline struct simnel_departure try_again(struct simnel_sched *q, u64 now,
						  struct simnel_call *call)
{
	struct simnel_departure departure = {};
	u32 turn;

	for (turn = 0; turn < TURNS; turn++) {
		u64 due = simnel_next_event(q->line);

		if (due == U64_MAX)
			return departure;
		if (due > now || turn == TURNS - 1) {
			qdisc_watchdog_schedule_ns(&q->watchdog, max(due, now));
			return departure;
		}
		departure = simnel_dequeue(q->line, now, call);
		if (departure.handle)
			break;
	}
	return departure;
}

static struct sk_buff *simnel_qdisc_dequeue(struct Qdisc *sch)
{
	struct simnel_sched *q = qdisc_priv(sch);
	struct simnel_call call = { .sch = sch };
	u32 packets = sch->q.qlen, bytes = sch->qstats.backlog;
	struct simnel_departure departure;
	struct sk_buff *skb;
	u64 now = ktime_get_ns();

	/* Also while nothing is queued: flows that are found empty are new ones from then on. */
	departure = simnel_dequeue(q->line, now, &call);
	if (unlikely(!departure.handle))
		departure = try_again(q, now, &call);
	packets -= sch->q.qlen;
	bytes -= sch->qstats.backlog;
	skb = (struct sk_buff *)(unsigned long)departure.handle;
	if (likely(skb)) {
		simnel_books_give(q, skb);
		sch->q.qlen--;
		sch->qstats.backlog -= qdisc_pkt_len(skb);
		if (unlikely(departure.changes))
			simnel_rewrite(skb, departure.changes);
		qdisc_bstats_update(sch, skb);
	}
	simnel_books_check(sch);
	if (unlikely(packets))
		tell_later(sch, packets, bytes);
	return skb;
}

static void simnel_qdisc_reset(struct Qdisc *sch)
{
	struct simnel_sched *q = qdisc_priv(sch);
	struct simnel_call call = { .sch = sch };

	if (q->line) {
		simnel_reset(q->line, &call);
		simnel_books_check(sch);
	}
	q->untold_packets = 0;
	q->untold_bytes = 0;
	qdisc_watchdog_cancel(&q->watchdog);
}

static void simnel_qdisc_destroy(struct Qdisc *sch)
{
	struct simnel_sched *q = qdisc_priv(sch);

	qdisc_watchdog_cancel(&q->watchdog);
	tcf_block_put(q->block);
	simnel_destroy(q->line);
	q->line = NULL;
}

/* Classes exist for filters and statistics only: nothing hangs below them. */
static struct Qdisc *class_leaf(struct Qdisc *sch, unsigned long class)
{
	return NULL;
}

static unsigned long class_find(struct Qdisc *sch, u32 id)
{
	return 0;
}

static unsigned long class_bind(struct Qdisc *sch, unsigned long parent, u32 id)
{
	return 0;
}

static void class_unbind(struct Qdisc *sch, unsigned long class)
{
}

static struct tcf_block *class_block(struct Qdisc *sch, unsigned long class,
				     struct netlink_ext_ack *extack)
{
	struct simnel_sched *q = qdisc_priv(sch);

	return class ? NULL : q->block;
}

static int class_dump(struct Qdisc *sch, unsigned long class, struct sk_buff *skb,
		      struct tcmsg *message)
{
	message->tcm_handle |= TC_H_MIN(class);
	return 0;
}

static const struct Qdisc_class_ops class_ops = {
	.leaf = class_leaf,
	.find = class_find,
	.bind_tcf = class_bind,
	.unbind_tcf = class_unbind,
	.tcf_block = class_block,
	.dump = class_dump,
	.dump_stats = simnel_class_dump_stats,
	.walk = simnel_class_walk,
};

#define NAMED(name)						\
	{							\
		.id = name,					\
		.cl_ops = &class_ops,				\
		.priv_size = sizeof(struct simnel_sched),	\
		.enqueue = simnel_qdisc_enqueue,		\
		.dequeue = simnel_qdisc_dequeue,		\
		.peek = qdisc_peek_dequeued,			\
		.init = simnel_qdisc_init,			\
		.reset = simnel_qdisc_reset,			\
		.destroy = simnel_qdisc_destroy,		\
		.change = simnel_qdisc_change,			\
		.dump = simnel_qdisc_dump,			\
		.dump_stats = simnel_qdisc_dump_stats,		\
		.owner = THIS_MODULE,				\
	}

/* Our own name first: it is always there. */
static struct Qdisc_ops names[] = {
	NAMED("simnel"), NAMED("cake"), NAMED("codel"), NAMED("dualpi2"), NAMED("fq_codel"),
	NAMED("fq_pie"), NAMED("pie"),	NAMED("red"),	NAMED("sfb"),	  NAMED("sfq"),
};
static bool is_registered[ARRAY_SIZE(names)];

static void unregister_all(void)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(names); i++)
		if (is_registered[i])
			unregister_qdisc(&names[i]);
}

/* Registers the name of `length` bytes at `name`. */
static int register_name(const char *name, size_t length)
{
	int error = -ENOENT;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(names); i++) {
		if (strlen(names[i].id) != length || strncmp(names[i].id, name, length))
			continue;
		if (is_registered[i])
			return 0;
		error = register_qdisc(&names[i]);
		is_registered[i] = !error;
	}
	if (error == -EEXIST)
		pr_err("simnel: aliases: the kernel has a `%.*s` of its own: rmmod sch_%.*s first\n",
		       (int)length, name, (int)length, name);
	else if (error)
		pr_err("simnel: aliases: `%.*s` is none of Linux's names: cake, codel, dualpi2, fq_codel, fq_pie, pie, red, sfb, sfq\n",
		       (int)length, name);
	return error;
}

static int __init simnel_module_init(void)
{
	const char *rest = aliases;
	int error = register_name(names[0].id, strlen(names[0].id));

	while (!error && *rest) {
		size_t length = strcspn(rest, ", \n");

		if (length)
			error = register_name(rest, length);
		rest += length;
		rest += !!*rest;
	}
	if (error)
		unregister_all();
	return error;
}

static void __exit simnel_module_exit(void)
{
	unregister_all();
}

module_init(simnel_module_init)
module_exit(simnel_module_exit)
MODULE_LICENSE("Dual MIT/GPL");
MODULE_DESCRIPTION("Simnel: queue management for home gateways");
#ifdef MODULE_ALIAS_NET_SCH
MODULE_ALIAS_NET_SCH("simnel");
#endif
MODULE_ALIAS("sch_simnel");
