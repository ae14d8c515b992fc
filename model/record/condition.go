package record

import "github.com/weft-telemetry/weft/model"

// Condition is a filter as a tree, for stores that translate it. Its meaning is that
// of analyze/filter: a test is true if it is true for one of the values of a field;
// "!=" if there are values and none is equal.
type Condition struct {
	// Op is "&&", "||" or "!" of other conditions, or a test of a field: "has", "==",
	// "!=", "<", "<=", ">", ">=", "in" or "contains".
	Op    string
	Of    []*Condition
	Field string
	// Ranges are the operands of a test: one, or several of "in".
	Ranges []ConditionRange
}

// ConditionRange is all values from Lo to Hi.
type ConditionRange struct{ Lo, Hi ConditionValue }

// ConditionValue is a value of any type.
type ConditionValue struct {
	Int   int64 // a boolean as 0 or 1
	Float float64
	Addr  model.Addr
	Text  string
}
