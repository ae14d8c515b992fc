//go:build ignore

/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* The flowset of a Linux host: inswitch/flowset in the kernel. It counts every packet that
 * arrives at an interface and changes none. Every packet goes to the table of its slot by the
 * clock, however late user space is: the first packet of a slot claims its table, and user space
 * reads and clears those of slots that have ended. A table that nothing claimed saw no packet.
 *
 * CPUs share the tables: the filter decides once per slot and flow who inserts its key, so
 * tables of single CPUs cannot be added up. All updates are atomic, and every sum and XOR is
 * the same in any order. */

#include "forward.h"

/* bpf_fib_lookup is for programs under the GPL. */
char license_name[] SEC("license") = "GPL";

enum { BANKS = 8, NO_BANK = BANKS, FAMILIES = 2, MAX_TABLES = 4, MAX_GROUPS = 16 };

/* The packets of a cell are above its bytes in one word, so that one atomic addition counts
 * both: 2^28 packets and 64 GiB in a slot. */
enum { PACKET_SHIFT = 36 };

/* PASS_ON is TCX_NEXT and TC_ACT_UNSPEC: the packet goes on as without this program. */
enum { PASS_ON = -1 };

/* family is the shape of one address family's tables; no cells: there is none. */
struct family {
	u32 groups;       /* of filter bits, each in one word */
	u32 words;        /* of the filter */
	u32 tables;
	u32 cells;        /* of one sub-table */
	u32 first_word;   /* in the map of filters, of bank 0 */
	u32 first_count;  /* in the map of counts, of bank 0 */
};

/* Set before the program is loaded: the verifier takes them for constants. */
volatile const struct family families[FAMILIES];
volatile const u64 seed[4];
volatile const u64 patterns[256];
volatile const u8 probe_mark;
volatile const u64 slot_length; /* in nanoseconds */
volatile const bool fixed_clock; /* of tests: the time is control.offset */

struct control {
	u64 offset;      /* of the wall clock from the kernel's monotonic clock */
	u64 slot;        /* a guess at the current one, which saves a division */
	u64 bank[BANKS]; /* slot + 1: claimed for this slot. FREE + slot: for the first that has a packet from this one on. 0: closed */
};

#define FREE (1ull << 63)

/* skipped counts packets that are in no table, of a family and bank; those of NO_BANK were missed. */
struct skipped {
	u64 unkeyed;
	u64 probes;
};

struct sum4 {
	u64 key[2];
	u32 flows;
	u32 ports; /* ingress above egress */
};

struct sum6 {
	u64 key[5];
	u32 flows;
	u32 ports;
};

#define ARRAY(map, value_type)                                \
	struct {                                              \
		map_uint(type, BPF_MAP_TYPE_ARRAY);           \
		map_uint(map_flags, BPF_F_MMAPABLE);          \
		map_type(key, u32);                           \
		map_type(value, value_type);                  \
		map_uint(max_entries, 1);                     \
	} map SEC(".maps")

/* The loader sets the numbers of entries. */
ARRAY(control, struct control);
ARRAY(skipped, struct skipped);
ARRAY(filter, u64);
ARRAY(counts, u64);
ARRAY(sums4, struct sum4);
ARRAY(sums6, struct sum6);

struct hash {
	u64 a, b;
};

/* hash_key is sketch.HashOf. */
inline_always struct hash hash_key(const struct key *k, bool v6)
{
	u64 a = k->word[0] ^ seed[0], b = k->word[1] ^ seed[1];
	u64 hi = mul_high(a, b), lo = a * b;
	if (v6)
		for (int i = 2; i < 5; i++) {
			a = lo ^ k->word[i] ^ seed[2];
			b = hi ^ seed[3];
			hi = mul_high(a, b);
			lo = a * b;
		}
	return (struct hash){fold(lo ^ seed[2], hi ^ seed[3]), fold(lo ^ seed[3], hi ^ seed[0])};
}

/* group returns the word of the filter that x selects, and the bits in it. */
inline_always u32 group(u64 x, u64 words, u64 *mask)
{
	u64 at = x * words;
	u64 pattern = patterns[at >> 56];
	u32 turn = at >> 50 & 63;
	*mask = pattern << turn | pattern >> (-turn & 63);
	return ((x >> 32) * words + ((u32)x * words >> 32)) >> 32;
}

/* last_missing returns the last group of a flow with bits that neither the filter has nor the
 * flow's groups before it: groups may share a word. */
