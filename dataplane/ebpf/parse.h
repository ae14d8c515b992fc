/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Parses frames as wire/packet does: VLAN tags, IPv4, IPv6 with extension headers, label
 * blocks, and tunnels (IP in IP, GRE, VXLAN) to the innermost IP header. The differential test
 * compares both on random frames. */
#pragma once

#include "kernel.h"

enum ether_type { TYPE_IPV4 = 0x0800, TYPE_VLAN = 0x8100, TYPE_IPV6 = 0x86dd, TYPE_QINQ = 0x88a8, TYPE_BRIDGED = 0x6558 };

enum protocol {
	HOP_BY_HOP = 0, ICMP = 1, IPIP = 4, TCP = 6, UDP = 17, IPV6 = 41, ROUTING = 43, FRAGMENT = 44,
	GRE = 47, AUTH_HEADER = 51, ICMPV6 = 58, NO_NEXT = 59, DEST_OPTIONS = 60, LABELS = 253
};

/* Bounds of wire/packet. */
enum { MAX_DEPTH = 8, MAX_TAGS = 4, MAX_EXTENSIONS = 8 };

enum { VXLAN_PORT = 4789, ROCE_PORT = 4791, MAX_LABELS = 32 };

/* What the parser reads next. */
enum step { ETHERNET, VLAN_TAG, IP_HEADER, LABEL_BLOCK, EXTENSION, TRANSPORT, DONE };

/* key is a flow key in the words of sketch.Key4 and Key6: addresses, then ports and protocol. */
struct key {
	u64 word[5];
};

/* headers is what the program needs of a packet. */
struct headers {
	u8 depth; /* IP headers found; 0: it has no key */
	bool v6;  /* of the innermost IP header that was read */
	/* Of the first IP header. */
	bool outer_v6;
	u8 outer_tos;
	u32 label_size;
	struct key outer;
	/* Of the innermost one. */
	struct key key;
	u32 payload;   /* where wire/probe looks for a stamp */
	u32 transport; /* where the transport header is */
	u32 seq;       /* of TCP, or the PSN of RoCEv2; 0: none */
	u16 ipid;      /* 0 in IPv6 */
	u8 tcp_flags;
};

/* parser is the state between two headers. It is in a map, not on the stack: the verifier then takes every value
 * for unknown and is done after one step, instead of following every sequence of headers. */
struct parser {
	struct headers found;
	u32 off;       /* of the next header */
	u32 end;       /* of what may be read: the frame's, or the tunnel packet's */
	u8 step;
	u8 proto;      /* of the current IP packet: what follows, labels and extensions skipped */
	u8 left;       /* VLAN tags or extension headers that may follow */
	bool next_v6;  /* of the IP header at off */
	bool no_ports; /* a later fragment */
};

enum { MAX_STEPS = 2 * MAX_TAGS + MAX_DEPTH * (MAX_TAGS + MAX_EXTENSIONS + 6) };

inline_always bool is_tag(u16 type) { return type == TYPE_VLAN || type == TYPE_QINQ; }

inline_always bool load_bytes(void *ctx, u32 off, void *to, u32 len, bool xdp)
{
	if (xdp)
		return bpf_xdp_load_bytes(ctx, off, to, len) == 0;
	return bpf_skb_load_bytes(ctx, off, to, len) == 0;
}

inline_always bool load(struct parser *p, void *ctx, u32 off, void *to, u32 len, bool xdp)
{
	if (off > p->end || len > p->end - off)
		return false;
	return load_bytes(ctx, off, to, len, xdp);
}

inline_always void set_ports(struct parser *p, u16 src, u16 dst)
{
	u64 tail = (u64)src << 48 | (u64)dst << 32 | (u64)p->proto << 24;
	if (p->found.v6)
		p->found.key.word[4] = tail;
	else
		p->found.key.word[1] = tail;
	if (p->found.depth == 1)
		p->found.outer = p->found.key;
}

