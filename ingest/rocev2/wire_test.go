package rocev2

import (
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-telemetry/weft/wire/roce"
)

// TestCRCHoldsOnTheWire captures packets of both sides with the headers that the
// kernel made: the invariant CRC, which covers those, is valid. So another host's
// NIC accepts them.
func TestCRCHoldsOnTheWire(t *testing.T) {
	raw, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_UDP)
	if errors.Is(err, unix.EPERM) {
		t.Skip("capturing packets needs CAP_NET_RAW")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(raw)
	wait := unix.NsecToTimeval(int64(time.Minute))
	if err := unix.SetsockoptTimeval(raw, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &wait); err != nil {
		t.Fatal(err)
	}
	s, _ := serve(t, "127.0.0.1:0", memory(t), nil)
	capturePort(t, raw, s.Addr().Port())
	c := dial(t, s, "tor1")
	run(t, c.Run)
	put(c, reports(0, 20))
	requests, answers := 0, 0
	buf := make([]byte, 4096)
	for requests < 20 || answers < 1 {
		n, _, err := unix.Recvfrom(raw, buf, 0)
		if errors.Is(err, unix.EINTR) {
			continue // a signal of the Go runtime
		}
		if err != nil {
			t.Fatalf("after %d requests and %d answers: %v", requests, answers, err)
		}
		if n < 28 {
			continue
		}
		src, dst := binary.BigEndian.Uint16(buf[20:]), binary.BigEndian.Uint16(buf[22:])
		switch {
		case dst == s.Addr().Port():
			requests++
		case src == s.Addr().Port():
			answers++
		default:
			continue // of other processes
		}
		if err := roce.CheckICRC(buf[:n]); err != nil {
			t.Fatalf("%x: %v", buf[:n], err)
		}
	}
}

// capturePort lets only UDP packets from and to a port into a raw socket: what other
// processes send would fill its buffer.
func capturePort(t *testing.T, socket int, port uint16) {
	t.Helper()
	const accept, drop = 1 << 16, 0
	filter := []unix.SockFilter{
		{Code: unix.BPF_LDX | unix.BPF_B | unix.BPF_MSH, K: 0}, // the length of the IPv4 header
		{Code: unix.BPF_LD | unix.BPF_H | unix.BPF_IND, K: 0},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: uint32(port), Jt: 2},
		{Code: unix.BPF_LD | unix.BPF_H | unix.BPF_IND, K: 2},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: uint32(port), Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: accept},
		{Code: unix.BPF_RET | unix.BPF_K, K: drop},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.SetsockoptSockFprog(socket, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &program); err != nil {
		t.Fatal(err)
	}
}