inline_always u32 last_missing(struct hash h, u32 base, const volatile struct family *f)
{
	u32 last = MAX_GROUPS, words[MAX_GROUPS] = {};
	u64 x = h.a, mask, other;
	for (u32 i = 0; i < MAX_GROUPS && i < f->groups; i++, x += h.b) {
		u32 at = base + group(x, f->words, &mask);
		u64 *word = bpf_map_lookup_elem(&filter, &at);
		if (!word)
			break;
		u64 missing = mask & ~*word, y = h.a;
		words[i] = at;
		for (u32 j = 0; j < MAX_GROUPS && j < i; j++, y += h.b)
			if (unlikely(words[j] == at)) {
				group(y, f->words, &other);
				missing &= ~other;
			}
		if (missing)
			last = i;
	}
	return last;
}

/* is_new sets the flow's bits in the filter and reports whether this packet is the one that
 * inserts the flow: of several CPUs that see a new flow at once, the one that set the last of
 * its missing groups. */
inline_always bool is_new(struct hash h, u32 bank, const volatile struct family *f)
{
	u32 base = f->first_word + bank * f->words;
	u64 x = h.a, missing = 0, mask;
	for (u32 i = 0; i < MAX_GROUPS && i < f->groups; i++, x += h.b) {
		u32 at = base + group(x, f->words, &mask);
		u64 *word = bpf_map_lookup_elem(&filter, &at);
		if (!word)
			return false;
		missing |= mask & ~*word;
	}
	if (likely(!missing))
		return false;
	u32 last = last_missing(h, base, f);
	missing = 0;
	x = h.a;
	for (u32 i = 0; i < MAX_GROUPS && i < f->groups; i++, x += h.b) {
		u32 at = base + group(x, f->words, &mask);
		u64 *word = bpf_map_lookup_elem(&filter, &at);
		if (!word)
			return false;
		u64 before = __sync_fetch_and_or(word, mask);
		if (i == last)
			missing = mask & ~before;
	}
	return missing != 0;
}

/* fetch_sum begins to fetch a cell into the cache. */
inline_always void fetch_sum(u32 at, bool v6)
{
	const volatile u64 *s = v6 ? (void *)bpf_map_lookup_elem(&sums6, &at) : (void *)bpf_map_lookup_elem(&sums4, &at);
	if (s)
		(void)*s;
}

/* insert adds a flow's key and ports to its cell. */
inline_always void insert(u32 at, const struct key *k, bool v6, u32 both_ports)
{
	if (v6) {
		struct sum6 *s = bpf_map_lookup_elem(&sums6, &at);
		if (!s)
			return;
		for (int i = 0; i < 5; i++)
			__sync_fetch_and_xor(&s->key[i], k->word[i]);
		__sync_fetch_and_add(&s->flows, 1);
		__sync_fetch_and_xor(&s->ports, both_ports);
		return;
	}
	struct sum4 *s = bpf_map_lookup_elem(&sums4, &at);
	if (!s)
		return;
	__sync_fetch_and_xor(&s->key[0], k->word[0]);
	__sync_fetch_and_xor(&s->key[1], k->word[1]);
	__sync_fetch_and_add(&s->flows, 1);
	__sync_fetch_and_xor(&s->ports, both_ports);
}

/* cell_of returns the index of the flow's cell in sub-table t: 32 bits of the hash for each. */
inline_always u32 cell_of(struct hash h, u32 t, u32 cells)
{
	u64 half = t < 2 ? h.a : h.b;
	return t * cells + (u32)((t & 1 ? half >> 32 : (u32)half) * cells >> 32);
}

/* count_flow counts packets of a flow in its cells. */
inline_always void count_flow(void *ctx, const struct headers *p, bool v6, u32 bank, u64 amount, u32 ingress)
{
	const volatile struct family *f = &families[v6];
	struct hash h = hash_key(&p->key, v6);
	u32 first = bank * f->tables * f->cells, both_ports = 0;
	u64 *count[MAX_TABLES] = {};
	/* Atomic operations wait for one another, and so for each other's misses of the cache. Reading all cells
	 * first, together with the filter, fetches them at once. */
#pragma clang loop unroll(full)
	for (u32 t = 0; t < MAX_TABLES; t++) {
		u32 at = f->first_count + first + cell_of(h, t, f->cells);
		if (t >= f->tables)
			break;
		count[t] = bpf_map_lookup_elem(&counts, &at);
		if (count[t])
			(void)*(volatile u64 *)count[t];
	}
	bool new = is_new(h, bank, f);
	if (unlikely(new)) {
#pragma clang loop unroll(full)
		for (u32 t = 0; t < MAX_TABLES; t++)
			if (t < f->tables)
				fetch_sum(first + cell_of(h, t, f->cells), v6);
	}
	if (unlikely(new))
		both_ports = port_of(ingress) << 16 | egress_of(ctx, p, ingress);
#pragma clang loop unroll(full)
	for (u32 t = 0; t < MAX_TABLES; t++) {
		if (count[t])
			__sync_fetch_and_add(count[t], amount);
		if (unlikely(new) && t < f->tables)
			insert(first + cell_of(h, t, f->cells), &p->key, v6, both_ports);
	}
}

