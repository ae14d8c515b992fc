package wireshark

import (
	"encoding/hex"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
	"github.com/weft-telemetry/weft/wire/epoch"
	"github.com/weft-telemetry/weft/wire/erspan"
	"github.com/weft-telemetry/weft/wire/flowset"
	"github.com/weft-telemetry/weft/wire/gre"
	"github.com/weft-telemetry/weft/wire/intreport"
	"github.com/weft-telemetry/weft/wire/label"
	"github.com/weft-telemetry/weft/wire/mirror"
	"github.com/weft-telemetry/weft/wire/packet"
	"github.com/weft-telemetry/weft/wire/pfc"
	"github.com/weft-telemetry/weft/wire/poll"
	"github.com/weft-telemetry/weft/wire/roce"
	"github.com/weft-telemetry/weft/wire/sflow"
)

// sample is one frame and what tshark must find in it: fields as it names
// them, several occurrences with a comma between.
type sample struct {
	name  string
	frame []byte
	want  map[string]string
}

// samples holds at least one frame of every format under wire.
func samples() []sample {
	all := ordinarySamples()
	all = append(all, rdmaSamples()...)
	all = append(all, reportSamples()...)
	all = append(all, inBandSamples()...)
	all = append(all, sflowSamples()...)
	return append(all, mirrorSamples()...)
}

func ordinarySamples() []sample {
	syn := tcp(hostA, hostB)
	return []sample{
		{"TCP in IPv4", frame(syn), map[string]string{
			"eth.src": "02:00:00:01:00:03", "ip.src": "10.0.0.2", "ip.dst": "10.1.0.3", "ip.id": "0x1234", "ip.ttl": "63",
			"ip.dsfield.dscp": "26", "ip.checksum.status": "1", "tcp.srcport": "40000", "tcp.seq_raw": "7", "tcp.flags.syn": "1", "tcp.checksum.status": "1",
		}},
		{"TCP in IPv6", frame(tcp(hostA6, hostB6)), map[string]string{
			"ipv6.src": "fd00::2", "ipv6.hlim": "63", "tcp.dstport": "80", "tcp.checksum.status": "1",
		}},
		{"802.1Q", ethernet(packet.TypeVLAN, append(packet.VLAN{PCP: 3, ID: 100, Type: packet.TypeIPv4}.AppendTo(nil), syn...)), map[string]string{
			"vlan.id": "100", "vlan.priority": "3", "tcp.dstport": "80",
		}},
		{"IP in IP", frame(ip(hostB, hostA, model.IPIP, syn)), map[string]string{"ip.src": "10.1.0.3,10.0.0.2", "tcp.dstport": "80"}},
		{"GRE", frame(ip(hostB, hostA, model.GRE, append(gre.Header{HasKey: true, Key: 9, Protocol: packet.TypeIPv4}.AppendTo(nil), syn...))), map[string]string{
			"gre.key": "0x00000009", "ip.src": "10.1.0.3,10.0.0.2",
		}},
		{"VXLAN", frame(udp(hostB, hostA, 50000, packet.VXLANPort, append(packet.VXLAN{Flags: 8, VNI: 4097}.AppendTo(nil), frame(syn)...))), map[string]string{
			"vxlan.vni": "4097", "ip.src": "10.1.0.3,10.0.0.2", "tcp.dstport": "80",
		}},
		{"ICMP", frame(ip(hostA, hostB, model.ICMP, packet.ICMP{Type: 8, Checksum: 0xf7fd, Rest: 2}.AppendTo(nil))), map[string]string{"icmp.type": "8", "icmp.checksum.status": "1", "icmp.seq": "2"}},
		{"PFC", pfc.Pause(macA, 3, 0x1234).AppendTo(nil), map[string]string{
			"eth.dst": "01:80:c2:00:00:01", "macc.opcode": "0x0101", "macc.cbfc.enbv.c3": "1", "macc.cbfc.enbv.c2": "0", "macc.cbfc.pause_time.c3": "4660",
		}},
		{"PAUSE", pfc.PauseLink(macA, 77).AppendTo(nil), map[string]string{"macc.opcode": "0x0001", "macc.pause_time": "77"}},
	}
}

