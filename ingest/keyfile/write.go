package keyfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

const header = `# Secret keys of Weft's reporters and translators: NAME KEYID HEX.
# The first key of a name signs, both verify. Written by weft keys.
`

// AppendTo appends the text of the file to b and returns the extended slice.
func (f *File) AppendTo(b []byte) []byte {
	b = append(b, header...)
	for _, name := range f.names {
		for _, k := range f.keys[name] {
			b = fmt.Appendf(b, "%s %d %x\n", name, k.ID, k.Secret)
		}
	}
	return b
}

// Write makes a new file at path that its owner alone can read. An existing file
// is never replaced: its keys may be the only copy.
func (f *File) Write(path string) error {
	return f.write(path, func(temporary string) error {
		// Unlike a rename, a link fails if path exists.
		err := os.Link(temporary, path)
		if errors.Is(err, os.ErrExist) {
			return fmt.Errorf("%s exists, want a new path, or weft keys rotate to change its keys", path)
		}
		return errors.Join(err, os.Remove(temporary))
	})
}

// Replace writes the file over an existing one at path, after Rotate or Retire.
// It keeps the owner, so that a service still reads a file that root rotated.
func (f *File) Replace(path string) error {
	// A symbolic link stays one: its target is replaced.
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	return f.write(path, func(temporary string) error {
		if was, ok := info.Sys().(*syscall.Stat_t); ok && int(was.Uid) != os.Geteuid() {
			if err := os.Chown(temporary, int(was.Uid), int(was.Gid)); err != nil {
				return err
			}
		}
		return os.Rename(temporary, path)
	})
}

// write writes a temporary file beside path and puts it in place. A failure
// leaves no partial file.
func (f *File) write(path string, place func(temporary string) error) (err error) {
	for _, name := range f.names {
		if err := CheckName(name); err != nil {
			return fmt.Errorf("keyfile: %w", err)
		}
	}
	file, err := os.CreateTemp(filepath.Dir(path), ".weft-keys-*") // mode 0600
	if pe := (*os.PathError)(nil); errors.As(err, &pe) {
		pe.Path = path // the user knows this path, not the temporary one
	}
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(file.Name())
		}
	}()
	_, err = file.Write(f.AppendTo(nil))
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	return place(file.Name())
}