inline_always void count_skipped(u32 bank, bool v6, bool probe, u32 packets)
{
	u32 at = bank * FAMILIES + v6;
	struct skipped *s = bpf_map_lookup_elem(&skipped, &at);
	if (!s)
		return;
	__sync_fetch_and_add(probe ? &s->probes : &s->unkeyed, packets);
}

/* is_probe reports whether a marked packet has a probe's stamp (wire/probe), which must be in the first
 * PROBE_HEAD bytes. */
enum { PROBE_HEAD = 256, STAMP_SIZE = 16 };

inline_always bool is_probe(void *ctx, const struct headers *p, u32 length, bool xdp)
{
	u8 magic[4];
	u32 end = length < PROBE_HEAD ? length : PROBE_HEAD;
	return p->payload + STAMP_SIZE <= end && load_bytes(ctx, p->payload, magic, sizeof magic, xdp) && be32(magic) == 0x57505242;
}

/* claim takes a free bank for the first packet of its slot. Of CPUs that do so at once, one succeeds, and
 * all use it. */
inline_always u32 claim(struct control *c, u32 bank, u64 slot, u64 state)
{
	if (!(state & FREE) || (state & ~FREE) > slot)
		return NO_BANK;
	u64 before = __sync_val_compare_and_swap(&c->bank[bank], state, slot + 1);
	return before == state || before == slot + 1 ? bank : NO_BANK;
}

/* bank_now returns the bank of the current slot; NO_BANK: it has none. The coarse clock, of the
 * last tick, is a third of the cost of the exact one and the same on all CPUs. */
inline_always u32 bank_now(struct control *c)
{
	const volatile struct control *shared = c;
	u64 now = shared->offset, slot = shared->slot;
	if (!fixed_clock)
		now += bpf_ktime_get_coarse_ns();
	if (unlikely(now - slot * slot_length >= slot_length))
		slot = now / slot_length;
	u32 bank = slot & (BANKS - 1);
	u64 state = shared->bank[bank];
	return likely(state == slot + 1) ? bank : claim(c, bank, slot, state);
}

inline_always void observe(void *ctx, const u8 *data, const u8 *end, u32 length, u32 tags, u32 packets, u32 ingress, bool xdp)
{
	u32 zero = 0;
	struct headers found = {}, *p = &found;
	struct control *c = bpf_map_lookup_elem(&control, &zero);
	if (!c)
		return;
	u32 bank = bank_now(c);
	if (!parse_fast(p, data, end, length) && !parse_any(ctx, p, length, xdp))
		return;

	bool v6 = p->depth && p->v6, has_family = families[v6].cells != 0;
	/* What has no key of a family that is kept counts in IPv4's flowset, or in IPv6's if there is no other. */
	bool counted_in_v6 = families[1].cells != 0 && (v6 || families[0].cells == 0);
	if (unlikely(p->outer_tos >> 2 & probe_mark) && p->depth && is_probe(ctx, p, length, xdp))
		return count_skipped(bank, counted_in_v6, true, packets);
	if (unlikely(!p->depth || !has_family || bank >= NO_BANK))
		return count_skipped(bank, counted_in_v6, false, packets);
	/* Segments that the card or the kernel has joined each had headers. */
	u64 bytes = length + tags - p->label_size + (u64)(packets - 1) * (p->payload + tags);
	u64 amount = (u64)packets << PACKET_SHIFT | bytes;
	if (v6)
		count_flow(ctx, p, true, bank, amount, ingress);
	else
		count_flow(ctx, p, false, bank, amount, ingress);
}

SEC("tcx/ingress")
int flowset_tcx(struct __sk_buff *skb)
{
	u32 packets = skb->gso_segs ? skb->gso_segs : 1;
	/* The kernel keeps the outermost tag beside the packet. */
	observe(skb, (void *)(long)skb->data, (void *)(long)skb->data_end, skb->len, skb->vlan_present ? 4 : 0, packets,
		skb->ingress_ifindex ? skb->ingress_ifindex : skb->ifindex, false);
	return PASS_ON;
}

SEC("xdp.frags")
int flowset_xdp(struct xdp_md *xdp)
{
	observe(xdp, (void *)(long)xdp->data, (void *)(long)xdp->data_end, bpf_xdp_get_buff_len(xdp), 0, 1, xdp->ingress_ifindex, true);
	return XDP_PASS;
}
