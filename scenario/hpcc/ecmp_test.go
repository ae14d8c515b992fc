package hpcc

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/topo/file"
)

// bytewise is MurmurHash3_x86_32 of any bytes, as published.
func bytewise(data []byte, seed uint32) uint32 {
	const c1, c2 = 0xcc9e2d51, 0x1b873593
	h := seed
	rest := data
	for ; len(rest) >= 4; rest = rest[4:] {
		k := binary.LittleEndian.Uint32(rest)
		k *= c1
		k = bits.RotateLeft32(k, 15)
		k *= c2
		h ^= k
		h = bits.RotateLeft32(h, 13)
		h = h*5 + 0xe6546b64
	}
	var k uint32
	for i := len(rest) - 1; i >= 0; i-- {
		k = k<<8 | uint32(rest[i])
	}
	if len(rest) > 0 {
		h ^= bits.RotateLeft32(k*c1, 15) * c2
	}
	h ^= uint32(len(data))
	h ^= h >> 16
	h *= 0x85ebca6b
	h ^= h >> 13
	h *= 0xc2b2ae35
	return h ^ h>>16
}

// The published vectors verify the reference, and the reference verifies
// murmur3.
func TestMurmur3Reference(t *testing.T) {
	for _, tc := range []struct {
		in   string
		seed uint32
		want uint32
	}{
		{"", 0, 0},
		{"", 1, 0x514e28b7},
		{"\xff\xff\xff\xff", 0, 0x76293b50},
		{"\x21\x43\x65\x87", 0, 0xf55b516b},
		{"\x21\x43\x65\x87", 0x5082edee, 0x2362f9de},
		{"test", 0, 0xba6bd213},
		{"The quick brown fox jumps over the lazy dog", 0x9747b28c, 0x2fa826cd},
	} {
		if got := bytewise([]byte(tc.in), tc.seed); got != tc.want {
			t.Errorf("MurmurHash3_x86_32(%q, seed %#x) = %#08x; want %#08x", tc.in, tc.seed, got, tc.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		seed, words := rapid.Uint32().Draw(t, "seed"), rapid.SliceOf(rapid.Uint32()).Draw(t, "words")
		var data []byte
		for _, w := range words {
			data = binary.LittleEndian.AppendUint32(data, w)
		}
		if got, want := murmur3(seed, words...), bytewise(data, seed); got != want {
			t.Fatalf("murmur3(%#x, %#x) = %#08x; want %#08x", seed, words, got, want)
		}
	})
}

// Values computed by a separate program from the layout in memory: both
// addresses, then the source port and the destination port, little-endian. The
// last is ns-3's own hash of the same bytes.
func TestMurmur3OfAFlow(t *testing.T) {
	for seed, want := range map[uint32]uint32{0: 0xba169336, 320: 0x6a7b3f97, 375: 0x352683ec, hostSeed: 0xcaadd4d2} {
		if got := murmur3(seed, 0x0b000101, 0x0b000201, 10000|100<<16); got != want {
			t.Errorf("murmur3(%d, 11.0.1.1:10000 to 11.0.2.1:100) = %#08x; want %#08x", seed, got, want)
		}
	}
}

func fabricOf(t testing.TB, text string) *topo.Fabric {
	t.Helper()
	doc, err := file.ParseAs(file.HPCC, "topology.txt", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return doc.Fabric
}

// Two hosts, two leaves and three spines. From leaf s2 the next hops are the
// spines, the last one first: s6, s5, s4.
func TestNextHopOrder(t *testing.T) {
	f := fabricOf(t, `7 5 8
2 3 4 5 6
0 2 100Gbps 1us 0
1 3 100Gbps 1us 0
2 4 100Gbps 1us 0
2 5 100Gbps 1us 0
2 6 100Gbps 1us 0
3 4 100Gbps 1us 0
3 5 100Gbps 1us 0
3 6 100Gbps 1us 0`)
	r, err := routesOf(f, nil)
	if err != nil {
		t.Fatal(err)
	}
	used := make(map[model.PortID]int)
	for sport := range uint16(300) {
		key := model.FlowKey{Src: f.Node(0).IPv4, Dst: f.Node(1).IPv4, SrcPort: 10000 + sport, DstPort: 100, Proto: model.UDP}
		// Port 1 leads to the host, 2 to s4, 3 to s5, 4 to s6.
		want := []model.PortID{4, 3, 2}[bytewise(layout(key), 2)%3]
		if got, ok := r.NextHop(2, key); !ok || got != want {
			t.Errorf("next hop of %v at s2 is port %d, %v; want %d", key, got, ok, want)
		}
		used[want]++
	}
	if len(used) != 3 {
		t.Errorf("flows use ports %v; want all three", used)
	}
}

func layout(k model.FlowKey) []byte {
	b := binary.LittleEndian.AppendUint32(nil, k.Src.V4())
	b = binary.LittleEndian.AppendUint32(b, k.Dst.V4())
	b = binary.LittleEndian.AppendUint16(b, k.SrcPort)
	return binary.LittleEndian.AppendUint16(b, k.DstPort)
}

// reference routes as the original's program reads: a search from every host
// that appends to lists of next hops, and one interface for each neighbour.
type reference struct {
	f   *topo.Fabric
	hop map[[2]model.NodeID][]model.PortID // (node, destination)
}

func newReference(f *topo.Fabric) *reference {
	w := &reference{f: f, hop: make(map[[2]model.NodeID][]model.PortID)}
	iface := make(map[[2]model.NodeID]model.PortID)
	for _, l := range f.Links() {
		iface[[2]model.NodeID{l.A.Node, l.B.Node}] = l.A.Port
		iface[[2]model.NodeID{l.B.Node, l.A.Node}] = l.B.Port
	}
	for _, host := range f.Hosts() {
		dist := map[model.NodeID]int{host: 0}
		queue := []model.NodeID{host}
		for i := 0; i < len(queue); i++ {
			now := queue[i]
			for n := len(f.Nodes()) - 1; n >= 0; n-- {
				next := model.NodeID(n)
				if iface[[2]model.NodeID{now, next}] == 0 {
					continue
				}
				if _, known := dist[next]; !known {
					dist[next] = dist[now] + 1
					if f.Node(next).Role.IsSwitch() {
						queue = append(queue, next)
					}
				}
				if dist[next] == dist[now]+1 {
					at := [2]model.NodeID{next, host}
					w.hop[at] = append(w.hop[at], iface[[2]model.NodeID{next, now}])
				}
			}
		}
	}
	return w
}

func (w *reference) nextHop(node, dst model.NodeID, key model.FlowKey) (model.PortID, bool) {
	hops := w.hop[[2]model.NodeID{node, dst}]
	if len(hops) == 0 {
		return 0, false
	}
	seed := uint32(node)
	if !w.f.Node(node).Role.IsSwitch() {
		seed = 0x8badf00d
	}
	return hops[bytewise(layout(key), seed)%uint32(len(hops))], true
}

// anyTopology is a connected fabric with parallel links, hosts on several
// switches and ids in no order.
func anyTopology(t *rapid.T) string {
	n := rapid.IntRange(3, 14).Draw(t, "nodes")
	ids := rapid.Permutation(seq(n)).Draw(t, "ids")
	hosts := rapid.IntRange(2, max(2, n/2)).Draw(t, "hosts")
	switches := ids[hosts:]
	var links []string
	link := func(a, b int) { links = append(links, fmt.Sprintf("%d %d 100Gbps 1us 0", a, b)) }
	for i := 1; i < len(switches); i++ {
		link(switches[i], switches[rapid.IntRange(0, i-1).Draw(t, "tree")])
	}
	for _, h := range ids[:hosts] {
		for range rapid.IntRange(1, 3).Draw(t, "homes") {
			link(switches[rapid.IntRange(0, len(switches)-1).Draw(t, "home")], h)
		}
	}
	for range rapid.IntRange(0, 12).Draw(t, "more") {
		a, b := rapid.SampledFrom(switches).Draw(t, "a"), rapid.SampledFrom(switches).Draw(t, "b")
		if a != b {
			link(a, b)
		}
	}
	links = rapid.Permutation(links).Draw(t, "links")
	return fmt.Sprintf("%d %d %d\n%s\n%s\n", n, len(switches), len(links),
		strings.Trim(fmt.Sprint(switches), "[]"), strings.Join(links, "\n"))
}

func seq(n int) (s []int) {
	for i := range n {
		s = append(s, i)
	}
	return s
}

func TestRoutesAgreeWithReference(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		text := anyTopology(rt)
		f := fabricOf(t, text)
		r, err := routesOf(f, nil)
		if err != nil {
			rt.Fatal(err)
		}
		w := newReference(f)
		src, dst := rapid.SampledFrom(f.Hosts()).Draw(rt, "src"), rapid.SampledFrom(f.Hosts()).Draw(rt, "dst")
		key := model.FlowKey{
			Src: f.Node(src).IPv4, Dst: f.Node(dst).IPv4,
			SrcPort: rapid.Uint16().Draw(rt, "sport"), DstPort: rapid.Uint16().Draw(rt, "dport"), Proto: model.UDP,
		}
		for i := range f.Nodes() {
			node := model.NodeID(i)
			if node == dst {
				continue
			}
			got, ok := r.NextHop(node, key)
			want, has := w.nextHop(node, dst, key)
			if ok != has || got != want {
				rt.Fatalf("next hop of %v at %s is port %d, %v; want %d, %v, of %v in\n%s",
					key, f.Node(node).Name, got, ok, want, has, w.hop[[2]model.NodeID{node, dst}], text)
			}
		}
	})
}