/* end_ip ends an IP packet of which no more is read. */
inline_always int end_ip(struct parser *p, u32 payload)
{
	set_ports(p, 0, 0);
	p->found.transport = p->off;
	p->found.payload = p->proto == UDP ? payload + 8 : payload;
	p->step = DONE;
	return 1;
}

inline_always int after_ethernet(struct parser *p, u16 type)
{
	if (is_tag(type)) {
		p->step = VLAN_TAG;
		return p->left == 0; /* more tags than are followed */
	}
	if (type != TYPE_IPV4 && type != TYPE_IPV6)
		return 1;
	p->next_v6 = type == TYPE_IPV6;
	p->step = IP_HEADER;
	return 0;
}

inline_always int step_ethernet(struct parser *p, void *ctx, bool xdp)
{
	u8 type[2];
	if (!load(p, ctx, p->off + 12, type, sizeof type, xdp))
		return 1;
	p->off += 14;
	p->left = MAX_TAGS;
	return after_ethernet(p, be16(type));
}

inline_always int step_vlan(struct parser *p, void *ctx, bool xdp)
{
	u8 tag[4];
	if (!load(p, ctx, p->off, tag, sizeof tag, xdp))
		return 1;
	p->off += 4;
	p->left--;
	return after_ethernet(p, be16(tag + 2));
}

inline_always void begin_ip(struct parser *p, u8 tos, u32 length)
{
	p->found.depth++;
	p->found.v6 = p->next_v6;
	p->no_ports = false;
	p->left = MAX_EXTENSIONS;
	p->found.seq = 0;
	p->found.ipid = 0;
	p->found.tcp_flags = 0;
	/* What follows the IP packet is padding; a packet that is longer than its frame was truncated. */
	if (length < p->end - p->off)
		p->end = p->off + length;
	if (p->found.depth == 1) {
		p->found.outer_v6 = p->found.v6;
		p->found.outer_tos = tos;
	}
}

inline_always int step_ipv4(struct parser *p, void *ctx, bool xdp)
{
	u8 h[20];
	if (!load(p, ctx, p->off, h, sizeof h, xdp))
		return 1;
	u32 size = (h[0] & 0xf) * 4, length = be16(h + 2);
	if (length == 0) /* a packet before its segmentation */
		length = p->end - p->off;
	if (h[0] >> 4 != 4 || size < sizeof h || length < size || size > p->end - p->off)
		return 1;
	begin_ip(p, h[1], length);
	p->proto = h[9];
	p->found.ipid = be16(h + 4);
	p->found.key = (struct key){.word = {(u64)be32(h + 12) << 32 | be32(h + 16)}};
	p->off += size;
	p->no_ports = (be16(h + 6) & 0x1fff) != 0;
	p->step = p->proto == LABELS ? LABEL_BLOCK : TRANSPORT;
	return 0;
}

inline_always int step_ipv6(struct parser *p, void *ctx, bool xdp)
{
	u8 h[40];
	if (!load(p, ctx, p->off, h, sizeof h, xdp) || h[0] >> 4 != 6)
		return 1;
	u32 length = sizeof h + be16(h + 4);
	if (length == sizeof h && h[6] != NO_NEXT)
		length = p->end - p->off;
	begin_ip(p, (u8)(be16(h) >> 4), length);
	p->proto = h[6];
	p->found.key = (struct key){.word = {be64(h + 8), be64(h + 16), be64(h + 24), be64(h + 32)}};
	p->off += sizeof h;
	p->step = p->proto == LABELS ? LABEL_BLOCK : EXTENSION;
	return 0;
}

/* step_labels skips a label block (wire/label). Other experiments under its protocol number are left as they are. */
inline_always int step_labels(struct parser *p, void *ctx, bool xdp)
{
	u8 o[4];
	if (!load(p, ctx, p->off, o, sizeof o, xdp))
		return end_ip(p, p->end);
	u32 next = o[0], num = o[1], max = o[2];
	if (o[3] == 1 && max >= 1 && max <= MAX_LABELS && num >= 1 && num <= 2 * max && next != LABELS) {
		u32 size = 4 + 32 * (num > max ? num - max : num);
		if (size > p->end - p->off)
			return end_ip(p, p->end);
		p->proto = next;
		p->off += size;
		if (p->found.depth == 1)
			p->found.label_size = size;
	}
	p->step = p->found.v6 ? EXTENSION : TRANSPORT;
	return 0;
}

