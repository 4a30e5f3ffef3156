// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Queue disciplines of Simnel, as the kernel calls them. This side translates only: packets to
 * descriptors, netlink to settings, time to timers. What happens to packets is decided in Rust
 * (simnel.h).
 */
#include <linux/if_arp.h>
#include <linux/module.h>
#include <linux/prefetch.h>
#include <linux/version.h>
#if __has_include(<net/gso.h>)
#include <net/gso.h>
#endif

#include "shim.h"

static char *aliases = "";
module_param(aliases, charp, 0444);
MODULE_PARM_DESC(aliases, "Linux's names to answer to, if it has none of them: cake,fq_codel");

void simnel_host_dropped(void *context, u64 packet, u32 reason)
{
	struct sk_buff *skb = (struct sk_buff *)(unsigned long)packet;
	struct Qdisc *sch = context;
	struct simnel_sched *q = qdisc_priv(sch);
	u32 len = qdisc_pkt_len(skb);

	simnel_books_give(q, skb);
	sch->q.qlen--;
	sch->qstats.backlog -= len;
	if (q->to_free && q->arriving == skb) {
		q->arriving = NULL;
	} else {
		q->lost_packets++;
		q->lost_bytes += len;
	}
	if (reason == SIMNEL_RESET) {
		rtnl_kfree_skbs(skb, skb);
		return;
	}
	sch->qstats.drops++;
	if (q->to_free)
		__qdisc_drop(skb, q->to_free);
	else
		kfree_skb(skb);
}

/* Tells the parents of packets and bytes that they count, but that are not here any more. */
noinline void simnel_tell_parents(struct Qdisc *sch)
{
	struct simnel_sched *q = qdisc_priv(sch);
	u32 packets = q->lost_packets, bytes = q->lost_bytes;

	q->lost_packets = 0;
	q->lost_bytes = 0;
	qdisc_tree_reduce_backlog(sch, packets, bytes);
}

/* Sees whether the packet that the parent looked at has left: until then it counts as queued. */
static noinline void settle(struct Qdisc *sch)
{
	struct simnel_sched *q = qdisc_priv(sch);

	if (skb_queue_empty(&sch->gso_skb)) {
		q->lent = 0;
		simnel_lend(q->line, 0, 0, ktime_get_ns());
	}
}

/*
 * True if whoever enqueues here asks for a packet at once, under the same lock, as the kernel does
 * where a packet arrives at a device's discipline: nobody is sending, the device is ready, and no
 * packet that left waits to be sent again.
 */
static __always_inline bool is_asked_next(struct Qdisc *sch)
{
	const struct netdev_queue *queue = sch->dev_queue;

	return rcu_access_pointer(queue->qdisc) == sch && !qdisc_is_running(sch) &&
	       !netif_xmit_frozen_or_stopped(queue) && !(sch->gso_skb.qlen | sch->skb_bad_txq.qlen);
}

/* The time of an arrival, and of the dequeue that follows it at once: a look at the clock is dear. */
static __always_inline u64 time_of_arrival(struct Qdisc *sch)
{
	struct simnel_sched *q = qdisc_priv(sch);
	u64 now = ktime_get_ns();

	q->now = is_asked_next(sch) ? now : 0;
	return now;
}

/* The time of a dequeue. */
static __always_inline u64 time_of_departure(struct simnel_sched *q)
{
	u64 now = q->now;

	q->now = 0;
	if (!now)
		return ktime_get_ns();
	simnel_books_time(now);
	return now;
}

/* Describes what the kernel knows of any packet. */
static __always_inline void describe(struct simnel_packet *packet, const struct sk_buff *skb, u32 len)
{
	packet->handle = (unsigned long)skb;
	packet->len = len;
	packet->adj_len = len;
	packet->truesize = skb->truesize;
	packet->mark = skb->mark;
	packet->priority = skb->priority;
	packet->gso_size = 0;
	packet->gso_segs = 0;
}

/* Describes the rest of one that is not just linear IP. */
static __always_inline void describe_unusual(struct Qdisc *sch, struct sk_buff *skb,
					     struct simnel_unusual *unusual,
					     struct simnel_translation *translation)
{
	struct simnel_sched *q = qdisc_priv(sch);
	struct simnel_arrival *arrival = q->arrival;
	u32 offset = 0, wanted;

