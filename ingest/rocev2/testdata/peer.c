// A verbs program as others write them, for tests against the kernel's RoCE:
//
//	peer collect ADDRESS PORT FILE SIZE…                memory that a peer writes
//	peer write ADDRESS PORT FILE COUNT SOURCE           a peer that writes memory
//
// collect accepts one connection by RDMA_CM, sends address, length and R_Key of each
// memory, answers every message with the first of these again, and at the end of the
// connection writes the memories to FILE.0, FILE.1 and so on, and the messages and
// immediate data that it received to FILE.received.
// write connects, receives a region, executes COUNT operations of each kind
// with every answer checked, and writes what the region should hold to FILE.
#include <arpa/inet.h>
#include <netdb.h>
#include <rdma/rdma_cma.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK(x) do { if (!(x)) { fprintf(stderr, "peer: line %d: %s: ", __LINE__, #x); perror(""); exit(1); } } while (0)
#define RECEIVES 512
#define SENDS 64
#define MESSAGE 64

static struct rdma_event_channel *events;
static struct ibv_pd *pd;
static struct ibv_cq *cq;

static struct rdma_cm_event *await_event(enum rdma_cm_event_type want) {
	struct rdma_cm_event *e;
	CHECK(rdma_get_cm_event(events, &e) == 0);
	if (e->event != want) {
		fprintf(stderr, "peer: %s (status %d), want %s\n", rdma_event_str(e->event), e->status, rdma_event_str(want));
		exit(1);
	}
	return e;
}

static struct sockaddr_storage address(const char *host, const char *port) {
	struct addrinfo *found, hint = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV};
	struct sockaddr_storage a = {0};
	CHECK(getaddrinfo(host, port, &hint, &found) == 0);
	memcpy(&a, found->ai_addr, found->ai_addrlen);
	freeaddrinfo(found);
	return a;
}

static void make_qp(struct rdma_cm_id *id) {
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = SENDS, .max_recv_wr = RECEIVES, .max_send_sge = 1, .max_recv_sge = 1}};
	CHECK((pd = ibv_alloc_pd(id->verbs)));
	CHECK((cq = ibv_create_cq(id->verbs, 2 * RECEIVES, NULL, NULL, 0)));
	attr.send_cq = attr.recv_cq = cq;
	CHECK(rdma_create_qp(id, pd, &attr) == 0);
}

static struct ibv_mr *memory(size_t size) {
	void *at = aligned_alloc(4096, (size + 4095) & ~4095UL);
	CHECK(at);
	memset(at, 0, size);
	struct ibv_mr *mr = ibv_reg_mr(pd, at, size, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
	CHECK(mr);
	return mr;
}

static void receive(struct rdma_cm_id *id, struct ibv_mr *mr, uint64_t slot) {
	struct ibv_sge sge = {(uintptr_t)mr->addr + slot * MESSAGE, MESSAGE, mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = slot, .sg_list = &sge, .num_sge = 1}, *bad;
	CHECK(ibv_post_recv(id->qp, &wr, &bad) == 0);
}

static void save(const char *name, const void *data, size_t size) {
	FILE *f = fopen(name, "w");
	CHECK(f && fwrite(data, 1, size, f) == size && fclose(f) == 0);
}

struct region { uint64_t address; uint32_t length, key; } __attribute__((packed));

static void describe(struct rdma_cm_id *id, struct ibv_mr *outbox, int i) {
	struct ibv_sge sge = {(uintptr_t)outbox->addr + i * sizeof(struct region), sizeof(struct region), outbox->lkey};
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED, .sg_list = &sge, .num_sge = 1}, *bad;
	CHECK(ibv_post_send(id->qp, &wr, &bad) == 0);
}

