// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Debug builds: the packets that the Rust side holds, in a list, and whether all books agree with
 * it: the kernel's (qlen, backlog) and the discipline's own. What differs is told in the kernel's
 * log; the queue goes on.
 */
#include <linux/moduleparam.h>

#include "shim.h"

static unsigned long taken;
module_param(taken, ulong, 0444);
MODULE_PARM_DESC(taken, "Packets that the disciplines were given since the module was loaded");

/* Calls between two looks at all packets; their number is compared at each. */
#define CALLS 256

void simnel_books_open(struct simnel_sched *q)
{
	__skb_queue_head_init(&q->held);
}

void simnel_books_take(struct simnel_sched *q, struct sk_buff *skb)
{
	__skb_queue_tail(&q->held, skb);
	taken++;
}

void simnel_books_give(struct simnel_sched *q, struct sk_buff *skb)
{
	if (skb->next && skb->prev)
		__skb_unlink(skb, &q->held);
	else
		pr_err_ratelimited("simnel: books: a packet left that had not come\n");
}

/* The time of an arrival, which a dequeue takes for its own. */
void simnel_books_time(u64 now)
{
	u64 late = ktime_get_ns() - now;

	if (late > NSEC_PER_SEC)
		pr_err_ratelimited("simnel: books: a dequeue %llu ns after its time\n", late);
}

static u64 bytes_of(const struct sk_buff_head *list)
{
	const struct sk_buff *skb;
	u64 bytes = 0;

	skb_queue_walk(list, skb)
		bytes += qdisc_pkt_len(skb);
	return bytes;
}

/* Under the lock, between two calls. */
void simnel_books_check(struct Qdisc *sch)
{
	struct simnel_sched *q = qdisc_priv(sch);
	/* What was dequeued and is to be sent later counts as queued, but only for the kernel. */
	u32 later = sch->gso_skb.qlen + sch->skb_bad_txq.qlen;
	u32 held = q->held.qlen, own;
	u64 own_bytes, bytes;

	/* Those that wait below are counted there. */
	if (q->below)
		return;
	own = simnel_backlog(q->line, &own_bytes);
	if (own != held || sch->q.qlen != held + later)
		pr_err_ratelimited("simnel: books: %u packets, but %u counted and %u in qlen\n",
				   held, own, sch->q.qlen - later);
	if (++q->calls % CALLS)
		return;
	bytes = bytes_of(&q->held);
	later = bytes_of(&sch->gso_skb) + bytes_of(&sch->skb_bad_txq);
	if (own_bytes != bytes || sch->qstats.backlog != (u32)bytes + later)
		pr_err_ratelimited("simnel: books: %llu bytes, but %llu counted and %u in backlog\n",
				   bytes, own_bytes, sch->qstats.backlog - later);
}
