/* Linux's disciplines on a virtual clock, behind a virtual device: each packet's fate, in the
 * format of the recordings (conformance/golden/README.md, which also says how clock, timers, device
 * and random numbers behave). Compiled with the kernel's headers.
 *
 * The disciplines, their hashes and the accounting between parent and child (sch_api.c,
 * sch_generic.c) are the kernel's own; what stands for the rest is here and in common.h. */
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/once.h>
#include <linux/rtnetlink.h>
#include <linux/skbuff.h>
#include <linux/tcp.h>
#include <linux/timer.h>
#include <linux/udp.h>
#include <linux/version.h>
#include <linux/workqueue.h>
#include <net/pkt_cls.h>
#include <net/pkt_sched.h>
#include <net/sch_generic.h>

#include "oracle.h"

#define NANOS 1000000000ULL
#define NEVER (~0ULL)

static struct settings given;
static u64 now;

/* Clock. Linux's begins at 5 minutes before the jiffies' 32 bits overflow. */
unsigned long volatile jiffies;

static u64 first_jiffy(void) { return (1ULL << 32) - 300 * given.hz; }
static void set_clock(u64 to)
{
	now = to;
	jiffies = now * given.hz / NANOS + first_jiffy();
}
/* When a jiffy begins. */
static u64 time_of(u64 jiffy) { return DIV_ROUND_UP((jiffy - first_jiffy()) * NANOS, given.hz); }

ktime_t ktime_get(void) { return now; }
u64 sched_clock(void) { return now; }
/* The disciplines are compiled for HZ = 1000; these round as the kernel's. */
unsigned long __msecs_to_jiffies(const unsigned int ms)
{
	return DIV_ROUND_UP((u64)ms * given.hz, 1000);
}
unsigned long __usecs_to_jiffies(const unsigned int us)
{
	return DIV_ROUND_UP((u64)us * given.hz, 1000000);
}
#if LINUX_VERSION_CODE < KERNEL_VERSION(7, 0, 0)
unsigned int jiffies_to_usecs(const unsigned long j) { return j * (1000000 / given.hz); }
unsigned int jiffies_to_msecs(const unsigned long j) { return j * (1000 / given.hz); }
#endif

/* Timers, in the order in which they were armed. */
#define TIMERS 64
static struct {
	struct timer_list *timer;
	u64 at, armed;
} timers[TIMERS];
static int timer_count;
static u64 arming;

#if LINUX_VERSION_CODE >= KERNEL_VERSION(7, 0, 0)
#define init_timer_key timer_init_key
#endif
void init_timer_key(struct timer_list *timer, void (*fire)(struct timer_list *), unsigned int flags,
		    const char *name, struct lock_class_key *key)
{
	timer->function = fire;
}

/* The kernel's timer wheel rounds up to its granule, 8 times as coarse at each level. */
static u64 rounded(u64 expires)
{
	u64 wait = expires - jiffies;
	unsigned level = 0;

	if (!given.wheel)
		return expires;
	while (level < 8 && wait >= 63ULL << (3 * level))
		level++;
	return ((expires + (1ULL << (3 * level))) >> (3 * level)) << (3 * level);
}

int timer_delete(struct timer_list *timer)
{
	int i;

	for (i = 0; i < timer_count; i++)
		if (timers[i].timer == timer) {
			timers[i].timer = NULL;
			return 1;
		}
	return 0;
}
int timer_delete_sync(struct timer_list *timer) { return timer_delete(timer); }

int mod_timer(struct timer_list *timer, unsigned long expires)
{
	int i, was = timer_delete(timer);

	for (i = 0; i < TIMERS; i++)
		if (!timers[i].timer) {
			timers[i].timer = timer;
			timers[i].at = max(time_of(rounded(expires)), now);
			timers[i].armed = arming++;
			timer_count = max(timer_count, i + 1);
			return was;
		}
	bench_died("too many timers");
	return 0;
}

static int first_timer(void)
{
	int i, first = -1;

	for (i = 0; i < timer_count; i++)
		if (timers[i].timer &&
		    (first < 0 || timers[i].at < timers[first].at ||
		     (timers[i].at == timers[first].at && timers[i].armed < timers[first].armed)))
			first = i;
	return first;
}

