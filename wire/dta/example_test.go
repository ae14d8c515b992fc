package dta_test

import (
	"fmt"

	"github.com/weft-telemetry/weft/wire/dta"
)

// A switch packs reports into a datagram; a translator reads them.
func Example() {
	w := dta.NewWriter(12, 99)
	w.Begin(make([]byte, 1452))
	for _, data := range []string{"first", "second"} {
		if err := w.AddReport(&dta.Report{Primitive: dta.Append, List: 7, Data: []byte(data)}); err != nil {
			fmt.Println(err)
		}
	}
	datagram := w.Finish()

	var r dta.Reader
	var report dta.Report
	_ = r.Reset(datagram) // Err returns the error too
	for r.Next(&report) {
		fmt.Printf("%v to list %d: %s\n", report.Primitive, report.List, report.Data)
	}
	fmt.Println("reporter", r.Header().Reporter, "next", r.Seq(), "error", r.Err())
	// Output:
	// append to list 7: first
	// append to list 7: second
	// reporter 12 next 101 error <nil>
}
