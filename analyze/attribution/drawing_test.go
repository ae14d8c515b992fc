package attribution

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/model"
)

// drawing is a parsed drawing. Its times and amounts are in columns: an amount
// is what a link sends in that time.
type drawing struct {
	column    time.Duration
	rate      model.Rate
	delay     float64
	threshold float64
	nodes     map[string]model.NodeID
	nodeNames []string
	ports     map[string]int // "tor0>h1": queue
	queues    []string
	evidence  Evidence
	victim    Victim
	lost      map[string]bool
	clocks    map[string]float64
	columns   int
	expected  [][]string
}

const origin = model.Time(1e9)

func (d *drawing) at(column float64) model.Time {
	return origin.Add(time.Duration(math.Round(column * float64(d.column))))
}

func (d *drawing) bytes(columns float64) model.Bytes {
	return model.Bytes(math.Round(columns * float64(d.column) * float64(d.rate) / 8e9))
}

func (d *drawing) node(name string) model.NodeID {
	id, ok := d.nodes[name]
	if !ok {
		id = model.NodeID(len(d.nodeNames))
		d.nodes[name], d.nodeNames = id, append(d.nodeNames, name)
	}
	return id
}

func (d *drawing) flow(text string) model.FlowKey {
	src, dst, _ := strings.Cut(text, ">")
	return model.FlowKey{Src: model.Addr4(uint32(d.node(src))), Dst: model.Addr4(uint32(d.node(dst))), Proto: 17}
}

func (d *drawing) queue(name string) int {
	i, ok := d.ports[name]
	if !ok {
		from, to, _ := strings.Cut(name, ">")
		i = len(d.queues)
		d.ports[name], d.queues = i, append(d.queues, name)
		d.evidence.Queues = append(d.evidence.Queues, QueueRecord{
			Queue: Queue{Port: model.Port{Node: d.node(from), Port: model.PortID(d.node(to) + 1)}, Class: 3},
			Peer:  model.Port{Node: d.node(to), Port: model.PortID(d.node(from) + 1)}, PeerIsHost: strings.HasPrefix(to, "h"),
			Rate: d.rate, Delay: time.Duration(d.delay * float64(d.column)), Threshold: d.bytes(d.threshold),
		})
	}
	return i
}

// Interface, Link, Node and Flow make a drawing the Names of its account.
func (d *drawing) Interface(p model.Port) string { return d.Link(p) }

func (d *drawing) Link(p model.Port) string {
	return d.nodeNames[p.Node] + ">" + d.nodeNames[p.Port-1]
}
func (d *drawing) Node(n model.NodeID) string { return d.nodeNames[n] }
func (d *drawing) Flow(k model.FlowKey) string {
	return d.nodeNames[k.Src.V4()] + ">" + d.nodeNames[k.Dst.V4()]
}

func number(text string) float64 {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		panic(err)
	}
	return v
}

// parseDrawing reads a drawing. Lines that begin with # are comments.
func parseDrawing(text string) (d *drawing, err error) {
	d = &drawing{
		column: time.Microsecond, rate: 100 * model.Gbps, delay: 0.5, threshold: 1, nodes: map[string]model.NodeID{}, ports: map[string]int{},
		lost: map[string]bool{}, clocks: map[string]float64{},
		victim: Victim{QueuedAt: -1}, evidence: Evidence{MTU: 1000},
	}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("parse drawing: %v", r)
		}
	}()
	for _, line := range strings.Split(text, "\n") {
		if words := strings.Fields(line); len(words) > 0 && words[0] != "#" {
			d.line(words)
		}
	}
	d.evidence.Devices = nil
	for id, name := range d.nodeNames {
		d.evidence.Devices = append(d.evidence.Devices, Device{
			Node: model.NodeID(id), Reported: !d.lost[name], Complete: true, Snapshot: d.at(float64(d.columns)),
			ClockError: time.Duration(d.clocks[name] * float64(d.column)),
		})
	}
	return d, nil
}