func TestHiddenLinks(t *testing.T) {
	f := fabricOf(t, "3 1 4\n1\n0 1 100Gbps 1us 0\n1 2 100Gbps 1us 0\n1 0 25Gbps 1us 0\n0 1 50Gbps 1us 0\n")
	if got := hiddenPorts(f); !slices.Equal(got, []int{0, 2}) {
		t.Errorf("hidden links are %v; want 0 and 2, which link 3 hides", got)
	}
}

func BenchmarkNextHop(b *testing.B) {
	const spines = 16
	links := []string{"0 2 100Gbps 1us 0", "1 3 100Gbps 1us 0"}
	switches := "2 3"
	for s := 4; s < 4+spines; s++ {
		switches += fmt.Sprintf(" %d", s)
		links = append(links, fmt.Sprintf("2 %d 100Gbps 1us 0", s), fmt.Sprintf("3 %d 100Gbps 1us 0", s))
	}
	f := fabricOf(b, fmt.Sprintf("%d %d %d\n%s\n%s\n", 4+spines, 2+spines, len(links), switches, strings.Join(links, "\n")))
	r, err := routesOf(f, nil)
	if err != nil {
		b.Fatal(err)
	}
	key := model.FlowKey{Src: f.Node(0).IPv4, Dst: f.Node(1).IPv4, SrcPort: 10000, DstPort: 100, Proto: model.UDP}
	b.ReportAllocs()
	for b.Loop() {
		key.SrcPort++
		r.NextHop(2, key)
	}
}
