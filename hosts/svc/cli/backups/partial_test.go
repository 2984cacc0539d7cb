package backups

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/hosts/svc/cli/app"
)

func TestOneProcessHasAPartialFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f.partial")
	p := check.Must(openPartial(path))(t)
	if _, err := openPartial(path); !errors.Is(err, errBusy) {
		t.Errorf("the second got %v", err)
	}
	check.Must(p.WriteString("x"))(t)
	p.close()
	again := check.Must(openPartial(path))(t)
	if size := check.Must(again.size())(t); size != 1 {
		t.Errorf("%d bytes are left", size)
	}
	info := check.Must(again.Stat())(t)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("its mode is %v", info.Mode())
	}
	again.close()
}

// A process that waited while another one finished the file has a file that nobody must write to.
func TestARenamedPartialFileIsNotCurrent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f.partial")
	late := check.Must(os.Create(path))(t)
	defer late.Close()
	check.NoError(t, os.Rename(path, path+".whole"))
	if current, err := locked(late); current || err != nil {
		t.Errorf("after it was renamed: %v, %v", current, err)
	}
	check.NoError(t, os.WriteFile(path, nil, 0o600))
	if current, err := locked(late); current || err != nil {
		t.Errorf("after another one was made: %v, %v", current, err)
	}
}

func TestAnEmptyPartialFileDoesNotStay(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f.partial")
	check.Must(openPartial(path))(t).close()
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func TestWhatIsNoPartialFile(t *testing.T) {
	folder := t.TempDir()
	target, link, pipe := filepath.Join(folder, "target"), filepath.Join(folder, "link"), filepath.Join(folder, "pipe")
	check.NoError(t, os.WriteFile(target, []byte("mine"), 0o600))
	check.NoError(t, os.Symlink(target, link))
	check.NoError(t, syscall.Mkfifo(pipe, 0o600))
	for _, path := range []string{folder, link, pipe, filepath.Join(folder, "nothing", "f")} {
		if _, err := openPartial(path); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestWhatToDoAfterAFailedDownload(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f.partial")
	p := check.Must(openPartial(path))(t)
	defer p.close()
	full := &fs.PathError{Op: "write", Path: path, Err: syscall.ENOSPC}
	if text, _ := app.Explain(p.keeps(full), app.Unlimited); strings.Contains(text, "next:") {
		t.Errorf("of an empty file: %s", text)
	}
	check.Must(p.WriteString("some"))(t)
	for err, hint := range map[error]string{
		full:              "make room for the rest, then repeat this command: it goes on after the 4 B that have come",
		errors.New("bad"): "repeat this command: it goes on after the 4 B that have come",
	} {
		text, status := app.Explain(p.keeps(err), app.Unlimited)
		if status != app.StatusRefused || !strings.HasSuffix(text, "\nnext: "+hint) {
			t.Errorf("status %d: %s", status, text)
		}
	}
	refused := &apiclient.Error{Status: 401, ErrorBody: wire.ErrorBody{Code: fault.Unauthorized}}
	if text, _ := app.Explain(p.keeps(refused), app.Unlimited); !strings.Contains(text, "svc auth login") {
		t.Errorf("of a key that was revoked: %s", text)
	}
}