	if (skb->protocol == htons(ETH_P_IP) || skb->protocol == htons(ETH_P_IPV6)) {
		offset = skb_network_offset(skb);
		if (offset > skb_headlen(skb))
			offset = 0;
	} else {
		unusual->is_ethernet = skb->dev->type == ARPHRD_ETHER;
	}
	arrival->packet.network_offset = min_t(u32, offset, SIMNEL_FAR);
	arrival->start = skb->data + offset;
	arrival->captured = skb_headlen(skb) - offset;
	unusual->remaining = skb->len - offset;
	wanted = min_t(u32, SIMNEL_HEADERS, unusual->remaining);
	if (arrival->captured < wanted) {
		const u8 *start = skb_header_pointer(skb, offset, wanted, q->headers);

		if (start) {
			arrival->start = start;
			arrival->captured = wanted;
		}
	}
	if (q->wants & SIMNEL_WANTS_TRANSLATION && simnel_translate(skb, translation))
		unusual->translation = translation;
	if (skb_is_gso(skb)) {
		arrival->packet.gso_size = skb_shinfo(skb)->gso_size;
		arrival->packet.gso_segs = skb_shinfo(skb)->gso_segs;
	}
}

/* Describes any packet, for whoever asks the Rust side about it. */
void simnel_describe(struct Qdisc *sch, struct sk_buff *skb, struct simnel_unusual *unusual,
		     struct simnel_translation *translation)
{
	struct simnel_sched *q = qdisc_priv(sch);

	describe(&q->arrival->packet, skb, qdisc_pkt_len(skb));
	describe_unusual(sch, skb, unusual, translation);
}

/* Gives one packet that is not just linear IP to the Rust side, or one that finds another lent. */
static noinline void hand_over_unusual(struct Qdisc *sch, struct sk_buff *skb, u32 class, u64 now)
{
	struct simnel_sched *q = qdisc_priv(sch);
	struct simnel_translation translation SIMNEL_WRITTEN;
	struct simnel_unusual unusual = { .class = class };

	if (q->lent)
		settle(sch);
	describe_unusual(sch, skb, &unusual, &translation);
	simnel_enqueue(q->line, &unusual, now);
}

/* Gives one packet, or super-packet, to the Rust side. */
static __always_inline void hand_over(struct Qdisc *sch, struct sk_buff *skb, u32 class,
				      bool is_super, u64 now)
{
	struct simnel_sched *q = qdisc_priv(sch);
	struct simnel_arrival *arrival = q->arrival;
	struct simnel_packet *packet = &arrival->packet;
	u32 len = qdisc_pkt_len(skb), offset = skb_network_offset(skb);

	simnel_books_take(q, skb);
	sch->q.qlen++;
	sch->qstats.backlog += len;
	if (unlikely(q->asks < SIMNEL_TURNS)) {
		simnel_be_asked(sch);
		if (q->wants & SIMNEL_WANTS_REST)
			sch->flags &= ~TCQ_F_CAN_BYPASS;
	}
	q->arriving = skb;
	describe(packet, skb, len);
	if (unlikely((skb->protocol != htons(ETH_P_IP) && skb->protocol != htons(ETH_P_IPV6)) ||
		     skb_is_nonlinear(skb) || is_super || offset >= SIMNEL_FAR || offset > skb->len ||
		     class || q->wants & SIMNEL_WANTS_TRANSLATION || q->lent)) {
		hand_over_unusual(sch, skb, class, now);
		return;
	}
	packet->network_offset = offset;
	arrival->start = skb->data + offset;
	arrival->captured = skb->len - offset;
	simnel_enqueue(q->line, NULL, now);
}

/* A super-packet in pieces. */
static noinline int enqueue_split(struct sk_buff *skb, struct Qdisc *sch, u32 class,
				  struct sk_buff **to_free)
{
	struct simnel_sched *q = qdisc_priv(sch);
	struct sk_buff *segment, *next, *segments;
	u32 packets = 0, bytes = 0, len = qdisc_pkt_len(skb);
	u64 now;

