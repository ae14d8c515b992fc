package hpcc

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/weft-telemetry/weft/sim"
)

// incast is a star of n senders and one receiver with links of a delay.
func incast(n int, delay string, bytes int, config string) map[string]string {
	var topology, flows strings.Builder
	fmt.Fprintf(&topology, "%d 1 %d\n0\n", n+2, n+1)
	fmt.Fprintf(&flows, "%d\n", n)
	for i := range n + 1 {
		fmt.Fprintf(&topology, "0 %d 100Gbps %s 0\n", i+1, delay)
		if i > 0 {
			fmt.Fprintf(&flows, "%d 1 3 100 %d 2\n", i+1, bytes)
		}
	}
	return map[string]string{"config.txt": plainConfig + "SIMULATOR_STOP_TIME 2.002\n" + config, "topology.txt": topology.String(), "flow.txt": flows.String()}
}

func setup(t *testing.T, files map[string]string) *Setup {
	t.Helper()
	c, err := Read(write(t, files))
	if err != nil {
		t.Fatal(err)
	}
	s, err := Build(c, Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// What the notes say, and that the simulator agrees.
func TestExplain(t *testing.T) {
	for name, tc := range map[string]struct {
		files  map[string]string
		notes  []string
		pauses bool
		drops  bool
	}{
		// A window of (4 µs + 160 ns) × 100 Gb/s is 52 KB; the packet that
		// reaches it may pass it, so 53 packets of 1048 bytes and, for the
		// acknowledgements of others' flows, none. Of 16 MiB the headroom of 17
		// ports takes 37500 each and their reserve 4 KiB.
		"windows hide PFC": {
			files: incast(16, "1us", 1_000_000, "BUFFER_SIZE 16\n"),
			notes: []string{"PFC cannot fire: at most 55.5 kB of one port can be queued in a switch (s0 port 2, flows: 1, with a window of 52 kB each), and a pause needs 1.9 MB there (BUFFER_SIZE is 16MiB)"},
		},
		"no windows": {
			files: incast(16, "1us", 4_000_000, "BUFFER_SIZE 16\nHAS_WIN 0\nCC_MODE 0\n"), pauses: true,
		},
		"no windows, but little to send": {
			files: incast(16, "1us", 10_000, "BUFFER_SIZE 16\nHAS_WIN 0\n"),
			notes: []string{"PFC cannot fire: at most 10.5 kB of one port can be queued in a switch (s0 port 2, flows: 1, bounded by their sizes, as HAS_WIN is 0), and a pause needs 1.99 MB there (BUFFER_SIZE is 16MiB)"},
		},
		"short links": {
			files:  incast(16, "10ns", 4_000_000, "BUFFER_SIZE 1\nHAS_WIN 0\nCC_MODE 0\n"),
			notes:  []string{"headroom is too small to be lossless on 17 ports of 100Gb/s and 10ns: it is 375 B (3 × rate × delay), and up to 4.14 kB arrive after a pause; the excess is dropped"},
			pauses: true, drops: true,
		},
		"queue 0": {
			files: map[string]string{"config.txt": plainConfig, "topology.txt": plainStar, "flow.txt": "1\n1 2 0 100 5000 2\n"},
			notes: []string{"PFC cannot fire: no flow has a priority that PFC acts on"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := setup(t, tc.files)
			if len(s.Notes) != len(tc.notes) {
				t.Fatalf("notes are %q; want %q", s.Notes, tc.notes)
			}
			for i := range tc.notes {
				if s.Notes[i] != tc.notes[i] {
					t.Errorf("note is\n%s\nwant\n%s", s.Notes[i], tc.notes[i])
				}
			}
			n := runSetup(t, s)
			if got := n.Counts.Pauses > 0; got != tc.pauses {
				t.Errorf("the run has %d pauses; want some: %v", n.Counts.Pauses, tc.pauses)
			}
			if got := n.Counts.Drops[sim.DropBuffer] > 0; got != tc.drops {
				t.Errorf("the run has %d drops; want some: %v", n.Counts.Drops[sim.DropBuffer], tc.drops)
			}
		})
	}
}

// Whatever the buffer: where the note says that PFC cannot fire, it does not.
// Sizes are drawn evenly around the thresholds, where a mistake would show.
func TestPFCCannotFireIsNeverWrong(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	quiet, paused := 0, 0
	for range 120 {
		senders := 2 + rng.IntN(5)
		config := fmt.Sprintf("EPOCH_TIME 1000\nBUFFER_SIZE %d\nHAS_WIN %d\nENABLE_QCN 0\nCC_MODE 0\n",
			600+rng.IntN(900), rng.IntN(2))
		s := setup(t, incast(senders, "1us", 1+rng.IntN(250_000), config))
		silent := len(s.Notes) > 0 && strings.HasPrefix(s.Notes[0], "PFC cannot fire")
		pauses := runSetup(t, s).Counts.Pauses
		if silent && pauses > 0 {
			t.Fatalf("%d pauses; want none, as the notes say: %q", pauses, s.Notes)
		}
		if silent {
			quiet++
		}
		if pauses > 0 {
			paused++
		}
	}
	if quiet < 20 || paused < 20 {
		t.Errorf("of 120 runs %d cannot pause and %d do; want at least 20 of each", quiet, paused)
	}
}
