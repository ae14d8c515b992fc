package filter

import (
	"strings"
	"unicode/utf8"
)

// Completion lists what can be typed at a position of a filter.
type Completion struct {
	From, To   int // bytes of the text that a candidate replaces
	Candidates []Candidate
}

// Candidate is one completion.
type Candidate struct {
	Text  string `json:"text"`
	About string `json:"about,omitempty"`
}

// Complete returns the completions at the cursor, a byte offset, given the text
// before it: fields, operators, or named values. After an error in that text
// there are none.
func (s *Schema[T]) Complete(text string, cursor int) Completion {
	cursor = min(max(cursor, 0), len(text))
	v := &s.words
	from := cursor
	for from > 0 {
		r, n := utf8.DecodeLastRuneInString(text[:from])
		if notWord(r) {
			break
		}
		from -= n
	}
	if dots := strings.LastIndex(text[from:cursor], ".."); dots >= 0 {
		from += dots + len("..") // the second half of a range
	}
	c := Completion{From: from, To: cursor + wordLen(text[cursor:])}
	_, after, err := v.parse(text[:from])
	if err != nil && err.At < len(strings.TrimRight(text[:from], " \t\r\n")) {
		return c
	}
	typed := text[from:cursor]
	add := func(text, about string) {
		if strings.HasPrefix(text, typed) && text != typed {
			c.Candidates = append(c.Candidates, Candidate{text, about})
		}
	}
	switch after.what {
	case expectField:
		for i := range v.fields {
			add(v.fields[i].name, v.fields[i].about)
		}
		add("!", "not")
		add("(", "")
	case expectOperator:
		f := &v.fields[after.field]
		for _, o := range []op{equal, unequal, less, atMost, more, atLeast, within, contains} {
			if f.rejectsOperator(o) == "" {
				add(signOf[o], "")
			}
		}
		fallthrough
	case expectJoin:
		add("&&", "and")
		add("||", "or")
	case expectValue:
		f := &v.fields[after.field]
		names := f.sortedNames()
		if f.typ == Bool {
			names = []string{"true", "false"}
		}
		for _, n := range names {
			add(string(appendText(nil, n)), "")
		}
	}
	return c
}
