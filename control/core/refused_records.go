package core

import (
	"cmp"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/store"
)

// SetAside is a record that the store refused, for a log or an operator.
type SetAside struct {
	Kind   store.Kind
	Reason string // one of few
	Detail string
	At     time.Time
}

// refusedByStore is the reason of records that pass the checks and that the store
// refuses nevertheless.
const refusedByStore = "refused by the store"

// maxSetAside is how many refused records are kept to be looked at, the newest.
const maxSetAside = 16

// logInterval is the least time between two lines of the log about refused records.
const logInterval = time.Second

// refusedRecords counts refused records by kind and reason. The writer's lock
// guards it.
type refusedRecords struct {
	counts   map[SetAside]uint64 // of kind and reason alone
	newest   []SetAside
	logged   time.Time
	unlogged uint64
}

func (r *refusedRecords) add(log *slog.Logger, list []SetAside) {
	if len(list) == 0 {
		return
	}
	if r.counts == nil {
		r.counts = map[SetAside]uint64{}
	}
	for _, one := range list {
		r.counts[SetAside{Kind: one.Kind, Reason: one.Reason}]++
	}
	r.newest = append(r.newest, list[max(0, len(list)-maxSetAside):]...)
	r.newest = slices.Clone(r.newest[max(0, len(r.newest)-maxSetAside):])
	r.unlogged += uint64(len(list))
	if one := list[len(list)-1]; one.At.Sub(r.logged).Abs() >= logInterval {
		log.Warn("records set aside: the store refuses them; all others are stored", "records", r.unlogged,
			"kind", one.Kind, "reason", one.Reason, "last", one.Detail)
		r.logged, r.unlogged = one.At, 0
	}
}

// SetAside returns the newest records that the store refused.
func (w *BatchWriter) SetAside() []SetAside {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.refused.newest)
}

// SetAsideLosses are the refused records by reason and kind.
func (w *BatchWriter) SetAsideLosses() []api.StageLoss {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := []api.StageLoss{}
	for one, n := range w.refused.counts {
		list = append(list, api.StageLoss{
			Reason: fmt.Sprintf("set aside %s: %s", one.Kind, one.Reason), About: "invalid records, which the store refuses", Count: n,
		})
	}
	slices.SortFunc(list, func(a, b api.StageLoss) int { return cmp.Compare(a.Reason, b.Reason) })
	return list
}

// alert returns what an operator should know about refused records, or nothing.
func (w *BatchWriter) alert(now time.Time) string {
	list := w.SetAside()
	if len(list) == 0 || now.Sub(list[len(list)-1].At) > alertFor {
		return ""
	}
	one := list[len(list)-1]
	return fmt.Sprintf("the store refuses records, which are set aside; the last is of %s: %s", one.Kind, one.Detail)
}
