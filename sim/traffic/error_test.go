package traffic

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model"
)

// TestGeneratorErrors breaks one field of a generator at a time.
func TestGeneratorErrors(t *testing.T) {
	poisson := func(change func(*Poisson)) Generator { g := DefaultPoisson(); change(&g); return g }
	incast := func(change func(*Incast)) Generator { g := DefaultIncast(); change(&g); return g }
	query := func(change func(*Query)) Generator { g := DefaultQuery(); change(&g); return g }
	permutation := func(change func(*Permutation)) Generator { g := DefaultPermutation(); change(&g); return g }
	persistent := func(change func(*Persistent)) Generator {
		g := DefaultPersistent()
		g.Pairs = []Pair{{1, 2}}
		change(&g)
		return g
	}
	shrew := func(change func(*Shrew)) Generator {
		g := DefaultShrew()
		g.Senders, g.Receiver = []model.NodeID{1, 2}, 3
		change(&g)
		return g
	}
	ring := func(change func(*Job)) Generator { g := RingAllReduce{DefaultJob()}; change(&g.Job); return g }
	all := func(change func(*AllToAll)) Generator { g := AllToAll{Job: DefaultJob()}; change(&g); return g }
	for want, g := range map[string]Generator{
		"(poisson): priority 9, want 0 to 7":                         poisson(func(g *Poisson) { g.Priority = 9 }),
		"(poisson): sizes not given, want":                           poisson(func(g *Poisson) { g.Sizes = nil }),
		"(poisson): load 1.5, want above 0":                          poisson(func(g *Poisson) { g.Load = 1.5 }),
		"(poisson): load NaN, want above 0":                          poisson(func(g *Poisson) { g.Load = math.NaN() }),
		"(poisson): start -5ns, want from":                           poisson(func(g *Poisson) { g.Start = -5 }),
		"(poisson): duration 0s, want from 1ns":                      poisson(func(g *Poisson) { g.Duration = 0 }),
		"(poisson): duration 300h0m0s, want":                         poisson(func(g *Poisson) { g.Duration = 300 * time.Hour }),
		"(poisson): hosts: node 99 is not a host":                    poisson(func(g *Poisson) { g.Hosts = []model.NodeID{1, 99} }),
		"(poisson): hosts: host 1 is listed twice":                   poisson(func(g *Poisson) { g.Hosts = []model.NodeID{1, 1} }),
		"(poisson): hosts: 1 given, want at least 2":                 poisson(func(g *Poisson) { g.Hosts = []model.NodeID{1} }),
		"(poisson): hosts: host 15 has no link":                      poisson(func(g *Poisson) { g.Hosts = []model.NodeID{1, 15} }),
		"(poisson): load 1 for 2h46m40s makes about 146092038 flows": poisson(func(g *Poisson) { g.Load, g.Duration, g.Hosts = 1, 10_000*time.Second, []model.NodeID{1, 2} }),
		"(permutation): size 0B, want from 1B":                       permutation(func(g *Permutation) { g.Bytes = 0 }),
		"(permutation): stop +1ns, want after the start":             permutation(func(g *Permutation) { g.Bytes, g.Start, g.Stop = 0, 2, 1 }),
		"(permutation): hosts: 1 given, want":                        permutation(func(g *Permutation) { g.Hosts = []model.NodeID{3} }),
		"(incast): bytes -1B, want from 1B":                          incast(func(g *Incast) { g.Bytes = -1 }),
		"(incast): rounds 0, want from 1":                            incast(func(g *Incast) { g.Rounds = 0 }),
		"(incast): period 0s for 2 rounds, want":                     incast(func(g *Incast) { g.Rounds, g.Period = 2, 0 }),
		"(incast): period 2562047h47m16.854775807s for 2 rounds":     incast(func(g *Incast) { g.Rounds, g.Period = 2, math.MaxInt64 }),
		"(incast): fan-in -1, want at least 0":                       incast(func(g *Incast) { g.Fanin = -1 }),
		"(incast): fan-in 16, want from 1 to 15":                     incast(func(g *Incast) { g.Fanin = 16 }),
		"(incast): fan-in 0, want from 1 to 0":                       incast(func(g *Incast) { g.Fanin, g.Senders, g.Receivers = 0, []model.NodeID{2}, []model.NodeID{2} }),
		"(incast): jitter -1ns, want from 0s":                        incast(func(g *Incast) { g.Jitter = -1 }),
		"(incast): receivers: node 99 is no":                         incast(func(g *Incast) { g.Receivers = []model.NodeID{99} }),
		"(incast): senders: node 98 is no":                           incast(func(g *Incast) { g.Senders = []model.NodeID{98} }),
		"(incast): [8 5000000] flows (the product)":                  incast(func(g *Incast) { g.Rounds = 5_000_000 }),
		"(query): request 0B, want":                                  query(func(g *Query) { g.Request = 0 }),
		"(query): response 0B, want":                                 query(func(g *Query) { g.Response = 0 }),
		"(query): think -1ns, want":                                  query(func(g *Query) { g.Think = -1 }),
		"(query): gap 0s, want from 1ns":                             query(func(g *Query) { g.Gap = 0 }),
		"(query): fan-out 16, want from 1 to 15":                     query(func(g *Query) { g.Fanout = 16 }),
		"(query): gap 1ns for 1h0m0s makes about":                    query(func(g *Query) { g.Gap, g.Duration = 1, time.Hour }),
		"(persistent): pairs: 0 given, want":                         persistent(func(g *Persistent) { g.Pairs = nil }),
		"(persistent): stop +0s, want after":                         persistent(func(g *Persistent) { g.Stop = 0 }),
		"(persistent): pair 0: rate -1b/s, want":                     persistent(func(g *Persistent) { g.Rate = -1 }),
		"(persistent): pair 1: source and destination 4":             persistent(func(g *Persistent) { g.Pairs = []Pair{{1, 2}, {4, 4}} }),
		"(shrew): transport tcp without congestion control":          shrew(func(g *Shrew) { g.Transport = TCP }),
		"(shrew): senders: empty, want":                              shrew(func(g *Shrew) { g.Senders = nil }),
		"(shrew): senders: host 3 is the receiver":                   shrew(func(g *Shrew) { g.Senders = []model.NodeID{3} }),
		"(shrew): senders: host 15 has no link":                      shrew(func(g *Shrew) { g.Senders = []model.NodeID{15} }),
		"(shrew): receiver: node 77 is not a host":                   shrew(func(g *Shrew) { g.Receiver = 77 }),
		"(shrew): burst 1ms in every 1ms, want less":                 shrew(func(g *Shrew) { g.Burst = time.Millisecond }),
		"(shrew): burst 1ns is 0 bytes of 1b/s, want":                shrew(func(g *Shrew) { g.Burst, g.Rate = 1, 1 }),
		"(shrew): [10000000 2] flows (the product)":                  shrew(func(g *Shrew) { g.Rounds = 10_000_000 }),
		"(ring all-reduce): bytes 15B for 16 hosts, want":            ring(func(g *Job) { g.Bytes = 15 }),
		"(ring all-reduce): iterations 0, want from 1":               ring(func(g *Job) { g.Iterations = 0 }),
		"(ring all-reduce): compute -1ns, want from 0s":              ring(func(g *Job) { g.Compute = -1 }),
		"(ring all-reduce): [100000 30 16] flows (the product)":      ring(func(g *Job) { g.Iterations = 100_000 }),
		"(all-to-all): window 16, want from 0 to 15":                 all(func(g *AllToAll) { g.Window = 16 }),
		"(all-to-all): 35992800 dependencies, want at most":          all(func(g *AllToAll) { g.Iterations = 5000 }),
	} {
		hosts := hostsOf(16)
		hosts[15].Rate = 0
		if strings.HasPrefix(want, "(poisson)") && g.(Poisson).Hosts == nil {
			hosts = hostsOf(15)
		}
		if _, err := Generate(1, hosts, List{}, g); err == nil || !strings.HasPrefix(err.Error(), "generator 1 "+want) {
			t.Errorf("Generate(%+v) = %v; want generator 1 %s…", g, err, want)
		}
	}
}
