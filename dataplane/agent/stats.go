package agent

import (
	"os"

	"github.com/weft-telemetry/weft/dataplane/ebpf"
	"github.com/weft-telemetry/weft/inswitch/reporter"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
)

var errDeadline = os.ErrDeadlineExceeded

// Stats are the counters of an agent.
type Stats struct {
	Wakes     uint64 // of the process, to export slots
	Exported  ebpf.Exported
	Mirrors   ebpf.MirrorStats
	Reporter  reporter.Stats
	Datagrams uint64      // that the kernel took
	Bytes     model.Bytes // of them
	// Unsent is reports that the kernel did not take: no collector listens, or there
	// is no route to it.
	Unsent uint64
}

func (s *Stats) addExported(e *ebpf.Exported) {
	t := &s.Exported
	t.Slots += e.Slots
	t.Waits += e.Waits
	t.Chunks += e.Chunks
	t.Packets += e.Packets
	t.Bytes += e.Bytes
	t.Flows += e.Flows
	t.Unkeyed += e.Unkeyed
	t.Missed += e.Missed
	t.Probes += e.Probes
	t.Inconsistent += e.Inconsistent
}

func (s *Stats) countUnsent(datagram []byte) {
	var h dta.Header
	_, _ = h.Parse(datagram) // our own, so it parses
	s.Unsent += uint64(h.Count)
}

// Stats returns the current counters.
func (a *Agent) Stats() Stats {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.countMirrors()
	s := a.stats
	s.Reporter = a.reporter.Stats()
	return s
}

// countMirrors reads the kernel's counters. What cannot be read stays as it was.
func (a *Agent) countMirrors() {
	if a.mirrors == nil {
		return
	}
	if s, err := a.mirrors.Stats(); err == nil {
		a.stats.Mirrors = s
	}
}

// Loss is what was lost, by reason.
type Loss struct {
	Reason, Unit string
	Count        uint64
}

// Losses returns all losses, those of 0 too.
func (s *Stats) Losses() []Loss {
	refused := uint64(0)
	for _, n := range s.Reporter.Refused {
		refused += n
	}
	return []Loss{
		{"no free table", "packets", s.Exported.Missed},
		{"inconsistent table", "flowsets", s.Exported.Inconsistent},
		{"over the rate of mirrors", "packets", s.Mirrors.RateLimited},
		{"mirrors not read in time", "packets", s.Mirrors.Lost},
		{"queue full", "reports", s.Reporter.Congested},
		{"larger than a datagram", "reports", s.Reporter.TooLarge},
		{"not sent", "reports", s.Unsent},
		{"refused by the collector", "reports", refused},
	}
}
