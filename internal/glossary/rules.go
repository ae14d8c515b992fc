// Package glossary holds the words that Weft does not use, beside the field's
// words for the same things. Its test reads what users and readers of the code
// read (strings, comments, JSON keys, docs, the console's sources, examples) and
// rejects them; docs/glossary.md says where each of the field's words comes from.
package glossary

import (
	"regexp"
	"strings"
)

// A Rule rejects one expression.
type Rule struct {
	Word    string // as docs/glossary.md lists it
	Use     string // what to write instead
	pattern *regexp.Regexp
}

func rule(word, pattern, use string) Rule {
	return Rule{Word: word, Use: use, pattern: regexp.MustCompile(`(?i)` + pattern)}
}

// Rules are in the order of docs/glossary.md.
var Rules = []Rule{
	rule("way", `(?:^|[^-\w])ways?\b`, "path, route, direction"),
	rule("go round", `\b(?:go|goes|going|went|gone) (?:a)?round\b`, "loop"),
	rule("circle", `\bcircles?\b`, "deadlock cycle, cyclic buffer dependency"),
	rule("complaint", `\bcomplain(?:s|ed|ing|t|ts)?\b`, "detection, diagnosis request; error"),
	rule("tell", `\b(?:tells?|told|telling|tellers?)\b`, "report, say"),
	rule("let go", `\blets? go\b`, "resumed"),
	rule("overfull", `\boverf(?:ull|ills?|illed|illing)\b`, "congested"),
	rule("held up", `\b(?:held|holds?|holding) up\b`, "delayed, paused, head-of-line blocked"),
	rule("stand still", `\b(?:stands?|stood|standing) still\b`, "stuck, stalled"),
	rule("a moment", `\b(?:a moment|for the moment|moments? ago)\b`, "a number"),
	rule("lately", `\blately\b`, "a number, recent"),
	rule("underway", `\bunder ?way\b`, "in flight"),
	rule("in the mean", `\bin the mean\b`, "on average, mean"),
	rule("so many", `\bso (?:many|much|long|often)\b`, "the number, limit or duration"),
	rule("nobody", `\b(?:nobody|somebody|everybody|whoever)\b`, "the client, sender or caller that is meant"),
	rule("one's own", `\bone's own\b`, "custom, user-defined"),
	rule("processor", `\bprocessors?\b`, "CPU, control plane CPU"),
	rule("twin", `\btwins?\b`, "reference implementation, oracle"),
	rule("no room", `\b(?:no|had|has|have) room\b`, "buffer full, capacity"),
	rule("was heard", `\b(?:was|were|is|are|be|been|last|nothing|never) heard\b`, "received, reported, silent"),
	rule("and no further", `\band no further\b`, "dropped at"),
	rule("to blame", `\b(?:to blame|blames?|blamed)\b`, "culprit, faulty"),
	rule("vanish", `\bvanish\w*`, "silent packet loss"),
	rule("there and back", `\bthere and back\b`, "round trip"),
	rule("on purpose", `\bon purpose\b`, "active (probes)"),
	rule("hash badly", `\bhash(?:es)? (?:badly|alike)\b`, "ECMP imbalance, hash polarization"),
	rule("network card", `\bnetwork cards?\b`, "NIC"),
	rule("takes in slowly", `\b(?:takes?|taking)(?: packets)? in slowly\b`, "drains slowly"),
	rule("left out:", `\bleft out:`, "default:"),
	rule("fitful", `\bfitful\w*`, "pause burst, intermittently paused"),
	rule("wave", `\bwaves?\b`, "congestion episode"),
	rule("what became of", `\b(?:what (?:became|comes|came) of)\b`, "fate, result"),
	rule("what there is", `\bwhat there is\b`, "the data received"),
	rule("hurts", `\b(?:hurts?|hurting|suffer(?:s|ed|ing)?)\b`, "affects, affected"),
	rule("play", `\b(?:plays?|played|playing|players?)\b`, "run, simulate; replay"),
	rule("otherwise than", `\botherwise than\b`, "deviates from"),
}

// Match is a rejected expression in a text.
type Match struct {
	Rule *Rule
	Text string
	At   int // offset in the text
}

// Find returns what the rules reject in a text.
func Find(text string) (found []Match) {
	for i := range Rules {
		r := &Rules[i]
		for _, at := range r.pattern.FindAllStringIndex(text, -1) {
			found = append(found, Match{Rule: r, Text: strings.TrimSpace(text[at[0]:at[1]]), At: at[0]})
		}
	}
	return found
}
