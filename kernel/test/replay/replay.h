/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Stands before each source of the module's C side. What that calls of the kernel and of the Rust
 * side goes past the driver (replay.c): the clock and the timer are a recording's, flows have the
 * recorded hashes, and it is seen what becomes of packets.
 */
#ifndef REPLAY_H
#define REPLAY_H

#include <linux/module.h>
#include <net/pkt_sched.h>

#include "simnel.h"

u64 replay_now(void);
void replay_wake_at(struct qdisc_watchdog *watchdog, u64 time);
struct simnel_line *replay_create(const struct simnel_request *request,
				  const struct simnel_surroundings *surroundings,
				  struct simnel_message *message);
void replay_enqueue(struct simnel_line *line, const struct simnel_unusual *unusual, u64 now);
const struct simnel_packet *replay_dequeue(struct simnel_line *line, u64 now);
void shim_dropped(void *context, u64 packet, u32 reason);
int shim_init(void);
void shim_exit(void);

#ifndef REPLAY_DRIVER
#define ktime_get_ns replay_now
#define qdisc_watchdog_schedule_ns replay_wake_at
#define simnel_create replay_create
#define simnel_enqueue replay_enqueue
#define simnel_dequeue replay_dequeue
#define simnel_host_dropped shim_dropped
#undef module_init
#undef module_exit
#define module_init(start) int __init shim_init(void) { return start(); }
#define module_exit(end) void __exit shim_exit(void) { end(); }
#endif

#endif
