package filter

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// token is a token of a filter. Its kind is the text of an operator or keyword,
// or one of the three below.
type token struct {
	kind    string
	text    string // of a word; the unquoted content of a quoted text
	at, end int    // bytes of the filter
}

const (
	word   = "word"
	quoted = "quoted text"
	ending = "end of the filter"
)

// signs are the operators, longer ones before their prefixes.
var signs = []string{"&&", "||", "==", "!=", "<=", ">=", "..", "<", ">", "!", "(", ")", "{", "}", ","}

// keywords are words that are synonyms of signs, or operators themselves.
var keywords = map[string]string{
	"and": "&&", "or": "||", "not": "!", "in": "in", "contains": "contains",
	"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
}

// notWord reports whether a rune ends a word: any but letters, digits and the
// characters of names, addresses, numbers and their units.
func notWord(r rune) bool {
	return r == utf8.RuneError || !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_.:/%+-", r)
}

// nextToken returns the token at the start of text[at:].
func nextToken(text string, at int) (token, *Error) {
	for at < len(text) && strings.IndexByte(" \t\r\n", text[at]) >= 0 {
		at++
	}
	rest := text[at:]
	if rest == "" {
		return token{kind: ending, at: at, end: at}, nil
	}
	if rest[0] == '"' {
		return quotedToken(text, at)
	}
	for _, s := range signs {
		if strings.HasPrefix(rest, s) {
			return token{kind: s, at: at, end: at + len(s)}, nil
		}
	}
	n := wordLen(rest)
	if n == 0 {
		_, n = utf8.DecodeRuneInString(rest)
		want := "a field, a value, or an operator such as == or &&"
		switch rest[0] {
		case '=', '&', '|':
			want = strconv.Quote(strings.Repeat(rest[:1], 2))
		}
		return token{}, &Error{
			Text: text, At: at, End: at + n, Problem: "unexpected " + strconv.Quote(rest[:n]),
			Want: want,
		}
	}
	t := token{kind: word, text: rest[:n], at: at, end: at + n}
	if k, ok := keywords[t.text]; ok {
		t.kind = k
	}
	return t, nil
}

// wordLen returns the length of the word at the start of s. Two dots in a row are
// the range operator.
func wordLen(s string) int {
	n := strings.IndexFunc(s, notWord)
	if n < 0 {
		n = len(s)
	}
	if dots := strings.Index(s[:n], ".."); dots >= 0 {
		n = dots
	}
	return n
}

func quotedToken(text string, at int) (token, *Error) {
	prefix, err := strconv.QuotedPrefix(text[at:])
	if err != nil {
		return token{}, &Error{
			Text: text, At: at, End: len(text),
			Problem: "unterminated quoted text or unknown escape", Want: `a closing "`,
		}
	}
	s, _ := strconv.Unquote(prefix) // QuotedPrefix has checked it
	return token{kind: quoted, text: s, at: at, end: at + len(prefix)}, nil
}
