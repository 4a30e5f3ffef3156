/* Linux's disciplines without Linux around them: makes one with no device and no netlink socket,
 * and passes packets through it. Compiled with the kernel's headers.
 *
 * What a discipline calls while packets pass is either its own code, the kernel's (trees, hashes,
 * the flow dissector), or one of the few functions below that stand for clock, memory and random
 * numbers. Nothing else is there: to call it would end the program at address 0. */
#include <linux/ip.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <linux/skbuff.h>
#include <linux/version.h>
#include <net/pkt_sched.h>
#include <net/sch_generic.h>

#include "bench.h"

/* As `simnel bench core` has them. */
#define STANDING 10
#define STEP_NS 100
#define LEN 1514

/* The clock stands still but for the benchmark's steps; timers never fire. */
static s64 now = 100000000000LL;
unsigned long volatile jiffies;

ktime_t ktime_get(void) { return now; }
u64 sched_clock(void) { return now; }
unsigned long __msecs_to_jiffies(const unsigned int ms) { return ms / 10; }
unsigned long __usecs_to_jiffies(const unsigned int us) { return us / 10000; }
unsigned int jiffies_to_usecs(const unsigned long j) { return j * 10000; }
void init_timer_key(struct timer_list *timer, void (*fire)(struct timer_list *), unsigned int flags,
		    const char *name, struct lock_class_key *key) { }
int mod_timer(struct timer_list *timer, unsigned long expires) { return 0; }
int timer_delete(struct timer_list *timer) { return 0; }
void qdisc_watchdog_init(struct qdisc_watchdog *watchdog, struct Qdisc *qdisc) { }
void qdisc_watchdog_schedule_range_ns(struct qdisc_watchdog *watchdog, u64 at, u64 slack) { }
void qdisc_watchdog_cancel(struct qdisc_watchdog *watchdog) { }

/* Random numbers. */
static u64 state = 1;

u32 get_random_u32(void)
{
	state = state * 6364136223846793005ULL + 1442695040888963407ULL;
	return state >> 32;
}
u16 get_random_u16(void) { return get_random_u32() >> 16; }
void get_random_bytes(void *to, size_t size)
{
	u8 *byte = to;

	while (size--)
		*byte++ = get_random_u32() >> 24;
}
bool __do_once_start(bool *done, unsigned long *flags) { return false; }

#include "common.h"

void do_trace_netlink_extack(const char *message) { bench_died(message); }

void qdisc_hash_add(struct Qdisc *qdisc, bool invisible) { }

static unsigned long dropped;

void qdisc_tree_reduce_backlog(struct Qdisc *qdisc, int packets, int bytes) { dropped += packets; }
void kfree_skb_reason(struct sk_buff *skb, enum skb_drop_reason reason) { dropped++; }
void rtnl_kfree_skbs(struct sk_buff *head, struct sk_buff *tail) { }

/* Settings, as netlink carries them. */
static struct {
	struct nlattr head;
	u8 body[2048];
} settings __aligned(8);

static void begin_settings(void)
{
	settings.head.nla_len = NLA_HDRLEN;
	settings.head.nla_type = TCA_OPTIONS | NLA_F_NESTED;
}

static void put(int type, const void *data, int size)
{
	struct nlattr *attribute = (void *)&settings + NLA_ALIGN(settings.head.nla_len);

	attribute->nla_type = type;
	attribute->nla_len = NLA_HDRLEN + size;
	memcpy(nla_data(attribute), data, size);
	settings.head.nla_len = NLA_ALIGN(settings.head.nla_len) + NLA_ALIGN(attribute->nla_len);
}

static void put_u32(int type, u32 value) { put(type, &value, sizeof(value)); }
static void put_u64(int type, u64 value) { put(type, &value, sizeof(value)); }

static struct net_device device;
static struct netdev_queue queue = { .dev = &device };

static struct Qdisc *make(const struct Qdisc_ops *ops, struct nlattr *options)
{
	struct Qdisc *qdisc = bench_zeroed(sizeof(*qdisc) + ops->priv_size);

	__skb_queue_head_init(&qdisc->gso_skb);
	__skb_queue_head_init(&qdisc->skb_bad_txq);
	qdisc->ops = ops;
	qdisc->enqueue = ops->enqueue;
	qdisc->dequeue = ops->dequeue;
	qdisc->dev_queue = &queue;
	qdisc->handle = 0x10000;
	refcount_set(&qdisc->refcnt, 1);
	if (ops->init && ops->init(qdisc, options, NULL))
		bench_died("the discipline refused its settings");
	return qdisc;
}