func (d *drawing) line(words []string) {
	var err error
	switch words[0] {
	case "column":
		d.column, err = time.ParseDuration(words[1])
	case "rate":
		d.rate, err = model.ParseRate(words[1])
	case "mtu":
		d.evidence.MTU, err = model.ParseBytes(words[1])
	case "delay":
		d.delay = number(words[1])
	case "threshold":
		d.threshold = number(words[1])
	case "packet":
		d.packet(words[1:])
	case "path":
		for _, w := range words[1:] {
			d.victim.Path = append(d.victim.Path, d.queue(w))
		}
	case "reverse":
		for _, w := range words[1:] {
			d.victim.Reverse = append(d.victim.Reverse, d.queue(w))
		}
	case "lost":
		for _, w := range words[1:] {
			d.lost[w] = true
		}
	case "clock":
		d.clocks[words[1]] = number(words[2])
	case "feed":
		d.feed(words[1:])
	case "flows":
		q := &d.evidence.Queues[d.queue(words[1])]
		for i := 2; i < len(words); i += 2 {
			q.Flows = append(q.Flows, FlowShare{d.flow(words[i]), origin, d.at(1000), model.Bytes(number(words[i+1]))})
		}
	case "expect":
		d.expected = append(d.expected, words[1:])
	default:
		d.row(words)
	}
	if err != nil {
		panic(err)
	}
}

// packet reads "packet h4>h10 sent 5 took 20 base 6 [queued-at tor0>h1]";
// without a base it is in flight.
func (d *drawing) packet(words []string) {
	d.victim.Flow = d.flow(words[0])
	d.victim.InFlight = true
	for i := 1; i < len(words); i += 2 {
		span := func() time.Duration { return d.at(number(words[i+1])).Sub(origin) }
		switch words[i] {
		case "sent":
			d.victim.Sent = d.at(number(words[i+1]))
		case "took":
			d.victim.Took = span()
		case "base":
			d.victim.Base, d.victim.InFlight = span(), false
		case "queued-at":
			d.victim.QueuedAt = int(number(words[i+1]))
		default:
			panic(words[i])
		}
	}
}

// feed reads "feed leaf0>tor1 tor1>h2 60 tor1>h3 40 [held] [5..9]".
func (d *drawing) feed(words []string) {
	q := d.queue(words[0])
	from, until, held := origin, d.at(1000), false
	var list []Feed
	for i := 1; i < len(words); i++ {
		if words[i] == "held" {
			held = true
		} else if a, b, ok := strings.Cut(words[i], ".."); ok {
			from, until = d.at(number(a)), d.at(number(b))
		} else {
			list = append(list, Feed{To: d.queue(words[i]), Bytes: model.Bytes(number(words[i+1]) * 1000)})
			i++
		}
	}
	for _, f := range list {
		f.From, f.Until, f.Held = from, until, held
		d.evidence.Queues[q].Feeds = append(d.evidence.Queues[q].Feeds, f)
	}
}

// row reads "tor0>h1 ··██░░| peak 4 queued 2,0 coverage 0.5 depth 9:3 since 2".
func (d *drawing) row(words []string) {
	name, drawn := words[0], []rune(strings.TrimSuffix(words[1], "|"))
	if !strings.HasSuffix(words[1], "|") {
		panic("no row: " + strings.Join(words, " "))
	}
	if d.columns != 0 && d.columns != len(drawn) {
		panic(fmt.Sprintf("%s: %d columns, others have %d", name, len(drawn), d.columns))
	}
	d.columns = len(drawn)
	q := &d.evidence.Queues[d.queue(name)]
	each := func(marks string, add func(from, to model.Time, open bool)) {
		for from := 0; from < len(drawn); from++ {
			to := from
			for to < len(drawn) && strings.ContainsRune(marks, drawn[to]) {
				to++
			}
			if to > from {
				add(d.at(float64(from)), d.at(float64(to)), to == len(drawn))
				from = to
			}
		}
	}
	each("█▓", func(from, to model.Time, open bool) {
		q.Pauses = append(q.Pauses, Pause{From: from, To: to, Open: open})
	})
	each("░▓", func(from, to model.Time, open bool) {
		q.Congestions = append(q.Congestions, Congestion{From: from, To: to, Open: open})
	})
	for i := 2; i < len(words); i += 2 {
		values := strings.Split(words[i+1], ",")
		for j, v := range values {
			switch words[i] {
			case "peak":
				q.Congestions[j].Peak = d.bytes(number(v))
			case "queued":
				q.Pauses[j].Bytes = d.bytes(number(v))
			case "coverage":
				q.Pauses[j].Coverage = number(v)
			case "depth":
				at, bytes, _ := strings.Cut(v, ":")
				q.Depths = append(q.Depths, Depth{d.at(number(at)), d.bytes(number(bytes))})
			case "since":
				q.Since = d.at(number(v))
			default:
				panic(words[i])
			}
		}
	}
}
