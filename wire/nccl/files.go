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
	names, err := Names(path)
	if err != nil {
		return nil, 0, err
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

// Errors of folders.
var (
	ErrNone = errors.New("has no files, want one for each rank")
	ErrMany = fmt.Errorf("has too many files, want at most %d", MaxFiles)
)

// Names returns a file, or the files of a folder, without hidden ones.
func Names(path string) (names []string, err error) {
	if s, err := os.Stat(path); err != nil {
		return nil, err
	} else if !s.IsDir() {
		return []string{path}, nil
	}
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
		return nil, fmt.Errorf("%s %w", path, ErrNone)
	case len(names) > MaxFiles:
		return nil, fmt.Errorf("%s %w", path, ErrMany)
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
	rank, err := RankOfName(name)
	if err != nil {
		return nil, err
	}
	return Read(f, rank, limit)
}

// RankOfName is the rank that a file's name has, or -1.
func RankOfName(name string) (rank int, err error) {
	m := rankOfName.FindStringSubmatch(filepath.Base(name))
	if m == nil {
		return -1, nil
	}
	if rank, err = strconv.Atoi(m[1]); err != nil {
		return -1, err
	}
	return rank, checkRank(rank)
}

// ReadHosts reads a rank file: a line for each rank with its number and its host. Empty
// lines and lines that begin with # are comments.
func ReadHosts(r io.Reader) (map[int]string, error) {
	hosts := map[int]string{}
	err := readPairs(r, "a rank and a host, such as 3 node7", func(word, host string) error {
		rank, err := strconv.Atoi(word)
		if err != nil {
			return fmt.Errorf("rank %.20q, want a number", word)
		}
		if err := checkRank(rank); err != nil {
			return err
		}
		if was, twice := hosts[rank]; twice {
			return fmt.Errorf("rank %d is on %s, too", rank, was)
		}
		hosts[rank] = host
		return nil
	})
	if err != nil {
		return nil, err
	}
	return hosts, nil
}

// ReadNames reads a host file: a line for each name or address that NCCL has of a host, with
// the name of that host.
func ReadNames(r io.Reader) (map[string]string, error) {
	hosts := map[string]string{}
	err := readPairs(r, "a name of NCCL's and a host, such as 172.16.64.7 node7", func(name, host string) error {
		if was, twice := hosts[name]; twice {
			return fmt.Errorf("%s is %s, too", name, was)
		}
		hosts[name] = host
		return checkName("name", name)
	})
	if err != nil {
		return nil, err
	}
	return hosts, nil
}

// readPairs reads lines of two words, of which the second is a host.
func readPairs(r io.Reader, want string, one func(word, host string) error) error {
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		f := strings.Fields(lines.Text())
		if len(f) == 0 || strings.HasPrefix(f[0], "#") {
			continue
		}
		if len(f) != 2 {
			return fmt.Errorf("line %d: %d words, want %s", n, len(f), want)
		}
		if err := errors.Join(checkName("host", f[1]), one(f[0], f[1])); err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
	}
	return lines.Err()
}
