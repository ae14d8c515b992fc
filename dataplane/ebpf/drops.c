//go:build ignore

/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Packets that the kernel drops, by its own reason (enum skb_drop_reason). */

#include "kernel.h"

char license_name[] SEC("license") = "GPL";

enum { REASONS = 512 };

struct {
	map_uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	map_uint(max_entries, REASONS);
	map_type(key, u32);
	map_type(value, u64);
} drops SEC(".maps");

/* count_drop runs whenever the kernel frees a packet that it could not deliver. The reasons of subsystems, whose upper
 * half is not 0, share the last entry. */
SEC("raw_tracepoint/kfree_skb")
int count_drop(struct bpf_raw_tracepoint_args *ctx)
{
	u64 reason = (u32)ctx->args[2];
	u32 at = reason < REASONS - 1 ? (u32)reason : REASONS - 1;
	u64 *n = bpf_map_lookup_elem(&drops, &at);
	if (n)
		*n += 1;
	return 0;
}
