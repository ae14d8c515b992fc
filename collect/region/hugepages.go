package region

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"unsafe"
)

// Prefault makes the kernel allocate the memory now, so that writers do not wait
// for page faults, and asks once more for huge pages where it gave small ones.
// It changes no data and may run concurrently with writers.
func (r *Region) Prefault() {
	for i := 0; i < len(r.words); i += os.Getpagesize() / 8 {
		if r.readOnly {
			Load(&r.words[i])
		} else {
			atomic.AddUint64(&r.words[i], 0)
		}
	}
	if r.file == nil {
		collapse(r.mem)
	}
}

// collapse moves memory to huge pages: on a page fault the kernel searches for a
// huge page for a limited time, and half of a gigabyte can be without on a machine
// whose memory is full of cached files. Kernels before 6.1 refuse; so does one
// that finds no more huge pages, and then there is no use in asking for the rest.
func collapse(mem []byte) {
	const (
		advice = 25 // MADV_COLLAPSE
		enough = 8
	)
	for refused := 0; len(mem) >= hugePage && refused < enough; mem = mem[hugePage:] {
		if syscall.Madvise(mem[:hugePage], advice) != nil {
			refused++
		}
	}
}

// HugePageBytes returns the number of bytes of the memory that are on huge pages
// now. Pages are allocated when they are first touched.
func (r *Region) HugePageBytes() (int64, error) {
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		return 0, fmt.Errorf("region: huge pages: %w", err)
	}
	defer f.Close()
	start := uint64(uintptr(unsafe.Pointer(&r.mem[0])))
	return hugeBytesIn(f, start, start+uint64(len(r.mem)))
}

// hugeBytesIn sums the huge pages of all mappings of a smaps file that touch the
// range: the kernel may show one mapping as several.
func hugeBytesIn(smaps io.Reader, start, end uint64) (int64, error) {
	var total int64
	within := false
	lines := bufio.NewScanner(smaps)
	for lines.Scan() {
		name, rest, _ := strings.Cut(lines.Text(), " ")
		if from, to, ok := strings.Cut(name, "-"); ok && !strings.HasSuffix(name, ":") {
			a, err1 := strconv.ParseUint(from, 16, 64)
			b, err2 := strconv.ParseUint(to, 16, 64)
			within = err1 == nil && err2 == nil && a < end && b > start
			continue
		}
		if !within {
			continue
		}
		kb, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
		switch name {
		case "AnonHugePages:", "ShmemPmdMapped:", "FilePmdMapped:", "Shared_Hugetlb:", "Private_Hugetlb:":
			total += kb << 10
		}
	}
	return total, lines.Err()
}
