// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * `mq`: a root for devices with several transmit queues, each with a discipline and a lock of its own,
 * which share one rate and are fair together. What they share is on the Rust side (crates/kernel,
 * parallel.rs); the root holds no packets, it makes, changes and shows the queues.
 */
#include <net/gen_stats.h>
#include <net/netlink.h>

#include "shim.h"

static u32 queues_of(struct Qdisc *sch)
{
	return qdisc_dev(sch)->num_tx_queues;
}

/*
 * The discipline of one transmit queue. The kernel shows a root before it attaches it, and once more
 * when its queues are gone: then it is NULL.
 */
static struct Qdisc *queue_at(struct Qdisc *sch, u32 n)
{
	struct simnel_sched *q = qdisc_priv(sch);
	struct Qdisc *queue;

	if (q->queues)
		return q->queues[n];
	queue = rtnl_dereference(netdev_get_tx_queue(qdisc_dev(sch), n)->qdisc_sleeping);
	return queue->ops == &simnel_queue_ops ? queue : NULL;
}

static struct simnel_line *line_of(struct Qdisc *queue)
{
	struct simnel_sched *q = qdisc_priv(queue);

	return q->line;
}

static void mq_attach(struct Qdisc *sch)
{
	struct simnel_sched *q = qdisc_priv(sch);
	struct net_device *dev = qdisc_dev(sch);
	u32 n;

	for (n = 0; n < queues_of(sch); n++) {
		struct Qdisc *queue = q->queues[n];
		struct Qdisc *old = dev_graft_qdisc(queue->dev_queue, queue);

		if (old)
			qdisc_put(old);
		if (n < dev->real_num_tx_queues)
			qdisc_hash_add(queue, false);
	}
	kfree(q->queues);
	q->queues = NULL;
}

/* Gives up queues that were never attached. */
void simnel_mq_forget(struct Qdisc *sch)
{
	struct simnel_sched *q = qdisc_priv(sch);
	u32 n;

	for (n = 0; q->queues && n < queues_of(sch); n++)
		if (q->queues[n])
			qdisc_put(q->queues[n]);
	kfree(q->queues);
	q->queues = NULL;
}

/* All queues take a change, or none does. */
static int mq_change(struct Qdisc *sch, struct nlattr *options, struct netlink_ext_ack *extack)
{
	u32 n, count = queues_of(sch);
	struct simnel_change **changes;
	struct simnel_message message = {};
	struct simnel_request asked;
	int error = 0;

	if (!options || !queue_at(sch, 0))
		return 0;
	changes = kcalloc(count, sizeof(*changes), GFP_KERNEL);
	if (!changes)
		return -ENOMEM;
	simnel_request(&asked, sch, options);
	for (n = 0; n < count && !error; n++) {
		changes[n] = simnel_prepare(line_of(queue_at(sch, n)), &asked, ktime_get_ns(), &message);
		if (!changes[n])
			error = simnel_refuse(&message, extack);
	}
	for (n = 0; n < count; n++) {
		if (!error)
			simnel_adopt(queue_at(sch, n), changes[n]);
		simnel_forget(changes[n]);
	}
	kfree(changes);
	return error;
}

/* The kernel's counters of all queues, and the settings, which are the same in each. */
static int mq_dump(struct Qdisc *sch, struct sk_buff *skb)
{
	u32 n;

	sch->q.qlen = 0;
	gnet_stats_basic_sync_init(&sch->bstats);
	memset(&sch->qstats, 0, sizeof(sch->qstats));
	for (n = 0; n < queues_of(sch); n++) {
		struct Qdisc *queue = queue_at(sch, n);

		if (!queue)
			return skb->len;
		sch_tree_lock(queue);
		gnet_stats_add_basic(&sch->bstats, NULL, &queue->bstats, false);
		gnet_stats_add_queue(&sch->qstats, NULL, &queue->qstats);
		sch->q.qlen += qdisc_qlen(queue);
		sch_tree_unlock(queue);
	}
	return simnel_qdisc_dump(queue_at(sch, 0), skb);
}

static int mq_dump_stats(struct Qdisc *sch, struct gnet_dump *dump)
{
	struct simnel_counters *counters = simnel_counters();
	u32 n, overlimits = 0;
	int error;

	for (n = 0; n < queues_of(sch); n++) {
		struct Qdisc *queue = queue_at(sch, n);

		if (!queue)
			break;
		simnel_count(queue, counters);
		overlimits += queue->qstats.overlimits;
	}
	sch->qstats.overlimits = overlimits;
	error = n ? simnel_put_statistics(queue_at(sch, 0), counters, dump) : 0;
	simnel_counters_free(counters);
	return error;
}

