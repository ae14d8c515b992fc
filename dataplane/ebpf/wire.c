//go:build ignore

/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* What the links of a lab need beside veth pairs. */

#include "kernel.h"

static u32 (*bpf_get_prandom_u32)(void) = (void *)BPF_FUNC_get_prandom_u32;
static void (*bpf_set_hash_invalid)(struct __sk_buff *skb) = (void *)BPF_FUNC_set_hash_invalid;

char license_name[] SEC("license") = "GPL";

static long (*bpf_skb_store_bytes)(struct __sk_buff *skb, u32 off, const void *from, u32 len, u64 flags) = (void *)BPF_FUNC_skb_store_bytes;

enum { DROP = 2, PASS_ON = -1 }; /* TC_ACT_SHOT, TC_ACT_UNSPEC */

/* share of packets that are dropped or damaged, in 2^-32. */
volatile const u32 share;

/* drop_silently drops packets at random, and no counter of the kernel shows it. */
SEC("tcx/egress")
int drop_silently(struct __sk_buff *skb) { return bpf_get_prandom_u32() < share ? DROP : PASS_ON; }

/* HEADERS is at least what is before the payload of TCP and UDP. */
enum { HEADERS = 14 + 40 + 20 };

/* corrupt inverts one bit of the payload of packets at random, as a defective memory of a switch does: headers and
 * the checksum stay, and so does the frame check sequence, which is made anew at every port. */
SEC("tcx/egress")
int corrupt(struct __sk_buff *skb)
{
	u32 length = skb->len;
	if (length <= HEADERS || bpf_get_prandom_u32() >= share)
		return PASS_ON;
	u32 at = HEADERS + bpf_get_prandom_u32() % (length - HEADERS);
	u8 byte;
	if (bpf_skb_load_bytes(skb, at, &byte, sizeof byte))
		return PASS_ON;
	byte ^= 1 << (bpf_get_prandom_u32() & 7);
	bpf_skb_store_bytes(skb, at, &byte, sizeof byte, 0);
	return PASS_ON;
}

/* forget_hash removes the hash that the sending socket gave a packet: a wire does not carry it, and ECMP would
 * follow it instead of the packet's headers. */
SEC("tcx/egress")
int forget_hash(struct __sk_buff *skb)
{
	bpf_set_hash_invalid(skb);
	return PASS_ON;
}
