package sim

import (
	"fmt"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/congestion"
)

// Config holds the settings of the fabric and its hosts. Start from
// DefaultConfig.
type Config struct {
	Seed uint64

	// Packets. Overhead is what the headers of an RDMA packet add to its
	// payload; 0 means those of RoCEv2, computed per packet.
	MTU      int32 // largest payload of a packet
	Overhead int32
	AckSize  int32 // 0: those of a RoCEv2 acknowledgement

	// Buffer and PFC. HPCC selects the HPCC simulator's accounting, headroom
	// and thresholds instead of the fields marked †.
	HPCC         bool
	Buffer       model.Bytes   // shared by all ports of a switch
	Reserve      model.Bytes   // † per port and priority
	ResumeOffset model.Bytes   // † below Xoff before a sender resumes
	AlphaShift   uint8         // † Xoff is free shared buffer >> AlphaShift
	Xoff, Xon    model.Bytes   // † static thresholds where Xoff is above 0
	Headroom     model.Bytes   // † per port; 0: computed from each link
	Lossless     uint8         // † priorities under PFC, one bit each
	LossyQueue   model.Bytes   // † tail-drop limit of a lossy egress queue; 0: none
	PauseTime    time.Duration // how long a PAUSE lasts; 0: until resumed
	NoPFC        bool

	// ECN, by port rate: the entry of the highest rate not above the port's.
	ECN      []ECNParams
	ECNAtEnq bool // mark on arrival instead of departure

	// NS3 selects the other behaviours of the HPCC simulator: times in whole
	// nanoseconds, short pause frames, priority 0 before all others and without
	// a buffer, and its NIC scheduler.
	NS3 bool

	// RDMA.
	Congestion   congestion.Params // congestion control of RDMA flows; nil: none, they send at line rate
	CNPInterval  time.Duration     // between CNPs of one queue pair; 0: every ACK echoes its mark, as in HPCC
	Window       bool              // limit bytes in flight to the bandwidth-delay product
	VarWindow    bool              // scale the window by the current rate
	GlobalWindow bool              // every flow has the largest window of any pair
	HPCCIdeal    bool              // ideal completion times by HPCC's formula
	AckPerBytes  int64             // 0: acknowledge every packet
	NackGap      time.Duration     // minimum time between NACKs for the same byte
	RTO          time.Duration     // go back N when nothing was acknowledged for this long; 0: never
	AckControl   bool              // acknowledgements use the control queue
	AckHosts     bool              // with AckControl: at hosts only; switches treat them as data
	RateBound    bool              // pace packets; off: congestion control acts through the window only

	// LoadBalancing is how switches choose among equal-cost ports for RDMA
	// payload. All other packets are hashed.
	LoadBalancing LoadBalancing
	// Selective makes RDMA receivers place packets in any order, and senders
	// repeat only those that are lost; see selective. ReorderWindow is how many
	// packets may be outstanding at once. A packet is lost when one that was sent
	// ReorderTime later has arrived.
	Selective     bool
	ReorderWindow int32
	ReorderTime   time.Duration
	// Trimming makes switches forward the headers of RDMA payload that a
	// full buffer cannot hold. It needs Selective.
	Trimming bool

	// TCPMinRTO is the minimum timeout of TCP. 0 means 1 ms, which suits
	// datacenters; hosts have 200 ms out of the box.
	TCPMinRTO time.Duration

	TTL uint8
}

// ECNParams is the marking curve of ports of at least this rate.
type ECNParams struct {
	Rate       model.Rate
	Kmin, Kmax model.Bytes
	Pmax       float64
}

// DefaultConfig returns a RoCEv2 fabric as operators configure it: lossless
// priority 3, PFC with expiring pauses, ECN, DCQCN with the paper's constants.
func DefaultConfig() Config {
	return Config{
		Seed: 1, MTU: 1024,
		Buffer: 16 * model.MB, Reserve: 4 * model.KiB, ResumeOffset: 3 * model.KiB, AlphaShift: 3,
		Lossless: 1 << 3, PauseTime: 300 * time.Microsecond,
		ECN: []ECNParams{
			{Rate: 0, Kmin: 100 * model.KB, Kmax: 400 * model.KB, Pmax: 0.2},
			{Rate: 50 * model.Gbps, Kmin: 200 * model.KB, Kmax: 800 * model.KB, Pmax: 0.2},
			{Rate: 100 * model.Gbps, Kmin: 400 * model.KB, Kmax: 1600 * model.KB, Pmax: 0.2},
		},
		Congestion: congestion.PaperDCQCN(), CNPInterval: congestion.PaperCNPInterval,
		NackGap: 500 * time.Microsecond, RTO: 4 * time.Millisecond, RateBound: true,
		ReorderWindow: 4096, ReorderTime: 50 * time.Microsecond,
		TTL: 64,
	}
}

// maxMTU is above the size of jumbo frames.
const maxMTU = 9600

// Check reports settings that cannot work.
func (c *Config) Check() error {
	switch {
	case c.MTU < 64 || c.MTU > maxMTU:
		return fmt.Errorf("sim: MTU %d, want 64 to %d", c.MTU, maxMTU)
	case c.Buffer <= 0:
		return fmt.Errorf("sim: buffer %v, want above 0", c.Buffer)
	case c.AlphaShift > 10:
		return fmt.Errorf("sim: alpha shift %d, want 0 to 10", c.AlphaShift)
	case c.TCPMinRTO < 0 || c.TCPMinRTO > maxRTO:
		return fmt.Errorf("sim: minimum TCP timeout %v, want 0 to %v", c.TCPMinRTO, maxRTO)
	case c.TTL == 0:
		return fmt.Errorf("sim: TTL 0, want at least 1")
	}
	if err := c.checkReordering(); err != nil {
		return err
	}
	if err := c.checkCongestion(); err != nil {
		return err
	}
	for _, e := range c.ECN {
		if e.Kmin < 0 || e.Kmax < e.Kmin || e.Pmax < 0 || e.Pmax > 1 {
			return fmt.Errorf("sim: ECN of %v: Kmin %v, Kmax %v, Pmax %v, want 0 <= Kmin <= Kmax and Pmax from 0 to 1", e.Rate,
				e.Kmin, e.Kmax, e.Pmax)
		}
	}
	return nil
}

func (c *Config) checkCongestion() error {
	if c.Congestion == nil {
		return nil
	}
	if t := c.Congestion.Traits(); t.INTMulti > 0 && !c.Window {
		return fmt.Errorf("sim: %s without windows, want Window", t.Name)
	}
	return c.Congestion.Check()
}

// ECNFor returns the marking curve of ports of a rate, if there is one.
func (c *Config) ECNFor(rate model.Rate) (best ECNParams, ok bool) {
	for _, e := range c.ECN {
		if e.Rate <= rate && (!ok || e.Rate >= best.Rate) {
			best, ok = e, true
		}
	}
	return best, ok
}