	segments = skb_gso_segment(skb, netif_skb_features(skb) & ~NETIF_F_GSO_MASK);
	if (IS_ERR_OR_NULL(segments))
		return qdisc_drop(skb, sch, to_free);
	now = time_of_arrival(sch);
	q->to_free = to_free;
	skb_list_walk_safe(segments, segment, next) {
		skb_mark_not_on_list(segment);
		qdisc_skb_cb(segment)->pkt_len = segment->len;
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 18, 0)
		qdisc_skb_cb(segment)->pkt_segs = 1;
#endif
		hand_over(sch, segment, class, false, now);
		if (q->arriving) {
			packets++;
			bytes += segment->len;
		}
	}
	q->to_free = NULL;
	simnel_books_check(sch);
	consume_skb(skb);
	if (packets) {
		/* The parents will count one packet, as long as the whole. */
		q->lost_packets -= packets - 1;
		q->lost_bytes -= bytes - len;
	}
	if (q->lost_packets || q->lost_bytes)
		simnel_tell_parents(sch);
	return packets ? NET_XMIT_SUCCESS : NET_XMIT_DROP;
}

/* True if a class names one of the discipline's queues. */
static bool names_queue(const struct simnel_sched *q, u32 class)
{
	return TC_H_MIN(class) - 1 < q->named_queues;
}

/* Asks the filters for a class. Where they took the packet, it is gone, and false. */
noinline bool simnel_classify(struct sk_buff *skb, struct Qdisc *sch, struct tcf_proto *filters,
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
		if (verdict >= 0)
			*class = res.classid;
		if (!(q->wants & SIMNEL_WANTS_CHOICE))
			return true;
		if (verdict >= 0 && (!q->named_queues || names_queue(q, *class)))
			return true;
	}
	qdisc_qstats_drop(sch);
	__qdisc_drop(skb, to_free);
	return false;
}

static __always_inline int enqueue_whole(struct sk_buff *skb, struct Qdisc *sch, u32 class,
					 bool is_super, u64 now, struct sk_buff **to_free)
{
	struct simnel_sched *q = qdisc_priv(sch);

	q->to_free = to_free;
	hand_over(sch, skb, class, is_super, now);
	q->to_free = NULL;
	simnel_books_check(sch);
	if (unlikely(q->lost_packets))
		simnel_tell_parents(sch);
	return likely(q->arriving) ? NET_XMIT_SUCCESS : NET_XMIT_DROP;
}

/* A super-packet. To split it takes time: then its pieces come later than `now`. */
static noinline int enqueue_super(struct sk_buff *skb, struct Qdisc *sch, u32 class, u64 now,
				  struct sk_buff **to_free)
{
	struct simnel_sched *q = qdisc_priv(sch);

	if (q->wants & SIMNEL_WANTS_SPLIT)
		return enqueue_split(skb, sch, class, to_free);
	return enqueue_whole(skb, sch, class, true, now, to_free);
}

/* Where there are filters. */
static noinline int enqueue_filtered(struct sk_buff *skb, struct Qdisc *sch,
				    struct tcf_proto *filters, struct sk_buff **to_free)
{
	struct simnel_sched *q = qdisc_priv(sch);
	bool is_named = TC_H_MAJ(skb->priority) == sch->handle && names_queue(q, skb->priority);
	u32 class = 0;
	int result;
	u64 now;

	if (!is_named && !simnel_classify(skb, sch, filters, &class, to_free, &result))
		return result;
	now = time_of_arrival(sch);
	if (skb_is_gso(skb))
		return enqueue_super(skb, sch, class, now, to_free);
	return enqueue_whole(skb, sch, class, false, now, to_free);
}

static int simnel_qdisc_enqueue(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	struct simnel_sched *q = qdisc_priv(sch);
	struct tcf_proto *filters = rcu_dereference_bh(q->filters);
	u64 now;

	/* These come while the clock is read, which waits for earlier reads, but not for them. */
	prefetch(skb_network_header(skb));
	prefetch(skb_shinfo(skb));
	if (unlikely(filters))
		return enqueue_filtered(skb, sch, filters, to_free);
	now = time_of_arrival(sch);
	if (unlikely(skb_is_gso(skb)))
		return enqueue_super(skb, sch, 0, now, to_free);
	return enqueue_whole(skb, sch, 0, false, now, to_free);
}

/* Nothing came: asks again, or sees to it that somebody asks when something is due. */
static noinline const struct simnel_packet *try_again(struct Qdisc *sch, u64 now)
{
	struct simnel_sched *q = qdisc_priv(sch);
	u32 turn;

	for (turn = 0; turn < SIMNEL_TURNS; turn++) {
		const struct simnel_packet *packet;
		u64 due = simnel_next_event(q->line);

		if (due == U64_MAX)
			return NULL;
		if (due > now || turn == SIMNEL_TURNS - 1) {
			qdisc_watchdog_schedule_ns(&q->watchdog, max(due, now));
			return NULL;
		}
		packet = simnel_dequeue(q->line, now);
		if (packet)
			return packet;
	}
	return NULL;
}

