package inproc

// maxRecentIDs is how many IDs of a partition are remembered.
const maxRecentIDs = 1 << 12

// recentIDs are the last IDs of a partition.
type recentIDs struct {
	known map[uint64]struct{}
	order []uint64 // a ring
	next  int
}

func (r *recentIDs) has(id uint64) bool {
	_, ok := r.known[id]
	return ok
}

func (r *recentIDs) add(id uint64) {
	if r.known == nil {
		r.known = make(map[uint64]struct{}, maxRecentIDs)
	}
	if len(r.order) < maxRecentIDs {
		r.order = append(r.order, id)
	} else {
		delete(r.known, r.order[r.next])
		r.order[r.next] = id
		r.next = (r.next + 1) % maxRecentIDs
	}
	r.known[id] = struct{}{}
}
