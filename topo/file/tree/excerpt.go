package tree

import (
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// Excerpt returns v's file, whose bytes are data, with everything but v blanked.
// Lines keep their numbers, so errors found while parsing v have the right line.
// next is the line on which the value after v begins, 0 if v is the last.
func (v Value) Excerpt(data []byte, next int) []byte {
	lines := strings.SplitAfter(string(data), "\n")
	first, last := v.Line, len(lines)
	if next > 0 {
		last = next - 1
	}
	m, flow := v.node.(*ast.MappingNode)
	flow = flow && m.IsFlowStyle && m.Start != nil && m.End != nil
	if flow {
		first, last = m.Start.Position.Line, m.End.Position.Line
	}
	var b strings.Builder
	for i, line := range lines {
		switch no := i + 1; {
		case no < first || no > last:
			b.WriteByte('\n')
		case flow:
			from, to := 1, len(line)+1
			if no == first {
				from = m.Start.Position.Column
			}
			if no == last {
				to = m.End.Position.Column
			}
			blank(&b, line, from, to)
		default:
			b.WriteString(line)
		}
	}
	return []byte(b.String())
}

// blank writes a line with spaces outside the columns from and to, which count
// characters from 1.
func blank(b *strings.Builder, line string, from, to int) {
	column := 0
	for _, r := range line {
		if column++; column >= from && column <= to || r == '\n' {
			b.WriteRune(r)
		} else {
			b.WriteByte(' ')
		}
	}
}
