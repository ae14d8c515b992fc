package api

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"pgregory.net/rapid"
)

// unzip decompresses a response.
func unzip(t interface{ Fatalf(string, ...any) }, b []byte) []byte {
	r, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatalf("not in gzip's format: %v", err)
	}
	out, err := io.ReadAll(r)
	if err != nil {
		t.Fatalf("decompress: %v", err)
	}
	return out
}

// TestCompression: a compressed response is the plain one in less bytes; small ones,
// captures, parts of files and clients that do not take it get the plain one.
func TestCompression(t *testing.T) {
	script := bytes.Repeat([]byte("export const a = 1;\n"), 1000)
	s, _ := newServer(t, func(_ *Config, d *Deps) {
		d.Console = fstest.MapFS{"index.html": {Data: []byte("<html>")}, "assets/a.js": {Data: script}}
	})
	for _, tc := range []struct {
		path   string
		zipped bool
		header []string
	}{
		{path: Prefix + "/topology", zipped: true},
		{path: Prefix + "/state", zipped: true},
		{path: Prefix + "/overview", zipped: true},
		{path: Prefix + "/topology?pods=1", zipped: true},
		{path: Prefix + "/state?pods=1", zipped: true},
		{path: Prefix + "/traces?limit=100", zipped: true},
		{path: Prefix + "/diagnoses/d-0?format=svg", zipped: true},
		{path: "/openapi.json", zipped: true},
		{path: "/assets/a.js", zipped: true},
		{path: "/assets/a.js", header: []string{"Range", "bytes=0-9999"}},
		{path: "/"},
		{path: "/version"},
		{path: Prefix + "/traces/1.pcapng"},
	} {
		plain := do(s.Handler(), "GET", tc.path, "", tc.header...)
		if plain.Header().Get("Content-Encoding") != "" || plain.Header().Get("Vary") != "Accept-Encoding" {
			t.Errorf("%s without Accept-Encoding: %v", tc.path, plain.Header())
		}
		for _, no := range []string{"br, zstd", "gzip;q=0, *"} {
			if w := do(s.Handler(), "GET", tc.path, "", append(tc.header, "Accept-Encoding", no)...); w.Header().Get("Content-Encoding") != "" {
				t.Errorf("%s was compressed for Accept-Encoding: %s", tc.path, no)
			}
		}
		w := do(s.Handler(), "GET", tc.path, "", append(tc.header, "Accept-Encoding", "br, gzip")...)
		got := w.Body.Bytes()
		if zipped := w.Header().Get("Content-Encoding") == "gzip"; zipped != tc.zipped {
			t.Errorf("%s %v: compressed %v; want %v", tc.path, tc.header, zipped, tc.zipped)
			continue
		}
		if tc.zipped {
			if got = unzip(t, got); w.Body.Len() > len(got)/2 {
				t.Errorf("%s: %d bytes compressed to %d", tc.path, len(got), w.Body.Len())
			}
			if n := w.Header().Get("Content-Length"); n != "" && n != strconv.Itoa(w.Body.Len()) {
				t.Errorf("%s: Content-Length %s of %d bytes", tc.path, n, w.Body.Len())
			}
		}
		if w.Code != plain.Code || w.Header().Get("Content-Type") != plain.Header().Get("Content-Type") || !bytes.Equal(got, plain.Body.Bytes()) {
			t.Errorf("%s: compressed %d %.80q; want %d %.80q", tc.path, w.Code, got, plain.Code, plain.Body)
		}
	}
}

// TestCompressionOfProblems: an error keeps its status and type, also after a panic.
func TestCompressionOfProblems(t *testing.T) {
	s, _ := newServer(t)
	for path, want := range map[string]int{Prefix + "/incidents/none": 404, Prefix + "/flows?last=never": 422, "/none.js": 404} {
		if w := do(s.Handler(), "GET", path, "", "Accept-Encoding", "gzip"); w.Code != want || w.Header().Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s = %d %v; want %d", path, w.Code, w.Header(), want)
		}
	}
	broken := s.guard(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusTeapot)
		panic("broken")
	}))
	if w := do(broken, "GET", "/", "", "Accept-Encoding", "gzip"); w.Code != 500 || !strings.Contains(w.Body.String(), "internal error") {
		t.Errorf("a panic = %d %q; want 500", w.Code, w.Body)
	}
}

// TestCompressedParts: however a handler divides a body into writes, the client gets
// the same bytes.
func TestCompressedParts(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var want []byte
		parts := rapid.SliceOf(rapid.SliceOfN(rapid.Byte(), 0, 4000)).Draw(rt, "parts")
		h := http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
			w := newCompressWriter(out, r)
			w.Header().Set("Content-Type", "application/json")
			for _, p := range parts {
				if n, err := w.Write(p); n != len(p) || err != nil {
					rt.Fatalf("Write of %d bytes = %d, %v", len(p), n, err)
				}
			}
			w.close()
		})
		for _, p := range parts {
			want = append(want, p...)
		}
		w := do(h, "GET", "/", "", "Accept-Encoding", "gzip")
		got := w.Body.Bytes()
		if w.Header().Get("Content-Encoding") == "gzip" {
			got = unzip(rt, got)
		}
		if !bytes.Equal(got, want) {
			rt.Fatalf("got %d bytes; want %d", len(got), len(want))
		}
	})
}