/* A dequeue of a discipline that need not know of it: for each packet that goes past one is called. */
static struct sk_buff *have_none(struct Qdisc *sch)
{
	return NULL;
}

/*
 * A dequeue while nothing is queued. Some disciplines must know: of flows that are found empty they
 * take the next packet for a new one's. After so many calls all is found. Others can let packets
 * pass them by, once they have nothing in mind.
 */
static noinline void find_empty(struct Qdisc *sch)
{
	struct simnel_sched *q = qdisc_priv(sch);
	bool wants_to_know = q->wants & (SIMNEL_WANTS_EMPTY | SIMNEL_WANTS_REST);

	q->asks = wants_to_know ? q->asks - 1 : 0;
	if (!q->asks)
		sch->dequeue = have_none;
	if (q->wants & SIMNEL_WANTS_EMPTY)
		simnel_dequeue(q->line, time_of_departure(q));
	if (q->wants & SIMNEL_WANTS_REST && !rcu_access_pointer(q->filters) &&
	    simnel_is_at_rest(q->line))
		sch->flags |= TCQ_F_CAN_BYPASS;
}

/*
 * Counts how long the packet has waited. Apart, with a time of its own, and gives the packet back:
 * whoever comes by needs no register for that.
 */
static noinline const struct simnel_packet *look(struct simnel_sched *q,
						 const struct simnel_packet *packet)
{
	u64 now = ktime_get_ns();

	q->unseen = simnel_look(q->line, now - packet->enqueued, now);
	return packet;
}

/*
 * Tells the parents where no packet leaves. Of an empty discipline they would think in a dequeue
 * that it has no turn any more.
 */
static noinline void tell_parents_of_none(struct Qdisc *sch)
{
	sch->q.qlen++;
	simnel_tell_parents(sch);
	sch->q.qlen--;
}

static struct sk_buff *simnel_qdisc_dequeue(struct Qdisc *sch)
{
	struct simnel_sched *q = qdisc_priv(sch);
	const struct simnel_packet *packet;
	struct sk_buff *skb = NULL;
	u64 now;

	if (unlikely(!sch->q.qlen)) {
		find_empty(sch);
		return NULL;
	}
	now = time_of_departure(q);
	packet = simnel_dequeue(q->line, now);
	if (unlikely(!packet))
		packet = try_again(sch, now);
	if (likely(packet)) {
		u32 len;

		if (unlikely(!--q->unseen))
			packet = look(q, packet);
		/* The descriptor's: what lies in the packet itself is seldom in the cache by now. */
		len = packet->len;
		skb = (struct sk_buff *)(unsigned long)packet->handle;
		if (unlikely(len - 2 >= SIMNEL_MOST_BYTES - 2))
			len = qdisc_pkt_len(skb);
		/* While this one counts as queued. */
		if (unlikely(q->lost_packets))
			simnel_tell_parents(sch);
		simnel_books_give(q, skb);
		sch->q.qlen--;
		sch->qstats.backlog -= len;
		_bstats_update(&sch->bstats, len, packet->gso_segs ?: 1);
		if (unlikely(packet->flags & (SIMNEL_MARK | SIMNEL_WASH)))
			simnel_rewrite(skb, packet);
	} else if (unlikely(q->lost_packets)) {
		tell_parents_of_none(sch);
	}
	simnel_books_check(sch);
	return skb;
}

/*
 * The packet that comes next, which the parent looks at. Disciplines that decide as packets arrive
 * can show it. From others it is taken out, and counts as queued there until it leaves.
 */
static struct sk_buff *simnel_qdisc_peek(struct Qdisc *sch)
{
	struct simnel_sched *q = qdisc_priv(sch);
	struct sk_buff *skb = skb_peek(&sch->gso_skb);
	const struct simnel_packet *packet;

