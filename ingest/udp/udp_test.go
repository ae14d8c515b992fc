//go:build linux

package udp

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func listen(t testing.TB, change func(*Config)) *Conn {
	t.Helper()
	cfg := DefaultConfig(netip.MustParseAddrPort("127.0.0.1:0"))
	if change != nil {
		change(&cfg)
	}
	c, err := Listen(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// collect receives until n datagrams arrived or none arrives any more.
func collect(t testing.TB, c *Conn, n int) (got [][]byte, from netip.AddrPort) {
	t.Helper()
	for quiet := 0; len(got) < n && quiet < 10; quiet++ {
		k, err := c.Receive(func(f netip.AddrPort, d []byte) {
			got, from = append(got, bytes.Clone(d)), f
		})
		if err != nil {
			t.Fatal(err)
		}
		if k > 0 {
			quiet = 0
		}
	}
	return got, from
}

// TestEmptied: a socket that holds more than a batch is empty after the last one only, and
// when nothing arrives.
func TestEmptied(t *testing.T) {
	in := listen(t, func(c *Config) { c.Batch, c.Offload = 4, false })
	out := listen(t, nil)
	var sent [][]byte
	for i := range 9 {
		sent = append(sent, bytes.Repeat([]byte{1}, 10+i))
	}
	if n, err := out.Send(in.Local(), sent...); n != len(sent) || err != nil {
		t.Fatalf("Send = %d, %v; want %d, nil", n, err, len(sent))
	}
	for got := 0; got < len(sent)+1; {
		n, err := in.Receive(func(netip.AddrPort, []byte) {})
		if err != nil {
			t.Fatal(err)
		}
		got += n
		if in.Emptied() != (got == len(sent)) {
			t.Errorf("emptied: %v after %d of %d datagrams", in.Emptied(), got, len(sent))
		}
		if n == 0 {
			break
		}
	}
}

func TestEveryDatagramArrivesAsItWasSent(t *testing.T) {
	for _, addr := range []string{"127.0.0.1:0", "[::1]:0"} {
		for _, offload := range []bool{true, false} {
			t.Run(fmt.Sprint(addr, offload), func(t *testing.T) {
				in := listen(t, func(c *Config) { c.Listen, c.Offload = netip.MustParseAddrPort(addr), offload })
				out := listen(t, func(c *Config) { c.Listen = netip.MustParseAddrPort(addr) })
				var sent [][]byte
				for i := range 300 {
					n := 100
					switch {
					case i%7 == 3:
						n = 40 // ends a run
					case i%50 == 20:
						n = 1400
					case i == 250:
						n = 0
					}
					sent = append(sent, bytes.Repeat([]byte{byte(i)}, n))
				}
				if n, err := out.Send(in.Local(), sent...); n != len(sent) || err != nil {
					t.Fatalf("Send = %d, %v; want %d, nil", n, err, len(sent))
				}
				got, from := collect(t, in, len(sent))
				if len(got) != len(sent) || from != out.Local() {
					t.Fatalf("%d datagrams from %v; want %d from %v", len(got), from, len(sent), out.Local())
				}
				for i := range sent {
					if !bytes.Equal(got[i], sent[i]) {
						t.Fatalf("datagram %d is %x; want %x", i, got[i], sent[i])
					}
				}
				if st := in.Stats(); st.Datagrams != uint64(len(sent)) || st.Dropped != 0 || st.Truncated != 0 {
					t.Errorf("stats %+v; want %d datagrams, none dropped", st, len(sent))
				}
			})
		}
	}
}

func TestKernelDropsAreCounted(t *testing.T) {
	in := listen(t, func(c *Config) { c.ReceiveBuffer = 4096 })
	out := listen(t, nil)
	const n = 2000
	datagram := make([]byte, 1000)
	for range n {
		if _, err := out.Send(in.Local(), datagram); err != nil && !errors.Is(err, unix.EAGAIN) {
			t.Fatal(err)
		}
	}
	got, _ := collect(t, in, n)
	// The kernel reports its counter with the next datagram that it queues.
	out.Send(in.Local(), datagram)
	more, _ := collect(t, in, 1)
	st := in.Stats()
	if len(got) == n || st.Dropped == 0 || st.Dropped+uint64(len(got)+len(more)) != n+1 {
		t.Errorf("%d received, %d dropped of %d; want all accounted for and some dropped", len(got)+len(more), st.Dropped, n+1)
	}
}

func TestTooLongIsCounted(t *testing.T) {
	in := listen(t, func(c *Config) { c.Offload = false })
	out := listen(t, nil)
	out.Send(in.Local(), make([]byte, 4000), []byte("next"))
	got, _ := collect(t, in, 1)
	if len(got) != 1 || string(got[0]) != "next" || in.Stats().Truncated != 1 {
		t.Errorf("got %q, stats %+v; want the second alone, 1 truncated", got, in.Stats())
	}
}

func TestReceiveTimesOut(t *testing.T) {
	in := listen(t, func(c *Config) { c.Timeout = time.Millisecond })
	if n, err := in.Receive(func(netip.AddrPort, []byte) {}); n != 0 || err != nil {
		t.Errorf("Receive of nothing = %d, %v; want 0, nil", n, err)
	}
}

func TestWorkersShareAPort(t *testing.T) {
	all, err := ListenAll(DefaultConfig(netip.MustParseAddrPort("127.0.0.1:0")), 2)
	if err != nil {
		t.Fatal(err)
	}
	a, b := all[0], all[1]
	defer a.Close()
	defer b.Close()
	const senders = 32
	for range senders {
		s, err := net.Dial("udp", a.Local().String())
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		s.Write([]byte("x"))
	}
	left, _ := collect(t, a, senders)
	right, _ := collect(t, b, senders-len(left))
	if len(left)+len(right) != senders || len(left) == 0 || len(right) == 0 {
		t.Errorf("%d and %d of %d datagrams; want some at each", len(left), len(right), senders)
	}
}

// TestAPortIsExclusive: no other process can receive a part of the reports.
func TestAPortIsExclusive(t *testing.T) {
	for _, first := range []int{1, 2} {
		for _, second := range []int{1, 2} {
			all, err := ListenAll(DefaultConfig(netip.MustParseAddrPort("127.0.0.1:0")), first)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := ListenAll(DefaultConfig(all[0].Local()), second); !errors.Is(err, unix.EADDRINUSE) {
				t.Errorf("%d sockets where %d are = %v; want %v", second, first, err, unix.EADDRINUSE)
			}
			for _, c := range all {
				c.Close()
			}
		}
	}
}

func TestListenErrors(t *testing.T) {
	cfg := DefaultConfig(netip.MustParseAddrPort("192.0.2.1:40040"))
	if _, err := Listen(cfg); !errors.Is(err, unix.EADDRNOTAVAIL) {
		t.Errorf("Listen on another host's address = %v; want %v", err, unix.EADDRNOTAVAIL)
	}
	cfg.Batch = 0
	if _, err := Listen(cfg); err == nil {
		t.Error("Listen with a batch of 0 = nil; want an error")
	}
}

func TestReceiveAllocatesNothing(t *testing.T) {
	in, out := listen(t, nil), listen(t, nil)
	batch := [][]byte{make([]byte, 100), make([]byte, 100)}
	handle := func(netip.AddrPort, []byte) {}
	if n := testing.AllocsPerRun(100, func() {
		out.Send(in.Local(), batch...)
		in.Receive(handle)
	}); n != 0 {
		t.Errorf("Send and Receive allocate %v times; want 0", n)
	}
}

func BenchmarkReceive(b *testing.B) {
	for _, offload := range []bool{false, true} {
		for _, batch := range []int{1, 8, 32, 64} {
			b.Run(fmt.Sprintf("offload=%v/batch=%d", offload, batch), func(b *testing.B) {
				in := listen(b, func(c *Config) { c.Batch, c.Offload = batch, offload })
				out := listen(b, nil)
				run := make([][]byte, 40)
				for i := range run {
					run[i] = make([]byte, 1452)
				}
				datagrams := 0
				handle := func(netip.AddrPort, []byte) { datagrams++ }
				for b.Loop() {
					out.Send(in.Local(), run...)
					for datagrams < len(run) {
						if n, err := in.Receive(handle); err != nil || n == 0 {
							b.Fatal(n, err)
						}
					}
					datagrams = 0
				}
				b.ReportMetric(float64(b.N)*float64(len(run))/1e6/b.Elapsed().Seconds(), "Mdatagram/s")
			})
		}
	}
}

// TestBatchAdaptsToMessageLength checks that a call receives few long messages, and
// many short ones afterwards.
func TestBatchAdaptsToMessageLength(t *testing.T) {
	in, out := listen(t, nil), listen(t, nil)
	send := func(size int) {
		t.Helper()
		datagrams := make([][]byte, 40)
		for i := range datagrams {
			datagrams[i] = make([]byte, size)
		}
		for range 16 { // separate calls: each is a message, if the kernel joins any
			if n, err := out.Send(in.Local(), datagrams...); n != len(datagrams) || err != nil {
				t.Fatalf("Send = %d, %v; want %d", n, err, len(datagrams))
			}
		}
		for got := 0; got < 16*len(datagrams); {
			before := in.Stats()
			n, err := in.Receive(func(netip.AddrPort, []byte) {})
			if err != nil || n == 0 {
				t.Fatalf("Receive = %d, %v after %d datagrams of %d bytes; want %d", n, err, got, size, 16*len(datagrams))
			}
			got += n
			after := in.Stats()
			long := (after.Bytes - before.Bytes) / (after.Messages - before.Messages)
			if want := min(len(in.messages), int(callBytes/long)); in.nextBatch != want {
				t.Fatalf("after messages of %d bytes the next call asks for %d; want %d", long, in.nextBatch, want)
			}
		}
	}
	send(1400)
	if in.Stats().Messages < 16*40 && in.nextBatch != 4 {
		t.Errorf("after messages of 56000 bytes a call asks for %d; want 4", in.nextBatch)
	}
	send(10)
	if in.nextBatch != len(in.messages) {
		t.Errorf("after messages of 400 bytes a call asks for %d; want %d", in.nextBatch, len(in.messages))
	}
}