/* Class n is the n-th transmit queue, from 1, as in Linux's mq. */
static unsigned long mq_find(struct Qdisc *sch, u32 id)
{
	u32 n = TC_H_MIN(id);

	return n <= queues_of(sch) ? n : 0;
}

static struct Qdisc *mq_leaf(struct Qdisc *sch, unsigned long class)
{
	return class ? queue_at(sch, class - 1) : NULL;
}

static int mq_class_dump(struct Qdisc *sch, unsigned long class, struct sk_buff *skb,
			 struct tcmsg *message)
{
	message->tcm_parent = TC_H_ROOT;
	message->tcm_handle |= TC_H_MIN(class);
	return 0;
}

static int mq_class_dump_stats(struct Qdisc *sch, unsigned long class, struct gnet_dump *dump)
{
	struct Qdisc *queue = queue_at(sch, class - 1);
	struct simnel_counters *counters;

	if (!queue)
		return 0;
	counters = simnel_counters();
	simnel_count(queue, counters);
	simnel_counters_free(counters);
	if (gnet_stats_copy_basic(dump, NULL, &queue->bstats, true) < 0 ||
	    gnet_stats_copy_queue(dump, NULL, &queue->qstats, qdisc_qlen(queue)) < 0)
		return -1;
	return 0;
}

static void mq_walk(struct Qdisc *sch, struct qdisc_walker *walker)
{
	unsigned long class;

	for (class = 1; !walker->stop && class <= queues_of(sch); class++) {
		if (walker->count >= walker->skip && walker->fn(sch, class, walker) < 0)
			walker->stop = 1;
		walker->count++;
	}
}

static const struct Qdisc_class_ops mq_class_ops = {
	.leaf = mq_leaf,
	.find = mq_find,
	.walk = mq_walk,
	.dump = mq_class_dump,
	.dump_stats = mq_class_dump_stats,
};

static const struct Qdisc_ops mq_ops = {
	.id = "simnel",
	.cl_ops = &mq_class_ops,
	.priv_size = sizeof(struct simnel_sched),
	.destroy = simnel_mq_forget,
	.change = mq_change,
	.attach = mq_attach,
	.change_real_num_tx = mq_change_real_num_tx,
	.dump = mq_dump,
	.dump_stats = mq_dump_stats,
	.owner = THIS_MODULE,
};

/* Makes a root of parallel queues of a discipline that has just been made. */
int simnel_mq_init(struct Qdisc *sch, const struct simnel_request *asked,
		   const struct simnel_surroundings *surroundings, struct netlink_ext_ack *extack)
{
	struct simnel_sched *q = qdisc_priv(sch);
	u32 n, count = queues_of(sch);
	struct simnel_message message = {};
	struct simnel_lines *lines;

	if (sch->parent != TC_H_ROOT) {
		NL_SET_ERR_MSG(extack, "simnel: `mq` (word 1) stands at a device's root only");
		return -EOPNOTSUPP;
	}
	q->queues = kcalloc(count, sizeof(*q->queues), GFP_KERNEL);
	if (!q->queues)
		return -ENOMEM;
	lines = simnel_create_parallel(asked, surroundings, count, &message);
	if (!lines)
		return simnel_refuse(&message, extack);
	for (n = 0; n < count; n++) {
		struct netdev_queue *transmit = netdev_get_tx_queue(qdisc_dev(sch), n);
		u32 parent = TC_H_MAKE(TC_H_MAJ(sch->handle), TC_H_MIN(n + 1));
		struct Qdisc *queue;

		queue = qdisc_create_dflt(transmit, &simnel_queue_ops, parent, extack);
		if (!queue)
			break;
		q->queues[n] = queue;
		queue->flags |= TCQ_F_ONETXQUEUE | TCQ_F_NOPARENT;
		simnel_start(queue, simnel_take_line(lines, queue));
	}
	simnel_lines_free(lines);
	if (n < count)
		return -ENOMEM;
	sch->flags |= TCQ_F_MQROOT;
	/* Packets go to the queues; whatever came here all the same would be dropped. */
	sch->ops = &mq_ops;
	sch->enqueue = noop_qdisc.enqueue;
	sch->dequeue = noop_qdisc.dequeue;
	return 0;
}
