// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Replays a recording of Linux through the module in which this stands: the virtual device of the
 * recordings (conformance/golden/README.md), with socket buffers that have the recorded headers.
 *
 * What is written to /proc/simnel_replay is a plan: struct plan, then as many struct arrival. The
 * discipline that is made next has the plan's clock and seed. Opening the file to read it replays
 * the plan through the root discipline of the device `d0`, which must be down; what is read are
 * decisions in the form of the recordings, and then `# end`, or `# failed` and the reason.
 */
#include <linux/etherdevice.h>
#include <linux/ip.h>
#include <linux/math64.h>
#include <linux/netdevice.h>
#include <linux/proc_fs.h>
#include <linux/rtnetlink.h>
#include <linux/seq_file.h>
#include <linux/version.h>
#include <linux/vmalloc.h>
#include <net/dsfield.h>
#include <net/inet_ecn.h>
#include <net/ip.h>

#include "shim.h"

/* No time at all. */
#define NEVER U64_MAX
/* Calls in a row, at one time, that give no packet. */
#define FRUITLESS 1000
/* Bytes of a plan at most. */
#define PLAN_MAX (16u << 20)

/* All numbers are little-endian, as the machine's. */
struct plan {
	u64 seed;
	/* When the discipline is made, and until when the device runs. */
	u64 start;
	u64 end;
	/* Bits per second of the link; 0: the device takes packets at once. */
	u64 rate;
	u32 hz;
	u32 wheel;
	u32 arrivals;
	u32 unused;
};

struct arrival {
	u64 time;
	struct simnel_hashes hashes;
	u32 len;
	u32 truesize;
	u32 priority;
	/* Bytes of headers that follow, up to a multiple of eight bytes. */
	u32 headers;
	u8 bytes[];
};

enum fate { SENT, MARKED, DROPPED, DROPPED_AT_ENQUEUE, ACK_FILTERED };

struct event {
	u64 time;
	u64 place;
	u32 id;
	enum fate fate;
};

/* One at a time uses all that follows. */
static DEFINE_MUTEX(lock);

/* The plan as it was written. */
static u8 *written;
static size_t written_bytes;
static struct plan plan;

/* The replay: its packets, what became of them, and why it failed, if so. */
static const struct arrival **arrivals;
static struct event *events;
static u32 events_count;
static const char *failure;

/* The device. */
static struct Qdisc *sch;
static u64 now;
static u64 due = NEVER;
static u64 free_at = NEVER;
static u64 last_place;

/* Packets: that arrived, their bytes; that an enqueue gave back; that still exist. */
static u32 arrived;
static u32 queued_bytes;
static bool is_enqueueing;
static u32 *given_back;
static u32 given_back_count;
static atomic_t alive;

u64 replay_now(void)
{
	return now;
}

void replay_wake_at(struct qdisc_watchdog *watchdog, u64 time)
{
	due = time;
}

struct simnel_line *replay_create(const struct simnel_request *request,
				  const struct simnel_surroundings *surroundings,
				  struct simnel_message *message)
{
	struct simnel_surroundings recorded = *surroundings;

	recorded.seed = plan.seed;
	recorded.hz = plan.hz;
	recorded.wheel = plan.wheel;
	return simnel_create(request, &recorded, message);
}

void replay_enqueue(struct simnel_line *line, const struct simnel_unusual *unusual, u64 time)
{
	simnel_enqueue_hashed(line, unusual, &arrivals[arrived]->hashes, time);
}

const struct simnel_packet *replay_dequeue(struct simnel_line *line, u64 time)
{
	const struct simnel_packet *packet = simnel_dequeue(line, time);

	last_place = packet ? simnel_placement(line) : NEVER;
	return packet;
}

static void fail(const char *reason)
{
	if (!failure)
		failure = reason;
}

/* The number of a packet, where nothing of the kernel's is. */
static u32 id_of(const struct sk_buff *skb)
{
	return skb->tstamp;
}

