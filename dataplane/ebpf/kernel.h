/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* What the programs need of the kernel: its UAPI types and the helpers they call, by number
 * (include/uapi/linux/bpf.h). No other header is needed to build them. */
#pragma once

#include <linux/bpf.h>
#include <stdbool.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;

#define SEC(name) __attribute__((section(name), used))
#define inline_always static inline __attribute__((always_inline))
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/* Fields of a map, as BTF describes it to the loader. */
#define map_uint(name, val) int(*name)[val]
#define map_type(name, val) typeof(val) *name

static void *(*bpf_map_lookup_elem)(void *map, const void *key) = (void *)BPF_FUNC_map_lookup_elem;
static long (*bpf_skb_load_bytes)(const void *skb, u32 off, void *to, u32 len) = (void *)BPF_FUNC_skb_load_bytes;
static long (*bpf_xdp_load_bytes)(struct xdp_md *xdp, u32 off, void *to, u32 len) = (void *)BPF_FUNC_xdp_load_bytes;
static u64 (*bpf_xdp_get_buff_len)(struct xdp_md *xdp) = (void *)BPF_FUNC_xdp_get_buff_len;
static long (*bpf_fib_lookup)(void *ctx, struct bpf_fib_lookup *params, int len, u32 flags) = (void *)BPF_FUNC_fib_lookup;
static u64 (*bpf_ktime_get_coarse_ns)(void) = (void *)BPF_FUNC_ktime_get_coarse_ns;
static long (*bpf_loop)(u32 n, void *callback, void *arg, u64 flags) = (void *)BPF_FUNC_loop;

#define AF_INET 2
#define AF_INET6 10

inline_always u16 be16(const u8 *p) { return (u16)(p[0] << 8 | p[1]); }
inline_always u32 be32(const u8 *p) { return (u32)be16(p) << 16 | be16(p + 2); }
inline_always u64 be64(const u8 *p) { return (u64)be32(p) << 32 | be32(p + 4); }

inline_always u64 mul_high(u64 a, u64 b)
{
	u64 al = (u32)a, ah = a >> 32, bl = (u32)b, bh = b >> 32;
	u64 low = al * bl, mid1 = ah * bl, mid2 = al * bh;
	u64 mid = (low >> 32) + (u32)mid1 + (u32)mid2;
	return ah * bh + (mid1 >> 32) + (mid2 >> 32) + (mid >> 32);
}

inline_always u64 fold(u64 a, u64 b) { return mul_high(a, b) ^ a * b; }
