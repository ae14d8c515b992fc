package hostcounters

import (
	"net"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/weft-telemetry/weft/inhost/evidence"
)

// TestFiles reads files of sysfs and procfs as kernels write them.
func TestFiles(t *testing.T) {
	root := fstest.MapFS{}
	for name, text := range map[string]string{
		"sys/class/net/bonding_masters":                                   "bond0\n",
		"sys/class/net/lo/operstate":                                      "unknown\n",
		"sys/class/net/eth0/operstate":                                    "up\n",
		"sys/class/net/eth0/speed":                                        "25000\n",
		"sys/class/net/eth0/carrier_changes":                              "4\n",
		"sys/class/net/eth0/statistics/rx_bytes":                          "123456789012\n",
		"sys/class/net/eth0/statistics/rx_crc_errors":                     "7\n",
		"sys/class/net/eth1/operstate":                                    "down\n",
		"sys/class/net/eth1/speed":                                        "-1\n",
		"proc/net/softnet_stat":                                           "0000000a 00000001 00000002 00000000\n00000010 00000003 00000004 00000000\n",
		"proc/net/snmp":                                                   "Tcp: MaxConn OutSegs RetransSegs InCsumErrors\nTcp: -1 1000 20 3\nUdp: RcvbufErrors SndbufErrors InCsumErrors\nUdp: 5 6 4\n",
		"proc/net/netstat":                                                "TcpExt: ListenDrops TCPTimeouts\nTcpExt: 8 9\n",
		"sys/class/infiniband/mlx5_0/ports/1/hw_counters/out_of_sequence": "11\n",
		"sys/class/infiniband/mlx5_0/ports/1/hw_counters/lifespan":        "10\n",
	} {
		root[name] = &fstest.MapFile{Data: []byte(text)}
	}
	var s evidence.Snapshot
	readFiles(root, &s)
	if len(s.Missing) > 0 || len(s.Interfaces) != 2 || len(s.RDMA) != 1 {
		t.Fatalf("snapshot %+v; want two interfaces and an RDMA port", s)
	}
	if in := s.Interfaces[0]; in.Name != "eth0" || !in.Up || in.SpeedMbps != 25000 || in.CarrierChanges != 4 || in.ReceivedBytes != 123456789012 || in.CRCErrors != 7 {
		t.Errorf("interface %+v; want eth0 with its counters", in)
	}
	if in := s.Interfaces[1]; in.Up || in.SpeedMbps != 0 {
		t.Errorf("interface %+v; want eth1 down, of no known speed", in)
	}
	if want := (evidence.Softnet{Processed: 26, Dropped: 4, Squeezed: 6}); s.Softnet != want {
		t.Errorf("softirqs %+v; want %+v", s.Softnet, want)
	}
	if want := (evidence.Protocols{SegmentsSent: 1000, Retransmitted: 20, Timeouts: 9, ListenDrops: 8, UDPReceiveFull: 5, UDPSendFull: 6, ChecksumErrors: 7}); s.Protocols != want {
		t.Errorf("protocols %+v; want %+v", s.Protocols, want)
	}
	if n := s.RDMA[0].Counters; len(n) != 1 || n[evidence.OutOfSequence] != 11 {
		t.Errorf("RDMA counters %v; want the one with a meaning", n)
	}
	var none evidence.Snapshot
	readFiles(fstest.MapFS{}, &none)
	if len(none.Missing) != 3 {
		t.Errorf("of no files, %q is missing; want interfaces, softirqs and protocols", none.Missing)
	}
}

func FuzzProcfs(f *testing.F) {
	f.Add("0000000a 00000001 00000002\n")
	f.Add("Tcp: A B\nTcp: -1 2\n")
	f.Add("Tcp: A\nUdp: 1\n")
	f.Fuzz(func(t *testing.T, text string) {
		into := map[string]uint64{}
		if err := parseProtocols(text, into); err == nil && len(into) > len(strings.Fields(text))/2 {
			t.Errorf("%d counters of %q", len(into), text)
		}
		_, _ = parseSoftnet(text)
	})
}

// await takes snapshots until a verdict about this kernel appears.
func await(t *testing.T, what string, before *evidence.Snapshot, matches func(evidence.Verdict) bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		list := evidence.Verdicts(before, Read())
		if slices.ContainsFunc(list, matches) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%+v; want that %s", list, what)
		}
	}
}

// TestSlowReaderIsThePeer: a program that does not read what arrives on a TCP connection is
// what its sender waits for, by this kernel's own counters.
func TestSlowReaderIsThePeer(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp4", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	peer, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	before := Read()
	done := make(chan struct{})
	go func() {
		defer close(done)
		chunk := make([]byte, 1<<16)
		for {
			if _, err := c.Write(chunk); err != nil {
				return
			}
		}
	}()
	await(t, "the peer reads too slowly", before, func(v evidence.Verdict) bool {
		return v.Where == evidence.Peer && v.Object == "tcp "+c.LocalAddr().String()+" > "+c.RemoteAddr().String()
	})
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	<-done
}

// TestFullSocketIsTheHost: datagrams that a program does not read are counted.
func TestFullSocketIsTheHost(t *testing.T) {
	r, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := r.SetReadBuffer(4096); err != nil {
		t.Fatal(err)
	}
	w, err := net.DialUDP("udp4", nil, r.LocalAddr().(*net.UDPAddr))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	before := Read()
	for range 100 {
		if _, err := w.Write(make([]byte, 1000)); err != nil {
			t.Fatal(err)
		}
	}
	await(t, "datagrams were dropped", before, func(v evidence.Verdict) bool {
		return v.Where == evidence.Host && strings.Contains(v.Text, "receive buffer was full")
	})
}

// TestDriverCounters reads the counters of a veth pair, in a network namespace of its own.
func TestDriverCounters(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root for a network namespace")
	}
	runtime.LockOSThread() // the thread ends with the test, and its namespace
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Fatal(err)
	}
	pair := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "weft0"}, PeerName: "weft1"}
	if err := netlink.LinkAdd(pair); err != nil {
		t.Fatal(err)
	}
	peer, err := netlink.LinkByName("weft1")
	if err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	names, values, err := driverCounters(fd, "weft0")
	if err != nil {
		t.Fatal(err)
	}
	if i := slices.Index(names, "peer_ifindex"); i < 0 || values[i] != uint64(peer.Attrs().Index) {
		t.Errorf("counters %v %v; want peer_ifindex %d", names, values, peer.Attrs().Index)
	}
	if _, _, err := driverCounters(fd, "lo"); err != errNoDriverCounters {
		t.Errorf("counters of loopback's driver: %v; want %v", err, errNoDriverCounters)
	}
	s := evidence.Snapshot{Interfaces: []evidence.Interface{{Name: "weft0"}}}
	if err := readQueues(&s); err != nil {
		t.Error(err)
	}
}

// TestByMeaning: counters of all priorities are one.
func TestByMeaning(t *testing.T) {
	got := byMeaning([]string{"rx_prio0_pause", "rx_packets", "rx_prio3_pause", "tx_prio3_pause"}, []uint64{1, 2, 30, 4})
	if len(got) != 2 || got[evidence.PauseReceived] != 31 || got[evidence.PauseSent] != 4 {
		t.Errorf("byMeaning = %v; want 31 pauses received and 4 sent", got)
	}
}