func rdmaSamples() []sample {
	bth := func(op roce.Opcode) roce.BTH {
		return roce.BTH{Opcode: op, MigReq: true, PKey: roce.DefaultPKey, DestQP: 0x123456, PSN: 0xabcdef, AckReq: true}
	}
	reth := roce.RETH{VA: 0x1122334455667788, RKey: 0xcafe, Length: 8}
	data := []byte{1, 2, 3, 4, 5, 6, 7, 8}
	common := func(more map[string]string) map[string]string {
		more["udp.dstport"] = "4791"
		more["infiniband.bth.destqp"] = "0x123456"
		more["infiniband.bth.psn"] = "11259375"
		return more
	}
	return []sample{
		{"RDMA write", frame(rdma(hostA, hostB, roce.Packet{BTH: bth(roce.WriteOnly), RETH: reth, Payload: data})), common(map[string]string{
			"infiniband.bth.opcode": "10", "infiniband.reth.va": "0x1122334455667788", "infiniband.reth.r_key": "0x0000cafe", "infiniband.reth.dmalen": "8", "infiniband.bth.a": "1",
		})},
		{"RDMA write with immediate", frame(rdma(hostA, hostB, roce.Packet{BTH: bth(roce.WriteOnlyImm), RETH: reth, Imm: 0x01020304, Payload: data})), common(map[string]string{
			"infiniband.bth.opcode": "11", "infiniband.immdt": "01020304,01020304",
		})},
		{"RDMA fetch and add", frame(rdma(hostA, hostB, roce.Packet{BTH: bth(roce.FetchAdd), Atomic: roce.AtomicETH{VA: 64, RKey: 5, SwapAdd: 7}})), common(map[string]string{
			"infiniband.bth.opcode": "20", "infiniband.reth.va": "0x0000000000000040", "infiniband.reth.r_key": "0x00000005", "infiniband.atomiceth.swapdt": "7",
		})},
		{"RDMA acknowledgement over IPv6", frame(rdma(hostA6, hostB6, roce.Packet{BTH: bth(roce.Acknowledge), AETH: roce.AETH{Syndrome: roce.Ack(3), MSN: 9}})), common(map[string]string{
			"ipv6.src": "fd00::2", "infiniband.bth.opcode": "17", "infiniband.aeth.msn": "9",
		})},
	}
}