/* A packet left the discipline. */
static void left(u32 id, enum fate fate)
{
	if (events_count == plan.arrivals) {
		fail("more packets left than came");
		return;
	}
	queued_bytes -= arrivals[id]->len;
	events[events_count++] = (struct event){ .time = now, .id = id, .fate = fate,
						 .place = last_place };
}

void simnel_host_dropped(void *context, u64 packet, u32 reason)
{
	u32 id = id_of((const struct sk_buff *)(unsigned long)packet);

	if (reason == SIMNEL_ACK_FILTER)
		left(id, ACK_FILTERED);
	else if (is_enqueueing)
		given_back[given_back_count++] = id;
	else if (reason != SIMNEL_RESET)
		left(id, DROPPED);
	shim_dropped(context, packet, reason);
}

static void freed(struct sk_buff *skb)
{
	atomic_dec(&alive);
}

/* Bytes of a packet that lie in one piece: of every third, the IP header and some of TCP's. */
static u32 linear_bytes(u32 id)
{
	const struct arrival *arrival = arrivals[id];
	bool is_ipv6 = (arrival->bytes[ETH_HLEN] >> 4) == 6;
	u32 network = ETH_HLEN + (is_ipv6 ? sizeof(struct ipv6hdr) : sizeof(struct iphdr));

	if (id % 3 || arrival->len > PAGE_SIZE)
		return arrival->len;
	return min(arrival->len, network + id % 24);
}

/* Appends a packet's bytes from `from` on, as a page of their own. */
static bool append_page(struct sk_buff *skb, const struct arrival *arrival, u32 from)
{
	struct page *page = alloc_page(GFP_KERNEL | __GFP_ZERO);

	if (!page)
		return false;
	if (from < arrival->headers)
		memcpy(page_address(page), arrival->bytes + from, arrival->headers - from);
	skb_add_rx_frag(skb, 0, page, 0, arrival->len - from, PAGE_SIZE);
	return true;
}

static struct sk_buff *make(struct net_device *device, u32 id)
{
	const struct arrival *arrival = arrivals[id];
	u32 linear = linear_bytes(id), headers = min(linear, arrival->headers);
	struct sk_buff *skb = alloc_skb(NET_SKB_PAD + linear, GFP_KERNEL);

	if (!skb)
		return NULL;
	atomic_inc(&alive);
	skb->destructor = freed;
	skb_reserve(skb, NET_SKB_PAD);
	skb_reset_mac_header(skb);
	skb_set_network_header(skb, ETH_HLEN);
	skb_put_data(skb, arrival->bytes, headers);
	skb_put_zero(skb, linear - headers);
	if (linear < arrival->len && !append_page(skb, arrival, linear)) {
		kfree_skb(skb);
		return NULL;
	}
	skb->protocol = eth_hdr(skb)->h_proto;
	skb->dev = device;
	skb->priority = arrival->priority;
	skb->truesize = arrival->truesize;
	skb->tstamp = id;
	qdisc_skb_cb(skb)->pkt_len = skb->len;
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 18, 0)
	qdisc_skb_cb(skb)->pkt_segs = 1;
#endif
	return skb;
}

/* Whether CE was set on a packet that is sent; all its other headers must be in order. */
static bool was_marked(struct sk_buff *skb)
{
	const struct arrival *arrival = arrivals[id_of(skb)];
	bool is_ipv4 = skb->protocol == htons(ETH_P_IP);
	u8 before, after;

	if (is_ipv4) {
		before = ipv4_get_dsfield((const struct iphdr *)(arrival->bytes + ETH_HLEN));
		after = ipv4_get_dsfield(ip_hdr(skb));
		if (ip_fast_csum(ip_hdr(skb), ip_hdr(skb)->ihl))
			fail("a packet was sent with a wrong checksum");
	} else {
		before = ipv6_get_dsfield((const struct ipv6hdr *)(arrival->bytes + ETH_HLEN));
		after = ipv6_get_dsfield(ipv6_hdr(skb));
	}
	if (skb->len != arrival->len)
		fail("a packet was sent with another length");
	return INET_ECN_is_ce(after) && !INET_ECN_is_ce(before);
}

