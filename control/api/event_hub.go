package api

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Event is something that clients are told as it happens: StateEvent, Incident,
// Health, Probe, Mark, Fault, Clock, ResetEvent.
type Event interface{ event() string }

// StateEvent is what has changed in the fabric, or all of it.
type StateEvent struct {
	State
	Full bool `json:"full" doc:"All ports and nodes; otherwise those that have changed"`
}

// ResetEvent says that events were missed: what is known from before must be
// asked for again. A full StateEvent follows.
type ResetEvent struct {
	Reason string `json:"reason"`
}

func (StateEvent) event() string { return "state" }
func (ResetEvent) event() string { return "reset" }
func (Incident) event() string   { return "incident" }
func (Health) event() string     { return "health" }
func (Probe) event() string      { return "probe" }
func (Mark) event() string       { return "mark" }
func (Fault) event() string      { return "fault" }
func (Clock) event() string      { return "clock" }

// DecodeEvent reads an event's data by its name. Events of a newer server may
// have a name that is not known here: they are nil.
func DecodeEvent(name string, data []byte) (Event, error) {
	for _, e := range eventTypes {
		if e.event() == name {
			v := reflect.New(reflect.TypeOf(e))
			if err := json.Unmarshal(data, v.Interface()); err != nil {
				return nil, fmt.Errorf("read %s event: %w", name, err)
			}
			return v.Elem().Interface().(Event), nil
		}
	}
	return nil, nil
}

// EventHub hands events to any number of clients. Publishing never waits: each
// client has a buffer, and one that lets it run full is dropped, and counted.
// The newest events are kept, so that a client whose connection broke can go on
// where it was.
type EventHub struct {
	buffer, history int

	mu      sync.Mutex
	run     string // ids of another run, or from before a gap, are not ours
	seq     uint64
	recent  []message
	clients map[*client]struct{}
	closed  bool
	dropped uint64
}

// writeMessage is an encoded event. Its data is shared and not changed.
type message struct {
	seq  uint64
	name string
	data []byte
}

// client is one subscription. Events is closed when the hub drops it.
type client struct {
	events chan message
	run    string
	slow   bool // set before events is closed
}

// NewEventHub makes a hub whose clients may be so many events behind, and which keeps
// so many.
func NewEventHub(buffer, history int) *EventHub {
	return &EventHub{buffer: max(buffer, 1), history: max(history, 1), run: newRunID(), clients: map[*client]struct{}{}}
}

func newRunID() string { return strings.ToLower(rand.Text()[:8]) }

// Publish tells all clients. It keeps nothing of e.
func (h *EventHub) Publish(e Event) {
	data := encodeEvent(e)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.publish(e.event(), data)
}

// encodeEvent writes an event's data. Lists are never null, as in answers.
func encodeEvent(e Event) []byte {
	v := reflect.New(reflect.TypeOf(e))
	v.Elem().Set(reflect.ValueOf(e))
	fillLists(v)
	data, err := json.Marshal(v.Interface())
	if err != nil {
		panic(fmt.Sprintf("api: event %s cannot be encoded: %v", e.event(), err)) // all types are ours
	}
	return data
}

func (h *EventHub) publish(name string, data []byte) {
	h.seq++
	m := message{h.seq, name, data}
	if len(h.recent) >= h.history {
		h.recent = slices.Delete(h.recent, 0, len(h.recent)-h.history+1)
	}
	h.recent = append(h.recent, m)
	for c := range h.clients {
		select {
		case c.events <- m:
		default:
			c.slow = true
			h.dropped++
			h.remove(c)
		}
	}
}

// subscribe adds a client. Where last is an id that the hub can go on from, the
// events after it are returned and resumed is true.
func (h *EventHub) subscribe(last string) (c *client, missed []message, resumed bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	c = &client{events: make(chan message, h.buffer), run: h.run}
	if h.closed {
		close(c.events)
		return c, nil, false
	}
	h.clients[c] = struct{}{}
	run, number, _ := strings.Cut(last, "-")
	seq, err := strconv.ParseUint(number, 10, 64)
	if err != nil || run != h.run || seq > h.seq {
		return c, nil, false
	}
	oldest := h.seq + 1 - uint64(len(h.recent))
	if seq+1 < oldest {
		return c, nil, false
	}
	return c, slices.Clone(h.recent[seq+1-oldest:]), true
}

func (h *EventHub) unsubscribe(c *client) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.remove(c)
}

// remove ends a subscription, once.
func (h *EventHub) remove(c *client) {
	if _, there := h.clients[c]; there {
		delete(h.clients, c)
		close(c.events)
	}
}

// invalidateIDs makes all ids so far ones that cannot be gone on from.
func (h *EventHub) invalidateIDs() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.run, h.recent = newRunID(), nil
}

// close ends all subscriptions.
func (h *EventHub) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for c := range h.clients {
		h.remove(c)
	}
}

// stats are the hub's own account.
func (h *EventHub) stats() (clients int, published, dropped uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.clients), h.seq, h.dropped
}