inline_always int step_extension(struct parser *p, void *ctx, bool xdp)
{
	u8 h[8];
	switch (p->proto) {
	case HOP_BY_HOP:
	case ROUTING:
	case DEST_OPTIONS:
	case AUTH_HEADER:
	case FRAGMENT:
		break;
	default:
		p->step = TRANSPORT;
		return 0;
	}
	if (!load(p, ctx, p->off, h, sizeof h, xdp))
		return end_ip(p, p->end);
	u32 size = (h[1] + 1) * 8;
	if (p->proto == FRAGMENT)
		size = 8;
	else if (p->proto == AUTH_HEADER)
		size = (h[1] + 2) * 4;
	if (size > p->end - p->off)
		return end_ip(p, p->end);
	bool later = p->proto == FRAGMENT && be16(h + 2) >> 3 != 0;
	p->proto = h[0];
	p->off += size;
	if (later || --p->left == 0)
		return end_ip(p, p->off);
	return 0;
}

/* inner_ip continues with an IP header that a tunnel carries. */
inline_always int inner_ip(struct parser *p, u32 off, bool v6)
{
	p->off = off;
	p->next_v6 = v6;
	p->step = IP_HEADER;
	return p->found.depth == MAX_DEPTH;
}

inline_always int inner_ethernet(struct parser *p, u32 off)
{
	p->off = off;
	p->step = ETHERNET;
	return p->found.depth == MAX_DEPTH;
}

inline_always int step_gre(struct parser *p, void *ctx, bool xdp)
{
	u8 h[4];
	if (!load(p, ctx, p->off, h, sizeof h, xdp))
		return 1;
	u32 flags = be16(h), size = 4 + (flags >> 15) * 4 + (flags >> 13 & 1) * 4 + (flags >> 12 & 1) * 4;
	if (flags & 0x4007 || size > p->end - p->off) /* routing, or another version */
		return 1;
	switch (be16(h + 2)) {
	case TYPE_IPV4:
		return inner_ip(p, p->off + size, false);
	case TYPE_IPV6:
		return inner_ip(p, p->off + size, true);
	case TYPE_BRIDGED:
		return inner_ethernet(p, p->off + size);
	}
	return 1;
}

inline_always int step_transport(struct parser *p, void *ctx, bool xdp)
{
	u8 h[4] = {};
	u32 rest = p->end - p->off;
	p->found.payload = p->off;
	p->found.transport = p->off;
	p->step = DONE;
	if (p->no_ports)
		return end_ip(p, p->off);
	switch (p->proto) {
	case TCP: {
		u8 offset[1] = {0x50};
		if (load(p, ctx, p->off, h, sizeof h, xdp))
			set_ports(p, be16(h), be16(h + 2));
		else
			set_ports(p, 0, 0);
		u32 size = 0;
		if (rest >= 20 && load(p, ctx, p->off + 12, offset, 1, xdp))
			size = (offset[0] >> 4) * 4;
		if (load(p, ctx, p->off + 4, h, sizeof h, xdp))
			p->found.seq = be32(h);
		if (load(p, ctx, p->off + 13, offset, 1, xdp))
			p->found.tcp_flags = offset[0];
		size = rest < 20 ? rest : size < 20 ? 20 : size;
		p->found.payload = p->off + (size < rest ? size : rest);
		return 1;
	}
	case UDP:
		if (load(p, ctx, p->off, h, sizeof h, xdp))
			set_ports(p, be16(h), be16(h + 2));
		else
			set_ports(p, 0, 0);
		p->found.payload = p->off + 8;
		if (rest >= 20 && be16(h + 2) == ROCE_PORT && load(p, ctx, p->off + 16, h, sizeof h, xdp)) {
			p->found.seq = be32(h) & 0xffffff;
			return 1;
		}
		if (rest < 16 || be16(h + 2) != VXLAN_PORT)
			return 1;
		return inner_ethernet(p, p->off + 16);
	}
	set_ports(p, 0, 0);
	switch (p->proto) {
	case ICMP:
	case ICMPV6:
		p->found.payload = p->off + (rest < 8 ? rest : 8);
		return 1;
	case IPIP:
		return inner_ip(p, p->off, false);
	case IPV6:
		return inner_ip(p, p->off, true);
	case GRE:
		return step_gre(p, ctx, xdp);
	}
	return 1;
}

