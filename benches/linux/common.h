/* What the benchmark and the oracle both put in the place of the kernel around a discipline:
 * memory, locks, netlink's attributes, disciplines by name. Clock, timers, random numbers and
 * packets are each program's own. Included by kernel.c and oracle.c, after the kernel's headers. */

/* Memory. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 12, 0)
/* The functions below macros that count by place. */
kmem_buckets kmalloc_caches[NR_KMALLOC_TYPES];

void *__kmalloc_noprof(size_t size, gfp_t flags) { return bench_zeroed(size); }
void *__kmalloc_large_noprof(size_t size, gfp_t flags) { return bench_zeroed(size); }
void *__kmalloc_node_noprof(DECL_BUCKET_PARAMS(size, buckets), gfp_t flags, int node)
{
	return bench_zeroed(size);
}
void *__kmalloc_cache_noprof(struct kmem_cache *s, gfp_t flags, size_t size)
{
	return bench_zeroed(size);
}
#if LINUX_VERSION_CODE >= KERNEL_VERSION(7, 0, 0)
void *__kvmalloc_node_noprof(DECL_BUCKET_PARAMS(size, buckets), unsigned long align, gfp_t flags,
			     int node)
#else
void *__kvmalloc_node_noprof(DECL_BUCKET_PARAMS(size, buckets), gfp_t flags, int node)
#endif
{
	return bench_zeroed(size);
}
#else
struct kmem_cache *kmalloc_caches[NR_KMALLOC_TYPES][KMALLOC_SHIFT_HIGH + 1];

void *__kmalloc(size_t size, gfp_t flags) { return bench_zeroed(size); }
void *__kmalloc_node(size_t size, gfp_t flags, int node) { return bench_zeroed(size); }
void *kmalloc_trace(struct kmem_cache *s, gfp_t flags, size_t size) { return bench_zeroed(size); }
void *kvmalloc_node(size_t size, gfp_t flags, int node) { return bench_zeroed(size); }
#endif
void kfree(const void *memory) { }
void kvfree(const void *memory) { }

/* Locks, statistics, complaints. */
struct net init_net;
#if LINUX_VERSION_CODE >= KERNEL_VERSION(7, 0, 0)
/* Locks count what holds up the present task. */
static struct task_struct present;
struct task_struct *cpu_tasks[NR_CPUS] = { &present };
#endif

int rtnl_is_locked(void) { return 1; }
void __local_bh_enable_ip(unsigned long ip, unsigned int count) { }
int um_set_signals(int on) { return on; }
void gnet_stats_basic_sync_init(struct gnet_stats_basic_sync *stats) { }
void gnet_stats_add_queue(struct gnet_stats_queue *to, const struct gnet_stats_queue __percpu *cpu,
			  const struct gnet_stats_queue *from) { }
void warn_slowpath_fmt(const char *file, int line, unsigned taint, const char *format, ...)
{
	bench_died(file);
}

/* Netlink's attributes: found by number, not checked. */
int __nla_parse(struct nlattr **table, int max, const struct nlattr *head, int size,
		const struct nla_policy *policy, unsigned int validate, struct netlink_ext_ack *ack)
{
	const struct nlattr *attribute;
	int rest;

	memset(table, 0, sizeof(*table) * (max + 1));
	nla_for_each_attr(attribute, head, size, rest)
		if (nla_type(attribute) <= max)
			table[nla_type(attribute)] = (struct nlattr *)attribute;
	return 0;
}

int nla_memcpy(void *to, const struct nlattr *attribute, int size)
{
	int present = min_t(int, size, nla_len(attribute));

	memset(to, 0, size);
	memcpy(to, nla_data(attribute), present);
	return present;
}

/* Disciplines by name. */
static struct Qdisc_ops *known[32];
static int known_count;

int register_qdisc(struct Qdisc_ops *ops)
{
	known[known_count++] = ops;
	return 0;
}

static struct Qdisc_ops *find(const char *name)
{
	int i;

	if (!strcmp(name, "pfifo"))
		return &pfifo_qdisc_ops;
	if (!strcmp(name, "bfifo"))
		return &bfifo_qdisc_ops;
	if (!strcmp(name, "pfifo_head_drop"))
		return &pfifo_head_drop_qdisc_ops;
	for (i = 0; i < known_count; i++)
		if (!strcmp(known[i]->id, name))
			return known[i];
	return NULL;
}
