package pgbackrest

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
)

// A view of a folder has all that the repository has, but the manifest; its end changes nothing there.
func TestTheViewOfAFolder(t *testing.T) {
	repository, folder := t.TempDir(), filepath.Join(t.TempDir(), "view")
	files := []string{
		"archive/main/archive.info", "backup/main/backup.info", "backup/main/1F/backup.manifest", "backup/main/1F/bundle/1",
		"backup/main/1F_2I/backup.manifest", "backup/main/1F_2I/backup.manifest.copy", "backup/main/1F_2I/bundle/1",
	}
	for _, name := range files {
		path := filepath.Join(repository, name)
		check.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		check.NoError(t, os.WriteFile(path, []byte(name), 0o600))
	}
	e := &Engine{s: Settings{Repository: repository}}
	v := check.Must(e.linked("1F_2I", []byte("pruned"), folder))(t)
	if len(v.args) != 1 || v.args[0] != "--repo1-path="+folder {
		t.Errorf("%q", v.args)
	}
	v.close()
	for _, name := range files {
		want := name
		if name == "backup/main/1F_2I/backup.manifest" {
			want = "pruned"
		}
		if text := string(check.Must(os.ReadFile(filepath.Join(folder, name)))(t)); text != want {
			t.Errorf("%s: %q", name, text)
		}
	}
	check.NoError(t, os.RemoveAll(folder))
	for _, name := range files {
		if text := string(check.Must(os.ReadFile(filepath.Join(repository, name)))(t)); text != name {
			t.Errorf("%s: %q is left", name, text)
		}
	}
}

func TestFilesWithoutContent(t *testing.T) {
	dir, e := t.TempDir(), &Engine{}
	path := filepath.Join(dir, "base", "16385")
	check.NoError(t, os.MkdirAll(path, 0o700))
	check.NoError(t, e.makeHoles(dir, []hole{{"base/16385/1", 1 << 30}}))
	info := check.Must(os.Stat(filepath.Join(path, "1")))(t)
	if blocks := info.Sys().(*syscall.Stat_t).Blocks; info.Size() != 1<<30 || info.Mode() != 0o600 || blocks > 8 {
		t.Errorf("%d bytes, %o, %d blocks", info.Size(), info.Mode(), blocks)
	}
	if err := e.makeHoles(dir, []hole{{"base/16385/1", 1 << 20}}); err == nil {
		t.Error("one takes the place of another file")
	}
}
