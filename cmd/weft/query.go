package main

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weft-telemetry/weft/collect/region"
	"github.com/weft-telemetry/weft/collect/slothash"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/scenario/live"
)

func (a *app) queryCommand() *cobra.Command {
	all := []*cobra.Command{a.queryKeyWriteCommand(), a.queryPostcardCommand(), a.queryListCommand(), a.queryCountCommand(), a.queryPortCommand(), a.queryHostCommand(), a.queryPathCommand()}
	for _, cmd := range all {
		run := cmd.RunE
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			return region.Guard(func() error { return run(cmd, args) })
		}
	}
	return commandGroup(&cobra.Command{
		Use:   "query",
		Short: "Query a collector's memory",
		Long: `Query a collector's memory: of a running controller by what it holds (weft query
port, host and path), or its files.

kw, postcard, list and count query the memory files of weft collect --dir, also while reports arrive. A key is a
flow ("tcp 10.0.0.2:40000 > 10.0.1.2:80"), an address (10.0.0.2) or bytes
(0x0a000002).

Every answer carries error bounds for the memory's current load: the probability
that a reported key has no answer (EMPTY), or a wrong one (WRONG).`,
		Example: `  weft query kw key-write-4.weft "tcp 10.0.0.2:40000 > 10.0.1.2:80"
  weft query postcard postcarding.weft 0x0a000002 --copies 2
  weft query list append-0.weft 7 --newest 10
  weft query port tor0:Ethernet4 --server http://127.0.0.1:8080
  weft query host h3 --class 3
  weft query path "tcp 10.0.0.2:40000 > 10.0.1.2:80"
  weft query count key-increment.weft 10.0.0.2 --copies 2`,
	}, all...)
}

// liveStart is how a scenario runs that is queried for keyed reports.
var liveStart = live.StartOptions{PortStates: true, HostCounters: true, Postcards: 64}

// openMemory maps a memory file read-only. A missing or foreign file is a usage
// error.
func openMemory[T any](path string, open func(*region.Region) (T, error)) (t T, done func() error, err error) {
	mem, err := region.View(path)
	if err == nil {
		if t, err = open(mem); err == nil {
			return t, mem.Close, nil
		}
		err = fmt.Errorf("open %s: %w", path, errors.Join(err, mem.Close()))
	}
	if errors.Is(err, region.ErrForeign) || errors.Is(err, region.ErrMismatch) || errors.Is(err, os.ErrNotExist) {
		err = usageError{err}
	}
	return t, nil, err
}

// checkCopies rejects a number of copies that no report can ask for.
func checkCopies(n, minCopies int) error {
	if n < minCopies || n > slothash.MaxCopies {
		return usagef("--copies %d, want %d to %d", n, minCopies, slothash.MaxCopies)
	}
	return nil
}

// parseKey parses a key into the bytes that reports carry.
func parseKey(s string) ([]byte, error) {
	if digits, ok := strings.CutPrefix(s, "0x"); ok {
		if b, err := hex.DecodeString(digits); err == nil && len(b) > 0 {
			return b, nil
		}
	} else if addr, err := netip.ParseAddr(s); err == nil {
		return addr.AsSlice(), nil
	} else if k, err := model.ParseFlowKey(s); err == nil {
		return k.AppendTo(nil), nil
	}
	return nil, usagef("key %q, want a flow, an address, or bytes such as 0x0a000002", s)
}

// formatProbability formats a probability for people.
func formatProbability(p float64) string {
	if p > 0 && p < 1e-4 {
		return fmt.Sprintf("%.1e", p)
	}
	return fmt.Sprintf("%.2f%%", 100*p)
}