func reportSamples() []sample {
	dtaFrame := func(payload []byte) []byte { return frame(udp(hostA, hostB, 40041, dta.Port, payload)) }
	w := dta.NewWriter(12, 99)
	w.Begin(make([]byte, 1400))
	for _, r := range []dta.Report{
		{Primitive: dta.KeyWrite, Redundancy: 2, Key: key4.AppendTo(nil), Data: []byte{1, 2, 3, 4}},
		{Primitive: dta.Append, Immediate: true, List: 7, Data: []byte{5, 6}},
		{Primitive: dta.KeyIncrement, Retransmit: true, Redundancy: 4, Key: key6.AppendTo(nil), Delta: 1 << 40},
		{Primitive: dta.Postcarding, Redundancy: 1, Hop: 2, Path: 5, Key: []byte{9}, Data: []byte{0, 0, 0, 8}},
	} {
		if err := w.AddReport(&r); err != nil {
			panic(err)
		}
	}
	plain := w.Finish()
	mac := dta.NewMAC(3, []byte("secret"))
	signed, err := mac.AppendSigned(nil, plain, 5, 6)
	if err != nil {
		panic(err)
	}
	answer := dta.Answer{KeyID: 3, Reporter: 12, Start: 5, Sent: 6}.AppendTo(nil)
	for first := range dta.Seq(2) {
		answer = dta.Ack{Verdict: dta.Gap, Reporter: 12, First: 99 + first, Count: 1}.AppendTo(answer)
	}
	answer = mac.AppendMAC(answer, answer)
	macOf := func(b []byte) string { return hex.EncodeToString(b[len(b)-dta.MACSize:]) }
	all := []sample{
		{"DTA v2", dtaFrame(signed), map[string]string{
			"weft.dta.magic": "0xd2", "weft.dta.key_id": "3", "weft.dta.count": "4", "weft.dta.reporter": "12", "weft.dta.seq": "99",
			"weft.dta.start": "5", "weft.dta.sent": "6", "weft.dta.mac": macOf(signed),
			"weft.dta.primitive": "1,2,3,4", "weft.dta.hop": "2", "weft.dta.data": "01020304,0506,00000008",
		}},
		{"DTA v2 acknowledgements", frame(udp(hostB, hostA, dta.Port, 50123, answer)), map[string]string{
			"weft.ack.magic": "0xa2,0xd1,0xd1", "weft.ack.key_id": "3", "weft.ack.reporter": "12,12,12", "weft.ack.start": "5", "weft.ack.sent": "6",
			"weft.ack.first": "99,100", "weft.ack.mac": macOf(answer),
		}},
		{"DTA v1", dtaFrame(plain), map[string]string{
			"weft.dta.magic": "0xd1", "weft.dta.count": "4", "weft.dta.reporter": "12", "weft.dta.seq": "99",
			"weft.dta.primitive": "1,2,3,4", "weft.dta.immediate": "0,1,0,0", "weft.dta.retransmit": "0,0,1,0", "weft.dta.copies": "1,0,3,0",
			"weft.dta.key_len": "13,0,37,1", "weft.dta.data_len": "4,2,8,4", "weft.dta.list": "7", "weft.dta.delta": "1099511627776",
			"weft.dta.hop": "2", "weft.dta.path": "5", "weft.dta.src": "10.0.0.2", "weft.dta.dst6": "fd00::3", "weft.dta.srcport": "49152,40000",
			"weft.dta.data": "01020304,0506,00000008",
		}},
		{"DTA acknowledgement", frame(udp(hostB, hostA, dta.Port, dta.AckPort, dta.Ack{Verdict: dta.RateLimited, Reporter: 12, First: 99, Count: 3}.AppendTo(nil))), map[string]string{
			"weft.ack.verdict": "2", "weft.ack.reporter": "12", "weft.ack.first": "99", "weft.ack.count": "3",
		}},
		{"DTA acknowledgement to the reporter's port", frame(udp(hostB, hostA, dta.Port, 50123, dta.Ack{Verdict: dta.Gap, Reporter: 12, First: 99, Count: 3}.AppendTo(nil))), map[string]string{
			"weft.ack.verdict": "1", "weft.ack.reporter": "12",
		}},
		{"DTA prototype acknowledgement", frame(udp(hostB, hostA, dta.Port, dta.AckPort, dta.PrototypeAck{Seq: 200, Nack: true}.AppendTo(nil))), map[string]string{
			"weft.ack.proto.seq": "200", "weft.ack.proto.nack": "1",
		}},
	}
	key := []byte{0xde, 0xad, 0xbe, 0xef}
	for _, p := range []struct {
		name string
		dta.Prototype
		want map[string]string
	}{
		{"key-write, 2-byte base", dta.Prototype{Layout: dta.Base2, Report: dta.Report{Primitive: dta.KeyWrite, Immediate: true, Redundancy: 2, Key: key, Data: []byte{1, 2, 3, 4}}}, map[string]string{"weft.dta.proto.copies": "2", "weft.dta.proto.key": "0xdeadbeef", "weft.dta.data": "01020304", "weft.dta.proto.immediate": "1"}},
		{"key-write, 3-byte base", dta.Prototype{Layout: dta.Base3, Seq: 8, Report: dta.Report{Primitive: dta.KeyWrite, Redundancy: 3, Retransmit: true, Key: key, Data: make([]byte, 12)}}, map[string]string{"weft.dta.proto.seq": "8", "weft.dta.proto.retransmit": "1", "weft.dta.proto.copies": "3"}},
		{"append, 3-byte base", dta.Prototype{Layout: dta.Base3, Seq: 9, Report: dta.Report{Primitive: dta.Append, List: 3, Data: []byte{1, 2, 3, 4}}}, map[string]string{"weft.dta.list": "3", "weft.dta.data": "01020304"}},
		{"increment, 2-byte base", dta.Prototype{Layout: dta.Base2, Report: dta.Report{Primitive: dta.KeyIncrement, Redundancy: 1, Key: key, Delta: 5}}, map[string]string{"weft.dta.delta": "5"}},
		{"postcard, 3-byte base", dta.Prototype{Layout: dta.Base3, Seq: 1, Report: dta.Report{Primitive: dta.Postcarding, Redundancy: 1, Hop: 2, Key: key, Data: []byte{0, 0, 0, 9}}}, map[string]string{"weft.dta.proto.hop": "3", "weft.dta.data": "00000009"}},
	} {
		all = append(all, sample{"DTA prototype " + p.name, dtaFrame(p.AppendTo(nil)), p.want})
	}

	appended := func(data []byte) []byte {
		w.Begin(make([]byte, 1400))
		if err := w.AddReport(&dta.Report{Primitive: dta.Append, List: 12, Data: data}); err != nil {
			panic(err)
		}
		return dtaFrame(w.Finish())
	}
	head := flowset.Header{
		Switch: 12, Scope: 3, Seed: 0xfeed, Slot: 8, Start: 80_000_000, Length: 10 * time.Millisecond,
		Geometry: flowset.Geometry{FilterHashes: 7, FilterBits: 64, Tables: 3, TableCells: 5},
		Layout:   flowset.Layout{Key: 13, Flows: 2, Packets: 4, Bytes: 8, Ports: 2},
		Counts:   flowset.Counts{Packets: 11, Bytes: 1200, Flows: 2, Unkeyed: 1, Missed: 4},
	}
	cell := flowset.Cell{Flows: 2, Packets: 10, Bytes: 1000, InPort: 3, OutPort: 6}
	copy(cell.Key[:], key4.AppendTo(nil))
	cells := head.Layout.AppendCell(head.Layout.AppendCell(nil, &cell), &flowset.Cell{Flows: 1, Packets: 1, Bytes: 200})
	narrow := head
	narrow.Layout = flowset.Layout{Key: 13, Flows: 1, Packets: 2, Ports: 1}
	report4 := epoch.Chunk{
		Header: epoch.Header{Flags: epoch.Evictions, Switch: 12, Event: poll.Event{Host: 5, Number: 77}, Snapshot: 1_000_000, EpochLength: time.Millisecond, Dropped: 6},
		Index:  1, Total: 3,
	}
	report4.Records = epoch.Port{Port: 4, Priority: 3, Paused: true, Remaining: 5000, PauseFrames: 9, Queued: 65536, Sent: 100}.AppendTo(nil)
	report4.Records = epoch.PortEpoch{Epoch: 31, Port: 4, Priority: 3, Packets: 50, Paused: 20, PauseFrames: 2, Depth: 400, PausedDepth: 700}.AppendTo(report4.Records)
	report4.Records = epoch.Flow{Epoch: 31, Out: 4, In: 1, Priority: 3, Evicted: true, Key: key4, Packets: 40, Paused: 18, Bytes: 41920, Depth: 300, PausedDepth: 600, First: 12, Last: 990}.AppendTo(report4.Records)
	report4.Records = epoch.Flow{Epoch: 32, Out: 4, In: 2, Priority: 3, Key: key6, Packets: 10}.AppendTo(report4.Records)
	report4.Records = epoch.Meter{Epoch: 31, In: 1, Out: 4, Priority: 3, Packets: 45, Bytes: 47160}.AppendTo(report4.Records)
	backlog := epoch.PortPairBacklog{In: 1, Out: 4, Priority: 3, Packets: 7, Bytes: 7336}
	report4.Records = epoch.Pause{Port: 4, Priority: 3, LastStart: 999_000, LastEnd: 900_000, BurstStart: 800_000, BytesAtBurstStart: 2096, Pauses: 3, PausedTime: 50_000}.AppendTo(report4.Records)
	report4.Records = epoch.FlowBacklog{PortPairBacklog: backlog, Key: key4}.AppendTo(report4.Records)
	report4.Records = epoch.FlowBacklog{PortPairBacklog: backlog, Key: key6}.AppendTo(report4.Records)
	report4.Records = backlog.AppendTo(report4.Records)
	report4.Records = epoch.CongestionEpisode{Port: 4, Priority: 3, First: 700_000, Last: 800_000, MaxBytes: 81920}.AppendTo(report4.Records)
	report4.Records = epoch.PollRef{ReceivedAt: 1_050_000}.AppendTo(report4.Records)
	pauses := epoch.Intervals{Port: 4, Priority: 3, Open: true}
	pauses.Add(epoch.Interval{Start: 90_000, End: 80_000, Bytes: 4096})
	pauses.Add(epoch.Interval{Start: 1000, Bytes: 8192})
	congestion := epoch.Intervals{Congestion: true, Port: 4, Priority: 3, Earlier: epoch.Earlier{Count: 5, Start: 500_000, End: 400_000, Total: 60_000, Bytes: 70_000}}
	congestion.Add(epoch.Interval{Start: 300_000, End: 200_000, Bytes: 81_920})
	report4.Records = congestion.AppendTo(pauses.AppendTo(report4.Records))
	report4.Records = epoch.Settings{
		CongestionThreshold: 4000, PauseBurstGap: epoch.PauseBurstGap, IntervalMemory: 10 * time.Millisecond,
		MTU: 4200, Xoff: 65_536, Xon: 32_768, PauseIntervals: 16, CongestionIntervals: 8,
	}.AppendTo(report4.Records)
	history := epoch.BacklogHistory{In: 1, Out: 4, Priority: 3, Cut: true}
	history.Add(epoch.BacklogPoint{At: 70_000})
	history.Add(epoch.BacklogPoint{At: 60_000, Bytes: 12_288})
	report4.Records = history.AppendTo(report4.Records)

	md := intreport.Metadata{
		Bits:    intreport.BitPorts | intreport.BitHopLatency | intreport.BitQueue | intreport.BitIngressTime | intreport.BitEgressTime | intreport.BitUtilisation,
		Ingress: 1, Egress: 4, HopLatency: 800, Queue: 3, QueueDepth: 4096, IngressTime: 1000, EgressTime: 1800, Utilisation: 55,
	}
	ir := intreport.Group{Hardware: 2, Seq: 1000, Node: 12}.AppendTo(nil)
	ir = intreport.Report{Type: intreport.INT, Inner: intreport.InnerEthernet, Flags: intreport.Tracked | intreport.Congested, Domain: 3, Metadata: md, Contents: frame(tcp(hostA, hostB))}.AppendTo(ir)

	return append(
		all,
		sample{"flowset cells", appended(flowset.Chunk{Header: head, Section: flowset.Cells, First: 4, Data: cells}.AppendTo(nil)), map[string]string{
			"weft.flowset.section": "2", "weft.flowset.switch": "12", "weft.flowset.scope": "3", "weft.flowset.seed": "0x000000000000feed", "weft.flowset.slot": "8",
			"weft.flowset.start": "80000000", "weft.flowset.length": "10000000", "weft.flowset.filter_bits": "64", "weft.flowset.cells": "5", "weft.flowset.tables": "3",
			"weft.flowset.packets": "11", "weft.flowset.bytes": "1200", "weft.flowset.flows": "2", "weft.flowset.unkeyed": "1", "weft.flowset.missed": "4",
			"weft.flowset.first": "4", "weft.flowset.units": "2", "weft.flowset.cell.flows": "2,1", "weft.flowset.cell.packets": "10,1", "weft.flowset.cell.bytes": "1000,200",
			"weft.flowset.cell.in": "3,0", "weft.flowset.cell.out": "6,0", "weft.flowset.cell.key": "0a0000020a010003c00012b711,00000000000000000000000000",
		}},
		sample{"flowset narrow cell", appended(flowset.Chunk{Header: narrow, Section: flowset.Cells, First: 4, Data: narrow.Layout.AppendCell(nil, &cell)}.AppendTo(nil)), map[string]string{
			"weft.flowset.units": "1", "weft.flowset.cell.flows": "2", "weft.flowset.cell.packets": "10",
			"weft.flowset.cell.in": "3", "weft.flowset.cell.out": "6", "weft.flowset.cell.key": "0a0000020a010003c00012b711",
		}},
		sample{"flowset filter", appended(flowset.Chunk{Header: head, Section: flowset.Filter, First: 2, Data: []byte{0xaa, 0xbb}}.AppendTo(nil)), map[string]string{
			"weft.flowset.section": "1", "weft.flowset.filter_hashes": "7", "weft.flowset.filter": "aabb", "weft.flowset.units": "2",
		}},
		sample{"epoch telemetry", appended(report4.AppendTo(nil)), map[string]string{
			"weft.epoch.flags": "0x02", "weft.epoch.switch": "12", "weft.epoch.host": "5", "weft.epoch.event": "77", "weft.epoch.index": "1", "weft.epoch.total": "3",
			"weft.epoch.snapshot": "1000000", "weft.epoch.length": "1000000", "weft.epoch.dropped": "6", "weft.epoch.kind": "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15",
			"weft.epoch.paused_now": "1", "weft.epoch.remaining": "5000", "weft.epoch.pause_frames_total": "9", "weft.epoch.queued": "65536", "weft.epoch.sent": "100",
			"weft.epoch.epoch": "31,31,32,31", "weft.epoch.port": "4,4,4,4,4,4", "weft.epoch.packets": "50,40,10,45,7,7,7", "weft.epoch.paused": "20,18,0", "weft.epoch.pause_frames": "2",
			"weft.epoch.depth": "400,300,0", "weft.epoch.paused_depth": "700,600,0", "weft.epoch.bytes": "41920,0,47160,7336,7336,7336", "weft.epoch.evicted": "1,0",
			"weft.epoch.src": "10.0.0.2,10.0.0.2", "weft.epoch.src6": "fd00::2,fd00::2", "weft.epoch.in": "1,2,1,1,1,1,1", "weft.epoch.out": "4,4,4,4,4,4,4",
			"weft.epoch.last_start": "999000", "weft.epoch.last_end": "900000", "weft.epoch.burst_start": "800000", "weft.epoch.bytes_at_burst_start": "2096", "weft.epoch.pause_count": "3", "weft.epoch.paused_time": "50000",
			"weft.epoch.first_enqueue": "12,0", "weft.epoch.last_enqueue": "990,0", "weft.epoch.episode_first": "700000", "weft.epoch.episode_last": "800000", "weft.epoch.episode_max": "81920", "weft.epoch.poll_received": "1050000",
			"weft.epoch.interval_open": "1,0", "weft.epoch.interval_earlier": "0,1", "weft.epoch.interval_start": "90000,1000,300000", "weft.epoch.interval_end": "80000,0,200000", "weft.epoch.interval_bytes": "4096,8192,81920",
			"weft.epoch.earlier_count": "5", "weft.epoch.earlier_start": "500000", "weft.epoch.earlier_end": "400000", "weft.epoch.earlier_total": "60000", "weft.epoch.earlier_bytes": "70000",
			"weft.epoch.congestion_threshold": "4000", "weft.epoch.burst_gap": "100000", "weft.epoch.interval_memory": "10000000", "weft.epoch.mtu": "4200", "weft.epoch.xoff": "65536", "weft.epoch.xon": "32768",
			"weft.epoch.pause_intervals": "16", "weft.epoch.congestion_intervals": "8",
			"weft.epoch.history_cut": "1", "weft.epoch.backlog_at": "70000,60000", "weft.epoch.backlog_bytes": "0,12288",
		}},
		sample{"INT report", frame(udp(hostA, hostB, 5000, intreport.DefaultPort, ir)), map[string]string{
			"weft.int.hardware": "2", "weft.int.seq": "1000", "weft.int.node": "12", "weft.int.type": "1", "weft.int.inner": "3", "weft.int.tracked": "1", "weft.int.congested": "1", "weft.int.dropped": "0",
			"weft.int.domain": "0x0003", "weft.int.in": "1", "weft.int.out": "4", "weft.int.latency": "800", "weft.int.queue": "3", "weft.int.depth": "4096",
			"weft.int.in_time": "1000", "weft.int.out_time": "1800", "weft.int.utilisation": "55", "ip.src": "10.0.0.2,10.0.0.2", "tcp.dstport": "80",
		}},
	)
}

