// SPDX-License-Identifier: MIT OR GPL-2.0
/* Memory for the Rust side, and its end. */
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/bug.h>
#include <linux/preempt.h>

#include "simnel.h"

/* Up to here memory is waited for, where waiting is possible. */
#define SMALL 8192

void *simnel_host_alloc(size_t size, size_t align)
{
	/* Slabs are aligned to the size of what they hold only where that is a power of two. */
	if (align > ARCH_KMALLOC_MINALIGN && size <= SMALL)
		size = roundup_pow_of_two(max(size, align));
	if (in_softirq() || irqs_disabled())
		return kmalloc(size, GFP_ATOMIC | __GFP_NOWARN);
	if (size <= SMALL)
		return kmalloc(size, GFP_KERNEL | __GFP_NOFAIL);
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
