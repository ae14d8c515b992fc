package file

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/weft-telemetry/weft/internal/fileerror"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// maxHPCCNodes is the number of different HPCC addresses, 11.(id/256).(id%256).1.
const maxHPCCNodes = 1 << 16

// wordReader reads words separated by white space, as HPCC's programs do: line
// breaks have no meaning.
type wordReader struct {
	file string
	rest []byte
	line int // of the last word
	next int // of the first byte of rest
}

func newWordReader(file string, data []byte) *wordReader {
	return &wordReader{file: file, rest: data, line: 1, next: 1}
}

func (r *wordReader) word(what string) (string, error) {
	for len(r.rest) > 0 && isSpace(r.rest[0]) {
		if r.rest[0] == '\n' {
			r.next++
		}
		r.rest = r.rest[1:]
	}
	if len(r.rest) == 0 {
		return "", &Error{File: r.file, Line: r.line, Msg: fmt.Sprintf("file ends here, want %s", what)}
	}
	end := bytes.IndexFunc(r.rest, func(c rune) bool { return c < 0x80 && isSpace(byte(c)) })
	if end < 0 {
		end = len(r.rest)
	}
	w := string(r.rest[:end])
	r.rest, r.line = r.rest[end:], r.next
	return w, nil
}

func isSpace(c byte) bool {
	return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f'
}

func (r *wordReader) errorf(format string, args ...any) *Error {
	return &Error{File: r.file, Line: r.line, Msg: fmt.Sprintf(format, args...)}
}

// number reads a whole number from 0 to most.
func (r *wordReader) number(what string, most int) (int, error) {
	w, err := r.word(what)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(w, 10, 64)
	if err != nil || n > uint64(most) {
		return 0, r.errorf("%s %q, want a number from 0 to %d", what, w, most)
	}
	return int(n), nil
}

// parseHPCC parses a topology of the HPCC simulator: counts of nodes, switches
// and links; the switches; then "a b rate delay error-rate" per link. Text after
// that is ignored.
func parseHPCC(name string, data []byte) (*Document, error) {
	r := newWordReader(name, data)
	nodes, err := r.number("number of nodes", maxHPCCNodes)
	if err != nil {
		return nil, err
	}
	switches, err := r.number("number of switches", nodes)
	if err != nil {
		return nil, err
	}
	links, err := r.number("number of links", topo.MaxLinks)
	if err != nil {
		return nil, err
	}
	isSwitch := make([]bool, nodes)
	for i := range switches {
		id, err := r.number(fmt.Sprintf("switch %d of %d:", i+1, switches), nodes-1)
		if err != nil {
			return nil, err
		}
		if isSwitch[id] {
			return nil, r.errorf("switch %d is listed twice, want %d different switches", id, switches)
		}
		isSwitch[id] = true
	}
	b := topo.NewBuilder("")
	for id, s := range isSwitch {
		b.AddNode(hpccNode(id, s))
	}
	for i := range links {
		if err := readHPCCLink(r, b, nodes, fmt.Sprintf("link %d of %d:", i+1, links)); err != nil {
			return nil, err
		}
	}
	f, err := b.Build()
	if err != nil {
		return nil, r.errorf("%v", err)
	}
	return &Document{Fabric: f}, nil
}

func hpccNode(id int, isSwitch bool) topo.NodeSpec {
	s := topo.NodeSpec{Name: "h" + strconv.Itoa(id), Role: topo.Host, Pod: topo.NoPod}
	if isSwitch {
		s.Name, s.Role = "s"+strconv.Itoa(id), topo.Switch
	}
	s.IPv4 = model.Addr4(11<<24 | uint32(id)<<8 | 1).Netip()
	return s
}

func readHPCCLink(r *wordReader, b *topo.Builder, nodes int, what string) error {
	a, err := r.number(what+" node", nodes-1)
	if err != nil {
		return err
	}
	line := r.line
	z, err := r.number(what+" node", nodes-1)
	if err != nil {
		return err
	}
	spec, err := readHPCCSpec(r, what)
	if err != nil {
		return err
	}
	b.AddLink(topo.End{Node: model.NodeID(a)}, topo.End{Node: model.NodeID(z)}, spec)
	if err := b.Err(); err != nil {
		return &Error{File: r.file, Line: line, Msg: err.Error()}
	}
	return nil
}

func readHPCCSpec(r *wordReader, what string) (s topo.LinkSpec, err error) {
	rate, err := r.word(what + " rate")
	if err != nil {
		return s, err
	}
	if strings.Contains(rate, "B") {
		// HPCC's B means bytes; model.ParseRate ignores the case of letters.
		return s, r.errorf("%s rate %q counts bytes, want bits such as 100Gbps", what, rate)
	}
	if s.Rate, err = model.ParseRate(rate); err != nil {
		return s, r.errorf("%s %v", what, err)
	}
	delay, err := r.word(what + " delay")
	if err != nil {
		return s, err
	}
	if s.Delay, err = topo.ParseDelay(delay); err != nil {
		return s, r.errorf("%s %v", what, err)
	}
	loss, err := r.word(what + " error rate")
	if err != nil {
		return s, err
	}
	if s.ErrorRate, err = topo.ParseErrorRate(loss); err != nil {
		return s, r.errorf("%s %v", what, err)
	}
	return s, nil
}

