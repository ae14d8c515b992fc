package hostcounters

import (
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/weft-telemetry/weft/inhost/evidence"
)

// readSoftnet reads the counters of receive softirqs: a line for each CPU.
func readSoftnet(root fs.FS, s *evidence.Snapshot) error {
	b, err := fs.ReadFile(root, "proc/net/softnet_stat")
	if err != nil {
		return fmt.Errorf("softirqs: %w", err)
	}
	s.Softnet, err = parseSoftnet(string(b))
	return err
}

func parseSoftnet(text string) (sum evidence.Softnet, err error) {
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) < 3 {
			return sum, fmt.Errorf("softnet_stat: line %q, want three numbers or more", strings.TrimSpace(line))
		}
		for i, to := range []*uint64{&sum.Processed, &sum.Dropped, &sum.Squeezed} {
			n, err := strconv.ParseUint(words[i], 16, 64)
			if err != nil {
				return sum, fmt.Errorf("softnet_stat: %w", err)
			}
			*to += n
		}
	}
	return sum, nil
}

// readProtocols reads the counters of TCP and UDP.
func readProtocols(root fs.FS, s *evidence.Snapshot) error {
	counters := map[string]uint64{}
	for _, name := range []string{"proc/net/snmp", "proc/net/netstat"} {
		b, err := fs.ReadFile(root, name)
		if err != nil {
			return fmt.Errorf("protocols: %w", err)
		}
		if err := parseProtocols(string(b), counters); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	s.Protocols = evidence.Protocols{
		SegmentsSent: counters["Tcp.OutSegs"], Retransmitted: counters["Tcp.RetransSegs"], Timeouts: counters["TcpExt.TCPTimeouts"],
		ListenDrops: counters["TcpExt.ListenDrops"], ChecksumErrors: counters["Tcp.InCsumErrors"] + counters["Udp.InCsumErrors"],
		UDPReceiveFull: counters["Udp.RcvbufErrors"], UDPSendFull: counters["Udp.SndbufErrors"],
	}
	return nil
}

// parseProtocols reads pairs of lines: names, and numbers in the same order.
func parseProtocols(text string, into map[string]uint64) error {
	var names []string
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if names == nil {
			names = words
			continue
		}
		if len(words) != len(names) || words[0] != names[0] {
			return fmt.Errorf("%d values of %s for %d names of %s", len(words)-1, words[0], len(names)-1, names[0])
		}
		group := strings.TrimSuffix(names[0], ":")
		for i, w := range words[1:] {
			if n, err := strconv.ParseUint(w, 10, 64); err == nil { // Tcp.MaxConn is -1
				into[group+"."+names[i+1]] = n
			}
		}
		names = nil
	}
	if names != nil {
		return fmt.Errorf("no values of %s", names[0])
	}
	return nil
}
