// Package plural counts things in sentences for people: "1 switch", "2 switches".
package plural

import (
	"fmt"
	"strings"
)

type integer interface {
	~int | ~int32 | ~int64 | ~uint | ~uint32 | ~uint64
}

// Count returns a number with its noun: Count(2, "flow") is "2 flows".
func Count[N integer](n N, noun string) string { return fmt.Sprintf("%d %s", n, Noun(n, noun)) }

// Noun returns the noun alone, in the plural unless n is 1.
func Noun[N integer](n N, noun string) string {
	switch {
	case n == 1:
		return noun
	case strings.HasSuffix(noun, "ch"):
		return noun + "es"
	case strings.HasSuffix(noun, "sis"):
		return strings.TrimSuffix(noun, "is") + "es"
	}
	return noun + "s"
}