struct Qdisc *qdisc_create_dflt(struct netdev_queue *unused, const struct Qdisc_ops *ops,
				unsigned int parent, struct netlink_ext_ack *ack)
{
	return make(ops, NULL);
}

#define CLASS 0x10001
#define FAST 25000000000ULL /* bytes a second: 200 Gbit/s, so shapers are always ready */
#define MANY 20000

/* Adds class 1:1 with the settings at hand. */
static void add_class(struct Qdisc *qdisc, u32 parent)
{
	struct nlattr *table[TCA_MAX + 1] = { [TCA_OPTIONS] = &settings.head };
	unsigned long class = 0;

	if (qdisc->ops->cl_ops->change(qdisc, CLASS, parent, table, &class, NULL))
		bench_died("the discipline refused its class");
}

static struct Qdisc *make_htb(const struct Qdisc_ops *ops)
{
	struct tc_htb_glob glob = { .version = 3, .rate2quantum = 10 };
	struct tc_htb_opt class = { .buffer = 1000000 / 64, .cbuffer = 1000000 / 64,
				    .quantum = 60000 };
	struct Qdisc *qdisc;

	put(TCA_HTB_INIT, &glob, sizeof(glob));
	qdisc = make(ops, &settings.head);
	begin_settings();
	class.rate.linklayer = class.ceil.linklayer = TC_LINKLAYER_ETHERNET;
	class.rate.rate = class.ceil.rate = ~0u;
	put(TCA_HTB_PARMS, &class, sizeof(class));
	put_u64(TCA_HTB_RATE64, FAST);
	put_u64(TCA_HTB_CEIL64, FAST);
	add_class(qdisc, TC_H_ROOT);
	return qdisc;
}

static struct Qdisc *make_drr(const struct Qdisc_ops *ops)
{
	struct Qdisc *qdisc = make(ops, &settings.head);

	put_u32(TCA_DRR_QUANTUM, LEN);
	add_class(qdisc, 0);
	return qdisc;
}

static void put_red(void)
{
	static const u8 table[256];
	struct tc_red_qopt parms = { .limit = 400000000, .qth_min = 16000000, .qth_max = 60000000,
				     .Wlog = 5, .Plog = 25, .Scell_log = 10 };

	put(TCA_RED_PARMS, &parms, sizeof(parms));
	put(TCA_RED_STAB, table, sizeof(table));
	put_u32(TCA_RED_MAX_P, ~0u);
}

static void put_tbf(void)
{
	struct tc_tbf_qopt parms = { .limit = 400000000 };

	parms.rate.rate = ~0u;
	parms.rate.linklayer = parms.peakrate.linklayer = TC_LINKLAYER_ETHERNET;
	put(TCA_TBF_PARMS, &parms, sizeof(parms));
	put_u64(TCA_TBF_RATE64, FAST);
	put_u32(TCA_TBF_BURST, 1000000);
}

static void put_sfq(void)
{
	struct tc_sfq_qopt_v1 parms = {
		.v0 = { .limit = MANY, .flows = 2000, .divisor = 65536 }
	};

	/* No attribute: the options are the structure itself. */
	settings.head.nla_len = NLA_HDRLEN + sizeof(parms);
	memcpy(settings.body, &parms, sizeof(parms));
}

static void put_sfb(void)
{
	struct tc_sfb_qopt parms = { .rehash_interval = 600000, .warmup_time = 60000, .max = MANY,
				     .bin_size = MANY, .increment = 33554, .decrement = 3355,
				     .limit = MANY, .penalty_rate = 10, .penalty_burst = 20 };

	put(TCA_SFB_PARMS, &parms, sizeof(parms));
}

static struct Qdisc *build(const char *name)
{
	int is_shaped_cake = !strcmp(name, "cake-shaped");
	const struct Qdisc_ops *ops = find(is_shaped_cake ? "cake" : name);

