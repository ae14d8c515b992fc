package control

// Kind is a kind of report.
type Kind uint8

// Kinds of reports.
const (
	Flowset Kind = iota
	Label
	Mirror
	Epoch
	DiagnosisRequest
	numListKinds // those before are in lists

	PortReading  = numListKinds     // counters of a port
	PacketSample = numListKinds + 1 // a sampled or dropped packet
	FlowRecord   = numListKinds + 2 // of NetFlow or IPFIX
	RouteUpdate  = numListKinds + 3 // of BGP, by BMP
	numKinds     = numListKinds + 4
)

var kindNames = [numKinds]string{"flowset", "label", "mirror", "epoch", "diagnosis-request", "counters", "packet-sample", "flow-record", "route"}

// String prints the kind's name.
func (k Kind) String() string { return kindNames[k] }
