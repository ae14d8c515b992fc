package core

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/store"
)

// Store is what a core needs of a store. The core does not close it.
type Store interface {
	Appender
	api.Records
	Maintain(ctx context.Context, now time.Time) (store.MaintenanceResult, error)
}

// storeStatus is what the last maintenance found.
type storeStatus struct {
	size    model.Bytes
	limit   model.Bytes
	memory  model.Bytes // of the engine
	removed uint64      // records, by age or size
}

// maintain enforces the store's retention, now and then once per interval.
func (c *Core) maintain(ctx context.Context) error {
	t := time.NewTicker(c.cfg.MaintainInterval)
	defer t.Stop()
	for {
		// It is let finish when ctx ends: an interruption would leave work half done.
		up, err := c.deps.Store.Maintain(context.WithoutCancel(ctx), c.input.Clock().Now)
		if err != nil {
			c.log.Error("store maintenance failed", "error", err)
		} else {
			removed := uint64(0)
			for _, r := range up.Removed {
				removed += r.Age + r.Size
			}
			c.updateStoreStatus(func(s *storeStatus) {
				s.size, s.memory = up.After, up.Memory
				s.removed += removed
			})
			c.log.Debug("store maintenance", "before", up.Before, "after", up.After, "removed", removed)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
	}
}

// SetStoreLimit changes the size limit that health shows.
func (c *Core) SetStoreLimit(limit model.Bytes) {
	c.updateStoreStatus(func(s *storeStatus) { s.limit = limit })
}

// updateStoreStatus changes the status. Maintenance and a reload may do so at
// the same time.
func (c *Core) updateStoreStatus(change func(s *storeStatus)) {
	for {
		old := c.stored.Load()
		now := *old
		change(&now)
		if c.stored.CompareAndSwap(old, &now) {
			return
		}
	}
}

// LastIDs are the highest numbers that a store holds.
type LastIDs struct{ Incident, Diagnosis uint64 }

// ReadLastIDs asks a store for the numbers of its last incident and diagnosis, so
// that a new controller continues after them.
func ReadLastIDs(ctx context.Context, r api.Records) (last LastIDs, err error) {
	incidents, err := r.Incidents(ctx, record.Query{})
	if err != nil {
		return last, fmt.Errorf("read the store: %w", err)
	}
	for i := range incidents.Items {
		last.Incident = max(last.Incident, IDNumber(incidents.Items[i].ID))
	}
	diagnoses, err := r.Diagnoses(ctx, record.Query{})
	if err != nil {
		return last, fmt.Errorf("read the store: %w", err)
	}
	for i := range diagnoses.Items {
		last.Diagnosis = max(last.Diagnosis, IDNumber(diagnoses.Items[i].ID))
	}
	return last, nil
}

// IDNumber is the number in the id of an incident or a diagnosis, i7 or d7; 0 for
// an id of another form.
func IDNumber(id string) uint64 {
	n, _ := strconv.ParseUint(strings.TrimLeft(id, "id"), 10, 64)
	return n
}