/* Takes what the device can take now; says whether that was anything. */
static bool take(void)
{
	bool any = false;

	while (free_at == NEVER) {
		struct sk_buff *skb = sch->dequeue(sch);

		if (!skb)
			break;
		left(id_of(skb), was_marked(skb) ? MARKED : SENT);
		if (plan.rate)
			free_at = now + div64_u64(skb->len * 8 * NSEC_PER_SEC, plan.rate);
		consume_skb(skb);
		any = true;
	}
	return any;
}

/* Lets everything happen that is due up to and including `end`. */
static void run_until(u64 end)
{
	u32 fruitless = 0;

	while (!failure) {
		u64 next = free_at != NEVER ? free_at : due;
		u32 before = events_count;

		if (next == NEVER || next > end)
			return;
		if (next > now)
			fruitless = 0;
		now = max(now, next);
		free_at = NEVER;
		/* It fires once, and in vain while the link is busy. */
		if (due <= now)
			due = NEVER;
		if (take() || events_count > before)
			fruitless = 0;
		else if (++fruitless > FRUITLESS)
			fail("the watchdog fires over and over, but no packet comes");
	}
}

/* A packet arrives. */
static void arrive(struct sk_buff *skb)
{
	struct sk_buff *to_free = NULL;
	u32 i;

	last_place = NEVER;
	now = arrivals[arrived]->time;
	queued_bytes += arrivals[arrived]->len;
	is_enqueueing = true;
	sch->enqueue(skb, sch, &to_free);
	is_enqueueing = false;
	arrived++;
	for (i = 0; i < given_back_count; i++)
		left(given_back[i], DROPPED_AT_ENQUEUE);
	given_back_count = 0;
	if (to_free)
		kfree_skb_list(to_free);
	if (free_at == NEVER)
		take();
	if (sch->q.qlen != arrived - events_count || sch->qstats.backlog != queued_bytes ||
	    atomic_read(&alive) != sch->q.qlen)
		fail("the discipline's books and the packets that it holds differ");
}

/* The plan, once it is whole; false if it is none. */
static bool read_plan(void)
{
	size_t at = sizeof(plan);
	u32 i;

	for (i = 0; i < plan.arrivals; i++) {
		const struct arrival *arrival = (const struct arrival *)(written + at);

		if (at + sizeof(*arrival) > written_bytes)
			return false;
		at += sizeof(*arrival) + round_up(arrival->headers, 8);
		if (at > written_bytes || arrival->headers > arrival->len ||
		    arrival->headers < ETH_HLEN + sizeof(struct iphdr))
			return false;
		arrivals[i] = arrival;
	}
	return at == written_bytes;
}

static void forget_replay(void)
{
	kvfree(arrivals);
	kvfree(events);
	kvfree(given_back);
	arrivals = NULL;
	events = NULL;
	given_back = NULL;
	events_count = 0;
}

static void replay(struct net_device *device)
{
	sch = rtnl_dereference(device->qdisc);
	if (strcmp(sch->ops->id, "simnel")) {
		fail("the device has another discipline");
		return;
	}
	due = NEVER;
	free_at = NEVER;
	arrived = 0;
	queued_bytes = 0;
	given_back_count = 0;
	while (!failure && arrived < plan.arrivals) {
		struct sk_buff *skb = make(device, arrived);

		if (!skb) {
			fail("no memory for a packet");
			return;
		}
		spin_lock_bh(qdisc_lock(sch));
		run_until(arrivals[arrived]->time);
		arrive(skb);
		spin_unlock_bh(qdisc_lock(sch));
		cond_resched();
	}
	spin_lock_bh(qdisc_lock(sch));
	run_until(plan.end);
	spin_unlock_bh(qdisc_lock(sch));
}

