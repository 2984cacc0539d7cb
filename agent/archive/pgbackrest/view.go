package pgbackrest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strconv"

	"github.com/pgherd/pgherd/agent/archive"
)

const (
	manifestFile = "backup.manifest"
	copiesFolder = "backup/" + stanza
)

// view is the repository as a restore of some databases sees it: the manifest of its copy is pruned, and all else is as it is.
type view struct {
	args  []string // options of the restore
	holes []hole   // what is to be made in addition
	close func()
}

// viewFor makes a view in a folder of the restore's own.
func (e *Engine) viewFor(ctx context.Context, r archive.Restore, folder string) (v *view, err error) {
	pass, err := e.manifestPassphrase(ctx)
	if err != nil {
		return nil, err
	}
	m := newManifest(r.Databases)
	if err := e.runHeard(ctx, m.line, "repo-get", path.Join(copiesFolder, r.Backup, manifestFile)); err != nil {
		return nil, err
	}
	text, err := m.pruned()
	if err != nil {
		return nil, fmt.Errorf("the manifest of the copy %s: %w", r.Backup, err)
	}
	sealed := encrypt(pass, text)
	if e.s.S3 != nil {
		v, err = e.proxied(r.Backup, sealed, folder)
	} else {
		v, err = e.linked(r.Backup, sealed, filepath.Join(folder, "repository"))
	}
	if err == nil {
		v.holes = m.holes
	}
	return v, err
}

// manifestPassphrase is that of the manifests in the repository.
func (e *Engine) manifestPassphrase(ctx context.Context) (pass string, err error) {
	err = e.runHeard(ctx, func(line string) {
		if key, value, ok := keyValue(line); ok && key == "cipher-pass" {
			_ = json.Unmarshal([]byte(value), &pass) // pass is empty then
		}
	}, "repo-get", path.Join(copiesFolder, "backup.info"))
	if err == nil && pass == "" {
		err = errors.New("the archive has no passphrase for manifests")
	}
	return pass, err
}

// linked makes a folder of links into the repository, in which the manifest is a file.
func (e *Engine) linked(backup string, sealed []byte, folder string) (*view, error) {
	copies, copied := filepath.FromSlash(copiesFolder), filepath.Join(filepath.FromSlash(copiesFolder), backup)
	own := []string{folder, filepath.Join(folder, "backup"), filepath.Join(folder, copies), filepath.Join(folder, copied)}
	for _, dir := range own {
		if err := errors.Join(os.Mkdir(dir, 0o700), e.give(dir)); err != nil {
			return nil, err
		}
	}
	for _, l := range []struct{ in, but string }{{"", "backup"}, {copies, backup}, {copied, manifestFile}} {
		entries, err := os.ReadDir(filepath.Join(e.s.Repository, l.in))
		if err != nil {
			return nil, err
		}
		for _, entry := range entries {
			name := filepath.Join(l.in, entry.Name())
			if entry.Name() == l.but {
				continue
			}
			if err := os.Symlink(filepath.Join(e.s.Repository, name), filepath.Join(folder, name)); err != nil {
				return nil, err
			}
		}
	}
	file := filepath.Join(folder, copied, manifestFile)
	if err := errors.Join(os.WriteFile(file, sealed, 0o600), e.give(file)); err != nil {
		return nil, err
	}
	return &view{args: []string{"--repo1-path=" + folder}, close: func() {}}, nil
}

// proxied stands before the store with the manifest.
func (e *Engine) proxied(backup string, sealed []byte, folder string) (*view, error) {
	p, err := newProxy(*e.s.S3, path.Join("/", e.s.S3.Prefix, e.s.Repository, copiesFolder, backup, manifestFile), sealed)
	if err != nil {
		return nil, err
	}
	ca := filepath.Join(folder, caFile)
	if err := errors.Join(os.WriteFile(ca, p.certificate, 0o600), e.give(ca)); err != nil {
		p.close()
		return nil, err
	}
	return &view{close: p.close, args: []string{
		"--repo1-storage-host=127.0.0.1", "--repo1-storage-port=" + strconv.Itoa(p.port), "--repo1-storage-ca-file=" + ca,
	}}, nil
}

// makeHoles makes files without content in a data directory.
func (e *Engine) makeHoles(dir string, holes []hole) error {
	for _, h := range holes {
		path := filepath.Join(dir, filepath.FromSlash(h.path))
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		if err := errors.Join(f.Truncate(h.size), f.Close(), e.give(path)); err != nil {
			return err
		}
	}
	return nil
}
