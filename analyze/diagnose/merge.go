package diagnose

import (
	"cmp"
	"slices"

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/model"
)

// Merge merges verdicts of several detections on the same fault into one, led
// by the one that explains most of its packet's lateness: their victims and culprits are united. The gravest
// comes first. Verdicts of type None count only if there is no other.
func Merge(list []Verdict) (out []Verdict) {
	for i := range list {
		v := &list[i]
		at := slices.IndexFunc(out, func(o Verdict) bool { return o.sameFault(v) })
		if at < 0 {
			at = len(out)
			out = append(out, *v)
			out[at].Victims = slices.Clone(v.Victims)
			out[at].Culprits = slices.Clone(v.Culprits)
		} else {
			out[at].absorb(v)
		}
		out[at].addVictim(v.Victim)
	}
	// Flows that wait in a congested queue are victims of the PFC that spreads from it.
	// And the flows of an incast congest queues before the one in which all of them meet.
	for i := range out {
		v := &out[i]
		at := slices.IndexFunc(out, func(o Verdict) bool {
			return v.Anomaly == anomaly.FlowContention && o.Anomaly.SpreadsByPFC() && o.Cause == anomaly.ContendingFlows && o.Initial == v.Initial ||
				o.isIncastOf(v)
		})
		if at >= 0 {
			for _, k := range v.Victims {
				out[at].addVictim(k)
			}
			v.Anomaly = anomaly.None
		}
	}
	if slices.ContainsFunc(out, func(v Verdict) bool { return v.Anomaly != anomaly.None }) {
		out = slices.DeleteFunc(out, func(v Verdict) bool { return v.Anomaly == anomaly.None })
	}
	slices.SortStableFunc(out, func(a, b Verdict) int {
		return cmp.Or(cmp.Compare(b.Anomaly, a.Anomaly), cmp.Compare(len(b.Victims), len(a.Victims)))
	})
	return out
}

// isIncastOf reports whether the contention of another verdict is a part of this one's:
// of some of its flows, which do not only meet there.
func (v *Verdict) isIncastOf(o *Verdict) bool {
	isContention := func(x *Verdict) bool { return x.Cause == anomaly.ContendingFlows && len(x.DeadlockCycle) == 0 }
	return isContention(v) && isContention(o) && v.Anomaly >= o.Anomaly && o.Anomaly != anomaly.None && len(o.Culprits) > 0 &&
		len(v.Culprits) > len(o.Culprits) && !slices.ContainsFunc(o.Culprits, func(c Culprit) bool {
		return !slices.ContainsFunc(v.Culprits, func(x Culprit) bool { return x.Flow == c.Flow })
	})
}

// sameFault reports whether two verdicts are about the same fault.
func (v *Verdict) sameFault(o *Verdict) bool {
	if len(v.DeadlockCycle) > 0 && (v.Cause == anomaly.NoRootCause || o.Cause == anomaly.NoRootCause) {
		return samePorts(v.DeadlockCycle, o.DeadlockCycle)
	}
	return v.Anomaly == o.Anomaly && v.Cause == o.Cause && v.Initial == o.Initial &&
		samePorts(v.DeadlockCycle, o.DeadlockCycle)
}

func samePorts(a, b []model.Port) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(p model.Port) bool { return !slices.Contains(b, p) })
}

// absorb merges another verdict on the same fault into v.
func (v *Verdict) absorb(o *Verdict) {
	was := *v
	other := o
	known, wasKnown := o.Cause != anomaly.NoRootCause, v.Cause != anomaly.NoRootCause
	if known && !wasKnown || o.Confidence*o.Share > v.Confidence*v.Share && (known || !wasKnown) {
		*v, other = *o, &was
		v.Victims, v.Culprits = slices.Clone(o.Victims), slices.Clone(o.Culprits)
	}
	v.Persistent = v.Persistent || other.Persistent
	// A recurrence or a resume that one verdict saw holds for both.
	if other.Detail.WinsMerges() || v.Detail == anomaly.UnknownDetail {
		v.Detail, v.Remedy = other.Detail, other.Remedy
	}
	if v.Fault == nil {
		v.Fault = other.Fault
	}
	for _, k := range other.Victims {
		v.addVictim(k)
	}
	for _, c := range other.Culprits {
		if i := slices.IndexFunc(v.Culprits, func(x Culprit) bool { return x.Flow == c.Flow }); i < 0 {
			v.Culprits = append(v.Culprits, c)
		} else {
			v.Culprits[i].Weight = max(v.Culprits[i].Weight, c.Weight)
		}
	}
	slices.SortFunc(v.Culprits, func(a, b Culprit) int {
		return cmp.Or(cmp.Compare(b.Weight, a.Weight), a.Flow.Compare(b.Flow))
	})
}

func (v *Verdict) addVictim(k model.FlowKey) {
	if i, found := slices.BinarySearchFunc(v.Victims, k, model.FlowKey.Compare); !found {
		v.Victims = slices.Insert(v.Victims, i, k)
	}
}
