package api

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/klauspost/compress/flate"
)

// eventText is an event as it is sent. All clients share it, and it is compressed
// once, for the first client that takes it so: each compressed event ends at a
// byte and refers to no other, so any sequence of them is one stream.
type eventText struct {
	plain []byte

	once     sync.Once
	deflated []byte
}

// newEventText encodes an event; an empty id is left out. It returns the event's
// data, too, which is part of the text. Data is one line: encoded JSON has no line
// breaks.
func newEventText(id, name string, data []byte) (t *eventText, line []byte) {
	b := make([]byte, 0, len(data)+len(id)+len(name)+24)
	if id != "" {
		b = append(append(append(b, "id: "...), id...), '\n')
	}
	b = append(append(append(b, "event: "...), name...), "\ndata: "...)
	at := len(b)
	b = append(append(b, data...), "\n\n"...)
	return &eventText{plain: b}, b[at : at+len(data)]
}

func (t *eventText) compressed() []byte {
	t.once.Do(func() { t.deflated = deflate(t.plain, false) })
	return t.deflated
}

func deflate(b []byte, last bool) []byte {
	var out bytes.Buffer
	if err := flate.StatelessDeflate(&out, b, last, nil); err != nil {
		panic(fmt.Sprintf("api: compress an event: %v", err)) // a buffer takes everything
	}
	return out.Bytes()
}

// eventWriter writes to one client. The first error is sticky.
type eventWriter struct {
	w       http.ResponseWriter
	rc      *http.ResponseController
	timeout time.Duration
	types   []string
	err     error

	zip  bool   // compressed: one gzip stream
	sum  uint32 // of the plain text, as are the bytes
	size uint32
}

// gzipHeader is that of a stream without name and time.
var gzipHeader = []byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255}

func (o *eventWriter) begin() {
	if o.zip {
		o.writeRaw(gzipHeader)
	}
}

// end ends the stream, so that the client sees no broken connection.
func (o *eventWriter) end() {
	if !o.zip {
		return
	}
	b := binary.LittleEndian.AppendUint32(deflate(nil, true), o.sum)
	o.writeRaw(binary.LittleEndian.AppendUint32(b, o.size))
	_ = o.flush() // the client has disconnected
}

func (o *eventWriter) writeRaw(b []byte) {
	if o.err == nil {
		o.err = o.rc.SetWriteDeadline(time.Now().Add(o.timeout))
	}
	if o.err == nil {
		_, o.err = o.w.Write(b)
	}
}

func (o *eventWriter) write(t *eventText) {
	if !o.zip {
		o.writeRaw(t.plain)
		return
	}
	o.sum = crc32.Update(o.sum, crc32.IEEETable, t.plain)
	o.size += uint32(len(t.plain))
	o.writeRaw(t.compressed())
}

func (o *eventWriter) writeText(s string) { o.write(&eventText{plain: []byte(s)}) }

// wants reports whether the client has requested a type of event.
func (o *eventWriter) wants(name string) bool {
	return len(o.types) == 0 || slices.Contains(o.types, name) || name == "reset"
}

func (o *eventWriter) writeMessage(m message) {
	if o.wants(m.name) {
		o.write(m.text)
	}
}

// writeEvent writes an event for this client only, without an id.
func (o *eventWriter) writeEvent(e Event) {
	if o.wants(e.event()) {
		t, _ := newEventText("", e.event(), encodeEvent(e))
		o.write(t)
	}
}

func (o *eventWriter) flush() error {
	if o.err == nil {
		o.err = o.rc.Flush()
	}
	return o.err
}
