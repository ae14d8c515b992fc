package scenario

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

const star = `duration: 500us
topology: {generate: {kind: leaf-spine, leaves: 1, spines: 1, hosts: 9}}
traffic:
  - {kind: incast, receivers: h0, fanin: 8, bytes: 1MB, start: 1us, congestion-control: off}
`

func notesOf(t *testing.T, text string) (notes string, r *Result) {
	t.Helper()
	r = runScenario(t, mustParse(t, text))
	return strings.Join(r.Run.Notes, "\n"), r
}

// Eight flows with a window of 52 KB each cannot fill a buffer of 16 MB far
// enough; without windows they can.
func TestPFCCannotFire(t *testing.T) {
	windows := star + "fabric: {window: path}\n"
	notes, r := notesOf(t, windows)
	if !strings.Contains(notes, "PFC cannot fire: all flows together can queue at most 66.7 kB") || !strings.Contains(notes, "a pause needs") || r.Summary.Pauses.PauseFrames != 0 {
		t.Errorf("with windows: notes %q, %d pauses; want PFC explained, none", notes, r.Summary.Pauses.PauseFrames)
	}
	notes, r = notesOf(t, star+"fabric: {buffer: 2MB}\n")
	if strings.Contains(notes, "cannot fire") || r.Summary.Pauses.PauseFrames == 0 {
		t.Errorf("without windows: notes %q, %d pauses; want nothing explained, some", notes, r.Summary.Pauses.PauseFrames)
	}
	notes, _ = notesOf(t, star+"fabric: {pfc: off}\n")
	if !strings.Contains(notes, "PFC cannot fire: no priority is lossless") {
		t.Errorf("without PFC: notes %q; want that said", notes)
	}
	notes, _ = notesOf(t, strings.Replace(star, "bytes:", "priority: 1, bytes:", 1))
	if !strings.Contains(notes, "PFC cannot fire: no flow has a lossless priority") {
		t.Errorf("with lossy traffic: notes %q; want that said", notes)
	}
}

// TestExplanationsAreTrue: a run whose notes say that PFC cannot fire has no
// pauses, whatever the fabric. The notes are made of the settings alone: the
// run's own pauses are hidden from them.
func TestExplanationsAreTrue(t *testing.T) {
	said := 0
	rapid.Check(t, func(rt *rapid.T) {
		text := fmt.Sprintf("seed: %d\nfabric: {window: %s, buffer: %dKB, alpha: 1/%d, mtu: %d}\n%s",
			rapid.Uint64Range(1, 1000).Draw(rt, "seed"),
			rapid.SampledFrom([]string{"off", "path", "fabric"}).Draw(rt, "window"),
			rapid.IntRange(900, 6000).Draw(rt, "buffer"), 1<<rapid.IntRange(0, 5).Draw(rt, "alpha"),
			rapid.IntRange(256, 2048).Draw(rt, "mtu"),
			strings.Replace(star, "bytes: 1MB", fmt.Sprintf("bytes: %dKB", rapid.IntRange(1, 200).Draw(rt, "size")), 1))
		s, err := parse("test.yaml", []byte(text), nothing)
		if err != nil {
			rt.Fatal(err)
		}
		x, err := assemble(s, Options{})
		if err != nil {
			return // too small a buffer
		}
		note := x.pfcCannotFire()
		if err := x.simulate(t.Context(), zeroWall, nil); err != nil {
			rt.Fatal(err)
		}
		if note != "" {
			said++
			if n := x.net.Counts.Pauses; n > 0 {
				rt.Fatalf("%d pauses; want none, as %q\n%s", n, note, text)
			}
		}
	})
	if said == 0 {
		t.Error("no run was explained; want some")
	}
}

func TestHeadroomTooSmall(t *testing.T) {
	notes, r := notesOf(t, star+"fabric: {buffer: 2MB, headroom: 2KB}\n")
	if !strings.Contains(notes, "headroom is too small to be lossless on 11 ports of 100Gb/s and 1µs: it is 2 kB, and up to 29.") {
		t.Errorf("notes %q; want the headroom explained", notes)
	}
	if r.LosslessDrops == 0 || r.Verdict != UnexpectedFault || !strings.Contains(notes, "packets of a lossless class were dropped (buffer full)") {
		t.Errorf("%d drops of the lossless class, verdict %s, notes %q; want some, FAULT, and a note", r.LosslessDrops, r.Verdict, notes)
	}
	// The verdict names what happened, and nothing that did not.
	if len(r.Faults) != 1 || !strings.HasPrefix(r.Faults[0], "a lossless class dropped ") {
		t.Errorf("faults %q; want drops of the lossless class alone", r.Faults)
	}
	notes, r = notesOf(t, star+"fabric: {buffer: 2MB}\n")
	if strings.Contains(notes, "headroom") || r.LosslessDrops != 0 {
		t.Errorf("computed headroom: notes %q, %d drops; want none", notes, r.LosslessDrops)
	}
}
