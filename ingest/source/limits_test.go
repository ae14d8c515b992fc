package source

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/collect/translate"
	"github.com/weft-telemetry/weft/model"
)

func TestParsePrefixes(t *testing.T) {
	for text, want := range map[string]string{
		"":                          "",
		"10.0.0.1":                  "10.0.0.1",
		"10.0.0.7/24, 192.0.2.0/25": "10.0.0.0/24,192.0.2.0/25",
		"2001:db8::1,2001:db8::/32": "2001:db8::1,2001:db8::/32",
		"::ffff:10.0.0.1":           "10.0.0.1",
		"::ffff:10.0.0.0/120":       "10.0.0.0/24",
	} {
		list, err := ParsePrefixes(text)
		if err != nil || FormatPrefixes(list) != want {
			t.Errorf("ParsePrefixes(%q) = %v, %v; want %s", text, list, err, want)
		}
	}
	for _, text := range []string{"tor0", "10.0.0.0/33", "10.0.0", "fe80::1%eth0", "::ffff:10.0.0.0/80", "10.0.0.1;10.0.0.2"} {
		if list, err := ParsePrefixes(text); err == nil {
			t.Errorf("ParsePrefixes(%q) = %v; want an error", text, list)
		}
	}
}

// FuzzParsePrefixes: what is parsed prints and parses as itself.
func FuzzParsePrefixes(f *testing.F) {
	f.Add("10.0.0.1, 2001:db8::/32,::ffff:10.0.0.0/120")
	f.Fuzz(func(t *testing.T, text string) {
		list, err := ParsePrefixes(text)
		if err != nil {
			return
		}
		again, err := ParsePrefixes(FormatPrefixes(list))
		if err != nil || !slices.Equal(list, again) {
			t.Errorf("%q is %v, and printed and parsed %v, %v", text, list, again, err)
		}
	})
}

// counting is a decoder that counts two reports for each datagram.
type counting struct {
	n   uint64
	got chan struct{}
}

func (d *counting) Decode(model.Time, netip.AddrPort, []byte) bool {
	d.n++
	d.got <- struct{}{}
	return true
}

func (d *counting) Counters() Counters {
	return Counters{Unit: "reports", In: 2 * d.n, Out: 2 * d.n, Losses: []Loss{{Reason: QueueFull}}}
}

// refusing refuses a datagram after the other, and tells what it was told.
type refusing struct {
	n       int
	refused chan translate.Refusal
}

func (g *refusing) Datagram(model.Time, netip.Addr) translate.Refusal {
	g.n++
	return []translate.Refusal{translate.AddressNotAllowed, translate.SourceRateLimit, translate.Admitted}[g.n%3]
}

func (g *refusing) Refused(_ netip.Addr, why translate.Refusal, _ int) { g.refused <- why }

// TestSocketAsksTheGuard: what the guard refuses is counted, in datagrams, and never
// reaches the decoder, whose unit is another.
func TestSocketAsksTheGuard(t *testing.T) {
	const rounds = 5
	d, g := &counting{got: make(chan struct{}, 100)}, &refusing{refused: make(chan translate.Refusal, 100)}
	l, err := ListenUDP(netip.MustParseAddrPort("127.0.0.1:0"), d, g)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- l.Run(ctx, nil) }()
	conn, err := net.Dial("udp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for range 3 * rounds {
		if _, err := conn.Write([]byte("report")); err != nil {
			t.Fatal(err)
		}
	}
	for range rounds {
		<-d.got
		<-g.refused
		<-g.refused
	}
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	c := l.Counters()
	lost := map[string]uint64{}
	for _, l := range c.Losses {
		lost[l.Reason] = l.Count
	}
	if c.In != 2*rounds || c.Out != 2*rounds || lost["address not allowed"] != rounds || lost["source rate limit"] != rounds || lost[QueueFull] != 0 || lost["too long"] != 0 {
		t.Errorf("%+v; want %d reports, and %d datagrams refused for each of two reasons", c, 2*rounds, rounds)
	}
}
