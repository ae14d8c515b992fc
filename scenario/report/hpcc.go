package report

import (
	"bufio"
	"cmp"
	"io"
	"slices"
	"strconv"

	"github.com/weft-telemetry/weft/model"
)

// WriteFCT writes the finished flows in HPCC's fct.txt: source and destination
// address in hex, ports, bytes, start, completion time, standalone completion
// time, the times in nanoseconds, one flow per line in the order they finished.
// HPCC knows only IPv4, 8 hex digits; an IPv6 address takes 32.
func (r *Run) WriteFCT(w io.Writer) error {
	out := bufio.NewWriter(w)
	var line []byte
	for _, f := range r.finishOrder() {
		line = appendHex(line[:0], f.Key.Src, f.Key.V6)
		line = appendHex(append(line, ' '), f.Key.Dst, f.Key.V6)
		for _, v := range [...]int64{
			int64(f.Key.SrcPort), int64(f.Key.DstPort), int64(f.Bytes),
			int64(f.Start), int64(f.FCT()), int64(f.Ideal),
		} {
			line = strconv.AppendInt(append(line, ' '), v, 10)
		}
		out.Write(append(line, '\n')) // the error stays with out and comes from Flush
	}
	return out.Flush()
}

// finishOrder lists the finished flows; those that finish in one nanosecond
// keep the run's order.
func (r *Run) finishOrder() []*FlowResult {
	var done []*FlowResult
	for i := range r.Flows {
		if f := &r.Flows[i]; f.Finished {
			done = append(done, f)
		}
	}
	slices.SortStableFunc(done, func(a, b *FlowResult) int { return cmp.Compare(a.Finish, b.Finish) })
	return done
}

func appendHex(b []byte, a model.Addr, v6 bool) []byte {
	const digits = "0123456789abcdef"
	if v6 {
		for shift := 60; shift >= 0; shift -= 4 {
			b = append(b, digits[a.Hi>>shift&15])
		}
		for shift := 60; shift >= 32; shift -= 4 {
			b = append(b, digits[a.Lo>>shift&15])
		}
	}
	for shift := 28; shift >= 0; shift -= 4 {
		b = append(b, digits[a.Lo>>shift&15])
	}
	return b
}

// WritePFC writes the pause events in HPCC's pfc.txt: time in nanoseconds,
// node id, node type (0 host, 1 switch), port, event (1 pause, 0 resume), all
// of the receiver, ordered by time. The format has no priority: with more than
// one lossless class, lines of a port interleave.
func (r *Run) WritePFC(w io.Writer) error {
	out := bufio.NewWriter(w)
	var line []byte
	for _, e := range byTime(r.Pauses) {
		line = strconv.AppendInt(line[:0], int64(e.At), 10)
		line = strconv.AppendUint(append(line, ' '), uint64(e.ID), 10)
		line = append(line, ' ', bit(e.Switch), ' ')
		line = strconv.AppendUint(line, uint64(e.Port), 10)
		line = append(line, ' ', bit(e.Pause), '\n')
		out.Write(line) // as above
	}
	return out.Flush()
}

func bit(set bool) byte {
	if set {
		return '1'
	}
	return '0'
}

// WriteQueueLengths writes the queues of the switches' ports in HPCC's
// qlen.txt: the time of the dump in nanoseconds, then for each port its switch,
// its number, and how often its queue had 0 to 1 kB, 1 to 2 kB and so on. HPCC
// looks every 100 ns and dumps every 100 ms; here each sample counts once, with
// the maximum of its interval, and the one dump is at the end. Ports that no
// packet waited at have one number.
func (r *Run) WriteQueueLengths(w io.Writer) error {
	out := bufio.NewWriter(w)
	line := strconv.AppendInt([]byte("time: "), int64(r.End), 10)
	out.Write(append(line, '\n')) // as above
	for i := range r.Ports {
		p := &r.Ports[i]
		var counts []int64
		for _, s := range p.Samples {
			for kb := int(s.Queue / model.KB); kb >= len(counts); {
				counts = append(counts, 0)
			}
			counts[s.Queue/model.KB]++
		}
		line = strconv.AppendUint(line[:0], uint64(p.ID), 10)
		line = strconv.AppendUint(append(line, ' '), uint64(p.Port), 10)
		for _, n := range counts {
			line = strconv.AppendInt(append(line, ' '), n, 10)
		}
		out.Write(append(line, '\n'))
	}
	return out.Flush()
}
