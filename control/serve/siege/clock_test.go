package siege

import (
	"os"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"github.com/weft-telemetry/weft/model"
)

// clock is the time of the honest fabric, which the clock of its service shows, too.
// A machine that has no time for the fabric slows both: no report is late, however
// busy the machine is. It is memory that the test and the service share.
type clock struct {
	offset atomic.Int64 // beside this host's clock
	limit  atomic.Int64 // no later time is shown; 0: any is
	step   atomic.Int64 // of the service's clock alone
}

// openClock maps a file as a clock. A new file is a clock that shows this host's
// time.
func openClock(name string) (*clock, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size := int(unsafe.Sizeof(clock{}))
	if err := f.Truncate(int64(size)); err != nil {
		return nil, err
	}
	// It stays mapped until the process ends.
	b, err := syscall.Mmap(int(f.Fd()), 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	return (*clock)(unsafe.Pointer(&b[0])), nil
}

// unlimited is the time that the clock shows where the fabric keeps up.
func (c *clock) unlimited() time.Time { return time.Now().Add(time.Duration(c.offset.Load())) }

// now is the fabric's time.
func (c *clock) now() time.Time {
	now := c.unlimited().UnixNano()
	if l := c.limit.Load(); l != 0 {
		now = min(now, l)
	}
	return time.Unix(0, now)
}

// model is the fabric's time.
func (c *clock) model() model.Time { return model.TimeOf(c.now()) }

// shown is what the service's clock shows.
func (c *clock) shown() time.Time { return c.now().Add(time.Duration(c.step.Load())) }

// elapsed is the service's monotonic clock, which has no steps.
func (c *clock) elapsed() time.Duration { return time.Duration(c.now().UnixNano()) }

// slack is how late a datagram may leave before time waits for it.
const slack = 200 * time.Millisecond

// leaves says that a datagram of a time leaves, and returns how much time has waited
// for it.
func (c *clock) leaves(at time.Time) (waited time.Duration) {
	if late := c.unlimited().Sub(at) - slack; late > 0 {
		c.offset.Add(-int64(late))
		waited = late
	}
	c.limit.Store(at.Add(slack).UnixNano())
	return waited
}
