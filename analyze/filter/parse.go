package filter

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/weft-telemetry/weft/internal/fileerror"
	"github.com/weft-telemetry/weft/model"
)

// vocabulary is a schema without its record type: all that parsing needs.
type vocabulary struct {
	fields  []field
	index   map[string]int
	resolve func(name string) (model.Addr, bool) // of addresses; may be nil
}

// field is a Field without its record.
type field struct {
	name  string
	typ   Type
	about string
	names map[string]int64
}

// maxNesting limits nested parentheses and negations, and with them the stack.
const maxNesting = 100

// parser parses a filter from left to right, one token ahead.
type parser struct {
	*vocabulary
	text  string
	tok   token
	depth int
	after follow // what may follow; for Complete
}

// follow is what may come next.
type follow struct {
	what  expectation
	field int
}

type expectation uint8

const (
	expectField    expectation = iota // a field, or ! or (
	expectOperator                    // an operator of the field, or a join
	expectValue                       // a value of the field
	expectJoin                        // && or ||
)

func (v *vocabulary) parse(text string) (*node, follow, *Error) {
	p := parser{vocabulary: v, text: text}
	p.after = follow{what: expectField}
	if err := p.advance(); err != nil {
		return nil, p.after, err
	}
	if p.tok.kind == ending {
		return nil, p.after, nil // everything
	}
	n, err := p.parseOr()
	if err == nil && p.tok.kind != ending {
		err = p.fail(`&& or || or the end`)
	}
	return n, p.after, err
}

func (p *parser) advance() (err *Error) {
	p.tok, err = nextToken(p.text, p.tok.end)
	return err
}

// fail returns an error about the current token.
func (p *parser) fail(want string) *Error {
	problem := "the filter ends"
	switch t := p.tok; t.kind {
	case ending:
	case word:
		problem = "unexpected " + strconv.Quote(t.text)
	default:
		problem = "unexpected " + strconv.Quote(p.text[t.at:t.end])
	}
	return &Error{Text: p.text, At: p.tok.at, End: p.tok.end, Problem: problem, Want: want}
}

func (p *parser) parseOr() (*node, *Error)  { return p.parseChain("||", or, p.parseAnd) }
func (p *parser) parseAnd() (*node, *Error) { return p.parseChain("&&", and, p.parseUnary) }

// parseChain parses operands with the same operator between them.
func (p *parser) parseChain(sign string, o op, operand func() (*node, *Error)) (*node, *Error) {
	first, err := operand()
	if err != nil || p.tok.kind != sign {
		return first, err
	}
	n := &node{op: o}
	n.addOperand(first)
	for p.tok.kind == sign {
		p.after = follow{what: expectField}
		if err := p.advance(); err != nil {
			return nil, err
		}
		more, err := operand()
		if err != nil {
			return nil, err
		}
		n.addOperand(more)
	}
	return n, nil
}

func (p *parser) parseUnary() (*node, *Error) {
	switch p.tok.kind {
	case "!", "(":
	default:
		return p.parseTest()
	}
	if p.depth++; p.depth > maxNesting {
		return nil, p.fail(fmt.Sprintf("at most %d nested parentheses and negations", maxNesting))
	}
	defer func() { p.depth-- }()
	sign := p.tok.kind
	p.after = follow{what: expectField}
	if err := p.advance(); err != nil {
		return nil, err
	}
	if sign == "!" {
		kid, err := p.parseUnary()
		return &node{op: not, kids: []*node{kid}}, err
	}
	n, err := p.parseOr()
	if err != nil {
		return nil, err
	}
	if p.tok.kind != ")" {
		return nil, p.fail("&& or || or )")
	}
	p.after = follow{what: expectJoin}
	return n, p.advance()
}

