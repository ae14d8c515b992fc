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

// Event is one of the types that clients receive as events: StateEvent, Incident,
// Health, Probe, Mark, Fault, Clock, ResetEvent.
type Event interface{ event() string }

// StateEvent has the changed part of the fabric's state, or all of it.
type StateEvent struct {
	State
	Full bool `json:"full" doc:"Contains all ports and nodes; otherwise only changed ones"`
}

// ResetEvent reports missed events: the client must reload its lists. A full
// StateEvent follows.
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

// DecodeEvent decodes an event's data by its name. It returns nil for an unknown
// name, which a newer server may send.
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

// EventHub distributes events to any number of clients. Publishing never blocks:
// each client has a buffer, and a client with a full buffer is disconnected and
// counted. The newest events are kept, so that a client can resume after a broken
// connection.
type EventHub struct {
	buffer, history int

	mu      sync.Mutex
	run     string // event ids of another run, or from before a gap, cannot be resumed
	seq     uint64
	recent  []message
	clients map[*client]struct{}
	closed  bool
	dropped uint64
}

// message is an encoded event. Its text, of which the data is a part, is shared and
// immutable.
type message struct {
	seq  uint64
	name string
	data []byte
	text *eventText
}

// client is one subscription. The hub closes events when it removes the client.
type client struct {
	events chan message
	run    string
	slow   bool // set before events is closed
}

// NewEventHub returns a hub with a buffer of the given number of events per client
// and a history of the given number of events.
func NewEventHub(buffer, history int) *EventHub {
	return &EventHub{buffer: max(buffer, 1), history: max(history, 1), run: newRunID(), clients: map[*client]struct{}{}}
}

func newRunID() string { return strings.ToLower(rand.Text()[:8]) }

// Publish sends an event to all clients. It keeps no reference to e.
func (h *EventHub) Publish(e Event) {
	data := encodeEvent(e)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.publish(e.event(), data)
}

// encodeEvent returns an event's data. Lists are never null, as in responses.
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
	m := message{seq: h.seq, name: name}
	m.text, m.data = newEventText(fmt.Sprintf("%s-%d", h.run, h.seq), name, data)
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

// subscribe adds a client. If the events after id last are still buffered, it
// returns them and resumed is true.
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

// remove ends a subscription. It may be called twice.
func (h *EventHub) remove(c *client) {
	if _, there := h.clients[c]; there {
		delete(h.clients, c)
		close(c.events)
	}
}

// invalidateIDs makes all earlier event ids unusable for resuming.
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

// stats returns the hub's counters.
func (h *EventHub) stats() (clients int, published, dropped uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.clients), h.seq, h.dropped
}
