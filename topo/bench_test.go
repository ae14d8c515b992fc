package topo

import (
	"runtime"
	"testing"

	"github.com/weft-telemetry/weft/model"
)

// BenchmarkFatTree makes and routes a fat-tree; k=32 is 8,192 hosts and 1,280
// switches. live-MB is the heap it keeps.
func BenchmarkFatTree(b *testing.B) {
	for _, k := range []int{16, 32} {
		b.Run("k="+itoa(k), func(b *testing.B) {
			b.ReportAllocs()
			before := liveHeap()
			var r *Routes
			for b.Loop() {
				r = mustRoutes(b, must(FatTree(k, DefaultLinks())), RouteConfig{})
			}
			b.ReportMetric(float64(liveHeap()-before)/1e6, "live-MB")
			runtime.KeepAlive(r)
		})
	}
}

func BenchmarkNextHop(b *testing.B) {
	for _, k := range []int{4, 32} {
		b.Run("k="+itoa(k), func(b *testing.B) {
			f := must(FatTree(k, DefaultLinks()))
			r := mustRoutes(b, f, RouteConfig{})
			keys, at := randomKeys(f, 1<<12)
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				r.NextHop(at[i&(1<<12-1)], keys[i&(1<<12-1)])
				i++
			}
		})
	}
}

func BenchmarkPath(b *testing.B) {
	f := must(FatTree(32, DefaultLinks()))
	r := mustRoutes(b, f, RouteConfig{})
	keys, _ := randomKeys(f, 1<<12)
	var hops []Hop
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		k := keys[i&(1<<12-1)]
		src, _ := f.ByAddr(k.Src)
		hops, _ = r.AppendPath(hops[:0], k, src)
		i++
	}
}

// randomKeys makes flows between hosts, and a switch for each.
func randomKeys(f *Fabric, n int) (keys []model.FlowKey, at []model.NodeID) {
	rnd := rng(1)
	for range n {
		src, dst := f.hosts[rnd.IntN(len(f.hosts))], f.hosts[rnd.IntN(len(f.hosts))]
		keys = append(keys, model.FlowKey{
			Src: f.nodes[src].IPv4, Dst: f.nodes[dst].IPv4,
			SrcPort: uint16(rnd.Uint32()), DstPort: 4791, Proto: model.UDP,
		})
		at = append(at, f.switches[rnd.IntN(len(f.switches))])
	}
	return keys, at
}

func liveHeap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func BenchmarkCheck(b *testing.B) {
	for _, k := range []int{8, 16} {
		b.Run("k="+itoa(k), func(b *testing.B) {
			r := mustRoutes(b, must(FatTree(k, DefaultLinks())), RouteConfig{})
			b.ReportAllocs()
			for b.Loop() {
				Check(r)
			}
		})
	}
}

// BenchmarkByAddr compares the index with a built-in map.
func BenchmarkByAddr(b *testing.B) {
	f := must(FatTree(32, DefaultLinks()))
	keys, _ := randomKeys(f, 1<<12)
	byMap := make(map[model.Addr]model.NodeID)
	for i := range f.nodes {
		byMap[f.nodes[i].IPv4], byMap[f.nodes[i].IPv6] = f.nodes[i].ID, f.nodes[i].ID
	}
	b.Run("index", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			f.ByAddr(keys[i&(1<<12-1)].Dst)
		}
	})
	b.Run("map", func(b *testing.B) {
		found := 0
		for i := 0; b.Loop(); i++ {
			if _, ok := byMap[keys[i&(1<<12-1)].Dst]; ok {
				found++
			}
		}
	})
}
