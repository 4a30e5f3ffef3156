// SPDX-License-Identifier: MIT OR GPL-2.0
/* Memory for the Rust side, and its end. */
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/moduleparam.h>
#include <linux/sched/task_stack.h>
#include <linux/slab.h>
#include <linux/bug.h>
#include <linux/preempt.h>

#include "simnel.h"

/* Slabs hold pieces up to this size. */
#define SLABS 8192

/*
 * Up to here memory is waited for, where waiting is possible. A piece that Rust code cannot do without,
 * for words, settings and texts, is at most so large: who sets or reads them holds RTNL, and would end
 * with it. Limits of words see to that (crates/kernel, settings.rs), and its test short_memory.rs. Where
 * there is no contiguous memory pages are waited for one by one. What is larger is a table, and may be
 * refused: that is an error (crates/core, memory.rs).
 */
#define WAITED (160 << 10)

#ifdef SIMNEL_DEBUG
static uint refuse;
module_param(refuse, uint, 0644);
MODULE_PARM_DESC(refuse, "The large piece of memory that is refused, counted from the next; 0: none");

static uint stack_left = THREAD_SIZE;
module_param(stack_left, uint, 0644);
MODULE_PARM_DESC(stack_left, "Fewest bytes of stack below whoever waited for memory");

static bool is_refused(void)
{
	return refuse && !--refuse;
}

static void look_at_stack(void)
{
	unsigned long left = (unsigned long)__builtin_frame_address(0) -
			     (unsigned long)task_stack_page(current);

	stack_left = min_t(unsigned long, stack_left, left);
}
#else
static void look_at_stack(void)
{
}

static bool is_refused(void)
{
	return false;
}
#endif

void *simnel_host_alloc(size_t size, size_t align)
{
	/* Slabs are aligned to the size of what they hold only where that is a power of two. */
	if (align > ARCH_KMALLOC_MINALIGN && size <= SLABS)
		size = roundup_pow_of_two(max(size, align));
	if (in_softirq() || irqs_disabled())
		return kmalloc(size, GFP_ATOMIC | __GFP_NOWARN);
	look_at_stack();
	if (size <= WAITED)
		return kvmalloc(size, GFP_KERNEL | __GFP_NOFAIL);
	if (is_refused())
		return NULL;
	/* Too much is refused: nobody else is to be killed for it. */
	return kvmalloc(size, GFP_KERNEL | __GFP_NOWARN | __GFP_RETRY_MAYFAIL);
}

void simnel_host_free(void *memory)
{
	kvfree(memory);
}

void simnel_host_panic(const u8 *text, size_t length)
{
	pr_emerg("simnel: %.*s\n", (int)length, text);
	BUG();
	for (;;)
		cpu_relax();
}
