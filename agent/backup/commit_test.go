package backup

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/blob"
	"github.com/pgherd/pgherd/agent/copies"
	"github.com/pgherd/pgherd/agent/store"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/fault"
)

// failing is a folder to which nothing can be moved, so many times.
type failing struct {
	*blob.Folder
	err   error
	times int
}

func (f *failing) Move(ctx context.Context, path, name string) error {
	if f.times--; f.times >= 0 {
		return f.err
	}
	return f.Folder.Move(ctx, path, name)
}

// A set that cannot be stored waits without a slot: until it can be, until its patience ends, or until it is canceled, at once.
func TestASetWaitsUntilItIsStored(t *testing.T) {
	const ever = 1000
	away := errors.New("connection refused")
	for name, c := range map[string]struct {
		err      error
		times    int
		canceled time.Duration // when; 0: never
		took     time.Duration // without a slot
		want     error
	}{
		"it is there":            {},
		"it is back":             {err: away, times: 5, took: 30 * time.Second},
		"it stays away":          {err: away, times: ever, took: 75 * time.Second, want: fault.New(fault.BackupStorageUnavailable, "")},
		"canceled":               {err: away, times: ever, canceled: 10 * time.Second, took: 10 * time.Second, want: context.Canceled},
		"the server has no room": {err: store.ErrFull, times: ever, want: store.ErrFull},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				root := t.TempDir()
				blobs := &failing{Folder: blob.NewFolder(root), err: c.err, times: c.times}
				files := openStore(t, root, blobs)
				b := New(Config{Patience: time.Minute}, copies.New(&copies.Deps{
					Files: files, Log: zap.NewNop(), Crash: func(string) {},
				}))
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if c.canceled > 0 {
					time.AfterFunc(c.canceled, cancel)
				}
				req, aside := stood, time.Duration(0)
				req.Aside = func(ctx context.Context, wait func(context.Context) error) error {
					began := time.Now()
					err := wait(ctx)
					aside += time.Since(began)
					return err
				}
				draft, _ := drafted(t, files, req.OperationID)
				began, stage := time.Now(), ""
				err := b.commit(ctx, draft, req, func(now string, _ int, _ command.Bytes) { stage = now })
				if !errors.Is(err, c.want) || time.Since(began) != c.took || aside != c.took || stage != "storing" {
					t.Errorf("it took %s, of them %s without a slot, while %s: %v", time.Since(began), aside, stage, err)
				}
				check.NoError(t, draft.End(context.WithoutCancel(ctx)))
				list, _, err := files.Walk(t.Context(), "", 9)
				if want := map[bool]int{true: 4}[c.want == nil]; len(list) != want || err != nil {
					t.Errorf("there are %v, %v", list, err)
				}
			})
		})
	}
}
