//go:build ignore

/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* What the links of a lab need beside veth pairs. */

#include "kernel.h"

static u32 (*bpf_get_prandom_u32)(void) = (void *)BPF_FUNC_get_prandom_u32;
static void (*bpf_set_hash_invalid)(struct __sk_buff *skb) = (void *)BPF_FUNC_set_hash_invalid;

char license_name[] SEC("license") = "GPL";

enum { DROP = 2, PASS_ON = -1 }; /* TC_ACT_SHOT, TC_ACT_UNSPEC */

/* share of packets that are dropped, in 2^-32. */
volatile const u32 share;

/* drop_silently drops packets at random, and no counter of the kernel shows it. */
SEC("tcx/egress")
int drop_silently(struct __sk_buff *skb) { return bpf_get_prandom_u32() < share ? DROP : PASS_ON; }

/* forget_hash removes the hash that the sending socket gave a packet: a wire does not carry it, and ECMP would
 * follow it instead of the packet's headers. */
SEC("tcx/egress")
int forget_hash(struct __sk_buff *skb)
{
	bpf_set_hash_invalid(skb);
	return PASS_ON;
}
