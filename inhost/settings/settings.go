// Package settings is how the interfaces of a host are set up for lossless traffic: PFC, ETS,
// priorities of DSCPs, buffers, pause frames, MTU and ECN. What the kernel or a driver does not
// answer is named, because it is not the same as off. dataplane/hostcounters reads them,
// scenario/preflight/configdb compares them with switches.
// Guide: docs/agent.md#settings-for-lossless-traffic.
package settings

import (
	"net/netip"
	"slices"
	"time"
)

// Host are the settings of one host.
type Host struct {
	Hostname string    `json:"hostname"`
	Time     time.Time `json:"time"`
	// TCPECN is net.ipv4.tcp_ecn: 0 never, 1 asks for it, 2 accepts it; nil: not known.
	TCPECN     *int        `json:"tcp_ecn,omitempty"`
	Interfaces []Interface `json:"interfaces"`
}

// Interface are the settings of one interface. What is nil did not answer: Unanswered says why.
type Interface struct {
	Name      string       `json:"name"`
	Driver    string       `json:"driver,omitempty"`
	Addresses []netip.Addr `json:"addresses,omitempty"`
	MTU       int          `json:"mtu"` // from the IP header on
	PFC       *PFC         `json:"pfc,omitempty"`
	ETS       *ETS         `json:"ets,omitempty"`
	Apps      *[]App       `json:"apps,omitempty"` // the table of IEEE 802.1Q that gives priorities
	Trust     []Selector   `json:"trust,omitempty"`
	DCBX      *DCBX        `json:"dcbx,omitempty"`
	Buffers   *Buffers     `json:"buffers,omitempty"`
	Pause     *Pause       `json:"pause,omitempty"`
	RDMA      []RDMA       `json:"rdma,omitempty"`
	// Unanswered says why a question (dcb, pfc, ets, buffers, pause) has no answer.
	Unanswered map[string]string `json:"unanswered,omitempty"`
}

// Questions that may be unanswered.
const (
	QuestionDCB     = "dcb" // all of PFC, ETS, Apps, DCBX and Buffers
	QuestionPFC     = "pfc"
	QuestionETS     = "ets"
	QuestionBuffers = "buffers"
	QuestionPause   = "pause"
)

// PFC is priority-based flow control, struct ieee_pfc.
type PFC struct {
	Enabled    Priorities `json:"enabled"`
	Classes    uint8      `json:"classes"` // how many traffic classes may have it
	MACsecSkip bool       `json:"macsec_bypass,omitempty"`
	Delay      uint16     `json:"delay_bits"` // of link and NIC, in bit times
}

// ETS is enhanced transmission selection, struct ieee_ets.
type ETS struct {
	Classes   uint8     `json:"classes"` // that it supports; 0: 8
	Willing   bool      `json:"willing"` // it takes what the switch says by DCBX
	Algorithm [8]string `json:"algorithm_by_class"`
	Bandwidth [8]uint8  `json:"bandwidth_percent_by_class"`
	ClassOf   [8]uint8  `json:"class_by_priority"`
}

// Selector says what an App identifies.
type Selector string

// Selectors of IEEE 802.1Q, and PCP, which is Linux's own.
const (
	EtherType Selector = "ethertype"
	Stream    Selector = "stream-port" // TCP or SCTP
	Datagram  Selector = "dgram-port"  // UDP or DCCP
	Port      Selector = "port"
	DSCP      Selector = "dscp"
	PCP       Selector = "pcp"
)

// App gives a priority to packets of a protocol, a port or a DSCP.
type App struct {
	Selector Selector `json:"selector"`
	Protocol uint16   `json:"protocol"`
	Priority uint8    `json:"priority"`
}

// DCBX says who negotiates the settings with the switch.
type DCBX struct {
	Host    bool `json:"host"`         // a program of the host, such as lldpad
	Managed bool `json:"lld_managed"`  // the NIC's firmware
	CEE     bool `json:"version_cee"`  // by CEE
	IEEE    bool `json:"version_ieee"` // by IEEE 802.1Q
	Static  bool `json:"static"`       // no negotiation: the settings are used as they are
}

// Buffers are the receive buffers of a port, struct dcbnl_buffer.
type Buffers struct {
	ByPriority [8]uint8  `json:"buffer_by_priority"`
	Bytes      [8]uint32 `json:"bytes_by_buffer"`
	Total      uint32    `json:"total_bytes"`
}

// Pause are the pause frames of IEEE 802.3x, which stop all priorities.
type Pause struct {
	Negotiated bool `json:"autonegotiation"`
	Obey       bool `json:"rx"`
	Send       bool `json:"tx"`
}

// RDMA are the settings of an RDMA port over an interface.
type RDMA struct {
	Device string `json:"device"`
	Port   int    `json:"port"`
	// NotifyECN and ReactECN are the priorities whose marked packets are answered with CNPs
	// (roce_np), and that send slower after CNPs (roce_rp); nil: not known.
	NotifyECN *Priorities `json:"roce_np_ecn,omitempty"`
	ReactECN  *Priorities `json:"roce_rp_ecn,omitempty"`
	// TrafficClass is what the driver gives all packets, CMTrafficClass the default of RDMA_CM:
	// the DSCP and two bits of ECN; nil: not known.
	TrafficClass   *uint8 `json:"traffic_class,omitempty"`
	CMTrafficClass *uint8 `json:"rdma_cm_traffic_class,omitempty"`
}

// NotAnswered notes why a question has no answer.
func (in *Interface) NotAnswered(question, why string) {
	if in.Unanswered == nil {
		in.Unanswered = map[string]string{}
	}
	in.Unanswered[question] = why
}

// PrioritiesOfDSCP returns the priority of each DSCP that has one. The kernel takes the highest of
// several.
func (in *Interface) PrioritiesOfDSCP() map[int]int {
	of := map[int]int{}
	if in.Apps == nil {
		return of
	}
	for _, a := range *in.Apps {
		if was, known := of[int(a.Protocol)]; a.Selector == DSCP && (!known || int(a.Priority) > was) {
			of[int(a.Protocol)] = int(a.Priority)
		}
	}
	return of
}

// RDMAMTU is the payload of RDMA packets over an interface with an MTU, as the kernel chooses
// it (iboe_get_mtu): the largest of InfiniBand's that fits with all headers. 0: none fits.
func RDMAMTU(mtu int) int {
	const headers = 40 + 8 + 12 + 4 + 28 + 4 // GRH, UDP, BTH, XRC, AtomicETH, ICRC
	for _, n := range []int{4096, 2048, 1024, 512, 256} {
		if mtu-headers >= n {
			return n
		}
	}
	return 0
}

// With returns the interface that has a name, or else the address, or nil.
func (h *Host) With(name string, address netip.Addr) *Interface {
	i := slices.IndexFunc(h.Interfaces, func(in Interface) bool { return in.Name == name })
	if i < 0 && address.IsValid() {
		i = slices.IndexFunc(h.Interfaces, func(in Interface) bool { return slices.Contains(in.Addresses, address) })
	}
	if i < 0 {
		return nil
	}
	return &h.Interfaces[i]
}
