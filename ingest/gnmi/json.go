package gnmi

import (
	"bytes"
	"errors"
)

// errJSON is returned for what is no JSON object of the expected form.
var errJSON = errors.New("gnmi: not a JSON object")

// maxNesting bounds JSON values that are skipped.
const maxNesting = 32

// walk calls visit with every scalar of a JSON object: with an empty outer for its own
// fields, and with the name of a field for those of an object in it. What is nested
// deeper, and lists, are skipped. Names with escapes are passed as they are written.
// Values are the text of numbers and strings. It allocates nothing.
func walk(b []byte, visit func(outer, key, val []byte)) error {
	s := scanner{b: b}
	if err := s.object(nil, 0, visit); err != nil {
		return err
	}
	if s.space(); s.at != len(b) {
		return errJSON
	}
	return nil
}

// scalarOf returns the text of a JSON string or number.
func scalarOf(b []byte) ([]byte, error) {
	b = bytes.TrimSpace(b)
	s := scanner{b: b}
	if len(b) > 0 && b[0] == '"' {
		text, err := s.text()
		if err != nil || s.at != len(b) {
			return nil, errJSON
		}
		return text, nil
	}
	text := s.bare()
	if len(text) == 0 || s.at != len(b) {
		return nil, errJSON
	}
	return text, nil
}

type scanner struct {
	b  []byte
	at int
}

func (s *scanner) space() {
	for s.at < len(s.b) {
		switch s.b[s.at] {
		case ' ', '\t', '\n', '\r':
			s.at++
		default:
			return
		}
	}
}

// next returns the next byte that is no space, without taking it; 0 at the end.
func (s *scanner) next() byte {
	s.space()
	if s.at == len(s.b) {
		return 0
	}
	return s.b[s.at]
}

// take takes one byte.
func (s *scanner) take(c byte) bool {
	if s.next() != c || c == 0 {
		return false
	}
	s.at++
	return true
}

// text takes a string and returns what is between its quotes.
func (s *scanner) text() ([]byte, error) {
	if !s.take('"') {
		return nil, errJSON
	}
	start := s.at
	for s.at < len(s.b) {
		switch s.b[s.at] {
		case '"':
			s.at++
			return s.b[start : s.at-1], nil
		case '\\':
			s.at++
		}
		s.at++
	}
	s.at = len(s.b)
	return nil, errJSON
}

// bare takes a number or a literal.
func (s *scanner) bare() []byte {
	start := s.at
	for s.at < len(s.b) {
		switch c := s.b[s.at]; {
		case c >= '0' && c <= '9', c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c == '-', c == '+', c == '.':
			s.at++
		default:
			return s.b[start:s.at]
		}
	}
	return s.b[start:]
}

// object takes an object at a depth of 0 or 1.
func (s *scanner) object(outer []byte, depth int, visit func(outer, key, val []byte)) error {
	if !s.take('{') {
		return errJSON
	}
	if s.take('}') {
		return nil
	}
	for {
		key, err := s.text()
		if err != nil || !s.take(':') {
			return errJSON
		}
		switch c := s.next(); {
		case c == '"':
			val, err := s.text()
			if err != nil {
				return err
			}
			visit(outer, key, val)
		case c == '{' && depth == 0:
			if err := s.object(key, 1, visit); err != nil {
				return err
			}
		case c == '{' || c == '[':
			if err := s.skip(0); err != nil {
				return err
			}
		default:
			val := s.bare()
			if len(val) == 0 {
				return errJSON
			}
			visit(outer, key, val)
		}
		if s.take('}') {
			return nil
		}
		if !s.take(',') {
			return errJSON
		}
	}
}

// skip takes any value.
func (s *scanner) skip(depth int) error {
	if depth > maxNesting {
		return errJSON
	}
	switch c := s.next(); c {
	case '"':
		_, err := s.text()
		return err
	case '{', '[':
		s.at++
		end := c + 2 // } and ] are two after { and [
		if s.take(end) {
			return nil
		}
		for {
			if c == '{' {
				if _, err := s.text(); err != nil || !s.take(':') {
					return errJSON
				}
			}
			if err := s.skip(depth + 1); err != nil {
				return err
			}
			if s.take(end) {
				return nil
			}
			if !s.take(',') {
				return errJSON
			}
		}
	default:
		if len(s.bare()) == 0 {
			return errJSON
		}
		return nil
	}
}

// number returns a counter's value; false for what is none, such as N/A.
func number(text []byte) (v uint64, ok bool) {
	if len(text) == 0 || len(text) > 20 {
		return 0, false
	}
	for _, c := range text {
		if c < '0' || c > '9' {
			return 0, false
		}
		next := 10*v + uint64(c-'0')
		if v > (1<<64-1)/10 || next < v {
			return 0, false
		}
		v = next
	}
	return v, true
}
