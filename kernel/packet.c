// SPDX-License-Identifier: MIT OR GPL-2.0
/* Packets: what is read of them on their way in, and written on their way out. */
#include <linux/netfilter.h>
#include <net/dsfield.h>
#include <net/inet_ecn.h>
#include <net/netfilter/nf_conntrack_tuple.h>

#include "shim.h"

/*
 * Where the IP header begins. The descriptor tells: below PPPoE, or behind tags, the kernel's own
 * mark is elsewhere. SIMNEL_FAR stands for all from there on.
 */
static u32 network_offset(const struct sk_buff *skb, u32 told)
{
	return likely(told < SIMNEL_FAR) ? told : (u32)skb_network_offset(skb);
}

const u8 *simnel_host_headers(void *context, u64 packet, u32 told, u32 *length)
{
	struct Qdisc *sch = context;
	struct simnel_sched *q = qdisc_priv(sch);
	const struct sk_buff *skb = (const struct sk_buff *)(unsigned long)packet;
	u32 offset = network_offset(skb, told);

	if (offset > skb->len)
		return NULL;
	*length = min_t(u32, SIMNEL_HEADERS, skb->len - offset);
	return skb_header_pointer(skb, offset, *length, q->headers);
}

u32 simnel_host_keyed_hash(u64 packet, u64 first, u64 second)
{
	const siphash_key_t key = { { first, second } };

	return skb_get_hash_perturb((const struct sk_buff *)(unsigned long)packet, &key);
}

/*
 * The connection of an IPv4 packet as hosts behind address translation see it. A packet that came
 * in and was not looked at yet is found by its reply's addresses, so these are exchanged.
 */
noinline bool simnel_translate(const struct sk_buff *skb, struct simnel_translation *translation)
{
#if IS_ENABLED(CONFIG_NF_CONNTRACK)
	struct nf_conntrack_tuple tuple = {};
	bool is_reply = !skb_nfct(skb);
	const __be32 *source, *destination;
	__be16 ports[2];

	if (skb_protocol(skb, true) != htons(ETH_P_IP) || !nf_ct_get_tuple_skb(&tuple, skb))
		return false;
	source = is_reply ? &tuple.dst.u3.ip : &tuple.src.u3.ip;
	destination = is_reply ? &tuple.src.u3.ip : &tuple.dst.u3.ip;
	ports[0] = is_reply ? tuple.dst.u.all : tuple.src.u.all;
	ports[1] = is_reply ? tuple.src.u.all : tuple.dst.u.all;
	memcpy(translation->source, source, sizeof(*source));
	memcpy(translation->destination, destination, sizeof(*destination));
	memcpy(translation->ports, ports, sizeof(ports));
	if (tuple.dst.protonum != IPPROTO_TCP && tuple.dst.protonum != IPPROTO_UDP)
		memset(translation->ports, 0, sizeof(ports));
	translation->protocol = tuple.dst.protonum;
	translation->version = 4;
	return true;
#else
	return false;
#endif
}

static void rewrite_v4(struct iphdr *header, u8 changes)
{
	if (changes & SIMNEL_WASH)
		ipv4_change_dsfield(header, INET_ECN_MASK, 0);
	if (changes & SIMNEL_MARK)
		IP_ECN_set_ce(header);
}

/* This header has no sum of its own: that of the whole packet, if there is one, changes. */
static void rewrite_v6(struct sk_buff *skb, struct ipv6hdr *header, u8 changes)
{
	if (changes & SIMNEL_WASH) {
		__wsum before = csum_partial(header, sizeof(__be32), 0);

		ipv6_change_dsfield(header, INET_ECN_MASK, 0);
		if (skb->ip_summed == CHECKSUM_COMPLETE)
			skb->csum = csum_add(csum_sub(skb->csum, before),
					     csum_partial(header, sizeof(__be32), 0));
	}
	if (changes & SIMNEL_MARK)
		IP6_ECN_set_ce(skb, header);
}

/*
 * Sets in the headers what the discipline has decided. They may have changed since they were read:
 * what is no IP header of that version now stays.
 */
noinline void simnel_rewrite(struct sk_buff *skb, const struct simnel_packet *packet)
{
	u32 offset = network_offset(skb, packet->network_offset);
	bool is_v4 = packet->flags & SIMNEL_IPV4;
	u32 length = is_v4 ? sizeof(struct iphdr) : sizeof(struct ipv6hdr);
	u8 *header;

	if (offset > skb->len || skb_ensure_writable(skb, offset + length))
		return;
	header = skb->data + offset;
	if (is_v4 && *header >> 4 == 4)
		rewrite_v4((struct iphdr *)header, packet->flags);
	else if (!is_v4 && *header >> 4 == 6)
		rewrite_v6(skb, (struct ipv6hdr *)header, packet->flags);
}
