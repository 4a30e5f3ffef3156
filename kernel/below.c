// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Another discipline below red or sfb, in place of their own queue, as in Linux. The Rust side decides
 * about packets as they arrive and is told what becomes of them; those that it lets pass are queued
 * below. While something hangs there, the discipline's functions for packets are those in this file.
 */
#include "shim.h"

static int enqueue(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	struct simnel_sched *q = qdisc_priv(sch);
	struct tcf_proto *filters = rcu_dereference_bh(q->filters);
	const struct simnel_packet *packet = &q->arrival->packet;
	struct simnel_translation translation SIMNEL_WRITTEN;
	struct simnel_unusual unusual = {};
	struct Qdisc *below = q->below;
	u32 len = qdisc_pkt_len(skb);
	u64 now = ktime_get_ns();
	int result;

	if (filters && !simnel_classify(skb, sch, filters, &unusual.class, to_free, &result))
		return result;
	simnel_describe(sch, skb, &unusual, &translation);
	if (!simnel_decide(q->line, &unusual, below->q.qlen, below->qstats.backlog, now)) {
		qdisc_drop(skb, sch, to_free);
		return NET_XMIT_CN;
	}
	if (packet->flags & SIMNEL_MARK)
		simnel_rewrite(skb, packet);
	result = qdisc_enqueue(skb, below, to_free);
	if (result == NET_XMIT_SUCCESS) {
		sch->q.qlen++;
		sch->qstats.backlog += len;
	} else if (net_xmit_drop_count(result)) {
		qdisc_qstats_drop(sch);
		simnel_refused(q->line, now);
	}
	return result;
}

static struct sk_buff *dequeue(struct Qdisc *sch)
{
	struct simnel_sched *q = qdisc_priv(sch);
	struct sk_buff *skb = qdisc_dequeue_peeked(q->below);

	if (!skb) {
		simnel_found_empty(q->line, ktime_get_ns());
		return NULL;
	}
	qdisc_bstats_update(sch, skb);
	qdisc_qstats_backlog_dec(sch, skb);
	sch->q.qlen--;
	simnel_left(q->line, q->below->q.qlen);
	return skb;
}

/* Packets go to `below` from now on, and what the discipline itself has queued is dropped. */
static void hang(struct Qdisc *sch, struct Qdisc *below)
{
	struct simnel_sched *q = qdisc_priv(sch);

	simnel_open(q->line);
	simnel_books_check(sch);
	sch->qstats.drops += q->lost_packets;
	simnel_tell_parents(sch);
	q->below = below;
	sch->enqueue = enqueue;
	sch->dequeue = dequeue;
	sch->flags &= ~TCQ_F_CAN_BYPASS;
}

/* Empties what hangs below, and counts that as dropped. */
static void empty(struct Qdisc *sch)
{
	struct simnel_sched *q = qdisc_priv(sch);

	qdisc_purge_queue(q->below);
	simnel_left(q->line, 0);
}

/*
 * The discipline has its own queue again, which a change of settings gives it. Under the lock; returns
 * what hung below, or NULL.
 */
struct Qdisc *simnel_unhang(struct Qdisc *sch)
{
	struct simnel_sched *q = qdisc_priv(sch);
	struct Qdisc *below = q->below;

	if (!below)
		return NULL;
	empty(sch);
	q->below = NULL;
	sch->enqueue = sch->ops->enqueue;
	sch->dequeue = sch->ops->dequeue;
	return below;
}

static int class_graft(struct Qdisc *sch, unsigned long class, struct Qdisc *new, struct Qdisc **old,
		       struct netlink_ext_ack *extack)
{
	struct simnel_sched *q = qdisc_priv(sch);

	/* Without another one everything is dropped. */
	if (!new)
		new = &noop_qdisc;
	sch_tree_lock(sch);
	*old = q->below;
	if (*old) {
		empty(sch);
		q->below = new;
	} else {
		hang(sch, new);
	}
	sch_tree_unlock(sch);
	return 0;
}

/* The queue of their own is like one that nobody made: it has no handle, and is not shown. */
static struct Qdisc *class_leaf(struct Qdisc *sch, unsigned long class)
{
	struct simnel_sched *q = qdisc_priv(sch);

	return q->below ? q->below : &noop_qdisc;
}

/* Any number is that of the only class. */
static unsigned long class_find(struct Qdisc *sch, u32 id)
{
	return 1;
}

static void class_walk(struct Qdisc *sch, struct qdisc_walker *walker)
{
	if (walker->stop)
		return;
	if (walker->count >= walker->skip && walker->fn(sch, 1, walker) < 0)
		walker->stop = 1;
	else
		walker->count++;
}

static int red_class_dump(struct Qdisc *sch, unsigned long class, struct sk_buff *skb,
			  struct tcmsg *message)
{
	message->tcm_handle |= TC_H_MIN(1);
	message->tcm_info = class_leaf(sch, class)->handle;
	return 0;
}

/* Linux's sfb does not show its class, nor lets it be changed. */
static int sfb_class_dump(struct Qdisc *sch, unsigned long class, struct sk_buff *skb,
			  struct tcmsg *message)
{
	return -ENOSYS;
}

/* Linux's red has no filters. */
const struct Qdisc_class_ops simnel_red_class_ops = {
	.graft = class_graft,
	.leaf = class_leaf,
	.find = class_find,
	.walk = class_walk,
	.dump = red_class_dump,
};

const struct Qdisc_class_ops simnel_sfb_class_ops = {
	.graft = class_graft,
	.leaf = class_leaf,
	.find = class_find,
	.walk = class_walk,
	.bind_tcf = simnel_class_bind,
	.unbind_tcf = simnel_class_unbind,
	.tcf_block = simnel_class_block,
	.dump = sfb_class_dump,
};