// parseTest parses a field with its operator and value.
func (p *parser) parseTest() (*node, *Error) {
	if p.tok.kind != word {
		return nil, p.fail("a field, ! or (")
	}
	at, known := p.index[p.tok.text]
	if !known {
		err := p.fail(p.suggestFields(p.tok.text))
		err.Problem = "unknown field " + strconv.Quote(p.tok.text)
		return nil, err
	}
	f := &p.fields[at]
	p.after = follow{expectOperator, at}
	name := p.tok
	if err := p.advance(); err != nil {
		return nil, err
	}
	o, asks := operators[p.tok.kind]
	if !asks {
		return &node{op: present, field: at}, nil
	}
	if bad := f.rejectsOperator(o); bad != "" {
		return nil, p.fail(bad)
	}
	p.after = follow{expectValue, at}
	if err := p.advance(); err != nil {
		return nil, err
	}
	n := &node{op: o, field: at}
	if o == within {
		return n, p.parseSet(n)
	}
	s, err := p.parseValue(n)
	if err != nil {
		return nil, err
	}
	n.spans = []span{s}
	if o == equal && p.tok.kind == "," {
		return p.parseHeaderPair(n, name)
	}
	return n, nil
}

var operators = map[string]op{
	"==": equal, "!=": unequal, "<": less, "<=": atMost, ">": more, ">=": atLeast, "in": within, "contains": contains,
}

// rejectsOperator returns why a field does not support an operator, "" if it does.
func (f *field) rejectsOperator(o op) string {
	switch {
	case o == contains && f.typ != Text:
		return fmt.Sprintf("another operator: %s is a %v, and contains is for text", f.name, f.typ)
	case (o == less || o == atMost || o == more || o == atLeast) && !f.typ.ordered():
		return fmt.Sprintf("== or !=: %s has no order", f.name)
	}
	return ""
}

// parseValue parses a value for a test, or a prefix if the operator allows one.
func (p *parser) parseValue(n *node) (s span, err *Error) {
	f := &p.fields[n.field]
	if p.tok.kind != word && p.tok.kind != quoted {
		return s, p.fail(f.expected())
	}
	var bad error
	if n.op == contains {
		s.lo.Text, s.hi.Text = p.tok.text, p.tok.text // also part of a name
	} else {
		s, bad = p.parseLiteral(f, p.tok.text)
	}
	several := n.op == equal || n.op == unequal || n.op == within
	if bad != nil || !several && !s.single(f.typ) {
		err := p.fail(f.expected())
		err.Problem = fmt.Sprintf("%s is not a value of %s", strconv.Quote(p.tok.text), f.name)
		switch {
		case bad == nil:
		case f.typ.isAddress() && p.resolve != nil && isName(p.tok.text):
			err.Problem, err.Want = "no host "+p.tok.text, err.Want+", or the name of a host"
		case f.typ == Text && len(f.names) > maxNamesListed:
			if near := nearest(p.tok.text, f.sortedNames(), 4, 2); len(near) > 0 {
				err.Want = strings.Join(near, " or ")
			}
		}
		if bad == nil {
			err.Want = "one address, not a prefix"
		}
		return span{}, err
	}
	p.after = follow{what: expectJoin}
	return s, p.advance()
}

// parseSet parses "{a, b, c..d}".
func (p *parser) parseSet(n *node) *Error {
	if p.tok.kind != "{" {
		return p.fail("{ and a list of values")
	}
	for {
		p.after = follow{expectValue, n.field}
		if err := p.advance(); err != nil { // over "{" or ","
			return err
		}
		start := p.tok
		s, err := p.parseValue(n)
		if err != nil {
			return err
		}
		if p.tok.kind == ".." {
			if s, err = p.parseRange(n, s, start); err != nil {
				return err
			}
		}
		n.spans = append(n.spans, s)
		switch p.tok.kind {
		case ",":
			continue
		case "}":
			p.after = follow{what: expectJoin}
			return p.advance()
		}
		return p.fail(", or }")
	}
}