static int collect(const char *host, const char *port, const char *file, int n, char **sizes) {
	struct rdma_cm_id *listener, *id;
	struct sockaddr_storage a = address(host, port);
	CHECK(rdma_create_id(events, &listener, NULL, RDMA_PS_TCP) == 0);
	CHECK(rdma_bind_addr(listener, (struct sockaddr *)&a) == 0 && rdma_listen(listener, 4) == 0);
	printf("ready\n");
	fflush(stdout);
	struct rdma_cm_event *e = await_event(RDMA_CM_EVENT_CONNECT_REQUEST);
	id = e->id;
	rdma_ack_cm_event(e);
	make_qp(id);
	struct ibv_mr *inbox = memory(RECEIVES * MESSAGE), *outbox = memory(4096), *mrs[16];
	int answers = 0, unsent = 0; // to messages: due, and posted without a completion
	for (int i = 0; i < RECEIVES; i++)
		receive(id, inbox, i);
	struct rdma_conn_param param = {.responder_resources = 4, .initiator_depth = 1, .rnr_retry_count = 7};
	CHECK(rdma_accept(id, &param) == 0);
	rdma_ack_cm_event(await_event(RDMA_CM_EVENT_ESTABLISHED));
	for (int i = 0; i < n; i++) {
		mrs[i] = memory(strtoul(sizes[i], NULL, 10));
		((struct region *)outbox->addr)[i] = (struct region){(uintptr_t)mrs[i]->addr, mrs[i]->length, mrs[i]->rkey};
		describe(id, outbox, i);
		unsent++;
	}
	// Receives are taken and posted again until the peer ends the connection.
	char name[512];
	snprintf(name, sizeof name, "%s.received", file);
	FILE *received = fopen(name, "w");
	CHECK(received);
	for (int ended = 0; !ended;) {
		struct ibv_wc wc;
		fd_set set;
		struct timeval wait = {0, 1000};
		while (ibv_poll_cq(cq, 1, &wc) == 1) {
			if (wc.status == IBV_WC_WR_FLUSH_ERR)
				continue;
			if (wc.status != IBV_WC_SUCCESS) {
				fprintf(stderr, "peer: %s\n", ibv_wc_status_str(wc.status));
				return 1;
			}
			if (wc.opcode == IBV_WC_SEND) {
				unsent--;
				continue;
			}
			if (wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM) {
				fprintf(received, "immediate %u\n", ntohl(wc.imm_data));
			} else {
				fprintf(received, "message %.*s\n", (int)wc.byte_len, (char *)inbox->addr + wc.wr_id * MESSAGE);
				answers++;
			}
			receive(id, inbox, wc.wr_id);
		}
		for (; answers > 0 && unsent < SENDS; answers--, unsent++)
			describe(id, outbox, 0);
		FD_ZERO(&set);
		FD_SET(events->fd, &set);
		if (select(events->fd + 1, &set, NULL, NULL, &wait) > 0) {
			rdma_ack_cm_event(await_event(RDMA_CM_EVENT_DISCONNECTED));
			ended = 1;
		}
	}
	CHECK(fclose(received) == 0);
	for (int i = 0; i < n; i++) {
		snprintf(name, sizeof name, "%s.%d", file, i);
		save(name, mrs[i]->addr, mrs[i]->length);
	}
	rdma_disconnect(id);
	return 0;
}

// Kinds of operations: WRITE of one packet, of several, with immediate, FETCH_ADD, CMP_SWAP.
#define KINDS 5
// Operations that are posted at once, each with memory of its own.
#define BATCH 16
#define SLOT 8192

// complete waits for the operations that were posted. Each atomic one has fetched what the
// word held when its turn came.
static void complete(int posted, const struct ibv_mr *data, const uint64_t *was, const int *atomic) {
	struct ibv_wc wc;
	for (int done = 0; done < posted;) {
		if (ibv_poll_cq(cq, 1, &wc) == 0) {
			sched_yield();
			continue;
		}
		if (wc.status != IBV_WC_SUCCESS) {
			fprintf(stderr, "peer: operation %lu: %s\n", (unsigned long)wc.wr_id, ibv_wc_status_str(wc.status));
			exit(1);
		}
		done++;
	}
	for (int i = 0; i < posted; i++)
		CHECK(!atomic[i] || memcmp((char *)data->addr + i * SLOT, &was[i], 8) == 0);
}

