package api

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/gzip"
)

// snapshots numbers the snapshots of the state and knows what has changed between
// two of them. It keeps only the newest one, and for each node and port the number
// of the snapshot that changed it last: a client may be any number of snapshots
// behind, at 8 bytes per port.
type snapshots struct {
	live Live

	mu    sync.Mutex
	run   string // ids of another run, or of another topology, are unknown
	seq   uint64
	state *State
	nodes []uint64 // snapshot of the last change, by position
	ports []uint64
}

// newest returns the newest snapshot and its id.
func (s *snapshots) newest() (*State, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.update()
	return s.state, s.id()
}

func (s *snapshots) id() string { return fmt.Sprintf("%s-%d", s.run, s.seq) }

// update takes the controller's newest snapshot. It reads it under the lock, so that
// numbers follow time.
func (s *snapshots) update() {
	next := s.live.State()
	if next == s.state {
		return
	}
	s.seq++
	if s.state == nil || !sameElements(s.state, next) {
		s.run, s.seq = newRunID(), 1
		s.nodes, s.ports = make([]uint64, len(next.Nodes)), make([]uint64, len(next.Ports))
	} else {
		for i := range next.Nodes {
			if s.state.Nodes[i] != next.Nodes[i] {
				s.nodes[i] = s.seq
			}
		}
		passed := passedMs(s.state, next)
		for i := range next.Ports {
			if s.state.Ports[i].changed(&next.Ports[i], passed) {
				s.ports[i] = s.seq
			}
		}
	}
	s.state = next
}

// passedMs is the time from one snapshot to the next.
func passedMs(a, b *State) float64 { return float64(b.Time.Sub(a.Time)) / float64(time.Millisecond) }

// sameElements reports whether two snapshots are of the same nodes and ports.
func sameElements(a, b *State) bool {
	return slices.EqualFunc(a.Nodes, b.Nodes, func(x, y NodeState) bool { return x.Name == y.Name }) &&
		slices.EqualFunc(a.Ports, b.Ports, func(x, y PortState) bool { return x.Node == y.Node && x.Port == y.Port })
}

// changes returns the newest snapshot and the nodes and ports of it that have changed
// since an earlier one, or all if that is unknown: then Since is empty, and the lists
// are the snapshot's own.
func (s *snapshots) changes(id string) (newest *State, st State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.update()
	st = *s.state
	st.Snapshot = s.id()
	run, number, _ := strings.Cut(id, "-")
	seq, err := strconv.ParseUint(number, 10, 64)
	if err != nil || run != s.run || seq == 0 || seq > s.seq {
		return s.state, st
	}
	st.Since = id
	st.Nodes, st.Ports = changedAfter(st.Nodes, s.nodes, seq), changedAfter(st.Ports, s.ports, seq)
	return s.state, st
}

// changedAfter returns the elements that changed after a snapshot.
func changedAfter[T any](list []T, changed []uint64, seq uint64) []T {
	out := []T{}
	for i := range list {
		if changed[i] > seq {
			out = append(out, list[i])
		}
	}
	return out
}

// Apply adds the changes of a later snapshot, the answer to GET /state?since=. The
// ages of other ports grow. A state without Since replaces s.
func (s *State) Apply(d *State) {
	if d.Since == "" {
		*s = *d
		return
	}
	passed := passedMs(s, d)
	s.Time, s.Snapshot, s.LabelCoverage = d.Time, d.Snapshot, d.LabelCoverage
	for i, j := 0, 0; i < len(s.Nodes); i++ { // both are in the order of the topology
		if j < len(d.Nodes) && d.Nodes[j].Name == s.Nodes[i].Name {
			s.Nodes[i] = d.Nodes[j]
			j++
		}
	}
	j := 0
	for i := range s.Ports {
		p := &s.Ports[i]
		if j < len(d.Ports) && d.Ports[j].Node == p.Node && d.Ports[j].Port == p.Port {
			*p = d.Ports[j]
			j++
		} else if p.AgeMs >= 0 {
			p.AgeMs += passed
		}
	}
}

// encodedState caches the newest snapshot as JSON and compressed: many clients
// request the same one, and encoding a large fabric takes milliseconds.
type encodedState struct {
	mu   sync.Mutex
	id   string
	json []byte
	zip  []byte // nil: not requested yet
}

// encode returns a snapshot as JSON, and compressed if asked to.
func (e *encodedState) encode(st *State, id string, zip bool) []byte {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.id != id {
		own := *st // fillLists modifies a copy
		own.Snapshot = id
		e.id, e.json, e.zip = id, encodeJSON(&own), nil
	}
	if !zip {
		return e.json
	}
	if e.zip == nil {
		e.zip = compress(e.json, gzip.StatelessCompression)
	}
	return e.zip
}
