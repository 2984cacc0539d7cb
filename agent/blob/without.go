package blob

import (
	"context"
	"slices"
	"strings"
)

// Without is a store in which a folder, with all below it, is somebody else's: nothing of it is listed or cleaned.
func Without(s Store, folder string) Store { return &without{s, folder + "/"} }

type without struct {
	Store
	folder string
}

func (w *without) hides(name string) bool { return strings.HasPrefix(name, w.folder) }

// List implements Store.
func (w *without) List(ctx context.Context, prefix, after string, limit int) (list []Info, more bool, err error) {
	list, more, err = w.Store.List(ctx, prefix, after, limit)
	first := slices.IndexFunc(list, func(b Info) bool { return w.hides(b.Name) })
	if err != nil || first < 0 {
		return list, more, err
	}
	rest, more, err := w.Store.List(ctx, prefix, w.folder+"~", limit-first) // no name has a byte that is greater
	return append(list[:first], rest...), more, err
}

// Clean implements Store.
func (w *without) Clean(ctx context.Context, keep func(name string) bool) error {
	return w.Store.Clean(ctx, func(name string) bool { return w.hides(name) || keep(name) })
}