func TestAcceptsGzip(t *testing.T) {
	for header, want := range map[string]bool{
		"": false, "gzip": true, "GZIP": true, "x-gzip": true, "br, gzip": true, "gzip;q=0": false, "gzip; q=0.000": false,
		"gzip;q=0.5": true, "*": true, "*;q=0": false, "*;q=0, gzip": true, "gzip;q=0, *": false, "identity": false,
		"gzipped": false, "gzip;q=x": false, "deflate, gzip;q=1.0, *;q=0.5": true, ";,;": false,
	} {
		if got := acceptsGzip(header); got != want {
			t.Errorf("acceptsGzip(%q) = %v; want %v", header, got, want)
		}
	}
}

// FuzzAcceptsGzip: a client that accepts gzip in a list accepts it in any order.
func FuzzAcceptsGzip(f *testing.F) {
	f.Add("br, gzip;q=0.5, *;q=0")
	f.Fuzz(func(t *testing.T, header string) {
		acceptsGzip(header)
		if strings.Contains(strings.ToLower(header), "gzip") {
			return
		}
		if !acceptsGzip(header+", gzip") || !acceptsGzip("gzip,"+header) || acceptsGzip(header+", gzip;q=0") {
			t.Errorf("the answer depends on %q", header)
		}
	})
}

func TestUnchanged(t *testing.T) {
	for header, want := range map[string]bool{
		"": false, `"a-1"`: true, `W/"a-1"`: true, `"x", W/"a-1"`: true, `"x" , "y"`: false, "*": true, "a-1": false,
		`"a-1`: false, `"a-1", "x`: true, `"x,a-1"`: false, `"x", a, "a-1"`: false,
	} {
		if got := (&Conditional{IfNoneMatch: header}).unchanged(`W/"a-1"`); got != want {
			t.Errorf("If-None-Match: %s: unchanged = %v; want %v", header, got, want)
		}
	}
}

// FuzzUnchanged: a tag in a list of tags is found, wherever it is.
func FuzzUnchanged(f *testing.F) {
	f.Add(`"a", W/"b"`, uint8(1))
	f.Fuzz(func(t *testing.T, list string, at uint8) {
		(&Conditional{IfNoneMatch: list}).unchanged(`W/"tag-7"`)
		var tags []string
		for i, name := range strings.FieldsFunc(list, func(r rune) bool { return r == '"' }) {
			tags = append(tags, fmt.Sprintf(`%s"x%s"`, []string{"", "W/"}[i%2], name))
		}
		if (&Conditional{IfNoneMatch: strings.Join(tags, ", ")}).unchanged(`W/"tag-7"`) {
			t.Errorf("the tag is not in %q", tags)
		}
		tags = slices.Insert(tags, int(at)%(len(tags)+1), `"tag-7"`)
		if text := strings.Join(tags, ", "); !(&Conditional{IfNoneMatch: text}).unchanged(`W/"tag-7"`) {
			t.Errorf("the tag is in %s", text)
		}
	})
}

// TestETags: a client that has the current topology or snapshot gets 304 without a
// body; after a change it gets the new one.
func TestETags(t *testing.T) {
	s, k := newServer(t)
	for _, path := range []string{"/topology", "/topology?pods=1", "/state", "/state?pods=1", "/overview"} {
		first := do(s.Handler(), "GET", Prefix+path, "")
		tag := first.Header().Get("ETag")
		if !strings.HasPrefix(tag, `W/"`) {
			t.Fatalf("%s: ETag %q", path, tag)
		}
		for _, accept := range []string{"", "gzip"} {
			w := do(s.Handler(), "GET", Prefix+path, "", "If-None-Match", tag, "Accept-Encoding", accept)
			if w.Code != 304 || w.Body.Len() > 0 || w.Header().Get("ETag") != tag || w.Header().Get("Content-Encoding") != "" {
				t.Errorf("%s with its tag = %d, %d bytes, %v", path, w.Code, w.Body.Len(), w.Header())
			}
		}
		k.change(3, 99)
		w := do(s.Handler(), "GET", Prefix+path, "", "If-None-Match", tag)
		if topology := strings.HasPrefix(path, "/topology"); topology != (w.Code == 304) || topology != (w.Header().Get("ETag") == tag) {
			t.Errorf("%s after a change of the state = %d, tag %s; it was %s", path, w.Code, w.Header().Get("ETag"), tag)
		}
	}
}
