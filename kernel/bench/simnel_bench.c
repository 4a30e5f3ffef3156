// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Times a device's root discipline: pairs of enqueue and dequeue, from entry to exit, with
 * packets whose headers must be read anew each time. Loading it runs it and logs one line; it never
 * stays loaded.
 */
#include <linux/etherdevice.h>
#include <linux/ip.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <linux/udp.h>
#include <linux/vmalloc.h>
#include <net/ip.h>
#include <net/pkt_sched.h>

static char *dev = "d0";
static uint flows = 100, backlog, pairs = 200000, rounds = 5, size = 1514;
module_param(dev, charp, 0);
module_param(flows, uint, 0);
module_param(backlog, uint, 0);
module_param(pairs, uint, 0);
module_param(rounds, uint, 0);
module_param(size, uint, 0);
static bool busy;
module_param(busy, bool, 0);
MODULE_PARM_DESC(busy, "As if another processor were sending from the discipline");

/* Pairs with the lock held. */
#define CHUNK 1000

/* Packets that are not queued, the next one to be enqueued first. */
static struct sk_buff_head spare;

static struct sk_buff *make(struct net_device *device, u32 flow)
{
	struct sk_buff *skb = alloc_skb(LL_MAX_HEADER + size, GFP_KERNEL);
	struct ethhdr *eth;
	struct iphdr *ip;
	struct udphdr *udp;

	if (!skb)
		return NULL;
	skb_reserve(skb, LL_MAX_HEADER);
	skb_reset_mac_header(skb);
	eth = skb_put_zero(skb, sizeof(*eth));
	eth->h_proto = htons(ETH_P_IP);
	skb_set_network_header(skb, sizeof(*eth));
	ip = skb_put_zero(skb, sizeof(*ip));
	ip->version = 4;
	ip->ihl = 5;
	ip->ttl = 64;
	ip->protocol = IPPROTO_UDP;
	ip->tot_len = htons(size - sizeof(*eth));
	ip->saddr = htonl(0x0a000000 + flow);
	ip->daddr = htonl(0x0a010000 + flow);
	udp = skb_put_zero(skb, sizeof(*udp));
	udp->source = htons(1000 + flow);
	udp->dest = htons(9);
	udp->len = htons(size - sizeof(*eth) - sizeof(*ip));
	skb_put_zero(skb, size - skb->len);
	skb->protocol = htons(ETH_P_IP);
	skb->dev = device;
	return skb;
}

static struct sk_buff *next_spare(void)
{
	struct sk_buff *skb = __skb_dequeue(&spare);

	if (skb) {
		skb_clear_hash(skb);
		qdisc_skb_cb(skb)->pkt_len = skb->len;
	}
	return skb;
}

static bool enqueue(struct Qdisc *sch, struct sk_buff **to_free)
{
	struct sk_buff *skb = next_spare();

	return skb && sch->enqueue(skb, sch, to_free) == NET_XMIT_SUCCESS && !*to_free;
}

/* What a round costs without a discipline. */
static s64 empty_round(struct Qdisc *sch)
{
	u64 start = ktime_get_ns();
	u32 done, i;

	for (done = 0; done < pairs; done += CHUNK) {
		spin_lock_bh(qdisc_lock(sch));
		for (i = 0; i < CHUNK; i++)
			__skb_queue_tail(&spare, next_spare());
		spin_unlock_bh(qdisc_lock(sch));
		cond_resched();
	}
	return ktime_get_ns() - start;
}

/* One round; the nanoseconds that it took, or an error. */
static s64 round(struct Qdisc *sch)
{
	u64 start = ktime_get_ns(), vain = 0;
	u32 done = 0;

	while (done < pairs) {
		struct sk_buff *to_free = NULL, *skb;
		u32 i;

		spin_lock_bh(qdisc_lock(sch));
		for (i = 0; i < CHUNK; i++) {
			if (!enqueue(sch, &to_free)) {
				spin_unlock_bh(qdisc_lock(sch));
				kfree_skb_list(to_free);
				return -ENOBUFS;
			}
			do {
				skb = sch->dequeue(sch);
				vain += !skb;
			} while (!skb && vain < pairs);
			if (!skb) {
				spin_unlock_bh(qdisc_lock(sch));
				return -ETIME;
			}
			__skb_queue_tail(&spare, skb);
		}
		spin_unlock_bh(qdisc_lock(sch));
		done += CHUNK;
		cond_resched();
	}
	if (vain > pairs / 100)
		return -ETIME;
	return ktime_get_ns() - start;
}

static int __init bench_init(void)
{
	struct net_device *device = dev_get_by_name(&init_net, dev);
	struct sk_buff *to_free = NULL;
	s64 best = S64_MAX, least = S64_MAX, took;
	struct Qdisc *sch;
	u32 i;

	if (!device)
		return -ENODEV;
	__skb_queue_head_init(&spare);
	rtnl_lock();
	sch = rtnl_dereference(device->qdisc);
	if (!sch->enqueue) {
		rtnl_unlock();
		dev_put(device);
		pr_info("bench: %s has no discipline: error %d\n", dev, -ENOENT);
		return -ENOENT;
	}
	for (i = 0; i < max(flows, backlog) + backlog + 1; i++) {
		struct sk_buff *skb = make(device, i % flows);

		if (!skb)
			break;
		__skb_queue_tail(&spare, skb);
	}
	spin_lock_bh(qdisc_lock(sch));
	for (i = 0; i < backlog; i++)
		if (!enqueue(sch, &to_free))
			best = -ENOBUFS;
	spin_unlock_bh(qdisc_lock(sch));
	if (busy && !qdisc_run_begin(sch))
		best = -EBUSY;
	for (i = 0; i < rounds && best >= 0; i++) {
		took = round(sch);
		if (took < 0)
			best = took;
		if (best < 0)
			break;
		best = min(best, took);
		least = min(least, empty_round(sch));
	}
	if (busy && best != -EBUSY)
		qdisc_run_end(sch);
	if (best >= 0)
		best = max(best - least, 0LL);
	if (best >= 0)
		pr_info("bench: %s flows %u backlog %u: %llu ps a pair\n", sch->ops->id, flows,
			backlog, div_u64(best * 1000, roundup(pairs, CHUNK)));
	else
		pr_info("bench: %s flows %u backlog %u: error %lld\n", sch->ops->id, flows,
			backlog, best);
	spin_lock_bh(qdisc_lock(sch));
	qdisc_reset(sch);
	spin_unlock_bh(qdisc_lock(sch));
	rtnl_unlock();
	kfree_skb_list(to_free);
	__skb_queue_purge(&spare);
	dev_put(device);
	return -ECANCELED;
}

module_init(bench_init)
MODULE_LICENSE("Dual MIT/GPL");
MODULE_DESCRIPTION("Times queue disciplines");