	if (q->below)
		return q->below->ops->peek(q->below);
	if (skb)
		return skb;
	if (q->lent)
		settle(sch);
	packet = simnel_peek(q->line);
	if (packet)
		return (struct sk_buff *)(unsigned long)packet->handle;
	skb = qdisc_peek_dequeued(sch);
	if (skb) {
		q->lent = qdisc_pkt_len(skb);
		simnel_lend(q->line, 1, q->lent, ktime_get_ns());
	}
	return skb;
}

static void simnel_qdisc_reset(struct Qdisc *sch)
{
	struct simnel_sched *q = qdisc_priv(sch);

	if (q->below)
		qdisc_reset(q->below);
	if (q->line) {
		simnel_reset(q->line);
		simnel_books_check(sch);
	}
	/* Whoever resets tells the parents of what was queued. */
	q->lost_packets = 0;
	q->lost_bytes = 0;
	qdisc_watchdog_cancel(&q->watchdog);
}

static void simnel_qdisc_destroy(struct Qdisc *sch)
{
	struct simnel_sched *q = qdisc_priv(sch);

	qdisc_watchdog_cancel(&q->watchdog);
	tcf_block_put(q->block);
	simnel_mq_forget(sch);
	qdisc_put(q->below);
	simnel_destroy(q->line);
	q->line = NULL;
}

/* Classes exist for filters and statistics only. Below those of red and sfb others can be hung (below.c). */
static struct Qdisc *class_leaf(struct Qdisc *sch, unsigned long class)
{
	return NULL;
}

static unsigned long class_find(struct Qdisc *sch, u32 id)
{
	return 0;
}

unsigned long simnel_class_bind(struct Qdisc *sch, unsigned long parent, u32 id)
{
	/* Filters must see each packet. */
	sch->flags &= ~TCQ_F_CAN_BYPASS;
	return 0;
}

void simnel_class_unbind(struct Qdisc *sch, unsigned long class)
{
}

struct tcf_block *simnel_class_block(struct Qdisc *sch, unsigned long class,
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
	.bind_tcf = simnel_class_bind,
	.unbind_tcf = simnel_class_unbind,
	.tcf_block = simnel_class_block,
	.dump = class_dump,
	.dump_stats = simnel_class_dump_stats,
	.walk = simnel_class_walk,
};

/* One of parallel queues: its root sets it up. */
static int simnel_queue_init(struct Qdisc *sch, struct nlattr *options,
			     struct netlink_ext_ack *extack)
{
	struct simnel_sched *q = qdisc_priv(sch);

	qdisc_watchdog_init(&q->watchdog, sch);
	simnel_books_open(q);
	return 0;
}

const struct Qdisc_ops simnel_queue_ops = {
	.id = "simnel",
	.priv_size = sizeof(struct simnel_sched),
	.enqueue = simnel_qdisc_enqueue,
	.dequeue = simnel_qdisc_dequeue,
	.peek = qdisc_peek_dequeued,
	.init = simnel_queue_init,
	.reset = simnel_qdisc_reset,
	.destroy = simnel_qdisc_destroy,
	.dump = simnel_qdisc_dump,
	.dump_stats = simnel_qdisc_dump_stats,
	.owner = THIS_MODULE,
};

#define NAMED(name, classes)					\
	{							\
		.id = name,					\
		.cl_ops = classes,				\
		.priv_size = sizeof(struct simnel_sched),	\
		.enqueue = simnel_qdisc_enqueue,		\
		.dequeue = simnel_qdisc_dequeue,		\
		.peek = simnel_qdisc_peek,			\
		.init = simnel_qdisc_init,			\
		.reset = simnel_qdisc_reset,			\
		.destroy = simnel_qdisc_destroy,		\
		.change = simnel_qdisc_change,			\
		.dump = simnel_qdisc_dump,			\
		.dump_stats = simnel_qdisc_dump_stats,		\
		.owner = THIS_MODULE,				\
	}

/*
 * Our own name first: it is always there. Linux's codel, pie and fq_pie have neither classes nor
 * filters.
 */
static struct Qdisc_ops names[] = {
	NAMED("simnel", &class_ops),
	NAMED("cake", &class_ops),
	NAMED("codel", NULL),
	NAMED("dualpi2", &class_ops),
	NAMED("fq_codel", &class_ops),
	NAMED("fq_pie", NULL),
	NAMED("pie", NULL),
	NAMED("red", &simnel_red_class_ops),
	NAMED("sfb", &simnel_sfb_class_ops),
	NAMED("sfq", &class_ops),
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
