package api

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"testing"
)

var update = flag.Bool("update", false, "rewrite openapi.json")

// TestDocument compares the committed OpenAPI document with the code: clients are
// written against it, so every change must be visible in a diff.
func TestDocument(t *testing.T) {
	s, _ := newServer(t)
	got, err := s.OpenAPIDocument()
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := json.Indent(&b, got, "", " "); err != nil {
		t.Fatal(err)
	}
	b.WriteByte('\n')
	if *update {
		if err := os.WriteFile("openapi.json", b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(b.Bytes(), want) {
		t.Error("openapi.json is out of date; run: go test ./control/api -run TestDocument -update")
	}
}