static int writer(const char *host, const char *port, const char *file, int count, const char *source) {
	struct rdma_cm_id *id;
	struct sockaddr_storage from = address(source, "0"), to = address(host, port);
	CHECK(rdma_create_id(events, &id, NULL, RDMA_PS_TCP) == 0);
	CHECK(rdma_resolve_addr(id, (struct sockaddr *)&from, (struct sockaddr *)&to, 5000) == 0);
	rdma_ack_cm_event(await_event(RDMA_CM_EVENT_ADDR_RESOLVED));
	CHECK(rdma_resolve_route(id, 5000) == 0);
	rdma_ack_cm_event(await_event(RDMA_CM_EVENT_ROUTE_RESOLVED));
	uint8_t timeout = 14; // of answers: 4.096 µs × 2^14; the default is 2 s
	CHECK(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, sizeof timeout) == 0);
	make_qp(id);
	struct ibv_mr *inbox = memory(MESSAGE), *data = memory(BATCH * SLOT);
	receive(id, inbox, 0);
	struct rdma_conn_param param = {.responder_resources = 1, .initiator_depth = 8, .retry_count = 7, .rnr_retry_count = 7};
	CHECK(rdma_connect(id, &param) == 0);
	struct rdma_cm_event *e = await_event(RDMA_CM_EVENT_ESTABLISHED);
	struct region at, told;
	memcpy(&told, e->param.conn.private_data, sizeof told);
	rdma_ack_cm_event(e);
	struct ibv_wc wc;
	while (ibv_poll_cq(cq, 1, &wc) == 0)
		sched_yield();
	CHECK(wc.status == IBV_WC_SUCCESS && wc.byte_len == sizeof at);
	memcpy(&at, inbox->addr, sizeof at);
	CHECK(memcmp(&at, &told, sizeof at) == 0);
	uint8_t *want = calloc(1, at.length);
	CHECK(want);
	srand(7);
	uint64_t was[BATCH];
	int atomic[BATCH], posted = 0;
	for (int i = 0; i < KINDS * count; i++) {
		uint8_t *slot = (uint8_t *)data->addr + posted * SLOT;
		struct ibv_sge sge = {(uintptr_t)slot, 8, data->lkey};
		struct ibv_send_wr wr = {.wr_id = i, .send_flags = IBV_SEND_SIGNALED, .sg_list = &sge, .num_sge = 1}, *bad;
		atomic[posted] = i % KINDS >= 3;
		if (atomic[posted]) {
			uint64_t off = rand() % (at.length / 8) * 8, now;
			memcpy(&was[posted], want + off, 8);
			wr.wr.atomic.remote_addr = at.address + off;
			wr.wr.atomic.rkey = at.key;
			if (i % KINDS == 3) {
				wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
				wr.wr.atomic.compare_add = rand();
				now = was[posted] + wr.wr.atomic.compare_add;
			} else { // every other one finds another value, and changes nothing
				wr.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
				wr.wr.atomic.compare_add = was[posted] + i % 2;
				wr.wr.atomic.swap = rand();
				now = i % 2 ? was[posted] : wr.wr.atomic.swap;
			}
			memcpy(want + off, &now, 8);
		} else {
			sge.length = i % KINDS == 1 ? 1025 + rand() % 4000 : 1 + rand() % 64;
			uint64_t off = rand() % (at.length - sge.length);
			for (uint32_t b = 0; b < sge.length; b++)
				slot[b] = rand();
			memcpy(want + off, slot, sge.length);
			wr.opcode = i % KINDS == 2 ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE;
			wr.imm_data = htonl(i);
			wr.wr.rdma.remote_addr = at.address + off;
			wr.wr.rdma.rkey = at.key;
		}
		CHECK(ibv_post_send(id->qp, &wr, &bad) == 0);
		if (++posted == BATCH || i == KINDS * count - 1) {
			complete(posted, data, was, atomic);
			posted = 0;
		}
	}
	save(file, want, at.length);
	CHECK(rdma_disconnect(id) == 0);
	rdma_ack_cm_event(await_event(RDMA_CM_EVENT_DISCONNECTED));
	return 0;
}

int main(int n, char **args) {
	CHECK((events = rdma_create_event_channel()));
	if (n > 5 && !strcmp(args[1], "collect"))
		return collect(args[2], args[3], args[4], n - 5, args + 5);
	if (n == 7 && !strcmp(args[1], "write"))
		return writer(args[2], args[3], args[4], atoi(args[5]), args[6]);
	fprintf(stderr, "peer collect|write, see the source\n");
	return 2;
}
