package dta

import "testing"

// flowReport is a small report about an IPv4 flow.
func flowReport() Report {
	return Report{Primitive: KeyWrite, Redundancy: 2, Key: make([]byte, 13), Data: make([]byte, 4)}
}

// pack fills buf with copies of r.
func pack(w *Writer, r *Report, buf []byte) []byte {
	w.Begin(buf)
	for w.AddReport(r) == nil {
	}
	return w.Finish()
}

// maxPayload is what a datagram over IPv6 may hold with an MTU of 1500 bytes.
const maxPayload = 1500 - 40 - 8

func perReport(b *testing.B, count int) {
	reports := float64(b.N) * float64(count)
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/reports, "ns/report")
	b.ReportMetric(reports/1e6/b.Elapsed().Seconds(), "Mreport/s")
}

func BenchmarkWriter(b *testing.B) {
	w, r, buf := NewWriter(7, 0), flowReport(), make([]byte, maxPayload)
	for b.Loop() {
		pack(&w, &r, buf)
	}
	perReport(b, (maxPayload-HeaderSize)/(headSize+13+4))
}

func BenchmarkReader(b *testing.B) {
	w, r, buf := NewWriter(7, 0), flowReport(), make([]byte, maxPayload)
	datagram := pack(&w, &r, buf)
	var in Reader
	for b.Loop() {
		for in.Reset(datagram); in.Next(&r); {
		}
	}
	perReport(b, int(in.Header().Count))
}

func BenchmarkPrototype(b *testing.B) {
	p := Prototype{Layout: Base3, Report: Report{Primitive: KeyWrite, Redundancy: 2, Key: make([]byte, 4), Data: make([]byte, 4)}}
	wire := p.AppendTo(nil)
	b.Run("parse", func(b *testing.B) {
		for b.Loop() {
			layout, _ := DetectLayout(wire)
			p.Parse(wire, layout)
		}
	})
	b.Run("append", func(b *testing.B) {
		for b.Loop() {
			wire = p.AppendTo(wire[:0])
		}
	})
}

func BenchmarkAck(b *testing.B) {
	a := Ack{Verdict: Gap, Reporter: 7, First: 9, Count: 2}
	wire := a.AppendTo(nil)
	b.Run("parse", func(b *testing.B) {
		for b.Loop() {
			a.Parse(wire)
		}
	})
	b.Run("append", func(b *testing.B) {
		for b.Loop() {
			wire = a.AppendTo(wire[:0])
		}
	})
}
