package inventory

import (
	"context"
	"time"

	"github.com/pgherd/pgherd/core/command"
)

// Files answers with the files below the folder of backups.
func (l *Lister) Files(ctx context.Context, q command.AskFiles) (command.FileList, error) {
	return inTurn(ctx, l, func(ctx context.Context) (part command.FileList, err error) {
		found, more, err := l.files.Walk(ctx, q.After, command.FilesAtOnce)
		part.Files, part.More = make([]command.StoredFile, 0, len(found)), more
		for _, f := range found {
			part.Files = append(part.Files, command.StoredFile{
				Path: f.Path, SizeBytes: f.Bytes, AgeS: int64(max(0, time.Since(f.ChangedAt)).Seconds()),
			})
		}
		return part, err
	})
}
