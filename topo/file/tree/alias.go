package tree

import (
	"slices"

	"github.com/goccy/go-yaml/ast"
)

// maxMerges limits nested merge keys, which may refer to themselves.
const maxMerges = 8

// FollowAliases returns v with aliases and merge keys below it resolved, as
// foreign formats require.
func (v Value) FollowAliases() Value {
	v.aliases = make(map[string]ast.Node)
	for _, a := range ast.Filter(ast.AnchorType, v.node) {
		if a := a.(*ast.AnchorNode); a.Value != nil {
			v.aliases[a.Name.GetToken().Value] = a.Value
		}
	}
	return v
}

// resolveAlias returns the value of an anchor or alias, if v follows them.
func (v Value) resolveAlias(n ast.Node) ast.Node {
	if v.aliases == nil {
		return n
	}
	// An alias names an anchor, and an anchor's value is neither; the limit is
	// for files that break this rule.
	for range 4 {
		switch a := n.(type) {
		case *ast.AnchorNode:
			n = a.Value
		case *ast.AliasNode:
			target, ok := v.aliases[a.Value.GetToken().Value]
			if !ok {
				return n
			}
			n = target
		default:
			return n
		}
	}
	return n
}

// mergedEntries returns the entries of the mapping that a merge key names.
func (v Value) mergedEntries(n ast.Node, what string) ([]Entry, error) {
	from := v.child(n)
	if from.merges++; from.merges > maxMerges {
		return nil, from.Errorf("%s merges more than %d times, want less", what, maxMerges)
	}
	return from.Entries(what)
}

// mergeWithOwn joins merged entries and a mapping's own, which take precedence.
func mergeWithOwn(merged, own []Entry) []Entry {
	if len(merged) == 0 {
		return own
	}
	merged = slices.DeleteFunc(merged, func(m Entry) bool {
		return slices.ContainsFunc(own, func(o Entry) bool { return o.Key == m.Key })
	})
	return append(merged, own...)
}
