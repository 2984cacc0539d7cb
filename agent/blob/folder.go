package blob

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Folder is a Store in a folder, which need not be on the file system of what is moved to it. Files that CheckName refuses are
// none of its blobs, and neither are links.
type Folder struct{ root string }

// NewFolder returns the store in a folder. Nothing is read or written before the first call.
func NewFolder(root string) *Folder { return &Folder{root} }

// incoming is the folder of files that come from another file system and are not yet whole. Its name makes them no blobs. Each
// has the name of its blob, with joint for slashes, and after another one what is random.
const (
	incoming = ".incoming"
	joint    = "+"
)

func (f *Folder) path(name string) (string, error) {
	if err := CheckName(name); err != nil {
		return "", err
	}
	return filepath.Join(f.root, filepath.FromSlash(name)), nil
}

// Move implements Store.
func (f *Folder) Move(ctx context.Context, path, name string) error {
	return f.move(ctx, path, name, os.Rename)
}

// MoveNew implements Store.
func (f *Folder) MoveNew(ctx context.Context, path, name string) error {
	return f.move(ctx, path, name, func(from, to string) error {
		if err := os.Link(from, to); err != nil {
			return err
		}
		return os.Remove(from)
	})
}

// move has place give a file its name. From another file system it is copied first.
func (f *Folder) move(ctx context.Context, path, name string, place func(from, to string) error) error {
	to, err := f.path(name)
	if err != nil {
		return err
	}
	for range moveTries {
		if err = makeFolders(filepath.Dir(to)); err == nil {
			err = place(path, to)
		}
		if errors.Is(err, syscall.EXDEV) {
			err = f.copyIn(ctx, path, name, place)
		}
		if !errors.Is(err, fs.ErrNotExist) || !isThere(path) {
			break
		}
	}
	if errors.Is(err, fs.ErrExist) {
		return ErrExists
	}
	if err != nil {
		return err
	}
	return syncFolder(filepath.Dir(to))
}

// moveTries is how often a folder is made that goes with the last blob in it right then.
const moveTries = 20

func isThere(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// copyIn copies a file to where it gets its name. Whoever has taken the file away meanwhile has ended the move.
func (f *Folder) copyIn(ctx context.Context, path, name string, place func(from, to string) error) error {
	copied := filepath.Join(f.root, incoming, strings.ReplaceAll(name, "/", joint)+joint+rand.Text())
	if err := makeFolders(filepath.Dir(copied)); err != nil {
		return err
	}
	defer os.Remove(copied) // it has its name by now, or stands for nothing
	if err := copyFile(ctx, path, copied); err != nil {
		return err
	}
	if _, err := os.Lstat(path); err != nil {
		return err
	}
	if err := place(copied, filepath.Join(f.root, filepath.FromSlash(name))); err != nil {
		return err
	}
	return os.Remove(path)
}

// Clean implements Store.
func (f *Folder) Clean(_ context.Context, keep func(name string) bool) error {
	dir := filepath.Join(f.root, incoming)
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		name := e.Name()
		name = name[:max(0, strings.LastIndex(name, joint))]
		if keep(strings.ReplaceAll(name, joint, "/")) {
			continue
		}
		err = errors.Join(err, os.Remove(filepath.Join(dir, e.Name())))
	}
	return err
}

func copyFile(ctx context.Context, from, to string) (err error) {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dst.Close()) }()
	for copied := int64(1); copied > 0; {
		if err := ctx.Err(); err != nil {
			return err
		}
		copied, err = io.CopyN(dst, src, copyPiece)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
	}
	return dst.Sync()
}

// copyPiece is how much is copied before it is seen whether the copy is still wanted.
const copyPiece = 16 << 20

// makeFolders makes a folder and those above it, durably.
func makeFolders(dir string) error {
	err := os.Mkdir(dir, 0o700)
	switch {
	case errors.Is(err, fs.ErrExist):
		return nil
	case errors.Is(err, fs.ErrNotExist):
		if err := makeFolders(filepath.Dir(dir)); err != nil {
			return err
		}
		return makeFolders(dir)
	case err != nil:
		return err
	}
	return syncFolder(filepath.Dir(dir))
}