	if (!ops)
		return NULL;
	begin_settings();
	if (ops == &pfifo_qdisc_ops)
		return make(ops, NULL);
	if (!strcmp(name, "htb"))
		return make_htb(ops);
	if (!strcmp(name, "drr"))
		return make_drr(ops);
	if (!strcmp(name, "codel"))
		put_u32(TCA_CODEL_LIMIT, MANY);
	if (!strcmp(name, "pie"))
		put_u32(TCA_PIE_LIMIT, MANY);
	if (!strcmp(name, "fq_codel"))
		put_u32(TCA_FQ_CODEL_LIMIT, MANY);
	if (!strcmp(name, "fq_pie"))
		put_u32(TCA_FQ_PIE_LIMIT, MANY);
	if (!strcmp(name, "red"))
		put_red();
	if (!strcmp(name, "tbf"))
		put_tbf();
	if (!strcmp(name, "sfq"))
		put_sfq();
	if (!strcmp(name, "sfb"))
		put_sfb();
	if (!strcmp(name, "cake")) {
		put_u32(TCA_CAKE_DIFFSERV_MODE, CAKE_DIFFSERV_BESTEFFORT);
		put_u32(TCA_CAKE_FLOW_MODE, CAKE_FLOW_FLOWS);
	}
	if (is_shaped_cake) {
		put_u64(TCA_CAKE_BASE_RATE64, FAST);
		put_u32(TCA_CAKE_DIFFSERV_MODE, CAKE_DIFFSERV_DIFFSERV4);
		put_u32(TCA_CAKE_FLOW_MODE, CAKE_FLOW_TRIPLE);
		/* Flows whose hosts share a place wait for longer; nothing is to be dropped. */
		put_u32(TCA_CAKE_TARGET, 50000);
		put_u32(TCA_CAKE_RTT, 1000000);
	}
	return make(ops, &settings.head);
}

static struct Qdisc *qdisc;
static struct sk_buff **first_of_flow;
static unsigned flows, next_flow;
static int is_backlog, is_hash_given;

/* A UDP packet of a flow between two hosts of its own. */
static struct sk_buff *packet(unsigned flow, u32 hash)
{
	const unsigned headroom = 64, space = 2048;
	struct sk_buff *skb = bench_zeroed(sizeof(*skb));
	__be16 *ports;
	struct iphdr *ip;

	skb->head = bench_zeroed(space + SKB_DATA_ALIGN(sizeof(struct skb_shared_info)));
	skb->data = skb->head + headroom;
	skb->len = skb->truesize = LEN;
	skb_set_tail_pointer(skb, LEN);
	skb->end = space;
	skb->dev = &device;
	skb->protocol = htons(ETH_P_IP);
	skb_reset_mac_header(skb);
	skb_set_network_header(skb, ETH_HLEN);
	skb_set_transport_header(skb, ETH_HLEN + sizeof(*ip));
	ip = ip_hdr(skb);
	ip->version = 4;
	ip->ihl = 5;
	ip->protocol = IPPROTO_UDP;
	ip->tot_len = htons(LEN - ETH_HLEN);
	ip->saddr = htonl(0x0a000000 + flow);
	ip->daddr = htonl(0x0a010000 + flow);
	ports = (__be16 *)(ip + 1);
	ports[0] = htons(1024);
	ports[1] = htons(443);
	skb->hash = hash;
	skb->l4_hash = is_hash_given;
	/* Names a class; to others it would name a queue. */
	if (qdisc->ops->cl_ops && qdisc->ops->cl_ops->change)
		skb->priority = CLASS;
	refcount_set(&skb->users, 1);
	qdisc_skb_cb(skb)->pkt_len = LEN;
	return skb;
}

static inline void enqueue(struct sk_buff *skb)
{
	struct sk_buff *to_free = NULL;

	if (!is_hash_given)
		skb_clear_hash(skb);
	if (qdisc->enqueue(skb, qdisc, &to_free) != NET_XMIT_SUCCESS)
		dropped++;
}

int bench_begin(const char *name, unsigned count, int backlog, int hash_given)
{
	unsigned flow, n;

	device.mtu = LEN;
	device.tx_queue_len = 1000 + count * STANDING;
	is_backlog = backlog;
	is_hash_given = hash_given;
	qdisc = build(name);
	if (!qdisc)
		return -1;
	flows = count;
	next_flow = 0;
	first_of_flow = bench_zeroed(sizeof(*first_of_flow) * flows);
	for (flow = 0; flow < flows; flow++)
		first_of_flow[flow] = packet(flow, get_random_u32());
	for (n = 0; is_backlog && n < STANDING; n++)
		for (flow = 0; flow < flows; flow++)
			enqueue(packet(flow, first_of_flow[flow]->hash));
	dropped = 0;
	return 0;
}

unsigned long bench_run(unsigned long pairs)
{
	unsigned long came_out = 0;

	while (pairs--) {
		struct sk_buff *skb;

		now += STEP_NS;
		if (is_backlog) {
			skb = qdisc->dequeue(qdisc);
			if (skb)
				enqueue(skb);
		} else {
			enqueue(first_of_flow[next_flow]);
			next_flow = next_flow + 1 == flows ? 0 : next_flow + 1;
			skb = qdisc->dequeue(qdisc);
		}
		came_out += skb != NULL;
	}
	return came_out;
}

unsigned long bench_dropped(void) { return dropped; }