func inBandSamples() []sample {
	item := label.Item{
		Switch: 12, Ingress: 1, Egress: 4, Time: 5_000_000_000_000, Latency: 900, EnqueueDepth: 70000, DequeueDepth: 64000, Queue: 3, Utilisation: 65535,
	}
	older := item
	older.Switch, older.Time = 8, 4_999_999_999_000
	labelled := func(pkt []byte) []byte {
		pkt = append(make([]byte, 0, 2000), pkt...)
		pkt = must(label.Push(pkt, &older, label.Params{}))
		return frame(must(label.Push(pkt, &item, label.Params{})))
	}
	want := map[string]string{
		"weft.label.int_num": "2", "weft.label.max_hop": "5", "weft.label.switch": "12,8", "weft.label.in": "1,1", "weft.label.out": "4,4",
		"weft.label.time": "5000000000000,4999999999000", "weft.label.latency": "900,900", "weft.label.enqueue": "70000,70000", "weft.label.dequeue": "64000,64000",
		"weft.label.queue": "3,3", "weft.label.utilisation": "65535,65535",
	}
	with := func(more map[string]string) map[string]string {
		for k, v := range want {
			more[k] = v
		}
		return more
	}
	polls := func(p poll.Poll) []byte {
		return ethernet(poll.EtherType, append(p.AppendTo(nil), make([]byte, 46)...))
	}
	p := poll.Poll{Layout: poll.Weft, Flag: poll.Both, HopLimit: 9, InPort: 2, OutPort: 300, Event: poll.Event{Host: 5, Number: 77}, Origin: 123456789, Unexplained: 90, Flow: key4}
	p6, proto := p, p
	p6.Flow, p6.Returning = key6, true
	proto.Layout, proto.Flag = poll.Prototype, poll.Victim
	return []sample{
		{"labels on TCP", labelled(tcp(hostA, hostB)), with(map[string]string{"ip.proto": "253", "ip.checksum.status": "1", "weft.label.next": "6", "tcp.dstport": "80"})},
		{"labels on UDP over IPv6", labelled(udp(hostA6, hostB6, 1, 9999, []byte{1})), with(map[string]string{"ipv6.nxt": "253", "weft.label.next": "17", "udp.dstport": "9999"})},
		{"poll", polls(p), map[string]string{
			"weft.poll.flag": "3", "weft.poll.version": "1", "weft.poll.hop_limit": "9", "weft.poll.in": "2", "weft.poll.out": "300", "weft.poll.host": "5", "weft.poll.event": "77",
			"weft.poll.origin": "123456789", "weft.poll.returning": "0", "weft.poll.unexplained": "90", "weft.poll.src": "10.0.0.2", "weft.poll.dst": "10.1.0.3", "weft.poll.srcport": "49152", "weft.poll.dstport": "4791", "weft.poll.proto": "17",
		}},
		{"poll, IPv6 victim", polls(p6), map[string]string{"weft.poll.returning": "1", "weft.poll.unexplained": "0", "weft.poll.src6": "fd00::2", "weft.poll.dst6": "fd00::3", "weft.poll.dstport": "80"}},
		{"poll, prototype", polls(proto), map[string]string{
			"weft.poll.flag": "1", "weft.poll.version": "0", "weft.poll.proto.in": "2", "weft.poll.proto.out": "300", "weft.poll.proto.event": "77",
			"weft.poll.src": "10.0.0.2", "weft.poll.dst": "10.1.0.3", "weft.poll.srcport": "49152", "weft.poll.dstport": "4791",
		}},
	}
}