/* Linux's dualpi2 has one to the nanosecond. */
static u64 precise_at = NEVER;
#if LINUX_VERSION_CODE >= KERNEL_VERSION(7, 0, 0)
static struct hrtimer *precise;

void hrtimer_setup(struct hrtimer *timer, enum hrtimer_restart (*fire)(struct hrtimer *),
		   clockid_t id, enum hrtimer_mode mode)
{
	ACCESS_PRIVATE(timer, function) = fire;
	precise = timer;
}
void hrtimer_start_range_ns(struct hrtimer *timer, ktime_t at, u64 slack,
			    const enum hrtimer_mode mode)
{
	hrtimer_set_expires(timer, at);
	precise_at = max_t(u64, at, now);
}
int hrtimer_cancel(struct hrtimer *timer)
{
	precise_at = NEVER;
	return 0;
}
static void fire_precise(void)
{
	precise_at = NEVER;
	if (ACCESS_PRIVATE(precise, function)(precise) == HRTIMER_RESTART)
		precise_at = max_t(u64, hrtimer_get_expires(precise), now);
}
#else
static void fire_precise(void) { }
#endif

/* The watchdogs of shapers: one each, and all of them wake the device. */
static struct {
	struct qdisc_watchdog *watchdog;
	u64 at;
} watchdogs[TIMERS];
static int watchdog_count;

void qdisc_watchdog_init_clockid(struct qdisc_watchdog *watchdog, struct Qdisc *qdisc, clockid_t id)
{
	if (watchdog_count == TIMERS)
		bench_died("too many watchdogs");
	watchdog->qdisc = qdisc;
	watchdogs[watchdog_count].watchdog = watchdog;
	watchdogs[watchdog_count++].at = NEVER;
}
void qdisc_watchdog_init(struct qdisc_watchdog *watchdog, struct Qdisc *qdisc)
{
	qdisc_watchdog_init_clockid(watchdog, qdisc, 0);
}

static u64 *watchdog_time(struct qdisc_watchdog *watchdog)
{
	static u64 none;
	int i;

	for (i = 0; i < watchdog_count; i++)
		if (watchdogs[i].watchdog == watchdog)
			return &watchdogs[i].at;
	bench_died("a watchdog that was never made");
	return &none;
}
void qdisc_watchdog_schedule_range_ns(struct qdisc_watchdog *watchdog, u64 at, u64 slack)
{
	*watchdog_time(watchdog) = max(at, now);
}
void qdisc_watchdog_cancel(struct qdisc_watchdog *watchdog) { *watchdog_time(watchdog) = NEVER; }

/* Random numbers. */
static u64 state;
static bool is_keying;

static u64 step(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}
u32 get_random_u32(void) { return step() >> 32; }
u16 get_random_u16(void) { return step() >> 48; }
void get_random_bytes(void *to, size_t size)
{
	u8 *byte = to;
	u32 number;

	if (is_keying && size == 16) {
		memcpy(to, &given.key0, 8);
		memcpy(to + 8, &given.key1, 8);
		return;
	}
	for (; size; size -= min_t(size_t, size, 4), byte += 4) {
		number = get_random_u32();
		memcpy(byte, &number, min_t(size_t, size, 4));
	}
}
/* What is drawn once is the key of the flow hash. */
bool __do_once_start(bool *done, unsigned long *flags)
{
	is_keying = !*done;
	return is_keying;
}
void __do_once_done(bool *done, struct static_key_true *key, unsigned long *flags,
		    struct module *module)
{
	*done = true;
	is_keying = false;
}

#include "common.h"

void do_trace_netlink_extack(const char *message) { oracle_refused(message); }

/* Attributes that a discipline writes, one behind the other. */
static u8 written[8192];
static struct sk_buff message = { .head = written };

int nla_put(struct sk_buff *skb, int number, int size, const void *body)
{
	struct nlattr *head = (struct nlattr *)skb_tail_pointer(skb);

	if (skb->tail + nla_total_size(size) > sizeof written)
		bench_died("too many attributes");
	memset(head, 0, nla_total_size(size));
	head->nla_type = number;
	head->nla_len = nla_attr_size(size);
	memcpy(nla_data(head), body, size);
	skb->tail += nla_total_size(size);
	return 0;
}
int nla_put_64bit(struct sk_buff *skb, int number, int size, const void *body, int padding)
{
	return nla_put(skb, number, size, body);
}
int gnet_stats_copy_app(struct gnet_dump *dump, void *statistics, int size)
{
	return nla_put(dump->skb, TCA_STATS_APP, size, statistics);
}