// parseRange parses the second half of a range.
func (p *parser) parseRange(n *node, lo span, start token) (span, *Error) {
	f := &p.fields[n.field]
	if !f.typ.ordered() {
		return span{}, p.fail(fmt.Sprintf(", or }: %s has no order", f.name))
	}
	p.after = follow{expectValue, n.field}
	if err := p.advance(); err != nil {
		return span{}, err
	}
	end := p.tok
	hi, err := p.parseValue(n)
	if err != nil {
		return span{}, err
	}
	if !lo.single(f.typ) || !hi.single(f.typ) || f.typ.compare(&lo.lo, &hi.lo) > 0 {
		return span{}, &Error{
			Text: p.text, At: start.at, End: end.end,
			Problem: "a range from " + start.text + " to " + end.text, Want: "single values, the smaller one first",
		}
	}
	return span{lo.lo, hi.lo}, nil
}

// parseHeaderPair continues after "ip.src == A,": the first value is of the outer
// header, the second of the innermost.
func (p *parser) parseHeaderPair(n *node, name token) (*node, *Error) {
	out, haveOuter := p.index["outer."+name.text]
	in, haveInner := p.index["inner."+name.text]
	if !haveOuter || !haveInner {
		return nil, p.fail(fmt.Sprintf("one value: %s is not a field of both headers", name.text))
	}
	p.after = follow{expectValue, n.field}
	if err := p.advance(); err != nil {
		return nil, err
	}
	s, err := p.parseValue(n)
	if err != nil {
		return nil, err
	}
	if p.tok.kind == "," {
		return nil, p.fail("two values, of the outer header and of the innermost")
	}
	return &node{op: and, kids: []*node{
		{op: equal, field: out, spans: n.spans},
		{op: equal, field: in, spans: []span{s}},
	}}, nil
}

// maxNamesListed is how many names of a field are listed.
const maxNamesListed = 8

// expected describes the valid values of the field.
func (f *field) expected() string {
	if len(f.names) == 0 {
		return types[f.typ].want
	}
	names := f.sortedNames()
	if len(names) > maxNamesListed {
		names = append(names[:maxNamesListed], "…")
	}
	list := strings.Join(names, ", ")
	if f.typ == Int {
		return "a number, or one of " + list
	}
	return "one of " + list
}

func (f *field) sortedNames() []string {
	names := make([]string, 0, len(f.names))
	for n := range f.names {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

// maxSuggestLen is the longest word for which fields are suggested.
const maxSuggestLen = 64

// suggestFields lists the fields with the nearest names: those with few other letters,
// otherwise of the same group, otherwise of any.
func (v *vocabulary) suggestFields(name string) string {
	if len(name) > maxSuggestLen {
		return "a field of the schema, such as " + v.fields[0].name
	}
	var alike, group, all []string
	prefix, _, _ := strings.Cut(name, ".")
	for i := range v.fields {
		n := v.fields[i].name
		if fileerror.EditDistance(name, n) <= 2 || strings.HasSuffix(n, "."+name) || strings.HasPrefix(n, name+".") {
			alike = append(alike, n)
		}
		if strings.HasPrefix(n, prefix+".") {
			group = append(group, n)
		}
		all = append(all, n)
	}
	for _, near := range [][]string{
		nearest(name, alike, 4, maxSuggestLen), nearest(name, group, 4, maxSuggestLen), nearest(name, all, 4, len(name)/2),
	} {
		if len(near) > 0 {
			return strings.Join(near, " or ")
		}
	}
	return "a field of the schema, such as " + v.fields[0].name
}

// nearest returns up to most of the words that differ in the fewest letters, in at most
// far of them.
func nearest(word string, words []string, most, far int) (list []string) {
	if len(word) > maxSuggestLen {
		return nil
	}
	distance := map[string]int{}
	for _, w := range words {
		if d := fileerror.EditDistance(word, w); d <= far {
			distance[w] = d
			list = append(list, w)
		}
	}
	slices.SortStableFunc(list, func(a, b string) int { return distance[a] - distance[b] })
	return list[:min(len(list), most)]
}

// isName reports whether a text can be a name, and no address.
func isName(text string) bool {
	return text != "" && (text[0] >= 'a' && text[0] <= 'z' || text[0] >= 'A' && text[0] <= 'Z') && !strings.ContainsAny(text, ":/")
}
