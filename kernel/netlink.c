// SPDX-License-Identifier: MIT OR GPL-2.0
/* Settings and statistics: between netlink and the Rust side, which reads and writes them. */
#include <linux/random.h>
#include <linux/vmalloc.h>
#include <net/netlink.h>

#include "shim.h"

/*
 * Room for settings, and for statistics. Both are in one message, which readers expect to be below
 * 32 KiB: longer settings are refused.
 */
#define SETTINGS_ROOM 18432
#define STATISTICS_ROOM 12288

/* What the kernel's own counters take in a message. */
#define OWN_COUNTERS 256

/*
 * Room for statistics that come before the kernel's counters. A notification is as long as it is:
 * without room it would not be sent. Of a dump, what has no room here comes in the next message.
 */
static u32 statistics_room(const struct sk_buff *skb)
{
	int room = skb_tailroom(skb) - OWN_COUNTERS;

	return skb->sk ? STATISTICS_ROOM : clamp(room, 0, STATISTICS_ROOM);
}

#ifndef NL_SET_ERR_MSG_FMT
/* Texts of refusals that are kept. */
#define REFUSALS 16
#endif

/* Passes a refusal on. */
int simnel_refuse(const struct simnel_message *message, struct netlink_ext_ack *extack)
{
#ifdef NL_SET_ERR_MSG_FMT
	/* Of longer text the kernel's log would tell. */
	NL_SET_ERR_MSG_FMT(extack, "%.*s", NETLINK_MAX_FMTMSG_LEN - 1, message->text);
#else
	/* The text must outlive the request, and others may be refused before it is read. */
	static char texts[REFUSALS][sizeof(message->text)];
	static atomic_t next = ATOMIC_INIT(0);
	char *text = texts[(u32)atomic_inc_return(&next) % REFUSALS];

	strscpy(text, message->text, sizeof(message->text));
	if (extack)
		extack->_msg = text;
#endif
	return -message->error;
}

void simnel_request(struct simnel_request *to, struct Qdisc *sch, struct nlattr *options)
{
	to->kind = sch->ops->id;
	to->kind_length = strlen(sch->ops->id);
	to->options = options ? nla_data(options) : NULL;
	to->length = options ? nla_len(options) : 0;
	to->is_nested = options && options->nla_type & NLA_F_NESTED;
	to->mtu = psched_mtu(qdisc_dev(sch));
	to->tx_queue_len = qdisc_dev(sch)->tx_queue_len;
}

/* Does what the settings want of this side. */
static void follow_settings(struct Qdisc *sch)
{
	struct simnel_sched *q = qdisc_priv(sch);

	q->wants = simnel_wants(q->line);
	q->named_queues = simnel_queues(q->line);
	simnel_be_asked(sch);
	if (q->wants & SIMNEL_WANTS_BYPASS && !rcu_access_pointer(q->filters))
		sch->flags |= TCQ_F_CAN_BYPASS;
	else
		sch->flags &= ~TCQ_F_CAN_BYPASS;
}

/* Packets go to `line` from now on. */
void simnel_start(struct Qdisc *sch, struct simnel_line *line)
{
	struct simnel_sched *q = qdisc_priv(sch);

	q->line = line;
	q->arrival = simnel_arrival(line);
	q->unseen = 1;
	follow_settings(sch);
}

int simnel_qdisc_init(struct Qdisc *sch, struct nlattr *options, struct netlink_ext_ack *extack)
{
	struct simnel_sched *q = qdisc_priv(sch);
	struct simnel_surroundings surroundings = {
		.context = sch,
		.handle = sch->handle,
		.now = ktime_get_ns(),
	};
	struct simnel_message message = {};
	struct simnel_request asked;
	struct simnel_line *line;

	qdisc_watchdog_init(&q->watchdog, sch);
	simnel_books_open(q);
	get_random_bytes(&surroundings.seed, sizeof(surroundings.seed));
	get_random_bytes(surroundings.key, sizeof(surroundings.key));
	simnel_request(&asked, sch, options);
	if (simnel_is_parallel(&asked))
		return simnel_mq_init(sch, &asked, &surroundings, extack);
	line = simnel_create(&asked, &surroundings, &message);
	if (!line)
		return simnel_refuse(&message, extack);
	simnel_start(sch, line);
	return tcf_block_get(&q->block, &q->filters, sch, extack);
}

/* Puts a change in place, of which some is left to be forgotten. */
void simnel_adopt(struct Qdisc *sch, struct simnel_change *change)
{
	struct simnel_sched *q = qdisc_priv(sch);
	struct Qdisc *below;

	sch_tree_lock(sch);
	below = simnel_unhang(sch);
	simnel_apply(q->line, change, ktime_get_ns());
	simnel_inherit(q->line, change);
	if (q->lent)
		simnel_lend(q->line, 1, q->lent, ktime_get_ns());
	follow_settings(sch);
	simnel_books_check(sch);
	simnel_tell_parents(sch);
	sch_tree_unlock(sch);
	qdisc_put(below);
}

