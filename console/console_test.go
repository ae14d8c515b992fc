package console_test

import (
	"bytes"
	"compress/gzip"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/weft-telemetry/weft/console"
)

// firstLoad bounds the gzipped bytes that load before the first view is visible.
const firstLoad = 400 << 10

// imports finds the static imports of a script, not import(); assets finds the
// files that index.html loads.
var (
	imports = regexp.MustCompile(`(?:from|import)\s*"(\./[^"]+)"`)
	assets  = regexp.MustCompile(`(?:src|href)="(\./[^"]+)"`)
)

// TestFirstLoad: the index and the first view are small.
func TestFirstLoad(t *testing.T) {
	files := console.Files()
	seen := map[string]bool{}
	sum := 0
	var load func(name string)
	load = func(name string) {
		if seen[name] {
			return
		}
		seen[name] = true
		data, err := fs.ReadFile(files, name)
		if err != nil {
			t.Fatalf("the console loads %s: %v", name, err)
		}
		sum += zipped(t, data)
		loads := imports
		if name == "index.html" {
			loads = assets
		}
		for _, m := range loads.FindAllSubmatch(data, -1) {
			load(path.Join(path.Dir(name), string(m[1])))
		}
	}
	load("index.html")
	views, err := fs.Glob(files, "assets/Map-*")
	if err != nil || len(views) == 0 {
		t.Fatalf("script of the first view: %v, %v", views, err)
	}
	for _, v := range views {
		load(v)
	}
	if sum > firstLoad {
		t.Errorf("first load is %d bytes gzipped, want at most %d: %v", sum, firstLoad, seen)
	}
	t.Logf("first load: %d bytes gzipped in %d files", sum, len(seen))
	for name := range seen {
		if strings.Contains(name, "Provenance") || strings.Contains(name, "uplot") {
			t.Errorf("%s is loaded at the start, want on first use", name)
		}
	}
}

func zipped(t *testing.T, data []byte) int {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Len()
}

// otherHosts finds URLs of other hosts, except XML namespaces.
var otherHosts = regexp.MustCompile(`https?://[^"'\s)\x60]+`)

// TestNoOtherHosts: the console works without internet access.
func TestNoOtherHosts(t *testing.T) {
	err := fs.WalkDir(console.Files(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(console.Files(), name)
		for _, u := range otherHosts.FindAllString(string(data), -1) {
			if !strings.HasPrefix(u, "http://www.w3.org/") && !strings.HasPrefix(u, "https://svelte.dev/e/") {
				t.Errorf("%s contains %s", name, u)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestBuildIsCurrent builds the console and the API types and compares them with
// the committed files. It needs Node 20 and the packages of web, which make console
// installs.
func TestBuildIsCurrent(t *testing.T) {
	if testing.Short() {
		t.Skip("building takes a while")
	}
	npx, err := exec.LookPath("npx")
	if err != nil {
		t.Skip("Node is not installed, so the committed build is not compared with its source")
	}
	version, err := exec.Command("node", "--version").Output()
	major, _ := strconv.Atoi(strings.Split(strings.TrimPrefix(strings.TrimSpace(string(version)), "v"), ".")[0])
	if err != nil || major < 20 {
		t.Skipf("Node %s, want 20 or newer to compare the committed build with its source", version)
	}
	if _, err := os.Stat("web/node_modules/vite"); err != nil {
		t.Skip("web/node_modules is missing (make test installs it with Node 20), so the committed build is not compared with its source")
	}
	t.Parallel()
	dir := t.TempDir()
	run := func(args ...string) {
		cmd := exec.Command(npx, args...)
		cmd.Dir = "web"
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("npx %v: %v\n%s", args, err, out)
		}
	}
	run("vite", "build", "--outDir", dir, "--logLevel", "warn")
	compare(t, os.DirFS(dir), console.Files())
	types := filepath.Join(t.TempDir(), "schema.d.ts")
	run("openapi-typescript", "../../control/api/openapi.json", "-o", types, "--default-non-nullable=false")
	fresh, err := os.ReadFile(types)
	if err != nil {
		t.Fatal(err)
	}
	kept, err := os.ReadFile("web/src/api/schema.d.ts")
	if err != nil || !bytes.Equal(fresh, kept) {
		t.Errorf("web/src/api/schema.d.ts is out of date with control/api/openapi.json (%v): run make console", err)
	}
}

func compare(t *testing.T, fresh, kept fs.FS) {
	t.Helper()
	files := func(f fs.FS) map[string]string {
		all := map[string]string{}
		if err := fs.WalkDir(f, ".", func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			data, err := fs.ReadFile(f, name)
			all[name] = string(data)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		return all
	}
	want, got := files(fresh), files(kept)
	for name, data := range want {
		if got[name] != data {
			t.Errorf("dist/%s is out of date: run make console and commit", name)
		}
	}
	for name := range got {
		if _, built := want[name]; !built {
			t.Errorf("dist/%s is no longer built: run make console and commit", name)
		}
	}
}
