package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gopacket/gopacket/pcapgo"
)

// framesOf returns the comments of a pcapng file's frames.
func framesOf(t *testing.T, path string) (comments []string) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	r, err := pcapgo.NewNgReader(file, pcapgo.DefaultNgReaderOptions)
	if err != nil {
		t.Fatal(err)
	}
	for {
		_, _, options, err := r.ReadPacketDataWithOptions()
		if errors.Is(err, io.EOF) {
			return comments
		}
		if err != nil {
			t.Fatal(err)
		}
		comments = append(comments, strings.Join(options.Comments, "\n"))
	}
}

// TestPcapngHasAllTraces: the file has every matching trace of a scenario, hop by
// hop, however many are listed, and only the selected one with --show.
func TestPcapngHasAllTraces(t *testing.T) {
	dir := t.TempDir()
	small, pcapng := filepath.Join(dir, "small.yaml"), filepath.Join(dir, "traces.pcapng")
	sampled := filepath.Join(dir, "sampled.yaml") // every packet
	for path, text := range map[string]string{
		small: threeFlows, sampled: strings.Replace(threeFlows, "kind: mirror,", "kind: mirror, every: 1,", 1),
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const twenty = "infiniband && ip.dst in {h3, h4} && infiniband.bth.psn < 20" // of each of two flows
	for name, c := range map[string]struct {
		args   []string
		frames int // three hops of each trace
		last   string
	}{
		"marks":     {[]string{"debug", small, "--filter", twenty, "--top", "7"}, 120, "trace 40, hop 3 of 3: "},
		"host":      {[]string{"debug", small, "--filter", twenty, "--host", "h1,h2"}, 60, "trace 20, hop 3 of 3: "},
		"traces":    {[]string{"trace", sampled, "--filter", twenty, "--top", "7"}, 120, "trace 40, hop 3 of 3: "},
		"one trace": {[]string{"trace", sampled, "--filter", twenty, "--show", "2"}, 3, "trace 1, hop 3 of 3: "},
	} {
		t.Run(name, func(t *testing.T) {
			queryScenario[map[string]any](t, exitFine, append(c.args, "--pcapng", pcapng)...)
			frames := framesOf(t, pcapng)
			if len(frames) != c.frames {
				t.Fatalf("%d frames; want %d", len(frames), c.frames)
			}
			if got := frames[len(frames)-1]; !strings.HasPrefix(got, c.last) {
				t.Errorf("last frame %q; want %s", got, c.last)
			}
		})
	}
}
