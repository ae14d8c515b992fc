package main

import (
	"bytes"
	"strings"
	"testing"
)

// TestUnknownFlagValue gives flags with known values another: the command names the flag
// and its values, and asks no controller.
func TestUnknownFlagValue(t *testing.T) {
	for args, want := range map[string]string{
		"trace --end short":            `--end "short", want arrived, lost, looped, unsettled or unknown`,
		"flows --sort size":            `--sort "size", want bytes, packets, lost, lost_share, rate, duration or newest`,
		"flows --group-by switch":      `--group-by "switch", want host, dst_host, rack, dst_rack, job, port, path or class`,
		"incidents --severity high":    `--severity "high", want notice, warning or critical`,
		"incidents --state gone":       `--state "gone", want open or closed`,
		"incidents --cause blackholes": `--cause "blackholes", want `,
		"ports --heat --metric depth":  `--metric "depth", want queue_bytes, latency_ns, load_bps or paused_share`,
		"top --sort=":                  `--sort "", want load, queue, paused or lost`,
		"jobs --metric=":               `--metric "", want took, wait or rate`,
		"demo --speak cumulus":         `--speak "cumulus", want sonic`,
		"topo discover --tls maybe":    `--tls "maybe", want verify, skip-verify or off`,
	} {
		t.Run(args, func(t *testing.T) {
			var out bytes.Buffer
			code := (&app{}).run(strings.Fields(args), &out, &out)
			if code != exitUsage || !strings.Contains(out.String(), want) {
				t.Errorf("exit code %d, %s\nwant %d and %s", code, &out, exitUsage, want)
			}
		})
	}
}
