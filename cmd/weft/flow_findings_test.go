package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestFlowsWithoutFindings: flows of a controller that does not analyse flows are listed
// all the same; other errors of its findings are errors.
func TestFlowsWithoutFindings(t *testing.T) {
	for status, want := range map[int]string{
		http.StatusNotImplemented:      "this controller does not analyse flows",
		http.StatusNotFound:            "this controller does not analyse flows",
		http.StatusInternalServerError: "flow-findings: broken (500)",
	} {
		mux := http.NewServeMux()
		mux.HandleFunc("/api/v1/flows", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"items":[{"flow":"udp 10.0.0.2:1 > 10.1.0.2:2","packets":7,"path":["tor0"]}],"covered_from":"2026-01-01T00:00:00Z","covered_to":"2026-01-01T00:00:01Z"}`)
		})
		mux.HandleFunc("/api/v1/flow-findings", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(status)
			fmt.Fprintf(w, `{"status":%d,"detail":"broken"}`, status)
		})
		s := httptest.NewServer(mux)
		k := &queryRunner{t, s.URL}
		code := exitFine
		if status == http.StatusInternalServerError {
			code = exitError
		}
		out := k.weft(code, "flows", "--from", "2026-01-01T00:00:00Z", "--to", "2026-01-01T00:00:01Z")
		if !strings.Contains(out, want) || code == exitFine && !strings.Contains(out, "udp 10.0.0.2:1 > 10.1.0.2:2") {
			t.Errorf("findings with status %d: weft flows says\n%s\nwant %q, and the flow", status, out, want)
		}
		s.Close()
	}
}
