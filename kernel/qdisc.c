// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Queue disciplines of Simnel: the C side. It translates only: packets to descriptors, netlink to
 * settings, time to timers. What happens to packets is decided in Rust (simnel.h).
 */
#include <linux/if_arp.h>
#include <linux/module.h>
#include <linux/random.h>
#include <linux/skbuff.h>
#include <net/inet_ecn.h>
#include <net/netlink.h>
#include <net/pkt_sched.h>
#include <net/dsfield.h>
#if __has_include(<net/gso.h>)
#include <net/gso.h>
#endif

#include "simnel.h"

/* As many bytes of headers as the parser looks at. */
#define HEADERS 256
/* Calls in a row of a dequeue that has more work than one call may do. */
#define TURNS 16
/* Longest text of settings. */
#define WORDS 4096

enum {
	TCA_SIMNEL_UNSPEC,
	TCA_SIMNEL_WORDS,
	__TCA_SIMNEL_MAX,
};
#define TCA_SIMNEL_MAX (__TCA_SIMNEL_MAX - 1)

struct simnel_sched {
	struct simnel_line *line;
	u32 wants;
	/* Packets and bytes dropped in dequeue that the parents do not know of yet. */
	u32 untold_packets;
	u32 untold_bytes;
	struct qdisc_watchdog watchdog;
};

/* One call of the Rust side. */
struct call {
	struct Qdisc *sch;
	/* Where dropped packets go; NULL: they are freed at once. */
	struct sk_buff **to_free;
	/* The packet that arrives, until it is dropped. */
	struct sk_buff *arriving;
};

void simnel_host_dropped(void *context, u64 packet, u32 len, u32 reason)
{
	struct sk_buff *skb = (struct sk_buff *)(unsigned long)packet;
	struct call *call = context;
	struct Qdisc *sch = call->sch;

	sch->q.qlen--;
	sch->qstats.backlog -= qdisc_pkt_len(skb);
	if (call->arriving == skb)
		call->arriving = NULL;
	if (reason == SIMNEL_RESET) {
		rtnl_kfree_skbs(skb, skb);
		return;
	}
	sch->qstats.drops++;
	if (call->to_free)
		__qdisc_drop(skb, call->to_free);
	else
		kfree_skb(skb);
}

const u8 *simnel_host_headers(u64 packet, u8 *buffer, u32 size, u32 *length)
{
	const struct sk_buff *skb = (const struct sk_buff *)(unsigned long)packet;
	int offset = skb_network_offset(skb);
	u32 left = skb->len - offset;

	*length = min(size, left);
	return skb_header_pointer(skb, offset, *length, buffer);
}

/* The part of a packet that is parsed: all of its headers. */
static void describe(const struct sk_buff *skb, struct simnel_arrival *arrival, u8 *buffer)
{
	int offset = 0;
	u32 headlen = skb_headlen(skb);

	arrival->link_header = SIMNEL_ETHERNET;
	if (likely(skb->protocol == htons(ETH_P_IP) || skb->protocol == htons(ETH_P_IPV6))) {
		offset = skb_network_offset(skb);
		if (unlikely(offset < 0 || offset > headlen))
			offset = 0;
		arrival->link_header = offset;
	} else if (skb->dev && skb->dev->type != ARPHRD_ETHER) {
		arrival->link_header = 0;
	}
	arrival->start = skb->data + offset;
	arrival->captured = headlen - offset;
	arrival->remaining = skb->len - offset;
	if (unlikely(arrival->captured < HEADERS && skb_is_nonlinear(skb))) {
		u32 wanted = min_t(u32, HEADERS, arrival->remaining);
		const u8 *start = skb_header_pointer(skb, offset, wanted, buffer);

		if (start) {
			arrival->start = start;
			arrival->captured = wanted;
		}
	}
}

/* Gives one packet to the Rust side. */
static void hand_over(struct simnel_sched *q, struct sk_buff *skb, u64 now, struct call *call)
{
	struct Qdisc *sch = call->sch;
	struct simnel_arrival arrival;
	u8 buffer[HEADERS];

	describe(skb, &arrival, buffer);
	arrival.handle = (unsigned long)skb;
	arrival.translation = NULL;
	arrival.len = qdisc_pkt_len(skb);
	arrival.truesize = skb->truesize;
	arrival.mark = skb->mark;
	arrival.priority = skb->priority;
	arrival.gso_size = 0;
	arrival.gso_segs = 0;
	arrival.flow = 0;
	arrival.host = 0;
	if (skb_is_gso(skb)) {
		arrival.gso_size = skb_shinfo(skb)->gso_size;
		arrival.gso_segs = skb_shinfo(skb)->gso_segs;
	}
	sch->q.qlen++;
	sch->qstats.backlog += arrival.len;
	simnel_enqueue(q->line, &arrival, now, call);
}

/* Tells the parents that `packets` and `bytes` less came than they will count. */
static void tell(struct Qdisc *sch, int packets, int bytes)
{
	if (packets || bytes)
		qdisc_tree_reduce_backlog(sch, packets, bytes);
}