static int replay_prepare(void)
{
	struct net_device *device;

	forget_replay();
	failure = NULL;
	arrivals = kvcalloc(plan.arrivals, sizeof(*arrivals), GFP_KERNEL);
	events = kvcalloc(plan.arrivals, sizeof(*events), GFP_KERNEL);
	given_back = kvcalloc(plan.arrivals, sizeof(*given_back), GFP_KERNEL);
	if (!arrivals || !events || !given_back)
		return -ENOMEM;
	if (!read_plan()) {
		fail("no plan was written");
		return 0;
	}
	device = dev_get_by_name(&init_net, "d0");
	if (!device)
		return -ENODEV;
	rtnl_lock();
	replay(device);
	rtnl_unlock();
	dev_put(device);
	return 0;
}

static void *line_start(struct seq_file *file, loff_t *at)
{
	return *at <= events_count ? at : NULL;
}

static void *line_next(struct seq_file *file, void *line, loff_t *at)
{
	++*at;
	return line_start(file, at);
}

static void line_stop(struct seq_file *file, void *line)
{
}

static int line_show(struct seq_file *file, void *line)
{
	static const char *const names[] = { "deq", "deq", "drop", "drop-enq", "ackfilt" };
	loff_t at = *(loff_t *)line;
	const struct event *event = &events[at];

	if (at == events_count) {
		if (failure)
			seq_printf(file, "# failed %s\n", failure);
		else
			seq_puts(file, "# end\n");
		return 0;
	}
	seq_printf(file, "%llu %s %u", event->time, names[event->fate], event->id);
	if (event->fate <= MARKED && event->place != NEVER)
		seq_printf(file, " tin=%u flow=%u", upper_32_bits(event->place),
			   lower_32_bits(event->place));
	seq_puts(file, event->fate == MARKED ? " CE\n" : "\n");
	return 0;
}

static const struct seq_operations lines = {
	.start = line_start,
	.next = line_next,
	.stop = line_stop,
	.show = line_show,
};

/* One opens the file at a time: to write a plan, or to replay it. */
static int file_open(struct inode *inode, struct file *file)
{
	int error = 0;

	if (!mutex_trylock(&lock))
		return -EBUSY;
	if (file->f_mode & FMODE_WRITE) {
		if (atomic_read(&alive))
			pr_err("simnel: replay: %d packets were lost\n", atomic_read(&alive));
		written_bytes = 0;
	} else {
		error = replay_prepare();
		if (!error)
			error = seq_open(file, &lines);
	}
	if (error)
		mutex_unlock(&lock);
	return error;
}

static ssize_t file_write(struct file *file, const char __user *from, size_t bytes, loff_t *at)
{
	if (bytes > PLAN_MAX - written_bytes)
		return -EFBIG;
	if (copy_from_user(written + written_bytes, from, bytes))
		return -EFAULT;
	written_bytes += bytes;
	if (written_bytes >= sizeof(plan)) {
		memcpy(&plan, written, sizeof(plan));
		now = plan.start;
	}
	return bytes;
}

static int file_release(struct inode *inode, struct file *file)
{
	int error = 0;

	if (!(file->f_mode & FMODE_WRITE))
		error = seq_release(inode, file);
	mutex_unlock(&lock);
	return error;
}

static const struct proc_ops file_ops = {
	.proc_open = file_open,
	.proc_read = seq_read,
	.proc_write = file_write,
	.proc_lseek = noop_llseek,
	.proc_release = file_release,
};

static int __init replay_init(void)
{
	int error = -ENOMEM;

	written = vmalloc(PLAN_MAX);
	if (!written)
		return error;
	if (proc_create("simnel_replay", 0600, NULL, &file_ops)) {
		error = shim_init();
		if (!error)
			return 0;
		remove_proc_entry("simnel_replay", NULL);
	}
	vfree(written);
	return error;
}

static void __exit replay_exit(void)
{
	remove_proc_entry("simnel_replay", NULL);
	shim_exit();
	if (atomic_read(&alive))
		pr_err("simnel: replay: %d packets were lost\n", atomic_read(&alive));
	forget_replay();
	vfree(written);
}

module_init(replay_init)
module_exit(replay_exit)
