//go:build !linux

package claim

import "time"

// threadTime is the time of day where a thread's time cannot be asked for.
func threadTime() time.Duration { return time.Duration(time.Now().UnixNano()) }