int _printk(const char *format, ...) { return 0; }
int net_ratelimit(void) { return 0; }
int ___ratelimit(struct ratelimit_state *state, const char *where) { return 0; }
bool queue_work_on(int cpu, struct workqueue_struct *queue, struct work_struct *work)
{
	bench_died("work was queued: nobody does it here");
	return false;
}
struct workqueue_struct *system_wq;
/* Nothing is given back, and nobody estimates rates. */
void qdisc_put(struct Qdisc *qdisc) { }
void gen_kill_estimator(struct net_rate_estimator __rcu **estimator) { }
void __netif_schedule(struct Qdisc *qdisc) { }

/* Packets. */
#define HEADROOM 64
#define SPACE 320
struct packet {
	struct sk_buff skb;
	u64 id;
	u8 ecn;
	u8 room[SPACE + SKB_DATA_ALIGN(sizeof(struct skb_shared_info))];
};

static u8 *traffic_class(struct sk_buff *skb) { return skb_network_header(skb); }
static u8 ecn_of(struct sk_buff *skb)
{
	const u8 *head = traffic_class(skb);

	return skb->protocol == htons(ETH_P_IP) ? head[1] & 3 : head[1] >> 4 & 3;
}

static void gone(const char *how, struct sk_buff *skb)
{
	struct packet *packet = container_of(skb, struct packet, skb);

	oracle_event(now, how, packet->id, NULL, 0);
	oracle_free(packet);
}
static void all_gone(const char *how, struct sk_buff *list)
{
	while (list) {
		struct sk_buff *next = list->next;

		gone(how, list);
		list = next;
	}
}
#if LINUX_VERSION_CODE >= KERNEL_VERSION(7, 0, 0)
void sk_skb_reason_drop(const struct sock *sk, struct sk_buff *skb, enum skb_drop_reason reason)
{
	gone(" drop ", skb);
}
#elif LINUX_VERSION_CODE >= KERNEL_VERSION(6, 12, 0)
void sk_skb_reason_drop(struct sock *sk, struct sk_buff *skb, enum skb_drop_reason reason)
{
	gone(" drop ", skb);
}
#else
void kfree_skb_reason(struct sk_buff *skb, enum skb_drop_reason reason) { gone(" drop ", skb); }
#endif
void kfree_skb_list_reason(struct sk_buff *list, enum skb_drop_reason reason)
{
	all_gone(" drop ", list);
}
#if LINUX_VERSION_CODE >= KERNEL_VERSION(7, 0, 0)
/* No packet is a socket's, whose memory fq_codel does not count. */
void sock_wfree(struct sk_buff *skb) { }
void __sock_wfree(struct sk_buff *skb) { }
void tcp_wfree(struct sk_buff *skb) { }
#endif
/* All of a packet lies in one piece: what is asked for so lies behind its end. */
int skb_copy_bits(const struct sk_buff *skb, int at, void *to, int size) { return -EFAULT; }
void oracle_consumed(struct sk_buff *skb) { gone(" ackfilt ", skb); }
void rtnl_kfree_skbs(struct sk_buff *head, struct sk_buff *tail)
{
	if (!head || !tail)
		return;
	tail->next = NULL;
	all_gone(" drop ", head);
}

static struct net_device device = { .mtu = 1500, .hard_header_len = ETH_HLEN,
				    .tx_queue_len = 1000 };
static struct netdev_queue queue = { .dev = &device };
static struct Qdisc *root;
/* What was hung below the root's classes. */
#define LEAVES 64
static struct Qdisc *leaves[LEAVES];
static int leaf_count;

static struct Qdisc *make(const struct Qdisc_ops *ops, u32 parent, u32 handle,
			  struct nlattr *options)
{
	struct Qdisc *qdisc = bench_zeroed(sizeof(*qdisc) + ops->priv_size);
	int error;