func syncFolder(dir string) error {
	folder, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// Open implements Store.
func (f *Folder) Open(_ context.Context, name string) (io.ReadCloser, Info, error) {
	path, err := f.path(name)
	if err != nil {
		return nil, Info{}, err
	}
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, Info{}, ErrNotFound
	}
	if err != nil {
		return nil, Info{}, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no file", path)
	}
	if err != nil {
		return nil, Info{}, errors.Join(err, file.Close())
	}
	return file, Info{Name: name, Bytes: info.Size(), ChangedAt: info.ModTime()}, nil
}

// List implements Store.
func (f *Folder) List(ctx context.Context, prefix, after string, limit int) (list []Info, more bool, err error) {
	l := listing{ctx: ctx, root: f.root, prefix: prefix, after: after, limit: limit}
	if err := l.folder(""); err != nil {
		return nil, false, err
	}
	return l.list, l.more, nil
}

// listing is a walk in the order of whole names: a folder stands where its name with a slash does.
type listing struct {
	ctx           context.Context //nolint:containedctx // of one call
	root          string
	prefix, after string
	limit         int
	list          []Info
	more          bool
}

// folder lists what is below a folder, whose name ends with a slash.
func (l *listing) folder(name string) error {
	entries, err := os.ReadDir(filepath.Join(l.root, filepath.FromSlash(name)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	slashed := func(e fs.DirEntry) string {
		if e.IsDir() {
			return e.Name() + "/"
		}
		return e.Name()
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return cmp.Compare(slashed(a), slashed(b)) })
	for _, e := range entries {
		if err := l.ctx.Err(); err != nil || l.more {
			return err
		}
		if err := l.entry(name+slashed(e), e); err != nil {
			return err
		}
	}
	return nil
}

func isName(name string) bool { return CheckName(name) == nil }

func (l *listing) entry(name string, e fs.DirEntry) error {
	if e.IsDir() {
		mayMatch := strings.HasPrefix(name, l.prefix) || strings.HasPrefix(l.prefix, name)
		passed := name < l.after && !strings.HasPrefix(l.after, name)
		if !isName(strings.TrimSuffix(name, "/")) || !mayMatch || passed {
			return nil
		}
		return l.folder(name)
	}
	if !e.Type().IsRegular() || !isName(name) || !strings.HasPrefix(name, l.prefix) || name <= l.after {
		return nil
	}
	if len(l.list) == l.limit {
		l.more = true
		return nil
	}
	info, err := e.Info()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	l.list = append(l.list, Info{Name: name, Bytes: info.Size(), ChangedAt: info.ModTime()})
	return nil
}

// Delete implements Store. A folder that becomes empty goes, too.
func (f *Folder) Delete(_ context.Context, name string) error {
	path, err := f.path(name)
	if err != nil {
		return err
	}
	err = syscall.Unlink(path) // os.Remove takes folders, too
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.EISDIR):
		return nil
	case err != nil:
		return fmt.Errorf("remove %s: %w", path, err)
	}
	dir := filepath.Dir(path)
	if err := syncFolder(dir); err != nil && !errors.Is(err, fs.ErrNotExist) { // it went with another blob
		return err
	}
	for ; dir != f.root && os.Remove(dir) == nil; dir = filepath.Dir(dir) { // it fails where something is left
	}
	return nil
}

// Late implements Store. A file gets its name at once or never: what a process that is gone had begun can be taken from it.
func (*Folder) Late() time.Duration { return 0 }

// Where implements Store.
func (f *Folder) Where() string { return f.root }

// Explain implements Store.
func (f *Folder) Explain(err error) string {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Sprintf("the file system of %s is full; make room there", f.root)
	case errors.Is(err, syscall.EROFS):
		return fmt.Sprintf("the file system of %s can only be read; mount it for writing", f.root)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Sprintf("the agent may not write into %s; give that folder to its user", f.root)
	}
	return fmt.Sprintf("the folder %s: %v", f.root, err)
}
