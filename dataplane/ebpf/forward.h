/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Interfaces as ports, and where the kernel forwards a packet. */
#pragma once

#include "parse.h"

/* ports numbers the interfaces. */
struct {
	map_uint(type, BPF_MAP_TYPE_HASH);
	map_type(key, u32);
	map_type(value, u32);
	map_uint(max_entries, 4096);
} ports SEC(".maps");

inline_always u32 port_of(u32 ifindex)
{
	u32 *port = bpf_map_lookup_elem(&ports, &ifindex);
	return port ? *port & 0xffff : 0;
}

/* egress_of returns the port to which the kernel forwards the packet; 0: to none. */
inline_always u32 egress_of(void *ctx, const struct headers *p, u32 ingress)
{
	struct bpf_fib_lookup fib = {};
	u64 tail = p->outer.word[p->outer_v6 ? 4 : 1];
	fib.ifindex = ingress;
	fib.tos = 0;
	fib.l4_protocol = (u8)(tail >> 24);
	fib.sport = __builtin_bswap16((u16)(tail >> 48));
	fib.dport = __builtin_bswap16((u16)(tail >> 32));
	if (p->outer_v6) {
		fib.family = AF_INET6;
		for (int i = 0; i < 2; i++) {
			fib.ipv6_src[2 * i] = __builtin_bswap32(p->outer.word[i] >> 32);
			fib.ipv6_src[2 * i + 1] = __builtin_bswap32((u32)p->outer.word[i]);
			fib.ipv6_dst[2 * i] = __builtin_bswap32(p->outer.word[2 + i] >> 32);
			fib.ipv6_dst[2 * i + 1] = __builtin_bswap32((u32)p->outer.word[2 + i]);
		}
	} else {
		fib.family = AF_INET;
		fib.tos = p->outer_tos;
		fib.ipv4_src = __builtin_bswap32(p->outer.word[0] >> 32);
		fib.ipv4_dst = __builtin_bswap32((u32)p->outer.word[0]);
	}
	switch (bpf_fib_lookup(ctx, &fib, sizeof fib, 0)) {
	case BPF_FIB_LKUP_RET_SUCCESS:
	case BPF_FIB_LKUP_RET_NO_NEIGH:
	case BPF_FIB_LKUP_RET_FRAG_NEEDED:
		return port_of(fib.ifindex);
	}
	return 0;
}
