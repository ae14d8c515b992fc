//go:build ignore

/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Match and mirror: inswitch/mirror in the kernel, for TCP flags, debug marks and the sample. It
 * passes the start of selected packets to user space and changes none. */

#include "forward.h"

static long (*bpf_ringbuf_output)(void *ringbuf, const void *data, u64 size, u64 flags) = (void *)BPF_FUNC_ringbuf_output;
static u64 (*bpf_ktime_get_ns)(void) = (void *)BPF_FUNC_ktime_get_ns;

/* bpf_fib_lookup is for programs under the GPL. */
char license_name[] SEC("license") = "GPL";

enum { PASS_ON = -1 };

/* Reasons of wire/mirror. */
enum { FLAG = 1, SAMPLE = 2, DEBUG = 4 };

enum { FIN = 1, SYN = 2, RST = 4 };

/* MAX_FRAME bounds what is copied. READ_AHEAD is how much of a frame inswitch/mirror parses
 * beside what it keeps. */
enum { MAX_FRAME = 2047, READ_AHEAD = 512 };

/* HEAD_SIZE is what a mirror has before the frame (wire/mirror). */
enum { HEAD_SIZE = 24 };

/* A window is 2^26 ns, 67 ms: the budget is for each. */
enum { WINDOW_SHIFT = 26 };

/* Set before the program is loaded. */
volatile const u64 sample_seed;
volatile const u64 sample_below; /* 32-bit hashes below it are sampled */
volatile const u64 window_bytes; /* that may be mirrored in a window; 0: no limit */
volatile const u32 truncate;
volatile const u16 report_ports[2]; /* UDP ports of reports, which are never mirrored */
volatile const u16 mirror_types[3]; /* GRE protocols of mirrors, too */
volatile const u8 debug_mask;
volatile const bool by_tcp_flags;

/* record is what user space gets: as much of frame as captured says. */
struct record {
	u64 time; /* of the monotonic clock */
	struct key key;
	u32 length; /* of the whole frame, without the tag beside it */
	u32 limit;  /* of what is kept of it, with the tag */
	u32 captured;
	u16 in, out;
	u16 tag_type, tag; /* the tag that the kernel keeps beside the frame; type 0: none */
	u8 v6, keyed, reasons, pad;
	u8 frame[MAX_FRAME + 1];
};

struct mirror_counts {
	u64 mirrored, bytes;
	u64 flag, sample, debug;
	u64 rate_limited; /* the budget of the window was spent */
	u64 lost;         /* user space was late */
	u64 telemetry;    /* mirrors and reports */
};

struct budget {
	u64 window;
	u64 spent;
};

struct {
	map_uint(type, BPF_MAP_TYPE_RINGBUF);
	map_uint(max_entries, 1 << 20);
} mirrors SEC(".maps");

struct {
	map_uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	map_type(key, u32);
	map_type(value, struct record);
	map_uint(max_entries, 1);
} records SEC(".maps");

struct {
	map_uint(type, BPF_MAP_TYPE_ARRAY);
	map_type(key, u32);
	map_type(value, struct mirror_counts);
	map_uint(max_entries, 1);
} mirror_counters SEC(".maps");

struct {
	map_uint(type, BPF_MAP_TYPE_ARRAY);
	map_type(key, u32);
	map_type(value, struct budget);
	map_uint(max_entries, 1);
} budgets SEC(".maps");

enum : u64 { MIX0 = 0x6a09e667f3bcc909, MIX1 = 0xbb67ae8584caa73b, MIX2 = 0x3c6ef372fe94f82b, MAPPED = 0xffff00000000 };

/* flow_hash is model.FlowKey.Hash. */
inline_always u64 flow_hash(const struct key *k, bool v6, u64 hash_seed)
{
	u64 h = hash_seed ^ MIX2, src, dst, tail;
	if (v6) {
		h = fold(h ^ k->word[0], k->word[2] ^ MIX0);
		src = k->word[1];
		dst = k->word[3];
		tail = k->word[4] >> 16 | 1;
	} else {
		src = MAPPED | k->word[0] >> 32;
		dst = MAPPED | (u32)k->word[0];
		tail = k->word[1] >> 16;
	}
	h = fold(h ^ src, dst ^ MIX1);
	h = fold(h ^ tail, MIX0 ^ hash_seed);
	h ^= h >> 32;
	h *= MIX1;
	return h ^ h >> 29;
}

/* sample_hash is packet.SampleHash. */
inline_always u64 sample_hash(const struct headers *p)
{
	u64 id = p->ipid ? p->ipid : (u64)1 << 32 | p->seq;
	return flow_hash(&p->key, p->v6, sample_seed + id * 0x9e3779b97f4a7c15) >> 32;
}

inline_always u8 proto_of(const struct headers *p) { return (u8)(p->key.word[p->v6 ? 4 : 1] >> 24); }

inline_always bool has_key(const struct headers *p)
{
	return p->depth && (p->v6 || p->key.word[0] || p->key.word[1]);
}

