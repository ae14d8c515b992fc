package collector

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/weft-telemetry/weft/collect/rdma"
	"github.com/weft-telemetry/weft/collect/region"
	"github.com/weft-telemetry/weft/collect/translate"
	"github.com/weft-telemetry/weft/ingest/capture"
	"github.com/weft-telemetry/weft/ingest/rocev2"
	"github.com/weft-telemetry/weft/ingest/udp"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
	"github.com/weft-telemetry/weft/wire/roce"
)

// Config configures a collector. It has memory, or writes that of remote
// Collectors. Its memory is written by reports that it receives itself, or by
// RDMA: RoCE.
type Config struct {
	Listen        netip.AddrPort   // reports; port 0 selects a free one
	RoCE          netip.AddrPort   // RoCEv2 requests, instead of reports
	Control       netip.AddrPort   // TCP address of connection setup for RoCE
	Collectors    []string         // connection setup of remote collectors, host:port; keys are sharded over them
	Replicas      int              // how many of Collectors, one after the other, store the same reports; 0 is 1
	Patience      time.Duration    // how long reports are refused while a connection to one of Collectors is set up again; 0 is 500 ms
	Name          string           // of this translator, at remote collectors
	Source        netip.AddrPort   // of requests to remote collectors; port 0 selects free ones
	Status        netip.AddrPort   // HTTP: /status, /metrics, /notices, /healthz; the zero value disables it
	Workers       int              // sockets that share the port, each with a goroutine
	ReceiveBuffer int              // bytes the kernel may queue for each socket
	Offload       bool             // UDP GRO: the kernel delivers runs of datagrams as one message
	AnswerPort    uint16           // port of reporters of version 1 for acks; 0 is the port they report from
	Rate          float64          // rate limit in reports per second; 0 for none
	Burst         int              // burst of the rate limit in reports
	Reporters     int              // maximum number of reporters with tracked sequence numbers
	Translate     translate.Config // of the translators
	Memory        MemoryConfig

	// CM connects to the one remote collector by RDMA_CM: it is not Weft, and its
	// address has its port in RDMA's port space. Memory is then its geometry.
	CM bool
	// Regions are those of the remote memories with CM; none: the collector sends them.
	Regions []rdma.Region
	// Keys are those of translators: of this one at remote collectors, of others
	// with RoCE; nil: none.
	Keys rocev2.Keys
	// Allow are the addresses of translators that may connect; none: all.
	Allow []netip.Prefix
	// Unauthenticated permits RoCE beyond loopback without Keys.
	Unauthenticated bool
	// Gate decides who may report; nil: all.
	Gate translate.Gate
	// Now is the time at which datagrams arrive; nil: the wall clock, which may be set
	// while the collector runs.
	Now func() model.Time
	// Panic, if not nil, is called with a datagram whose handling panicked, which then costs
	// no more than the datagram. It must not keep the data.
	Panic func(v any, datagram []byte)
	// Tap, if not nil, is called with every datagram, and whether any of its
	// reports was stored. Workers call it concurrently; it must not keep the
	// datagram.
	Tap func(at model.Time, from netip.AddrPort, datagram []byte, stored bool)
	// Recorded, if not nil, returns the counters of the recorder behind Tap.
	Recorded func() capture.Stats
	// Drained, if not nil, is called by Run when every received report is in
	// memory, for a last read: the memory is closed when it returns.
	Drained func()
}

// DefaultConfig listens on loopback.
func DefaultConfig() Config {
	loopback := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	return Config{
		Listen:        netip.AddrPortFrom(loopback, dta.Port),
		Control:       netip.AddrPortFrom(loopback, rocev2.ControlPort),
		Name:          "translator",
		Source:        netip.AddrPortFrom(loopback, 0),
		Status:        netip.AddrPortFrom(loopback, StatusPort),
		Workers:       1,
		ReceiveBuffer: udp.DefaultConfig(netip.AddrPort{}).ReceiveBuffer,
		Offload:       true,
		Burst:         1 << 16,
		Reporters:     translate.DefaultReporters,
		Translate:     translate.DefaultConfig(),
		Memory:        DefaultMemory(),
	}
}

// StatusPort is the default port of a collector's status.
const StatusPort = 40046

// MaxWorkers is one less than the writers of a memory: the last is RDMA.
const MaxWorkers = region.Writers - 1

// Validate returns the first error of the configuration.
func (c Config) Validate() error {
	if c.Workers < 1 || c.Workers > MaxWorkers {
		return fmt.Errorf("collector: %d workers, want 1 to %d", c.Workers, MaxWorkers)
	}
	if c.Reporters < 1 {
		return fmt.Errorf("collector: %d reporters, want at least 1", c.Reporters)
	}
	if c.RoCE.IsValid() && len(c.Collectors) > 0 {
		return errors.New("collector: both memory for RDMA and remote collectors, want one or the other")
	}
	if c.RoCE.IsValid() {
		if err := c.rdma().Validate(); err != nil {
			return err
		}
	}
	if n := max(c.Replicas, 1); c.Replicas < 0 || len(c.Collectors)%n != 0 {
		return fmt.Errorf("collector: %d replicas among %d collectors, want a number that divides them", c.Replicas, len(c.Collectors))
	}
	if c.CM {
		if err := c.validateCM(); err != nil {
			return err
		}
	}
	if _, err := c.limiter(); err != nil || len(c.Collectors) > 0 { // their memory is known when they are connected
		return err
	}
	plan, err := c.Memory.Plan()
	if err != nil {
		return err
	}
	for _, q := range c.Translate.Queries {
		if err := q.Check(plan); err != nil {
			return err
		}
	}
	for _, q := range c.Translate.Heavy {
		if err := q.Check(plan); err != nil {
			return err
		}
	}
	return nil
}

// validateCM returns what does not go with RDMA_CM.
func (c Config) validateCM() error {
	switch {
	case len(c.Collectors) != 1:
		return fmt.Errorf("collector: %d collectors by RDMA_CM, want 1: all its packets have port %d", len(c.Collectors), roce.Port)
	case c.Keys != nil:
		return errors.New("collector: keys by RDMA_CM, which cannot prove them; want no keys, or a collector that is Weft")
	}
	if _, err := c.Memory.Plan(); err != nil {
		return fmt.Errorf("%w; want the geometry of the collector's memory", err)
	}
	return nil
}

// rdma is the configuration of the memory that others write.
func (c Config) rdma() rocev2.ServerConfig {
	return rocev2.ServerConfig{RoCE: c.RoCE, Control: c.Control, Keys: c.Keys, Allow: c.Allow, Unauthenticated: c.Unauthenticated}
}

// limiter is each worker's share of the rate.
func (c Config) limiter() (translate.Limiter, error) {
	return translate.NewLimiter(c.Rate/float64(c.Workers), c.Burst)
}