// sflowSamples has one datagram with a sample of every kind. This tshark knows neither
// drop notifications nor the records of queues, and steps over them.
func sflowSamples() []sample {
	h := sflow.Header{Agent: hostB, SubAgent: 2, Seq: 77, Uptime: 12345 * time.Millisecond, Samples: 3}
	flow := sflow.Sample{
		Kind: sflow.Flow, Seq: 9, Source: sflow.Source{Index: 5}, Rate: 256, Pool: 2560, In: sflow.Interface{Value: 5}, Out: sflow.Interface{Value: 6},
		Has: sflow.HasPacket | sflow.HasSwitched, Packet: sflow.Packet{Protocol: sflow.HeaderEthernet, Length: 1522, Stripped: 4, Header: frame(tcp(hostA, hostB))},
		Switched: sflow.Switched{InVLAN: 100, InPriority: 3, OutVLAN: 100, OutPriority: 3},
	}
	count := sflow.Sample{
		Kind: sflow.Count, Seq: 4, Source: sflow.Source{Index: 5}, Has: sflow.HasPort | sflow.HasEthernet,
		Port: sflow.IfCounters{IfIndex: 5, Speed: 100e9, InOctets: 1 << 40, OutDiscards: 12}, Ethernet: sflow.EthernetCounters{FCSErrors: 3},
	}
	drop := sflow.Sample{Kind: sflow.Drop, Seq: 1, Reason: sflow.NoBufferSpace, Has: sflow.HasPacket, Packet: flow.Packet}
	b := drop.AppendTo(count.AppendTo(flow.AppendTo(h.AppendTo(nil))))
	return []sample{{"sFlow", frame(udp(hostB, hostA, 6343, sflow.Port, b)), map[string]string{
		"sflow_245.sub_agent_id": "2", "sflow_245.sequence_number": "77", "sflow_245.sysuptime": "12345", "sflow_245.numsamples": "3", "sflow_245.sampletype": "3,4,5",
		"sflow.flow_sample.sampling_rate": "256", "sflow_245.header.frame_length": "1522", "sflow_245.ifindex": "5", "sflow_245.ifinoct": "1099511627776",
		"sflow_245.ifoutdisc": "12", "sflow_245.dot3StatsFCSErrors": "3", "sflow.flow_sample.input_interface_value": "5", "sflow.flow_sample.output_interface_value": "6",
		"tcp.dstport": "80",
	}}}
}

