package lab

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/weft-telemetry/weft/model"
)

// What the token bucket of a port holds: two frames of 1,500 bytes with their headers, or
// what one tick of the kernel's clock at HZ 100 lets pass, and a queue of 20 ms.
const (
	leastBurst = 3028
	tick       = 10 * time.Millisecond
	queueTime  = 20 * time.Millisecond
)

// Rates that tbf keeps exactly: below, one frame takes longer than the queue holds.
const (
	minRate = model.Mbps
	maxRate = 100_000 * model.Mbps
)

// LimitRate limits what a port sends, by the kernel's token bucket (tbf). Packets wait for 20 ms
// at most. What does not fit is dropped, and counted by the queueing discipline. A limit or delay
// that the port had is back after repair.
func (l *Lab) LimitRate(port model.Port, rate model.Rate) (repair func() error, err error) {
	if rate < minRate || rate > maxRate {
		return nil, fmt.Errorf("lab: rate %v, want at least %v and at most %v", rate, minRate, maxRate)
	}
	bytes := float64(rate) / 8
	burst := max(leastBurst, bytes*tick.Seconds())
	return l.replaceQueue(port, func(at netlink.QdiscAttrs) netlink.Qdisc {
		return &netlink.Tbf{
			QdiscAttrs: at, Rate: uint64(bytes), Limit: uint32(min(burst+bytes*queueTime.Seconds(), math.MaxUint32)),
			Buffer: netlink.Xmittime(uint64(bytes), uint32(burst)),
		}
	})
}

// ErrNoNetem is returned where the kernel cannot delay packets.
var ErrNoNetem = errors.New("this kernel has no netem (CONFIG_NET_SCH_NETEM), which delays need")

// Delay delays what a port sends, by the kernel's netem, until it is repaired.
func (l *Lab) Delay(port model.Port, delay time.Duration) (repair func() error, err error) {
	if delay < time.Microsecond || delay > time.Minute {
		return nil, fmt.Errorf("lab: delay %v, want at least 1µs and at most 1m", delay)
	}
	repair, err = l.replaceQueue(port, func(at netlink.QdiscAttrs) netlink.Qdisc {
		return netlink.NewNetem(at, netlink.NetemQdiscAttrs{Latency: uint32(delay.Microseconds()), Limit: 100_000})
	})
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EOPNOTSUPP) {
		return nil, fmt.Errorf("lab: %w", ErrNoNetem)
	}
	return repair, err
}

// replaceQueue replaces the queueing discipline of a port.
func (l *Lab) replaceQueue(port model.Port, discipline func(netlink.QdiscAttrs) netlink.Qdisc) (repair func() error, err error) {
	before, err := l.queueOf(port)
	if err != nil {
		return nil, err
	}
	at := netlink.QdiscAttrs{LinkIndex: before.Attrs().LinkIndex, Parent: netlink.HANDLE_ROOT, Handle: netlink.MakeHandle(1, 0)}
	repair = func() error { return l.setQueue(port, before) }
	if err := l.setQueue(port, discipline(at)); err != nil {
		return nil, errors.Join(err, repair())
	}
	return repair, nil
}

// setQueue sets the queueing discipline of a port. One that is neither a limit nor a delay is
// that of an interface without any.
func (l *Lab) setQueue(port model.Port, q netlink.Qdisc) error {
	ns := l.nodes[port.Node]
	at := netlink.QdiscAttrs{LinkIndex: q.Attrs().LinkIndex, Parent: netlink.HANDLE_ROOT, Handle: netlink.MakeHandle(1, 0)}
	err := ns.QdiscDel(&netlink.GenericQdisc{QdiscAttrs: at})
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EINVAL) {
		err = nil // it had none
	}
	switch q.(type) {
	case *netlink.Tbf, *netlink.Netem:
		if err == nil {
			err = ns.QdiscAdd(q)
		}
	}
	if err != nil {
		return fmt.Errorf("lab: queueing discipline of %s %s: %w", ns.name, l.fabric.Port(port).Name, err)
	}
	return nil
}

// queueOf returns the queueing discipline of a port.
func (l *Lab) queueOf(port model.Port) (netlink.Qdisc, error) {
	ns := l.nodes[port.Node]
	dev, err := ns.LinkByName(l.fabric.Port(port).Name)
	if err != nil {
		return nil, fmt.Errorf("lab: %w", err)
	}
	list, err := ns.QdiscList(dev)
	if err != nil {
		return nil, fmt.Errorf("lab: %w", err)
	}
	for _, q := range list {
		if q.Attrs().Parent == netlink.HANDLE_ROOT {
			return q, nil
		}
	}
	return nil, fmt.Errorf("lab: %s %s has no queueing discipline", ns.name, dev.Attrs().Name)
}

// QueueDrops returns how many packets the queueing discipline of a port has dropped.
func (l *Lab) QueueDrops(port model.Port) (uint64, error) {
	q, err := l.queueOf(port)
	if err != nil {
		return 0, err
	}
	if s := q.Attrs().Statistics; s != nil && s.Queue != nil {
		return uint64(s.Queue.Drops), nil
	}
	return 0, nil
}
