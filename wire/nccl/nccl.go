// Package nccl reads what is written about NCCL's collectives: dumps of PyTorch's flight
// recorder as JSON, the output of NCCL's Inspector plugin, and reports of its RAS service. What the collectives say of
// a job is analyze/collectives's work. Layouts: docs/formats/nccl.md.
package nccl

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// Bounds of what is read. An entry of the flight recorder without stack traces has about
// 600 bytes, a verbose one of the Inspector 200 for each channel.
const (
	MaxRecords = 1_000_000 // of all files
	maxValue   = 1 << 20   // bytes of one entry
	maxName    = 256       // bytes of a name
	maxRank    = 1 << 20
)

// Record is one collective on one rank.
type Record struct {
	Group Group
	Rank  int    // of the communicator (Inspector), or of the job (flight recorder)
	Host  string // empty: the file does not have it
	Op    string // as the file names it: AllReduce, all_reduce
	Seq   uint64
	Bytes uint64 // message size (Inspector), or size of the inputs; 0: unknown
	// Time is when the rank enqueued it, by its own clock. The Inspector has it if it is
	// verbose, else it is when the record was written.
	Time time.Time
	// Duration is how long it took on the GPU; 0: it was not timed.
	Duration time.Duration
	Waiting  bool // enqueued, and not complete when the file was written
}

// Group is a communicator or process group.
type Group struct {
	ID    string // of the communicator, or name of the process group
	Title string // description of a process group
	Ranks string // of the job that are in it, as pg_config lists them
	Size  int    // number of ranks; 0: unknown
}

// Dump is what one file has.
type Dump struct {
	Records []Record
	Members []Member // of reports of RAS
	// Skipped counts entries that are no collectives: sends, receives, proxies.
	Skipped int
	// Repeated counts further parts of coalesced collectives, which have one number.
	Repeated int
	Cut      bool // the last entry is incomplete, as of a process that was killed
	Full     bool // it has more entries than the limit
	// Grows says that entries are appended to the file, as the Inspector does: what follows
	// the byte End, where the last whole entry ends, is for ReadMore.
	Grows bool
	End   int64
}

// Errors that say what a file is instead.
var (
	ErrPickle = errors.New("a Python pickle, want JSON: have each rank write torch._C._distributed_c10d._dump_nccl_trace_json()")
	errFormat = errors.New("neither a flight recorder dump (an object with version and entries), nor output of the NCCL Inspector (objects with header and coll_perf) or of ncclras -f json (nccl_version and communicators)")
)

// Read reads a file of any kind. Rank is that of a flight recorder, whose file does not
// have it; negative: unknown. It keeps at most limit records.
func Read(r io.Reader, rank, limit int) (*Dump, error) {
	b := bufio.NewReader(r)
	first, err := b.Peek(1)
	switch {
	case errors.Is(err, io.EOF):
		return nil, errors.New("an empty file, want JSON")
	case err != nil:
		return nil, err
	case first[0] == 0x80: // the opcode PROTO
		return nil, ErrPickle
	}
	d := newDecoder(b)
	t, err := d.token()
	if err != nil || t != json.Delim('{') {
		return nil, errFormat
	}
	key, err := d.token()
	if err != nil || key == json.Delim('}') {
		return nil, errFormat
	}
	switch key {
	case "header":
		return readInspector(d, limit)
	case "nccl_version":
		return readRAS(d, limit)
	}
	return readFlightRecorder(d, key.(string), rank, limit)
}

// decoder reads JSON whose values have a bounded size.
type decoder struct {
	*json.Decoder
	in *boundedReader
}

func newDecoder(r io.Reader) *decoder {
	in := &boundedReader{r: r, left: maxValue}
	return &decoder{json.NewDecoder(in), in}
}

// token returns the next token.
func (d *decoder) token() (json.Token, error) {
	d.in.left = maxValue
	t, err := d.Token()
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF // within an object
	}
	return t, d.explain(err)
}

// value reads the next value.
func (d *decoder) value(v any) error {
	d.in.left = maxValue
	return d.explain(d.Decode(v))
}

// more reports whether a list has another value.
func (d *decoder) more() bool {
	d.in.left = maxValue
	return d.More()
}

// skip reads over the next value, of any size.
func (d *decoder) skip() error {
	for depth := 0; ; {
		t, err := d.token()
		if err != nil {
			return err
		}
		switch t {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth == 0 {
			return nil
		}
	}
}

// explain adds where an error is.
func (d *decoder) explain(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("at byte %d: %w", d.InputOffset(), err)
}

// boundedReader fails after a number of bytes, which is set anew for each value.
type boundedReader struct {
	r    io.Reader
	left int
}

var errLong = fmt.Errorf("a value of more than %d bytes", maxValue)

func (b *boundedReader) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errLong
	}
	n, err := b.r.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

// checkName returns an error for a name that is too long.
func checkName(what, name string) error {
	if len(name) > maxName {
		return fmt.Errorf("%s of %d bytes, want at most %d", what, len(name), maxName)
	}
	return nil
}

// checkRank returns an error for a rank that cannot be.
func checkRank(rank int) error {
	if rank < 0 || rank > maxRank {
		return fmt.Errorf("rank %d, want 0 to %d", rank, maxRank)
	}
	return nil
}
