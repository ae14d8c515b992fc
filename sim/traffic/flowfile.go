package traffic

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/weft-telemetry/weft/internal/fileerror"
	"github.com/weft-telemetry/weft/model"
)

// maxFlowFile bounds a flow file: MaxFlows lines of 32 bytes.
const maxFlowFile = MaxFlows * 32

// ReadFlows reads a flow file. Every error is an *Error.
func ReadFlows(path string, hosts []Host) ([]Flow, error) {
	data, err := readFile(path, maxFlowFile)
	if err != nil {
		return nil, err
	}
	return ParseFlows(path, data, hosts)
}

// ParseFlows reads the flow file of the HPCC simulator: a line with the number
// of flows, then a line "source destination priority destination-port bytes
// start-in-seconds" for each. Nodes are ids of the topology, and must be among
// the hosts, which ascend by id. Lines after the last flow are comments. Empty
// lines are skipped, and the starts need not ascend, as they must there. All
// flows are RDMA. Every error is an *Error.
func ParseFlows(name string, data []byte, hosts []Host) ([]Flow, error) {
	var flows []Flow
	line, count := 0, -1
	complain := func(format string, args ...any) ([]Flow, error) {
		return nil, fileerror.Errorf(name, max(line, 1), format, args...)
	}
	for text := range strings.Lines(string(data)) {
		if len(flows) == count {
			break
		}
		line++
		words := strings.Fields(text)
		if len(words) == 0 {
			continue
		}
		if count < 0 {
			n, err := strconv.ParseUint(words[0], 10, 64)
			if len(words) != 1 || err != nil || n > MaxFlows {
				return complain("number of flows %q, want a number from 0 to %d alone", strings.TrimSpace(text), MaxFlows)
			}
			count = int(n)
			// The count is trusted only as far as there are lines.
			flows = make([]Flow, 0, min(count, len(data)/len("0 1 3 1 1 0\n")+1))
			continue
		}
		f, err := parseFlow(words, hosts)
		if err != nil {
			return complain("flow %d of %d: %v", len(flows)+1, count, err)
		}
		flows = append(flows, f)
	}
	if count < 0 {
		return complain("file ends here, want the number of flows")
	}
	if len(flows) < count {
		return complain("file ends after %d flows, want %d", len(flows), count)
	}
	return flows, nil
}

func parseFlow(words []string, hosts []Host) (Flow, error) {
	if len(words) != 6 {
		return Flow{}, fmt.Errorf("%d words, want source, destination, priority, destination port, bytes and start",
			len(words))
	}
	var v [5]uint64
	for i, field := range []struct {
		name        string
		least, most uint64
	}{
		{"source", 0, math.MaxUint32},
		{"destination", 0, math.MaxUint32},
		{"priority", 0, 7},
		{"destination port", 0, math.MaxUint16},
		{"bytes", 1, uint64(MaxBytes)},
	} {
		n, err := strconv.ParseUint(words[i], 10, 64)
		if err != nil || n < field.least || n > field.most {
			return Flow{}, fmt.Errorf("%s %q, want a number from %d to %d", field.name, words[i], field.least, field.most)
		}
		v[i] = n
	}
	seconds, ok := parseDecimal(words[5])
	if most := float64(MaxTime) / 1e9; !ok || seconds > most {
		return Flow{}, fmt.Errorf("start %q, want seconds from 0 to %v", words[5], most)
	}
	f := Flow{
		Src: model.NodeID(v[0]), Dst: model.NodeID(v[1]),
		Priority: model.Priority(v[2]), DstPort: uint16(v[3]), Bytes: model.Bytes(v[4]),
		Start: model.Time(math.Round(seconds * 1e9)),
	}
	return f, f.check(hosts)
}
