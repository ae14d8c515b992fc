package claim

import (
	"time"

	"golang.org/x/sys/unix"
)

// threadTime is what the calling thread has used of processors. Rusage would
// tell it by the kernel's tick, which is too coarse for short work.
func threadTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		return time.Duration(time.Now().UnixNano())
	}
	return time.Duration(t.Nano())
}
