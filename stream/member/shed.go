package member

import (
	"context"
	"slices"

	"github.com/weft-telemetry/weft/stream"
)

func shedPrefix(group string) string { return "shed." + group + "." }

// Shed takes a group's partitions from a member that is too slow for the others, until the
// lease is released or expires. It stays a member: if all are shed, they have their shares.
func Shed(ctx context.Context, leases stream.Leases, group, id string) (stream.Lease, error) {
	return leases.Acquire(ctx, shedPrefix(group)+id, id)
}

// Working returns the members that partitions are for, in order.
func (g *Group) Working() []string {
	list := slices.DeleteFunc(slices.Clone(g.Members), func(id string) bool { return slices.Contains(g.Shed, id) })
	if len(list) == 0 {
		return g.Members
	}
	return list
}
