//go:build !unix

package claim

import "time"

// cpuTime returns the wall clock where CPU time is not available.
func cpuTime() time.Duration { return time.Duration(time.Now().UnixNano()) }
