package attribution

import (
	"unsafe"

	"github.com/weft-telemetry/weft/model"
)

// Memory returns about how much memory an account takes; none for nil. An account of
// many queues has lists for each of them, so who keeps it must count it.
func (a *Account) Memory() (sum model.Bytes) {
	if a == nil {
		return 0
	}
	sum = sizeOf(a.Terms) + sizeOf(a.Deadlocks) + sizeOf(a.Stays)
	for i := range a.Terms {
		t := &a.Terms[i]
		sum += sizeOf(t.Via) + sizeOf(t.Culprits) + model.Bytes(unsafe.Sizeof(Place{}))
	}
	for i := range a.Deadlocks {
		sum += sizeOf(a.Deadlocks[i].Cycle) + sizeOf(a.Deadlocks[i].TriggerCulprits)
	}
	return sum
}

// Memory returns about how much memory a timeline takes.
func (t *Timeline) Memory() model.Bytes {
	sum := sizeOf(t.Rows)
	for i := range t.Rows {
		r := &t.Rows[i]
		sum += sizeOf(r.Paused) + sizeOf(r.Congested) + sizeOf(r.Packet)
	}
	return sum
}

func sizeOf[T any](list []T) model.Bytes {
	return model.Bytes(cap(list)) * model.Bytes(unsafe.Sizeof(*new(T)))
}
