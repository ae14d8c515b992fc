package nccl

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// inspected is one object of the Inspector's output, format v4 and v5.
type inspected struct {
	Header   inspectedHeader `json:"header"`
	Metadata struct {
		Version string `json:"inspector_output_format_version"`
		DumpUs  int64  `json:"dump_timestamp_us"`
		Host    string `json:"hostname"`
	} `json:"metadata"`
	Perf *struct {
		Coll    string  `json:"coll"`
		Seq     uint64  `json:"coll_sn"`
		Bytes   uint64  `json:"coll_msg_size_bytes"`
		ExecUs  float64 `json:"coll_exec_time_us"`
		TraceTs struct {
			StartUs int64 `json:"coll_start_ts"`
		} `json:"event_trace_ts"` // if it is verbose
	} `json:"coll_perf"`
}

type inspectedHeader struct {
	ID    string `json:"id"`
	Rank  int    `json:"rank"`
	Ranks int    `json:"n_ranks"`
}

// readInspector reads objects, of the first of which the key "header" was read.
func readInspector(d *decoder, limit int) (*Dump, error) {
	out := &Dump{Grows: true}
	var first inspected
	if err := d.rest(&first); err != nil {
		return out.cut(err)
	}
	if err := out.inspect(&first, limit); err != nil {
		return nil, err
	}
	out.End = d.InputOffset()
	return out.inspectAll(d, limit)
}

// ReadMore reads the entries of the Inspector that a file has after Dump.End; there may be none.
// The End of what it returns counts from where r begins.
func ReadMore(r io.Reader, limit int) (*Dump, error) {
	return (&Dump{Grows: true}).inspectAll(newDecoder(r), limit)
}

// inspectAll adds all objects that follow.
func (out *Dump) inspectAll(d *decoder, limit int) (*Dump, error) {
	for {
		var one inspected
		if err := d.value(&one); errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return out.cut(err)
		}
		if err := out.inspect(&one, limit); err != nil {
			return nil, fmt.Errorf("before byte %d: %w", d.InputOffset(), err)
		}
		if out.Full {
			return out, nil
		}
		out.End = d.InputOffset()
	}
}

// rest reads the object whose first key was read as a token.
func (d *decoder) rest(v *inspected) error {
	return d.fields("header", func(key string) error {
		switch key {
		case "header":
			return d.value(&v.Header)
		case "metadata":
			return d.value(&v.Metadata)
		case "coll_perf":
			return d.value(&v.Perf)
		}
		return d.skip()
	})
}

// cut returns what was read before an incomplete last object, else the error.
func (out *Dump) cut(err error) (*Dump, error) {
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		out.Cut = true
		return out, nil
	}
	return nil, err
}

// inspect adds an object.
func (out *Dump) inspect(v *inspected, limit int) error {
	p := v.Perf
	switch {
	case !strings.HasPrefix(v.Metadata.Version, "v4.") && !strings.HasPrefix(v.Metadata.Version, "v5."):
		return fmt.Errorf("inspector_output_format_version %.20q, want v4 or v5", v.Metadata.Version)
	case p == nil: // of a send, a receive or a proxy
		out.Skipped++
		return nil
	case len(out.Records) >= limit:
		out.Full = true
		return nil
	case v.Header.Ranks < 1 || v.Header.Ranks > maxRank || v.Header.Rank >= v.Header.Ranks:
		return fmt.Errorf("rank %d of n_ranks %d", v.Header.Rank, v.Header.Ranks)
	case p.ExecUs < 0 || p.ExecUs > 1e12:
		return fmt.Errorf("coll_exec_time_us %g, want 0 to 1e12", p.ExecUs)
	}
	at := v.Metadata.DumpUs
	if p.TraceTs.StartUs > 0 {
		at = p.TraceTs.StartUs
	}
	out.Records = append(out.Records, Record{
		Group: Group{ID: v.Header.ID, Size: v.Header.Ranks}, Rank: v.Header.Rank, Host: v.Metadata.Host,
		Op: p.Coll, Seq: p.Seq, Bytes: p.Bytes, Time: time.UnixMicro(at).UTC(), Duration: time.Duration(p.ExecUs * 1e3),
	})
	return errors.Join(checkRank(v.Header.Rank), checkName("id", v.Header.ID), checkName("hostname", v.Metadata.Host), checkName("coll", p.Coll))
}
