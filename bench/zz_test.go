package bench

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"testing"
)

func TestZZ(t *testing.T) {
	p := decodeAlone
	if os.Getenv("NET") != "" {
		p = decodeTogether
	}
	rs, err := p(context.Background())
	for _, r := range rs {
		fmt.Printf("%+v\n", r)
	}
	fmt.Println(err)
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	fmt.Println("sys MB", m.Sys>>20)
}
