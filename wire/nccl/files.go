package nccl

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// MaxFiles bounds the files of a folder: one for each rank.
const MaxFiles = 1 << 14

// ReadPath reads a file, or all files of a folder. Hosts are by rank of the job, for dumps
// that do not have them; nil: none are known. It returns the number of files.
func ReadPath(path string, hosts map[int]string) (all *Dump, files int, err error) {
	names := []string{path}
	if s, err := os.Stat(path); err != nil {
		return nil, 0, err
	} else if s.IsDir() {
		if names, err = folder(path); err != nil {
			return nil, 0, err
		}
	}
	all = &Dump{}
	for _, name := range names {
		one, err := readFile(name, MaxRecords-len(all.Records)-len(all.Members))
		if err != nil {
			return nil, 0, fmt.Errorf("%s: %w", name, err)
		}
		for i := range one.Records {
			if r := &one.Records[i]; r.Host == "" {
				r.Host = hosts[r.Rank]
			}
		}
		all.Records, all.Members = append(all.Records, one.Records...), append(all.Members, one.Members...)
		all.Skipped, all.Repeated = all.Skipped+one.Skipped, all.Repeated+one.Repeated
		all.Cut, all.Full = all.Cut || one.Cut, all.Full || one.Full
	}
	return all, len(names), nil
}

// folder returns the files of a folder, without hidden ones.
func folder(path string) (names []string, err error) {
	list, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	for _, e := range list {
		if e.Type().IsRegular() && !strings.HasPrefix(e.Name(), ".") {
			names = append(names, filepath.Join(path, e.Name()))
		}
	}
	switch {
	case len(names) == 0:
		return nil, fmt.Errorf("%s has no files, want one for each rank", path)
	case len(names) > MaxFiles:
		return nil, fmt.Errorf("%s has %d files, want at most %d", path, len(names), MaxFiles)
	}
	return names, nil
}

// rankOfName finds the rank at the end of a file's name: nccl_trace_rank_7, rank7.json.
var rankOfName = regexp.MustCompile(`(\d{1,7})(?:\.json)?$`)

func readFile(name string, limit int) (*Dump, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	rank := -1
	if m := rankOfName.FindStringSubmatch(filepath.Base(name)); m != nil {
		if rank, err = strconv.Atoi(m[1]); err != nil {
			return nil, err
		}
		if err := checkRank(rank); err != nil {
			return nil, err
		}
	}
	return Read(f, rank, limit)
}

// ReadHosts reads a rank file: a line for each rank with its number and its host. Empty
// lines and lines that begin with # are comments.
func ReadHosts(r io.Reader) (map[int]string, error) {
	hosts := map[int]string{}
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		f := strings.Fields(lines.Text())
		if len(f) == 0 || strings.HasPrefix(f[0], "#") {
			continue
		}
		if len(f) != 2 {
			return nil, fmt.Errorf("line %d: %d words, want a rank and a host, such as 3 node7", n, len(f))
		}
		rank, err := strconv.Atoi(f[0])
		if err != nil {
			return nil, fmt.Errorf("line %d: rank %.20q, want a number", n, f[0])
		}
		if err := errors.Join(checkRank(rank), checkName("host", f[1])); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if was, twice := hosts[rank]; twice {
			return nil, fmt.Errorf("line %d: rank %d is on %s, too", n, rank, was)
		}
		hosts[rank] = f[1]
	}
	return hosts, lines.Err()
}
