//go:build ignore

/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* What flow agents do instead of a flowset, for weft bench agent: a hash map with an entry for every flow, of all
 * CPUs or with counters of each. It knows TCP and UDP in IPv4 alone, and keeps packets and bytes alone. */

#include "kernel.h"

static long (*bpf_map_update_elem)(void *map, const void *key, const void *value, u64 flags) = (void *)BPF_FUNC_map_update_elem;

char license_name[] SEC("license") = "GPL";

enum { PASS_ON = -1, TYPE_IPV4 = 0x0800 };

struct flow_key {
	u32 src, dst;
	u16 src_port, dst_port;
	u8 proto, pad[3];
};

struct flow_counts {
	u64 packets, bytes;
};

struct {
	map_uint(type, BPF_MAP_TYPE_HASH);
	map_type(key, struct flow_key);
	map_type(value, struct flow_counts);
	map_uint(max_entries, 1 << 18);
} flows SEC(".maps");

struct {
	map_uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	map_type(key, struct flow_key);
	map_type(value, struct flow_counts);
	map_uint(max_entries, 1 << 18);
} cpu_flows SEC(".maps");

inline_always bool key_of(const struct __sk_buff *skb, struct flow_key *key)
{
	const u8 *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
	if (data + 54 > end || be16(data + 12) != TYPE_IPV4 || data[14] != 0x45)
		return false;
	*key = (struct flow_key){
		.src = *(u32 *)(data + 26), .dst = *(u32 *)(data + 30), .src_port = *(u16 *)(data + 34),
		.dst_port = *(u16 *)(data + 36), .proto = data[23],
	};
	return true;
}

SEC("tcx/ingress")
int hash_map(struct __sk_buff *skb)
{
	struct flow_key key;
	if (!key_of(skb, &key))
		return PASS_ON;
	struct flow_counts *c = bpf_map_lookup_elem(&flows, &key);
	if (c) {
		__sync_fetch_and_add(&c->packets, 1);
		__sync_fetch_and_add(&c->bytes, skb->len);
		return PASS_ON;
	}
	struct flow_counts one = {1, skb->len};
	bpf_map_update_elem(&flows, &key, &one, BPF_ANY);
	return PASS_ON;
}

/* Counters of one CPU need no atomic additions. */
SEC("tcx/ingress")
int cpu_hash_map(struct __sk_buff *skb)
{
	struct flow_key key;
	if (!key_of(skb, &key))
		return PASS_ON;
	struct flow_counts *c = bpf_map_lookup_elem(&cpu_flows, &key);
	if (c) {
		c->packets++;
		c->bytes += skb->len;
		return PASS_ON;
	}
	struct flow_counts one = {1, skb->len};
	bpf_map_update_elem(&cpu_flows, &key, &one, BPF_ANY);
	return PASS_ON;
}

/* nothing is the cost of a program that does nothing. */
SEC("tcx/ingress")
int nothing(struct __sk_buff *skb) { return PASS_ON; }
