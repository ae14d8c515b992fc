// Package goal reads schedules of the Group Operation Assembly Language (GOAL)
// in text form, as LogGOPSim and ATLAHS run them: for each rank sends, receives
// and computations, and what each requires. Running a schedule is scenario's
// work.
//
// docs/files.md describes the format and the intended differences.
package goal

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/weft-telemetry/weft/internal/fileerror"
	"github.com/weft-telemetry/weft/sim/traffic"
	"github.com/weft-telemetry/weft/topo"
)

// Kind is what an operation does.
type Kind uint8

// Kinds of operations.
const (
	Calc Kind = iota // computes for Size nanoseconds
	Send             // Size bytes to Peer
	Recv             // Size bytes from Peer
)

// Op is an operation of a rank.
type Op struct {
	Line int
	Kind Kind
	Size uint64 // bytes, or nanoseconds
	Peer int
	Tag  uint32
	CPU  uint8

	Requires  []int // operations of the same rank that must have ended before it starts
	IRequires []int // that must have started
}

// Schedule is a GOAL file.
type Schedule struct {
	File  string
	Ranks [][]Op // by rank
}

// maxCPU is the highest number of a CPU; the one above is for joins.
const maxCPU = math.MaxUint8 - 1

// Parse reads a schedule. Every error is a *fileerror.Error.
func Parse(name string, data []byte) (*Schedule, error) {
	p := parser{s: &Schedule{File: name}, rank: -1}
	for text := range strings.Lines(string(data)) {
		p.line++
		words, err := p.words(text)
		if err != nil {
			return nil, err
		}
		if err := p.statement(words); err != nil {
			return nil, err
		}
	}
	switch {
	case p.comment:
		return nil, p.errorf("file ends in a comment, want */")
	case p.rank >= 0:
		return nil, p.errorf("file ends in rank %d, want }", p.rank)
	case p.s.Ranks == nil:
		return nil, p.errorf("file ends without num_ranks, want it")
	case p.ops == 0:
		return nil, p.errorf("file ends without an operation, want at least one")
	}
	return p.s, nil
}

type parser struct {
	s       *Schedule
	line    int
	comment bool // in /* */
	rank    int  // -1: between ranks
	seen    []bool
	labels  map[string]int // of the rank: its operations
	ops     int
}

func (p *parser) errorf(format string, args ...any) error {
	return fileerror.Errorf(p.s.File, max(p.line, 1), format, args...)
}

// words splits a line, without comments. Colons and brackets are words.
func (p *parser) words(text string) ([]string, error) {
	var kept strings.Builder
	for text != "" {
		if p.comment {
			_, rest, ok := strings.Cut(text, "*/")
			if !ok {
				break
			}
			p.comment, text = false, rest
			kept.WriteByte(' ')
			continue
		}
		i := strings.Index(text, "/")
		if i < 0 || i+1 == len(text) {
			kept.WriteString(text)
			break
		}
		kept.WriteString(text[:i])
		switch text[i+1] {
		case '/':
			text = ""
		case '*':
			p.comment, text = true, text[i+2:]
		default:
			return nil, p.errorf("%q, want // or /*", text[i:i+2])
		}
	}
	return strings.Fields(strings.NewReplacer(":", " : ", "{", " { ", "}", " } ").Replace(kept.String())), nil
}

// statement reads a line. A bracket may be followed by a statement.
func (p *parser) statement(words []string) error {
	for len(words) > 0 {
		switch {
		case words[0] == "}":
			if p.rank < 0 {
				return p.errorf("} without a rank, want rank")
			}
			p.rank, words = -1, words[1:]
		case words[0] == "num_ranks" && p.rank < 0:
			if len(words) != 2 || p.s.Ranks != nil {
				return p.errorf("num_ranks, want it once, with one number")
			}
			n, err := p.number("num_ranks", words[1], 1, topo.MaxNodes)
			if err != nil {
				return err
			}
			p.s.Ranks, p.seen = make([][]Op, n), make([]bool, n)
			return nil
		case words[0] == "rank" && p.rank < 0:
			if err := p.enterRank(words); err != nil {
				return err
			}
			words = words[3:]
		case p.rank < 0:
			return p.errorf("%q, want num_ranks or rank", words[0])
		default:
			end := slices.Index(words, "}")
			if end < 0 {
				end = len(words)
			}
			if err := p.operation(words[:end]); err != nil {
				return err
			}
			words = words[end:]
		}
	}
	return nil
}

func (p *parser) enterRank(words []string) error {
	if p.s.Ranks == nil {
		return p.errorf("rank before num_ranks, want num_ranks first")
	}
	if len(words) < 3 || words[2] != "{" {
		return p.errorf("rank, want a number and {")
	}
	n, err := p.number("rank", words[1], 0, len(p.s.Ranks)-1)
	if err != nil {
		return err
	}
	if p.seen[n] {
		return p.errorf("rank %d again, want it once", n)
	}
	p.rank, p.seen[n], p.labels = int(n), true, make(map[string]int)
	return nil
}

