package glossary

import "strings"

// An exception lets one expression pass in one file, for a reason.
type exception struct {
	file   string // path from the root, or a folder that ends in "/"
	word   string // of the rule
	reason string
}

// exceptions are few: each is a place that has to write the rejected word.
var exceptions = []exception{
	{"docs/glossary.md", "", "lists the words that are not used"},
	{"internal/glossary/", "", "holds the rules"},
	{"CHANGELOG.md", "", "names what was renamed"},
	{"internal/plot/svg.go", "circle", "the SVG element"},
}

func excepted(file, word string) *exception {
	for i := range exceptions {
		e := &exceptions[i]
		if (e.file == file || strings.HasSuffix(e.file, "/") && strings.HasPrefix(file, e.file)) && (e.word == "" || e.word == word) {
			return e
		}
	}
	return nil
}
