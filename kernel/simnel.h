/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * The border between the C side and the Rust side of the module: crates/kernel says what each
 * function does. Layouts are those of its #[repr(C)] types.
 */
#ifndef SIMNEL_H
#define SIMNEL_H

#include <linux/types.h>

struct simnel_line;
struct simnel_lines;
struct simnel_change;
struct simnel_counters;

struct simnel_translation {
	u8 source[16];
	u8 destination[16];
	u8 ports[4];
	u8 protocol;
	u8 version;
};

/* Fields without a name are of the Rust side alone. */
struct simnel_packet {
	u64 handle;
	u64:64;
	u64:64;
	u32 len;
	u32 truesize;
	u64 enqueued;
	u32 adj_len;
	u32:32;
	u32 mark;
	u32 priority;
	u16 gso_size;
	u16 gso_segs;
	u8:8;
	u8 network_offset;
	u8:8;
	u8 flags;
};

/* The network layer is IPv4. */
#define SIMNEL_IPV4 1

/* To be set in the headers of a packet that leaves. */
#define SIMNEL_MARK 16
#define SIMNEL_WASH 32

/* As network_offset: so many bytes or more. */
#define SIMNEL_FAR 255

/* Lengths from 2 to below this one are in a packet that leaves as they were in the arrival. */
#define SIMNEL_MOST_BYTES (1 << 19)

struct simnel_arrival {
	struct simnel_packet packet;
	const u8 *start;
	u32 captured;
};

struct simnel_unusual {
	const struct simnel_translation *translation;
	u32 remaining;
	u32 class;
	u32 is_ethernet;
};

struct simnel_hashes {
	u64 flow;
	u32 src_host;
	u32 dst_host;
};

#define SIMNEL_WANTS_TRANSLATION 1
#define SIMNEL_WANTS_SPLIT 2
#define SIMNEL_WANTS_NEST 4
#define SIMNEL_WANTS_BYPASS 8
#define SIMNEL_WANTS_EMPTY 16
#define SIMNEL_WANTS_REST 32
#define SIMNEL_WANTS_CHOICE 64

struct simnel_request {
	const u8 *kind;
	const u8 *options;
	u32 kind_length;
	u32 length;
	u32 is_nested;
	u32 mtu;
	u32 tx_queue_len;
};

struct simnel_surroundings {
	void *context;
	u32 handle;
	u32 hz;
	u32 wheel;
	u64 now;
	u64 seed;
	u64 key[2];
};

struct simnel_class {
	u32 packets;
	u32 bytes;
	u32 is_used;
	u32 length;
	u8 statistics[256];
};

#define SIMNEL_MESSAGE 160

struct simnel_message {
	u8 text[SIMNEL_MESSAGE];
	s32 error;
};

/* Reasons for which the Rust side gives a packet back. */
enum simnel_reason {
	SIMNEL_OVERLIMIT,
	SIMNEL_CONGESTED,
	SIMNEL_FLOOD,
	SIMNEL_ACK_FILTER,
	SIMNEL_RESET,
	SIMNEL_UNCLASSIFIED,
};

/* Rust, called from C. */
struct simnel_line *simnel_create(const struct simnel_request *request,
				  const struct simnel_surroundings *surroundings,
				  struct simnel_message *message);
u32 simnel_is_parallel(const struct simnel_request *request);
struct simnel_lines *simnel_create_parallel(const struct simnel_request *request,
					    const struct simnel_surroundings *surroundings,
					    u32 count, struct simnel_message *message);
struct simnel_line *simnel_take_line(struct simnel_lines *lines, void *context);
void simnel_lines_free(struct simnel_lines *lines);
void simnel_destroy(struct simnel_line *line);
struct simnel_arrival *simnel_arrival(struct simnel_line *line);
void simnel_enqueue(struct simnel_line *line, const struct simnel_unusual *unusual, u64 now);
const struct simnel_packet *simnel_dequeue(struct simnel_line *line, u64 now);
const struct simnel_packet *simnel_peek(const struct simnel_line *line);
void simnel_lend(struct simnel_line *line, u32 packets, u32 bytes, u64 now);
u64 simnel_next_event(const struct simnel_line *line);
u32 simnel_look(struct simnel_line *line, u64 waited, u64 now);
u32 simnel_is_at_rest(const struct simnel_line *line);
void simnel_reset(struct simnel_line *line);
u32 simnel_wants(const struct simnel_line *line);
u32 simnel_queues(const struct simnel_line *line);
struct simnel_change *simnel_prepare(const struct simnel_line *line,
				     const struct simnel_request *request, u64 now,
				     struct simnel_message *message);
void simnel_apply(struct simnel_line *line, struct simnel_change *change, u64 now);
void simnel_inherit(struct simnel_line *line, const struct simnel_change *change);
void simnel_forget(struct simnel_change *change);
u32 simnel_options(const struct simnel_line *line, u8 *out, u32 size);
struct simnel_counters *simnel_counters(void);
u32 simnel_read(const struct simnel_line *line, struct simnel_counters *counters);
u32 simnel_statistics(const struct simnel_line *line, const struct simnel_counters *counters,
		      u8 *out, u32 size);
u32 simnel_class(const struct simnel_line *line, u32 n, u64 now, struct simnel_class *shown);
void simnel_counters_free(struct simnel_counters *counters);
void simnel_open(struct simnel_line *line);
u32 simnel_decide(struct simnel_line *line, const struct simnel_unusual *unusual, u32 packets,
		  u32 bytes, u64 now);
void simnel_refused(struct simnel_line *line, u64 now);
void simnel_left(struct simnel_line *line, u32 packets);
void simnel_found_empty(struct simnel_line *line, u64 now);
/* For tests only: kernel/test/replay, and books.c in debug builds. */
void simnel_enqueue_hashed(struct simnel_line *line, const struct simnel_unusual *unusual,
			   const struct simnel_hashes *hashes, u64 now);
u64 simnel_placement(const struct simnel_line *line);
u32 simnel_backlog(const struct simnel_line *line, u64 *bytes);

/* C, called from Rust. */
void simnel_host_dropped(void *context, u64 packet, u32 reason);
const u8 *simnel_host_headers(void *context, u64 packet, u32 told, u32 *length);
u32 simnel_host_keyed_hash(u64 packet, u64 first, u64 second);
void *simnel_host_alloc(size_t size, size_t align);
void simnel_host_free(void *memory);
void simnel_host_panic(const u8 *text, size_t length) __noreturn;

#endif
