package serve

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/model/record"
)

// upkeep is how often retention is enforced.
const upkeep = time.Minute

// maintain enforces retention, now and then every minute.
func (s *Service) maintain(ctx context.Context) error {
	t := time.NewTicker(upkeep)
	defer t.Stop()
	for {
		// It is let finish at the end: to interrupt it leaves work half done.
		up, err := s.deps.Store.Maintain(context.WithoutCancel(ctx), time.Now())
		switch {
		case err != nil:
			s.log.Error("upkeep of the store", "error", err)
		default:
			removed := uint64(0)
			for _, r := range up.Removed {
				removed += r.Age + r.Size
			}
			s.note(func(now *stored) {
				now.size, now.memory = up.After, up.Memory
				now.forgotten += removed
			})
			s.log.Debug("upkeep of the store", "before", up.Before, "after", up.After, "removed", removed)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
	}
}

// note changes what is known of the store. Upkeep and a reload may do so at the
// same time.
func (s *Service) note(change func(now *stored)) {
	for {
		old := s.stored.Load()
		now := *old
		change(&now)
		if s.stored.CompareAndSwap(old, &now) {
			return
		}
	}
}

// lastNumbers asks a store for the numbers that were given before.
func lastNumbers(ctx context.Context, r api.Records) (n numbers, err error) {
	incidents, err := r.Incidents(ctx, record.Query{})
	if err != nil {
		return n, fmt.Errorf("read the store: %w", err)
	}
	for i := range incidents.Items {
		n.incident = max(n.incident, number(incidents.Items[i].ID, "i"))
	}
	diagnoses, err := r.Diagnoses(ctx, record.Query{})
	if err != nil {
		return n, fmt.Errorf("read the store: %w", err)
	}
	for i := range diagnoses.Items {
		n.diagnosis = max(n.diagnosis, number(diagnoses.Items[i].ID, "d"))
	}
	return n, nil
}

func number(id, prefix string) uint64 {
	n, _ := strconv.ParseUint(strings.TrimPrefix(id, prefix), 10, 64) // another's is none of ours
	return n
}
