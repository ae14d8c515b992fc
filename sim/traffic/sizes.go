package traffic

import (
	"embed"
	"fmt"
	"strings"
)

//go:embed sizes/*.txt
var sizes embed.FS

// sizeNames lists the distributions of the package, and the names of the HPCC
// simulator's files with the same figures.
var sizeNames = []struct{ name, hpcc string }{
	{"websearch", "WebSearch_distribution"},
	{"hadoop", "FbHdp_distribution"},
	{"storage", "AliStorage2019"},
	{"rpc", "GoogleRPC2008"},
	{"longtail", ""},
}

// SizesNames returns the names that Sizes accepts.
func SizesNames() []string {
	names := make([]string, len(sizeNames))
	for i, n := range sizeNames {
		names[i] = n.name
	}
	return names
}

// Sizes returns a distribution of the package by its name, or by the name of
// HPCC's file, with or without ".txt".
func Sizes(name string) (*CDF, error) {
	for _, n := range sizeNames {
		if !strings.EqualFold(name, n.name) && (n.hpcc == "" || strings.TrimSuffix(name, ".txt") != n.hpcc) {
			continue
		}
		file := "sizes/" + n.name + ".txt"
		data, err := sizes.ReadFile(file)
		if err != nil {
			return nil, err
		}
		return ParseCDF(file, data)
	}
	return nil, fmt.Errorf("flow sizes %q, want one of %s", name, strings.Join(SizesNames(), ", "))
}

// mustSizes is Sizes of a name that is in the package.
func mustSizes(name string) *CDF {
	c, err := Sizes(name)
	if err != nil {
		panic("traffic: " + err.Error())
	}
	return c
}