func (p *parser) number(what, word string, least, most int) (uint64, error) {
	n, err := strconv.ParseUint(word, 10, 64)
	if err != nil || n < uint64(least) || n > uint64(most) {
		return 0, p.errorf("%s %q, want a whole number from %d to %d", what, word, least, most)
	}
	return n, nil
}

// operation reads "label: calc …", "label: send …", or "label requires label".
func (p *parser) operation(words []string) error {
	label := ""
	switch {
	case len(words) >= 2 && words[1] == ":":
		label, words = words[0], words[2:]
	case len(words) == 3 && (words[1] == "requires" || words[1] == "irequires"):
		return p.dependency(words)
	}
	if len(words) == 0 {
		return p.errorf("label %s without an operation, want calc, send or recv", label)
	}
	op := Op{Line: p.line}
	var err error
	switch words[0] {
	case "calc":
		err = p.calc(&op, words[1:])
	case "send":
		op.Kind = Send
		err = p.message(&op, words[1:], "to")
	case "recv":
		op.Kind = Recv
		err = p.message(&op, words[1:], "from")
	default:
		err = p.errorf("%q, want calc, send, recv, or two labels and requires or irequires", words[0])
	}
	if err != nil {
		return err
	}
	if p.ops++; p.ops > traffic.MaxFlows {
		return p.errorf("more than %d operations, want fewer", traffic.MaxFlows)
	}
	if label != "" {
		if _, twice := p.labels[label]; twice {
			return p.errorf("label %s again, want different ones", label)
		}
		p.labels[label] = len(p.s.Ranks[p.rank])
	}
	p.s.Ranks[p.rank] = append(p.s.Ranks[p.rank], op)
	return nil
}

func (p *parser) dependency(words []string) error {
	var at [2]int
	for i, l := range []string{words[0], words[2]} {
		n, ok := p.labels[l]
		if !ok {
			return p.errorf("there is no label %s above in rank %d, want one", l, p.rank)
		}
		at[i] = n
	}
	if at[0] == at[1] {
		return p.errorf("%s requires itself, want another", words[0])
	}
	op := &p.s.Ranks[p.rank][at[0]]
	if words[1] == "requires" {
		op.Requires = append(op.Requires, at[1])
	} else {
		op.IRequires = append(op.IRequires, at[1])
	}
	return nil
}

func (p *parser) calc(op *Op, words []string) (err error) {
	if len(words) == 0 {
		return p.errorf("calc without a time, want nanoseconds")
	}
	if op.Size, err = p.number("calc", words[0], 0, int(traffic.MaxTime)); err != nil {
		return err
	}
	return p.options(op, words[1:], "cpu")
}

func (p *parser) message(op *Op, words []string, direction string) (err error) {
	// "8b" and "8 b" are the same.
	if len(words) >= 2 && words[1] == "b" {
		words = append([]string{words[0] + "b"}, words[2:]...)
	}
	if len(words) < 3 || !strings.HasSuffix(words[0], "b") || words[1] != direction {
		return p.errorf("want a size such as 8b, %s, and a rank", direction)
	}
	if op.Size, err = p.number("size", strings.TrimSuffix(words[0], "b"), 0, int(traffic.MaxBytes)); err != nil {
		return err
	}
	if words[2] == "-1" {
		return p.errorf("receive from any source, want a rank: the order of arrivals is not known before the run")
	}
	peer, err := p.number("rank", words[2], 0, len(p.s.Ranks)-1)
	op.Peer = int(peer)
	if err != nil {
		return err
	}
	return p.options(op, words[3:], "tag", "cpu", "nic")
}

func (p *parser) options(op *Op, words []string, known ...string) error {
	for i := 0; i < len(words); i += 2 {
		if !slices.Contains(known, words[i]) || i+1 == len(words) {
			return p.errorf("%q, want a number after one of %s", words[i], strings.Join(known, ", "))
		}
		switch words[i] {
		case "tag":
			if words[i+1] == "-1" {
				return p.errorf("receive of any tag, want one: the order of arrivals is not known before the run")
			}
			n, err := p.number("tag", words[i+1], 0, math.MaxUint32)
			if op.Tag = uint32(n); err != nil {
				return err
			}
		case "cpu":
			n, err := p.number("cpu", words[i+1], 0, maxCPU)
			if op.CPU = uint8(n); err != nil {
				return err
			}
		case "nic": // hosts choose the port by hash
			if _, err := p.number("nic", words[i+1], 0, math.MaxUint8); err != nil {
				return err
			}
		}
	}
	return nil
}
