package scenario

import (
	"strings"
	"testing"
)

const mirrored = `duration: 3ms
topology:
  generate: {kind: leaf-spine, leaves: 2, spines: 2, hosts: 2}
traffic:
  - {kind: persistent, pairs: [h0>h2, h1>h3, h2>h1, h3>h0], rate: 1Gb/s, stop: 1500us}
telemetry:
  - {kind: mirror, every: 1, lists: 2}
`

// TestTraceExpectations: expected findings pass; missing or additional ones do
// not.
func TestTraceExpectations(t *testing.T) {
	const broken = mirrored + "faults:\n  - {kind: silent-drop, switch: leaf0, share: 50%}\n"
	for name, tc := range map[string]struct {
		text string
		want Verdict
		row  string // of the expectations
	}{
		"nothing, and nothing is found": {mirrored + "expect: {traces: none}\n", Pass, "traces: anything else, want none, got none"},
		"a drop":                        {broken + "expect:\n  traces:\n    - {kind: drop, switch: leaf0}\n", Pass, "traces: drop at leaf0, want found, got drop at leaf0 towards spine"},
		"elsewhere":                     {broken + "expect:\n  traces:\n    - {kind: drop, switch: leaf1}\n", Fail, "traces: drop at leaf1, want found, got not found"},
		"towards another":               {broken + "expect:\n  traces:\n    - {kind: drop, switch: leaf0, next: h0}\n", Fail, "traces: drop at leaf0 towards h0, want found, got not found"},
		"another kind":                  {broken + "expect:\n  traces:\n    - {kind: loop, switch: leaf0}\n", Fail, "traces: anything else, want none, got drop at leaf0"},
		"none of it":                    {broken + "expect: {traces: none}\n", Fail, "traces: anything else, want none, got drop at leaf0"},
		"no slow link":                  {mirrored + "expect:\n  traces:\n    - {kind: slow-link, port: leaf0>spine0, above: 10us}\n", Fail, "traces: slow-link at leaf0 Ethernet8 → spine0, want above 10µs, got leaf0 Ethernet8 → spine0 round trip 2."},
		"all links":                     {mirrored + "expect:\n  traces:\n    - {kind: slow-link, port: leaf0>spine0, above: 1us}\n", Fail, "traces: anything else, want none, got leaf"},
		"no pauses":                     {mirrored + "expect:\n  traces:\n    - {kind: pauses, port: leaf0>h0, above: 1}\n", Fail, "traces: pauses at leaf0 Ethernet0 → h0, want above 1, got not found"},
	} {
		t.Run(name, func(t *testing.T) {
			r := runScenario(t, mustParse(t, tc.text))
			found := false
			var rows []string
			for _, j := range r.Expected {
				rows = append(rows, j.What+", want "+j.Want+", got "+j.Got)
				found = found || strings.HasPrefix(rows[len(rows)-1], tc.row)
			}
			if r.Verdict != tc.want || !found {
				t.Errorf("verdict %s\n%s\nwant %s with %q", r.Verdict, strings.Join(rows, "\n"), tc.want, tc.row)
			}
		})
	}
}

func TestTraceExpectationErrors(t *testing.T) {
	for text, want := range map[string]string{
		"duration: 1ms\ntopology:\n  generate: {kind: ring, switches: 3, hosts: 2}\nexpect: {traces: none}\n": `4: traces are expected and no switch mirrors, want "- {kind: mirror}" under telemetry`,
		mirrored + "expect:\n  traces:\n    - {kind: flood, switch: leaf0}\n":                                 `10: finding of kind "flood", want drop, silent, loop, slow-mux, slow-link, imbalance or pauses`,
		mirrored + "expect:\n  traces:\n    - {kind: drop}\n":                                                 `10: drop has no switch, want switch`,
		mirrored + "expect:\n  traces:\n    - {kind: drop, switch: h0}\n":                                     `10: h0 is a host, want a switch`,
		mirrored + "expect:\n  traces:\n    - {kind: drop, switch: leaf0, above: 3}\n":                        `10: drop has an above, want switch`,
		mirrored + "expect:\n  traces:\n    - {kind: slow-link, port: leaf0>spine0, above: much}\n":           `10: above "much", want a duration such as 10us`,
		mirrored + "expect:\n  traces:\n    - {kind: imbalance, switch: leaf0, above: much}\n":                `10: above "much", want a number`,
	} {
		_, err := Parse("x.yaml", []byte(text))
		if err == nil || err.Error() != "x.yaml:"+want {
			t.Errorf("Parse = %v\nwant x.yaml:%s", err, want)
		}
	}
}
