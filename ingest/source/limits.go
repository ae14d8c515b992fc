package source

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/weft-telemetry/weft/ingest/identity"
	"github.com/weft-telemetry/weft/model"
)

// DefaultRate is the default of Limits.Rate in datagrams a second. Of full
// datagrams it is 1.2 Gb/s, more than the management port of a switch sends and
// more than its CPU makes.
const DefaultRate = 100_000

// maxPrefixes limits a list of prefixes: it is looked through for each datagram.
const maxPrefixes = 64

// Settings are the keys of limits, within a section.
func (l *Limits) Settings() []Setting {
	return []Setting{
		{Key: "allow", About: "prefixes of senders, comma-separated; empty: all", Value: &l.Allow},
		{
			Key: "source_rate_limit", About: "rate limit of each source address in datagrams/s, 0 for none; excess datagrams are dropped",
			Value: &l.Rate,
		},
	}
}

// Check returns a KeyError for an invalid value of a section.
func (l *Limits) Check(section string) error {
	switch {
	case len(l.Allow) > maxPrefixes:
		return Errorf(section+".allow", "%d prefixes, want at most %d", len(l.Allow), maxPrefixes)
	case l.Rate != 0 && !(l.Rate >= 1 && l.Rate <= 1e9):
		return Errorf(section+".source_rate_limit", "%v, want 0 (no limit), or 1 to 1e9", l.Rate)
	}
	return nil
}

// ParsePrefixes reads addresses and prefixes with commas between.
func ParsePrefixes(text string) (list []netip.Prefix, err error) {
	for one := range strings.SplitSeq(text, ",") {
		if one = strings.TrimSpace(one); one == "" {
			continue
		}
		p, err := netip.ParsePrefix(one)
		if err != nil {
			a, err := netip.ParseAddr(one)
			if err != nil || a.Zone() != "" {
				return nil, fmt.Errorf("%q is not an address or prefix", one)
			}
			p = netip.PrefixFrom(a, a.BitLen())
		}
		if a := p.Addr(); a.Is4In6() {
			p = netip.PrefixFrom(a.Unmap(), p.Bits()-96)
		}
		if !p.IsValid() {
			return nil, fmt.Errorf("%q is not a prefix of IPv4 or IPv6", one)
		}
		list = append(list, p.Masked())
	}
	return list, nil
}

// FormatPrefixes is the inverse of ParsePrefixes.
func FormatPrefixes(list []netip.Prefix) string {
	words := make([]string, len(list))
	for i, p := range list {
		if words[i] = p.String(); p.IsSingleIP() {
			words[i] = p.Addr().String()
		}
	}
	return strings.Join(words, ",")
}

// AddressKey is the key of a switch or host for where its reports come from. All
// sources share it.
var AddressKey = SwitchKey{
	Key: "address", Want: "addresses or prefixes, comma-separated, at most 64",
	Ok: func(text string) bool {
		list, err := ParsePrefixes(text)
		return err == nil && len(list) > 0 && len(list) <= maxPrefixes
	},
}

// IfIndexKey is the key of a switch for which ports its ifIndexes are. Sources that name
// ports by ifIndex share it.
var IfIndexKey = SwitchKey{
	Key: "ifindex", Want: "learned, sonic, port, or a list such as 1=Ethernet0,5=Ethernet4",
	Ok: func(text string) bool {
		_, err := identity.ParseIndexes(text, 0, nil, func(string) (model.PortID, bool) { return 1, true })
		return err == nil
	},
}

// SendsFrom reports whether reports of the switch may come from an address.
func (s *Switch) SendsFrom(a netip.Addr) bool {
	return len(s.Prefixes) == 0 || slices.ContainsFunc(s.Prefixes, func(p netip.Prefix) bool { return p.Contains(a) })
}
