package tree

import (
	"slices"

	"github.com/goccy/go-yaml/ast"
)

// maxMerges bounds merge keys, which may lead back to where they stand.
const maxMerges = 8

// FollowAliases returns v such that aliases below it stand for what they name,
// and merge keys for what they merge, as foreign formats want.
func (v Value) FollowAliases() Value {
	v.aliases = make(map[string]ast.Node)
	for _, a := range ast.Filter(ast.AnchorType, v.node) {
		if a := a.(*ast.AnchorNode); a.Value != nil {
			v.aliases[a.Name.GetToken().Value] = a.Value
		}
	}
	return v
}

// resolveAlias returns what an anchor or alias stands for, where they are followed.
func (v Value) resolveAlias(n ast.Node) ast.Node {
	if v.aliases == nil {
		return n
	}
	// An alias names an anchor, and an anchor's value is neither; the bound is
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

// mergedEntries returns the entries of what a merge key names.
func (v Value) mergedEntries(n ast.Node, what string) ([]Entry, error) {
	from := v.child(n)
	if from.merges++; from.merges > maxMerges {
		return nil, from.Errorf("%s merges more than %d times, want less", what, maxMerges)
	}
	return from.Entries(what)
}

// mergeWithOwn joins merged entries and a mapping's own, which win.
func mergeWithOwn(merged, own []Entry) []Entry {
	if len(merged) == 0 {
		return own
	}
	merged = slices.DeleteFunc(merged, func(m Entry) bool {
		return slices.ContainsFunc(own, func(o Entry) bool { return o.Key == m.Key })
	})
	return append(merged, own...)
}