	__skb_queue_head_init(&qdisc->gso_skb);
	__skb_queue_head_init(&qdisc->skb_bad_txq);
	qdisc->ops = ops;
	qdisc->flags = ops->static_flags;
	qdisc->enqueue = ops->enqueue;
	qdisc->dequeue = ops->dequeue;
	qdisc->dev_queue = &queue;
	qdisc->handle = handle;
	qdisc->parent = parent;
	refcount_set(&qdisc->refcnt, 1);
	if (!root) {
		root = qdisc;
		rcu_assign_pointer(device.qdisc, root);
		rcu_assign_pointer(queue.qdisc, root);
		queue.qdisc_sleeping = root;
	}
	error = ops->init ? ops->init(qdisc, options, NULL) : 0;
	if (error)
		oracle_refused(ops->id);
	return qdisc;
}

struct Qdisc *qdisc_create_dflt(struct netdev_queue *unused, const struct Qdisc_ops *ops,
				unsigned int parent, struct netlink_ext_ack *ack)
{
	return make(ops, parent, 0, NULL);
}

/* TCA_OPTIONS around a body. */
static struct nlattr *attribute(const void *body, unsigned size)
{
	struct nlattr *head = bench_zeroed(NLA_HDRLEN + NLA_ALIGN(size));

	head->nla_type = TCA_OPTIONS | NLA_F_NESTED;
	head->nla_len = NLA_HDRLEN + size;
	memcpy(nla_data(head), body, size);
	return head;
}

void oracle_begin(const struct settings *settings)
{
	given = *settings;
	state = given.seed;
	device.mtu = 1500;
	device.num_tx_queues = device.real_num_tx_queues = 1;
	device._tx = &queue;
	dev_net_set(&device, &init_net);
	set_clock(given.start);
}

void oracle_qdisc(unsigned parent, unsigned handle, const char *kind, const void *options,
		  unsigned size, int has_options)
{
	const struct Qdisc_ops *ops = find(kind);
	struct Qdisc *qdisc, *old = NULL;
	struct nlattr *body = has_options ? attribute(options, size) : NULL;
	unsigned long class;

	if (!ops)
		oracle_refused("no such discipline");
	if (!root) {
		make(ops, TC_H_ROOT, handle, body);
		return;
	}
	class = root->ops->cl_ops->find(root, parent);
	if (!class)
		oracle_refused("no such class");
	qdisc = make(ops, parent, handle, body);
	qdisc_hash_add(qdisc, false);
	if (root->ops->cl_ops->graft(root, class, qdisc, &old, NULL))
		oracle_refused("the class takes no discipline");
	if (leaf_count == LEAVES)
		bench_died("too many disciplines");
	leaves[leaf_count++] = qdisc;
}

void oracle_class(unsigned parent, unsigned id, const void *options, unsigned size)
{
	struct nlattr *table[TCA_MAX + 1] = { [TCA_OPTIONS] = attribute(options, size) };
	unsigned long class = root->ops->cl_ops->find(root, id);

	if (root->ops->cl_ops->change(root, id, parent, table, &class, NULL))
		oracle_refused("the class");
}

/* The device. */
static u64 busy_until = NEVER;
static u64 came, went;

void oracle_cake_place(struct Qdisc *qdisc, const struct sk_buff *skb, struct place *place);

void oracle_sfb_hashes(struct Qdisc *qdisc, struct sk_buff *skb, unsigned *first, unsigned *second);

static void sent(struct sk_buff *skb)
{
	struct packet *packet = container_of(skb, struct packet, skb);
	struct place place, *known = NULL;

	went++;
	if (!strcmp(root->ops->id, "cake")) {
		oracle_cake_place(root, skb, &place);
		known = &place;
	}
	oracle_event(now, " deq ", packet->id, known, packet->ecn != 3 && ecn_of(skb) == 3);
	if (given.link)
		busy_until = now + qdisc_pkt_len(skb) * 8ULL * NANOS / given.link;
	oracle_free(packet);
}

/* The last that was dropped is the first of the list. */
static struct sk_buff *turned(struct sk_buff *list)
{
	struct sk_buff *first = NULL;

	while (list) {
		struct sk_buff *next = list->next;

		list->next = first;
		first = list;
		list = next;
	}
	return first;
}

static struct sk_buff *dequeued(void)
{
	struct sk_buff *skb = root->dequeue(root);

#if LINUX_VERSION_CODE >= KERNEL_VERSION(7, 0, 0)
	/* What was dropped in it is kept until the lock is open. */
	all_gone(" drop ", turned(root->to_free));
	root->to_free = NULL;
#endif
	return skb;
}

