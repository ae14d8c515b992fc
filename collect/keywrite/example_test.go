package keywrite_test

import (
	"fmt"

	"github.com/weft-telemetry/weft/collect/keywrite"
)

// A table stores the newest value of a key in several slots. An answer carries
// the number of copies that agree and the probability that it is wrong.
func Example() {
	table, err := keywrite.Open("", keywrite.DefaultConfig(1<<20))
	if err != nil {
		panic(err)
	}
	defer table.Region().Close()

	writer := table.Writer(0)
	for _, value := range []string{"old ", "new "} {
		if err := writer.Write([]byte("tor6:Ethernet8"), []byte(value), 2); err != nil {
			panic(err)
		}
	}

	answer, err := table.Read([]byte("tor6:Ethernet8"), keywrite.Query{Copies: 2})
	fmt.Printf("%v %q, %d votes, %v\n", answer.Outcome, answer.Value, answer.Votes, err)
	fmt.Println("wrong with a probability below 1e-9:", answer.Bound.Wrong < 1e-9)

	answer, err = table.Read([]byte("tor7:Ethernet8"), keywrite.Query{Copies: 2})
	fmt.Println(answer.Outcome, err)
	// Output:
	// found "new ", 2 votes, <nil>
	// wrong with a probability below 1e-9: true
	// absent <nil>
}