/* step_parser parses one header. It returns 1 after the last. */
inline_always long step_parser(struct parser *p, void *ctx, bool xdp)
{
	switch (p->step) {
	case ETHERNET:
		return step_ethernet(p, ctx, xdp);
	case VLAN_TAG:
		return step_vlan(p, ctx, xdp);
	case IP_HEADER:
		return p->next_v6 ? step_ipv6(p, ctx, xdp) : step_ipv4(p, ctx, xdp);
	case LABEL_BLOCK:
		return step_labels(p, ctx, xdp);
	case EXTENSION:
		return step_extension(p, ctx, xdp);
	case TRANSPORT:
		return step_transport(p, ctx, xdp);
	}
	return 1;
}

struct parser_args {
	struct parser *parser;
	void *ctx;
};

static long step_skb(u64 i, struct parser_args *a) { return step_parser(a->parser, a->ctx, false); }
static long step_xdp(u64 i, struct parser_args *a) { return step_parser(a->parser, a->ctx, true); }

/* parsers is the state of the parser, one for each CPU: nothing interrupts a program by another packet. */
struct {
	map_uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	map_type(key, u32);
	map_type(value, struct parser);
	map_uint(max_entries, 1);
} parsers SEC(".maps");

/* parse_any parses every frame. */
inline_always bool parse_any(void *ctx, struct headers *found, u32 frame, bool xdp)
{
	u32 zero = 0;
	struct parser *p = bpf_map_lookup_elem(&parsers, &zero);
	if (!p)
		return false;
	__builtin_memset(p, 0, sizeof *p);
	p->end = frame;
	struct parser_args args = {p, ctx};
	bpf_loop(MAX_STEPS, xdp ? (void *)step_xdp : (void *)step_skb, &args, 0);
	*found = p->found;
	return true;
}

/* parse_fast parses TCP and UDP in IPv4 without tag, option, fragment or tunnel, if all headers are in front of
 * the packet: nearly all traffic. */
inline_always bool parse_fast(struct headers *p, const u8 *data, const u8 *end, u32 frame)
{
	if (data + 54 > end || be16(data + 12) != TYPE_IPV4 || data[14] != 0x45)
		return false;
	u32 length = be16(data + 16);
	u8 proto = data[23];
	if ((be16(data + 20) & 0x3fff) || length < 40 || length > frame - 14 ||
	    (proto != TCP && (proto != UDP || be16(data + 36) == VXLAN_PORT)))
		return false;
	p->depth = 1;
	p->outer_tos = data[15];
	p->key.word[0] = be64(data + 26);
	p->key.word[1] = (u64)be32(data + 34) << 32 | (u64)proto << 24;
	p->payload = 42;
	p->transport = 34;
	p->ipid = be16(data + 18);
	if (proto == TCP) {
		u32 size = (data[46] >> 4) * 4;
		if (size < 20 || size > length - 20)
			return false;
		p->payload = 34 + size;
		p->seq = be32(data + 38);
		p->tcp_flags = data[47];
	} else if (be16(data + 36) == ROCE_PORT) {
		p->seq = be32(data + 50) & 0xffffff;
	}
	p->outer = p->key;
	return true;
}