inline_always u8 reasons_of(const struct headers *p)
{
	u8 why = 0;
	if (p->outer_tos >> 2 & debug_mask)
		why |= DEBUG;
	if (by_tcp_flags && p->depth && proto_of(p) == TCP && p->tcp_flags & (SYN | FIN | RST))
		why |= FLAG;
	if (sample_below && has_key(p) && sample_hash(p) < sample_below)
		why |= SAMPLE;
	return why;
}

/* is_telemetry reports whether a packet is a report or a mirror: to mirror one would make another. */
inline_always bool is_telemetry(struct __sk_buff *skb, const struct headers *p)
{
	u64 tail = p->key.word[p->v6 ? 4 : 1];
	if (!p->depth)
		return false;
	if (proto_of(p) == UDP)
		return (u16)(tail >> 32) == report_ports[0] || (u16)(tail >> 32) == report_ports[1];
	u8 type[2];
	if (proto_of(p) != GRE || p->transport + 4 > truncate + READ_AHEAD || p->transport + 4 > skb->len ||
	    bpf_skb_load_bytes(skb, p->transport + 2, type, sizeof type))
		return false;
	u16 protocol = be16(type);
	return protocol == mirror_types[0] || protocol == mirror_types[1] || protocol == mirror_types[2];
}

/* spend takes bytes from the budget of this window. Samples leave a quarter of it to packets that are marked. */
inline_always bool spend(u32 bytes, bool urgent)
{
	u32 zero = 0;
	struct budget *b = bpf_map_lookup_elem(&budgets, &zero);
	if (!window_bytes || !b)
		return true;
	u64 window = bpf_ktime_get_coarse_ns() >> WINDOW_SHIFT, before = *(volatile u64 *)&b->window;
	if (before != window && __sync_val_compare_and_swap(&b->window, before, window) == before)
		__sync_lock_test_and_set(&b->spent, 0);
	u64 spent = __sync_fetch_and_add(&b->spent, bytes) + bytes;
	if (spent <= (urgent ? window_bytes : window_bytes / 4 * 3))
		return true;
	__sync_fetch_and_add(&b->spent, -(u64)bytes);
	return false;
}

inline_always void capture(struct __sk_buff *skb, const struct headers *p, u8 why, struct mirror_counts *c)
{
	u32 zero = 0, tag = skb->vlan_present ? 4 : 0, ingress = skb->ingress_ifindex ? skb->ingress_ifindex : skb->ifindex;
	struct record *r = bpf_map_lookup_elem(&records, &zero);
	if (!r)
		return;
	r->length = skb->len;
	r->limit = truncate + p->label_size;
	u32 n = r->limit < skb->len ? r->limit : skb->len;
	if (!spend(HEAD_SIZE + n + tag, why & DEBUG)) {
		__sync_fetch_and_add(&c->rate_limited, 1);
		return;
	}
	/* Verifiers before 6.8 learn no lower bound from a comparison with 0; the compiler must not make one of this. */
	u64 last = (n < MAX_FRAME ? n : MAX_FRAME) - 1;
	asm volatile("" : "+r"(last));
	if (last >= MAX_FRAME)
		return;
	n = last + 1;
	if (bpf_skb_load_bytes(skb, 0, r->frame, last + 1))
		return;
	r->time = bpf_ktime_get_ns();
	r->key = p->key;
	r->captured = n;
	r->in = port_of(ingress);
	r->keyed = has_key(p);
	r->out = r->keyed ? egress_of(skb, p, ingress) : 0;
	r->tag_type = tag ? __builtin_bswap16((u16)skb->vlan_proto) : 0;
	r->tag = (u16)skb->vlan_tci;
	r->v6 = p->v6;
	r->reasons = why;
	r->pad = 0;
	if (bpf_ringbuf_output(&mirrors, r, __builtin_offsetof(struct record, frame) + last + 1, 0)) {
		__sync_fetch_and_add(&c->lost, 1);
		return;
	}
	__sync_fetch_and_add(&c->mirrored, 1);
	__sync_fetch_and_add(&c->bytes, HEAD_SIZE + n + tag);
	if (why & FLAG)
		__sync_fetch_and_add(&c->flag, 1);
	if (why & SAMPLE)
		__sync_fetch_and_add(&c->sample, 1);
	if (why & DEBUG)
		__sync_fetch_and_add(&c->debug, 1);
}

SEC("tcx/ingress")
int mirror_tcx(struct __sk_buff *skb)
{
	u32 zero = 0;
	struct headers found = {}, *p = &found;
	if (!parse_fast(p, (void *)(long)skb->data, (void *)(long)skb->data_end, skb->len) && !parse_any(skb, p, skb->len, false))
		return PASS_ON;
	u8 why = reasons_of(p);
	if (likely(!why))
		return PASS_ON;
	struct mirror_counts *c = bpf_map_lookup_elem(&mirror_counters, &zero);
	if (!c)
		return PASS_ON;
	if (is_telemetry(skb, p))
		__sync_fetch_and_add(&c->telemetry, 1);
	else
		capture(skb, p, why, c);
	return PASS_ON;
}