// appendHPCC writes the nodes and links of a fabric. The format has no names,
// pods, roles and addresses.
func appendHPCC(b []byte, f *topo.Fabric) ([]byte, error) {
	if n := len(f.Nodes()); n > maxHPCCNodes {
		return nil, fmt.Errorf("fabric %q has %d nodes, want at most %d for HPCC", f.Name(), n, maxHPCCNodes)
	}
	b = fmt.Appendf(b, "%d %d %d\n", len(f.Nodes()), len(f.Switches()), len(f.Links()))
	for i, id := range f.Switches() {
		if i > 0 {
			b = append(b, ' ')
		}
		b = strconv.AppendUint(b, uint64(id), 10)
	}
	b = append(b, '\n')
	for _, l := range f.Links() {
		rate := strings.Replace(l.Rate.String(), "b/s", "bps", 1)
		b = fmt.Appendf(b, "%d %d %s %dns %g\n", l.A.Node, l.B.Node, rate, l.Delay.Nanoseconds(), l.ErrorRate)
	}
	return b, nil
}

// ReadHPCCRoutes reads static routes of a fabric from a file of lines
// "switch destination next_hop", all by node id. Several next hops of one
// switch and destination are on several lines. Every error is an *Error.
func ReadHPCCRoutes(path string, f *topo.Fabric) ([]topo.Override, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fileerror.FromOS(path, err)
	}
	return ParseHPCCRoutes(path, data, f)
}

// ParseHPCCRoutes is ReadHPCCRoutes of a file's bytes.
func ParseHPCCRoutes(name string, data []byte, f *topo.Fabric) ([]topo.Override, error) {
	type pair struct{ at, to model.NodeID }
	ports := make(map[pair][]model.PortID)
	var order []pair
	for i, line := range strings.Split(string(data), "\n") {
		errorf := func(format string, args ...any) error {
			return &Error{File: name, Line: i + 1, Msg: fmt.Sprintf(format, args...)}
		}
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if len(words) != 3 {
			return nil, errorf("%d words, want switch, destination and next hop", len(words))
		}
		var ids [3]model.NodeID
		for j, w := range words {
			n, err := strconv.ParseUint(w, 10, 32)
			if err != nil || !f.HasNode(model.NodeID(n)) {
				return nil, errorf("node %q, want a node id from 0 to %d", w, len(f.Nodes())-1)
			}
			ids[j] = model.NodeID(n)
		}
		p := pair{ids[0], ids[1]}
		at := f.Node(p.at)
		if !at.Role.IsSwitch() {
			return nil, errorf("route at %s, which is a %v, want a switch", at.Name, at.Role)
		}
		hops := at.PortsTo(ids[2])
		if len(hops) == 0 {
			return nil, errorf("next hop %d is not a neighbour of %d, want one that is", ids[2], p.at)
		}
		if slices.Contains(ports[p], hops[0]) {
			return nil, errorf("next hop %d at %d to %d is listed twice, want it once", ids[2], p.at, p.to)
		}
		if ports[p] == nil {
			order = append(order, p)
		}
		ports[p] = append(ports[p], hops...)
	}
	var out []topo.Override
	for _, p := range order {
		slices.Sort(ports[p])
		out = append(out, f.RouteTo(p.at, p.to, ports[p]...)...)
	}
	return out, nil
}

// WriteHPCCRoutes writes a document's static routes in the form that
// ReadHPCCRoutes reads. That form has only routes to nodes via neighbours; other
// routes are an error.
func WriteHPCCRoutes(w io.Writer, d *Document) error {
	var b []byte
	f := d.Fabric
	for i := 0; i < len(d.Overrides); i += 2 {
		o := d.Overrides[i]
		to, ok := f.ByAddr(model.AddrOf(o.To.Addr()))
		if !ok || i+1 == len(d.Overrides) || !isRouteTo(f, to, o, d.Overrides[i+1]) {
			return fmt.Errorf("route at %s to %v, want one to a node, with both its addresses", f.Node(o.At).Name, o.To)
		}
		via, ok := neighbours(f, o)
		if !ok {
			return fmt.Errorf("route at %s to %v uses some of several parallel links, want all", f.Node(o.At).Name, o.To)
		}
		for _, v := range via {
			b = fmt.Appendf(b, "%d %d %d\n", o.At, to, v)
		}
	}
	_, err := w.Write(b)
	return err
}
