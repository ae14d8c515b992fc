package hostcounters

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/weft-telemetry/weft/inhost/evidence"
)

func compareNames(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b)) }

const netFolder = "sys/class/net"

// readInterfaces reads all interfaces but loopback.
func readInterfaces(root fs.FS, s *evidence.Snapshot) error {
	list, err := fs.ReadDir(root, netFolder)
	if err != nil {
		return fmt.Errorf("interfaces: %w", err)
	}
	for _, e := range list {
		dir := path.Join(netFolder, e.Name())
		if e.Name() == "lo" || text(root, dir+"/operstate") == "" { // bonding_masters is a file
			continue
		}
		in := evidence.Interface{Name: e.Name(), Up: text(root, dir+"/operstate") != "down"}
		in.SpeedMbps = max(0, speed(root, dir))
		in.CarrierChanges = number(root, dir+"/carrier_changes")
		for name, to := range map[string]*uint64{
			"rx_bytes": &in.ReceivedBytes, "tx_bytes": &in.SentBytes, "rx_packets": &in.Received, "tx_packets": &in.Sent,
			"rx_crc_errors": &in.CRCErrors, "rx_missed_errors": &in.Missed, "rx_dropped": &in.Dropped, "tx_dropped": &in.SendDropped,
		} {
			*to = number(root, dir+"/statistics/"+name)
		}
		s.Interfaces = append(s.Interfaces, in)
	}
	return nil
}

// text reads a file of one line; "" if there is none.
func text(root fs.FS, name string) string {
	b, err := fs.ReadFile(root, name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// number reads a counter; 0 if there is none: it never grows.
func number(root fs.FS, name string) uint64 {
	n, err := strconv.ParseUint(text(root, name), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// speed is negative, or an error, while the link is down.
func speed(root fs.FS, dir string) int64 {
	n, err := strconv.ParseInt(text(root, dir+"/speed"), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

const rdmaFolder = "sys/class/infiniband"

// readRDMA reads the counters of RDMA ports that have a known meaning. A host without
// RDMA devices has no such folder.
func readRDMA(root fs.FS, s *evidence.Snapshot) error {
	devices, err := fs.ReadDir(root, rdmaFolder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("RDMA devices: %w", err)
	}
	for _, d := range devices {
		ports, err := fs.ReadDir(root, path.Join(rdmaFolder, d.Name(), "ports"))
		if err != nil {
			return fmt.Errorf("ports of %s: %w", d.Name(), err)
		}
		for _, p := range ports {
			n, err := strconv.Atoi(p.Name())
			if err != nil {
				continue
			}
			port := evidence.RDMAPort{Device: d.Name(), Port: n, Counters: map[evidence.Meaning]uint64{}}
			dir := path.Join(rdmaFolder, d.Name(), "ports", p.Name(), "hw_counters")
			counters, err := fs.ReadDir(root, dir)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("counters of %s: %w", d.Name(), err)
			}
			for _, c := range counters {
				if m, ok := evidence.RDMAMeaning(c.Name()); ok {
					port.Counters[m] += number(root, path.Join(dir, c.Name()))
				}
			}
			s.RDMA = append(s.RDMA, port)
		}
	}
	return nil
}
