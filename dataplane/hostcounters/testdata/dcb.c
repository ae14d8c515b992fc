// Writes, in hexadecimal, what the kernel answers to DCB_CMD_IEEE_GET for eth0, as net/dcb/dcbnl.c
// puts it together, with the structures and numbers of linux/dcbnl.h:
//
//	gcc -o dcb dcb.c && ./dcb >dcb.hex
#include <linux/dcbnl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <string.h>

static unsigned char out[4096];
static int end;

static void put(const void *data, int n) {
	memcpy(out + end, data, n);
	end = NLA_ALIGN(end + n);
}

static int begin(int type) {
	struct nlattr a = {NLA_HDRLEN, type};
	put(&a, sizeof a);
	return end - NLA_HDRLEN;
}

static void finish(int at, int length) { ((struct nlattr *)(out + at))->nla_len = length; }

static void attribute(int type, const void *data, int n) {
	int at = begin(type);
	put(data, n);
	finish(at, NLA_HDRLEN + n);
}

int main(void) {
	struct dcbmsg head = {0, DCB_CMD_IEEE_GET, 0};
	struct ieee_ets ets = {.willing = 1, .ets_cap = 8, .tc_tx_bw = {40, 0, 0, 60}, .tc_tsa = {
		IEEE_8021QAZ_TSA_ETS, IEEE_8021QAZ_TSA_STRICT, IEEE_8021QAZ_TSA_CB_SHAPER, IEEE_8021QAZ_TSA_ETS, 255}, .prio_tc = {0, 0, 1, 3, 4, 5, 6, 7}};
	struct ieee_pfc pfc = {.pfc_cap = 8, .pfc_en = 1 << 3 | 1 << 4, .mbc = 1, .delay = 0x1234, .requests = {~0ULL}, .indications = {~0ULL}};
	struct dcbnl_buffer buffer = {.prio2buffer = {0, 0, 0, 1, 1}, .buffer_size = {20016, 116368}, .total_size = 156096};
	struct dcb_app apps[] = {
		{IEEE_8021QAZ_APP_SEL_DSCP, 3, 26}, {IEEE_8021QAZ_APP_SEL_DSCP, 6, 48}, {IEEE_8021QAZ_APP_SEL_ETHERTYPE, 4, 0x8915}, {IEEE_8021QAZ_APP_SEL_DGRAM, 3, 4791}};
	unsigned char dcbx = DCB_CAP_DCBX_HOST | DCB_CAP_DCBX_VER_IEEE;
	put(&head, sizeof head);
	attribute(DCB_ATTR_IFNAME, "eth0", 5);
	int ieee = begin(DCB_ATTR_IEEE);
	attribute(DCB_ATTR_IEEE_ETS, &ets, sizeof ets);
	attribute(DCB_ATTR_IEEE_PFC, &pfc, sizeof pfc);
	attribute(DCB_ATTR_DCB_BUFFER, &buffer, sizeof buffer);
	int table = begin(DCB_ATTR_IEEE_APP_TABLE);
	for (unsigned i = 0; i < sizeof apps / sizeof *apps; i++)
		attribute(DCB_ATTR_IEEE_APP, &apps[i], sizeof *apps);
	finish(table, end - table);
	int trust = begin((DCB_ATTR_DCB_BUFFER + 1) | NLA_F_NESTED); // DCB_ATTR_DCB_APP_TRUST_TABLE of Linux 6.3
	attribute(DCB_ATTR_IEEE_APP, &apps[0].selector, 1);
	finish(trust, end - trust);
	finish(ieee, end - ieee);
	attribute(DCB_ATTR_DCBX, &dcbx, 1);
	for (int i = 0; i < end; i++)
		printf("%02x%s", out[i], i % 32 == 31 || i == end - 1 ? "\n" : "");
	return 0;
}
