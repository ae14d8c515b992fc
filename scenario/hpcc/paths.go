package hpcc

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// find returns the path of a file that the configuration names: as it is, in
// the configuration's folder, or there without the first folder of its name.
// Configurations are in mix/ and say mix/topology.txt, because the original is
// run one folder up.
func (c *Config) find(key, name string) (string, error) {
	tries := []string{name}
	if !filepath.IsAbs(name) {
		own := filepath.Dir(c.File)
		tries = append(tries, filepath.Join(own, name))
		if _, rest, ok := strings.Cut(filepath.ToSlash(filepath.Clean(name)), "/"); ok {
			tries = append(tries, filepath.Join(own, rest))
		}
	}
	for _, path := range tries {
		info, err := os.Stat(path)
		switch {
		case err == nil && info.IsDir():
			return "", c.errorf(key, "%s %s is a folder, want a file", key, path)
		case err == nil:
			return path, nil
		case !errors.Is(err, fs.ErrNotExist):
			return "", c.errorf(key, "%s %v", key, err)
		}
	}
	return "", c.errorf(key, "%s %s does not exist, want a file; tried %s", key, name,
		strings.Join(slices.Compact(tries), ", "))
}
