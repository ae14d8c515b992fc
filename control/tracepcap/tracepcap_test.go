package tracepcap

import (
	"bytes"
	"encoding/binary"
	"encoding/csv"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/wire/checksum"
	"github.com/weft-telemetry/weft/wire/packet"
)

func at(µs int) time.Time { return time.Unix(0, int64(µs)*1000).UTC() }

func hop(name string, µs int, ttl, depth uint8) record.TraceHop {
	return record.TraceHop{Time: at(µs), Switch: name, In: 1, Out: 2, TTL: ttl, DSCP: 26, ECN: 3, Depth: depth}
}

// frame is the start of a TCP packet of 1500 bytes.
func frame(v6 bool) []byte {
	tcp := packet.TCP{SrcPort: 4000, DstPort: 80, Flags: uint16(packet.ACK)}.AppendTo(nil)
	tcp = append(tcp, make([]byte, 40)...)
	if v6 {
		ip := packet.IPv6{Length: 1446, NextHeader: model.TCP, HopLimit: 64, Src: model.Addr{Hi: 1 << 60}, Dst: model.Addr{Hi: 2 << 60}}
		return append(ip.AppendTo(packet.Ethernet{Type: packet.TypeIPv6}.AppendTo(nil)), tcp...)
	}
	ip := packet.IPv4{Length: 1486, ID: 7, TTL: 64, Proto: model.TCP, Src: 10<<24 | 2, Dst: 10<<24 | 3}
	b := ip.AppendTo(nil)
	binary.BigEndian.PutUint16(b[10:], checksum.Of(b))
	return append(append(packet.Ethernet{Type: packet.TypeIPv4}.AppendTo(nil), b...), tcp...)
}

func traces() []record.Trace {
	return []record.Trace{
		{End: "lost", Why: "sample", Frame: frame(false), Hops: []record.TraceHop{hop("tor0", 1, 64, 1), hop("leaf0", 3, 63, 1), hop("tor0", 9, 60, 2)}},
		{End: "arrived", Why: "debug", Frame: frame(true), Hops: []record.TraceHop{hop("tor1", 20, 61, 1)}},
		{End: "unknown", Why: "protocol", Frame: make([]byte, 20), Hops: []record.TraceHop{hop("tor1", 21, 0, 0)}},
	}
}

func write(t *testing.T, list []record.Trace) []byte {
	t.Helper()
	var b bytes.Buffer
	w := NewWriter(&b, "three packets")
	for i := range list {
		if err := w.Write(&list[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// tshark reads fields of a file.
func tshark(t *testing.T, file []byte, fields ...string) [][]string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "traces.pcapng")
	if err := os.WriteFile(name, file, 0o666); err != nil {
		t.Fatal(err)
	}
	args := []string{"-r", name, "-o", "ip.check_checksum:TRUE", "-T", "fields", "-E", "separator=,", "-E", "quote=d"}
	for _, f := range fields {
		args = append(args, "-e", f)
	}
	var stderr bytes.Buffer
	cmd := exec.Command("tshark", args...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("tshark: %v\n%s(install it: scripts/need tshark:tshark)", err, &stderr)
	}
	rows, err := csv.NewReader(bytes.NewReader(out)).ReadAll()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return rows
}

func TestTsharkReadsTraces(t *testing.T) {
	rows := tshark(t, write(t, traces()), "frame.interface_name", "frame.time_epoch", "frame.len", "ip.ttl", "ip.dsfield.dscp", "ip.checksum.status", "ipv6.hlim", "ipv6.tclass", "frame.comment")
	want := []string{
		"tor0|0.000001000|1500|64|26|1|||trace 1, hop 1 of 3: tor0, in port 1, out port 2, TTL 64; TTL, DSCP and ECN as seen here, all else as seen first",
		"leaf0|0.000003000|1500|63|26|1|||trace 1, hop 2 of 3: leaf0, in port 1, out port 2, TTL 63; TTL, DSCP and ECN as seen here, all else as seen first",
		"tor0|0.000009000|1500|64|0|1|||trace 1, hop 3 of 3: tor0, in port 1, out port 2, TTL 60; as seen first; here under 2 IP headers; mirrored for sample; end: lost",
		"tor1|0.000020000|1500||||61|0x0000006b|trace 2, hop 1 of 1: tor1, in port 1, out port 2, TTL 61; TTL, DSCP and ECN as seen here, all else as seen first; mirrored for debug; end: arrived",
		"tor1|0.000021000|20||||||trace 3, hop 1 of 1: tor1, in port 1, out port 2, TTL 0; as seen first; mirrored for protocol; end: unknown",
	}
	if len(rows) != len(want) {
		t.Fatalf("tshark reads %d frames: %v; want %d", len(rows), rows, len(want))
	}
	for i, row := range rows {
		row[1] = strings.TrimPrefix(row[1], "0") // some versions print ".000001"
		if got := strings.Join(row, "|"); got != want[i] && got != strings.Replace(want[i], "|0.", "|.", 1) {
			t.Errorf("frame %d:\n%s; want\n%s", i, got, want[i])
		}
	}
}

func TestNoTraces(t *testing.T) {
	if rows := tshark(t, write(t, nil), "frame.len"); len(rows) != 0 {
		t.Errorf("tshark reads %v in an empty file", rows)
	}
}