int simnel_qdisc_change(struct Qdisc *sch, struct nlattr *options, struct netlink_ext_ack *extack)
{
	struct simnel_sched *q = qdisc_priv(sch);
	struct simnel_message message = {};
	struct simnel_change *change;
	struct simnel_request asked;

	if (!options)
		return 0;
	simnel_request(&asked, sch, options);
	change = simnel_prepare(q->line, &asked, ktime_get_ns(), &message);
	if (!change)
		return simnel_refuse(&message, extack);
	simnel_adopt(sch, change);
	simnel_forget(change);
	return 0;
}

int simnel_qdisc_dump(struct Qdisc *sch, struct sk_buff *skb)
{
	struct simnel_sched *q = qdisc_priv(sch);
	u8 *room = kvmalloc(SETTINGS_ROOM, GFP_KERNEL);
	int error = -EMSGSIZE;
	u32 length;

	if (!room)
		return -ENOMEM;
	length = simnel_options(q->line, room, SETTINGS_ROOM);
	if (length <= SETTINGS_ROOM)
		error = nla_put(skb, TCA_OPTIONS, length, room);
	kvfree(room);
	return error ? error : skb->len;
}

/* Writes counters of `sch`, or of all parallel queues of which it is one. */
int simnel_put_statistics(struct Qdisc *sch, const struct simnel_counters *counters,
			  struct gnet_dump *dump)
{
	struct simnel_sched *q = qdisc_priv(sch);
	u32 length, most = statistics_room(dump->skb);
	u8 *room = kvmalloc(STATISTICS_ROOM, GFP_KERNEL);
	int error = -1;

	if (!room)
		return -1;
	length = simnel_statistics(q->line, counters, room, most);
	if (!length)
		error = 0;
	else if (length > most)
		error = -1;
	else if (q->wants & SIMNEL_WANTS_NEST)
		error = nla_put(dump->skb, TCA_STATS_APP, length, room) ? -1 : 0;
	else
		error = gnet_stats_copy_app(dump, room, length);
	kvfree(room);
	return error;
}

/* Reads the counters of `sch`; the one among the kernel's own that only the discipline knows, too. */
void simnel_count(struct Qdisc *sch, struct simnel_counters *counters)
{
	struct simnel_sched *q = qdisc_priv(sch);

	sch_tree_lock(sch);
	sch->qstats.overlimits = simnel_read(q->line, counters);
	sch_tree_unlock(sch);
}

int simnel_qdisc_dump_stats(struct Qdisc *sch, struct gnet_dump *dump)
{
	struct simnel_counters *counters = simnel_counters();
	int error;

	simnel_count(sch, counters);
	error = simnel_put_statistics(sch, counters, dump);
	simnel_counters_free(counters);
	return error;
}

/* One of the queues, of which class 1 is the first; false if there are not so many. */
static bool read_class(struct Qdisc *sch, unsigned long class, struct simnel_class *shown)
{
	struct simnel_sched *q = qdisc_priv(sch);
	u32 found;

	sch_tree_lock(sch);
	found = simnel_class(q->line, class - 1, ktime_get_ns(), shown);
	sch_tree_unlock(sch);
	return found;
}

int simnel_class_dump_stats(struct Qdisc *sch, unsigned long class, struct gnet_dump *dump)
{
	struct simnel_sched *q = qdisc_priv(sch);
	struct gnet_stats_queue queue = {};
	struct simnel_class shown;

	if (!read_class(sch, class, &shown))
		return 0;
	queue.backlog = shown.bytes;
	queue.qlen = shown.packets;
	if (gnet_stats_copy_queue(dump, NULL, &queue, queue.qlen) < 0)
		return -1;
	if (!shown.length)
		return 0;
	if (q->wants & SIMNEL_WANTS_NEST)
		return nla_put(dump->skb, TCA_STATS_APP, shown.length, shown.statistics) ? -1 : 0;
	return gnet_stats_copy_app(dump, shown.statistics, shown.length);
}

void simnel_class_walk(struct Qdisc *sch, struct qdisc_walker *walker)
{
	struct simnel_class shown;
	unsigned long class;

	for (class = 1; !walker->stop && read_class(sch, class, &shown); class++) {
		if (shown.is_used && walker->count >= walker->skip &&
		    walker->fn(sch, class, walker) < 0) {
			walker->stop = 1;
			return;
		}
		walker->count++;
	}
}
