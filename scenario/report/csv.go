package report

import (
	"encoding/csv"
	"io"
	"strconv"
)

// WriteFlowsCSV writes every flow in the run's order, with a header line.
// Finish, completion time and slowdown are empty where there is none.
func (r *Run) WriteFlowsCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	out.Write([]string{ // errors stay with out and come from out.Error
		"src", "dst", "src_addr", "dst_addr", "src_port", "dst_port", "proto",
		"priority", "transport", "group", "bytes", "delivered_bytes", "retransmitted_packets",
		"start_ns", "finish_ns", "fct_ns", "ideal_fct_ns", "slowdown", "finished",
	})
	for i := range r.Flows {
		f := &r.Flows[i]
		var finish, fct, slowdown string
		if f.Finished {
			finish, fct = decimal(f.Finish), decimal(f.FCT())
		}
		if s := f.Slowdown(); s > 0 {
			slowdown = strconv.FormatFloat(s, 'f', 4, 64)
		}
		out.Write([]string{
			f.Src, f.Dst, f.Key.Src.String(), f.Key.Dst.String(),
			decimal(f.Key.SrcPort), decimal(f.Key.DstPort), f.Key.Proto.String(),
			decimal(f.Priority), f.Transport, f.Group,
			decimal(f.Bytes), decimal(f.delivered()), decimal(f.Retransmitted),
			decimal(f.Start), finish, fct, decimal(f.Ideal), slowdown, strconv.FormatBool(f.Finished),
		})
	}
	out.Flush()
	return out.Error()
}

// WritePortsCSV writes the samples of every port, port after port, with a
// header line.
func (r *Run) WritePortsCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	out.Write([]string{"time_ns", "node", "port", "peer", "queue_bytes", "tx_bytes", "paused_share"}) // as above
	for i := range r.Ports {
		p := &r.Ports[i]
		port := decimal(p.Port)
		for _, s := range p.Samples {
			out.Write([]string{
				decimal(s.At), p.Node, port, p.Peer, decimal(s.Queue), decimal(s.Tx),
				strconv.FormatFloat(s.Paused, 'g', -1, 64),
			})
		}
	}
	out.Flush()
	return out.Error()
}

// WritePausesCSV writes every pause and resume frame by time, with a header line.
// Hold is empty where the frame holds until a resume.
func (r *Run) WritePausesCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	out.Write([]string{"time_ns", "node", "port", "interface", "priority", "pause", "hold_ns"}) // as above
	for _, e := range byTime(r.Pauses) {
		var hold string
		if e.Hold > 0 {
			hold = decimal(e.Hold)
		}
		out.Write([]string{decimal(e.At), e.Node, decimal(e.Port), e.Interface, decimal(e.Priority), strconv.FormatBool(e.Pause), hold})
	}
	out.Flush()
	return out.Error()
}

// decimal prints a number without its type's unit.
func decimal[N ~int64 | ~uint64 | ~uint16 | ~uint8](n N) string {
	if n < 0 {
		return strconv.FormatInt(int64(n), 10)
	}
	return strconv.FormatUint(uint64(n), 10)
}
