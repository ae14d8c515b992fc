package api

import (
	"bytes"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/klauspost/compress/gzip"
)

// minCompressed is the size from which a response is compressed: a smaller one is
// one packet in both forms.
const minCompressed = 1400

// compressible are the media types that shrink. Captures are for other programs,
// images are compressed already.
var compressible = []string{
	"application/json", "application/openapi+json", "application/problem+json", "text/javascript", "text/css",
	"text/html", "text/plain", "text/vnd.graphviz", "image/svg+xml",
}

// acceptsGzip reports whether a client takes gzip, by its Accept-Encoding header
// (RFC 9110, 12.5.3).
func acceptsGzip(header string) bool {
	any := false
	for part := range strings.SplitSeq(header, ",") {
		coding, params, _ := strings.Cut(part, ";")
		coding = strings.ToLower(strings.TrimSpace(coding))
		if coding != "gzip" && coding != "x-gzip" && coding != "*" {
			continue
		}
		accepted := true
		if name, value, ok := strings.Cut(strings.TrimSpace(params), "="); ok && strings.EqualFold(strings.TrimSpace(name), "q") {
			q, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			accepted = err == nil && q > 0
		}
		if coding != "*" {
			return accepted
		}
		any = accepted
	}
	return any
}

// compress returns b in gzip's format.
func compress(b []byte, level int) []byte {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, level)
	if err == nil {
		if _, err = w.Write(b); err == nil {
			err = w.Close()
		}
	}
	if err != nil {
		panic(fmt.Sprintf("api: compress: %v", err)) // a buffer takes everything
	}
	return out.Bytes()
}

// compressWriter compresses a response, if the client takes it and it is worth it,
// which the first bytes of the body decide. The compression keeps no state between
// two writes, so a client that reads slowly holds no memory for it.
type compressWriter struct {
	http.ResponseWriter
	accepted bool
	status   int // not yet sent; 0: none, or sent
	gzip     *gzip.Writer
	decided  bool
}

func newCompressWriter(w http.ResponseWriter, r *http.Request) *compressWriter {
	w.Header().Add("Vary", "Accept-Encoding")
	accepted := r.Method != http.MethodHead && acceptsGzip(strings.Join(r.Header.Values("Accept-Encoding"), ","))
	return &compressWriter{ResponseWriter: w, accepted: accepted}
}

// WriteHeader keeps the status until the body begins, as its headers may change.
func (w *compressWriter) WriteHeader(status int) {
	if status < http.StatusOK {
		w.ResponseWriter.WriteHeader(status)
	} else if !w.decided && w.status == 0 {
		w.status = status
	}
}

func (w *compressWriter) Write(b []byte) (int, error) {
	w.decide(len(b))
	if w.gzip != nil {
		return w.gzip.Write(b)
	}
	return w.ResponseWriter.Write(b)
}

// decide sends the header of a response whose first write has n bytes.
func (w *compressWriter) decide(n int) {
	if w.decided {
		return
	}
	w.decided = true
	if w.accepted && n >= minCompressed && w.shrinks() {
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Del("Content-Length")
		w.Header().Del("Accept-Ranges")
		w.gzip, _ = gzip.NewWriterLevel(w.ResponseWriter, gzip.StatelessCompression) // a valid level
	}
	if w.status != 0 {
		w.ResponseWriter.WriteHeader(w.status)
		w.status = 0
	}
}

// shrinks reports whether the response is whole, not compressed yet, and of a type
// that shrinks.
func (w *compressWriter) shrinks() bool {
	if w.status == http.StatusPartialContent || w.Header().Get("Content-Encoding") != "" {
		return false
	}
	typ, _, err := mime.ParseMediaType(w.Header().Get("Content-Type"))
	return err == nil && slices.Contains(compressible, typ)
}

// close sends what is left of a response.
func (w *compressWriter) close() {
	w.decide(0)
	if w.gzip != nil {
		_ = w.gzip.Close() // the client has disconnected
	}
}

// Unwrap lets deadlines through.
func (w *compressWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