/* A super-packet in pieces. */
static noinline int enqueue_split(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	struct simnel_sched *q = qdisc_priv(sch);
	struct sk_buff *segment, *next, *segments;
	u32 packets = sch->q.qlen, bytes = sch->qstats.backlog, taken = 0;
	int len = qdisc_pkt_len(skb);
	u64 now = ktime_get_ns();

	segments = skb_gso_segment(skb, netif_skb_features(skb) & ~NETIF_F_GSO_MASK);
	if (IS_ERR_OR_NULL(segments))
		return qdisc_drop(skb, sch, to_free);
	skb_list_walk_safe(segments, segment, next) {
		struct call call = { .sch = sch, .to_free = to_free, .arriving = segment };

		skb_mark_not_on_list(segment);
		qdisc_skb_cb(segment)->pkt_len = segment->len;
		hand_over(q, segment, now, &call);
		taken += call.arriving != NULL;
	}
	consume_skb(skb);
	packets = sch->q.qlen - packets;
	bytes = sch->qstats.backlog - bytes;
	if (!taken) {
		tell(sch, -packets, -bytes);
		return NET_XMIT_DROP;
	}
	tell(sch, 1 - packets, len - bytes);
	return NET_XMIT_SUCCESS;
}

static int simnel_qdisc_enqueue(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	struct simnel_sched *q = qdisc_priv(sch);
	struct call call = { .sch = sch, .to_free = to_free, .arriving = skb };
	u32 packets = sch->q.qlen, bytes = sch->qstats.backlog, len;

	if (skb_is_gso(skb) && q->wants & SIMNEL_WANTS_SPLIT)
		return enqueue_split(skb, sch, to_free);
	len = qdisc_pkt_len(skb);
	hand_over(q, skb, ktime_get_ns(), &call);
	packets = sch->q.qlen - packets;
	bytes = sch->qstats.backlog - bytes;
	if (likely(call.arriving)) {
		tell(sch, 1 - packets, len - bytes);
		return NET_XMIT_SUCCESS;
	}
	tell(sch, -packets, -bytes);
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

/* Sets what the discipline has decided about the headers. */
static noinline void rewrite(struct sk_buff *skb, u64 changes)
{
	if (changes & SIMNEL_WASH) {
		int offset = skb_network_offset(skb);

		if (skb_protocol(skb, true) == htons(ETH_P_IP)) {
			if (!skb_try_make_writable(skb, offset + sizeof(struct iphdr)))
				ipv4_change_dsfield(ip_hdr(skb), INET_ECN_MASK, 0);
		} else if (!skb_try_make_writable(skb, offset + sizeof(struct ipv6hdr))) {
			ipv6_change_dsfield(ipv6_hdr(skb), INET_ECN_MASK, 0);
		}
	}
	if (changes & SIMNEL_MARK)
		INET_ECN_set_ce(skb);
}

static struct sk_buff *simnel_qdisc_dequeue(struct Qdisc *sch)
{
	struct simnel_sched *q = qdisc_priv(sch);
	struct call call = { .sch = sch };
	struct simnel_departure departure;
	struct sk_buff *skb;
	u32 packets = sch->q.qlen, bytes, turn;
	u64 now;

	if (!packets)
		return NULL;
	bytes = sch->qstats.backlog;
	now = ktime_get_ns();
	for (turn = 0; turn < TURNS; turn++) {
		u64 due;

		departure = simnel_dequeue(q->line, now, &call);
		if (likely(departure.handle))
			break;
		due = simnel_next_event(q->line);
		if (due == U64_MAX)
			break;
		if (due > now || turn == TURNS - 1) {
			qdisc_watchdog_schedule_ns(&q->watchdog, max(due, now));
			break;
		}
	}
	if (unlikely(packets != sch->q.qlen))
		tell_later(sch, packets - sch->q.qlen, bytes - sch->qstats.backlog);
	skb = (struct sk_buff *)(unsigned long)departure.handle;
	if (!skb)
		return NULL;
	sch->q.qlen--;
	sch->qstats.backlog -= qdisc_pkt_len(skb);
	if (unlikely(departure.changes))
		rewrite(skb, departure.changes);
	qdisc_bstats_update(sch, skb);
	return skb;
}

static void simnel_qdisc_reset(struct Qdisc *sch)
{
	struct simnel_sched *q = qdisc_priv(sch);
	struct call call = { .sch = sch };

	if (q->line)
		simnel_reset(q->line, &call);
	q->untold_packets = 0;
	q->untold_bytes = 0;
	qdisc_watchdog_cancel(&q->watchdog);
}

static const struct nla_policy policy[TCA_SIMNEL_MAX + 1] = {
	[TCA_SIMNEL_WORDS] = { .type = NLA_NUL_STRING, .len = WORDS },
};

/* The words of a request, or NULL. */
static const char *words_of(struct nlattr *options, struct netlink_ext_ack *extack)
{
	struct nlattr *attributes[TCA_SIMNEL_MAX + 1];
	int error;

	error = nla_parse_nested(attributes, TCA_SIMNEL_MAX, options, policy, extack);
	if (error)
		return ERR_PTR(error);
	if (!attributes[TCA_SIMNEL_WORDS])
		return NULL;
	return nla_data(attributes[TCA_SIMNEL_WORDS]);
}

/* Passes a refusal on. */
static int refuse(const struct simnel_message *message, struct netlink_ext_ack *extack)
{
#ifdef NL_SET_ERR_MSG_FMT_MOD
	NL_SET_ERR_MSG_FMT_MOD(extack, "%s", message->text);
#else
	/* The text must outlive the request; the next one may overwrite it. */
	static char last[SIMNEL_MESSAGE];

	strscpy(last, message->text, sizeof(last));
	if (extack)
		extack->_msg = last;
#endif
	return -message->errno_;
}

static int simnel_qdisc_init(struct Qdisc *sch, struct nlattr *options,
			     struct netlink_ext_ack *extack)
{
	struct simnel_sched *q = qdisc_priv(sch);
	struct net_device *dev = qdisc_dev(sch);
	struct simnel_surroundings surroundings = {
		.mtu = psched_mtu(dev),
		.tx_queue_len = dev->tx_queue_len,
		.handle = sch->handle,
		.now = ktime_get_ns(),
	};
	struct simnel_message message = {};
	const char *words = NULL;

	qdisc_watchdog_init(&q->watchdog, sch);
	get_random_bytes(&surroundings.seed, sizeof(surroundings.seed));
	get_random_bytes(surroundings.key, sizeof(surroundings.key));
	if (options)
		words = words_of(options, extack);
	if (IS_ERR(words))
		return PTR_ERR(words);
	if (!words)
		words = "cake";
	q->line = simnel_create(words, strlen(words), &surroundings, &message);
	if (!q->line)
		return refuse(&message, extack);
	q->wants = simnel_wants(q->line);
	return 0;
}

static int simnel_qdisc_change(struct Qdisc *sch, struct nlattr *options,
			       struct netlink_ext_ack *extack)
{
	struct simnel_sched *q = qdisc_priv(sch);
	struct call call = { .sch = sch };
	struct simnel_message message = {};
	struct simnel_change *change;
	const char *words;
	u32 packets, bytes;

	if (!options)
		return 0;
	words = words_of(options, extack);
	if (IS_ERR_OR_NULL(words))
		return PTR_ERR_OR_ZERO(words);
	change = simnel_prepare(q->line, words, strlen(words), &message);
	if (!change)
		return refuse(&message, extack);
	sch_tree_lock(sch);
	packets = sch->q.qlen;
	bytes = sch->qstats.backlog;
	simnel_apply(q->line, change, ktime_get_ns(), &call);
	tell(sch, packets - sch->q.qlen, bytes - sch->qstats.backlog);
	sch_tree_unlock(sch);
	simnel_forget(change);
	q->wants = simnel_wants(q->line);
	return 0;
}

static void simnel_qdisc_destroy(struct Qdisc *sch)
{
	struct simnel_sched *q = qdisc_priv(sch);

	qdisc_watchdog_cancel(&q->watchdog);
	simnel_destroy(q->line);
	q->line = NULL;
}

static int simnel_qdisc_dump(struct Qdisc *sch, struct sk_buff *skb)
{
	struct simnel_sched *q = qdisc_priv(sch);
	struct nlattr *options, *words;
	u32 length;
	u8 *text = kmalloc(WORDS, GFP_KERNEL);

	if (!text)
		return -ENOMEM;
	length = simnel_words(q->line, text, WORDS - 1);
	options = nla_nest_start(skb, TCA_OPTIONS);
	if (!options || length >= WORDS)
		goto too_long;
	words = nla_reserve(skb, TCA_SIMNEL_WORDS, length + 1);
	if (!words)
		goto too_long;
	memcpy(nla_data(words), text, length);
	((u8 *)nla_data(words))[length] = 0;
	kfree(text);
	return nla_nest_end(skb, options);

too_long:
	kfree(text);
	nla_nest_cancel(skb, options);
	return -EMSGSIZE;
}

static struct Qdisc_ops simnel_qdisc_ops __read_mostly = {
	.id = "simnel",
	.priv_size = sizeof(struct simnel_sched),
	.enqueue = simnel_qdisc_enqueue,
	.dequeue = simnel_qdisc_dequeue,
	.peek = qdisc_peek_dequeued,
	.init = simnel_qdisc_init,
	.reset = simnel_qdisc_reset,
	.destroy = simnel_qdisc_destroy,
	.change = simnel_qdisc_change,
	.dump = simnel_qdisc_dump,
	.owner = THIS_MODULE,
};

static int __init simnel_module_init(void)
{
	return register_qdisc(&simnel_qdisc_ops);
}

static void __exit simnel_module_exit(void)
{
	unregister_qdisc(&simnel_qdisc_ops);
}

module_init(simnel_module_init)
module_exit(simnel_module_exit)
MODULE_LICENSE("Dual MIT/GPL");
MODULE_DESCRIPTION("Simnel: queue management for home gateways");
MODULE_ALIAS("sch_simnel");