static void take(void)
{
	struct sk_buff *skb;

	if (given.link) {
		if (busy_until != NEVER)
			return;
		skb = dequeued();
		if (skb)
			sent(skb);
		return;
	}
	while ((skb = dequeued()))
		sent(skb);
}

/* Timers first, then the link, then watchdogs. */
void oracle_run(unsigned long long until)
{
	for (;;) {
		int i, timer = first_timer(), dog = -1;
		u64 at_timer = timer < 0 ? NEVER : timers[timer].at, at_dog = NEVER, next;

		for (i = 0; i < watchdog_count; i++)
			if (watchdogs[i].at < at_dog)
				at_dog = watchdogs[dog = i].at;
		next = min(min(at_timer, precise_at), min(busy_until, at_dog));
		if (next > until)
			break;
		set_clock(next);
		if (at_timer == next) {
			struct timer_list *fires = timers[timer].timer;

			timers[timer].timer = NULL;
			fires->function(fires);
		} else if (precise_at == next) {
			fire_precise();
		} else if (busy_until == next) {
			busy_until = NEVER;
			take();
		} else {
			watchdogs[dog].at = NEVER;
			take();
		}
	}
	set_clock(until);
}

static __be16 *put_ip(struct packet *packet, const struct arrival *arrival)
{
	struct sk_buff *skb = &packet->skb;
	u8 tos = arrival->dscp << 2 | arrival->ecn;
	unsigned rest;

	if (arrival->is_ipv6) {
		struct ipv6hdr *ip = (void *)skb_network_header(skb);

		rest = arrival->len - ETH_HLEN - sizeof(*ip);
		skb->protocol = htons(ETH_P_IPV6);
		ip->version = 6;
		ip->priority = tos >> 4;
		ip->flow_lbl[0] = tos << 4;
		ip->payload_len = htons(rest);
		ip->nexthdr = arrival->proto;
		ip->hop_limit = 64;
		memcpy(&ip->saddr, arrival->source, 16);
		memcpy(&ip->daddr, arrival->destination, 16);
		return (__be16 *)(ip + 1);
	} else {
		struct iphdr *ip = (void *)skb_network_header(skb);

		skb->protocol = htons(ETH_P_IP);
		ip->version = 4;
		ip->ihl = 5;
		ip->tos = tos;
		ip->ttl = 64;
		ip->protocol = arrival->proto;
		ip->tot_len = htons(arrival->len - ETH_HLEN);
		memcpy(&ip->saddr, arrival->source, 4);
		memcpy(&ip->daddr, arrival->destination, 4);
		ip->check = ip_fast_csum((u8 *)ip, ip->ihl);
		return (__be16 *)(ip + 1);
	}
}

static u8 *put_word(u8 *at, u32 word)
{
	__be32 big = htonl(word);

	memcpy(at, &big, 4);
	return at + 4;
}

static void put_tcp(struct tcphdr *tcp, const struct arrival *arrival)
{
	u8 *option = (u8 *)(tcp + 1);
	int i;

	tcp->seq = htonl(arrival->seq);
	tcp->ack_seq = htonl(arrival->ack);
	tcp->window = htons(501);
	((u8 *)tcp)[13] = arrival->flags;
	if (arrival->has_timestamp) {
		option = put_word(option, 0x0101080a);
		option = put_word(option, arrival->tsval);
		option = put_word(option, arrival->tsecr);
	}
	if (arrival->sack_count) {
		option = put_word(option, 0x01010500 | (2 + 8 * arrival->sack_count));
		for (i = 0; i < arrival->sack_count; i++) {
			option = put_word(option, arrival->sack[i][0]);
			option = put_word(option, arrival->sack[i][1]);
		}
	}
	tcp->doff = (option - (u8 *)tcp) / 4;
}

static struct sk_buff *packet_of(const struct arrival *arrival)
{
	struct packet *packet = bench_zeroed(sizeof(*packet));
	struct sk_buff *skb = &packet->skb;
	__be16 *ports;

