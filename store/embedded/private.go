package embedded

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"syscall"
)

// createPrivate keeps other users from what this process creates: the files of a
// store hold the flows of a fabric and the headers of packets. DuckDB creates its log
// anew after each checkpoint, and temporary files when it needs them, always with the
// mode that the process's umask leaves, so the umask is the only place for it.
func createPrivate() { syscall.Umask(syscall.Umask(0o077) | 0o077) }

// makePrivate takes the bits of other users from the files of a store that were
// created before. Call it for files that are a store, not for any that were named.
func makePrivate(path string, log *slog.Logger) {
	for _, name := range []string{path, logName(path), path + ".tmp"} {
		info, err := os.Stat(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil && info.Mode().Perm()&0o077 == 0 {
			continue
		}
		if err == nil {
			err = os.Chmod(name, info.Mode().Perm()&^0o077)
		}
		if err != nil {
			log.Warn("other users may read the store", "file", name, "error", err)
			continue
		}
		log.Info("other users can no longer read the store", "file", name, "mode", info.Mode().Perm())
	}
}
