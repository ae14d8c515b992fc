package collector

import (
	"encoding/binary"
	"fmt"
	"log/slog"
	"net/netip"
	"os/exec"
	"strings"
	"testing"

	"github.com/weft-telemetry/weft/inswitch/reporter"
	"github.com/weft-telemetry/weft/wire/dta"
)

// numbers returns how often each number is in the lists: reports carry it twice.
func (f files) numbers(t *testing.T) map[uint32]int {
	t.Helper()
	all := map[uint32]int{}
	for id := range uint32(8) {
		for pos := range f.head(id) {
			entry := make([]byte, 8)
			spans, _, err := f.lists.BatchParts(id, pos, entry)
			if err != nil || f.lists.Region().Read(spans[0].Offset, entry) != nil {
				t.Fatal(err)
			}
			all[binary.BigEndian.Uint32(entry)]++
		}
	}
	return all
}

// patientReporter returns a reporter that repeats refused reports for ever: those that
// a default one abandons are not lost by the translator, which has not taken them.
func patientReporter(t *testing.T) *reporter.Reporter {
	t.Helper()
	cfg := reporter.DefaultConfig(1, 1e6)
	cfg.MaxResends = 1 << 30
	r, err := reporter.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestKilledReplicaLosesNothing reports through a translator to two collectors, and
// kills one of them: every report that the translator has taken is at the
// other, entries of lists once. Restarted, the killed one takes reports again.
func TestKilledReplicaLosesNothing(t *testing.T) {
	const n = 3_000 // entries, so that no list of the 8 overwrites its first
	for _, victim := range []int{0, 1} {
		t.Run(fmt.Sprintf("collector %d", victim), func(t *testing.T) {
			var dirs [2]string
			var memory [2]*exec.Cmd
			var control [2]netip.AddrPort
			for i := range dirs {
				dirs[i] = t.TempDir()
				memory[i], control[i] = spawn(t, "memory", dirs[i], "127.0.0.1:0")
			}
			translator, addr := spawn(t, "translate", control[0].String()+","+control[1].String(), "127.0.0.1:0")
			survivor, lost := openFiles(t, dirs[1-victim]), openFiles(t, dirs[victim])
			s := newReporter(t, 1, addr)
			s.rep = patientReporter(t)
			entries := func(f files) (sum uint64) {
				for id := range uint32(8) {
					sum += f.head(id)
				}
				return sum
			}
			// advance sends a report more, which shows the translator what it lacks. It displaces no
			// copy of another.
			advance := func() {
				s.add(dta.Report{Primitive: dta.KeyIncrement, Redundancy: 4, Key: []byte("advance"), Delta: 1})
				s.flush()
				s.answers()
			}
			for i := range n {
				// The reporter has copies of the latest reports only.
				await(t, "entries at the survivor", func() bool {
					behind := uint64(i) > entries(survivor)+512
					if behind {
						advance()
					}
					return !behind
				})
				s.add(dta.Report{Primitive: dta.Append, Retransmit: true, List: dta.ListID(i % 8), Data: append(word(i), word(i)...)})
				s.add(dta.Report{Primitive: dta.KeyIncrement, Retransmit: true, Redundancy: 4, Key: fmt.Appendf(nil, "flow %d", i%100), Delta: 1})
				if i%16 == 0 {
					s.answers()
				}
				switch i {
				case n / 3:
					await(t, "entries at both collectors", func() bool { return entries(survivor) > 100 && entries(lost) > 100 })
					kill(t, memory[victim])
				case 2 * n / 3:
					memory[victim], _ = spawn(t, "memory", dirs[victim], control[victim].String())
				}
			}
			await(t, "all entries at the survivor", func() bool { advance(); return entries(survivor) >= n })
			for number, times := range survivor.numbers(t) {
				if times != 1 || number >= n {
					t.Fatalf("number %d is %d times in the lists; want each of %d once", number, times, n)
				}
			}
			before := entries(lost)
			for i := range 1000 {
				s.add(dta.Report{Primitive: dta.Append, Retransmit: true, List: dta.ListID(i % 8), Data: append(word(n+i), word(n+i)...)})
			}
			await(t, "entries at the restarted collector", func() bool { advance(); return entries(lost) > before+500 })
			if st := s.rep.Stats(); st.NoCopy+st.Abandoned != 0 {
				t.Errorf("reporter %+v; want every refused report to be repeated", st)
			}
			end(t, translator)
			end(t, memory[victim])
			end(t, memory[1-victim])
		})
	}
}

func TestReplicasMustDivideCollectors(t *testing.T) {
	for _, tc := range []struct {
		collectors string
		replicas   int
		want       string
	}{{"a:1,b:1,c:1", 2, "divides"}, {"a:1", -1, "divides"}} {
		cfg := DefaultConfig()
		cfg.Collectors, cfg.Replicas = strings.Split(tc.collectors, ","), tc.replicas
		if _, err := New(t.Context(), cfg, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%d replicas of %s: %v; want an error with %q", tc.replicas, tc.collectors, err, tc.want)
		}
	}
}
