package filter

import records "github.com/weft-telemetry/weft/model/record"

// Condition returns the filter as a tree that a store can translate; nil if it
// matches everything.
func (f *Filter[T]) Condition() *records.Condition {
	if f.root == nil {
		return nil
	}
	return f.schema.words.condition(f.root)
}

func (v *vocabulary) condition(n *node) *records.Condition {
	c := &records.Condition{Op: signOf[n.op]}
	for _, kid := range n.kids {
		c.Of = append(c.Of, v.condition(kid))
	}
	if n.op == or || n.op == and || n.op == not {
		return c
	}
	c.Field = v.fields[n.field].name
	if n.op == present {
		c.Op = "has"
	}
	for i := range n.spans {
		c.Ranges = append(c.Ranges, records.ConditionRange{
			Lo: records.ConditionValue(n.spans[i].lo), Hi: records.ConditionValue(n.spans[i].hi),
		})
	}
	return c
}
