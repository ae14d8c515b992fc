package sonic

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"

	gnmipb "github.com/openconfig/gnmi/proto/gnmi"
	"google.golang.org/grpc"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// Targets are the gNMI targets of all switches of a fabric, each with a TCP port of its own.
// They have neither TLS nor users, and therefore serve loopback alone.
type Targets struct {
	byNode    map[model.NodeID]*target
	order     []*target
	listeners []net.Listener
}

// ListenTargets opens the ports of all switches: that of the first and those after it, or any
// if it is 0. They answer once Run is called.
func ListenTargets(f *topo.Fabric, first netip.AddrPort) (*Targets, error) {
	if !first.Addr().IsLoopback() {
		return nil, fmt.Errorf("sonic: gNMI targets at %v, want a loopback address: they have no TLS", first)
	}
	if n := len(f.Switches()); first.Port() != 0 && int(first.Port())+n > 1<<16 {
		return nil, fmt.Errorf("sonic: gNMI targets of %d switches from port %d on, want at most %d as the first", n, first.Port(), 1<<16-n)
	}
	t := &Targets{byNode: map[model.NodeID]*target{}}
	for i, id := range f.Switches() {
		at := first
		if at.Port() != 0 {
			at = netip.AddrPortFrom(first.Addr(), first.Port()+uint16(i))
		}
		l, err := net.Listen("tcp", at.String())
		if err != nil {
			return nil, errors.Join(fmt.Errorf("sonic: gNMI target of %s: %w", f.Node(id).Name, err), t.close())
		}
		one := &target{
			database: database{fabric: f, node: f.Node(id)}, subscribers: map[chan *round]struct{}{}, subscribed: make(chan struct{}),
		}
		t.byNode[id], t.order, t.listeners = one, append(t.order, one), append(t.listeners, l)
	}
	return t, nil
}

func (t *Targets) close() (err error) {
	for _, l := range t.listeners {
		err = errors.Join(err, l.Close())
	}
	return err
}

// Run serves until ctx ends.
func (t *Targets) Run(ctx context.Context) error {
	var (
		all sync.WaitGroup
		mu  sync.Mutex
		bad error
	)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for i, one := range t.order {
		s := grpc.NewServer(grpc.WaitForHandlers(true), grpc.MaxConcurrentStreams(maxSubscribers))
		gnmipb.RegisterGNMIServer(s, one)
		all.Go(func() {
			if err := s.Serve(t.listeners[i]); err != nil && ctx.Err() == nil {
				mu.Lock()
				bad = errors.Join(bad, fmt.Errorf("sonic: gNMI target of %s: %w", one.node.Name, err))
				mu.Unlock()
				cancel()
			}
		})
		all.Go(func() {
			<-ctx.Done()
			s.Stop()
		})
	}
	all.Wait()
	return bad
}

// List has NAME=ADDRESS:PORT of every switch, as the setting gnmi.targets of a service.
func (t *Targets) List() (list []string) {
	for i, one := range t.order {
		list = append(list, one.node.Name+"="+t.listeners[i].Addr().String())
	}
	return list
}

// AwaitSubscribers returns when every target has had a subscriber, or with ctx's error.
func (t *Targets) AwaitSubscribers(ctx context.Context) error {
	for _, one := range t.order {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-one.subscribed:
		}
	}
	return nil
}

// Skipped is how many rounds subscribers were too slow for.
func (t *Targets) Skipped() (n uint64) {
	for _, one := range t.order {
		one.mu.Lock()
		n += one.skipped
		one.mu.Unlock()
	}
	return n
}