	packet->id = arrival->id;
	packet->ecn = arrival->ecn;
	skb->head = packet->room;
	skb->data = skb->head + HEADROOM;
	skb->len = arrival->len;
	skb->truesize = arrival->len <= 176 ? 768 : arrival->len <= 688 ? 1280 : 2304;
	skb_set_tail_pointer(skb, min_t(unsigned, arrival->len, SPACE - HEADROOM));
	skb->end = SPACE;
	skb->dev = &device;
	skb_reset_mac_header(skb);
	skb_set_network_header(skb, ETH_HLEN);
	ports = put_ip(packet, arrival);
	skb_set_transport_header(skb, (u8 *)ports - skb->data);
	skb->mac_len = ETH_HLEN;
	ports[0] = htons(arrival->sport);
	ports[1] = htons(arrival->dport);
	if (arrival->proto == IPPROTO_TCP)
		put_tcp((struct tcphdr *)ports, arrival);
	else
		ports[2] = htons(arrival->len - ((u8 *)ports - skb->data));
	skb->priority = arrival->class_id;
	refcount_set(&skb->users, 1);
	qdisc_skb_cb(skb)->pkt_len = arrival->len;
#if LINUX_VERSION_CODE >= KERNEL_VERSION(7, 0, 0)
	qdisc_skb_cb(skb)->pkt_segs = 1;
#endif
	return skb;
}

void oracle_arrive(const struct arrival *arrival)
{
	struct sk_buff *skb = packet_of(arrival), *to_free = NULL;
	int code;

	oracle_run(arrival->time);
	came++;
	if (arrival->is_new_flow) {
		oracle_print("# flow %s hash=%u", arrival->tuple, skb_get_hash(skb));
		skb_clear_hash(skb);
		if (!strcmp(root->ops->id, "sfb")) {
			unsigned first, second;

			oracle_sfb_hashes(root, skb, &first, &second);
			oracle_print(" h0=%08x h1=%08x", first, second);
		}
		oracle_print("\n");
	}
	code = root->enqueue(skb, root, &to_free);
	if (code)
		oracle_print("%llu enq-ret %llu %d\n", now, arrival->id, code);
	all_gone(" drop-enq ", turned(to_free));
	take();
}

void oracle_change(unsigned class, const void *options, unsigned size)
{
	struct Qdisc *qdisc = class ? NULL : root;
	int i;

	for (i = 0; i < leaf_count; i++)
		if (class && leaves[i]->parent == class)
			qdisc = leaves[i];
	if (!qdisc || !qdisc->ops->change ||
	    qdisc->ops->change(qdisc, attribute(options, size), NULL))
		oracle_refused("the change");
}

/* ` NAME=BYTES`: the body of the one attribute that was written. */
static void print_written(const char *name)
{
	unsigned i;

	if (!message.tail)
		return;
	oracle_print(" %s=", name);
	for (i = NLA_HDRLEN; i < message.tail; i++)
		oracle_print("%02x", written[i]);
	message.tail = 0;
}

static void print_statistics(struct Qdisc *qdisc)
{
	struct gnet_dump dump = { .skb = &message };

	oracle_print("%llu stats %x", now, qdisc == root ? 0 : TC_H_MIN(qdisc->parent));
	/* Some settle their counters in it, so it comes first. */
	if (qdisc->ops->dump)
		qdisc->ops->dump(qdisc, &message);
	print_written("options");
	if (qdisc->ops->dump_stats)
		qdisc->ops->dump_stats(qdisc, &dump);
	print_written("app");
	oracle_print(" packets=%llu bytes=%llu drops=%u overlimits=%u qlen=%u backlog=%u\n",
		     u64_stats_read(&qdisc->bstats.packets), u64_stats_read(&qdisc->bstats.bytes),
		     qdisc->qstats.drops, qdisc->qstats.overlimits, qdisc->q.qlen,
		     qdisc->qstats.backlog);
}

void oracle_look(void)
{
	int i;

	print_statistics(root);
	for (i = 0; i < leaf_count; i++)
		print_statistics(leaves[i]);
}

void oracle_reset(void) { qdisc_reset(root); }

void oracle_end(void)
{
	oracle_print("# total enq=%llu deq=%llu qlen=%u backlog=%u drops=%u overlimits=%u\n", came,
		     went, root->q.qlen, root->qstats.backlog, root->qstats.drops,
		     root->qstats.overlimits);
}
