package sonic

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"time"

	gnmipb "github.com/openconfig/gnmi/proto/gnmi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weft-telemetry/weft/model"
)

// target is the gNMI service of one switch.
type target struct {
	gnmipb.UnimplementedGNMIServer
	database

	mu          sync.Mutex
	newest      *round // nil: nothing was counted yet
	subscribers map[chan *round]struct{}
	skipped     uint64
	subscribed  chan struct{} // closed by the first subscriber
}

// Bounds of a target.
const (
	// maxWaiting rounds wait for a subscriber that is slow; later ones are skipped and counted. No byte
	// is missing then: counters are totals.
	maxWaiting     = 16
	maxSubscribers = 64
	// maxPaths is what a subscription by field of a switch with 128 ports has.
	maxPaths = 1 << 13
)

// publish hands a round to all subscribers.
func (t *target) publish(r *round) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.newest = r
	for s := range t.subscribers {
		select {
		case s <- r:
		default:
			t.skipped++
		}
	}
}

// subscribe returns a channel of the rounds from the newest on.
func (t *target) subscribe() (chan *round, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.subscribers) >= maxSubscribers {
		return nil, false
	}
	if len(t.subscribers) == 0 {
		select {
		case <-t.subscribed:
		default:
			close(t.subscribed)
		}
	}
	s := make(chan *round, maxWaiting)
	if t.newest != nil {
		s <- t.newest
	}
	t.subscribers[s] = struct{}{}
	return s, true
}

func (t *target) unsubscribe(s chan *round) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.subscribers, s)
}

// sampled is one path of a subscription.
type sampled struct {
	path     *gnmipb.Path
	names    []string
	interval time.Duration
	sent     model.Time // 0: not yet
}

// Subscribe is part of the gNMI service. It samples by the switch's clock: a path is sent with the
// first round that is an interval after the one before.
func (t *target) Subscribe(stream gnmipb.GNMI_SubscribeServer) error {
	req, err := stream.Recv()
	if err != nil {
		return err
	}
	list := req.GetSubscribe()
	paths, err := t.sampledPaths(list)
	if err != nil {
		return err
	}
	rounds, ok := t.subscribe()
	if !ok {
		return status.Errorf(codes.ResourceExhausted, "%s has %d subscribers already", t.node.Name, maxSubscribers)
	}
	defer t.unsubscribe(rounds)
	if err := stream.Send(&gnmipb.SubscribeResponse{Response: &gnmipb.SubscribeResponse_SyncResponse{SyncResponse: true}}); err != nil {
		return err
	}
	for {
		select {
		case <-stream.Context().Done():
			return stream.Context().Err()
		case r := <-rounds:
			for i := range paths {
				p := &paths[i]
				if p.sent != 0 && r.at.Sub(p.sent) < p.interval {
					continue
				}
				p.sent = r.at
				note, err := t.notification(list.GetPrefix(), p.path, p.names, r)
				if err != nil {
					return err
				}
				if err := stream.Send(&gnmipb.SubscribeResponse{Response: &gnmipb.SubscribeResponse_Update{Update: note}}); err != nil {
					return err
				}
			}
		}
	}
}

// sampledPaths checks what a client subscribes to.
func (t *target) sampledPaths(list *gnmipb.SubscriptionList) (paths []sampled, err error) {
	db := list.GetPrefix().GetTarget()
	switch n := len(list.GetSubscription()); {
	case list.GetMode() != gnmipb.SubscriptionList_STREAM:
		return nil, status.Errorf(codes.Unimplemented, "subscription mode %v, want STREAM", list.GetMode())
	case n == 0 || n > maxPaths:
		return nil, status.Errorf(codes.InvalidArgument, "%d paths, want 1 to %d", n, maxPaths)
	case db != "COUNTERS_DB":
		return nil, status.Errorf(codes.InvalidArgument, "target %q, want COUNTERS_DB", db)
	}
	for _, s := range list.GetSubscription() {
		names := elementNames(list.GetPrefix(), s.GetPath())
		if s.GetMode() != gnmipb.SubscriptionMode_SAMPLE {
			return nil, status.Errorf(codes.Unimplemented, "%s in mode %v, want SAMPLE", strings.Join(names, "/"), s.GetMode())
		}
		if !t.valid(db, names) {
			return nil, status.Errorf(codes.NotFound, "%s has no %s in %s", t.node.Name, strings.Join(names, "/"), db)
		}
		paths = append(paths, sampled{path: s.GetPath(), names: names, interval: time.Duration(min(s.GetSampleInterval(), uint64(time.Hour)))})
	}
	return paths, nil
}

// Get is part of the gNMI service.
func (t *target) Get(_ context.Context, req *gnmipb.GetRequest) (*gnmipb.GetResponse, error) {
	if len(req.GetPath()) > maxPaths {
		return nil, status.Errorf(codes.InvalidArgument, "%d paths, want at most %d", len(req.GetPath()), maxPaths)
	}
	t.mu.Lock()
	r := t.newest
	t.mu.Unlock()
	db := req.GetPrefix().GetTarget()
	answer := &gnmipb.GetResponse{}
	for _, p := range req.GetPath() {
		names := elementNames(req.GetPrefix(), p)
		if !t.valid(db, names) {
			return nil, status.Errorf(codes.NotFound, "%s has no %s in %s", t.node.Name, strings.Join(names, "/"), db)
		}
		if r == nil && db == "COUNTERS_DB" {
			return nil, status.Errorf(codes.Unavailable, "%s has counted nothing yet", t.node.Name)
		}
		note, err := t.notification(req.GetPrefix(), p, names, r)
		if err != nil {
			return nil, err
		}
		answer.Notification = append(answer.Notification, note)
	}
	return answer, nil
}

// Capabilities is part of the gNMI service.
func (t *target) Capabilities(context.Context, *gnmipb.CapabilityRequest) (*gnmipb.CapabilityResponse, error) {
	return &gnmipb.CapabilityResponse{
		SupportedModels:    []*gnmipb.ModelData{{Name: "sonic-db", Organization: "SONiC"}},
		SupportedEncodings: []gnmipb.Encoding{gnmipb.Encoding_JSON_IETF}, GNMIVersion: "0.7.0",
	}, nil
}

// notification is the value of a path.
func (t *target) notification(prefix, path *gnmipb.Path, names []string, r *round) (*gnmipb.Notification, error) {
	body, err := json.Marshal(t.value(prefix.GetTarget(), names, r))
	if err != nil {
		return nil, status.Errorf(codes.Internal, "%s: %v", strings.Join(names, "/"), err)
	}
	at := time.Now().UnixNano()
	if r != nil {
		at = int64(r.at)
	}
	return &gnmipb.Notification{
		Timestamp: at, Prefix: prefix,
		Update: []*gnmipb.Update{{Path: path, Val: &gnmipb.TypedValue{Value: &gnmipb.TypedValue_JsonIetfVal{JsonIetfVal: body}}}},
	}, nil
}

// elementNames are those of prefix and path.
func elementNames(paths ...*gnmipb.Path) (names []string) {
	for _, p := range paths {
		for _, e := range p.GetElem() {
			names = append(names, e.GetName())
		}
	}
	return names
}
