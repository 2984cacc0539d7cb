//go:build packages

package packages

import (
	"archive/zip"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
)

const module = "github.com/pgherd/pgherd"

// proxy makes a folder that serves the module as a proxy of Go's does, and returns its address.
func proxy(t *testing.T, from string) string {
	t.Helper()
	folder := t.TempDir()
	at := filepath.Join(folder, filepath.FromSlash(module), "@v")
	check.NoError(t, os.MkdirAll(at, 0o755))
	for name, text := range map[string]string{
		"list": now + "\n", now + ".info": `{"Version":"` + now + `","Time":"2026-01-01T00:00:00Z"}`,
		now + ".mod": string(check.Must(os.ReadFile(filepath.Join(from, "go.mod")))(t)),
	} {
		check.NoError(t, os.WriteFile(filepath.Join(at, name), []byte(text), 0o644))
	}
	file := check.Must(os.Create(filepath.Join(at, now+".zip")))(t)
	packed := zip.NewWriter(file)
	check.NoError(t, filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != from && (strings.HasPrefix(entry.Name(), ".toolchain") || isModule(path)):
			return filepath.SkipDir // a module within a module is none of its files
		case !entry.Type().IsRegular():
			return nil
		}
		name := check.Must(filepath.Rel(from, path))(t)
		w, err := packed.Create(module + "@" + now + "/" + filepath.ToSlash(name))
		if err == nil {
			_, err = w.Write(check.Must(os.ReadFile(path))(t))
		}
		return err
	}))
	check.NoError(t, packed.Close())
	check.NoError(t, file.Close())
	return "file://" + folder
}

func isModule(folder string) bool {
	_, err := os.Stat(filepath.Join(folder, "go.mod"))
	return err == nil
}

// TestGoInstallsTheClient installs svc, in the version of a tag, as somebody does who has Go and nothing else of pgherd's.
func TestGoInstallsTheClient(t *testing.T) {
	from := proxy(t, sources(t))
	bin, cache := t.TempDir(), t.TempDir()
	env := func(name string) string {
		out := check.Must(exec.CommandContext(t.Context(), "go", "env", name).Output())(t)
		return strings.TrimSpace(string(out))
	}
	install := exec.CommandContext(t.Context(), "go", "install", module+"/hosts/svc@"+now)
	install.Dir = t.TempDir()
	install.Env = append(os.Environ(), "GOBIN="+bin, "GOMODCACHE="+cache, "GOFLAGS=-modcacherw", "GONOSUMDB="+module,
		"GOPROXY="+from+",file://"+filepath.Join(env("GOMODCACHE"), "cache", "download")+","+env("GOPROXY"))
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out := check.Must(exec.CommandContext(t.Context(), filepath.Join(bin, "svc"), "--version").Output())(t)
	if !strings.Contains(string(out), now+" ("+commit+")") {
		t.Errorf("it says that it is %s", out)
	}
}
