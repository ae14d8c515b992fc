package embedded

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/store"
)

// Info describes the content of a file.
type Info struct {
	Schema int         `json:"schema"`
	Size   model.Bytes `json:"size"` // of the records
	File   model.Bytes `json:"file"` // of the file, with free space
	Kinds  []KindInfo  `json:"kinds"`
}

// KindInfo describes the records of one kind. Without rows the times are zero.
type KindInfo struct {
	Kind   store.Kind `json:"kind"`
	Rows   uint64     `json:"rows"`
	Oldest time.Time  `json:"oldest,omitzero"`
	Newest time.Time  `json:"newest,omitzero"`
}

// Info counts the content of the file.
func (s *Store) Info(ctx context.Context) (info Info, err error) {
	leave, err := s.beginWork()
	if err != nil {
		return info, err
	}
	defer leave()
	defer func() {
		if err != nil {
			err = fmt.Errorf("info of store %s: %w", s.path, err)
		}
	}()
	info.Schema = len(migrations)
	if info.Size, err = s.diskSize(ctx); err != nil {
		return info, err
	}
	file, err := os.Stat(s.path)
	if err != nil {
		return info, err
	}
	info.File = model.Bytes(file.Size())
	for _, kind := range store.Kinds() {
		k := KindInfo{Kind: kind}
		var oldest, newest *int64
		query := fmt.Sprintf(`SELECT count(*), epoch_ns(min(time)), epoch_ns(max(time)) FROM %s`, tableOf(kind))
		if err := s.db.QueryRowContext(ctx, query).Scan(&k.Rows, &oldest, &newest); err != nil {
			return info, err
		}
		if oldest != nil {
			k.Oldest, k.Newest = time.Unix(0, *oldest).UTC(), time.Unix(0, *newest).UTC()
		}
		info.Kinds = append(info.Kinds, k)
	}
	return info, nil
}
