package file

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/weft-telemetry/weft/topo"
)

// check parses and, if that works, checks that the document is the same after
// writing and parsing it again. Every error must be an *Error.
func check(t *testing.T, format Format, in []byte) {
	d, err := ParseAs(format, "in", in)
	if err != nil {
		var e *Error
		if !errors.As(err, &e) {
			t.Fatalf("ParseAs(%s, %q) = %T %v; want an *Error", format, in, err, err)
		}
		return
	}
	d.PerServer = 0 // is not written
	// Few bytes may describe many nodes. That is valid, and slow to compare.
	if len(d.Fabric.Nodes()) > 500 {
		return
	}
	for _, to := range []Format{YAML, JSON} {
		text := write(t, to, d)
		got, err := ParseAs(to, "out", text)
		if err != nil {
			t.Fatalf("ParseAs(%s, Write) = %v; want no error in\n%s", to, err, text)
		}
		if x := diff(d, got); x != "" {
			t.Fatalf("Write(%s) changes the document (-want +got):\n%s\nin\n%s", to, x, text)
		}
	}
	if _, err := d.Routes(); err != nil {
		t.Fatalf("Routes of %q = %v; want no error", in, err)
	}
	write(t, Dot, d)
	back, err := ParseAs(HPCC, "out", write(t, HPCC, d))
	if err != nil {
		t.Fatalf("ParseAs(hpcc, Write) = %v; want no error", err)
	}
	wantLinks, wantSwitch := shape(d)
	gotLinks, gotSwitch := shape(back)
	if x := cmp.Diff(wantLinks, gotLinks) + cmp.Diff(wantSwitch, gotSwitch); x != "" {
		t.Fatalf("Write(hpcc) changes the shape (-want +got):\n%s", x)
	}
}

func seed(f *testing.F, names ...string) {
	for _, name := range names {
		in, err := os.ReadFile("testdata/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(in)
	}
}

func FuzzYAML(f *testing.F) {
	seed(f, "fabric.yaml", "lab.clab.yml")
	f.Add([]byte(`{"nodes": [{"name": "a", "role": "tor", "pod": 1, "nets": ["::/0"]}], "seed": 3}`))
	f.Add([]byte("name: x\ngenerate: {kind: clos, pods: 1, rate: 1.5Gb/s, delay: 1µs}\nroutes: [{at: tor0, to: 10.0.0.0/8, ports: [Ethernet4, Ethernet0]}]\n"))
	f.Add([]byte("nodes:\n  - {name: \"true\", role: host}\n  - {name: 1e3, role: leaf}\n  - {name: 0x1, role: mux, ipv6: fd00::1}\nlinks:\n  - {ends: [\"true\", 1e3:a/b], error-rate: 1e-300}\n"))
	f.Fuzz(func(t *testing.T, in []byte) { check(t, YAML, in) })
}

func FuzzContainerlab(f *testing.F) {
	seed(f, "lab.clab.yml", "fabric.yaml")
	f.Add([]byte("topology: {nodes: {a: {kind: linux}, b: {kind: x}}, links: [{endpoints: [a:b, b:c]}]}"))
	f.Fuzz(func(t *testing.T, in []byte) { check(t, Containerlab, in) })
}

func FuzzHPCC(f *testing.F) {
	seed(f, "hpcc.txt")
	f.Add([]byte("2 0 1 0 1 1.5kbps 3h 1e-9"))
	f.Fuzz(func(t *testing.T, in []byte) { check(t, HPCC, in) })
}

func FuzzHPCCRoutes(f *testing.F) {
	seed(f, "routes.txt")
	f.Add([]byte("3 0 2\n2 1 3 # x\n"))
	ring, err := topo.Ring(3, 1, topo.DefaultLinks())
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		routes, err := ParseHPCCRoutes("in", in, ring)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("ParseHPCCRoutes(%q) = %T %v; want an *Error", in, err, err)
			}
			return
		}
		d := &Document{Fabric: ring, Overrides: routes}
		if _, err := d.Routes(); err != nil {
			t.Fatalf("Routes of %q = %v; want no error", in, err)
		}
		var out strings.Builder
		if err := WriteHPCCRoutes(&out, d); err != nil {
			t.Fatalf("WriteHPCCRoutes of %q = %v; want no error", in, err)
		}
		again, err := ParseHPCCRoutes("out", []byte(out.String()), ring)
		if err != nil {
			t.Fatalf("ParseHPCCRoutes(%q) = %v; want no error", out.String(), err)
		}
		if x := diff(d, &Document{Fabric: ring, Overrides: again}); x != "" {
			t.Fatalf("routes change when written (-want +got):\n%s", x)
		}
	})
}
