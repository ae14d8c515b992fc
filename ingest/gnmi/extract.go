package gnmi

import (
	"strconv"
	"strings"

	"github.com/weft-telemetry/weft/ingest/sai"
	"github.com/weft-telemetry/weft/model"
)

// extraction takes the counters out of one update.
type extraction struct {
	d    *decoder
	n    *node
	when model.Time

	outer   string       // object whose fields are being visited
	port    model.PortID // that it is of; 0: none of the topology
	class   int
	ofClass bool
	used    bool
	bad     bool
	unknown uint64
}

// lookup finds the port of a name. Its own path may say which it is: SONiC answers
// with aliases where it is configured so, and they are learned.
func (x *extraction) lookup(name, asked string) model.PortID {
	p, ok := x.d.names.PortByName(x.n.sw.ID, name)
	if !ok && asked != "" && !strings.Contains(asked, "*") && x.d.names.LearnAlias(x.n.sw.ID, name, asked) {
		p, ok = x.d.names.PortByName(x.n.sw.ID, asked)
	}
	if !ok || int(p) >= len(x.n.ports) {
		x.unknown++
		return 0
	}
	return p
}

// finish makes a reading of the present port, if its counters have come.
func (x *extraction) finish() {
	if x.port == 0 {
		return
	}
	if p := &x.n.ports[x.port]; p.ticked {
		p.ticked = false
		x.d.emit(x.n, x.port, x.when)
	}
}

// set sets a counter of the present port.
func (x *extraction) set(name, text []byte) {
	if x.port == 0 {
		return
	}
	p := &x.n.ports[x.port]
	if x.ofClass && string(name) == sai.Watchdog {
		state := uint64(0)
		if string(text) == sai.Stormed {
			state = 1
		}
		p.totals.SetClass(x.class, sai.WatchdogState, state)
		x.used = true
		return
	}
	v, ok := number(text)
	switch {
	case !ok:
		return // N/A, names and other texts
	case x.ofClass:
		ok = p.totals.SetClassByName(x.class, name, v)
	default:
		ok = p.totals.SetByName(name, v)
		p.ticked = p.ticked || string(name) == tick
	}
	x.used = x.used || ok
}

// tick is the counter that comes last of a port's round: subscriptions have its path
// after those of queues, and readings are made when it arrives.
const tick = "SAI_PORT_STAT_IF_IN_OCTETS"

// sonic takes an update of SONiC's COUNTERS_DB: a table with all ports or of one port, the
// queues, priority groups or watchdogs of one, or a field.
func (x *extraction) sonic(path []element, v value) {
	if len(path) < 2 || len(path) > 3 {
		x.d.stats.otherPath.Add(1)
		return
	}
	asked := path[1].name
	if len(path) == 3 {
		switch path[2].name {
		case "Queues", "PriorityGroups", "Pfcwd":
			x.walk(v.json, asked, true)
		default:
			x.leaf(path[1].name, path[2].name, v)
		}
		return
	}
	x.walk(v.json, asked, false)
}

// leaf takes one counter of a port.
func (x *extraction) leaf(port, name string, v value) {
	text := []byte(v.scalar)
	if v.json != nil {
		var err error
		if text, err = scalarOf(v.json); err != nil {
			x.bad = true
			return
		}
	}
	x.port = x.lookup(port, "")
	x.set([]byte(name), text)
}

// walk takes a table. Fields without an outer object are those of the port that was
// asked for.
func (x *extraction) walk(b []byte, asked string, ofClass bool) {
	begun := false
	err := walk(b, func(outer, key, val []byte) {
		if !begun || string(outer) != x.outer {
			x.finish()
			begun, x.outer, x.ofClass = true, string(outer), ofClass
			x.enter(x.outer, asked)
		}
		x.set(key, val)
	})
	if err != nil {
		x.bad = true
	}
}

// enter begins an object of a table.
func (x *extraction) enter(name, asked string) {
	if name == "" {
		x.port = 0
		if !x.ofClass {
			x.port = x.lookup(asked, "")
		}
		return
	}
	if !x.ofClass {
		x.port = x.lookup(name, asked)
		return
	}
	port, class, ok := sai.SplitObject(name)
	if !ok {
		x.port = 0
		return
	}
	x.class, x.port = class, x.lookup(port, asked)
}

// leaves are the counters of OpenConfig.
var leaves = map[string]string{
	"in-octets": tick, "out-octets": "SAI_PORT_STAT_IF_OUT_OCTETS",
	"in-pkts": "SAI_PORT_STAT_IF_IN_UCAST_PKTS", "out-pkts": "SAI_PORT_STAT_IF_OUT_UCAST_PKTS",
	"in-discards": "SAI_PORT_STAT_IF_IN_DISCARDS", "out-discards": "SAI_PORT_STAT_IF_OUT_DISCARDS",
	"in-errors": "SAI_PORT_STAT_IF_IN_ERRORS", "out-errors": "SAI_PORT_STAT_IF_OUT_ERRORS",
	"in-fcs-errors": "SAI_PORT_STAT_ETHER_STATS_CRC_ALIGN_ERRORS",
}

// queueLeaves are those of a queue.
var queueLeaves = map[string]string{
	"transmit-octets": "SAI_QUEUE_STAT_BYTES", "dropped-pkts": "SAI_QUEUE_STAT_DROPPED_PACKETS",
	"max-queue-len": "SAI_QUEUE_STAT_SHARED_WATERMARK_BYTES",
}

// openconfig takes an update of /interfaces or /qos: a leaf, or a container of leaves.
func (x *extraction) openconfig(path []element, v value) {
	last, names := path[len(path)-1], leaves
	for _, e := range path {
		switch {
		case e.name == "interface":
			x.port = x.lookup(e.key, "")
		case e.name == "queue":
			x.class, x.ofClass = trailingNumber(e.key)
			names = queueLeaves
			if !x.ofClass {
				x.port = 0
			}
		}
	}
	if x.port == 0 {
		return
	}
	take := func(name string, text []byte) {
		_, leaf, qualified := strings.Cut(name, ":") // openconfig-interfaces:in-octets
		if !qualified {
			leaf = name
		}
		if leaf == "ifindex" {
			x.learnIndex(path, text)
			return
		}
		if known, ok := names[leaf]; ok {
			x.set([]byte(known), text)
		}
	}
	switch {
	case v.json == nil:
		take(last.name, []byte(v.scalar))
	case len(v.json) > 0 && v.json[0] == '{':
		if err := walk(v.json, func(_, key, val []byte) { take(string(key), val) }); err != nil {
			x.bad = true
		}
	default:
		text, err := scalarOf(v.json)
		if err != nil {
			x.bad = true
			return
		}
		take(last.name, text)
	}
}

// learnIndex learns an interface's ifIndex, by which sFlow names it.
func (x *extraction) learnIndex(path []element, text []byte) {
	v, ok := number(text)
	if !ok || v == 0 || v >= 1<<32 || len(path) < 2 {
		return
	}
	x.d.names.LearnIndex(x.n.sw.ID, uint32(v), path[1].key)
	x.used = true
}

// trailingNumber returns the number at the end of a queue's name: "3", "UC3", "queue-3".
func trailingNumber(name string) (int, bool) {
	i := len(name)
	for i > 0 && name[i-1] >= '0' && name[i-1] <= '9' {
		i--
	}
	n, err := strconv.Atoi(name[i:])
	return n, err == nil && n < 8
}
