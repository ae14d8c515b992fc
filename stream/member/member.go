package member

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-telemetry/weft/stream"
)

// Config describes a member of a group.
type Config struct {
	Group      string // letters, digits, - and _
	ID         string // unique in the group
	Partitions int
	Interval   time.Duration // between two looks at the group
}

// Check returns an error for an invalid configuration.
func (c *Config) Check() error {
	for name, s := range map[string]string{"group": c.Group, "id": c.ID} {
		if s == "" || strings.ContainsFunc(s, func(r rune) bool {
			return r > 'z' || !(r >= 'a' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_')
		}) {
			return fmt.Errorf("member: %s %q, want letters, digits, - and _", name, s)
		}
	}
	if c.Partitions < 1 || c.Interval <= 0 {
		return fmt.Errorf("member: %d partitions, interval %v; want at least 1, and more than 0", c.Partitions, c.Interval)
	}
	return nil
}

// Work works on a partition until ctx ends: the partition is given to another member, or
// was lost to it. It returns soon after, when it uses the partition no more. If it
// returns before, the partition is free for any member.
// Epoch is higher than that of any earlier work on it.
type Work func(ctx context.Context, partition int, epoch uint64) error

// Stats are the counters of a member.
type Stats struct {
	Held     int
	Acquired uint64
	Released uint64 // given to others
	Lost     uint64 // leases that expired, as the broker could not be reached
	Failed   uint64 // work that ended with an error
}

// Member is a member of a group.
type Member struct {
	cfg    Config
	leases stream.Leases
	work   Work

	mu      sync.Mutex
	held    map[int]*holding
	stats   Stats
	lastErr atomic.Pointer[error]
}

// holding is a partition that this member works on.
type holding struct {
	lease stream.Lease
	stop  context.CancelFunc
	done  chan struct{}
}

// New makes a member. Run starts it.
func New(cfg Config, leases stream.Leases, work Work) (*Member, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	return &Member{cfg: cfg, leases: leases, work: work, held: map[int]*holding{}}, nil
}

func memberPrefix(group string) string    { return "member." + group + "." }
func partitionPrefix(group string) string { return "partition." + group + "." }

// Run is a member until ctx ends. Then it gives its partitions to the others. While the
// broker is away it keeps what it holds until that expires.
func (m *Member) Run(ctx context.Context) error {
	var self stream.Lease
	defer func() { m.leave(context.WithoutCancel(ctx), self) }()
	t := time.NewTicker(m.cfg.Interval)
	defer t.Stop()
	for {
		if self == nil || isClosed(self.Lost()) {
			l, err := m.leases.Acquire(ctx, memberPrefix(m.cfg.Group)+m.cfg.ID, m.cfg.ID)
			if err == nil {
				self = l
			} else {
				self = nil
				m.note(err)
			}
		}
		if self != nil {
			m.note(m.balance(ctx))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func (m *Member) note(err error) { m.lastErr.Store(&err) }

// Err is why the last look at the group failed; nil if it did not.
func (m *Member) Err() error {
	if e := m.lastErr.Load(); e != nil {
		return *e
	}
	return nil
}

// Stats returns the present counts.
func (m *Member) Stats() Stats {
	m.mu.Lock()
	defer m.mu.Unlock()
	st := m.stats
	st.Held = len(m.held)
	return st
}

// Held returns the partitions that this member works on, in order.
func (m *Member) Held() []int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Sorted(maps.Keys(m.held))
}

// balance releases partitions that are another member's, and acquires those that are
// this one's and free.
func (m *Member) balance(ctx context.Context) error {
	g, err := Look(ctx, m.leases, m.cfg.Group)
	if err != nil {
		return err
	}
	// A list that was read before our lease was stored lacks us.
	if !slices.Contains(g.Members, m.cfg.ID) {
		return nil
	}
	assigned := Assign(m.cfg.Partitions, g.Working(), g.Holders)
	for _, p := range m.Held() {
		if assigned[p] != m.cfg.ID {
			m.mu.Lock()
			h := m.held[p]
			m.mu.Unlock()
			if h != nil {
				h.stop() // its goroutine releases the lease
			}
		}
	}
	var errs error
	for p := range m.cfg.Partitions {
		if _, taken := g.Holders[p]; assigned[p] == m.cfg.ID && !taken {
			errs = errors.Join(errs, m.acquire(ctx, p))
		}
	}
	return errs
}

// acquire starts to work on a partition, if no other member was faster.
func (m *Member) acquire(ctx context.Context, p int) error {
	m.mu.Lock()
	_, working := m.held[p] // until it has ended
	m.mu.Unlock()
	if working {
		return nil
	}
	lease, err := m.leases.Acquire(ctx, partitionPrefix(m.cfg.Group)+strconv.Itoa(p), m.cfg.ID)
	if errors.Is(err, stream.ErrHeld) {
		return nil
	} else if err != nil {
		return err
	}
	own, stop := context.WithCancel(ctx)
	h := &holding{lease, stop, make(chan struct{})}
	m.mu.Lock()
	m.held[p] = h
	m.stats.Acquired++
	m.mu.Unlock()
	go m.hold(own, p, h)
	return nil
}

// hold works on a partition and releases its lease afterwards.
func (m *Member) hold(ctx context.Context, p int, h *holding) {
	defer close(h.done)
	ended := make(chan struct{})
	go func() {
		select {
		case <-h.lease.Lost():
			h.stop()
		case <-ended:
		}
	}()
	err := m.work(ctx, p, h.lease.Epoch())
	close(ended)
	stopped := ctx.Err() != nil
	h.stop()
	lost := isClosed(h.lease.Lost())
	release := h.lease.Release(context.WithoutCancel(ctx))
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.held, p)
	switch {
	case err != nil && !(stopped && errors.Is(err, context.Canceled)):
		m.stats.Failed++
		m.note(fmt.Errorf("member: partition %d of %s: %w", p, m.cfg.Group, err))
	case lost:
		m.stats.Lost++
	default:
		m.stats.Released++
	}
	if release != nil {
		m.note(release) // it expires
	}
}

// leave ends all work and gives up the membership.
func (m *Member) leave(ctx context.Context, self stream.Lease) {
	m.mu.Lock()
	all := slices.Collect(maps.Values(m.held))
	m.mu.Unlock()
	for _, h := range all {
		h.stop()
	}
	for _, h := range all {
		<-h.done
	}
	if self != nil {
		m.note(self.Release(ctx))
	}
}

// Group is who is in a group, and who holds what.
type Group struct {
	Members []string // in order
	Shed    []string // those of them that partitions are taken from
	Holders map[int]string
}

// Look reads the state of a group.
func Look(ctx context.Context, leases stream.Leases, group string) (Group, error) {
	// All at once: members look often, and each list is work for the broker.
	all, err := leases.Holders(ctx, "")
	if err != nil {
		return Group{}, err
	}
	g := Group{Holders: map[int]string{}}
	for name, holder := range all {
		if strings.HasPrefix(name, memberPrefix(group)) {
			g.Members = append(g.Members, holder)
		} else if strings.HasPrefix(name, shedPrefix(group)) {
			g.Shed = append(g.Shed, holder)
		} else if number, ok := strings.CutPrefix(name, partitionPrefix(group)); ok {
			if p, err := strconv.Atoi(number); err == nil {
				g.Holders[p] = holder
			}
		}
	}
	slices.Sort(g.Members)
	slices.Sort(g.Shed)
	return g, nil
}