func mirrorSamples() []sample {
	inner := frame(tcp(hostA, hostB))
	mirrored := func(m erspan.Mirror) []byte {
		m.Frame = inner
		return frame(ip(hostB, hostA, model.GRE, m.AppendTo(nil)))
	}
	base := map[string]string{"ip.src": "10.1.0.3,10.0.0.2", "tcp.dstport": "80"}
	with := func(more map[string]string) map[string]string {
		for k, v := range base {
			if more[k] == "" {
				more[k] = v
			}
		}
		return more
	}
	copied := dta.NewWriter(12, 0)
	copied.Begin(make([]byte, 1400))
	m := mirror.Mirror{Reasons: mirror.Flag | mirror.Rule, Switch: 12, In: 3, Out: 4, Time: 12345, Length: 1500, Frame: inner}
	if err := copied.AddReport(&dta.Report{Primitive: dta.Append, List: 7, Data: m.AppendTo(nil)}); err != nil {
		panic(err)
	}
	return []sample{
		{"ERSPAN I", mirrored(erspan.Mirror{Kind: erspan.TypeI}), with(map[string]string{"gre.proto": "0x88be"})},
		{"ERSPAN II", mirrored(erspan.Mirror{Kind: erspan.TypeII, GRE: gre.Header{Seq: 5}, VLAN: 100, COS: 3, Session: 7, Index: 9}), with(map[string]string{
			"erspan.version": "1", "erspan.vlan": "100", "erspan.cos": "3", "erspan.spanid": "7",
		})},
		{"ERSPAN III", mirrored(erspan.Mirror{Kind: erspan.TypeIII, VLAN: 100, Session: 7, Timestamp: 123456, PDU: true, Hardware: 2, Granularity: erspan.Per100ns}), with(map[string]string{
			"erspan.version": "2", "erspan.vlan": "100", "erspan.spanid": "7", "erspan.timestamp": "123456", "erspan.hw": "2",
		})},
		{"mirror in DTA", frame(udp(hostA, hostB, 40041, dta.Port, copied.Finish())), with(map[string]string{
			"ip.src": "10.0.0.2,10.0.0.2", "weft.mirror.flag": "1", "weft.mirror.sample": "0", "weft.mirror.rule": "1", "weft.mirror.switch": "12", "weft.mirror.in": "3",
			"weft.mirror.out": "4", "weft.mirror.time": "12345", "weft.mirror.length": "1500",
		})},
		{"Mellanox mirror", mirrored(erspan.Mirror{Kind: erspan.Mellanox}), with(map[string]string{"gre.proto": "0x8949"})},
	}
}
