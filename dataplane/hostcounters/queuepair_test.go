package hostcounters

import (
	"encoding/binary"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/weft-telemetry/weft/inhost/evidence"
)

// attribute is a netlink attribute of values, one after the other.
func attribute(kind uint16, values ...[]byte) []byte {
	value := slices.Concat(values...)
	b := binary.NativeEndian.AppendUint16(nil, uint16(4+len(value)))
	b = binary.NativeEndian.AppendUint16(b, kind)
	b = append(b, value...)
	return append(b, make([]byte, -len(b)&3)...)
}

func number32(kind uint16, n uint32) []byte {
	return attribute(kind, binary.NativeEndian.AppendUint32(nil, n))
}

// recorded is the first netlink message, without its header, of a dump that Linux 6.1 gave of a
// device of rdma_rxe, between two ends of ibv_rc_pingpong (scripts/vm/jobs/queuepairs).
func recorded(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	b, err := hex.DecodeString(strings.Join(strings.Fields(string(text)), ""))
	if err != nil {
		t.Fatal(err)
	}
	const header = 16
	return b[header:binary.LittleEndian.Uint32(b)]
}

// TestRecordedQueuePairs reads what the kernel wrote. rdma(8) of iproute2 printed at that time:
//
//	link rxe1/1 lqpn 18 rqpn 19 type RC state RTS rq-psn 11290139 sq-psn 10202393 path-mig-state MIGRATED pdn 2 pid 151 comm ibv_rc_pingpong
//	link rxe1/1 lqpn 19 rqpn 18 type RC state RTS rq-psn 10202393 sq-psn 11290139 path-mig-state MIGRATED pdn 3 pid 154 comm ibv_rc_pingpong
//	link rxe1/1 lqpn 1 type GSI state RTS sq-psn 0 comm [ib_core]
func TestRecordedQueuePairs(t *testing.T) {
	if index, err := parseDevice(recorded(t, "rdma-devices.hex")); err != nil || index != 0 {
		t.Errorf("parseDevice = %d, %v; want 0", index, err)
	}
	var s evidence.Snapshot
	if err := parseQueuePairs(recorded(t, "queue-pairs.hex"), &s); err != nil {
		t.Fatal(err)
	}
	want := []evidence.QueuePair{
		{Device: "rxe1", Port: 1, Number: 18, Remote: 19, Type: "RC", State: "RTS", PID: 151},
		{Device: "rxe1", Port: 1, Number: 19, Remote: 18, Type: "RC", State: "RTS", PID: 154},
		{Device: "rxe1", Port: 1, Number: 1, Type: "GSI", State: "RTS", Process: "ib_core"},
	}
	if !slices.Equal(s.QueuePairs, want) {
		t.Errorf("queue pairs %+v; want %+v", s.QueuePairs, want)
	}
}

// TestQueuePairsBounded: those beyond the bound are counted, and not kept.
func TestQueuePairsBounded(t *testing.T) {
	s := &evidence.Snapshot{QueuePairs: make([]evidence.QueuePair, maxQueuePairs-1)}
	entry := attribute(attrQueuePair, number32(attrLocalNumber, 9))
	message := slices.Concat(attribute(2, []byte("rxe0\x00")), attribute(attrQueuePairs, entry, entry, entry))
	if err := parseQueuePairs(message, s); err != nil {
		t.Fatal(err)
	}
	if n := len(s.QueuePairs); n != maxQueuePairs || s.MoreQueuePairs != 2 || s.QueuePairs[n-1].Device != "rxe0" || s.QueuePairs[n-1].Number != 9 {
		t.Errorf("%d queue pairs and %d more, the last %+v; want %d and 2", n, s.MoreQueuePairs, s.QueuePairs[n-1], maxQueuePairs)
	}
}

// TestDamagedQueuePairs: the complaints name attribute and place.
func TestDamagedQueuePairs(t *testing.T) {
	for want, message := range map[string][]byte{
		"attribute 22 has 2 bytes, want 4":                        attribute(attrQueuePairs, attribute(attrQueuePair, attribute(attrRemoteNumber, []byte{1, 2}))),
		"attribute 27 has 0 bytes, want 1":                        attribute(attrQueuePairs, attribute(attrQueuePair, attribute(attrState))),
		"attribute 19 at byte 0 has a length of 200, want 4 to 8": {200, 0, attrQueuePairs, 0, 0, 0, 0, 0},
		"attribute 2 at byte 0 has a length of 3, want 4 to 4":    {3, 0, 2, 0},
		"2 bytes after the last attribute, want none or 4":        append(attribute(2, []byte("rxe0")), 0, 0),
	} {
		if err := parseQueuePairs(message, &evidence.Snapshot{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("parseQueuePairs(%x) = %v; want %q", message, err, want)
		}
	}
	if _, err := parseDevice(attribute(2, []byte("rxe0"))); err == nil || !strings.Contains(err.Error(), "without index") {
		t.Errorf("parseDevice = %v; want an error", err)
	}
}

// TestProcessesHaveNames: programs have the name that the kernel gives them; one that has ended
// has none.
func TestProcessesHaveNames(t *testing.T) {
	root := fstest.MapFS{"proc/7/comm": {Data: []byte("train\n")}}
	list := []evidence.QueuePair{{PID: 7}, {PID: 8}, {Process: "ib_core"}}
	nameProcesses(root, list)
	var owners []string
	for i := range list {
		owners = append(owners, list[i].Owner())
	}
	if want := []string{"train (pid 7)", "pid 8", "kernel ib_core"}; !slices.Equal(owners, want) {
		t.Errorf("owners %q; want %q", owners, want)
	}
}

func FuzzQueuePairs(f *testing.F) {
	f.Add(slices.Concat(attribute(2, []byte("rxe0\x00")), attribute(attrQueuePairs, attribute(attrQueuePair, number32(attrLocalNumber, 9), attribute(attrState, []byte{3})))))
	f.Add(recorded(f, "queue-pairs.hex"))
	f.Add(recorded(f, "rdma-devices.hex"))
	f.Add([]byte{200, 0, attrQueuePairs, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, message []byte) {
		var s evidence.Snapshot
		_ = parseQueuePairs(message, &s)
		// A queue pair takes an attribute, of four bytes at least.
		if len(s.QueuePairs) > len(message)/4 {
			t.Errorf("%d queue pairs of %d bytes", len(s.QueuePairs), len(message))
		}
		_, _ = parseDevice(message)
	})
}
