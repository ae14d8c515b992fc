package ebpf

import (
	"net"
	"os"
	"testing"
	"time"
)

// TestDropsHaveTheKernelsReason sends datagrams to a port without a socket, and to a socket
// that is full: the kernel's own reasons are counted, at least as often as this test did it.
func TestDropsHaveTheKernelsReason(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to load eBPF programs")
	}
	d, err := WatchDrops()
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	before, err := d.Counts()
	if err != nil {
		t.Fatal(err)
	}
	const datagrams = 50
	full, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	if err := full.SetReadBuffer(4096); err != nil {
		t.Fatal(err)
	}
	closed, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	nobody := closed.LocalAddr().(*net.UDPAddr)
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	sender, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer sender.Close()
	for range datagrams {
		for _, to := range []*net.UDPAddr{nobody, full.LocalAddr().(*net.UDPAddr)} {
			if _, err := sender.WriteToUDP(make([]byte, 1000), to); err != nil {
				t.Fatal(err)
			}
		}
	}
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		after, err := d.Counts()
		if err != nil {
			t.Fatal(err)
		}
		// A socket with a buffer of 4 KB takes a few.
		if after["no socket"]-before["no socket"] >= datagrams && after["socket rcvbuff"]-before["socket rcvbuff"] >= datagrams-10 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("drops %v, before %v; want %d more without a socket, and %d of a full one", after, before, datagrams, datagrams-10)
		}
	}
}
